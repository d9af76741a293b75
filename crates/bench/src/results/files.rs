//! DLIO's result files, with its keys, and Feedline's own object beside them.
//!
//! `summary.json`, `<rank>_output.json` and `<rank>_per_epoch_stats.json` carry exactly DLIO's keys;
//! everything new is under `feedline` in `summary.json`. A value that does not exist is `null`.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::observer::Level;
use crate::results::assessment::Assessment;
use crate::results::folder::{OutputFolder, SUMMARY_NAME};
use crate::results::host::Host;
use crate::results::outcome::{BlockOutcome, Direction, EpochOutcome, Outcome, RankOutcome};
use crate::results::step_log::{COLUMNS, Column, StepFile, StepList};
use crate::results::summary::Summary;
use crate::results::summary_file::{Expectation, SummaryFile};
use crate::run::journal::Journal;

const MIB: f64 = 1048576.0;

/// Writes all result files of a run; returns what is in `summary.json`.
pub(crate) fn write(
    folder: &OutputFolder,
    outcome: &Outcome,
    summary: &Summary,
    assessment: &Assessment,
) -> Result<SummaryFile> {
    let value = SummaryFile::new(outcome, summary, assessment);
    if outcome.ranks.is_empty() {
        return Ok(value); // As DLIO: a run that only generates leaves no files.
    }
    for (number, rank) in outcome.ranks.iter().enumerate() {
        let output = RankOutput { outcome, host: outcome.host_of(number), rank };
        folder.write(&format!("{number}_output.json"), |file| write_json(file, &output))?;
        let stats = per_epoch_stats(rank, outcome);
        folder.write(&format!("{number}_per_epoch_stats.json"), |file| write_json(file, &stats))?;
        folder.write(&format!("{number}_steps.csv"), |file| write_steps(file, rank))?;
    }
    folder.write(SUMMARY_NAME, |file| write_json(file, &value))?;
    Ok(value)
}

/// Ends the log the way DLIO does: where the results are, the `[METRIC]` block; then what Feedline
/// adds: the verdict and where the time went.
pub(crate) fn close_log(
    journal: &Journal,
    folder: &OutputFolder,
    outcome: &Outcome,
    summary: &Summary,
    assessment: &Assessment,
) {
    if outcome.ranks.is_empty() {
        return;
    }
    assessment.cautions.iter().for_each(|caution| journal.plain(Level::Warning, caution));
    journal.output(&format!("Saved outputs in {}", folder.path().display()));
    journal.plain(Level::Output, &metric_block(outcome, summary, assessment.target));
    journal.output("outputs saved in RANKID_output.json");
    if summary.train.is_none() {
        return;
    }
    let split = &summary.strict.split;
    let share = |ns: u64| 100.0 * ns as f64 / split.total_ns().max(1) as f64;
    journal.output(&format!(
        "Feedline: {}; compute {:.1} %, storage {:.1} %, decode {:.1} %, framework {:.1} %, \
         workers {:.1} %, peers {:.1} % of all step time",
        assessment.verdict.as_str(),
        share(split.compute_ns),
        share(split.storage_ns),
        share(split.decode_ns),
        share(split.framework_ns),
        share(split.worker_ns),
        share(split.peers_ns),
    ));
}

/// JSON as Python writes it with an indent of four.
fn write_json(file: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let format = PrettyFormatter::with_indent(b"    ");
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut *file, format))?;
    file.write_all(b"\n")
}

/// `<rank>_steps.csv`: every step with its split, in seconds.
fn write_steps(file: &mut dyn Write, rank: &RankOutcome) -> io::Result<()> {
    writeln!(file, "epoch,phase,step,{}", COLUMNS.join(","))?;
    for epoch in &rank.epochs {
        for (phase, block) in phases(epoch) {
            let mut step = 0;
            rank.steps.each(block.steps.clone(), |record| {
                step += 1;
                write!(file, "{},{phase},{step}", epoch.number)?;
                record.iter().try_for_each(|seconds| write!(file, ",{seconds:.9}"))?;
                writeln!(file)
            })?;
        }
    }
    Ok(())
}

