//! The timeline of a page: fewer buckets if there are many, and the heat map of ranks.

use feedline_analyze::analysis::{CounterSeries, Strip, Timeline};
use serde_json::{Value, json};

use super::packed::{base64, fractions, short};
use super::steps::us;

const MOST_BUCKETS: usize = 1_000;
const MOST_RANK_ROWS: usize = 512;
/// Cells of a heat map; it has fewer buckets than the timeline when it has many ranks.
const MOST_CELLS: usize = 1 << 17;
const MOST_STRIPS: usize = 64;
const MOST_COUNTERS: usize = 32;

/// Everything that the page draws over time.
pub(super) fn timeline(timeline: &Timeline) -> Value {
    let buckets = buckets(timeline);
    let factor = buckets.div_ceil(MOST_BUCKETS).max(1);
    let micro = |values: &[u64]| sums(values, factor).into_iter().map(us).collect::<Vec<_>>();
    json!({
        "bucket_ns": timeline.bucket_ns.saturating_mul(factor as u64),
        "buckets": buckets.div_ceil(factor),
        "joined": factor,
        "bytes_read": sums(&timeline.bytes_read, factor),
        "bytes_written": sums(&timeline.bytes_written, factor),
        "calls": sums(&timeline.calls, factor),
        "io": micro(&timeline.io_ns),
        "read_p50": largest(&timeline.read_p50_ns, factor),
        "read_p99": largest(&timeline.read_p99_ns, factor),
        "compute": micro(&timeline.compute_ns),
        "stall": micro(&timeline.stall_ns),
        "ready": means(&timeline.ready_batches, factor),
        "counters": timeline.counters.iter().take(MOST_COUNTERS)
            .map(|series| counter(series, factor)).collect::<Vec<_>>(),
        "all_counters": timeline.counters.len(),
        "strips": timeline.strips.iter().take(MOST_STRIPS)
            .map(|lane| strip(lane, factor)).collect::<Vec<_>>(),
        "all_strips": timeline.strips.len(),
    })
}

/// A row a rank, or some ranks, for each of what can be shown.
pub(super) fn heat_map(timeline: &Timeline, ranks: &[u32]) -> Value {
    let rows = timeline
        .rank_bytes_read
        .len()
        .max(timeline.rank_stall_ns.len())
        .max(timeline.rank_io_ns.len());
    if rows == 0 {
        return Value::Null;
    }
    let (buckets, rank_factor) = (buckets(timeline), rows.div_ceil(MOST_RANK_ROWS));
    let shown_rows = rows.div_ceil(rank_factor);
    let most_buckets = (MOST_CELLS / shown_rows).clamp(1, MOST_BUCKETS);
    let factor = buckets.div_ceil(most_buckets).max(1);
    let columns = buckets.div_ceil(factor);
    let shape = Shape { rank_factor, factor, columns };
    let label = |row: usize| {
        let number = |place: usize| ranks.get(place).copied().unwrap_or(place as u32);
        let last = ((row + 1) * rank_factor).min(rows) - 1;
        [number(row * rank_factor), number(last)]
    };
    json!({
        "bucket_ns": timeline.bucket_ns.saturating_mul(factor as u64),
        "buckets": columns,
        "rows": (0..shown_rows).map(label).collect::<Vec<_>>(),
        "ranks_joined": rank_factor,
        "bytes_read": shape.layer(&timeline.rank_bytes_read),
        "stall": shape.layer(&timeline.rank_stall_ns),
        "io": shape.layer(&timeline.rank_io_ns),
    })
}

struct Shape {
    rank_factor: usize,
    factor: usize,
    columns: usize,
}

impl Shape {
    /// Cells as fractions of the largest one, and the exact sums of rows and columns.
    fn layer(&self, rows: &[Vec<u64>]) -> Value {
        if rows.iter().all(Vec::is_empty) {
            return Value::Null;
        }
        let mut cells = Vec::new();
        for group in rows.chunks(self.rank_factor) {
            let start = cells.len();
            cells.resize(start + self.columns, 0);
            for row in group {
                for (bucket, value) in row.iter().enumerate() {
                    let place = (bucket / self.factor).min(self.columns - 1);
                    cells[start + place] += value;
                }
            }
        }
        let most = cells.iter().copied().max().unwrap_or(0);
        let mut by_column = vec![0; self.columns];
        for (place, value) in cells.iter().enumerate() {
            by_column[place % self.columns] += value;
        }
        let by_row: Vec<u64> = cells.chunks(self.columns).map(|row| row.iter().sum()).collect();
        json!({
            "most": most,
            "cells": fractions(cells.into_iter(), most),
            "by_row": by_row,
            "by_column": by_column,
        })
    }
}

