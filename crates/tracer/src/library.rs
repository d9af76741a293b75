//! The preload library: where it is, and whether it is the one of this build.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_recorder::{MARK_BEGIN, MARK_BYTES, build_mark};

use crate::error::TracerError;

const LIBRARY: &str = "libfeedline_preload.so";

/// The named library, or else the one beside this program or in `../lib`.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, TracerError> {
    let places = match named {
        Some(path) => vec![path.to_owned()],
        None => {
            let program = std::env::current_exe()
                .map_err(TracerError::io("find", Path::new("/proc/self/exe")))?;
            let folder = program.parent().unwrap_or(Path::new("/"));
            vec![folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)]
        }
    };
    let found = places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        TracerError::NoLibrary { path: named.unwrap_or(Path::new(LIBRARY)).to_owned() }
    })?;
    let path = found.canonicalize().map_err(TracerError::io("find", &found))?;
    check_build(&path)?;
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
        return Err(TracerError::LibraryPath { path });
    }
    Ok(path)
}

/// A library of another build records what this one cannot read.
fn check_build(path: &Path) -> Result<(), TracerError> {
    let bytes = fs::read(path).map_err(TracerError::io("read", path))?;
    let mut marks = bytes.windows(MARK_BYTES).filter(|mark| mark.starts_with(MARK_BEGIN));
    if marks.any(|mark| *mark == build_mark()) {
        return Ok(());
    }
    Err(TracerError::OtherBuild { path: path.to_owned() })
}
