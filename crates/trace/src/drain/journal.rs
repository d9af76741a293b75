//! What a drainer knows and no segment says any more, for its successor if it is killed.
//!
//! Segments are used again, and their copies deleted, once they are drained, and with them the texts in
//! them. The journal has one file per commit, written before that, and goes when the trace is complete.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_recorder::{ClockPair, DropReason, Ending, ProcessFacts};
use serde::{Deserialize, Serialize};

use super::processes::Processes;
use crate::error::TraceError;
use crate::folder::At as _;
use crate::tables::Tables;

/// A line of the journal: what is new about a process.
#[derive(Debug, Deserialize, Serialize)]
struct Line {
    row: u32,
    pid: u32,
    started: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<JournalFacts>,
    /// Numbers of texts and rows of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<(u32, u32)>,
    /// Numbers of texts, categories and names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sites: Vec<(u32, String, String)>,
}

#[derive(Debug, Deserialize, Serialize)]
struct JournalFacts {
    parent: u32,
    parent_started: Option<u64>,
    first_text: u32,
    monotonic_ns: u64,
    wall_ns: u64,
    counter: bool,
    rank: Option<u32>,
    host: String,
    boot: String,
    program: String,
    folder: String,
    arguments: Vec<String>,
    is_exec: bool,
    ended: u64,
}

/// The journal of a writer.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    next: u32,
}

const SUFFIX: &str = ".journal";

impl Journal {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), next: 0 }
    }

    /// Notes what is new since the last time.
    pub(crate) fn note(
        &mut self,
        processes: &mut Processes,
        tables: &Tables,
    ) -> Result<(), TraceError> {
        let mut text = String::new();
        for index in 0..processes.len() {
            let process = processes.get_mut(index);
            let fresh = process.texts.take_fresh();
            if process.is_noted && fresh.is_empty() {
                continue;
            }
            let texts = &process.texts;
            let name = |row: u32| tables.name(row).to_owned();
            let sites = fresh.iter().filter_map(|number| {
                texts.site(*number).map(|(category, site)| (*number, name(category), name(site)))
            });
            let files = fresh.iter().filter_map(|number| Some((*number, texts.file(*number)?)));
            let line = Line {
                row: process.row,
                pid: process.facts.pid,
                started: process.facts.started,
                files: files.collect(),
                sites: sites.collect(),
                facts: (!process.is_noted).then(|| JournalFacts::of(&process.facts)),
            };
            process.is_noted = true;
            text += &serde_json::to_string(&line).unwrap_or_default();
            text.push('\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.folder).at(&self.folder)?;
        let path = self.folder.join(format!("{:05}{SUFFIX}", self.next));
        let partial = self.folder.join(format!(".{:05}{SUFFIX}", self.next));
        fs::write(&partial, text).at(&partial)?;
        fs::rename(&partial, &path).at(&path)?;
        self.next += 1;
        Ok(())
    }

    /// Reads what an earlier drainer noted.
    pub(crate) fn replay(
        &mut self,
        processes: &mut Processes,
        tables: &mut Tables,
    ) -> Result<(), TraceError> {
        let mut files = self.files()?;
        files.sort_unstable();
        for (number, path) in files {
            self.next = self.next.max(number + 1);
            let text = fs::read_to_string(&path).at(&path)?;
            for line in text.lines() {
                let line: Line = serde_json::from_str(line).map_err(|_| TraceError::Content {
                    path: path.clone(),
                    what: "a line that is not a journal entry",
                })?;
                replay(line, processes, tables);
            }
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<(u32, PathBuf)>, TraceError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at(&self.folder)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.at(&self.folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(number) = name.strip_suffix(SUFFIX).and_then(|n| n.parse().ok()) {
                files.push((number, path));
            }
        }
        Ok(files)
    }

    /// The trace is complete.
    pub(crate) fn delete(&self) {
        for (_, path) in self.files().unwrap_or_default() {
            let _ = fs::remove_file(path);
        }
        // Only if nothing else is in it.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn replay(line: Line, processes: &mut Processes, tables: &mut Tables) {
    let name = (line.pid, line.started);
    let index = match (processes.index(name), line.facts) {
        (Some(index), _) => index,
        (None, Some(facts)) if (line.row as usize) < tables.processes.len() => {
            processes.add(facts.facts(name), None, Some(line.row), tables)
        }
        // Killed before the row was written: the process is found once more by its own file.
        (None, _) => return,
    };
    let process = processes.get_mut(index);
    process.is_noted = true;
    for (number, row) in line.files {
        if (row as usize) < tables.files().len() {
            process.texts.set_file(number, row);
        }
    }
    for (number, category, site) in line.sites {
        process.texts.set_site(number, (tables.name_row(&category), tables.name_row(&site)));
    }
}

impl JournalFacts {
    fn of(facts: &ProcessFacts) -> Self {
        Self {
            parent: facts.parent,
            parent_started: facts.parent_started,
            first_text: facts.first_text,
            monotonic_ns: facts.start.monotonic_ns,
            wall_ns: facts.wall_ns,
            counter: facts.counter,
            rank: facts.rank,
            host: facts.host.clone(),
            boot: facts.boot.clone(),
            program: facts.program.clone(),
            folder: facts.folder.clone(),
            arguments: facts.arguments.clone(),
            is_exec: facts.ending == Ending::Exec,
            ended: facts.ended,
        }
    }

    fn facts(self, (pid, started): (u32, u64)) -> ProcessFacts {
        ProcessFacts {
            pid,
            parent: self.parent,
            started,
            parent_started: self.parent_started,
            first_text: self.first_text,
            start: ClockPair { ticks: started, monotonic_ns: self.monotonic_ns },
            wall_ns: self.wall_ns,
            counter: self.counter,
            rank: self.rank,
            host: self.host,
            boot: self.boot,
            // Told only by processes that are there.
            namespace: String::new(),
            program: self.program,
            folder: self.folder,
            arguments: self.arguments,
            ending: if self.is_exec { Ending::Exec } else { Ending::None },
            status: 0,
            ended: self.ended,
            dropped: 0,
            trouble: DropReason::None,
            filtered: 0,
        }
    }
}
