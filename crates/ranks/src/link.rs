//! The seam between this process and the other processes of its job.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::Aborted;

/// What joins the processes of a job. Process 0 holds rank 0.
///
/// All processes must make the same calls in the same order, whichever thread makes them, and never
/// two at a time. A call that waits ends with [`Aborted`] once any process has called
/// [`Link::abort`]; from then on every call does.
pub trait Link: Send + Sync {
    /// This process, from 0.
    fn process(&self) -> u32;

    /// The machine of every process, in the order of processes. Machines are numbered from 0 in the
    /// order of their first process.
    fn nodes(&self) -> &[u32];

    /// Waits for all processes and tells each the largest value that any brought.
    fn max(&self, value: u64) -> Result<u64, Aborted>;

    /// Brings process 0's `bytes` to every process; what the others pass is dropped.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Aborted>;

    /// Sends a message to process 0, which must receive it.
    fn send(&self, bytes: Vec<u8>) -> Result<(), Aborted>;

    /// On process 0: the next message of `process`.
    fn receive(&self, process: u32) -> Result<Vec<u8>, Aborted>;

    /// Ends the job for all processes; only the first news counts.
    fn abort(&self, news: Aborted);

    /// What ended the job, if anything did.
    fn aborted(&self) -> Option<Aborted>;

    /// From now on a stop that is asked of one process is asked of all: whichever sets its `stop`
    /// first has it set everywhere soon after.
    fn share_stop(&self, stop: Arc<AtomicBool>);

    /// Calls `hear` when the job is aborted, here or elsewhere; at once if it has been.
    fn on_abort(&self, hear: Hear);
}

/// Hears of the end of a job, on any thread.
pub type Hear = Box<dyn Fn(&Aborted) + Send + Sync>;

/// A job of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Link for Alone {
    fn process(&self) -> u32 {
        0
    }

    fn nodes(&self) -> &[u32] {
        &[0]
    }

    fn max(&self, value: u64) -> Result<u64, Aborted> {
        Ok(value)
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Aborted> {
        Ok(bytes)
    }

    fn send(&self, _bytes: Vec<u8>) -> Result<(), Aborted> {
        Ok(())
    }

    fn receive(&self, _process: u32) -> Result<Vec<u8>, Aborted> {
        Ok(Vec::new())
    }

    fn abort(&self, _news: Aborted) {}

    fn aborted(&self) -> Option<Aborted> {
        None
    }

    fn share_stop(&self, _stop: Arc<AtomicBool>) {}

    fn on_abort(&self, _hear: Hear) {}
}
