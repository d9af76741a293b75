//! What kind of trace a path is, by what is in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dialect::{Pieces, Stretch};
use crate::drain::SEGMENTS;
use crate::trouble::ConvertError;

/// A trace that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Files of DFTracer, in the order of their names.
    Dftracer(Vec<PathBuf>),
    /// Chrome's JSON.
    Chrome(PathBuf),
    /// A folder of ours.
    Folder(PathBuf),
}

/// What a folder of ours has in it.
const OWN_FILE: &str = "trace.json";

/// Looks at a path. Folders are searched for DFTracer's files, sub-folders included.
pub fn recognise(path: &Path) -> Result<Found, ConvertError> {
    let read_error = |source| ConvertError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(read_error)?.is_dir() {
        // Programs that recorded without a launcher leave nothing but their segments.
        if path.join(OWN_FILE).is_file() || path.join(SEGMENTS).is_dir() {
            return Ok(Found::Folder(path.to_owned()));
        }
        let mut files = Vec::new();
        collect(path, &mut files)?;
        files.sort();
        if files.is_empty() {
            return Err(ConvertError::Empty { path: path.to_owned() });
        }
        return Ok(Found::Dftracer(files));
    }
    if is_named_pfw(path) {
        return Ok(Found::Dftracer(vec![path.to_owned()]));
    }
    let mut pieces = Pieces::open(&Stretch::of(path)).map_err(read_error)?;
    let bytes = pieces.next_bytes().map_err(read_error)?.unwrap_or(&[]);
    // Packets of Perfetto are field 1 of a message, which looks like an empty line; the size of the
    // first packet may look like a brace.
    let begin = bytes.trim_ascii_start();
    let is_json = begin.get(1..).is_some_and(|rest| {
        rest.trim_ascii_start().first().is_some_and(|byte| b"\"{}[]".contains(byte))
    });
    if bytes.first() == Some(&0x0a) && !is_json {
        return Err(ConvertError::Perfetto { path: path.to_owned() });
    }
    match begin.first() {
        Some(b'{' | b'[') if is_line_by_line(begin) => Ok(Found::Dftracer(vec![path.to_owned()])),
        Some(b'{' | b'[') => Ok(Found::Chrome(path.to_owned())),
        _ => {
            let found = String::from_utf8_lossy(&begin[..begin.len().min(16)]).into_owned();
            Err(ConvertError::Unknown { path: path.to_owned(), found })
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), ConvertError> {
    let error = |source| ConvertError::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // A link to a folder may lead in a circle.
        if path.is_dir() && !path.is_symlink() && !is_hidden {
            collect(&path, files)?;
        } else if path.is_file() && is_named_pfw(&path) && !is_hidden {
            files.push(path);
        }
    }
    Ok(())
}

fn is_named_pfw(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with(".pfw") || name.ends_with(".pfw.gz")
}

/// Objects that stand one a line, without commas between them.
fn is_line_by_line(begin: &[u8]) -> bool {
    let mut lines =
        begin.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or(&[]);
    let first = if first == b"[" { lines.next().unwrap_or(&[]) } else { first };
    let object = first.strip_prefix(b"[").unwrap_or(first);
    serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(object)
        .is_ok_and(|object| object.contains_key("ph"))
        && lines.next() != Some(b",")
}
