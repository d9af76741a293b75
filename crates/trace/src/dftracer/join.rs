//! Chunks of DFTracer's files put together, one after the other: events with rows of tables.
//!
//! What chunks say about others is either known before ([`Naming::Known`]) or learned as it comes
//! ([`Naming::Late`]): then files have a row at once and their name at the end, and whatever was assumed is
//! compared with what came to be known.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::dftracer::chunk::{Chunk, Item, Metadata, Named, RawEvent};
use crate::dftracer::hash::Hash;
use crate::dftracer::metadata_index::{FileProcess, MetadataIndex, Use};
use crate::dftracer::record::CUT_OFF;
use crate::event::{Batch, Event, EventKind};
use crate::file_slice::FileSlice;
use crate::json;
use crate::process::Process;
use crate::read_stats::{Damage, ReadStats};
use crate::tables::Tables;

/// Wall clocks in microseconds do not get here for three thousand years; those in nanoseconds did.
const NANOSECONDS_FROM: i64 = 100_000_000_000_000_000;

/// The beginning of a path that is known by its hash only.
pub(crate) const UNNAMED: &str = "fhash:";

/// When names are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// The directory is complete.
    Known,
    /// The directory grows with the chunks.
    Late,
}

/// Joins chunks to one trace: resolves hashes and numbers processes.
pub struct Joiner {
    naming: Naming,
    pub(crate) directory: MetadataIndex,
    slices: Vec<FileSlice>,
    /// The file whose chunks come.
    file: usize,
    lines: u64,
    /// Whether the last line so far was cut off.
    is_torn: bool,
    /// Whether damage of the file was counted.
    is_damaged: bool,
    processes: Processes,
    /// Units of processes of this file.
    units: FxHashMap<u32, u64>,
    /// Rows of files by hash; small numbers mean something within a file and process only.
    files: FxHashMap<(Option<FileProcess>, Hash), FileRow>,
    /// Metadata that waits for a time.
    waiting: Vec<Metadata>,
    last_ns: i64,
    assumed: Assumed,
    pub(crate) intake: ReadStats,
    unit_set: BTreeSet<u64>,
}

/// A file's row, whether its name was known, and how many events are about it.
#[derive(Clone, Copy, Debug)]
struct FileRow {
    row: u32,
    is_named: bool,
    events: u64,
}

/// What was taken for true before everything was read.
#[derive(Debug, Default)]
struct Assumed {
    /// The unit if nothing says so, and the one that was taken.
    units: Vec<(FileProcess, u64, u64)>,
    hosts: Vec<(FileProcess, Named, Box<str>)>,
    /// Hashes that no line explained.
    texts: FxHashMap<(FileProcess, Hash), ()>,
    /// What the library's first event says about a process by hashes.
    borders: Vec<(u32, &'static str, FileProcess, Hash)>,
}

/// Rows of processes.
#[derive(Default)]
struct Processes {
    /// By host and number.
    latest: FxHashMap<(Box<str>, u32), u32>,
    /// By what a file's records say, which is cheaper to look up.
    in_file: FxHashMap<(Named, u32), u32>,
    /// The last one that was looked up.
    last: Option<((Named, u32), u32)>,
    started: Vec<bool>,
}

impl std::hash::Hash for Named {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Self::Not => state.write_u8(0),
            Self::Hash(hash) => hash.hash(state),
            Self::Text(word) => state.write_u32(*word),
        }
    }
}

impl Joiner {
    /// For these files, in their order.
    pub fn new(slices: Vec<FileSlice>, naming: Naming) -> Self {
        Self {
            naming,
            directory: MetadataIndex::default(),
            intake: ReadStats { files: slices.len() as u64, ..ReadStats::default() },
            slices,
            file: 0,
            lines: 0,
            is_torn: false,
            is_damaged: false,
            processes: Processes::default(),
            units: FxHashMap::default(),
            files: FxHashMap::default(),
            waiting: Vec::new(),
            last_ns: 0,
            assumed: Assumed::default(),
            unit_set: BTreeSet::new(),
        }
    }

