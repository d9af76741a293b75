//! `feedline calibrate`: what Python's readers and torch's DataLoader cost on this machine.

mod python;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use feedline_bench::{
    BatchPoint, CALIBRATION_SCHEMA, Calibration, DataLoaderFigures, Machine, ReaderFigures,
    SamplePoint, Specimen, StartFigures,
};
use feedline_numbers::units;
use feedline_workload::{FORMATS, SampleFormat};
use serde_json::json;

use crate::args::CalibrateArgs;
use crate::{analyze, failure, show, signals};
use python::{Interpreter, Versions};

/// Bytes of the files that a reader goes through, and how many there are at least and at most. More
/// than caches hold, as data sets are.
const FILES_BYTES: u64 = 256 << 20;
const FILES: (u64, u64) = (BATCH, 512);
/// A sample is one row, and pandas takes 20 us for each of its columns.
const CSV_BYTES_MAX: u64 = 128 << 10;
/// Samples of a batch, as in the script.
const BATCH: u64 = 4;
/// Where a sample takes longer than this in a loop, a loader changes little about it.
const SLOW_NS: f64 = 50e6;
/// Workers whose start is measured together.
const STARTED: u32 = 2;
/// Where torch's workers put batches.
const SHARED_MEMORY: &str = "/dev/shm";

pub(crate) fn main(args: &CalibrateArgs) -> anyhow::Result<u8> {
    let formats = formats(&args.formats)?;
    if !(args.seconds > 0.0 && args.seconds <= 60.0) {
        let message = format!("--seconds {}: expected a number above 0, up to 60", args.seconds);
        return Err(failure::hinted(message, "--seconds 0.2"));
    }
    let Some(out) = feedline_engine::calibration_path(args.out.as_deref()) else {
        return Err(failure::hinted(
            "no place to write the calibration",
            "choose one with --out FILE",
        ));
    };
    let folder = tempfile::Builder::new().prefix("feedline-calibrate-").tempdir();
    let folder = folder.context("cannot create a temporary folder")?;
    let mut python = Interpreter::start(args.python.as_deref(), folder.path())?;
    let versions = python.versions()?;
    let stop = signals::stop()?;
    let has_torch = versions.packages.contains_key("torch");
    let mut bench =
        Bench { args, python: &mut python, folder: folder.path(), has_torch, stop: &stop };
    let (readers, left_out) = bench.readers(&formats, &versions)?;
    if !has_torch {
        failure::say("skipped: PyTorch's DataLoader, torch is missing (pip install torch)");
    }
    let data_loader = has_torch.then(|| bench.data_loader()).transpose()?;
    if stop.load(Ordering::Relaxed) {
        return Ok(failure::INTERRUPTED);
    }
    let found = Calibration {
        feedline_calibration: CALIBRATION_SCHEMA,
        feedline_version: feedline_engine::VERSION.to_owned(),
        date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        machine: Machine::this(),
        batch_samples: NonZeroU64::new(BATCH).expect("a constant"),
        python: versions.into(),
        readers,
        data_loader,
        left_out,
    };
    analyze::put(&out, (serde_json::to_string_pretty(&found)? + "\n").as_bytes())?;
    show::print(&feedline_report::calibration::calibration(
        &found,
        &out.display().to_string(),
        show::style(),
    ))
}

/// The formats that are named, or all that have readers.
fn formats(named: &[String]) -> anyhow::Result<Vec<&'static SampleFormat>> {
    let known = || FORMATS.iter().copied().filter(|format| format.framework.is_some());
    if named.is_empty() {
        return Ok(known().collect());
    }
    let format = |name: &String| {
        known().find(|format| format.name == name).ok_or_else(|| {
            let known: Vec<_> = known().map(|format| format.name).collect();
            let hint = format!("formats: {}", known.join(", "));
            failure::hinted(format!("--formats {name}: no reader to measure"), hint)
        })
    };
    named.iter().map(format).collect()
}

/// What is measured, and with what.
struct Bench<'a> {
    args: &'a CalibrateArgs,
    python: &'a mut Interpreter,
    folder: &'a Path,
    has_torch: bool,
    stop: &'a Arc<AtomicBool>,
}

type Readers = BTreeMap<String, ReaderFigures>;
type LeftOut = BTreeMap<String, String>;

