//! Small data sets that a calibration reads with Feedline's own reader and with the real one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_clock::Clock;
use feedline_dataset::{DataSet, EpochOrder, FileNames as _, Listing, SampleSpace, Shuffle};
use feedline_loader::{
    BatchAssignment, Dealing, EpochShare, LastBatch, Remainder, Sharding, TorchConfig,
};
use feedline_store::{Memory, Mode, Posix, Store};
use feedline_workload::{DataLoader, IoEngine, SampleFormat, Workload};

use crate::error::Result;
use crate::plan::reading::LoaderPlan;
use crate::plan::supported;
use crate::plan::{Plan, Semantics};
use crate::results::folder::{Existing, OutputFolder};
use crate::run::Run;

/// Rounds of a measurement, of which the median counts; the script does the same.
const ROUNDS: usize = 5;

/// Samples of a file that is read from front to back, if they are not too large together.
const STREAMED_SAMPLES: u64 = 16;
const STREAMED_BYTES: u64 = 64 << 20;

/// Files of one format and size. They hold one sample each, or several if their readers go through
/// them from front to back.
pub struct Specimen {
    workload: Workload,
    plan: Plan,
    store: Arc<dyn Store>,
    folder: PathBuf,
}

/// What Feedline's own reader found and took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// Bytes of a sample.
    pub sample_bytes: u64,
    /// CPU time per sample.
    pub cpu_ns: f64,
}

impl Specimen {
    /// Makes `files` files in `folder`, which a run's log shares for a moment.
    pub fn make(
        folder: &Path,
        format: &'static SampleFormat,
        sample_bytes: u64,
        files: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self> {
        let mut workload = Workload::default();
        workload.dataset.format = format;
        workload.dataset.num_files_train = files;
        workload.dataset.record_length_bytes = sample_bytes as f64;
        if format.is_streamed {
            let fit = (STREAMED_BYTES / sample_bytes.max(1)).clamp(1, STREAMED_SAMPLES);
            workload.dataset.num_samples_per_file = fit;
        }
        workload.workflow.generate_data = true;
        workload.workflow.train = false;
        workload.reader.data_loader = DataLoader::Pytorch;
        let plan = Plan::new(&workload, 1, Semantics::Feedline)?;
        let mode = match plan.reading.engine {
            IoEngine::Mmap => Mode::Mapped,
            _ => Mode::Buffered,
        };
        let store: Arc<dyn Store> = Arc::new(Posix::new(folder.join("data"), mode));
        let checkpoints = Arc::new(Memory::new(Clock::real()));
        let run = Run {
            name: "calibration".to_owned(),
            stop: Arc::clone(stop),
            listing: Listing::Trust,
            ..Run::new(workload.clone(), plan.clone(), Arc::clone(&store), checkpoints)
        };
        let log = OutputFolder::claim(&folder.join("log"), Existing::Replace)?;
        run.prepare()?.execute(&log)?;
        Ok(Self { workload, plan, store, folder: folder.join("data") })
    }

    /// Its files.
    pub fn paths(&self) -> Vec<PathBuf> {
        let path = |number| {
            let mut key = String::new();
            self.plan.train_files.write_key(number, &mut key);
            self.folder.join(key)
        };
        (0..self.plan.train_files.total).map(path).collect()
    }

    /// Samples in each.
    pub fn samples_per_file(&self) -> u64 {
        self.plan.samples_per_file
    }

    /// Reads the files over and over as a run with `reader.read_model: framework` does, in this
    /// thread, in rounds of at least `seconds` of CPU time.
    pub fn replay(&self, seconds: f64, stop: &Arc<AtomicBool>) -> Result<Replay> {
        let clock = Clock::real();
        let mut reading = self.plan.reading.reading;
        if self.workload.dataset.format.is_streamed {
            // The file that a reader is at.
            reading.kept_files = reading.kept_files.max(1);
        }
        let data = DataSet {
            store: Arc::clone(&self.store),
            names: Arc::new(self.plan.train_files.clone()),
            format: supported::read_format(&self.workload, &self.plan.reading)?,
            reading,
            stop: Arc::clone(stop),
            look: None,
        };
        let config =
            TorchConfig { workers: 0, prefetch: 0, deal: BatchAssignment::InTurn, shuffle: None };
        let mut loader = LoaderPlan::Torch(config).build(&clock, &data, |_| None);
        let space = SampleSpace {
            files: self.plan.train_files.total,
            per_file: self.plan.samples_per_file,
        };
        let samples = space.len();
        let order = Arc::new(EpochOrder::new(space, Shuffle::None, 0));
        let dealing = Dealing {
            index: space.into(),
            ranks: 1,
            batch: 1,
            sharding: Sharding::Strided,
            remainder: Remainder::Pad,
            last_batch: LastBatch::Keep,
        };
        let share = EpochShare { order, dealing, rank: 0, batches: samples, epoch: 1, seed: 0 };
        let mut pass = || {
            let sizes = loader.epoch(share.clone()).map(|batch| Ok(batch?.sample_bytes));
            sizes.sum::<Result<u64>>()
        };
        let sample_bytes = pass()? / samples;
        let mut means = [0.0; ROUNDS];
        for mean in &mut means {
            let (mark, mut passes) = (clock.cpu_mark(), 0);
            while passes == 0 || mark.elapsed_ns() as f64 / 1e9 < seconds {
                pass()?;
                passes += 1;
            }
            *mean = mark.elapsed_ns() as f64 / (passes * samples) as f64;
        }
        means.sort_by(f64::total_cmp);
        Ok(Replay { sample_bytes, cpu_ns: means[ROUNDS / 2] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_reader_goes_through_the_files_that_the_real_one_gets() {
        let (folder, stop) = (tempfile::tempdir().unwrap(), Arc::default());
        for format in [
            SampleFormat::find("npz").unwrap(),
            SampleFormat::find("tfrecord").unwrap(),
            SampleFormat::find("indexed_binary").unwrap(),
        ] {
            let folder = folder.path().join(format.name);
            let specimen = Specimen::make(&folder, format, 4096, 3, &stop).unwrap();
            let paths = specimen.paths();
            assert_eq!(paths.len(), 3);
            assert!(paths.iter().all(|path| path.is_file()), "{paths:?}");
            let found = specimen.replay(0.0, &stop).unwrap();
            assert_eq!(
                specimen.samples_per_file(),
                if format == SampleFormat::find("tfrecord").unwrap() { 16 } else { 1 }
            );
            assert_eq!(found.sample_bytes, 4096, "{format:?}");
            assert!(found.cpu_ns > 0.0);
        }
    }
}
