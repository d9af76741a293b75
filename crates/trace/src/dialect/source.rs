//! Traces of DFTracer as a source of events.
//!
//! Files are read twice, each a piece at a time: for what is said about the others, then for the
//! events. Memory grows with the number of distinct strings and processes, not with events.

use std::path::{Path, PathBuf};

use crate::dialect::chunk::{Chunk, Item, Metadata, Named, RawEvent, Wanted};
use crate::dialect::directory::{Directory, Place, Use};
use crate::dialect::hash::Hash;
use crate::dialect::pieces::Pieces;
use crate::event::{Batch, Event, Kind};
use crate::flow::Source;
use crate::process::Process;
use crate::quick::QuickMap;
use crate::tables::Tables;
use crate::trouble::{ConvertError, Damage, Intake};

/// Wall clocks in microseconds do not get here for three thousand years; those in nanoseconds did.
const NANOSECONDS_FROM: i64 = 100_000_000_000_000_000;

/// The beginning of a path that is known by its hash only.
pub(crate) const UNNAMED: &str = "fhash:";

/// One or many files of one trace.
pub struct DftracerSource {
    paths: Vec<PathBuf>,
    directory: Directory,
    /// The file that is read, and what follows in it.
    file: usize,
    pieces: Option<Pieces>,
    lines: u64,
    processes: Processes,
    /// Units of processes of this file.
    units: QuickMap<u32, u64>,
    /// Rows of files by hash; small numbers mean something within a file and process only.
    files: QuickMap<(Option<Place>, Hash), (u32, bool)>,
    /// Metadata that waits for a time.
    waiting: Vec<Metadata>,
    last_ns: i64,
    intake: Intake,
}

/// Rows of processes.
#[derive(Default)]
struct Processes {
    /// By host and number.
    latest: QuickMap<(Box<str>, u32), u32>,
    /// By what a file's records say, which is cheaper to look up.
    in_file: QuickMap<(Named, u32), u32>,
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

impl DftracerSource {
    /// Reads what the files say about each other.
    pub fn open(paths: Vec<PathBuf>) -> Result<Self, ConvertError> {
        let mut source = Self {
            paths,
            directory: Directory::default(),
            file: 0,
            pieces: None,
            lines: 0,
            processes: Processes::default(),
            units: QuickMap::default(),
            files: QuickMap::default(),
            waiting: Vec::new(),
            last_ns: 0,
            intake: Intake::default(),
        };
        for (file, path) in source.paths.iter().enumerate() {
            let mut pieces = Pieces::open(path).map_err(|source| read_error(path, source))?;
            while let Some(bytes) = pieces.next().map_err(|source| read_error(path, source))? {
                source.directory.add(to_u32(file), &Chunk::parse(bytes, Wanted::Metadata));
            }
        }
        source.directory.complete();
        source.intake.files = source.paths.len() as u64;
        Ok(source)
    }

    /// What was met so far; complete after the last batch.
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// The next chunk, of this file or the next one.
    fn next_chunk(&mut self) -> Result<Option<Chunk>, ConvertError> {
        loop {
            let Some(path) = self.paths.get(self.file) else { return Ok(None) };
            if self.pieces.is_none() {
                self.pieces = Some(Pieces::open(path).map_err(|source| read_error(path, source))?);
                self.lines = 0;
                self.units.clear();
                self.processes.in_file.clear();
                self.processes.last = None;
            }
            let Some(pieces) = &mut self.pieces else { return Ok(None) };
            if let Some(bytes) = pieces.next().map_err(|source| read_error(path, source))? {
                return Ok(Some(Chunk::parse(bytes, Wanted::Everything)));
            }
            self.intake.damaged_files += pieces.damaged;
            self.pieces = None;
            self.file += 1;
        }
    }

    fn note(&mut self, chunk: &Chunk) {
        for bad in &chunk.bad {
            let (path, line) = (&self.paths[self.file], self.lines + bad.line + 1);
            let reason = bad.reason;
            self.intake.bad(|| Damage { path: path.clone(), line, reason });
        }
        self.intake.not_utf8 += chunk.not_utf8;
        self.lines += chunk.lines;
    }

    fn join(&mut self, tables: &mut Tables, batch: &mut Batch, mut chunk: Chunk) {
        self.note(&chunk);
        let items = std::mem::take(&mut chunk.items);
        let mut joint =
            Joint { words: chunk.words(), rows: vec![None; chunk.words().len()], chunk: &chunk };
        // A word is the chunk's own: what was looked up by one is not for the next chunk.
        self.processes.in_file.retain(|(host, _), _| !matches!(host, Named::Text(_)));
        self.processes.last = None;
        for item in items {
            match item {
                Item::Event(raw) => self.event(tables, batch, &mut joint, raw),
                Item::Metadata(metadata) => {
                    if is_kept(&metadata) {
                        self.waiting.push(*metadata);
                    }
                }
            }
        }
    }

