//! What loaders tell a trace. The names are those by which analyzers of DLIO's traces know them.

use feedline_dataset::{SampleId, SampleIndex};
use feedline_recorder::{Site, Span, Tags};

/// A reader's work on a batch. Where batches are put together from samples in a row it is a moment: when
/// the last of them was there, on the thread that brought it.
pub(crate) static BATCH: Site = Site::new("dataloader", "batch");
/// A reader's work on a sample: finding, reading and decoding it, and preprocessing unless others do.
static ITEM: Site = Site::new("data", "item");
/// Work on samples that are decoded.
pub(crate) static PREPROCESS: Site = Site::new("data", "preprocess");
/// What the framework's interpreter does for a sample besides.
pub(crate) static INTERPRETER: Site = Site::new("data", "interpreter");
/// A batch on its way from its worker to the consumer: put together, sent, received.
pub(crate) static HAND_OVER: Site = Site::new("data", "collate");
/// Workers are started.
pub(crate) static START: Site = Site::new("data", "worker_start");

/// Where in an epoch a reader is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) epoch: u32,
    /// The batch, counted from 0.
    pub(crate) batch: u64,
    /// Whether the samples that are read go into that batch; a shuffle buffer may put them into
    /// another one.
    pub(crate) is_settled: bool,
    /// Numbers the samples for the trace.
    pub(crate) index: &'a SampleIndex,
}

impl Turn<'_> {
    /// The epoch, and the step if the batch is settled.
    pub(crate) fn tags(&self) -> Tags {
        match self.is_settled {
            true => batch_tags(self.epoch, self.batch),
            false => Tags { step: None, ..batch_tags(self.epoch, self.batch) },
        }
    }

    /// A sample begins.
    pub(crate) fn item(&self, sample: SampleId) -> Span<'static> {
        let mut span = ITEM.begin();
        if span.is_recorded() {
            span.tag(Tags { sample: Some(self.index.number(sample)), ..self.tags() });
        }
        span
    }

    /// The work on the whole batch begins.
    pub(crate) fn batch(&self) -> Span<'static> {
        let mut span = BATCH.begin();
        span.tag(batch_tags(self.epoch, self.batch));
        span
    }
}

/// The tags of a batch, counted from 0. Steps count from 1, as in the logs.
pub(crate) fn batch_tags(epoch: u32, batch: u64) -> Tags {
    Tags { epoch: Some(i64::from(epoch)), step: Some(number(batch + 1)), ..Tags::NONE }
}

/// A count as a tag.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
