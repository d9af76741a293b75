//! Writing a trace folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::at::At as _;
use super::claim::{Claim, WriterFacts};
use super::column::{Gathered, Numbers, Texts};
use super::event_columns::EventColumns;
use super::reader;
use super::row_group_contents::{self, RowGroupContents, SURVEY_KEY};
use super::schema::{EVENTS, FILES, PROCESSES, TABLES, Table, Type, VERSION};
use super::table_file::TableFile;
use crate::error::Result;
use crate::event::Batch;
use crate::flow::{EventSink, Output};
use crate::process::{End, Process};
use crate::tables::Tables;
use crate::{alive, clocks};

/// What describes a folder.
pub(crate) const TRACE_FILE: &str = "trace.json";
/// The name of the format.
pub(crate) const FORMAT: &str = "feedline-trace";
/// The key under which a file of events says what it was made of.
pub(crate) const SEGMENTS_KEY: &str = "feedline.trace.segments";

/// Events of a row group: 25 MB of memory, and as many as readers like to take at once.
const GROUP: usize = 128 * 1024;
/// Events of a file.
pub(crate) const FILE_EVENTS: u64 = 1024 * 1024;
/// Rows of a row group of the other tables.
const SMALL_GROUP: usize = 64 * 1024;

/// The description of a folder.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct TraceFile {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// Nanoseconds since 1970.
    pub(crate) created_ns: i64,
    pub(crate) feedline: String,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// Files.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Writes its part of a trace folder, which others may write too. Rows of the tables that come with
/// events become ids, so that all events must come with the same tables.
#[derive(Debug)]
pub struct FolderWriter {
    dir: PathBuf,
    pub(crate) claim: Claim,
    /// The number of the next files.
    sequence: u32,
    events: Option<TableFile>,
    columns: EventColumns,
    /// What the row groups of the current file have in them.
    surveys: Vec<Option<RowGroupContents>>,
    /// Events of the current file.
    in_file: u64,
    files_written: usize,
    processes_written: Vec<Process>,
    written: Written,
}

impl FolderWriter {
    /// Makes the folder if it is not there, and a part of it.
    pub fn create(dir: &Path) -> Result<Self> {
        let name = format!("{}-{}-{}", alive::host(), std::process::id(), clocks::wall_ns());
        Self::create_named(dir, name)
    }

    pub(crate) fn create_named(dir: &Path, name: String) -> Result<Self> {
        for table in TABLES {
            let folder = dir.join(table.name);
            fs::create_dir_all(&folder).at(&folder)?;
        }
        describe(dir)?;
        let facts = WriterFacts {
            name,
            host: alive::host().to_owned(),
            boot: alive::boot().to_owned(),
            pid: std::process::id(),
            wall_offset_ns: clocks::wall_offset_ns(),
            folders: Vec::new(),
        };
        Ok(Self::with(dir, Claim::new(dir, facts)?, 0))
    }

    fn with(dir: &Path, claim: Claim, sequence: u32) -> Self {
        Self {
            dir: dir.to_owned(),
            claim,
            sequence,
            events: None,
            columns: EventColumns::new(),
            surveys: Vec::new(),
            in_file: 0,
            files_written: 0,
            processes_written: Vec::new(),
            written: Written::default(),
        }
    }