    /// Goes to a file. What waits for a time gets the last one of the file before.
    pub fn begin(&mut self, tables: &mut Tables, batch: &mut Batch, file: usize) {
        if !self.waiting.is_empty() {
            let first = self.waiting[0].clone();
            let place = FileProcess { file: to_u32(self.file), pid: first.pid };
            let at = Event { start_ns: self.last_ns, ..Event::default() };
            let process = self.process(tables, place, first.host, &[], &at, false);
            self.settle(tables, batch, place, process);
        }
        self.file = file;
        self.lines = 0;
        self.units.clear();
        self.processes.in_file.clear();
        self.processes.last = None;
    }

    fn note(&mut self, chunk: &Chunk) {
        for bad in &chunk.bad {
            let (path, line) = (&self.slices[self.file].name, self.lines + bad.line + 1);
            let reason = bad.reason;
            self.intake.bad(|| Damage { path: path.clone(), line, reason });
        }
        let last = chunk.bad.last().filter(|bad| bad.line + 1 == chunk.lines);
        self.is_torn = last.is_some_and(|bad| bad.reason == CUT_OFF);
        self.intake.not_utf8 += chunk.not_utf8;
        self.intake.records += chunk.records;
        self.lines += chunk.lines;
    }

    /// Takes the next chunk of the file.
    pub fn join(&mut self, tables: &mut Tables, batch: &mut Batch, mut chunk: Chunk) {
        self.note(&chunk);
        let items = std::mem::take(&mut chunk.items);
        let mut joint =
            Joint { words: chunk.words(), rows: vec![None; chunk.words().len()], chunk: &chunk };
        // A word is the chunk's own: what was looked up by one is not for the next chunk.
        self.processes.in_file.retain(|(host, _), _| !matches!(host, Named::Text(_)));
        self.processes.last = None;
        for item in &items {
            match item {
                Item::Event(raw) => self.event(tables, batch, &mut joint, raw),
                Item::Metadata(metadata) => {
                    if self.naming == Naming::Late {
                        let place = FileProcess { file: to_u32(self.file), pid: metadata.pid };
                        self.directory.learn(place, metadata);
                    }
                    if is_kept(metadata) {
                        self.waiting.push((**metadata).clone());
                    }
                }
            }
        }
    }

    fn event(&mut self, tables: &mut Tables, batch: &mut Batch, joint: &mut Joint, raw: &RawEvent) {
        let place = FileProcess { file: to_u32(self.file), pid: raw.pid };
        let mut event = raw.event;
        let unit = *self.units.entry(raw.pid).or_insert_with(|| {
            let usual = if event.start_ns >= NANOSECONDS_FROM { 1 } else { 1_000 };
            let unit = self.directory.unit(place).unwrap_or(usual);
            if self.naming == Naming::Late {
                self.assumed.units.push((place, usual, unit));
            }
            self.unit_set.insert(unit);
            unit
        });
        scale(&mut event, unit);
        self.last_ns = event.start_ns;
        event.category = joint.row(tables, event.category);
        event.name = joint.row(tables, event.name);
        let is_border = event.kind == EventKind::Instant
            && tables.name(event.category) == "dftracer"
            && matches!(tables.name(event.name), "start" | "end");
        let begins = is_border && tables.name(event.name) == "start";
        event.process = self.process(tables, place, raw.host, joint.words, &event, begins);
        event.file = self.file_row(tables, place, raw.file, joint.words);
        if !self.waiting.is_empty() {
            self.settle(tables, batch, place, event.process);
        }
        if raw.extra.is_none() && raw.hashes.0 == raw.hashes.1 && !is_border {
            batch.events.push(event);
            return;
        }
        let mut extra =
            raw.extra.map(|row| joint.chunk.extras[row as usize].clone()).unwrap_or_default();
        self.other_texts(tables, place, joint, raw, &mut event, &mut extra, is_border);
        if is_border {
            self.border(tables, &event, &mut extra, begins);
        }
        event.extra = keep(batch, &extra);
        batch.events.push(event);
    }

