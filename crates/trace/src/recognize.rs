//! Finds out what format a path is, by its name and its content.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dftracer::Pieces;
use crate::error::{Result, TraceError};
use crate::file_slice::FileSlice;
use crate::flow::EventSource;
use crate::formats::{FORMATS, Files, TraceFormat};

/// A trace whose format is known.
#[derive(Clone, Debug)]
pub struct RecognizedTrace<'f> {
    /// The format that its files have.
    pub format: &'f TraceFormat,
    /// Its files in the order of their names, or its folder.
    pub files: Vec<FileSlice>,
}

impl<'f> RecognizedTrace<'f> {
    fn of(format: &'f TraceFormat, path: &Path) -> Self {
        Self { format, files: vec![FileSlice::of(path)] }
    }

    /// Opens the trace from its beginning.
    pub fn open(&self) -> Result<Box<dyn EventSource>> {
        match self.format.open {
            Some(open) => open(&self.files),
            None => {
                let path = self.files.first().map(|file| file.name.clone()).unwrap_or_default();
                Err(TraceError::WriteOnly { path, title: self.format.title })
            }
        }
    }
}

/// Finds the format of a trace. Folders are searched for files of formats with a file per process,
/// sub-folders included. Formats that cannot be read are an error.
pub fn recognize(path: &Path) -> Result<RecognizedTrace<'static>> {
    recognize_among(FORMATS, path)
}

/// The same with other formats. The first one that recognizes the path has it.
pub fn recognize_among<'f>(formats: &'f [TraceFormat], path: &Path) -> Result<RecognizedTrace<'f>> {
    let read_error = |source| TraceError::Read { path: path.to_owned(), source };
    let is_folder = fs::metadata(path).map_err(read_error)?.is_dir();
    if let Some(format) = formats.iter().find(|format| (format.recognize)(&[], path)) {
        return Ok(RecognizedTrace::of(format, path));
    }
    if is_folder {
        return search(formats, path);
    }
    let mut pieces = Pieces::open(&FileSlice::of(path)).map_err(read_error)?;
    let bytes = pieces.next_bytes().map_err(read_error)?.unwrap_or(&[]);
    match formats.iter().find(|format| (format.recognize)(bytes, path)) {
        Some(format) if format.open.is_none() => {
            Err(TraceError::WriteOnly { path: path.to_owned(), title: format.title })
        }
        Some(format) => Ok(RecognizedTrace::of(format, path)),
        None => {
            let begin = bytes.trim_ascii_start();
            let found = String::from_utf8_lossy(&begin[..begin.len().min(16)]).into_owned();
            Err(TraceError::Unknown { path: path.to_owned(), found })
        }
    }
}

/// Looks in a folder for files of formats that have many.
fn search<'f>(formats: &'f [TraceFormat], folder: &Path) -> Result<RecognizedTrace<'f>> {
    let many = || {
        formats.iter().filter(|format| format.files == Files::PerProcess && format.open.is_some())
    };
    for format in many() {
        let mut files = Vec::new();
        collect(format, folder, &mut files)?;
        files.sort();
        if !files.is_empty() {
            let files = files.into_iter().map(FileSlice::from).collect();
            return Ok(RecognizedTrace { format, files });
        }
    }
    let suffixes = many().flat_map(|format| format.suffixes).copied().collect();
    Err(TraceError::Empty { path: folder.to_owned(), suffixes })
}

fn collect(format: &TraceFormat, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let error = |source| TraceError::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_hidden =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // A link to a folder may lead in a circle.
        if path.is_dir() && !path.is_symlink() && !is_hidden {
            collect(format, &path, files)?;
        } else if path.is_file() && format.has_suffix(&path) && !is_hidden {
            files.push(path);
        }
    }
    Ok(())
}
