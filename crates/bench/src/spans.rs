//! What a run tells a trace. The names are those by which analyzers of DLIO's traces know them; what the
//! loader tells is in the loader.

use feedline_dataset::ReadMethod;
use feedline_recorder::{Site, Span, Tags};

/// All that a rank does.
pub(crate) static ROOT: Site = Site::new("ai_root", "ai_root");
/// Making the data set.
pub(crate) static GENERATE: Site = Site::new("generator", "generate");
/// The training of an epoch, checkpoints in it included.
pub(crate) static TRAIN: Site = Site::new("pipeline", "train");
/// Steps between two checkpoints.
pub(crate) static BLOCK: Site = Site::new("pipeline", "epoch.block");
/// An evaluation between epochs.
pub(crate) static EVALUATE: Site = Site::new("pipeline", "evaluate");
/// The wait for a batch.
pub(crate) static FETCH: Site = Site::new("dataloader", "fetch.iter");
/// The accelerator's work on a batch.
pub(crate) static COMPUTE: Site = Site::new("compute", "compute");
/// The meeting of all ranks at the end of a step.
pub(crate) static MEET: Site = Site::new("comm", "all_reduce");
/// Memory and threads for checkpoints.
pub(crate) static CHECKPOINT_INIT: Site = Site::new("checkpoint", "init");
/// Training pauses for a save: for all of it, or until the state is copied.
pub(crate) static CAPTURE: Site = Site::new("checkpoint", "capture");
/// Giving a checkpoint that all ranks have written its name.
pub(crate) static COMMIT: Site = Site::new("checkpoint", "commit");
/// Loading a checkpoint.
pub(crate) static RESTART: Site = Site::new("checkpoint", "restart");

/// How samples are read: `feedline diff` marks a comparison of runs whose models differ.
static READ_MODELS: [Site; 3] = [
    Site::new("read_model", "framework"),
    Site::new("read_model", "native"),
    Site::new("read_model", "deep"),
];

/// Says once per process how samples are read.
pub(crate) fn mark_read_model(model: ReadMethod) {
    let place = match model {
        ReadMethod::Framework => 0,
        ReadMethod::Native => 1,
        ReadMethod::Deep { .. } => 2,
    };
    READ_MODELS[place].mark(Tags::NONE);
}

/// Where a rank is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepPosition {
    pub(crate) epoch: u32,
    /// Counted from 1, within the epoch.
    pub(crate) step: u64,
}

impl StepPosition {
    /// Something begins here.
    pub(crate) fn begin(self, site: &'static Site) -> Span<'static> {
        let mut span = in_epoch(site, self.epoch);
        span.tags.step = Some(i64::try_from(self.step).unwrap_or(i64::MAX));
        span
    }
}

/// Something begins that is about an epoch.
pub(crate) fn in_epoch(site: &'static Site, epoch: u32) -> Span<'static> {
    let mut span = site.begin();
    span.tag(Tags { epoch: Some(i64::from(epoch)), ..Tags::NONE });
    span
}
