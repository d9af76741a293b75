//! DFTracer's trace files, all dialects of them.
//!
//! A line is a JSON object; in half of the dialects the lines are between brackets. Files are named
//! `.pfw`, or `.pfw.gz` if compressed, one per process. Paths are hashes, and other lines say which.

mod chunk;
mod hash;
mod join;
mod members;
mod metadata_index;
mod pieces;
mod record;
mod scanner;
mod sink;
mod source;
mod usual_line;

pub use chunk::{BadLine, Chunk, Item, Metadata, Named, ParseScope, RawEvent};
pub use hash::{Hash, hash_of};
pub use join::{Joiner, Naming};
pub use members::{Member, Next, member_starts, read_member};
pub use pieces::Pieces;
pub use sink::{DftracerSink, Dialect, TimeUnit};
pub use source::DftracerSource;
