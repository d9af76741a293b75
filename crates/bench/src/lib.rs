//! The benchmark: what a run will do ([`Plan`]), doing it ([`Run`]), what came out ([`Outcome`],
//! [`Summary`], [`Verdict`]) and the result files ([`results`]).
//!
//! A run moves in that order and nothing later changes something earlier. Time comes from the
//! clock that the caller brings and bytes from the stores it brings, so the whole engine runs
//! under simulated time in its tests.
#![forbid(unsafe_code)]

mod calibration;
mod dealing;
mod framework;
mod plan;
mod reading;

mod error;
mod support;
mod wire;

mod durations;

mod gather;
mod host;
mod journal;
mod moment;
mod observer;

mod cache;
mod checkpoint_phase;
mod metrics;
mod narrator;
mod save_job;
mod saver;
mod schedule;
mod spans;
mod spool;
mod steplog;
mod train;

pub mod explain;
mod folder;
mod outcome;
mod rank_threads;
mod results;
mod run;
mod settled;
mod storage_emulation;
mod summary;
mod summary_file;
mod transfers;
mod verdict;

mod assessment;
mod ceiling;
mod checkpoint_plan;
mod specimen;

pub use assessment::{Assessment, Circumstances, PerSample, Setting};
pub use cache::CachePolicy;
pub use calibration::{
    BatchPoint, CALIBRATION_SCHEMA, Calibration, CalibrationError, DataLoaderFigures, Machine,
    Python, ReaderFigures, SamplePoint, StartFigures,
};
pub use ceiling::{ACCELERATORS_MAX, Bound, Ceiling, Client, FrameworkCeiling, Probe, Rate};
pub use checkpoint_plan::{CheckpointPlan, Memory};
pub use dealing::DLIO_MAIN;
pub use error::{BenchError, Dialect};
pub use feedline_checkpoint::{Amount, Layout, LayoutError, RankGroup, StateBytes};
pub use feedline_ranks::{Aborted, Geometry, Team};
pub use folder::{Existing, OutputFolder};
pub use framework::{Burnt, Forecast, Found, FrameworkPlan, LeftOut};
pub use host::Host;
pub use metrics::{BlockTally, Split, Step, StrictTally, Window};
pub use moment::Moment;
pub use observer::{Checkpointing, Level, Observer, Pass, Rates, Silent, Stepping};
pub use outcome::{
    AskedRange, BlockOutcome, CheckpointOutcome, Direction, EpochOutcome, Outcome, RankOutcome,
    SavingTally, StorageCounts,
};
pub use plan::{PhasePlan, Plan, Semantics};
pub use reading::{Calls, ReadPlan};
pub use run::{FinishedRun, PreparedRun, Run};
pub use specimen::{Replay, Specimen};
pub use storage_emulation::{EmulationError, StorageEmulation};
pub use summary::{Series, Strict, Summary};
pub use summary_file::{
    CheckpointMetrics, CheckpointsSummary, DlioMetrics, EpochSummary, Expectation, FeedlineSummary,
    FileRates, FrameworkSummary, GenerationSummary, HostSummary, LatencySummary, OperationSummary,
    OrderedMap, PhaseMetrics, RankSummary, RequestSize, RequestSizes, SCHEMA_VERSION,
    ShardingSummary, Spread, SummaryFile, SummaryFileError, TimeSplit, TransferSummary,
    VerdictSummary,
};
pub use support::sample_sizes;
pub use transfers::{Transfer, Transfers};
pub use verdict::{Basis, Cause, Verdict};
