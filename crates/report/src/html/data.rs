//! What a page holds of an analysis. Every list is bounded; a list that was cut has its full length beside it.

use feedline_analyze::analysis::{
    Allocation, Analysis, Answer, CauseTime, Checkpoints, Coverage, DataVolume, Distribution,
    Epoch, FileUse, Finding, Function, Health, LayerTime, Prediction, Problem, Rank, StallVerdict,
    Straggler, Stragglers, TraceFacts, WhatIf,
};
use feedline_analyze::{StackLayer, StallCause};
use serde_json::{Value, json};

use super::packed::short;
use super::steps::{chosen, columns, sparse, us, waterfall};
use super::timeline::{heat_map, timeline};

const MOST_FINDINGS: usize = 100;
const MOST_OBJECTS: usize = 50;
const MOST_FUNCTIONS: usize = 500;
const MOST_FILES: usize = 1_000;
const MOST_FOLDERS: usize = 500;
const MOST_RANKS: usize = 2_048;
const MOST_EPOCHS: usize = 1_000;
const MOST_STRAGGLERS: usize = 512;
const MOST_TRANSFERS: usize = 1_000;
const MOST_PROBLEMS: usize = 100;
const MOST_PLACES: usize = 20;
const MOST_NAMES: usize = 100;
/// Longer texts of a trace lose their middle.
const MOST_CHARS: usize = 300;

/// The page's title.
pub(super) fn title(analysis: &Analysis) -> String {
    match analysis.trace.inputs.first() {
        Some(input) => format!("{} - Feedline analysis", clipped(input)),
        None => "Feedline analysis".to_owned(),
    }
}

/// What the page says before its scripts run, or without them.
pub(super) fn headline(analysis: &Analysis) -> &str {
    match analysis.health.coverage {
        Coverage::CallsOnly => analysis.health.coverage.sentence(),
        _ => &analysis.verdict.text,
    }
}

/// Everything that the scripts draw.
pub(super) fn embedded(analysis: &Analysis, most_steps: usize) -> Value {
    let claims_stalls = analysis.health.coverage != Coverage::CallsOnly;
    let recorded: u64 = analysis.epochs.iter().map(|epoch| epoch.steps).sum();
    let all_steps = recorded.max(analysis.steps.len() as u64);
    let (steps, worst) = chosen(&analysis.steps, most_steps);
    let ranks: Vec<u32> = analysis.ranks.iter().map(|rank| rank.rank).collect();
    let mut page = json!({
        "causes": StallCause::ALL.map(StallCause::name),
        "layer_names": StackLayer::ALL.map(StackLayer::name),
        "trace": trace(&analysis.trace),
        "health": health(&analysis.health),
        "allocation": allocation(&analysis.allocation),
        "layers": analysis.layers.iter().map(layer).collect::<Vec<_>>(),
        "overlaps": analysis.overlaps,
        "functions": list(&analysis.functions, MOST_FUNCTIONS, function),
        "data": data_set(&analysis.data),
        "access": analysis.access,
        "files": list(&analysis.files, MOST_FILES, file),
        "folders": list(&analysis.folders, MOST_FOLDERS, file),
        "timeline": timeline(&analysis.timeline),
        "heat_map": heat_map(&analysis.timeline, &ranks),
        "ranks": list(&analysis.ranks, MOST_RANKS, rank),
        "findings": list(&analysis.findings, MOST_FINDINGS, finding),
        "checkpoints": checkpoints(&analysis.checkpoints),
    });
    if claims_stalls {
        page["verdict"] = verdict(&analysis.verdict);
        page["stall"] = analysis.stall.iter().map(cause_time).collect();
        page["what_if"] = what_if(&analysis.what_if);
        page["epochs"] = list(&analysis.epochs, MOST_EPOCHS, epoch);
        page["steps"] = columns(&steps, worst, all_steps);
        page["waterfall"] = waterfall(&analysis.steps);
        page["stragglers"] = stragglers(&analysis.stragglers);
    }
    page
}

