//! Which calls and files to record, in the form in which the preload library takes them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use feedline_recorder::{OPS, tidy};

use crate::error::TracerError;

/// The preload library keeps a list of patterns in this many bytes.
const MOST_PATTERN_BYTES: usize = 4095;

/// Checks that a list of calls has only words that the preload library knows.
pub(crate) fn check_calls(list: &str) -> Result<(), TracerError> {
    let mut known: Vec<String> = OPS
        .iter()
        .flat_map(|op| [op.info().category.name().to_lowercase(), op.info().class.name().into()])
        .collect();
    known.sort_unstable();
    known.dedup();
    let is_known =
        |word: &&str| known.contains(&word.trim().trim_start_matches('-').to_lowercase());
    match list.split(',').find(|word| !is_known(word)) {
        Some(word) => Err(TracerError::UnknownCalls { word: word.to_owned(), known }),
        None => Ok(()),
    }
}

/// Globs and folders as one list of patterns, separated by colons.
pub(crate) fn patterns(globs: &[String], folders: &[PathBuf]) -> Result<OsString, TracerError> {
    let here = std::env::current_dir()
        .map_err(TracerError::io("find the current folder", Path::new(".")))?;
    let globs = globs.iter().map(|glob| (glob.clone(), absolute_glob(glob, &here)));
    // A program may name a folder by a link or by its target; paths are compared as given.
    let folders =
        folders.iter().map(|folder| (folder.display().to_string(), tidied(&here.join(folder))));
    let mut list = OsString::new();
    for (given, pattern) in globs.chain(folders) {
        if pattern.as_encoded_bytes().contains(&b':') {
            return Err(TracerError::Colon { pattern: given });
        }
        if !list.is_empty() {
            list.push(":");
        }
        list.push(pattern);
    }
    if list.len() > MOST_PATTERN_BYTES {
        return Err(TracerError::LongPatterns { bytes: list.len(), most: MOST_PATTERN_BYTES });
    }
    Ok(list)
}

/// A glob that means the same wherever the program is: one without a slash matches files of that name
/// anywhere, one with a slash begins in the current folder.
fn absolute_glob(glob: &str, here: &Path) -> OsString {
    if glob.starts_with('/') || glob.starts_with("**") {
        glob.into()
    } else if glob.contains('/') {
        tidied(&here.join(glob))
    } else {
        format!("**/{glob}").into()
    }
}

/// A path without `.` and `..`.
fn tidied(path: &Path) -> OsString {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    let length = tidy(&mut bytes);
    bytes.truncate(length);
    OsString::from_vec(bytes)
}
