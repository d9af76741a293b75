//! Which processes and threads of Chrome's JSON are the same.
//!
//! In a file a process is what has its number. Processes of different files are different, unless both files
//! say that they are the same: of one rank, or of one machine and begun at the same moment.

use rustc_hash::FxHashMap;

use crate::process::Process;
use crate::tables::Tables;

/// The machine of a process of which nothing is known.
pub(crate) const UNKNOWN_HOST: &str = "unknown";
/// Threads with a name instead of a number are counted from here.
const NAMED_THREADS: u32 = 1 << 31;

/// Processes of all files so far.
#[derive(Default)]
pub(crate) struct Processes {
    /// Those of the file that is read, by what it calls them.
    here: FxHashMap<String, u32>,
    /// Rows that the file added.
    added: Vec<u32>,
    /// The rank that the file is about.
    rank: Option<u32>,
    by_rank: FxHashMap<(u32, String), u32>,
    by_host: FxHashMap<(String, u32, i64), u32>,
    threads: FxHashMap<(u32, String), u32>,
    /// Rows of the file, and what it calls their parents.
    parents: Vec<(u32, String)>,
    /// The last row and what the file calls it, as long as nothing else knows it.
    unused: Option<(u32, String)>,
}

impl Processes {
    /// Begins a file.
    pub(crate) fn begin(&mut self, rank: Option<u32>) {
        self.here.clear();
        self.added.clear();
        self.parents.clear();
        (self.rank, self.unused) = (rank, None);
    }

    /// The row of what a file calls a process.
    pub(crate) fn row(&mut self, tables: &mut Tables, called: String) -> u32 {
        if let Some(row) = self.here.get(&called) {
            return *row;
        }
        let of_rank = self.rank.map(|rank| (rank, called.clone()));
        let known = of_rank.as_ref().and_then(|key| self.by_rank.get(key)).copied();
        let row = known.unwrap_or_else(|| {
            let number = called.parse().ok();
            let row = tables.add_process(Process {
                host: UNKNOWN_HOST.to_owned(),
                pid: number.unwrap_or(0),
                name: number.is_none().then(|| called.clone()),
                rank: self.rank,
                is_traced: true,
                ..Process::default()
            });
            self.added.push(row);
            self.unused = Some((row, called.clone()));
            row
        });
        if let Some(key) = of_rank {
            self.by_rank.insert(key, row);
        }
        self.here.insert(called, row);
        row
    }

    /// An event has this process.
    pub(crate) fn used(&mut self, row: u32) {
        self.unused.take_if(|(unused, _)| *unused == row);
    }

    /// Takes what a process says about itself; its parent is a row of the trace that was written.
    pub(crate) fn describe(&mut self, tables: &mut Tables, row: u32, mut facts: Process) {
        let written = facts.parent.take();
        let key = (facts.host.clone(), facts.pid, facts.start_ns);
        let unused = self.unused.take_if(|(unused, _)| *unused == row);
        let row = match (self.by_host.get(&key).copied(), unused) {
            (Some(known), Some((_, called))) => {
                tables.processes.pop();
                self.added.pop();
                if let Some(rank) = self.rank {
                    self.by_rank.insert((rank, called.clone()), known);
                }
                self.here.insert(called, known);
                known
            }
            _ => row,
        };
        if facts.start_ns != 0 {
            self.by_host.entry(key).or_insert(row);
        }
        let Some(process) = tables.processes.get_mut(row as usize) else { return };
        facts.parent = process.parent;
        *process = facts;
        if let Some(written) = written {
            // In the file processes are counted from 1, in the order of the trace that was written.
            self.parents.push((row, (u64::from(written) + 1).to_string()));
        }
    }

    /// Ends a file: now all of its processes are known, and so is the rank.
    pub(crate) fn end(&mut self, tables: &mut Tables, rank: Option<u32>) {
        for (row, parent) in std::mem::take(&mut self.parents) {
            if let Some(parent) = self.here.get(&parent) {
                tables.processes[row as usize].parent = Some(*parent);
            }
        }
        for row in &self.added {
            let process = &mut tables.processes[*row as usize];
            process.rank = process.rank.or(rank);
        }
    }

    /// The number of a thread with a name, and whether it was not known before.
    pub(crate) fn thread(&mut self, process: u32, name: &str) -> (u32, bool) {
        let next = NAMED_THREADS.saturating_add(u32::try_from(self.threads.len()).unwrap_or(0));
        let key = (process, name.to_owned());
        if let Some(thread) = self.threads.get(&key) {
            return (*thread, false);
        }
        self.threads.insert(key, next);
        (next, true)
    }
}
