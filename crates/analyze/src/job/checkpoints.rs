//! Checkpoints of all ranks together.

use std::collections::BTreeMap;

use crate::analysis::{CheckpointTransfer, Checkpoints};
use crate::job::mean;
use crate::row::NONE;
use crate::saturating::Total;
use crate::steps::{CheckpointRecord, Direction, RankSteps};

/// Which parts belong together: direction, epoch, step, and how often that was there before.
type Key = (Direction, u32, u32, u32);

/// All saves and loads; moments since `origin_ns`, shares of `run_ns` of every rank.
pub(crate) fn checkpoints(units: &[RankSteps], origin_ns: i64, run_ns: u64) -> Checkpoints {
    let mut groups: BTreeMap<Key, Vec<(u32, &CheckpointRecord)>> = BTreeMap::new();
    for unit in units {
        for (key, record) in keyed(unit) {
            groups.entry(key).or_default().push((unit.rank, record));
        }
    }
    let mut transfers: Vec<CheckpointTransfer> =
        groups.iter().map(|(key, parts)| transfer(key.0, parts, origin_ns)).collect();
    transfers.sort_by_key(|transfer| transfer.start_ns);
    let stall_ns: u64 = transfers.iter().map(|transfer| transfer.stall_ns).total();
    let saves: Vec<u64> = transfers
        .iter()
        .filter(|transfer| transfer.direction == Direction::Save.name())
        .map(|transfer| transfer.start_ns)
        .collect();
    let all_ns = run_ns as f64 * units.len() as f64;
    Checkpoints {
        stall_ns,
        stall_share: if all_ns > 0.0 { stall_ns as f64 / all_ns } else { 0.0 },
        interval_ns: mean(saves.windows(2).map(|pair| pair[1] - pair[0])),
        transfers,
    }
}

/// The parts of a rank with what they are parts of. Without epoch and step, what other threads do belongs
/// to the transfer before it, and everything else is one of its own.
fn keyed(unit: &RankSteps) -> Vec<(Key, &CheckpointRecord)> {
    let mut records: Vec<&CheckpointRecord> = unit.checkpoints.iter().collect();
    records.sort_by_key(|record| (record.start_ns, record.end_ns));
    let (mut keyed, mut untold): (Vec<(Key, _)>, BTreeMap<Direction, u32>) = Default::default();
    for record in records {
        let told = (record.epoch, record.step) != (NONE, NONE);
        let last = keyed.iter().rev().map(|(key, _)| *key).find(|key| key.0 == record.direction);
        let key = match last {
            _ if told => (record.direction, record.epoch, record.step, 0),
            Some(last) if record.stall_ns == 0 => last,
            _ => {
                let number = untold.entry(record.direction).or_default();
                *number += 1;
                (record.direction, NONE, NONE, *number)
            }
        };
        keyed.push((key, record));
    }
    keyed
}

fn transfer(
    direction: Direction,
    parts: &[(u32, &CheckpointRecord)],
    origin_ns: i64,
) -> CheckpointTransfer {
    let mut ranks: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for (rank, part) in parts {
        let span = ranks.entry(*rank).or_insert((part.start_ns, part.end_ns));
        *span = (span.0.min(part.start_ns), span.1.max(part.end_ns));
    }
    let since = |from_ns: i64, to_ns: i64| to_ns.saturating_sub(from_ns).max(0).cast_unsigned();
    let start_ns = ranks.values().map(|span| span.0).min().unwrap_or(origin_ns);
    let end_ns = ranks.values().map(|span| span.1).max().unwrap_or(start_ns);
    let times = ranks.iter().map(|(rank, span)| (since(span.0, span.1), *rank));
    let (slowest_ns, slowest_rank) = times.rev().max_by_key(|(ns, _)| *ns).unwrap_or_default();
    let sum = |of: fn(&CheckpointRecord) -> u64| parts.iter().map(|(_, part)| of(part)).total();
    CheckpointTransfer {
        direction: direction.name().to_owned(),
        start_ns: since(origin_ns, start_ns),
        duration_ns: since(start_ns, end_ns),
        stall_ns: sum(|part| part.stall_ns),
        bytes: sum(|part| part.bytes),
        sync_ns: sum(|part| part.sync_ns),
        slowest_rank,
        slowest_ns,
        ranks: ranks.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::sketch::Sketch;

    #[test]
    fn parts_of_a_checkpoint_are_put_together_over_ranks() {
        let mut sketch = Sketch::new(1);
        let second = sketch.rank(1);
        let saver = sketch.other("rank 1 saver 0");
        for (lane, more) in [(0, 0), (second, 50)] {
            sketch.add(lane, "checkpoint/restart", (10, 20 + more)).bytes(7);
            sketch.step(lane, (1, 1), (200, 210), 300);
            sketch.tagged(lane, "checkpoint/capture", (300, 340 + more), (1, 1)).bytes(100);
            sketch.add(lane, "POSIX/fsync", (320, 335));
            sketch.step(lane, (1, 2), (400, 410), 500);
            sketch.tagged(lane, "checkpoint/commit", (500, 510), (1, 1));
            sketch.step(lane, (1, 3), (600, 610), 700);
            sketch.tagged(lane, "checkpoint/capture", (700, 710), (1, 3)).bytes(100);
        }
        sketch.add(saver, "checkpoint/write", (390, 480));
        let found = checkpoints(&sketch.run(), 0, 1000);
        let shown: Vec<_> = found
            .transfers
            .iter()
            .map(|t| (t.direction.as_str(), t.start_ns, t.duration_ns, t.stall_ns, t.bytes))
            .collect();
        let expected =
            [("load", 10, 60, 70, 14), ("save", 300, 210, 150, 200), ("save", 700, 10, 20, 200)];
        assert_eq!(shown, expected);
        assert_eq!(found.transfers.iter().map(|t| t.sync_ns).collect::<Vec<_>>(), [0, 30, 0]);
        let slowest: Vec<_> =
            found.transfers.iter().map(|t| (t.slowest_rank, t.slowest_ns, t.ranks)).collect();
        assert_eq!(slowest, [(1, 60, 2), (0, 210, 2), (0, 10, 2)]);
        assert_eq!((found.stall_ns, found.interval_ns), (240, Some(400)));
        assert_eq!(found.stall_share, 0.12);
    }
}