    fn process(
        &mut self,
        tables: &mut Tables,
        place: FileProcess,
        host: Named,
        words: &[Box<str>],
        event: &Event,
        begins: bool,
    ) -> u32 {
        let key = (host, place.pid);
        if !begins {
            if let Some((last, row)) = self.processes.last
                && last == key
            {
                return row;
            }
            if let Some(row) = self.processes.in_file.get(&key) {
                self.processes.last = Some((key, *row));
                return *row;
            }
        }
        let named = host;
        let host = self.directory.host(place, host, words).unwrap_or(UNKNOWN_HOST);
        if self.naming == Naming::Late && !matches!(named, Named::Text(_)) {
            self.assumed.hosts.push((place, named, host.into()));
        }
        let known = self.processes.latest.get(&(host.into(), place.pid)).copied();
        // A second start under the same number is another program, or another process.
        let row = match known {
            Some(row) if !(begins && self.processes.started[row as usize]) => row,
            _ => {
                let label = self.directory.label(host, place.pid).cloned().unwrap_or_default();
                self.processes.started.resize(tables.processes.len() + 1, false);
                tables.add_process(Process {
                    host: host.to_owned(),
                    pid: place.pid,
                    rank: label.rank,
                    name: label.name,
                    start_ns: event.start_ns,
                    is_traced: true,
                    ..Process::default()
                })
            }
        };
        self.processes.started[row as usize] |= begins;
        self.processes.latest.insert((host.into(), place.pid), row);
        self.processes.in_file.insert(key, row);
        self.processes.last = Some((key, row));
        row
    }

    fn file_row(
        &mut self,
        tables: &mut Tables,
        place: FileProcess,
        file: Named,
        words: &[Box<str>],
    ) -> Option<u32> {
        let hash = match file {
            Named::Not => return None,
            Named::Text(word) => return Some(tables.file_row(&words[word as usize])),
            Named::Hash(hash) => hash,
        };
        let scope = (!hash.is_global()).then_some(place);
        let known = self.files.entry((scope, hash)).or_insert_with(|| {
            match self.directory.text(place, Use::File, hash) {
                Some(path) => FileRow { row: tables.file_row(path), is_named: true, events: 0 },
                None => {
                    let row = tables.file_row(&unnamed(hash));
                    FileRow { row, is_named: false, events: 0 }
                }
            }
        });
        known.events += 1;
        let row = known.row;
        if self.naming == Naming::Known {
            self.intake.unnamed_files += u64::from(!known.is_named);
        }
        Some(row)
    }

    /// Arguments that are hashes of other strings.
    #[expect(clippy::too_many_arguments, reason = "all are places where such a string can go")]
    fn other_texts(
        &mut self,
        tables: &mut Tables,
        place: FileProcess,
        joint: &Joint,
        raw: &RawEvent,
        event: &mut Event,
        extra: &mut String,
        is_border: bool,
    ) {
        for (key, hash) in &joint.chunk.hashes[raw.hashes.0 as usize..raw.hashes.1 as usize] {
            let key = &*joint.words[*key as usize];
            let border = BORDER_KEYS.iter().find(|known| is_border && **known == key);
            if let Some(key) = border.filter(|_| self.naming == Naming::Late) {
                self.assumed.borders.push((event.process, key, place, *hash));
            }
            let Some(text) = text_of(&self.directory, place, *hash) else {
                if border.is_none() && self.naming == Naming::Late {
                    self.assumed.texts.insert((place, *hash), ());
                }
                add_member(extra, key, &unnamed(*hash)[UNNAMED.len()..]);
                continue;
            };
            match key {
                "newpath_hash" | "path2_hash" | "to_hash" if event.other_file.is_none() => {
                    event.other_file = Some(tables.file_row(text));
                }
                "pathname_hash" | "path_hash" if event.file.is_none() => {
                    event.file = Some(tables.file_row(text));
                }
                _ if border.is_some() => {
                    describe(&mut tables.processes[event.process as usize], key, text);
                }
                _ => add_member(extra, key.trim_end_matches("_hash"), text),
            }
        }
    }

