//! The environment variables through which a launcher tells the preload library what to record.
//!
//! Every value is text; an empty one counts as unset.

/// The folder of the trace. Nothing is recorded without it.
pub const FOLDER: &str = "FEEDLINE_TRACE";
/// A folder in memory for the segments of all processes.
pub const MEMORY: &str = "FEEDLINE_TRACE_MEMORY";
/// How many bytes of that folder each process may take.
pub const MEMORY_BYTES: &str = "FEEDLINE_TRACE_MEMORY_BYTES";
/// The folder for segments that do not fit into memory.
pub const OVERFLOW: &str = "FEEDLINE_TRACE_OVERFLOW";
/// Set if segments are drained while the program runs, so that they can be reused.
pub const DRAINED: &str = "FEEDLINE_TRACE_DRAINED";
/// `counter` for the processor's time stamp counter, anything else for the monotonic clock.
pub const CLOCK: &str = "FEEDLINE_TRACE_CLOCK";
/// Which calls to record: a comma list of layers and kinds, those with a minus left out.
pub const CALLS: &str = "FEEDLINE_TRACE_CALLS";
/// Patterns of the files to record, separated by colons.
pub const INCLUDE: &str = "FEEDLINE_TRACE_INCLUDE";
/// Patterns of the files not to record, separated by colons.
pub const EXCLUDE: &str = "FEEDLINE_TRACE_EXCLUDE";
/// Record one call in this many.
pub const SAMPLE: &str = "FEEDLINE_TRACE_SAMPLE";
/// Merge calls of one kind on one file by one thread into one summary per this many milliseconds.
pub const SUMMARY_MS: &str = "FEEDLINE_TRACE_SUMMARY_MS";

/// All of the above. A launcher sets every one, so that nothing is inherited from an outer trace.
pub const ALL: [&str; 11] = [
    FOLDER,
    MEMORY,
    MEMORY_BYTES,
    OVERFLOW,
    DRAINED,
    CLOCK,
    CALLS,
    INCLUDE,
    EXCLUDE,
    SAMPLE,
    SUMMARY_MS,
];
