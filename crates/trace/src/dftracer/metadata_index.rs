//! What the metadata of all files says together: strings by hash, hosts, units, ranks.
//!
//! Collected before the first event is handed out, since a path may come after the events that use
//! it or, for children of a fork, in the file of another process.

use rustc_hash::FxHashMap;

use crate::dftracer::chunk::{Chunk, Item, Metadata, Named};
use crate::dftracer::hash::Hash;

/// What a hash is for; small numbers are counted apart for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    File,
    Host,
    Text,
}

/// A file of the input and a process in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileProcess {
    pub(crate) file: u32,
    pub(crate) pid: u32,
}

/// What the trace says about a process, by host and number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) rank: Option<u32>,
    pub(crate) name: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct MetadataIndex {
    global: FxHashMap<Hash, Box<str>>,
    local: FxHashMap<(FileProcess, Use, u64), Box<str>>,
    hosts: FxHashMap<FileProcess, Box<str>>,
    units: FxHashMap<FileProcess, u64>,
    /// Units of files, for the processes in them that name none.
    file_units: FxHashMap<u32, u64>,
    named: Vec<(FileProcess, Named, Label)>,
    labels: FxHashMap<(String, u32), Label>,
}

impl MetadataIndex {
    /// Takes the metadata of a chunk of a file.
    pub(crate) fn add(&mut self, file: u32, chunk: &Chunk) {
        for item in &chunk.items {
            if let Item::Metadata(metadata) = item {
                self.learn(FileProcess { file, pid: metadata.pid }, metadata);
            }
        }
    }

    pub(crate) fn learn(&mut self, place: FileProcess, metadata: &Metadata) {
        let (Some(key), text) = (&metadata.key, metadata.text.as_deref().unwrap_or("")) else {
            return;
        };
        let purpose = match metadata.name.as_str() {
            "FH" => Use::File,
            "HH" => Use::Host,
            "SH" => Use::Text,
            "CM" if key == "time_metric" => {
                if let Some(unit) = unit_ns(text) {
                    self.units.insert(place, unit);
                    self.file_units.entry(place.file).or_insert(unit);
                }
                return;
            }
            "PR" if key == "rank" => {
                let label = Label { rank: text.parse().ok(), name: None };
                return self.named.push((place, metadata.host, label));
            }
            "process_name" => {
                let rank = key.strip_prefix("Rank ").and_then(|rank| rank.trim().parse().ok());
                // That name only says the rank once more.
                let label = Label { rank, name: rank.is_none().then(|| key.clone()) };
                return self.named.push((place, metadata.host, label));
            }
            _ => return,
        };
        if purpose == Use::Host {
            self.hosts.entry(place).or_insert_with(|| key.as_str().into());
        }
        match metadata.hash {
            Some(Hash::Number(number)) if !Hash::Number(number).is_global() => {
                self.local.entry((place, purpose, number)).or_insert_with(|| key.as_str().into());
            }
            Some(hash) => {
                self.global.entry(hash).or_insert_with(|| key.as_str().into());
            }
            None => {}
        }
    }

    /// Puts together what could not be said before all files were seen.
    pub(crate) fn complete(&mut self) {
        for (place, host, label) in std::mem::take(&mut self.named) {
            let host = self.host(place, host, &[]).unwrap_or_default().to_owned();
            let known = self.labels.entry((host, place.pid)).or_default();
            known.rank = known.rank.or(label.rank);
            known.name = known.name.take().or(label.name);
        }
    }

    /// The string of a hash.
    pub(crate) fn text(&self, place: FileProcess, purpose: Use, hash: Hash) -> Option<&str> {
        let found = match hash {
            Hash::Number(number) if !hash.is_global() => self.local.get(&(place, purpose, number)),
            hash => self.global.get(&hash),
        };
        found.map(|text| &**text)
    }

    /// The host of a record; one that does not say has the host of its process in the file.
    pub(crate) fn host<'a>(
        &'a self,
        place: FileProcess,
        host: Named,
        words: &'a [Box<str>],
    ) -> Option<&'a str> {
        let said = match host {
            Named::Hash(hash) => self.text(place, Use::Host, hash),
            Named::Text(word) => words.get(word as usize).map(|word| &**word),
            Named::Not => None,
        };
        said.or_else(|| self.hosts.get(&place).map(|host| &**host))
    }

    /// Nanoseconds of a unit of time, if the file says it; else what all others that do agree on.
    pub(crate) fn unit(&self, place: FileProcess) -> Option<u64> {
        let own = self.units.get(&place).or_else(|| self.file_units.get(&place.file));
        own.copied().or_else(|| {
            let mut others = self.file_units.values();
            let first = others.next()?;
            others.all(|unit| unit == first).then_some(*first)
        })
    }

    pub(crate) fn label(&self, host: &str, pid: u32) -> Option<&Label> {
        self.labels.get(&(host.to_owned(), pid))
    }
}

fn unit_ns(name: &str) -> Option<u64> {
    match name {
        "NS" => Some(1),
        "US" => Some(1_000),
        "MS" => Some(1_000_000),
        "SEC" => Some(1_000_000_000),
        _ => None,
    }
}
