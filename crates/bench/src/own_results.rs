//! Feedline's own object in `summary.json`: what was run, the strict metrics, the counts.

use std::cmp::Reverse;

use feedline_loader::{KeptFor, LastBatch, Remainder, Shuffle};
use feedline_store::{Op, OpMeter};
use serde_json::{Map, Value, json};

use crate::checkpoint_results;
use crate::generate::Generated;
use crate::host::{Host, usable_cpus};
use crate::metrics::{Split, StrictTally};
use crate::outcome::{Outcome, RankOutcome};
use crate::plan::{PhasePlan, Plan, Semantics};
use crate::summary::Summary;
use crate::verdict::{Report, Verdict};

/// Raised when a key changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

pub(crate) fn object(outcome: &Outcome, summary: &Summary, report: &Report) -> Value {
    let strict = &summary.strict;
    let (first, last) = match summary.rank_done_s {
        Some((first, last)) => (Some(first), Some(last)),
        None => (None, None),
    };
    let shares: Vec<_> =
        summary.cached_share.iter().map(|share| share.map(|share| 100.0 * share)).collect();
    let mut object = settings(outcome, report);
    let found = json!({
        "verdict": verdict(report),
        "au_strict_percentage": strict.au_percent,
        "au_strict_worst_rank_percentage": strict.au_worst_rank_percent,
        "throughput_strict_samples_per_second": strict.samples_per_s,
        "sample_MB_per_second": strict.sample_bytes_per_s.map(|rate| rate / 1e6),
        "steps": strict.steps,
        "counted_steps": strict.counted_steps,
        "time_split_seconds": split(&strict.split, 1e-9),
        "time_split_percentage": split(&strict.split, 100.0 / strict.split.total_ns().max(1) as f64),
        "per_epoch": per_epoch(outcome),
        "per_rank": per_rank(outcome),
        "in_order_delay_seconds": strict.split.behind_ns as f64 / 1e9,
        "first_rank_done_seconds": first,
        "last_rank_done_seconds": last,
        "cached_share_percentage": shares,
        "storage": storage(outcome),
        "generation": outcome.generated.map(generation),
        "checkpoints": checkpoint_results::object(outcome, summary),
        "warnings": outcome.warnings.iter().chain(&report.cautions).collect::<Vec<_>>(),
        "next_step": report.next_step,
    });
    if let (Value::Object(object), Value::Object(found)) = (&mut object, found) {
        object.extend(found);
    }
    object
}

/// What was run, and how.
fn settings(outcome: &Outcome, report: &Report) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "workload": report.workload,
        "semantics": semantics(&outcome.plan),
        "data_loader": outcome.plan.reading.loader.as_str(),
        "read_model": outcome.plan.reading.model(),
        "reader_library": outcome.plan.reading.calls.map(|calls| calls.library),
        "reader_python": outcome.plan.reading.calls.and_then(|calls| calls.python()),
        "framework": framework(outcome),
        "data": outcome.data,
        "io_engine": io_engine(outcome),
        "odirect": outcome.plan.reading.direct,
        "queue_depth": outcome.plan.reading.queue_depth(),
        "read_type": read_type(&outcome.plan),
        "transfer_size": outcome.plan.reading.transfer_bytes,
        "sample_order": sample_order(&outcome.plan),
        "sharding": outcome.plan.train.map(|phase| sharding(&phase)),
        "dlio_version": outcome.plan.dlio_version(),
        "cache": outcome.cache.as_str(),
        "seed": outcome.seed,
        "accelerators": outcome.plan.ranks,
        "processes": outcome.geometry.processes(),
        "hosts": hosts(outcome),
        "quick": report.quick,
        "interrupted": outcome.interrupted,
        "comparable": !report.quick && !outcome.interrupted && report.altered.is_nothing(),
        "store_limit": report.altered.limit,
        "store_faults": report.altered.faults,
    })
}

/// What was done about the framework's own cost.
fn framework(outcome: &Outcome) -> Value {
    outcome.plan.framework.to_json(outcome.geometry.ranks_on(0), usable_cpus())
}

/// The word for how bytes are asked for.
fn io_engine(outcome: &Outcome) -> String {
    match outcome.capabilities.network {
        Some(protocol) => protocol.to_lowercase(),
        None => outcome.plan.reading.engine.as_str().to_owned(),
    }
}

/// The word for what readers keep between samples.
fn read_type(plan: &Plan) -> &'static str {
    match plan.reading.reading.kept_for {
        KeptFor::Epoch => "on_demand",
        KeptFor::Run => "memory",
    }
}

/// The machines and what ran on them.
fn hosts(outcome: &Outcome) -> Vec<Value> {
    let (geometry, nodes) = (&outcome.geometry, outcome.geometry.node_of_ranks());
    let host = |(node, host): (u32, &Host)| {
        let ranks = (0..).zip(&nodes).filter(|&(_, &of)| of == node).map(|(rank, _)| rank);
        json!({
            "name": host.name,
            "processes": geometry.processes_on(node).count(),
            "ranks": ranks.collect::<Vec<u32>>(),
            "cpus": host.cpus,
            "memory_bytes": host.memory_bytes,
        })
    };
    (0..).zip(&outcome.hosts).map(host).collect()
}

/// What was made and kept of the data set.
fn generation(made: Generated) -> Value {
    let seconds = made.wall_ns as f64 / 1e9;
    json!({
        "files": made.files,
        "bytes": made.bytes,
        "seconds": seconds,
        "kept_files": made.kept_files,
        "kept_bytes": made.kept_bytes,
        "requests": made.requests,
        "retries": made.retries,
        "MB_per_second": (seconds > 0.0).then(|| made.bytes as f64 / 1e6 / seconds),
    })
}