impl Bench<'_> {
    fn readers(
        &mut self,
        formats: &[&'static SampleFormat],
        versions: &Versions,
    ) -> anyhow::Result<(Readers, LeftOut)> {
        let (mut readers, mut left_out) = (Readers::new(), LeftOut::new());
        for &format in formats {
            let Some(reader) = format.framework else { continue };
            let (_, package) = reader.library();
            let measured = match versions.packages.contains_key(package) {
                true => self.reader(format)?,
                false => Err(format!("{package} is missing (pip install {package})")),
            };
            match measured {
                Ok(figures) => drop(readers.insert(format.to_string(), figures)),
                Err(why) => {
                    failure::say(&format!("skipped: {format}, {why}"));
                    left_out.insert(format.to_string(), why);
                }
            }
        }
        Ok((readers, left_out))
    }

    /// The figures of a format, or why the real reader cannot read it.
    fn reader(
        &mut self,
        format: &'static SampleFormat,
    ) -> anyhow::Result<Result<ReaderFigures, String>> {
        let mut figures = ReaderFigures { call: String::new(), points: Vec::new() };
        for &bytes in &self.args.sizes {
            if self.stop.load(Ordering::Relaxed) || (format.name == "csv" && bytes > CSV_BYTES_MAX)
            {
                continue;
            }
            let folder = self.folder.join(format!("{format}-{bytes}"));
            let files = (FILES_BYTES / bytes).clamp(FILES.0, FILES.1);
            let specimen = Specimen::make(&folder, format, bytes, files, self.stop)?;
            let measured = self.sample(format, &specimen);
            let _ = std::fs::remove_dir_all(&folder);
            match measured? {
                Ok((call, point)) => {
                    figures.call = call;
                    figures.points.push(point);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(figures))
    }

    /// What was called for a sample of `specimen`, and what that took.
    fn sample(
        &mut self,
        format: &'static SampleFormat,
        specimen: &Specimen,
    ) -> anyhow::Result<Result<(String, SamplePoint), String>> {
        let replay = specimen.replay(self.args.seconds, self.stop)?;
        let mut asked = json!({
            "measure": "reader",
            "format": format.name,
            "paths": specimen.paths(),
            "seconds": self.args.seconds,
        });
        let read = match self.python.ask(&asked)? {
            Ok(read) => read,
            Err(why) => return Ok(Err(why)),
        };
        let (call, cpu_ns) = (read.text("call")?, read.number("cpu_ns")?);
        let cpu_ns = cpu_ns / specimen.samples_per_file() as f64;
        let (bytes, replay_cpu_ns) = (replay.sample_bytes, replay.cpu_ns);
        failure::say(&format!(
            "{format}, {}: {} per sample, Feedline's reader {}",
            units::bytes(bytes as f64),
            units::duration(cpu_ns / 1e9),
            units::duration(replay_cpu_ns / 1e9)
        ));
        let mut point = SamplePoint { bytes, cpu_ns, replay_cpu_ns, in_loader: Vec::new() };
        if self.has_torch && !format.is_streamed && cpu_ns <= SLOW_NS {
            asked["measure"] = json!("batch");
            for workers in self.worker_counts(bytes * BATCH) {
                asked["workers"] = json!(workers);
                point.in_loader.push(self.batch(&asked, workers)?);
            }
        }
        Ok(Ok((call, point)))
    }

    /// The worker counts to measure: zero, and those whose outstanding batches fit in shared memory.
    fn worker_counts(&self, batch_bytes: u64) -> Vec<u32> {
        if self.stop.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let fitting = self.args.workers.iter().filter(|&&workers| fits(batch_bytes, workers));
        std::iter::once(0).chain(fitting.copied()).collect()
    }

    fn data_loader(&mut self) -> anyhow::Result<DataLoaderFigures> {
        failure::say("PyTorch's DataLoader, with samples in memory");
        let mut figures = DataLoaderFigures { hand_over: Vec::new(), start: BTreeMap::new() };
        for bytes in self.args.sizes.iter().map(|bytes| bytes * BATCH) {
            for workers in self.worker_counts(bytes) {
                let asked = json!({
                    "measure": "hand_over",
                    "bytes": bytes,
                    "workers": workers,
                    "seconds": self.args.seconds,
                });
                figures.hand_over.push(self.batch(&asked, workers)?);
            }
        }
        for context in ["fork", "spawn"] {
            let asked = json!({"measure": "start", "context": context, "workers": STARTED});
            let found = self.torch(&asked)?;
            let worker_cpu_ns = found.number("worker_cpu_ns")?;
            let consumer_cpu_ns = found.number("consumer_cpu_ns")?;
            failure::say(&format!(
                "starting a worker with {context}: {} in the worker, {} in the consumer",
                units::duration(worker_cpu_ns / 1e9),
                units::duration(consumer_cpu_ns / 1e9)
            ));
            let start = StartFigures { worker_cpu_ns, consumer_cpu_ns };
            figures.start.insert(context.to_owned(), start);
        }
        Ok(figures)
    }

    /// The CPU time of one batch with `workers` workers.
    fn batch(&mut self, asked: &serde_json::Value, workers: u32) -> anyhow::Result<BatchPoint> {
        let found = self.torch(asked)?;
        let bytes = found.number("bytes")? as u64;
        let worker_cpu_ns = found.number("worker_cpu_ns")?;
        let consumer_cpu_ns = found.number("consumer_cpu_ns")?;
        failure::say(&format!(
            "  batch of {} with {}: {} in the workers, {} in the consumer",
            units::bytes(bytes as f64),
            units::counted(u64::from(workers), "worker"),
            units::duration(worker_cpu_ns / 1e9),
            units::duration(consumer_cpu_ns / 1e9)
        ));
        Ok(BatchPoint { workers, bytes, worker_cpu_ns, consumer_cpu_ns })
    }

    /// Asks about torch; any failure of it is an error.
    fn torch(&mut self, asked: &serde_json::Value) -> anyhow::Result<python::Answer> {
        self.python.ask(asked)?.map_err(|why| {
            failure::hinted(
                format!("cannot measure PyTorch's DataLoader: {why}"),
                "check that it works in this Python, or choose another with --python PATH",
            )
        })
    }
}

/// Whether the batches that workers have outstanding fit where torch puts them.
fn fits(bytes: u64, workers: u32) -> bool {
    let needed = bytes.saturating_mul(2 * u64::from(workers) + 2);
    let free = rustix::fs::statvfs(SHARED_MEMORY).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    needed <= free / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_named_or_all_that_can_be_measured() {
        assert_eq!(formats(&[]).unwrap().len(), FORMATS.len() - 1);
        let named = ["npz".to_owned(), "png".to_owned()];
        assert_eq!(
            formats(&named).unwrap(),
            ["npz", "png"].map(|name| SampleFormat::find(name).unwrap())
        );
        let error = formats(&["synthetic".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "--formats synthetic: no reader to measure");
    }
}
