//! What a framework costs on a machine, as `feedline calibrate` measured it: the file, and what
//! follows from it for a workload.
//!
//! All times are CPU time. The file holds what was measured and nothing that follows from it, so
//! that a later version can draw its own conclusions.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use feedline_loader::{Curve, FrameworkCost, HandOver, Often, WorkerStart};
use feedline_workload::{Compression, DataLoader, MultiprocessingContext, Workload};
use serde::{Deserialize, Serialize};

use crate::plan::Semantics;
use crate::results::host::{Host, usable_cpus};

/// Raised when a key changes its meaning or goes away.
pub const CALIBRATION_SCHEMA: u32 = 1;

/// Figures of one machine, for an estimate where there is no calibration.
const REFERENCE: &str = include_str!("reference_calibration.json");

/// CPU times of the Python readers and of torch on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Version of this layout.
    pub feedline_calibration: u32,
    /// The version of Feedline whose readers were measured beside the real ones.
    pub feedline_version: String,
    /// When it was measured, in UTC.
    pub date: String,
    /// The machine that was measured.
    pub machine: Machine,
    /// The Python that was measured.
    pub python: Python,
    /// Samples of each batch that was measured.
    pub batch_samples: NonZeroU64,
    /// By format: the real reader's CPU time per sample.
    pub readers: BTreeMap<String, ReaderFigures>,
    /// torch's `DataLoader`, if there was a torch.
    pub data_loader: Option<DataLoaderFigures>,
    /// Formats that were left out, and why.
    pub left_out: BTreeMap<String, String>,
}

/// A machine, as far as CPU times depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// `model name` of /proc/cpuinfo.
    pub cpu: String,
    /// Processors that could be used.
    pub cpus: u32,
    /// Name and release of the kernel.
    pub kernel: String,
}

impl Machine {
    /// The machine that runs this process.
    pub fn this() -> Self {
        let host = Host::look();
        let fact = |name| host.cpuinfo.iter().find(|(key, _)| key == name);
        // ARM says no name, but which part it is.
        let cpu = fact("model name").or_else(|| fact("CPU part"));
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let kernel = ["ostype", "osrelease"].map(|name| read(format!("/proc/sys/kernel/{name}")));
        Self {
            cpu: cpu.map_or_else(|| "unknown".to_owned(), |(_, cpu)| cpu.clone()),
            cpus: usable_cpus(),
            kernel: kernel.map(|text| text.trim().to_owned()).join(" "),
        }
    }
}

/// A Python and its packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Python {
    /// Path of the Python executable.
    pub executable: String,
    /// Version of Python, such as `3.11.7`.
    pub version: String,
    /// Versions of the packages that readers need.
    pub packages: BTreeMap<String, String>,
}

/// The real reader of a format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderFigures {
    /// What was called.
    pub call: String,
    /// CPU time by size.
    pub points: Vec<SamplePoint>,
}

/// CPU time of one sample, read from the page cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplePoint {
    /// Bytes of the sample.
    pub bytes: u64,
    /// Of the real reader, in a loop.
    pub cpu_ns: f64,
    /// Of Feedline's reader in its place.
    pub replay_cpu_ns: f64,
    /// Of batches that a `DataLoader` read and handed over, where that was measured. The same call
    /// takes longer there than in a loop.
    pub in_loader: Vec<BatchPoint>,
}

impl SamplePoint {
    /// CPU time of the real reader in a loader with `workers` workers: that of a batch that was read
    /// and handed over, less that of handing it over.
    fn cpu_ns_in(&self, loader: Option<&DataLoaderFigures>, workers: u32, samples: u64) -> f64 {
        let nearest = nearest(&self.in_loader, workers);
        let Some((loader, point)) = loader.zip(nearest) else { return self.cpu_ns };
        let hand_over = loader.hand_over(point.workers);
        let (whole, handed) = match point.workers {
            0 => (point.consumer_cpu_ns, hand_over.collate.at(point.bytes)),
            _ => (point.worker_cpu_ns, hand_over.worker.at(point.bytes)),
        };
        (whole - handed as f64).max(0.0) / samples as f64
    }
}

