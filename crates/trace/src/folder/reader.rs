//! Reading a trace folder.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use parquet::data_type::ByteArray;

use super::at::At as _;
use super::claim::Claim;
use super::cursor::{Cursor, Group, TableReader};
use super::schema::{EVENTS, FILES, PROCESSES, Table, VERSION};
use super::writer::{FORMAT, TRACE_FILE, TraceFile};
use crate::error::{Result, TraceError};
use crate::event::{Batch, Event, EventKind};
use crate::flow::EventSource;
use crate::process::{End, Process};
use crate::read_stats::ReadStats;
use crate::tables::Tables;

/// Events of a batch.
const BATCH: usize = 16 * 1024;

/// Reads a trace folder, including parts by several writers.
pub struct Folder {
    dir: PathBuf,
    /// Files of events that were not opened yet, the next one last.
    parts: Vec<PathBuf>,
    file: Option<Open>,
    ids: Option<Ids>,
    /// Columns to read; an empty list means all.
    only: Vec<String>,
    intake: ReadStats,
}

struct Open {
    path: PathBuf,
    reader: TableReader,
    /// The row group that comes next.
    next: usize,
    group: Option<Group>,
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Folder").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Folder {
    /// Opens a folder. Raw recordings in it are not seen: see
    /// [`recover`](crate::recover).
    pub fn open(dir: &Path) -> Result<Self> {
        check(dir)?;
        let mut parts: Vec<PathBuf> =
            parts(dir, EVENTS)?.into_iter().map(|(_, _, path)| path).collect();
        parts.reverse();
        let intake = ReadStats { files: 1, ..ReadStats::default() };
        Ok(Self { dir: dir.to_owned(), parts, file: None, ids: None, only: Vec::new(), intake })
    }

    /// Reads these columns of events only; what the others hold is left empty.
    #[must_use]
    pub fn only(mut self, columns: &[&str]) -> Self {
        self.only = columns.iter().map(|column| (*column).to_owned()).collect();
        self
    }

    /// The next rows of events.
    fn next_group(&mut self) -> Result<Option<(&mut Group, &Path)>> {
        loop {
            let is_open = match &mut self.file {
                Some(open) if open.group.as_ref().is_some_and(|group| !group.is_done()) => true,
                Some(open) if open.next < open.reader.groups() => {
                    let only = &self.only;
                    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|c| c == name);
                    open.group = Some(open.reader.group(open.next, is_wanted)?);
                    open.next += 1;
                    false
                }
                _ => {
                    let Some(path) = self.parts.pop() else { return Ok(None) };
                    let reader = TableReader::open(EVENTS, &path)?;
                    self.file = Some(Open { path, reader, next: 0, group: None });
                    false
                }
            };
            if is_open {
                break;
            }
        }
        Ok(self.file.as_mut().and_then(|open| Some((open.group.as_mut()?, &*open.path))))
    }
}

impl EventSource for Folder {
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        if self.ids.is_none() {
            self.ids = Some(Ids::load(&self.dir, tables)?);
        }
        // Taken out so that both can be used at once.
        let ids = self.ids.take().unwrap_or_default();
        let filled = match self.next_group() {
            Ok(Some((group, path))) => fill(group, path, &ids, tables, batch).map(|()| true),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        self.ids = Some(ids);
        self.intake.events += batch.events.len() as u64;
        filled
    }

    fn read_stats(&self) -> &ReadStats {
        &self.intake
    }
}

/// Reads the next rows of a row group into a batch.
fn fill(
    group: &mut Group,
    path: &Path,
    ids: &Ids,
    tables: &mut Tables,
    batch: &mut Batch,
) -> Result<()> {
    let rows = group.next(BATCH)?;
    batch.events.resize(rows, Event { count: 1, ..Event::default() });
    let bad = |what: &'static str| TraceError::Content { path: path.to_owned(), what };
    for cursor in &group.cursors {
        assign(cursor, ids, tables, batch).map_err(bad)?;
    }
    Ok(())
}

