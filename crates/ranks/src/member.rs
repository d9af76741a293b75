//! A rank as a thread: it meets the others of its process here, and through them those elsewhere.

use std::sync::Arc;

use feedline_clock::{Clock, Monitor};

use crate::{Aborted, Geometry, Link, Ranks};

/// One rank of this process; goes to a thread of its own.
#[derive(Clone)]
pub struct Member {
    rank: u32,
    size: u32,
    on_node: (u32, u32),
    /// Ranks of this process.
    here: u32,
    meeting: Arc<Monitor<Meeting>>,
    link: Arc<dyn Link>,
}

/// The ranks of a process come together; the last one to come speaks for it to the others.
#[derive(Debug, Default)]
struct Meeting {
    round: u64,
    arrived: u32,
    /// The largest value brought to the open round.
    open_max: u64,
    /// The largest of the round that closed last. It stays until the next one closes, which cannot
    /// happen before every rank has left it.
    closed_max: u64,
    aborted: Option<Aborted>,
}

impl Member {
    /// The ranks that `link`'s process holds, in order.
    pub(crate) fn all(clock: &Clock, geometry: &Geometry, link: &Arc<dyn Link>) -> Vec<Self> {
        let meeting = Arc::new(Monitor::new(clock, Meeting::default()));
        let heard = Arc::downgrade(&meeting);
        link.on_abort(Box::new(move |news| {
            if let Some(meeting) = heard.upgrade() {
                meeting.update(|meeting| _ = meeting.aborted.get_or_insert_with(|| news.clone()));
            }
        }));
        let process = link.process();
        let ranks = geometry.ranks_of(process);
        let here = ranks.len() as u32;
        let member = |rank| Self {
            rank,
            size: geometry.ranks(),
            on_node: geometry.on_node(process, rank),
            here,
            meeting: Arc::clone(&meeting),
            link: Arc::clone(link),
        };
        ranks.map(member).collect()
    }

    /// Closes a round that all ranks of this process have come to.
    fn close_round(&self, own_max: u64) {
        let agreed = self.link.max(own_max);
        // Only the last one wakes the others: woken at each arrival they would do nothing but
        // sleep again, and many ranks would starve themselves.
        self.meeting.update(|meeting| match agreed {
            Ok(max) => {
                meeting.closed_max = max;
                meeting.open_max = 0;
                meeting.arrived = 0;
                meeting.round += 1;
            }
            Err(news) => {
                meeting.aborted.get_or_insert(news);
            }
        });
    }
}

impl Ranks for Member {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn on_node(&self) -> (u32, u32) {
        self.on_node
    }

    fn max(&self, value: u64) -> Result<u64, Aborted> {
        let (round, own_max, last) = self.meeting.with(|meeting| {
            if let Some(aborted) = &meeting.aborted {
                return Err(aborted.clone());
            }
            meeting.open_max = meeting.open_max.max(value);
            meeting.arrived += 1;
            Ok((meeting.round, meeting.open_max, meeting.arrived == self.here))
        })?;
        if last {
            self.close_round(own_max);
        }
        self.meeting.wait_for(|meeting| match &meeting.aborted {
            Some(aborted) => Some(Err(aborted.clone())),
            None => (meeting.round > round).then_some(Ok(meeting.closed_max)),
        })
    }

    fn abort(&self, reason: &str) {
        let news = Aborted { rank: self.rank, reason: reason.to_owned() };
        // A rank that ends because another did must not be the one that is named.
        let first = self.meeting.update(|meeting| meeting.aborted.get_or_insert(news).clone());
        self.link.abort(first);
    }
}