/// The point whose number of workers is nearest; without workers everything is different.
fn nearest(points: &[BatchPoint], workers: u32) -> Option<&BatchPoint> {
    let alike = points.iter().filter(|point| (point.workers == 0) == (workers == 0));
    alike.min_by_key(|point| (point.workers.abs_diff(workers), point.workers))
}

/// torch's `DataLoader`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataLoaderFigures {
    /// Batches whose samples were ready in memory: with workers, handing one over; without, putting
    /// it together in the consumer.
    pub hand_over: Vec<BatchPoint>,
    /// Starting a worker, by `multiprocessing_context`.
    pub start: BTreeMap<String, StartFigures>,
}

/// CPU time of one batch of a `DataLoader`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchPoint {
    /// Workers that were running; 0: the consumer did everything.
    pub workers: u32,
    /// Bytes of the batch's tensors.
    pub bytes: u64,
    /// CPU nanoseconds in the worker.
    pub worker_cpu_ns: f64,
    /// CPU nanoseconds in the consumer.
    pub consumer_cpu_ns: f64,
}

/// CPU time of starting one worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartFigures {
    /// CPU nanoseconds in the worker.
    pub worker_cpu_ns: f64,
    /// CPU nanoseconds in the consumer.
    pub consumer_cpu_ns: f64,
}

/// Why a text is not a usable calibration.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// No JSON, or not with these keys.
    #[error("not a calibration")]
    Damaged(#[from] serde_json::Error),
    /// JSON of another version.
    #[error("a calibration of layout {found}, this version reads {CALIBRATION_SCHEMA}")]
    Schema {
        /// Version in the file.
        found: u64,
    },
    /// A value that no measurement gives.
    #[error("not a calibration: `{key}` has a time that is negative or not a number")]
    Time {
        /// Key of the bad value.
        key: String,
    },
}