/// Puts the values of a column into events.
fn assign(
    cursor: &Cursor,
    ids: &Ids,
    tables: &mut Tables,
    batch: &mut Batch,
) -> Result<(), &'static str> {
    match cursor.column.name {
        "process" | "file" | "other_file" => assign_ids(cursor, ids, batch),
        "kind" | "category" | "name" | "extra" => assign_texts(cursor, tables, batch),
        _ => {
            assign_numbers(cursor, &mut batch.events);
            Ok(())
        }
    }
}

fn assign_ids(cursor: &Cursor, ids: &Ids, batch: &mut Batch) -> Result<(), &'static str> {
    let is_other = cursor.column.name == "other_file";
    for (row, id) in cursor.numbers() {
        let event = &mut batch.events[row];
        if cursor.column.name == "process" {
            let process = ids.row(id, processes_of);
            event.process = process.ok_or("a process that is missing from its table")?;
        } else {
            let file = ids.row(id, files_of).ok_or("a file that is missing from its table")?;
            *(if is_other { &mut event.other_file } else { &mut event.file }) = Some(file);
        }
    }
    Ok(())
}

fn assign_texts(
    cursor: &Cursor,
    tables: &mut Tables,
    batch: &mut Batch,
) -> Result<(), &'static str> {
    let Batch { events, texts } = batch;
    let mut known = RowCache::default();
    for (row, text) in cursor.texts() {
        let event = &mut events[row];
        match cursor.column.name {
            "kind" => {
                let kind = known.row(text, |text| {
                    EventKind::ALL
                        .iter()
                        .position(|kind| kind.name() == text)
                        .map(|kind| kind as u32)
                });
                let kind = kind.and_then(|kind| EventKind::ALL.get(kind as usize));
                event.kind = *kind.ok_or("an unknown kind of event")?;
            }
            "extra" => {
                let number = known.row(text, |text| {
                    texts.push(text.to_owned());
                    u32::try_from(texts.len() - 1).ok()
                });
                event.extra = Some(number.ok_or("a text that is not UTF-8")?);
            }
            name => {
                let number = known.row(text, |text| Some(tables.name_row(text)));
                let number = number.ok_or("a name that is not UTF-8")?;
                *(if name == "name" { &mut event.name } else { &mut event.category }) = number;
            }
        }
    }
    Ok(())
}

fn assign_numbers(cursor: &Cursor, events: &mut [Event]) {
    macro_rules! numbers {
        ($field:ident, $convert:expr) => {
            for (row, value) in cursor.numbers() {
                events[row].$field = $convert(value);
            }
        };
    }
    match cursor.column.name {
        "thread" => numbers!(thread, |value| u32::try_from(value).unwrap_or(u32::MAX)),
        "start" => numbers!(start_ns, |value| value),
        "duration" => numbers!(duration_ns, i64::cast_unsigned),
        "offset" => numbers!(offset, Some),
        "size" => numbers!(size, Some),
        "result" => numbers!(result, Some),
        "errno" => numbers!(errno, |value| u16::try_from(value).unwrap_or(u16::MAX)),
        "arg" => numbers!(arg, Some),
        "epoch" => numbers!(epoch, Some),
        "step" => numbers!(step, Some),
        "sample" => numbers!(sample, Some),
        "count" => numbers!(count, i64::cast_unsigned),
        "shortest" => numbers!(shortest_ns, |value: i64| Some(value.cast_unsigned())),
        "longest" => numbers!(longest_ns, |value: i64| Some(value.cast_unsigned())),
        "value" => numbers!(value, |value: i64| Some(f64::from_bits(value.cast_unsigned()))),
        // The class follows from the name.
        _ => {}
    }
}

/// Numbers of texts that come again and again from one dictionary: the same memory is the same text.
#[derive(Default)]
struct RowCache {
    /// The texts are kept so that their memory is not used for others.
    places: HashMap<(usize, usize), (ByteArray, Option<u32>)>,
    last: Option<((usize, usize), Option<u32>)>,
}

impl RowCache {
    fn row(&mut self, text: &ByteArray, number: impl FnOnce(&str) -> Option<u32>) -> Option<u32> {
        let place = (text.data().as_ptr().addr(), text.len());
        if let Some((_, row)) = self.last.filter(|(last, _)| *last == place) {
            return row;
        }
        let row = match self.places.get(&place) {
            Some((_, row)) => *row,
            None => {
                let row = text.as_utf8().ok().and_then(number);
                self.places.insert(place, (text.clone(), row));
                row
            }
        };
        self.last = Some((place, row));
        row
    }
}