fn buckets(timeline: &Timeline) -> usize {
    let series = [&timeline.bytes_read, &timeline.calls, &timeline.io_ns, &timeline.stall_ns];
    let ranks = timeline.rank_bytes_read.iter().chain(&timeline.rank_stall_ns);
    series.into_iter().chain(ranks).map(Vec::len).max().unwrap_or(0)
}

fn sums(values: &[u64], factor: usize) -> Vec<u64> {
    values.chunks(factor).map(|part| part.iter().sum()).collect()
}

fn largest(values: &[u64], factor: usize) -> Vec<u64> {
    values.chunks(factor).map(|part| part.iter().copied().max().unwrap_or(0)).collect()
}

fn means(values: &[f64], factor: usize) -> Vec<f64> {
    let mean = |part: &[f64]| short(part.iter().sum::<f64>() / part.len() as f64);
    values.chunks(factor).map(mean).collect()
}

fn counter(series: &CounterSeries, factor: usize) -> Value {
    let mean = |part: &[Option<f64>]| {
        let known: Vec<f64> = part.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| short(known.iter().sum::<f64>() / known.len() as f64))
    };
    let values: Vec<Option<f64>> = series.values.chunks(factor).map(mean).collect();
    json!({ "name": super::data::clipped(&series.name), "values": values })
}

/// Of joined buckets the layer of the busiest one, and the mean of how busy they were.
fn strip(strip: &Strip, factor: usize) -> Value {
    let busy = |place: usize| strip.busy_percent.get(place).copied().unwrap_or(0);
    let places: Vec<usize> = (0..strip.layers.len()).collect();
    let layers: Vec<u8> = places
        .chunks(factor)
        .map(|part| {
            part.iter()
                .rev()
                .max_by_key(|place| busy(**place))
                .map_or(0, |&place| strip.layers[place])
        })
        .collect();
    let shares: Vec<u8> = places
        .chunks(factor)
        .map(|part| {
            let sum: usize = part.iter().map(|place| usize::from(busy(*place))).sum();
            (sum / part.len()) as u8
        })
        .collect();
    json!({
        "title": super::data::clipped(&strip.title),
        "rank": strip.rank,
        "role": strip.role,
        "layers": base64(&layers),
        "busy": base64(&shares),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_joined_when_there_are_too_many() {
        let made = timeline(&Timeline {
            bucket_ns: 10,
            bytes_read: vec![1; 2_001],
            io_ns: vec![1_000; 2_001],
            read_p99_ns: (0..2_001).collect(),
            ready_batches: vec![1.0; 2_001],
            strips: vec![Strip {
                layers: [vec![3, 9, 12], vec![2; 1_998]].concat(),
                busy_percent: [vec![10, 80, 30], vec![0; 1_998]].concat(),
                ..Strip::default()
            }],
            ..Timeline::default()
        });
        assert_eq!((&made["joined"], &made["buckets"]), (&json!(3), &json!(667)));
        assert_eq!((&made["bucket_ns"], &made["bytes_read"][0]), (&json!(30), &json!(3)));
        assert_eq!((&made["io"][0], &made["read_p99"][1]), (&json!(3), &json!(5)));
        assert_eq!(made["ready"][666], 1.0);
        let strip = &made["strips"][0];
        assert!(strip["layers"].as_str().unwrap().starts_with("CQIC"), "9, 2, 2");
        assert!(strip["busy"].as_str().unwrap().starts_with("KAAA"), "40, 0, 0");
    }

    #[test]
    fn ranks_are_joined_in_the_heat_map_when_there_are_too_many() {
        let rows: Vec<Vec<u64>> = (0..1_025).map(|rank| vec![rank, 1]).collect();
        let all = Timeline { bucket_ns: 5, rank_bytes_read: rows, ..Timeline::default() };
        let ranks: Vec<u32> = (0..1_025).collect();
        let made = heat_map(&all, &ranks);
        // 1025 ranks in rows of three: 342 rows, the last with two ranks.
        assert_eq!(made["ranks_joined"], 3);
        assert_eq!(made["rows"].as_array().unwrap().len(), 342);
        assert_eq!(
            (&made["rows"][0], &made["rows"][341]),
            (&json!([0, 2]), &json!([1_023, 1_024]))
        );
        assert_eq!(made["bytes_read"]["by_row"][0], 1 + 2 + 3);
        assert_eq!(made["bytes_read"]["by_column"], json!([1_024 * 1_025 / 2, 1_025]));
        assert_eq!(made["bytes_read"]["most"], 1_020 + 1_021 + 1_022);
        assert_eq!(made["stall"], Value::Null);
        assert_eq!(heat_map(&Timeline::default(), &[]), Value::Null);
    }
}
