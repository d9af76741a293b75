//! What a loader hands to its consumer, and what the consumer waited for.

use feedline_store::BatchTimes;

use crate::Result;

/// Where the batches of an epoch come from.
pub(crate) trait Batches: Send {
    /// Waits for the next batch; `None` after the last one of the share. Not asked again after an error.
    fn next_batch(&mut self) -> Result<Option<Delivered>>;
}

/// A batch handed to the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// What the consumer waited for.
    pub wait: Wait,
    /// Samples in the batch.
    pub samples: u64,
    /// Bytes of those samples, headers and containers not counted.
    pub sample_bytes: u64,
}

/// What the consumer waited for until a batch was there. The parts add up to the whole wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The batch's worker was inside a storage call.
    pub storage_ns: u64,
    /// The batch's worker had the bytes and was decoding, checking or preprocessing them.
    pub decode_ns: u64,
    /// The framework itself: its interpreter, handing the batch over, starting workers.
    pub framework_ns: u64,
    /// The batch's worker did nothing of that: it had not been scheduled or was handing over.
    pub worker_ns: u64,
    /// Part of the wait (not a further part) during which a later batch lay ready: what in-order
    /// delivery cost.
    pub behind_ns: u64,
}

impl Wait {
    /// Splits a wait during which the batch's worker did `work`. What that does not explain is the
    /// worker's own.
    pub(crate) fn split(total_ns: u64, work: BatchTimes) -> Self {
        let storage_ns = work.storage_ns.min(total_ns);
        let framework_ns = work.framework_ns.min(total_ns - storage_ns);
        let known_ns = storage_ns + framework_ns;
        let decode_ns = work.busy_ns.saturating_sub(known_ns).min(total_ns - known_ns);
        let worker_ns = total_ns - known_ns - decode_ns;
        Self { storage_ns, decode_ns, framework_ns, worker_ns, behind_ns: 0 }
    }

    /// The whole wait in nanoseconds: the sum of all parts but `behind_ns`.
    pub fn total_ns(&self) -> u64 {
        self.storage_ns + self.decode_ns + self.framework_ns + self.worker_ns
    }
}
