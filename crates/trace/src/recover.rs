//! Recordings that were not drained: by a program that was started with the preload library and
//! nothing else, or under a drainer that was killed.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_recorder::PROCESS_SUFFIX;

use crate::alive;
use crate::drain::{DrainReport, Drainer, SEGMENTS, Scope};
use crate::error::{Result, TraceError};
use crate::folder::{Claim, FolderWriter, WRITERS, numbers};
use crate::tables::Tables;

/// What [`recover`] added to a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Events that were added to the trace.
    pub events: u64,
    /// Processes that recorded them.
    pub processes: u64,
    /// Processes that still run on this machine and keep what they recorded.
    pub running: u64,
    /// Drainers that are writing to the trace now; what they have not written yet is not in it.
    pub writing: u64,
    /// Files in which other machines recorded; they are picked up there.
    pub elsewhere: u64,
    /// Files that could not be read, and why.
    pub problems: Vec<String>,
}

/// Takes into the trace what processes left in its folder, or in memory, that are gone. To be called
/// before a trace is read; a folder in which nothing was left is not touched.
pub fn recover(dir: &Path) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    let plain = format!("{}-pickup", alive::host());
    for (number, path) in numbers(&dir.join(WRITERS))? {
        let Some(claim) = Claim::resume(number, path)? else {
            recovered.writing += 1;
            continue;
        };
        if claim.facts.name != plain && !claim.facts.folders.is_empty() {
            recovered.add(&Drainer::resume(dir, claim)?.finish()?);
        }
    }
    let segments = dir.join(SEGMENTS);
    let (here, elsewhere) = count(&segments);
    recovered.elsewhere = elsewhere;
    if here > 0 {
        recovered.add(&drainer_of(dir, plain, &segments)?.finish()?);
    }
    Ok(recovered)
}

/// The one drainer of this machine for programs without a drainer of their own.
fn drainer_of(dir: &Path, name: String, segments: &Path) -> Result<Drainer> {
    for (number, path) in numbers(&dir.join(WRITERS))? {
        let is_it = fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("{name:?}")));
        if is_it {
            return match Claim::resume(number, path.clone())? {
                Some(mut claim) => {
                    claim.set_folders(vec![segments.to_owned()])?;
                    Drainer::resume(dir, claim)
                }
                None => Err(TraceError::Busy { path }),
            };
        }
    }
    let notes = segments.join(&name);
    let mut writer = FolderWriter::create_named(dir, name)?;
    let folders = vec![segments.to_owned()];
    writer.claim.set_folders(folders.clone())?;
    Ok(Drainer::with(writer, Tables::default(), Scope::Gone, folders, &notes))
}

/// Processes that left files in a folder: those of this machine, and others.
fn count(folder: &Path) -> (u64, u64) {
    let here = format!("{}-", alive::host());
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_process = |path: &PathBuf| path.to_string_lossy().ends_with(PROCESS_SUFFIX);
    names.filter(is_process).fold((0, 0), |(ours, others), path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(&here) { (ours + 1, others) } else { (ours, others + 1) }
    })
}

impl Recovered {
    fn add(&mut self, report: &DrainReport) {
        self.events += report.events;
        self.processes += report.processes;
        self.running += report.running;
        self.problems.extend(report.problems.iter().cloned());
    }
}
