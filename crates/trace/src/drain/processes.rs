//! The processes whose recordings are drained: which are there, which are gone, who started whom.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use feedline_recorder::{ClockPair, DropReason, Ending, ProcessFacts, ProcessFile};

use super::convert::Launch;
use super::texts::{Site, Texts};
use super::untraced;
use crate::alive;
use crate::clocks::Clocks;
use crate::process::{End, Process};
use crate::tables::Tables;

/// Processes that are looked after in one round.
const LOOKED_AFTER: usize = 64;
/// The kernel counts the start of a process in hundredths of a second; a process that began so many
/// later than the recording is another one with the same number.
const SLACK: u64 = 10;

/// A process.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) facts: ProcessFacts,
    /// Its file, until that is deleted.
    file: Option<ProcessFile>,
    /// Its row in the tables.
    pub(crate) row: u32,
    /// When the kernel says it began, if it was there when it was first seen.
    began: Option<u64>,
    /// Its number as this process sees it.
    number_here: Option<u32>,
    pub(crate) is_gone: bool,
    /// Whether its folders were looked at since it was gone: all its segments are known.
    is_settled: bool,
    /// Whether what it is, and its texts, are in the journal.
    pub(crate) is_noted: bool,
    pub(crate) texts: Texts,
    /// The process that forked it, among these.
    forked_by: Option<usize>,
    /// Its segments that were not disposed of.
    pub(crate) segments: usize,
    skipped: u64,
    last_ns: Option<i64>,
    launches: Vec<Launch>,
}

/// All processes.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    all: Vec<Watched>,
    /// By number and start of recording.
    by_name: HashMap<(u32, u64), usize>,
    /// Those of one number, in the order of their starts.
    by_pid: HashMap<u32, Vec<usize>>,
    /// Who is looked after next.
    turn: usize,
}

impl Processes {
    pub(crate) fn index(&self, name: (u32, u64)) -> Option<usize> {
        self.by_name.get(&name).copied()
    }