/// From ids of a folder to rows of tables in memory.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    writers: HashMap<u32, WriterRows>,
}

#[derive(Debug, Default)]
pub(crate) struct WriterRows {
    files: Vec<Option<u32>>,
    processes: Vec<Option<u32>>,
}

pub(crate) fn files_of(writer: &WriterRows) -> &Vec<Option<u32>> {
    &writer.files
}

pub(crate) fn processes_of(writer: &WriterRows) -> &Vec<Option<u32>> {
    &writer.processes
}

impl Ids {
    pub(crate) fn load(dir: &Path, tables: &mut Tables) -> Result<Self> {
        let mut ids = Self::default();
        for (_, _, path) in parts(dir, FILES)? {
            read_files(&path, &mut |id, text| {
                ids.put(id, |writer| &mut writer.files, tables.file_row(text));
            })?;
        }
        let mut parents = Vec::new();
        for (_, _, path) in parts(dir, PROCESSES)? {
            read_processes(&path, &mut |id, parent, process| {
                let row = tables.add_process(process);
                ids.put(id, |writer| &mut writer.processes, row);
                parents.extend(parent.map(|parent| (row, parent)));
            })?;
        }
        for (row, parent) in parents {
            let parent = ids.row(parent, processes_of);
            if let Some(process) = tables.processes.get_mut(row as usize) {
                process.parent = parent;
            }
        }
        Ok(ids)
    }

    pub(crate) fn writer(&self, number: u32) -> Option<&WriterRows> {
        self.writers.get(&number)
    }

    #[inline]
    fn row(&self, id: i64, which: impl Fn(&WriterRows) -> &Vec<Option<u32>>) -> Option<u32> {
        let (writer, row) = split(id);
        *which(self.writers.get(&writer)?).get(row)?
    }

    fn put(&mut self, id: i64, which: impl Fn(&mut WriterRows) -> &mut Vec<Option<u32>>, row: u32) {
        let (writer, at) = split(id);
        let rows = which(self.writers.entry(writer).or_default());
        // Ids of a writer have no gaps; one that is far off is damage, and no reason to take memory.
        if at <= rows.len() + BATCH {
            if rows.len() <= at {
                rows.resize(at + 1, None);
            }
            rows[at] = Some(row);
        }
    }
}

pub(crate) fn split(id: i64) -> (u32, usize) {
    ((id >> 32) as u32, (id & 0xffff_ffff) as usize)
}

