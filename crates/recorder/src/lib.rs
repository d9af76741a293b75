//! Events of a running program, kept where killing the program does not lose them.
//!
//! A thread writes fixed-size records into a segment, a file mapped into memory; the pages belong to
//! the system, not to the process. Writing one takes no lock, no allocation and no system call. A drainer
//! reads segments while the program runs, or after it was killed.
//!
//! ```
//! use feedline_recorder::{Site, Tags};
//!
//! static DECODE: Site = Site::new("reader", "decode");
//!
//! fn decode(epoch: i64, step: i64, bytes: &[u8]) {
//!     let mut span = DECODE.begin();
//!     span.tag(Tags { epoch: Some(epoch), step: Some(step), ..Tags::NONE });
//!     // The work; the span ends with the scope.
//!     span.tags.size = Some(bytes.len() as u64);
//! }
//! decode(1, 1, b"bytes");
//! ```
//!
//! The preload library and annotated programs write here; `feedline-trace` reads. Nothing here turns
//! an event into text, and nothing here ever ends the program that it watches: in trouble, events are
//! counted as dropped and the process says why.

#![deny(unsafe_code)]

mod app;
mod config;
pub mod environment;
#[expect(unsafe_code, reason = "lends static memory to one thread at a time")]
mod file_name;
mod op;
#[expect(unsafe_code, reason = "system calls past the C library's symbols, which may be our own")]
mod os;
mod pattern;
mod process;
mod record;
#[expect(unsafe_code, reason = "writes into mapped memory")]
mod recorder;
#[expect(unsafe_code, reason = "maps segments of another process")]
mod recording_files;
#[expect(unsafe_code, reason = "calls functions that were found by their names")]
mod route;
#[expect(unsafe_code, reason = "a structure in mapped memory")]
mod segment;
mod span;
#[expect(unsafe_code, reason = "a variable of each thread that costs nothing to find")]
mod thread;
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "reads the processor's time stamp counter")
)]
mod ticks;

pub use app::{AppEvent, CallFacts, THREAD_CATEGORY, Tags};
pub use config::{Config, Text};
pub use op::{Category, Class, MARK_BEGIN, MARK_BYTES, OPS, Op, OpInfo, build_mark, fingerprint};
pub use os::{current_folder, host, read_link};
pub use pattern::{matches_any, tidy};
pub use process::{DropReason, Ending, ProcessFacts};
pub use record::{CallRecord, Summary, TextKind};
pub use recorder::{Provisional, Recorder, UNNAMED, recorder};
pub use recording_files::{ProcessFile, ReadError, SegmentEntry, SegmentFile};
pub use route::ApiEvent;
pub use segment::{PROCESS_SUFFIX, SEGMENT_SUFFIX};
pub use span::{CallStart, Site, Span, is_recording, name_thread};
pub use ticks::{ClockPair, Rate, Timebase, is_counter_trusted, now};
