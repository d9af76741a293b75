//! What the user named, and what it turned out to be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use feedline_trace::chrome::ChromeSource;
use feedline_trace::{
    Access, FORMATS, FileSlice, Files, RecognizedTrace, TraceError, TraceFormat, recognize,
};
use glob::{MatchOptions, glob_with};

use super::AnalyzeError;
use super::tar::{self, Unpacked};

/// Everything that is to be read.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// Traces of one format.
    pub(crate) found: RecognizedTrace<'static>,
    /// The files that decide what is read: an archive represents what was unpacked from it, which has new
    /// dates every time.
    pub(crate) origins: Vec<FileSlice>,
    /// What was unpacked for it.
    pub(crate) unpacked: Vec<Unpacked>,
}

impl Inputs {
    /// Looks at everything that was named. `scratch` is where archives are unpacked that must be.
    pub(crate) fn find(named: &[PathBuf], scratch: &Path) -> Result<Self, AnalyzeError> {
        let mut search =
            Search { scratch, found: None, archives: Vec::new(), unpacked: Vec::new() };
        expanded(named)?.iter().try_for_each(|path| search.look_at(path))?;
        let Some((_, mut found)) = search.found else {
            return Err(AnalyzeError::Empty { path: named.first().cloned().unwrap_or_default() });
        };
        found.files.sort();
        found.files.dedup();
        // A folder may be written to unnoticed.
        let is_folder = found.format.files == Files::Folder;
        let mut origins = if is_folder { Vec::new() } else { found.files.clone() };
        let is_unpacked = |origin: &FileSlice| {
            search.unpacked.iter().any(|unpacked| origin.path.starts_with(&unpacked.folder))
        };
        origins.retain(|origin| !is_unpacked(origin));
        origins.extend(search.unpacked.iter().map(|unpacked| FileSlice::from(unpacked.of.clone())));
        origins.sort();
        Ok(Self { found, origins, unpacked: search.unpacked })
    }

    /// What [`origins`](Self::origins) are if all that was named are archives that must be unpacked, without
    /// doing so.
    pub(crate) fn archives(named: &[PathBuf]) -> Option<Vec<FileSlice>> {
        let mut paths = expanded(named).ok()?;
        paths.sort();
        paths.dedup();
        let are_archives = paths.iter().all(|path| path.is_file() && tar::is_archive(path));
        are_archives.then(|| paths.into_iter().map(FileSlice::from).collect())
    }
}

/// What was named, with files in the place of patterns, for users whose shell did not resolve them.
fn expanded(named: &[PathBuf]) -> Result<Vec<PathBuf>, AnalyzeError> {
    let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
    let mut paths = Vec::new();
    for path in named {
        let pattern = path.to_string_lossy();
        if path.exists() || !pattern.contains(['*', '?', '[']) {
            paths.push(path.clone());
            continue;
        }
        let before = paths.len();
        // In the order of their names; what cannot be looked into holds nothing. A hidden file or folder is
        // meant only where the pattern has a dot too; the crate's own option for that also hides `.*`.
        let found = glob_with(&pattern, options).into_iter().flatten().flatten();
        paths.extend(found.filter(|found| hidden_parts(found) <= hidden_parts(path)));
        if paths.len() == before {
            return Err(AnalyzeError::NoMatch { pattern: path.clone() });
        }
    }
    Ok(paths)
}

fn hidden_parts(path: &Path) -> usize {
    path.components().filter(|part| part.as_os_str().as_encoded_bytes().starts_with(b".")).count()
}

struct Search<'a> {
    scratch: &'a Path,
    /// What was found first, and where.
    found: Option<(PathBuf, RecognizedTrace<'static>)>,
    /// Archives that were looked at: a name and a pattern may both mean one.
    archives: Vec<PathBuf>,
    unpacked: Vec<Unpacked>,
}

