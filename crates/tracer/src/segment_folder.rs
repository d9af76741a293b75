//! Where processes keep segments until they are drained.

use std::path::{Path, PathBuf};

use crate::error::TracerError;

/// The folder where files are in memory.
const MEMORY: &str = "/dev/shm";
/// With less free memory than this, segments go to disk.
const LEAST_MEMORY_BYTES: u64 = 64 << 20;

/// Creates a folder in memory that no other process uses, or in the trace folder if memory is short.
pub(crate) fn create(trace: &Path) -> Result<PathBuf, TracerError> {
    let has_room = rustix::fs::statvfs(MEMORY)
        .is_ok_and(|facts| facts.f_bavail.saturating_mul(facts.f_frsize) >= LEAST_MEMORY_BYTES);
    let now = jiff::Timestamp::now().as_nanosecond();
    let name = format!("feedline-{}-{now}", std::process::id());
    let root = if has_room { Path::new(MEMORY).to_owned() } else { trace.join("segments") };
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).map_err(TracerError::io("create", &folder))?;
    Ok(folder)
}
