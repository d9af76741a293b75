//! The benchmark: what a run will do ([`Plan`]), doing it ([`Run`]), and what came out ([`Outcome`],
//! [`Summary`], [`Assessment`], and [`SummaryFile`] on disk).
//!
//! ```
//! use std::sync::Arc;
//!
//! use feedline_bench::{Existing, OutputFolder, Plan, Run, Semantics, SummaryFile};
//! use feedline_clock::Clock;
//! use feedline_store::Memory;
//! use feedline_workload::{DataLoader, Workload};
//!
//! let mut workload = Workload::default();
//! workload.workflow.generate_data = true;
//! workload.dataset.num_files_train = 8;
//! workload.reader.data_loader = DataLoader::Pytorch;
//! let plan = Plan::new(&workload, 1, Semantics::Feedline)?;
//! let store = || Arc::new(Memory::new(Clock::real()));
//! let run = Run::new(workload, plan, store(), store());
//!
//! let results = tempfile::tempdir().expect("a folder for results");
//! let folder = OutputFolder::claim(results.path(), Existing::Refuse)?;
//! let finished = run.prepare()?.execute(&folder)?;
//! assert_eq!(finished.summary.strict.steps, 8);
//! let file = SummaryFile::read(&results.path().join("summary.json")).expect("it was just written");
//! assert_eq!(file, finished.file);
//! # Ok::<(), feedline_bench::BenchError>(())
//! ```
//!
//! A run moves in that order and nothing later changes something earlier. Time comes from the
//! clock that the caller brings and bytes from the stores it brings, so the whole engine runs
//! under simulated time in its tests.
#![forbid(unsafe_code)]

mod error;
mod observer;
mod spans;

mod plan;

mod checkpoints;
mod results;
mod run;
mod train;

mod ceiling;
mod specimen;

pub use ceiling::{ACCELERATORS_MAX, Bound, Ceiling, Client, FrameworkCeiling, Probe, Rate};
pub use error::{BenchError, Dialect, Result};
pub use feedline_checkpoint::{Amount, Layout, LayoutError, RankGroup, StateBytes};
pub use feedline_ranks::{Aborted, Geometry, Team};
pub use observer::{Checkpointing, Level, Observer, Pass, Rates, Silent, Stepping};
pub use plan::calibration::{
    BatchPoint, CALIBRATION_SCHEMA, Calibration, CalibrationError, DataLoaderFigures, Machine,
    Python, ReaderFigures, SamplePoint, StartFigures,
};
pub use plan::checkpoints::{CheckpointPlan, Memory};
pub use plan::dealing::DLIO_MAIN;
pub use plan::framework::{Burnt, Forecast, Found, FrameworkPlan, LeftOut};
pub use plan::reading::{Calls, ReadPlan};
pub use plan::supported::sample_sizes;
pub use plan::{PhasePlan, Plan, Semantics};
pub use results::assessment::{Assessment, Circumstances, PerSample, Setting};
pub use results::folder::{Existing, OutputFolder};
pub use results::host::Host;
pub use results::metrics::{BlockTally, Split, Step, StrictTally, Window};
pub use results::moment::Moment;
pub use results::outcome::{
    AskedRange, BlockOutcome, CheckpointOutcome, Direction, EpochOutcome, Outcome, RankOutcome,
    SavingTally, StorageCounts,
};
pub use results::summary::{Series, Strict, Summary};
pub use results::summary_file::{
    CheckpointMetrics, CheckpointsSummary, DlioMetrics, EpochSummary, Expectation, FeedlineSummary,
    FileRates, FrameworkSummary, GenerationSummary, HostSummary, LatencySummary, OperationSummary,
    OrderedMap, PhaseMetrics, RankSummary, RequestSize, RequestSizes, SCHEMA_VERSION,
    ShardingSummary, Spread, SummaryFile, SummaryFileError, TimeSplit, TransferSummary,
    VerdictSummary,
};
pub use results::transfers::{Transfer, Transfers};
pub use results::verdict::{Basis, Cause, Verdict};
pub use run::storage_emulation::{EmulationError, StorageEmulation};
pub use run::{PreparedRun, Run, RunResults};
pub use specimen::{Replay, Specimen};
pub use train::page_cache::CachePolicy;