impl Calibration {
    /// Reads a calibration from its text.
    ///
    /// # Errors
    /// If the text is not a calibration, or one of another version.
    pub fn parse(text: &str) -> Result<Self, CalibrationError> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        if let Some(found) = value.get("feedline_calibration").and_then(serde_json::Value::as_u64)
            && found != u64::from(CALIBRATION_SCHEMA)
        {
            return Err(CalibrationError::Schema { found });
        }
        let read: Self = serde_json::from_value(value)?;
        match read.wrong_time() {
            Some(key) => Err(CalibrationError::Time { key }),
            None => Ok(read),
        }
    }

    /// The figures that are shipped: those of another machine, good for an estimate only.
    pub fn reference() -> Self {
        Self::parse(REFERENCE).expect("a test reads it")
    }

    fn wrong_time(&self) -> Option<String> {
        let is_wrong = |ns: f64| !ns.is_finite() || ns < 0.0;
        let batch =
            |point: &BatchPoint| is_wrong(point.worker_cpu_ns) || is_wrong(point.consumer_cpu_ns);
        for (format, figures) in &self.readers {
            let wrong = |point: &SamplePoint| {
                is_wrong(point.cpu_ns)
                    || is_wrong(point.replay_cpu_ns)
                    || point.in_loader.iter().any(batch)
            };
            if figures.points.is_empty() || figures.points.iter().any(wrong) {
                return Some(format!("readers.{format}"));
            }
        }
        let loader = self.data_loader.as_ref()?;
        let start =
            |start: &StartFigures| is_wrong(start.worker_cpu_ns) || is_wrong(start.consumer_cpu_ns);
        let wrong = [
            (loader.hand_over.iter().any(batch), "hand_over"),
            (loader.start.values().any(start), "start"),
        ];
        let wrong = wrong.into_iter().find(|(is_wrong, _)| *is_wrong);
        wrong.map(|(_, key)| format!("data_loader.{key}"))
    }

    /// What a run of `workload` burns; `None` if its format was not measured.
    pub fn cost(&self, workload: &Workload, semantics: Semantics) -> Option<FrameworkCost> {
        let beyond = |point: &SamplePoint, cpu_ns: f64| (cpu_ns - point.replay_cpu_ns).max(0.0);
        self.figures(workload, semantics, beyond)
    }

    /// What the framework itself takes for `workload`, its own calls included.
    pub(crate) fn whole_cost(
        &self,
        workload: &Workload,
        semantics: Semantics,
    ) -> Option<FrameworkCost> {
        self.figures(workload, semantics, |_, cpu_ns| cpu_ns)
    }

    fn figures(
        &self,
        workload: &Workload,
        semantics: Semantics,
        sample_ns: impl Fn(&SamplePoint, f64) -> f64,
    ) -> Option<FrameworkCost> {
        let (reader, dataset) = (&workload.reader, &workload.dataset);
        if dataset.compression != Compression::None {
            return None;
        }
        let points = &self.readers.get(dataset.format.name)?.points;
        let resized = dataset.record_length_bytes_resize;
        let loader =
            self.data_loader.as_ref().filter(|_| reader.data_loader == DataLoader::Pytorch);
        let persistent = reader.persistent_workers.unwrap_or(semantics == Semantics::Dlio);
        let often = if persistent { Often::Once } else { Often::EachEpoch };
        let sample = |point: &SamplePoint| {
            let cpu_ns = point.cpu_ns_in(loader, reader.read_threads, self.batch_samples.get());
            (point.bytes, sample_ns(point, cpu_ns))
        };
        Some(FrameworkCost {
            sample: Curve::new(points.iter().map(sample)),
            hand_over: loader
                .map_or_else(HandOver::default, |it| it.hand_over(reader.read_threads)),
            start: loader.map_or_else(WorkerStart::default, |it| {
                it.start(reader.multiprocessing_context, often)
            }),
            tensor_bytes: (resized > 0.0).then_some(resized as u64),
        })
    }
}

impl DataLoaderFigures {
    /// The figures of the worker count that is nearest to `workers`.
    fn hand_over(&self, workers: u32) -> HandOver {
        let of = |workers, ns: fn(&BatchPoint) -> f64| {
            let nearest = nearest(&self.hand_over, workers).map(|point| point.workers);
            let points = self.hand_over.iter().filter(|point| Some(point.workers) == nearest);
            Curve::new(points.map(|point| (point.bytes, ns(point))))
        };
        let busy = workers.max(1);
        HandOver {
            collate: of(0, |point| point.consumer_cpu_ns),
            worker: of(busy, |point| point.worker_cpu_ns),
            consumer: of(busy, |point| point.consumer_cpu_ns),
        }
    }

