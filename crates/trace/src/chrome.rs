//! The JSON of Chrome's tracing, which many tools write and Perfetto reads.
//!
//! Times of ours are written from the first event on: a wall clock in microseconds with nanoseconds
//! after the point has more digits than the floating point numbers of its readers.

mod head;
mod processes;
mod records;
mod sink;
mod source;

pub use sink::ChromeSink;
pub use source::{ChromeSource, Clock};

/// The metadata record in which a process of ours says everything about itself.
const PROCESS: &str = "feedline_process";
/// The key before the events that says when time 0 is, in nanoseconds since 1970.
const ORIGIN: &str = "feedline_origin_ns";
