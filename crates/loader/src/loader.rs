//! Any of the emulated loaders.

use std::sync::Arc;

use feedline_store::Meter;

use crate::batch::{Batches, Delivered, Wait};
use crate::cost::FrameworkCost;
use crate::epoch::Epoch;
use crate::error::Result;
use crate::share::EpochShare;
use crate::{StreamLoader, TorchLoader};

/// One of the emulated loaders. It lives as long as the run.
pub enum Loader {
    /// Batches dealt to workers that read their samples by number.
    Torch(TorchLoader),
    /// Samples in a row, put together to batches behind their readers.
    Stream(StreamLoader),
    /// Batches out of nothing.
    Nothing,
}

impl Loader {
    /// Burns what the framework costs, too.
    pub fn with_cost(self, cost: &Arc<FrameworkCost>) -> Self {
        match self {
            Self::Torch(loader) => Self::Torch(loader.with_cost(cost)),
            Self::Stream(loader) => Self::Stream(loader.with_cost(cost)),
            Self::Nothing => Self::Nothing,
        }
    }

    /// Starts an epoch. The one before must have been dropped: its readers are this one's, too.
    pub fn epoch(&mut self, share: EpochShare) -> Epoch {
        match self {
            Self::Torch(loader) => loader.epoch(share),
            Self::Stream(loader) => loader.epoch(share),
            Self::Nothing => {
                let share = share.in_order();
                Epoch::new(Empty { left: share.samples(), batch: share.dealing.batch })
            }
        }
    }

    /// What the readers asked of the store since the loader was made; `None` while an epoch has them.
    pub fn meter(&mut self) -> Option<Meter> {
        match self {
            Self::Torch(loader) => loader.meter(),
            Self::Stream(loader) => loader.meter(),
            Self::Nothing => Some(Meter::default()),
        }
    }
}

struct Empty {
    /// Samples.
    left: u64,
    batch: u64,
}

impl Batches for Empty {
    fn next_batch(&mut self) -> Result<Option<Delivered>> {
        if self.left == 0 {
            return Ok(None);
        }
        let samples = self.batch.min(self.left);
        self.left -= samples;
        Ok(Some(Delivered { wait: Wait::default(), samples, sample_bytes: 0 }))
    }
}