/// Blocks and evaluation of an epoch, with the keys that DLIO gives them.
fn phases(epoch: &EpochOutcome) -> impl Iterator<Item = (String, &BlockOutcome)> {
    let blocks = epoch.blocks.iter().map(|block| (format!("block{}", block.number), block));
    blocks.chain(epoch.eval.iter().map(|eval| ("eval".to_owned(), eval)))
}

fn text_map(entries: &[(String, String)]) -> Value {
    entries.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect()
}

/// `<rank>_per_epoch_stats.json`.
fn per_epoch_stats(rank: &RankOutcome, outcome: &Outcome) -> Value {
    let mut file = Map::new();
    for (number, epoch) in rank.epochs.iter().enumerate() {
        let mut map = Map::new();
        map.insert("start".into(), epoch.start.text.as_str().into());
        for block in &epoch.blocks {
            map.insert(format!("block{}", block.number), span(block));
        }
        for (place, one) in epoch.checkpoints.iter().enumerate() {
            let seconds = one.end.seconds_since(&one.start);
            let of_rank = |rank: &RankOutcome| {
                rank.epochs.get(number)?.checkpoints.get(place).map(|one| one.bytes)
            };
            let bytes: u64 = outcome.ranks.iter().filter_map(of_rank).sum();
            let rate = bytes as f64 / f64::from(1 << 30) / seconds;
            let name = match one.direction {
                Direction::Save => format!("save_ckpt{}", one.number),
                Direction::Load => format!("load_ckpt{}", one.number),
            };
            map.insert(
                name,
                json!({"start": one.start.text, "end": one.end.text, "duration": seconds, "throughput": rate}),
            );
        }
        let seconds = epoch.train_end.seconds_since(&epoch.start);
        map.insert("end".into(), epoch.end.text.as_str().into());
        map.insert("duration".into(), format!("{seconds:.2}").into());
        if let Some(eval) = &epoch.eval {
            map.insert("eval".into(), span(eval));
        }
        file.insert(epoch.number.to_string(), Value::Object(map));
    }
    Value::Object(file)
}

fn span(block: &BlockOutcome) -> Value {
    let seconds = block.end.seconds_since(&block.start);
    json!({
        "start": block.start.text,
        "end": block.end.text,
        "duration": format!("{seconds:.2}"),
    })
}

/// `<rank>_output.json`, whose lists are read from the step log as they are written.
struct RankOutput<'a> {
    outcome: &'a Outcome,
    host: &'a Host,
    rank: &'a RankOutcome,
}

impl Serialize for RankOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (plan, host) = (&self.outcome.plan, self.host);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("host_memory_GB", &host.memory_gib())?;
        map.serialize_entry("host_cpu_count", &host.cpus)?;
        map.serialize_entry("host_processor_name", "")?;
        let cached = plan.train_bytes() <= host.memory_bytes as f64;
        map.serialize_entry("potential_caching", &i32::from(cached))?;
        map.serialize_entry("host_cpuinfo", &text_map(&host.cpuinfo))?;
        map.serialize_entry("host_meminfo", &text_map(&host.meminfo))?;
        for epoch in &self.rank.epochs {
            let entry = EpochOutput { outcome: self.outcome, steps: &self.rank.steps, epoch };
            map.serialize_entry(&epoch.number.to_string(), &entry)?;
        }
        map.serialize_entry("hostname", &host.name)?;
        map.end()
    }
}

struct EpochOutput<'a> {
    outcome: &'a Outcome,
    steps: &'a StepFile,
    epoch: &'a EpochOutcome,
}

impl EpochOutput<'_> {
    fn numbers(&self, value: impl Fn(&BlockOutcome) -> f64) -> Value {
        phases(self.epoch).map(|(key, block)| (key, json!(value(block)))).collect()
    }
}