/// The word for whose rules were followed.
pub fn semantics(plan: &Plan) -> &'static str {
    match plan.semantics {
        Semantics::Feedline => "feedline",
        Semantics::Dlio => "dlio",
    }
}

/// How an epoch was dealt to ranks, and what that makes of the samples.
fn sharding(phase: &PhasePlan) -> Value {
    let tally = phase.tally();
    json!({
        "name": phase.sharding.as_str(),
        "drop_last": phase.dealing.last_batch == LastBatch::Drop,
        "sampler_drop_last": phase.dealing.remainder == Remainder::Cut,
        "samples": phase.given(),
        "samples_read": tally.read,
        "samples_read_twice": tally.repeated,
        "samples_left_out": tally.left_out,
        "left_out_by": phase.why_left_out(),
    })
}

/// The words for the order in which samples were read.
pub fn sample_order(plan: &Plan) -> String {
    let order = match plan.train.map(|phase| phase.shuffle) {
        Some(Shuffle::Samples) => "permuted",
        Some(Shuffle::Blocks { .. }) => "permuted inside the blocks of ranks",
        Some(Shuffle::Files) => "files permuted",
        Some(Shuffle::None) | None => "sequential",
    };
    match plan.reading.shuffle_buffer() {
        Some(size) => format!("{order}, shuffle buffer of {size}"),
        None => order.to_owned(),
    }
}

fn verdict(report: &Report) -> Value {
    let mut map = Map::new();
    map.insert("result".into(), report.verdict.as_str().into());
    map.insert("target_percentage".into(), (100.0 * report.target).into());
    match report.verdict {
        Verdict::Fed { au_percent, .. } => {
            map.insert("au_percentage".into(), au_percent.into());
        }
        Verdict::Starved { au_percent, by, share_percent, .. } => {
            map.insert("au_percentage".into(), au_percent.into());
            map.insert("starved_by".into(), by.as_str().into());
            map.insert("share_percentage".into(), share_percent.into());
        }
        Verdict::Unpaced | Verdict::TooShort | Verdict::NotTrained => {}
    }
    Value::Object(map)
}

fn split(split: &Split, factor: f64) -> Value {
    let part = |ns: u64| ns as f64 * factor;
    json!({
        "storage": part(split.storage_ns),
        "decode": part(split.decode_ns),
        "framework": part(split.framework_ns),
        "workers": part(split.worker_ns),
        "peers": part(split.peers_ns),
        "compute": part(split.compute_ns),
    })
}

/// Utilization and split of each epoch, all ranks together.
fn per_epoch(outcome: &Outcome) -> Vec<Value> {
    let count = outcome.ranks.iter().map(|rank| rank.epochs.len()).max().unwrap_or(0);
    let tally = |i: usize| {
        let mut all = StrictTally::default();
        let epochs = outcome.ranks.iter().filter_map(|rank| rank.epochs.get(i));
        epochs.for_each(|epoch| all.merge(&epoch.strict));
        all
    };
    (0..count).map(|i| tally_json("epoch", i as u64 + 1, &tally(i))).collect()
}

/// Utilization and split of each rank, all epochs together.
fn per_rank(outcome: &Outcome) -> Vec<Value> {
    let tally = |rank: &RankOutcome| {
        let mut all = StrictTally::default();
        rank.epochs.iter().for_each(|epoch| all.merge(&epoch.strict));
        all
    };
    let ranks = outcome.ranks.iter().enumerate();
    ranks.map(|(number, rank)| tally_json("rank", number as u64, &tally(rank))).collect()
}

fn tally_json(kind: &str, number: u64, tally: &StrictTally) -> Value {
    json!({
        kind: number,
        "au_strict_percentage": tally.au_percent(),
        "time_split_seconds": split(&tally.split, 1e-9),
    })
}

/// What all training readers asked of the store, by operation.
fn storage(outcome: &Outcome) -> Value {
    let total = outcome.meter();
    Op::ALL
        .into_iter()
        .filter(|&op| total.op(op).calls > 0)
        .map(|op| (op.name().to_owned(), operation(outcome, total.op(op))))
        .collect()
}

/// The sizes that calls asked for, those of most calls first.
const ASKED_SIZES_MAX: usize = 16;

fn asked(meter: &OpMeter) -> Value {
    let mut sizes: Vec<(u64, u64)> = meter.asked.iter().collect();
    sizes.sort_by_key(|&(bytes, calls)| (Reverse(calls), bytes));
    sizes.truncate(ASKED_SIZES_MAX);
    let size = |(bytes, calls): (u64, u64)| json!({"bytes": bytes, "calls": calls});
    meter.asked.quantile(0.0).map_or(Value::Null, |least| {
        json!({
            "min": least,
            "p50": meter.asked.quantile(0.5),
            "max": meter.asked.quantile(1.0),
            "sizes": sizes.into_iter().map(size).collect::<Vec<_>>(),
        })
    })
}

fn operation(outcome: &Outcome, meter: &OpMeter) -> Value {
    let quantile = |q| meter.latency_ns.value_at_quantile(q) as f64 / 1e3;
    json!({
        "calls": meter.calls,
        "calls_per_second": outcome.per_second(meter.calls),
        "errors": meter.errors,
        "bytes": meter.bytes,
        "requests": meter.requests,
        "requests_per_second": outcome.per_second(meter.requests),
        "retries": meter.retries,
        "asked_bytes": asked(meter),
        "busy_seconds": meter.busy_ns as f64 / 1e9,
        "latency_us": {
            "mean": meter.latency_ns.mean() / 1e3,
            "p50": quantile(0.5),
            "p90": quantile(0.9),
            "p99": quantile(0.99),
            "p99_9": quantile(0.999),
            "max": meter.latency_ns.max() as f64 / 1e3,
        },
    })
}