    pub(crate) fn get(&self, index: usize) -> &Watched {
        &self.all[index]
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Watched {
        &mut self.all[index]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes a process into account. Its row is `row` if an earlier writer gave it one.
    pub(crate) fn add(
        &mut self,
        facts: ProcessFacts,
        file: Option<ProcessFile>,
        row: Option<u32>,
        tables: &mut Tables,
    ) -> usize {
        let name = (facts.pid, facts.started);
        if let Some(index) = self.index(name) {
            let known = &mut self.all[index];
            known.facts = facts;
            known.file = file.or(known.file.take());
            return index;
        }
        // What an earlier writer counted in segments stays.
        let before = row.and_then(|row| tables.processes.get(row as usize));
        let (skipped, last_ns) = before.map_or((0, None), |row| (row.skipped, row.end_ns));
        let row = row.unwrap_or_else(|| tables.add_process(Process::default()));
        let index = self.all.len();
        let is_here = facts.host == alive::host() && facts.boot == alive::boot();
        let number_here = alive::number_here(facts.pid, &facts.namespace);
        let began = if is_here { number_here.and_then(alive::began) } else { None };
        let started = facts.started;
        let pid = facts.pid;
        let mut watched = Watched {
            texts: Texts::new(facts.first_text),
            facts,
            file,
            row,
            began,
            number_here,
            is_gone: false,
            is_settled: false,
            is_noted: false,
            forked_by: None,
            segments: 0,
            skipped,
            last_ns,
            launches: Vec::new(),
        };
        watched.is_gone = !watched.is_there();
        self.all.push(watched);
        self.by_name.insert(name, index);
        let images = self.by_pid.entry(pid).or_default();
        let all = &self.all;
        let at = images.partition_point(|other| all[*other].facts.started < started);
        images.insert(at, index);
        // A number belongs to one process at a time: earlier ones became this one, or are gone.
        for earlier in &images[..images.len() - 1] {
            self.all[*earlier].is_gone = true;
        }
        index
    }

    /// Sees which processes are gone, some of them in each round.
    pub(crate) fn look_after(&mut self, is_all: bool) {
        let count = self.all.len();
        let mut left = if is_all { count } else { LOOKED_AFTER };
        for _ in 0..count {
            self.turn = (self.turn + 1) % count;
            let process = &mut self.all[self.turn];
            if process.is_gone {
                continue;
            }
            process.is_gone = !process.is_there();
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }

    /// Folders are about to be looked at: what processes that are gone left will all be seen.
    pub(crate) fn settle(&mut self) {
        for process in &mut self.all {
            process.is_settled = process.is_gone;
        }
    }

    /// The process that a forked one came from.
    fn forker(&self, index: usize) -> Option<usize> {
        let facts = &self.all[index].facts;
        let started = facts.parent_started?;
        // If its parent ended before it first recorded, the kernel named another one.
        self.index((facts.parent, started)).or_else(|| {
            let same = |other: &Watched| other.facts.started == started;
            self.all.iter().position(|other| same(other) && other.facts.boot == facts.boot)
        })
    }

    /// The process that a process came from: that forked it, became it, or spawned it.
    fn parent(&self, index: usize) -> Option<usize> {
        let facts = &self.all[index].facts;
        let before = |pid: u32| {
            let images = self.by_pid.get(&pid)?;
            let early = |other: &&usize| self.all[**other].facts.started < facts.started;
            images.iter().rev().find(early).copied()
        };
        let became = || before(facts.pid).filter(|other| self.is_same_process(*other, index));
        self.all[index].forked_by.or_else(became).or_else(|| before(facts.parent))
    }

    /// Whether two images of one number are one process, as far as the kernel says.
    fn is_same_process(&self, earlier: usize, later: usize) -> bool {
        let (earlier, later) = (&self.all[earlier], &self.all[later]);
        match (earlier.began, later.began) {
            (Some(one), Some(other)) => one == other,
            _ => earlier.facts.ending == Ending::Exec || earlier.facts.parent == later.facts.parent,
        }
    }

    fn next_image(&self, index: usize) -> Option<usize> {
        let images = self.by_pid.get(&self.all[index].facts.pid)?;
        let at = images.iter().position(|other| *other == index)?;
        images.get(at + 1).copied().filter(|next| self.is_same_process(index, *next))
    }

    /// The file that a number in records of a process names.
    #[inline]
    pub(crate) fn file(&self, index: usize, number: u32) -> Option<u32> {
        self.owner(index, number)?.texts.file(number)
    }

    /// The site that a number in records of a process names.
    pub(crate) fn site(&self, index: usize, number: u32) -> Option<Site> {
        self.owner(index, number)?.texts.site(number)
    }

    #[inline]
    fn owner(&self, index: usize, number: u32) -> Option<&Watched> {
        let mut process = &self.all[index];
        while !process.texts.owns(number) {
            process = &self.all[process.forked_by?];
        }
        Some(process)
    }

    /// Makes rows of all texts that were seen. Those who forked come before those who were forked.
    pub(crate) fn resolve(&mut self, tables: &mut Tables) {
        for index in 0..self.all.len() {
            if self.all[index].forked_by.is_none() {
                self.all[index].forked_by = self.forker(index).filter(|other| *other != index);
            }
        }
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_unstable_by_key(|index| self.all[*index].facts.started);
        for index in order {
            let mut texts = std::mem::take(&mut self.all[index].texts);
            let forked_by = self.all[index].forked_by;
            texts.resolve(tables, &self.all[index].facts.folder, |number| {
                self.file(forked_by?, number)
            });
            self.all[index].texts = texts;
        }
    }

    /// Takes what a segment had to say.
    pub(crate) fn learn(
        &mut self,
        index: usize,
        launches: Vec<Launch>,
        last: Option<i64>,
        skipped: u64,
    ) {
        let process = &mut self.all[index];
        process.launches.extend(launches);
        process.last_ns = process.last_ns.max(last);
        process.skipped += skipped;
    }

    /// Writes down what is known now.
    pub(crate) fn describe(&mut self, clocks: &HashMap<String, Clocks>, tables: &mut Tables) {
        for index in 0..self.all.len() {
            // Without a file, all is said: it is deleted after its process was described for good.
            let Some(file) = &self.all[index].file else { continue };
            self.all[index].facts = file.facts();
            let Some(clock) = clocks.get(&self.all[index].facts.boot) else { continue };
            let parent = self.parent(index).map(|parent| self.all[parent].row);
            let row = self.all[index].row;
            let described = self.row_of(index, clock, parent);
            if let Some(place) = tables.processes.get_mut(row as usize) {
                *place = described;
            }
        }
    }

    fn row_of(&self, index: usize, clock: &Clocks, parent: Option<u32>) -> Process {
        let Watched { facts, is_gone, last_ns, skipped, .. } = &self.all[index];
        let (end, end_ns) = match facts.ending {
            _ if self.next_image(index).is_some() => {
                let said = (facts.ended != 0).then(|| clock.at(facts.ended, facts.counter));
                (End::Became, said.or(*last_ns))
            }
            Ending::Exit => (End::Exited(facts.status), Some(clock.at(facts.ended, facts.counter))),
            Ending::Exec if *is_gone => (End::Became, Some(clock.at(facts.ended, facts.counter))),
            _ if *is_gone => (End::Killed, *last_ns),
            _ => (End::Unknown, None),
        };
        let has_trouble = facts.trouble != DropReason::None && facts.dropped > 0;
        Process {
            host: facts.host.clone(),
            pid: facts.pid,
            parent_pid: Some(facts.parent),
            parent,
            rank: facts.rank,
            program: facts.program.clone(),
            arguments: facts.arguments.clone(),
            folder: facts.folder.clone(),
            name: None,
            start_ns: clock.wall_of(facts.start.monotonic_ns),
            end_ns,
            end,
            dropped: facts.dropped,
            trouble: has_trouble.then(|| facts.trouble.describe().to_owned()),
            filtered: facts.filtered,
            skipped: *skipped,
            is_traced: true,
        }
    }

    /// Adds rows for programs that were started and never recorded anything.
    pub(crate) fn add_untraced(&self, tables: &mut Tables) {
        for (index, process) in self.all.iter().enumerate() {
            let became = process.facts.ending == Ending::Exec
                && process.is_gone
                && self.next_image(index).is_none();
            let execs = process.launches.iter().rev().find(|launch| launch.pid.is_none());
            let spawned = process.launches.iter().filter(|launch| launch.pid.is_some());
            for launch in spawned.chain(execs.filter(|_| became)) {
                let pid = launch.pid.unwrap_or(process.facts.pid);
                if launch.pid.is_some() && self.was_seen(pid, launch.start_ns, tables) {
                    continue;
                }
                let program =
                    launch.file.map(|row| tables.file(row).to_owned()).unwrap_or_default();
                let parent_pid =
                    if launch.pid.is_some() { process.facts.pid } else { process.facts.parent };
                let reason = untraced::reason(Path::new(&program));
                tables.add_process(Process {
                    host: process.facts.host.clone(),
                    pid,
                    parent_pid: Some(parent_pid),
                    parent: Some(process.row),
                    rank: process.facts.rank,
                    program,
                    folder: process.facts.folder.clone(),
                    start_ns: launch.start_ns,
                    trouble: Some(reason.to_owned()),
                    ..Process::default()
                });
            }
        }
    }

    /// Whether a process of this number began to record after it was started.
    fn was_seen(&self, pid: u32, start_ns: i64, tables: &Tables) -> bool {
        let images = self.by_pid.get(&pid).into_iter().flatten();
        images.into_iter().any(|index| {
            let row = tables.processes.get(self.all[*index].row as usize);
            row.is_some_and(|process| process.start_ns >= start_ns)
        })
    }

    /// Deletes the files of processes of which nothing more will come, or of all.
    pub(crate) fn delete_files(&mut self, is_all: bool) {
        for process in &mut self.all {
            if is_all || (process.is_settled && process.segments == 0) {
                process.delete_file();
            }
        }
    }

    /// Processes that are there.
    pub(crate) fn alive(&self) -> usize {
        self.all.iter().filter(|process| !process.is_gone).count()
    }
}

impl Watched {
    /// Whether the process is there: the kernel knows its number, and did not give it to another one.
    fn is_there(&self) -> bool {
        if self.facts.host != alive::host() {
            // Another machine's: it cannot be known here.
            return true;
        }
        if self.facts.boot != alive::boot() {
            return false;
        }
        match (self.number_here.and_then(alive::began), self.began) {
            (None, _) => false,
            (Some(now), Some(before)) if now != before => false,
            (Some(now), _) => now <= self.latest_began(),
        }
    }

    /// The last moment at which the process can have begun, in the kernel's hundredths.
    fn latest_began(&self) -> u64 {
        // Both count from the start of the machine; one of them stops while the machine sleeps.
        let now = ClockPair::by_counter(false).monotonic_ns / 10_000_000;
        let slept = alive::uptime().unwrap_or(now).saturating_sub(now);
        self.facts.start.monotonic_ns / 10_000_000 + slept + SLACK
    }

    fn delete_file(&mut self) {
        if let Some(file) = self.file.take() {
            // The last facts there will be.
            self.facts = file.facts();
            let path: PathBuf = file.path().to_owned();
            drop(file);
            let _ = fs::remove_file(path);
        }
    }
}