    /// What the library's first and last events say about the process.
    fn border(&mut self, tables: &mut Tables, event: &Event, extra: &mut String, begins: bool) {
        let process = &mut tables.processes[event.process as usize];
        if !begins {
            process.end_ns = Some(event.start_ns);
            return;
        }
        process.start_ns = event.start_ns;
        let Ok(mut members) =
            serde_json::from_str::<serde_json::Map<_, _>>(&format!("{{{extra}}}"))
        else {
            return;
        };
        let parent = members.get("ppid").and_then(serde_json::Value::as_u64);
        if let Some(parent) = parent.and_then(|parent| u32::try_from(parent).ok()) {
            process.parent_pid = Some(parent);
            members.shift_remove("ppid");
            let text = serde_json::Value::Object(members).to_string();
            json::inner(&text).clone_into(extra);
        }
    }

    /// Gives metadata the time of the event that follows it, or of the last one.
    fn settle(&mut self, tables: &mut Tables, batch: &mut Batch, place: FileProcess, process: u32) {
        for metadata in std::mem::take(&mut self.waiting) {
            let own = FileProcess { pid: metadata.pid, ..place };
            let is_same = metadata.pid == place.pid;
            let at = Event { start_ns: self.last_ns, ..Event::default() };
            let process = if is_same {
                process
            } else {
                self.process(tables, own, metadata.host, &[], &at, false)
            };
            let (kind, category, name) = match (metadata.name.as_str(), &metadata.key) {
                ("thread_name", Some(name)) => (EventKind::Span, "thread", name.as_str()),
                (name, _) => (EventKind::Instant, "dftracer", name),
            };
            let is_name = category == "thread";
            let event = Event {
                process,
                thread: metadata.tid,
                kind,
                category: tables.name_row(category),
                name: tables.name_row(name),
                count: 1,
                extra: if is_name { None } else { keep(batch, &metadata.args) },
                ..at
            };
            batch.events.push(event);
        }
    }

    fn link_parents(&self, tables: &mut Tables) {
        for row in 0..tables.processes.len() {
            let process = &tables.processes[row];
            let Some(parent) = process.parent_pid.filter(|_| process.parent.is_none()) else {
                continue;
            };
            let key = (process.host.as_str().into(), parent);
            let found =
                self.processes.latest.get(&key).copied().filter(|found| *found as usize != row);
            tables.processes[row].parent = found;
        }
    }

    /// What could not be said before everything was read. False if something was assumed that is not so: then
    /// all must be read again, with [`Naming::Known`].
    pub fn finish(&mut self, tables: &mut Tables) -> bool {
        self.link_parents(tables);
        if self.naming == Naming::Known {
            return true;
        }
        self.directory.complete();
        let Assumed { units, hosts, texts, borders } = std::mem::take(&mut self.assumed);
        let directory = &self.directory;
        let is_so = units
            .iter()
            .all(|(place, usual, unit)| directory.unit(*place).unwrap_or(*usual) == *unit)
            && hosts.iter().all(|(place, named, host)| {
                directory.host(*place, *named, &[]).unwrap_or(UNKNOWN_HOST) == &**host
            })
            && texts.keys().all(|(place, hash)| text_of(directory, *place, *hash).is_none());
        if !is_so || !self.name_files(tables) {
            return false;
        }
        for (process, key, place, hash) in borders {
            if let Some(text) = text_of(&self.directory, place, hash) {
                describe(&mut tables.processes[process as usize], key, text);
            }
        }
        for process in &mut tables.processes {
            let label = self.directory.label(&process.host, process.pid);
            let label = label.cloned().unwrap_or_default();
            (process.rank, process.name) = (label.rank, label.name);
        }
        true
    }