    /// Goes on where a writer that is gone stopped. The tables are those of all that it wrote.
    pub(crate) fn resume(dir: &Path, claim: Claim) -> Result<(Self, Tables)> {
        let mut next = 0;
        for table in TABLES {
            for (writer, sequence, _) in reader::parts(dir, table)? {
                if writer == claim.facts.name {
                    next = next.max(sequence + 1);
                }
            }
        }
        let tables = reader::tables_of(dir, &claim)?;
        let mut writer = Self::with(dir, claim, next);
        writer.files_written = tables.files().len();
        writer.processes_written = tables.processes.clone();
        Ok((writer, tables))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was written so far under its name.
    pub fn written(&self) -> Written {
        self.written
    }

    /// Takes events, which get their name when the writer is [finished](EventSink::finish) at the latest; until then
    /// files of the tables may get other names.
    pub fn append(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        let mut events = batch.events.as_slice();
        while !events.is_empty() {
            let room = GROUP - self.columns.rows();
            let (now, later) = events.split_at(room.min(events.len()));
            self.columns.push(tables, batch, now, self.claim.first_id());
            self.in_file += now.len() as u64;
            if self.columns.rows() == GROUP {
                self.write_group()?;
            }
            events = later;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        if self.columns.rows() == 0 {
            return Ok(());
        }
        let mut file = match self.events.take() {
            Some(file) => file,
            None => TableFile::create(EVENTS, self.part(EVENTS))?,
        };
        self.surveys.push(self.columns.survey());
        let is_written = file.write_group(&mut self.columns.gathered());
        self.events = Some(file);
        is_written
    }

    fn part(&self, table: Table) -> PathBuf {
        let name = format!("{}-{:05}.parquet", self.claim.facts.name, self.sequence);
        self.dir.join(table.name).join(name)
    }

    /// Completes the current file of events: what they refer to first, so that nothing that has its name
    /// refers to something that has none. `segments` says what the events were made of.
    pub(crate) fn commit(&mut self, tables: &Tables, segments: &str) -> Result<()> {
        self.write_group()?;
        self.write_files(tables)?;
        self.write_processes(tables)?;
        if let Some(file) = self.events.take() {
            let surveys = row_group_contents::text_of(&std::mem::take(&mut self.surveys));
            let facts = [(SEGMENTS_KEY, segments.to_owned()), (SURVEY_KEY, surveys)];
            self.written.bytes += file.commit(&facts)?;
            self.written.files += 1;
            self.written.events += self.in_file;
            self.in_file = 0;
        }
        self.sequence += 1;
        Ok(())
    }

    fn write_files(&mut self, tables: &Tables) -> Result<()> {
        let new = tables.files().get(self.files_written..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        let mut file = TableFile::create(FILES, self.part(FILES))?;
        let mut id = self.claim.first_id() + self.files_written as i64;
        for group in new.chunks(SMALL_GROUP) {
            let mut ids = Numbers::new(Type::Int64, false);
            let mut paths = Texts::new(false);
            for path in group {
                ids.push(Some(id));
                paths.push(Some(path));
                id += 1;
            }
            file.write_group(&mut [Gathered::Numbers(&mut ids), Gathered::Texts(&mut paths)])?;
        }
        self.written.bytes += file.commit(&[])?;
        self.written.files += 1;
        self.files_written = tables.files().len();
        Ok(())
    }

    /// Processes change until they end, so their table is written anew, in the place of the one before.
    fn write_processes(&mut self, tables: &Tables) -> Result<()> {
        if tables.processes == self.processes_written {
            return Ok(());
        }
        let name = format!("{}-00000.parquet", self.claim.facts.name);
        let mut file = TableFile::create(PROCESSES, self.dir.join(PROCESSES.name).join(name))?;
        let before = fs::metadata(file.path()).map(|facts| facts.len());
        let first = self.claim.first_id();
        for (index, group) in tables.processes.chunks(SMALL_GROUP).enumerate() {
            write_process_group(&mut file, group, first, first + (index * SMALL_GROUP) as i64)?;
        }
        self.written.bytes += file.commit(&[])?;
        match before {
            Ok(bytes) => self.written.bytes = self.written.bytes.saturating_sub(bytes),
            Err(_) => self.written.files += 1,
        }
        self.processes_written.clone_from(&tables.processes);
        Ok(())
    }
}

impl EventSink for FolderWriter {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        self.append(tables, batch)?;
        if self.in_file >= FILE_EVENTS {
            self.commit(tables, "")?;
        }
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.commit(tables, "")
    }

    fn output(&self) -> Output {
        Output { paths: vec![self.dir.clone()], slices: None }
    }
}

fn write_process_group(
    file: &mut TableFile,
    group: &[Process],
    first_id: i64,
    first: i64,
) -> Result<()> {
    let columns = PROCESSES.columns;
    let mut numbers: Vec<Numbers> =
        columns.iter().map(|column| Numbers::new(column.kind, column.is_optional)).collect();
    let mut texts: Vec<Texts> = columns.iter().map(|c| Texts::new(c.is_optional)).collect();
    for (id, process) in (first..).zip(group) {
        let arguments = serde_json::to_string(&process.arguments).unwrap_or_default();
        let (ending, status) = words_of(&process.end);
        let wide = |number: Option<u32>| number.map(i64::from);
        let count = |number: u64| Some(number.cast_signed());
        let mut put = |name: &str, number: Option<i64>, text: Option<&str>| {
            let index = columns.iter().position(|column| column.name == name);
            let index = index.expect("every name below is a column's");
            numbers[index].push(number);
            texts[index].push(text);
        };
        put("id", Some(id), None);
        put("host", None, Some(&process.host));
        put("pid", wide(Some(process.pid)), None);
        put("parent_pid", wide(process.parent_pid), None);
        put("parent", wide(process.parent).map(|row| first_id + row), None);
        put("rank", wide(process.rank), None);
        put("program", None, Some(&process.program));
        put("arguments", None, Some(&arguments));
        put("folder", None, Some(&process.folder));
        put("name", None, process.name.as_deref());
        put("start", Some(process.start_ns), None);
        put("end", process.end_ns, None);
        put("ending", None, Some(ending));
        put("status", status.map(i64::from), None);
        put("dropped", count(process.dropped), None);
        put("trouble", None, process.trouble.as_deref());
        put("filtered", count(process.filtered), None);
        put("skipped", count(process.skipped), None);
        put("is_traced", Some(i64::from(process.is_traced)), None);
    }
    let both = numbers.iter_mut().zip(&mut texts).zip(columns);
    let mut gathered: Vec<Gathered<'_>> = both
        .map(|((numbers, texts), column)| match column.kind {
            Type::Text => Gathered::Texts(texts),
            _ => Gathered::Numbers(numbers),
        })
        .collect();
    file.write_group(&mut gathered)
}

/// How a process ended, as the table says it.
fn words_of(end: &End) -> (&'static str, Option<i32>) {
    match end {
        End::Unknown => ("unknown", None),
        End::Exited(status) => ("exited", Some(*status)),
        End::Became => ("became", None),
        End::Killed => ("killed", None),
    }
}

/// Writes the description of a folder, or looks at the one that is there.
fn describe(dir: &Path) -> Result<()> {
    let path = dir.join(TRACE_FILE);
    if fs::exists(&path).at(&path)? {
        return reader::check(dir).map(drop);
    }
    let described = TraceFile {
        format: FORMAT.to_owned(),
        version: VERSION,
        created_ns: clocks::wall_ns(),
        feedline: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let text = serde_json::to_string_pretty(&described).unwrap_or_default() + "\n";
    // Threads of one process may begin at once.
    static DESCRIBED: AtomicU32 = AtomicU32::new(0);
    let number = DESCRIBED.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let partial = dir.join(format!(".{TRACE_FILE}.{}-{process}-{number}", alive::host()));
    fs::write(&partial, text).at(&partial)?;
    fs::rename(&partial, &path).at(&path)
}
