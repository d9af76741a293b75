//! This process's part of a job.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_clock::Clock;

use crate::link::Hear;
use crate::{Aborted, Alone, Geometry, Link, Member, TooFewRanks};

/// The processes of a job and the ranks that they hold, as one of the processes sees them.
#[derive(Clone)]
pub struct Team {
    link: Arc<dyn Link>,
    geometry: Geometry,
}

impl Team {
    /// A job of one process with `ranks` ranks, at least one.
    pub fn alone(ranks: u32) -> Self {
        Self::new(Arc::new(Alone), ranks.max(1)).expect("one process needs one rank")
    }

    /// A job of `ranks` ranks over the processes that `link` joins.
    pub fn new(link: Arc<dyn Link>, ranks: u32) -> Result<Self, TooFewRanks> {
        let geometry = Geometry::new(ranks, link.nodes().to_vec())?;
        Ok(Self { link, geometry })
    }

    /// Which rank is where.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// This process, from 0.
    pub fn process(&self) -> u32 {
        self.link.process()
    }

    /// Whether this is the process that decides, speaks and writes the results.
    pub fn leads(&self) -> bool {
        self.process() == 0
    }

    /// Whether this is the first process of its machine.
    pub fn leads_node(&self) -> bool {
        let node = self.geometry.node_of(self.process());
        self.geometry.processes_on(node).next() == Some(self.process())
    }

    /// The ranks that this process holds, each for a thread of its own.
    pub fn members(&self, clock: &Clock) -> Vec<Member> {
        Member::all(clock, &self.geometry, &self.link)
    }

    /// Waits for all processes and tells each the largest value that any brought.
    pub fn max(&self, value: u64) -> Result<u64, Aborted> {
        self.link.max(value)
    }

    /// Process 0 does something, and all processes get the bytes that came of it.
    pub fn decide<E: From<Aborted>>(
        &self,
        decide: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let bytes = if self.leads() { decide()? } else { Vec::new() };
        Ok(self.link.broadcast(bytes)?)
    }

    /// Sends a message to process 0, which must receive it.
    pub fn send(&self, bytes: Vec<u8>) -> Result<(), Aborted> {
        self.link.send(bytes)
    }

    /// On process 0: the next message of `process`.
    pub fn receive(&self, process: u32) -> Result<Vec<u8>, Aborted> {
        self.link.receive(process)
    }

    /// Ends the job for all processes.
    pub fn abort(&self, reason: &str) {
        let rank = self.geometry.ranks_of(self.process()).start;
        self.link.abort(Aborted { rank, reason: reason.to_owned() });
    }

    /// A stop that is asked of one process is asked of all.
    pub fn share_stop(&self, stop: &Arc<AtomicBool>) {
        self.link.share_stop(Arc::clone(stop));
    }

    /// Calls `hear` when the job is aborted, by whichever process.
    pub fn on_abort(&self, hear: Hear) {
        self.link.on_abort(hear);
    }
}