impl Search<'_> {
    fn look_at(&mut self, path: &Path) -> Result<(), AnalyzeError> {
        if path.is_file() && tar::is_archive(path) {
            if self.archives.iter().any(|known| known == path) {
                return Ok(());
            }
            self.archives.push(path.to_owned());
            return self.archive(path);
        }
        match recognize(path) {
            Ok(found) => self.add(path, found),
            Err(TraceError::Empty { .. }) => self.folder(path),
            Err(error) => Err(error.into()),
        }
    }

    /// A folder of trace folders, or of JSON, of which some may be traces.
    fn folder(&mut self, path: &Path) -> Result<(), AnalyzeError> {
        let (mut folders, mut texts) = (Vec::new(), Vec::new());
        below(path, &mut folders, &mut texts)
            .map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
        if let Some(format) = folders.first().map(|(format, _)| *format) {
            let files = folders.into_iter().map(|(_, folder)| FileSlice::from(folder)).collect();
            return self.add(path, RecognizedTrace { format, files });
        }
        texts.sort();
        let mut is_empty = true;
        for text in texts {
            if let Some(found) = of_single(FileSlice::from(text.clone()))? {
                self.add(&text, found)?;
                is_empty = false;
            }
        }
        if is_empty { Err(AnalyzeError::NoTrace { path: path.to_owned() }) } else { Ok(()) }
    }

    fn add(&mut self, path: &Path, found: RecognizedTrace<'static>) -> Result<(), AnalyzeError> {
        let Some((first, all)) = &mut self.found else {
            self.found = Some((path.to_owned(), found));
            return Ok(());
        };
        if all.format.name != found.format.name {
            return Err(AnalyzeError::Mixed {
                first: first.clone(),
                first_format: all.format.title,
                second: path.to_owned(),
                second_format: found.format.title,
            });
        }
        all.files.extend(found.files);
        Ok(())
    }

    fn archive(&mut self, path: &Path) -> Result<(), AnalyzeError> {
        let damaged = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof => {
                AnalyzeError::Archive { path: path.to_owned(), what: "not a complete archive" }
            }
            _ => TraceError::Read { path: path.to_owned(), source: error }.into(),
        };
        let entries = tar::entries(path).map_err(damaged)?;
        let names: Vec<&Path> = entries.iter().map(|entry| &*entry.name).collect();
        let own: Vec<PathBuf> = own_of(&names);
        let is_compressed = tar::is_compressed(path).map_err(damaged)?;
        let many = names.iter().find_map(|name| format_of(Files::PerProcess, name));
        if let Some(format) = many.filter(|_| own.is_empty() && !is_compressed) {
            let parts = entries.iter().filter(|entry| is_named(format, &entry.name));
            let slice = |entry: &tar::Entry| FileSlice {
                name: path.join(&entry.name),
                path: path.to_owned(),
                start: entry.start,
                bytes: Some(entry.bytes),
            };
            return self.add(path, RecognizedTrace { format, files: parts.map(slice).collect() });
        }
        let is_selected = |name: &Path| -> bool {
            if own.is_empty() {
                format_of(Files::PerProcess, name).or(format_of(Files::Single, name)).is_some()
            } else {
                own.iter().any(|folder| name.starts_with(folder))
            }
        };
        if !names.iter().any(|name| is_selected(name)) {
            return Err(no_trace(path));
        }
        let unpacked = tar::unpack(path, self.scratch, &is_selected).map_err(damaged)?;
        let root = unpacked.folder.clone();
        self.unpacked.push(unpacked);
        self.unpacked_files(path, &root, &own, &names)
    }

    fn unpacked_files(
        &mut self,
        path: &Path,
        root: &Path,
        own: &[PathBuf],
        names: &[&Path],
    ) -> Result<(), AnalyzeError> {
        if let (Some(format), false) = (folder_format(), own.is_empty()) {
            let files = own.iter().map(|folder| FileSlice::from(root.join(folder))).collect();
            return self.add(path, RecognizedTrace { format, files });
        }
        let slice =
            |name: &Path| FileSlice { name: path.join(name), ..FileSlice::from(root.join(name)) };
        let many = names.iter().find_map(|name| format_of(Files::PerProcess, name));
        if let Some(format) = many {
            let files = names.iter().filter(|name| is_named(format, name));
            return self.add(
                path,
                RecognizedTrace { format, files: files.map(|name| slice(name)).collect() },
            );
        }
        let mut is_empty = true;
        for name in names.iter().filter(|name| format_of(Files::Single, name).is_some()) {
            if let Some(found) = of_single(slice(name))? {
                self.add(path, found)?;
                is_empty = false;
            }
        }
        if is_empty { Err(no_trace(path)) } else { Ok(()) }
    }
}

