//! Files that hold what memory should not, and vanish with the process however it ends.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file in `folder` that has no name any more; `what` is for who sees it in the moment it has one.
pub(crate) fn create(folder: &Path, what: &str) -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".{what}.{}.{number}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
