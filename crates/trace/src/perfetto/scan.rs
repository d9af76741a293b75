//! The first look at a trace: when it begins, who is in it, how long calls take.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::event::{Batch, Event, EventKind};
use crate::flow::{EventSink, Output};
use crate::perfetto::view::View;
use crate::process::Process;
use crate::tables::Tables;

/// Steps of the histogram within a factor of two.
const STEPS: u64 = 16;

/// A thread of a process row.
pub(crate) type ThreadKey = (u32, u32);

/// What is known of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) name: Option<String>,
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

/// What a trace is like. It takes the events of a trace once, or twice if only a part is to be shown:
/// until [`is_complete`](EventSink::is_complete) says so.
#[derive(Debug, Default)]
pub(super) struct TraceScan {
    pub(crate) view: View,
    pub(crate) origin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) threads: FxHashMap<ThreadKey, Thread>,
    pub(crate) processes: Vec<Process>,
    /// Slices that are in view, by duration.
    histogram: Vec<u64>,
    shown: u64,
    looks: u32,
}

impl TraceScan {
    /// A scan of what is shown in this view.
    pub(super) fn new(view: View) -> Self {
        Self { view, origin_ns: i64::MAX, end_ns: i64::MIN, ..Self::default() }
    }

    /// The rank of a thread: its own, if its name has one, or its process's or an ancestor's.
    pub(crate) fn rank(&self, key: ThreadKey) -> Option<u32> {
        let named = self.threads.get(&key).and_then(|thread| thread.name.as_deref());
        named.and_then(rank_in).or_else(|| self.process_rank(key.0).map(|(_, rank)| rank))
    }

    /// The nearest ancestor with a rank, itself included, and the rank.
    pub(crate) fn process_rank(&self, row: u32) -> Option<(u32, u32)> {
        let mut row = row;
        // A parent's row may be anything in a damaged trace.
        for _ in 0..64 {
            let process = self.processes.get(row as usize)?;
            if let Some(rank) = process.rank {
                return Some((row, rank));
            }
            row = process.parent?;
        }
        None
    }

    /// Whether a thread's events are in view.
    pub(crate) fn shows_thread(&self, key: ThreadKey) -> bool {
        self.view
            .ranks
            .as_ref()
            .is_none_or(|ranks| self.rank(key).is_some_and(|rank| ranks.contains(rank)))
    }

    /// Whether an event's time and thread are in view.
    pub(crate) fn shows(&self, event: &Event) -> bool {
        let end_ns = event.start_ns.saturating_add_unsigned(event.duration_ns);
        self.view.window.shows(self.origin_ns, event.start_ns, end_ns)
            && self.shows_thread((event.process, event.thread))
    }

    /// Whether an event becomes a slice of its own or a part of one.
    pub(crate) fn is_slice(&self, tables: &Tables, event: &Event) -> bool {
        event.kind != EventKind::Counter
            && !names_thread(tables, event)
            && (event.duration_ns >= self.view.min_duration_ns || event.kind == EventKind::Instant)
    }

    /// Slices shorter than this are merged, so that the rest, the runs between them, and runs that
    /// end because they are long enough stay below the limit.
    pub(crate) fn shortest_kept_ns(&self) -> u64 {
        let most = self.view.max_events;
        if self.shown <= most {
            return 0;
        }
        let mut kept = 0;
        for (bucket, count) in self.histogram.iter().enumerate().rev() {
            kept += count;
            if kept > most / 8 * 3 {
                return bucket_start(bucket as u64 + 1);
            }
        }
        0
    }

    /// The time of a thread that a run may take: a quarter of the limit, if all threads are busy.
    pub(crate) fn longest_run_ns(&self) -> u64 {
        let busy: u64 =
            self.threads.values().map(|thread| thread.last_ns.abs_diff(thread.first_ns)).sum();
        busy / (self.view.max_events / 4).max(1) + 1
    }

    fn meet(&mut self, tables: &Tables, event: &Event) {
        let end_ns = event.start_ns.saturating_add_unsigned(event.duration_ns);
        self.origin_ns = self.origin_ns.min(event.start_ns);
        self.end_ns = self.end_ns.max(end_ns);
        let thread = self.threads.entry((event.process, event.thread)).or_insert(Thread {
            name: None,
            first_ns: event.start_ns,
            last_ns: end_ns,
        });
        thread.first_ns = thread.first_ns.min(event.start_ns);
        thread.last_ns = thread.last_ns.max(end_ns);
        if names_thread(tables, event) {
            thread.name = Some(tables.name(event.name).to_owned());
        }
    }

    fn count(&mut self, event: &Event) {
        let bucket = bucket_of(event.duration_ns);
        if self.histogram.len() <= bucket {
            self.histogram.resize(bucket + 1, 0);
        }
        self.histogram[bucket] += 1;
        self.shown += 1;
    }
}

impl EventSink for TraceScan {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        let counts = self.looks == 1
            || (self.looks == 0
                && self.view.window == super::Window::default()
                && self.view.ranks.is_none());
        for event in &batch.events {
            if self.looks == 0 {
                self.meet(tables, event);
            }
            if counts && self.is_slice(tables, event) && self.shows(event) {
                self.count(event);
            }
        }
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.processes.clone_from(&tables.processes);
        self.looks += 1;
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let is_partial = self.view.window != super::Window::default() || self.view.ranks.is_some();
        self.looks > u32::from(is_partial)
    }

    fn output(&self) -> Output {
        Output::default()
    }
}

/// A thread's name travels as a span of no length.
pub(crate) fn names_thread(tables: &Tables, event: &Event) -> bool {
    event.kind == EventKind::Span && tables.name(event.category) == "thread"
}

pub(crate) fn rank_in(name: &str) -> Option<u32> {
    name.strip_prefix("rank ")?.split(' ').next()?.parse().ok()
}

fn bucket_of(duration_ns: u64) -> usize {
    let bucket = if duration_ns < STEPS {
        duration_ns
    } else {
        let exponent = u64::from(duration_ns.ilog2()) - u64::from(STEPS.ilog2());
        (exponent + 1) * STEPS + (duration_ns >> exponent) - STEPS
    };
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

fn bucket_start(bucket: u64) -> u64 {
    if bucket < STEPS {
        return bucket;
    }
    let exponent = bucket / STEPS - 1;
    u64::try_from(u128::from(STEPS + bucket % STEPS) << exponent).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_they_say() {
        for ns in [0, 1, 15, 16, 17, 31, 32, 1_000, 999_999_999, u64::MAX / 3, u64::MAX] {
            let bucket = bucket_of(ns) as u64;
            assert!(bucket_start(bucket) <= ns, "{ns}");
            assert!(ns < bucket_start(bucket + 1) || bucket_start(bucket + 1) == u64::MAX, "{ns}");
        }
    }

    #[test]
    fn ranks_stand_at_the_beginning_of_names() {
        assert_eq!(rank_in("rank 3 worker 2"), Some(3));
        assert_eq!(rank_in("rank 12"), Some(12));
        assert_eq!(rank_in("worker of rank 3"), None);
    }
}
