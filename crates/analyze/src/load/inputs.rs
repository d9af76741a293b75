//! What the user named, and what it turned out to be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use feedline_trace::dialect::Stretch;
use feedline_trace::{ConvertError, Found, recognise};

use super::LoadError;
use super::glob;
use super::tar::{self, Unpacked};

/// Traces of one kind.
#[derive(Debug)]
pub(crate) enum Kind {
    Folders(Vec<PathBuf>),
    Dftracer(Vec<Stretch>),
    Chrome(PathBuf),
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Folders(_) => "Feedline",
            Self::Dftracer(_) => "DFTracer",
            Self::Chrome(_) => "Chrome",
        }
    }
}

/// Everything that is to be read.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) kind: Kind,
    /// What was unpacked for it.
    pub(crate) unpacked: Vec<Unpacked>,
}

impl Inputs {
    /// Looks at everything that was named. `scratch` is where archives are unpacked that must be.
    pub(crate) fn find(named: &[PathBuf], scratch: &Path) -> Result<Self, LoadError> {
        let mut search = Search { scratch, found: None, unpacked: Vec::new() };
        for path in named {
            if !path.exists() && glob::is_pattern(path) {
                let paths = glob::expand(path);
                if paths.is_empty() {
                    return Err(LoadError::NoMatch { pattern: path.clone() });
                }
                paths.iter().try_for_each(|path| search.look_at(path))?;
            } else {
                search.look_at(path)?;
            }
        }
        let Some((_, mut kind)) = search.found else {
            return Err(LoadError::Empty { path: named.first().cloned().unwrap_or_default() });
        };
        match &mut kind {
            Kind::Folders(paths) => {
                paths.sort();
                paths.dedup();
            }
            Kind::Dftracer(stretches) => {
                stretches.sort();
                stretches.dedup();
            }
            Kind::Chrome(_) => {}
        }
        Ok(Self { kind, unpacked: search.unpacked })
    }
}

struct Search<'a> {
    scratch: &'a Path,
    /// What was found first, and where.
    found: Option<(PathBuf, Kind)>,
    unpacked: Vec<Unpacked>,
}

impl Search<'_> {
    fn look_at(&mut self, path: &Path) -> Result<(), LoadError> {
        if path.is_file() && tar::is_archive(path) {
            return self.archive(path);
        }
        match recognise(path) {
            Ok(found) => self.add(path, of(found)),
            // A folder of trace folders.
            Err(ConvertError::Empty { path: folder }) => {
                let mut folders = Vec::new();
                own_folders(&folder, &mut folders)
                    .map_err(|source| ConvertError::Read { path: folder.clone(), source })?;
                if folders.is_empty() {
                    return Err(ConvertError::Empty { path: folder }.into());
                }
                self.add(path, Kind::Folders(folders))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn add(&mut self, path: &Path, kind: Kind) -> Result<(), LoadError> {
        let Some((first, all)) = &mut self.found else {
            self.found = Some((path.to_owned(), kind));
            return Ok(());
        };
        match (all, kind) {
            (Kind::Folders(all), Kind::Folders(more)) => all.extend(more),
            (Kind::Dftracer(all), Kind::Dftracer(more)) => all.extend(more),
            (all, kind) => {
                return Err(LoadError::Mixed {
                    first: first.clone(),
                    first_kind: all.name(),
                    second: path.to_owned(),
                    second_kind: kind.name(),
                });
            }
        }
        Ok(())
    }

    fn archive(&mut self, path: &Path) -> Result<(), LoadError> {
        let damaged = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof => {
                LoadError::Archive { path: path.to_owned(), what: "is no whole archive" }
            }
            _ => ConvertError::Read { path: path.to_owned(), source: error }.into(),
        };
        let entries = tar::entries(path).map_err(damaged)?;
        let names: Vec<&Path> = entries.iter().map(|entry| &*entry.name).collect();
        let own: Vec<PathBuf> = own_of(&names);
        let is_compressed = tar::is_compressed(path).map_err(damaged)?;
        if own.is_empty() && !is_compressed && names.iter().any(|name| is_pfw(name)) {
            let parts = entries.iter().filter(|entry| is_pfw(&entry.name));
            let stretch = |entry: &tar::Entry| Stretch {
                name: path.join(&entry.name),
                path: path.to_owned(),
                start: entry.start,
                bytes: Some(entry.bytes),
            };
            return self.add(path, Kind::Dftracer(parts.map(stretch).collect()));
        }
        let is_wanted = |name: &Path| -> bool {
            if own.is_empty() {
                is_pfw(name) || is_json(name)
            } else {
                own.iter().any(|folder| name.starts_with(folder))
            }
        };
        if !names.iter().any(|name| is_wanted(name)) {
            let what = "holds no trace that is known";
            return Err(LoadError::Archive { path: path.to_owned(), what });
        }
        let unpacked = tar::unpack(path, self.scratch, &is_wanted).map_err(damaged)?;
        let root = unpacked.0.clone();
        self.unpacked.push(unpacked);
        self.unpacked_files(path, &root, &own, &names)
    }

    fn unpacked_files(
        &mut self,
        path: &Path,
        root: &Path,
        own: &[PathBuf],
        names: &[&Path],
    ) -> Result<(), LoadError> {
        if !own.is_empty() {
            let folders = own.iter().map(|folder| root.join(folder)).collect();
            return self.add(path, Kind::Folders(folders));
        }
        if names.iter().any(|name| is_pfw(name)) {
            let stretch =
                |name: &&Path| Stretch { name: path.join(name), ..Stretch::from(root.join(name)) };
            let files = names.iter().filter(|name| is_pfw(name)).map(stretch).collect();
            return self.add(path, Kind::Dftracer(files));
        }
        for name in names.iter().filter(|name| is_json(name)) {
            let found = recognise(&root.join(name)).map_err(|_| LoadError::Archive {
                path: path.join(name),
                what: "is no trace that is known",
            })?;
            self.add(path, of(found))?;
        }
        Ok(())
    }
}

fn of(found: Found) -> Kind {
    match found {
        Found::Folder(path) => Kind::Folders(vec![path]),
        Found::Dftracer(paths) => Kind::Dftracer(paths.into_iter().map(Stretch::from).collect()),
        Found::Chrome(path) => Kind::Chrome(path),
    }
}

/// Trace folders below a folder.
fn own_folders(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() || path.is_symlink() || is_hidden(&path) {
            continue;
        }
        match recognise(&path) {
            Ok(Found::Folder(path)) => found.push(path),
            _ => own_folders(&path, found)?,
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

fn is_pfw(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.ends_with(".pfw") || name.ends_with(".pfw.gz")) && !is_hidden(path)
}

fn is_json(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.ends_with(".json") || name.ends_with(".json.gz")) && !is_hidden(path)
}
