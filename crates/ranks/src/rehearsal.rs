//! Processes as threads of one, for tests: a job of many under simulated time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_clock::{Clock, Monitor};

use crate::link::Hear;
use crate::{Aborted, Link};

/// One process of a job that is rehearsed; see [`rehearse`].
#[derive(Clone)]
pub struct Rehearsal {
    process: u32,
    nodes: Arc<[u32]>,
    stage: Arc<Monitor<Stage>>,
}

/// A link for each of as many processes as there are entries in `nodes`, the machine of each.
pub fn rehearse(clock: &Clock, nodes: &[u32]) -> Vec<Rehearsal> {
    let mailboxes = nodes.iter().map(|_| VecDeque::new()).collect();
    let stage = Arc::new(Monitor::new(clock, Stage { mailboxes, ..Stage::default() }));
    let link = |process| Rehearsal { process, nodes: nodes.into(), stage: Arc::clone(&stage) };
    (0..nodes.len() as u32).map(link).collect()
}

#[derive(Default)]
struct Stage {
    round: u64,
    arrived: usize,
    open: (u64, Vec<u8>),
    closed: (u64, Vec<u8>),
    /// Messages to process 0, by sender.
    mailboxes: Vec<VecDeque<Vec<u8>>>,
    aborting: bool,
    aborted: Option<Aborted>,
    hearers: Vec<Arc<Hear>>,
}

impl Rehearsal {
    fn meet(&self, value: u64, bytes: Option<Vec<u8>>) -> Result<(u64, Vec<u8>), Aborted> {
        let round = self.stage.update(|stage| {
            let round = stage.round;
            stage.open.0 = stage.open.0.max(value);
            if let Some(bytes) = bytes {
                stage.open.1 = bytes;
            }
            stage.arrived += 1;
            if stage.arrived == self.nodes.len() {
                stage.closed = std::mem::take(&mut stage.open);
                stage.arrived = 0;
                stage.round += 1;
            }
            round
        });
        self.await_stage(|stage| (stage.round > round).then(|| stage.closed.clone()))
    }

    fn await_stage<T>(&self, look: impl Fn(&mut Stage) -> Option<T>) -> Result<T, Aborted> {
        self.stage.wait_for(|stage| match &stage.aborted {
            Some(news) => Some(Err(news.clone())),
            None => look(stage).map(Ok),
        })
    }
}

impl Link for Rehearsal {
    fn process(&self) -> u32 {
        self.process
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    fn max(&self, value: u64) -> Result<u64, Aborted> {
        Ok(self.meet(value, None)?.0)
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Aborted> {
        Ok(self.meet(0, (self.process == 0).then_some(bytes))?.1)
    }

    fn send(&self, bytes: Vec<u8>) -> Result<(), Aborted> {
        self.stage.update(|stage| stage.mailboxes[self.process as usize].push_back(bytes));
        Ok(())
    }

    fn receive(&self, process: u32) -> Result<Vec<u8>, Aborted> {
        self.await_stage(|stage| stage.mailboxes[process as usize].pop_front())
    }

    fn abort(&self, news: Aborted) {
        let first = self.stage.with(|stage| !std::mem::replace(&mut stage.aborting, true));
        if first {
            // Who waits has heard of it by the time it goes on.
            let hearers = self.stage.with(|stage| stage.hearers.clone());
            hearers.iter().for_each(|hear| hear(&news));
            self.stage.update(|stage| stage.aborted = Some(news));
        }
    }

    fn aborted(&self) -> Option<Aborted> {
        self.stage.with(|stage| stage.aborted.clone())
    }

    /// Threads of a rehearsal have no watcher; their tests share a flag.
    fn share_stop(&self, _stop: Arc<AtomicBool>) {}

    fn on_abort(&self, hear: Hear) {
        let hear = Arc::new(hear);
        let late = self.stage.with(|stage| {
            stage.hearers.push(Arc::clone(&hear));
            stage.aborted.clone()
        });
        if let Some(news) = late {
            hear(&news);
        }
    }
}
