//! What the user named, and what it turned out to be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use feedline_trace::chrome::ChromeSource;
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
    Chrome(Vec<Stretch>),
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
    /// The files that decide what is read: an archive stands for what was unpacked of it, which has new
    /// dates every time.
    pub(crate) origins: Vec<Stretch>,
    /// What was unpacked for it.
    pub(crate) unpacked: Vec<Unpacked>,
}

impl Inputs {
    /// Looks at everything that was named. `scratch` is where archives are unpacked that must be.
    pub(crate) fn find(named: &[PathBuf], scratch: &Path) -> Result<Self, LoadError> {
        let mut search =
            Search { scratch, found: None, archives: Vec::new(), unpacked: Vec::new() };
        expanded(named)?.iter().try_for_each(|path| search.look_at(path))?;
        let Some((_, mut kind)) = search.found else {
            return Err(LoadError::Empty { path: named.first().cloned().unwrap_or_default() });
        };
        let mut origins = match &mut kind {
            Kind::Folders(paths) => {
                paths.sort();
                paths.dedup();
                Vec::new()
            }
            Kind::Dftracer(stretches) | Kind::Chrome(stretches) => {
                stretches.sort();
                stretches.dedup();
                stretches.clone()
            }
        };
        let is_unpacked = |origin: &Stretch| {
            search.unpacked.iter().any(|unpacked| origin.path.starts_with(&unpacked.folder))
        };
        origins.retain(|origin| !is_unpacked(origin));
        origins.extend(search.unpacked.iter().map(|unpacked| Stretch::from(unpacked.of.clone())));
        origins.sort();
        Ok(Self { kind, origins, unpacked: search.unpacked })
    }

    /// What [`origins`](Self::origins) are if all that was named are archives that must be unpacked, without
    /// doing so.
    pub(crate) fn archives(named: &[PathBuf]) -> Option<Vec<Stretch>> {
        let mut paths = expanded(named).ok()?;
        paths.sort();
        paths.dedup();
        let are_archives = paths.iter().all(|path| path.is_file() && tar::is_archive(path));
        are_archives.then(|| paths.into_iter().map(Stretch::from).collect())
    }
}

/// What was named, with files in the place of patterns.
fn expanded(named: &[PathBuf]) -> Result<Vec<PathBuf>, LoadError> {
    let mut paths = Vec::new();
    for path in named {
        if !path.exists() && glob::is_pattern(path) {
            let found = glob::expand(path);
            if found.is_empty() {
                return Err(LoadError::NoMatch { pattern: path.clone() });
            }
            paths.extend(found);
        } else {
            paths.push(path.clone());
        }
    }
    Ok(paths)
}

struct Search<'a> {
    scratch: &'a Path,
    /// What was found first, and where.
    found: Option<(PathBuf, Kind)>,
    /// Archives that were looked at: a name and a pattern may both mean one.
    archives: Vec<PathBuf>,
    unpacked: Vec<Unpacked>,
}

impl Search<'_> {
    fn look_at(&mut self, path: &Path) -> Result<(), LoadError> {
        if path.is_file() && tar::is_archive(path) {
            if self.archives.iter().any(|known| known == path) {
                return Ok(());
            }
            self.archives.push(path.to_owned());
            return self.archive(path);
        }
        match recognise(path) {
            Ok(found) => self.add(path, of(found)),
            Err(ConvertError::Empty { .. }) => self.folder(path),
            Err(error) => Err(error.into()),
        }
    }

    /// A folder of trace folders, or of JSON, of which some may be traces.
    fn folder(&mut self, path: &Path) -> Result<(), LoadError> {
        let (mut folders, mut texts) = (Vec::new(), Vec::new());
        below(path, &mut folders, &mut texts)
            .map_err(|source| ConvertError::Read { path: path.to_owned(), source })?;
        if !folders.is_empty() {
            return self.add(path, Kind::Folders(folders));
        }
        texts.sort();
        let mut is_empty = true;
        for text in texts {
            if let Some(kind) = of_json(Stretch::from(text.clone()))? {
                self.add(&text, kind)?;
                is_empty = false;
            }
        }
        if is_empty { Err(LoadError::NoTrace { path: path.to_owned() }) } else { Ok(()) }
    }

    fn add(&mut self, path: &Path, kind: Kind) -> Result<(), LoadError> {
        let Some((first, all)) = &mut self.found else {
            self.found = Some((path.to_owned(), kind));
            return Ok(());
        };
        match (all, kind) {
            (Kind::Folders(all), Kind::Folders(more)) => all.extend(more),
            (Kind::Dftracer(all), Kind::Dftracer(more))
            | (Kind::Chrome(all), Kind::Chrome(more)) => all.extend(more),
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
            return Err(no_trace(path));
        }
        let unpacked = tar::unpack(path, self.scratch, &is_wanted).map_err(damaged)?;
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
    ) -> Result<(), LoadError> {
        if !own.is_empty() {
            let folders = own.iter().map(|folder| root.join(folder)).collect();
            return self.add(path, Kind::Folders(folders));
        }
        let stretch =
            |name: &Path| Stretch { name: path.join(name), ..Stretch::from(root.join(name)) };
        if names.iter().any(|name| is_pfw(name)) {
            let files = names.iter().filter(|name| is_pfw(name));
            return self.add(path, Kind::Dftracer(files.map(|name| stretch(name)).collect()));
        }
        let mut is_empty = true;
        for name in names.iter().filter(|name| is_json(name)) {
            if let Some(kind) = of_json(stretch(name))? {
                self.add(path, kind)?;
                is_empty = false;
            }
        }
        if is_empty { Err(no_trace(path)) } else { Ok(()) }
    }
}

fn no_trace(archive: &Path) -> LoadError {
    LoadError::Archive { path: archive.to_owned(), what: "holds no trace that is known" }
}

/// What a file of JSON among others is; none if it is no trace.
fn of_json(stretch: Stretch) -> Result<Option<Kind>, LoadError> {
    match recognise(&stretch.path) {
        Ok(Found::Dftracer(_)) => Ok(Some(Kind::Dftracer(vec![stretch]))),
        Ok(Found::Chrome(_)) => {
            Ok(ChromeSource::has_events(&stretch)?.then(|| Kind::Chrome(vec![stretch])))
        }
        Ok(Found::Folder(_))
        | Err(ConvertError::Unknown { .. } | ConvertError::Perfetto { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn of(found: Found) -> Kind {
    match found {
        Found::Folder(path) => Kind::Folders(vec![path]),
        Found::Dftracer(paths) => Kind::Dftracer(paths.into_iter().map(Stretch::from).collect()),
        Found::Chrome(path) => Kind::Chrome(vec![path.into()]),
    }
}

/// Trace folders, and files of JSON, below a folder.
fn below(folder: &Path, own: &mut Vec<PathBuf>, texts: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_hidden(&path) {
            continue;
        }
        if path.is_file() && is_json(&path) {
            texts.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            match recognise(&path) {
                Ok(Found::Folder(path)) => own.push(path),
                _ => below(&path, own, texts)?,
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

fn is_pfw(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.ends_with(".pfw") || name.ends_with(".pfw.gz")) && !is_hidden(path)
}

fn is_json(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (name.ends_with(".json") || name.ends_with(".json.gz")) && !is_hidden(path)
}