fn no_trace(archive: &Path) -> AnalyzeError {
    AnalyzeError::Archive {
        path: archive.to_owned(),
        what: "the archive has no trace in a known format",
    }
}

/// What a file among others is, which need not be a trace although it has the suffix of one.
fn of_single(file: FileSlice) -> Result<Option<RecognizedTrace<'static>>, AnalyzeError> {
    match recognize(&file.path) {
        Ok(RecognizedTrace { format, .. }) => {
            let is_trace = match format.access {
                Access::RowGroups => false,
                Access::ClockedFiles => ChromeSource::has_events(&file)?,
                Access::Lines | Access::Stream => true,
            };
            Ok(is_trace.then(|| RecognizedTrace { format, files: vec![file] }))
        }
        Err(TraceError::Unknown { .. } | TraceError::WriteOnly { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Trace folders and their format.
type Folders = Vec<(&'static TraceFormat, PathBuf)>;

/// Trace folders, and files that may be traces, below a folder.
fn below(folder: &Path, own: &mut Folders, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_hidden(&path) {
            continue;
        }
        if path.is_file() && format_of(Files::Single, &path).is_some() {
            files.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            match recognize(&path) {
                Ok(found) if found.format.files == Files::Folder => own.push((found.format, path)),
                _ => below(&path, own, files)?,
            }
        }
    }
    Ok(())
}

/// Trace folders of an archive: they have a description and events.
fn own_of(names: &[&Path]) -> Vec<PathBuf> {
    let described = names.iter().filter(|name| name.file_name().is_some_and(|n| n == "trace.json"));
    let folders = described.map(|name| name.parent().unwrap_or(Path::new("")).to_owned());
    let has_events =
        |folder: &PathBuf| names.iter().any(|name| name.starts_with(folder.join("events")));
    folders.filter(has_events).collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// The format whose traces consist of such files and that has this one's suffix.
fn format_of(files: Files, path: &Path) -> Option<&'static TraceFormat> {
    let readable = FORMATS.iter().filter(|format| format.open.is_some());
    readable.filter(|format| format.files == files).find(|format| is_named(format, path))
}

fn is_named(format: &TraceFormat, path: &Path) -> bool {
    format.has_suffix(path) && !is_hidden(path)
}

/// The format whose traces are folders.
fn folder_format() -> Option<&'static TraceFormat> {
    FORMATS.iter().find(|format| format.files == Files::Folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_files_of_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["a/x.pfw", "a/y.json", "b/c/z.pfw", "b/.hidden.pfw", ".d/v.pfw", "w.pfw"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let found = expanded(&[root.join(pattern)]).unwrap_or_default();
            found
                .iter()
                .map(|path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(found("*.pfw"), ["w.pfw"]);
        assert_eq!(found("*/*.pfw"), ["a/x.pfw"]);
        assert_eq!(found("**/*.pfw"), ["a/x.pfw", "b/c/z.pfw", "w.pfw"]);
        assert_eq!(found("?/[x-y].*"), ["a/x.pfw", "a/y.json"]);
        assert_eq!(found("[!a]/c/z.pfw"), ["b/c/z.pfw"]);
        assert_eq!(found("b/.*.pfw"), ["b/.hidden.pfw"]);
        assert!(found("*.tar").is_empty());
        assert!(found("t[").iter().all(|name| name == "t["), "an unclosed bracket is a name");
    }
}