    /// The file has ended. Text that ends in the middle of a line is damaged if nothing else said so.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_torn) && !self.is_damaged {
            self.damaged(1);
        }
        self.is_damaged = false;
    }

    /// Counts damaged places of the file.
    pub fn damaged(&mut self, places: u64) {
        self.is_damaged |= places > 0;
        self.intake.damaged_files += places;
        if let Some(slice) = self.slices.get(self.file).filter(|_| places > 0) {
            self.intake.damaged(&slice.name);
        }
    }

    /// What was met so far.
    pub fn read_stats(&self) -> &ReadStats {
        &self.intake
    }

    /// The units of time that the files have, in nanoseconds.
    pub fn units_ns(&self) -> &BTreeSet<u64> {
        &self.unit_set
    }

    /// Rows of processes that said that they began, and never that they ended.
    pub fn unended(&self, tables: &Tables) -> Vec<u32> {
        let rows = (0..).zip(&tables.processes).zip(&self.processes.started);
        let open = rows.filter(|((_, process), started)| **started && process.end_ns.is_none());
        open.map(|((row, _), _)| row).collect()
    }

    /// Names the files that had a row before they had a name. False if two rows turn out to be one file.
    fn name_files(&mut self, tables: &mut Tables) -> bool {
        for ((scope, hash), file) in self.files.iter().filter(|(_, file)| !file.is_named) {
            let place = scope.unwrap_or_default();
            match self.directory.text(place, Use::File, *hash) {
                // A small number of another process may have the same row.
                Some(path) if scope.is_some() || !tables.name_file(file.row, path) => return false,
                Some(_) => {}
                None => self.intake.unnamed_files += file.events,
            }
        }
        true
    }
}

/// The name of a host that no line names.
const UNKNOWN_HOST: &str = "unknown";

/// Arguments of the library's first event that describe the process.
const BORDER_KEYS: [&str; 3] = ["exec_hash", "cmd_hash", "cwd"];

fn describe(process: &mut Process, key: &str, text: &str) {
    match key {
        "exec_hash" => text.clone_into(&mut process.program),
        "cmd_hash" => process.arguments = text.split(';').map(str::to_owned).collect(),
        _ => text.clone_into(&mut process.folder),
    }
}

/// A string that may be a path or something else.
fn text_of(directory: &MetadataIndex, place: FileProcess, hash: Hash) -> Option<&str> {
    let uses = [Use::Text, Use::File].into_iter();
    uses.filter_map(|purpose| directory.text(place, purpose, hash)).next()
}

/// A chunk and the rows of its words.
struct Joint<'a> {
    words: &'a [Box<str>],
    rows: Vec<Option<u32>>,
    chunk: &'a Chunk,
}

impl Joint<'_> {
    fn row(&mut self, tables: &mut Tables, word: u32) -> u32 {
        let word = word as usize;
        *self.rows[word].get_or_insert_with(|| tables.name_row(&self.words[word]))
    }
}

/// Whether a record says something that has no other place than an event of its own.
fn is_kept(metadata: &Metadata) -> bool {
    let key = metadata.key.as_deref().unwrap_or("");
    match metadata.name.as_str() {
        "FH" | "SH" | "HH" | "process_name" => false,
        "CM" => key != "time_metric",
        "PR" => key != "rank",
        // Usually it only repeats a number.
        "thread_name" => !key.is_empty() && !key.bytes().all(|byte| byte.is_ascii_digit()),
        _ => true,
    }
}

fn scale(event: &mut Event, unit_ns: u64) {
    let positive = |time: u64| time.saturating_mul(unit_ns);
    event.start_ns = event.start_ns.saturating_mul(unit_ns.cast_signed());
    event.duration_ns = positive(event.duration_ns);
    event.shortest_ns = event.shortest_ns.map(positive);
    event.longest_ns = event.longest_ns.map(positive);
}

fn unnamed(hash: Hash) -> String {
    match hash {
        Hash::Hex(number) | Hash::Other(number) => format!("{UNNAMED}{number:016x}"),
        Hash::Number(number) => format!("{UNNAMED}{number}"),
    }
}

fn add_member(extra: &mut String, key: &str, text: &str) {
    let mut out = std::mem::take(extra).into_bytes();
    json::key(&mut out, key);
    json::text(&mut out, text);
    *extra = String::from_utf8(out).unwrap_or_default();
}

fn keep(batch: &mut Batch, members: &str) -> Option<u32> {
    if members.is_empty() {
        return None;
    }
    batch.texts.push(format!("{{{members}}}"));
    Some(to_u32(batch.texts.len() - 1))
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