/// Files of a table: the writer's name, their number, and where they are.
pub(crate) fn parts(dir: &Path, table: Table) -> Result<Vec<(String, u32, PathBuf)>> {
    let folder = dir.join(table.name);
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).at(&folder)? {
        let path = entry.at(&folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".parquet").filter(|stem| !stem.starts_with('.'));
        if let Some((writer, number)) = stem.and_then(|stem| stem.rsplit_once('-'))
            && let Ok(number) = number.parse()
        {
            found.push((writer.to_owned(), number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Looks at the description of a folder.
pub(crate) fn check(dir: &Path) -> Result<TraceFile> {
    let path = dir.join(TRACE_FILE);
    let none = || TraceError::NotATrace { path: dir.to_owned() };
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(none()),
        text => text.at(&path)?,
    };
    let described: TraceFile = serde_json::from_str(&text).map_err(|_| none())?;
    if described.format != FORMAT {
        return Err(none());
    }
    if described.version > VERSION {
        return Err(TraceError::Version { path, found: described.version, known: VERSION });
    }
    Ok(described)
}

/// What one writer wrote into the tables, each row where it was.
pub(crate) fn tables_of(dir: &Path, claim: &Claim) -> Result<Tables> {
    let mut tables = Tables::default();
    let name = &claim.facts.name;
    let mut is_sound = true;
    for (_, _, path) in parts(dir, FILES)?.into_iter().filter(|(writer, ..)| writer == name) {
        read_files(&path, &mut |id, text| {
            is_sound &= claim.first_id() + i64::from(tables.file_row(text)) == id;
        })?;
    }
    for (_, _, path) in parts(dir, PROCESSES)?.into_iter().filter(|(writer, ..)| writer == name) {
        read_processes(&path, &mut |id, parent, mut process| {
            process.parent = parent.and_then(|id| u32::try_from(split(id).1).ok());
            is_sound &= claim.first_id() + i64::from(tables.add_process(process)) == id;
        })?;
    }
    if is_sound {
        Ok(tables)
    } else {
        let path = dir.join(FILES.name).join(name);
        Err(TraceError::Content { path, what: "its row numbers are not consecutive" })
    }
}

fn read_files(path: &Path, take: &mut dyn FnMut(i64, &str)) -> Result<()> {
    let reader = TableReader::open(FILES, path)?;
    for index in 0..reader.groups() {
        let group = reader.all(index)?;
        if let (Some(ids), Some(paths)) = (group.cursor("id"), group.cursor("path")) {
            for ((_, id), (_, text)) in ids.numbers().zip(paths.texts()) {
                take(id, text.as_utf8().at(path)?);
            }
        }
    }
    Ok(())
}

/// Gives every process with its id and that of its parent.
fn read_processes(path: &Path, take: &mut dyn FnMut(i64, Option<i64>, Process)) -> Result<()> {
    let reader = TableReader::open(PROCESSES, path)?;
    for index in 0..reader.groups() {
        let group = reader.all(index)?;
        let mut columns = ProcessColumns::default();
        for cursor in &group.cursors {
            let name = cursor.column.name;
            columns.numbers.extend(cursor.numbers().map(|(row, number)| ((name, row), number)));
            for (row, text) in cursor.texts() {
                columns.texts.insert((name, row), text.as_utf8().at(path)?.to_owned());
            }
        }
        let rows = group.cursor("id").map_or(0, |ids| ids.numbers().count());
        for row in 0..rows {
            let process = columns
                .process(row)
                .map_err(|what| TraceError::Content { path: path.to_owned(), what })?;
            let id = columns.number("id", row).unwrap_or(0);
            take(id, columns.number("parent", row), process);
        }
    }
    Ok(())
}

/// Values by column and row.
#[derive(Default)]
struct ProcessColumns {
    numbers: HashMap<(&'static str, usize), i64>,
    texts: HashMap<(&'static str, usize), String>,
}

impl ProcessColumns {
    fn number(&self, name: &'static str, row: usize) -> Option<i64> {
        self.numbers.get(&(name, row)).copied()
    }

    fn text(&self, name: &'static str, row: usize) -> Option<String> {
        self.texts.get(&(name, row)).cloned()
    }

    fn process(&self, row: usize) -> Result<Process, &'static str> {
        let narrow = |name| self.number(name, row).and_then(|number| u32::try_from(number).ok());
        let count = |name| self.number(name, row).unwrap_or(0).cast_unsigned();
        let text = |name| self.text(name, row).unwrap_or_default();
        let status = self.number("status", row).and_then(|status| i32::try_from(status).ok());
        let end = match (text("ending").as_str(), status) {
            ("unknown", _) => End::Unknown,
            ("exited", status) => End::Exited(status.unwrap_or(0)),
            ("became", _) => End::Became,
            ("killed", _) => End::Killed,
            _ => return Err("an unknown way for a process to end"),
        };
        let arguments = serde_json::from_str(&text("arguments"))
            .map_err(|_| "process arguments that are not a list of strings")?;
        Ok(Process {
            host: text("host"),
            pid: narrow("pid").unwrap_or(0),
            parent_pid: narrow("parent_pid"),
            parent: None,
            rank: narrow("rank"),
            program: text("program"),
            arguments,
            folder: text("folder"),
            name: self.text("name", row),
            start_ns: self.number("start", row).unwrap_or(0),
            end_ns: self.number("end", row),
            end,
            dropped: count("dropped"),
            trouble: self.text("trouble", row),
            filtered: count("filtered"),
            skipped: count("skipped"),
            is_traced: self.number("is_traced", row).unwrap_or(0) != 0,
        })
    }
}