/// At most `most` of a list, and how long it is in all.
fn list<T>(all: &[T], most: usize, one: impl Fn(&T) -> Value) -> Value {
    json!({ "all": all.len(), "rows": all.iter().take(most).map(one).collect::<Vec<_>>() })
}

/// Text without its middle, if it is too long.
pub(super) fn clipped(text: &str) -> String {
    let chars = text.chars().count();
    if chars <= MOST_CHARS {
        return text.to_owned();
    }
    let half = MOST_CHARS / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(chars - half).collect();
    format!("{first}…{last}")
}

fn clipped_list(texts: &[String], most: usize) -> Vec<String> {
    texts.iter().take(most).map(|text| clipped(text)).collect()
}

/// An object with the named fields of a value; a key with an expression holds that instead.
macro_rules! object {
    (@value $of:ident $key:ident) => { json!($of.$key) };
    (@value $of:ident $key:ident $value:expr) => { json!($value) };
    ($of:ident => $($key:ident $(: $value:expr)?),* $(,)?) => {
        Value::Object(serde_json::Map::from_iter([
            $((stringify!($key).to_owned(), object!(@value $of $key $($value)?)),)*
        ]))
    };
}

fn trace(trace: &TraceFacts) -> Value {
    object! { trace =>
        inputs: clipped_list(&trace.inputs, MOST_NAMES),
        all_inputs: trace.inputs.len(),
        source, events, start_ms: trace.start_ns / 1_000_000, run_ns,
    }
}

fn health(health: &Health) -> Value {
    let problem = |problem: &Problem| {
        object! { problem =>
            code, count, text: clipped(&problem.text),
            places: clipped_list(&problem.places, MOST_PLACES), limits_claims,
        }
    };
    object! { health =>
        coverage,
        sentence: health.coverage.sentence(),
        problems: list(&health.problems, MOST_PROBLEMS, problem),
    }
}

fn allocation(who: &Allocation) -> Value {
    object! { who =>
        hosts: clipped_list(&who.hosts, MOST_NAMES), all_hosts: who.hosts.len(),
        ranks, processes, threads, compute_threads, io_threads,
    }
}

fn verdict(verdict: &StallVerdict) -> Value {
    let answer = match verdict.answer {
        Answer::NotInputBound => "Not input-bound",
        Answer::ModeratelyInputBound => "Moderately input-bound",
        Answer::InputBound => "Input-bound",
        Answer::TooFewSteps => "Too few steps to judge",
        Answer::NoSteps => "No steps in the trace",
    };
    object! { verdict =>
        code: verdict.answer, answer: answer, text, steps, step_ns, stall_ns,
        stall_share: short(verdict.stall_share),
        interval: verdict.stall_share_interval.map(|interval| interval.map(short)),
        stalled_steps_share: short(verdict.stalled_steps_share),
        stall_p95_ns,
        confidence: verdict.confidence as u8,
        au_percent: verdict.au_percent.map(short),
        samples_per_second: verdict.samples_per_second.map(short),
        read_bytes_per_second: verdict.read_bytes_per_second.map(short),
    }
}

fn cause_time(time: &CauseTime) -> Value {
    object! { time => cause, ns, share: short(time.share) }
}

fn finding(finding: &Finding) -> Value {
    let clipped_row = |row: &[String; 2]| row.each_ref().map(|text| clipped(text));
    object! { finding =>
        code, title, explains_ns,
        severity: short(finding.severity),
        confidence: finding.confidence as u8,
        evidence: finding.evidence.iter().take(MOST_NAMES).map(clipped_row).collect::<Vec<_>>(),
        objects: clipped_list(&finding.objects, MOST_OBJECTS),
        all_objects: finding.objects.len(),
        sql, actions, threshold,
    }
}