impl Serialize for EpochOutput<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let columns =
            [("load", Column::Load), ("proc", Column::Proc), ("compute", Column::Compute)];
        for (name, column) in columns {
            map.serialize_entry(name, &ListMap { epoch: self, column })?;
        }
        let plan = &self.outcome.plan;
        let batch = plan.train.as_ref().map_or(0, |phase| phase.dealing.batch);
        let eval_batch = plan.eval.as_ref().map_or(0, |phase| phase.dealing.batch);
        let throughput = phases(self.epoch)
            .map(|(key, block)| {
                let (tally, wall) = (&block.tally, block.wall_ns());
                let rate = match key.as_str() {
                    "eval" => Some(tally.eval_throughput(wall, eval_batch)),
                    _ => plan.semantics.block_throughput(tally, wall, batch),
                };
                (key, json!(rate))
            })
            .collect::<Value>();
        map.serialize_entry("throughput", &throughput)?;
        map.serialize_entry("au", &self.numbers(|block| block.tally.au_percent(block.wall_ns())))?;
        map.serialize_entry("host_meminfo", &text_map(&self.epoch.meminfo))?;
        map.serialize_entry("end", &self.epoch.end.text)?;
        map.end()
    }
}

/// One column of all blocks of an epoch.
struct ListMap<'a> {
    epoch: &'a EpochOutput<'a>,
    column: Column,
}

impl Serialize for ListMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, block) in phases(self.epoch.epoch) {
            let (file, steps) = (self.epoch.steps, block.steps.clone());
            map.serialize_entry(&key, &StepList { file, steps, column: self.column })?;
        }
        map.end()
    }
}

/// The block of `[METRIC]` lines that DLIO prints at the end.
fn metric_block(outcome: &Outcome, summary: &Summary, target: f64) -> String {
    let rule = "=".repeat(58);
    let mib = outcome.plan.nominal_sample_bytes / MIB;
    let mut lines = vec![
        "Averaged metric over all steps/epochs".to_owned(),
        format!("[METRIC] {rule}"),
        format!("[METRIC] Number of Simulated Accelerators: {} ", outcome.plan.ranks),
    ];
    if let Some(train) = &summary.train {
        let (au, rate) = (train.au(), train.samples_per_s());
        lines.push(metric_line::<4>("Training Accelerator Utilization [AU] (%)", au, 1.0));
        lines.push(metric_line::<4>("Training Throughput (samples/second)", rate, 1.0));
        lines.push(metric_line::<4>("Training I/O Throughput (MB/second)", rate, mib));
        lines.push(format!(
            "[METRIC] train_au_meet_expectation: {}",
            Expectation::new(au, target).as_str()
        ));
    }
    for (verb, all) in [("save", &summary.saves), ("load", &summary.loads)] {
        let Some(all) = all else { continue };
        let (took, rate) = (Some(all.seconds()), Some(all.gib_per_s()));
        lines.push(metric_line::<4>(&format!("Checkpoint {verb} duration (seconds)"), took, 1.0));
        let label = format!("Checkpoint {verb} I/O Throughput (GB/second)");
        lines.push(metric_line::<4>(&label, rate, 1.0));
    }
    if let Some(eval) = &summary.eval {
        let (au, rate) = (eval.au(), eval.samples_per_s());
        lines.push(metric_line::<4>("Eval Accelerator Utilization [AU] (%)", au, 1.0));
        lines.push(metric_line::<6>("Eval Throughput (samples/second)", rate, 1.0));
        lines.push(metric_line::<6>("Eval Throughput (MB/second)", rate, mib));
        lines.push(format!(
            "[METRIC] eval_au_meet_expectation: {}",
            Expectation::new(au, target).as_str()
        ));
    }
    lines.push(format!("[METRIC] {rule}"));
    lines.join("\n")
}

/// Mean and standard deviation with `DIGITS` decimals.
fn metric_line<const DIGITS: usize>(label: &str, value: Option<(f64, f64)>, factor: f64) -> String {
    let text = value.map_or("n/a".to_owned(), |(mean, stdev)| {
        format!("{:.DIGITS$} ({:.DIGITS$})", mean * factor, stdev * factor)
    });
    format!("[METRIC] {label}: {text}")
}
