//! Ranks as threads of one process.

use std::sync::Arc;

use feedline_clock::{Clock, Monitor};

use crate::{Aborted, Ranks};

/// One rank of a job whose ranks are threads; see [`threads`].
#[derive(Clone, Debug)]
pub struct ThreadRank {
    rank: u32,
    size: u32,
    meeting: Arc<Monitor<Meeting>>,
}

/// The ranks of a job of `size` threads, in order. Each goes to a thread of its own.
pub fn threads(clock: &Clock, size: u32) -> Vec<ThreadRank> {
    let meeting = Arc::new(Monitor::new(clock, Meeting::new(size)));
    (0..size).map(|rank| ThreadRank { rank, size, meeting: Arc::clone(&meeting) }).collect()
}

/// All collectives are one meeting: everyone brings something, the last to come closes the round.
#[derive(Debug)]
struct Meeting {
    round: u64,
    arrived: u32,
    open: Round,
    /// The round that closed last. It stays until the next one closes, which cannot happen before
    /// every rank has left it.
    closed: Arc<Round>,
    aborted: Option<Aborted>,
}

#[derive(Debug)]
struct Round {
    max: u64,
    brought: Vec<Vec<u8>>,
}

impl Round {
    fn new(size: u32) -> Self {
        Self { max: 0, brought: vec![Vec::new(); size as usize] }
    }
}

impl Meeting {
    fn new(size: u32) -> Self {
        Self {
            round: 0,
            arrived: 0,
            open: Round::new(size),
            closed: Arc::new(Round::new(size)),
            aborted: None,
        }
    }
}

impl ThreadRank {
    fn meet(&self, value: u64, bytes: Vec<u8>) -> Result<Arc<Round>, Aborted> {
        let (round, last) = self.meeting.with(|meeting| {
            meeting.open.max = meeting.open.max.max(value);
            meeting.open.brought[self.rank as usize] = bytes;
            meeting.arrived += 1;
            (meeting.round, meeting.arrived == self.size)
        });
        if last {
            // Only the last one wakes the others: woken at each arrival they would do nothing but
            // sleep again, and many ranks would starve themselves.
            self.meeting.update(|meeting| {
                let full = std::mem::replace(&mut meeting.open, Round::new(self.size));
                meeting.closed = Arc::new(full);
                meeting.arrived = 0;
                meeting.round += 1;
            });
        }
        self.meeting.wait_for(|meeting| match &meeting.aborted {
            Some(aborted) => Some(Err(aborted.clone())),
            None => (meeting.round > round).then(|| Ok(Arc::clone(&meeting.closed))),
        })
    }
}

impl Ranks for ThreadRank {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn node(&self) -> u32 {
        0
    }

    fn nodes(&self) -> u32 {
        1
    }

    fn max(&self, value: u64) -> Result<u64, Aborted> {
        Ok(self.meet(value, Vec::new())?.max)
    }

    fn gather(&self, bytes: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Aborted> {
        let round = self.meet(0, bytes)?;
        Ok((self.rank == 0).then(|| round.brought.clone()))
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Aborted> {
        let brought = if self.rank == 0 { bytes } else { Vec::new() };
        Ok(self.meet(0, brought)?.brought[0].clone())
    }

    fn abort(&self, reason: &str) {
        let news = Aborted { rank: self.rank, reason: reason.to_owned() };
        self.meeting.update(|meeting| {
            meeting.aborted.get_or_insert(news);
        });
    }
}