fn what_if(what_if: &WhatIf) -> Value {
    let case = |case: &Prediction| {
        object! { case =>
            change, step_ns, interval_ns: case.step_interval_ns, stall_share: short(case.stall_share),
        }
    };
    object! { what_if =>
        refused, workers, outstanding, observed_step_ns, modelled_step_ns,
        cases: what_if.cases.iter().take(MOST_NAMES).map(case).collect::<Vec<_>>(),
    }
}

fn layer(time: &LayerTime) -> Value {
    object! { time =>
        layer, events, bytes, mean_ns, least_ns, most_ns, self_ns, summed_ns,
        exposed_ns: time.exposed_mean_ns,
    }
}

/// In the order of the page's columns: least, 5 %, 25 %, 50 %, mean, 75 %, 95 %, 99 %, largest.
fn distribution(of: &Distribution) -> Value {
    let mean = of.mean.round();
    json!([of.min, of.p5, of.p25, of.p50, mean, of.p75, of.p95, of.p99, of.max])
}

fn function(function: &Function) -> Value {
    object! { function =>
        layer, category: clipped(&function.category), name: clipped(&function.name),
        count, errors, total_ns, self_ns, bytes, rate: function.bytes_per_second.map(short),
        latency: distribution(&function.latency),
        size: function.size.as_ref().map(distribution),
    }
}

fn data_set(data: &DataVolume) -> Value {
    object! { data =>
        files, files_read, files_written, calls, errors, bytes_read, bytes_written, extent_read,
        reread: data.reread_factor.map(short),
        opens_per_file: data.opens_per_file.map(short),
        errors_by_number: data.errors_by_number.iter().take(MOST_NAMES).collect::<Vec<_>>(),
        read_sizes: data.read_sizes.counts,
        write_sizes: data.write_sizes.counts,
        read_latencies: data.read_latencies.counts,
        read_size_by_latency,
    }
}

fn file(file: &FileUse) -> Value {
    object! { file =>
        path: clipped(&file.path), files, opens, reads, writes, others, bytes_read, bytes_written,
        extent: file.extent_read, reread: file.reread_factor.map(short), ns, metadata_ns, ranks,
        errors,
    }
}

fn rank(rank: &Rank) -> Value {
    object! { rank =>
        rank, title: clipped(&rank.title), host: clipped(&rank.host), workers, steps,
        step_us: us(rank.step_ns), stall_us: us(rank.stall_ns), parts: sparse(&rank.parts_ns),
        compute_us: us(rank.compute_ns), communication_us: us(rank.communication_ns),
        io_us: us(rank.io_ns), bytes_read, bytes_written, calls, samples,
        busy: short(rank.workers_busy_share), unseen_us: us(rank.unseen_ns),
    }
}

fn epoch(epoch: &Epoch) -> Value {
    object! { epoch =>
        phase, epoch, start_us: us(epoch.start_ns), duration_us: us(epoch.duration_ns), steps,
        step_us: us(epoch.step_ns), stall_us: us(epoch.stall_ns), parts: sparse(&epoch.parts_ns),
        compute_us: us(epoch.compute_ns), first_batch_us: us(epoch.first_batch_ns),
        au: epoch.au_percent.map(short), excluded: epoch.excluded_steps,
        samples_per_second: epoch.samples_per_second.map(short), bytes_read, samples,
    }
}

fn stragglers(all: &Stragglers) -> Value {
    let straggler = |one: &Straggler| {
        object! { one =>
            rank, host: clipped(&one.host), slowest_steps, slowest_share: short(one.slowest_share),
            lost_ns, because,
        }
    };
    object! { all => lost_ns, median_ns, ranks: list(&all.ranks, MOST_STRAGGLERS, straggler) }
}

fn checkpoints(all: &Checkpoints) -> Value {
    object! { all =>
        stall_ns, stall_share: short(all.stall_share), interval_ns,
        transfers: list(&all.transfers, MOST_TRANSFERS, |one| json!(one)),
    }
}