    fn start(&self, context: MultiprocessingContext, often: Often) -> WorkerStart {
        // A fork server makes a worker out of an interpreter that has imported nothing.
        let name = match context {
            MultiprocessingContext::Fork => "fork",
            MultiprocessingContext::Spawn | MultiprocessingContext::Forkserver => "spawn",
        };
        let Some(figures) = self.start.get(name) else {
            return WorkerStart { often, ..WorkerStart::default() };
        };
        let whole = |ns: f64| ns.round() as u64;
        let (consumer_ns, worker_ns) =
            (whole(figures.consumer_cpu_ns), whole(figures.worker_cpu_ns));
        WorkerStart { consumer_ns, worker_ns, often }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use feedline_workload::SampleFormat;

    use super::*;

    /// npz of 1000 and 2000 bytes, hand-over with 1 and 4 workers, fork and spawn.
    pub(crate) fn made_up() -> Calibration {
        let sample = |bytes, cpu_ns, replay_cpu_ns| SamplePoint {
            bytes,
            cpu_ns,
            replay_cpu_ns,
            in_loader: Vec::new(),
        };
        let hand_over = |workers, bytes, worker_cpu_ns, consumer_cpu_ns| BatchPoint {
            workers,
            bytes,
            worker_cpu_ns,
            consumer_cpu_ns,
        };
        let start =
            |worker_cpu_ns, consumer_cpu_ns| StartFigures { worker_cpu_ns, consumer_cpu_ns };
        let points = vec![sample(1000, 500.0, 100.0), sample(2000, 800.0, 900.0)];
        Calibration {
            feedline_calibration: CALIBRATION_SCHEMA,
            feedline_version: "0.1.0".into(),
            date: "2026-11-18T01:02:03Z".into(),
            machine: Machine { cpu: "A CPU".into(), cpus: 2, kernel: "Linux 6.18".into() },
            python: Python {
                executable: "/usr/bin/python3".into(),
                version: "3.11.7".into(),
                packages: BTreeMap::from([("torch".into(), "2.15.0".into())]),
            },
            batch_samples: NonZeroU64::new(4).unwrap(),
            readers: BTreeMap::from([(
                "npz".into(),
                ReaderFigures { call: "np.load(path)[\"x\"]".into(), points },
            )]),
            data_loader: Some(DataLoaderFigures {
                hand_over: vec![
                    hand_over(0, 1000, 0.0, 50.0),
                    hand_over(1, 1000, 10.0, 20.0),
                    hand_over(1, 3000, 30.0, 40.0),
                    hand_over(4, 1000, 100.0, 200.0),
                ],
                start: BTreeMap::from([
                    ("fork".into(), start(3000.0, 7000.0)),
                    ("spawn".into(), start(9000.0, 8000.0)),
                ]),
            }),
            left_out: BTreeMap::from([("hdf5".into(), "h5py is missing".into())]),
        }
    }

    pub(crate) fn workload() -> Workload {
        let mut workload = Workload::default();
        workload.dataset.format = SampleFormat::find("npz").unwrap();
        workload.reader.data_loader = DataLoader::Pytorch;
        workload
    }

    #[test]
    fn a_file_comes_back_as_it_went_out() {
        let text = serde_json::to_string_pretty(&made_up()).unwrap();
        assert_eq!(Calibration::parse(&text).unwrap(), made_up());
    }

    #[test]
    fn what_is_no_calibration_is_refused() {
        let text = serde_json::to_string(&made_up()).unwrap();
        let refused = |text: &str| Calibration::parse(text).unwrap_err().to_string();
        assert_eq!(refused(""), "not a calibration");
        assert_eq!(refused("{}"), "not a calibration");
        assert_eq!(refused(&text[..text.len() / 2]), "not a calibration");
        assert_eq!(
            refused(r#"{"feedline_calibration": 2, "anything": 1}"#),
            "a calibration of layout 2, this version reads 1"
        );
        assert_eq!(
            refused(&text.replace("\"cpu_ns\":500.0", "\"cpu_ns\":-1")),
            "not a calibration: `readers.npz` has a time that is negative or not a number"
        );
        assert_eq!(
            refused(&text.replace("200.0", "-200.0")),
            "not a calibration: `data_loader.hand_over` has a time that is negative or not a number"
        );
    }

    #[test]
    fn a_run_burns_what_the_real_reader_takes_beyond_ours() {
        let cost = made_up().cost(&workload(), Semantics::Feedline).unwrap();
        // 500 - 100, and never less than nothing.
        assert_eq!(cost.sample.points(), [(1000, 400.0), (2000, 0.0)]);
        assert_eq!(cost.hand_over.collate.points(), [(1000, 50.0)]);
        assert_eq!(cost.hand_over.worker.points(), [(1000, 10.0), (3000, 30.0)]);
        assert_eq!(cost.hand_over.consumer.points(), [(1000, 20.0), (3000, 40.0)]);
        let often = Often::EachEpoch;
        assert_eq!(cost.start, WorkerStart { consumer_ns: 7000, worker_ns: 3000, often });
        assert_eq!(cost.tensor_bytes, None);
        let whole = made_up().whole_cost(&workload(), Semantics::Feedline).unwrap();
        assert_eq!(whole.sample.points(), [(1000, 500.0), (2000, 800.0)]);
    }

    #[test]
    fn a_reader_costs_what_a_loader_takes_beyond_handing_over() {
        let mut found = made_up();
        let point = |workers, bytes, worker_cpu_ns, consumer_cpu_ns| BatchPoint {
            workers,
            bytes,
            worker_cpu_ns,
            consumer_cpu_ns,
        };
        found.readers.get_mut("npz").unwrap().points[0].in_loader = vec![
            point(0, 1000, 0.0, 3250.0),
            point(1, 2000, 4420.0, 7.0),
            point(4, 1000, 60.0, 7.0),
        ];
        let sample = |threads| {
            let mut workload = workload();
            workload.reader.read_threads = threads;
            found.whole_cost(&workload, Semantics::Feedline).unwrap().sample.at(1000)
        };
        // Four samples and 50 to collate; four and 20 to hand over 2000 bytes; less than the 100
        // that handing over takes.
        assert_eq!([0, 1, 2, 4].map(sample), [800, 1100, 1100, 0]);
        // tf.data is no DataLoader: the loop counts.
        let mut workload = workload();
        workload.reader.data_loader = DataLoader::Tensorflow;
        let cost = found.whole_cost(&workload, Semantics::Feedline).unwrap();
        assert_eq!(cost.sample.at(1000), 500);
    }

    #[test]
    fn the_workload_chooses_among_the_figures() {
        let cost = |change: &dyn Fn(&mut Workload)| {
            let mut workload = workload();
            change(&mut workload);
            made_up().cost(&workload, Semantics::Feedline)
        };
        let worker = |threads| {
            let of = |workload: &mut Workload| workload.reader.read_threads = threads;
            cost(&of).unwrap().hand_over.worker.at(1000)
        };
        // 1 and 4 were measured: 2 is nearer to 1, 3 and 8 to 4.
        assert_eq!([0, 1, 2, 3, 4, 8].map(worker), [10, 10, 10, 100, 100, 100]);
        let spawn = |workload: &mut Workload| {
            workload.reader.multiprocessing_context = MultiprocessingContext::Spawn;
            workload.reader.persistent_workers = Some(true);
            workload.dataset.record_length_bytes_resize = 77.0;
        };
        let found = cost(&spawn).unwrap();
        let often = Often::Once;
        assert_eq!(found.start, WorkerStart { consumer_ns: 8000, worker_ns: 9000, often });
        assert_eq!(found.tensor_bytes, Some(77));
        // tf.data hands nothing over and starts no workers.
        let found =
            cost(&|w: &mut Workload| w.reader.data_loader = DataLoader::Tensorflow).unwrap();
        assert_eq!((found.hand_over, found.start.consumer_ns), (HandOver::default(), 0));
        // What was not measured is not known.
        assert_eq!(
            cost(&|w: &mut Workload| w.dataset.format = SampleFormat::find("hdf5").unwrap()),
            None
        );
        assert_eq!(cost(&|w: &mut Workload| w.dataset.compression = Compression::Gzip), None);
    }

    #[test]
    fn workers_of_dlio_live_as_long_as_the_run() {
        let often = |semantics| made_up().cost(&workload(), semantics).unwrap().start.often;
        assert_eq!(often(Semantics::Feedline), Often::EachEpoch);
        assert_eq!(often(Semantics::Dlio), Often::Once);
    }

    #[test]
    fn the_shipped_figures_can_be_read() {
        let shipped = Calibration::reference();
        assert!(shipped.readers.contains_key("npz") && shipped.data_loader.is_some());
    }
}