    fn event(&mut self, tables: &mut Tables, batch: &mut Batch, joint: &mut Joint, raw: RawEvent) {
        let place = Place { file: to_u32(self.file), pid: raw.pid };
        let mut event = raw.event;
        let unit = *self.units.entry(raw.pid).or_insert_with(|| {
            let usual = if event.start_ns >= NANOSECONDS_FROM { 1 } else { 1_000 };
            self.directory.unit(place).unwrap_or(usual)
        });
        scale(&mut event, unit);
        self.last_ns = event.start_ns;
        event.category = joint.row(tables, event.category);
        event.name = joint.row(tables, event.name);
        let is_border = event.kind == Kind::Instant
            && tables.name(event.category) == "dftracer"
            && matches!(tables.name(event.name), "start" | "end");
        let begins = is_border && tables.name(event.name) == "start";
        event.process = self.process(tables, place, raw.host, joint.words, &event, begins);
        event.file = self.file_row(tables, place, raw.file, joint.words);
        self.settle(tables, batch, place, event.process);
        let mut extra =
            raw.extra.map(|row| joint.chunk.extras[row as usize].clone()).unwrap_or_default();
        self.other_texts(tables, place, joint, &raw, &mut event, &mut extra, is_border);
        if is_border {
            self.border(tables, &event, &mut extra, begins);
        }
        event.extra = keep(batch, &extra);
        batch.events.push(event);
    }

    fn process(
        &mut self,
        tables: &mut Tables,
        place: Place,
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
        let host = self.directory.host(place, host, words).unwrap_or("unknown");
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
        place: Place,
        file: Named,
        words: &[Box<str>],
    ) -> Option<u32> {
        let hash = match file {
            Named::Not => return None,
            Named::Text(word) => return Some(tables.file_row(&words[word as usize])),
            Named::Hash(hash) => hash,
        };
        let scope = (!hash.is_global()).then_some(place);
        let (row, is_named) = *self.files.entry((scope, hash)).or_insert_with(|| {
            match self.directory.text(place, Use::File, hash) {
                Some(path) => (tables.file_row(path), true),
                None => (tables.file_row(&unnamed(hash)), false),
            }
        });
        self.intake.unnamed_files += u64::from(!is_named);
        Some(row)
    }

    /// Arguments that are hashes of other strings.
    #[expect(clippy::too_many_arguments, reason = "all are places where such a string can go")]
    fn other_texts(
        &self,
        tables: &mut Tables,
        place: Place,
        joint: &Joint,
        raw: &RawEvent,
        event: &mut Event,
        extra: &mut String,
        is_border: bool,
    ) {
        for (key, hash) in &joint.chunk.hashes[raw.hashes.0 as usize..raw.hashes.1 as usize] {
            let key = &*joint.words[*key as usize];
            let text = [Use::Text, Use::File]
                .into_iter()
                .find_map(|purpose| self.directory.text(place, purpose, *hash));
            let Some(text) = text else {
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
                "exec_hash" | "cmd_hash" | "cwd" if is_border => {
                    let process = &mut tables.processes[event.process as usize];
                    match key {
                        "exec_hash" => process.program = text.to_owned(),
                        "cmd_hash" => {
                            process.arguments = text.split(';').map(str::to_owned).collect()
                        }
                        _ => process.folder = text.to_owned(),
                    }
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
            crate::json::inner(&text).clone_into(extra);
        }
    }

    /// Gives metadata the time of the event that follows it, or of the last one.
    fn settle(&mut self, tables: &mut Tables, batch: &mut Batch, place: Place, process: u32) {
        for metadata in std::mem::take(&mut self.waiting) {
            let own = Place { pid: metadata.pid, ..place };
            let is_same = metadata.pid == place.pid;
            let at = Event { start_ns: self.last_ns, ..Event::default() };
            let process = if is_same {
                process
            } else {
                self.process(tables, own, metadata.host, &[], &at, false)
            };
            let (kind, category, name) = match (metadata.name.as_str(), &metadata.key) {
                ("thread_name", Some(name)) => (Kind::Span, "thread", name.as_str()),
                (name, _) => (Kind::Instant, "dftracer", name),
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
}

impl Source for DftracerSource {
    type Error = ConvertError;

    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, ConvertError> {
        batch.clear();
        while batch.events.is_empty() {
            let file = self.file;
            let chunk = self.next_chunk()?;
            if self.file != file && !self.waiting.is_empty() {
                let first = self.waiting[0].clone();
                let place = Place { file: to_u32(file), pid: first.pid };
                let at = Event { start_ns: self.last_ns, ..Event::default() };
                let process = self.process(tables, place, first.host, &[], &at, false);
                self.settle(tables, batch, place, process);
                self.processes.in_file.clear();
                self.processes.last = None;
            }
            let Some(chunk) = chunk else { break };
            self.join(tables, batch, chunk);
        }
        self.intake.events += batch.events.len() as u64;
        if batch.events.is_empty() {
            self.link_parents(tables);
        }
        Ok(!batch.events.is_empty())
    }
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
    if !out.is_empty() {
        out.push(b',');
    }
    crate::json::text(&mut out, key);
    out.push(b':');
    crate::json::text(&mut out, text);
    *extra = String::from_utf8(out).unwrap_or_default();
}

fn keep(batch: &mut Batch, members: &str) -> Option<u32> {
    if members.is_empty() {
        return None;
    }
    batch.texts.push(format!("{{{members}}}"));
    Some(to_u32(batch.texts.len() - 1))
}

fn read_error(path: &Path, source: std::io::Error) -> ConvertError {
    ConvertError::Read { path: path.to_owned(), source }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
