//! What a thread does, by the innermost thing that it is in, as rows come by.
//!
//! A row says its end when it begins, so a stack of ends is all that is kept. Time is added up only when
//! something begins or ends on the lane: to the batch that it works on, and to the fetch that waits.

use crate::layer::{CAUSES, StallCause};
use crate::steps::pending::{NsByCause, PendingBatches};
use crate::steps::window::{Window, measure};

pub(crate) const NO_ITEM: u64 = u64::MAX;

/// What a thing on the stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Part of something else.
    Part,
    /// Work on a batch.
    Batch,
    /// Work on a sample, where batches are made of these.
    Sample,
    /// A checkpoint: calls in it are not about batches.
    Checkpoint,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    end_ns: i64,
    cause: StallCause,
    role: FrameKind,
}

/// A lane of a unit.
#[derive(Clone, Debug)]
pub(crate) struct LaneWork {
    frames: Vec<Frame>,
    /// Up to when its time is added up.
    at_ns: i64,
    /// What its own time is called: in no call and no span that says more.
    own: StallCause,
    /// The batch that it works on.
    pub(crate) item: u64,
    /// Its part of the window of this number,
    window: NsByCause,
    window_number: u64,
    /// and what of that it had done when the batch began.
    before: NsByCause,
    /// Time outside of batches since the last one, where batches are moments.
    loose: NsByCause,
    loose_since_ns: Option<i64>,
    /// Until when a thread that works for it is in a call, and in what.
    helped_until_ns: i64,
    helped_by: StallCause,
    /// Depth of batches and samples, and of samples.
    depth: u32,
    sample_depth: u32,
    /// Events of samples.
    pub(crate) sample_events: u64,
    /// Batches of the phase, and of all.
    pub(crate) rounds: u32,
    pub(crate) batches: u64,
    /// From its first event to its last one's end.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    /// Time in batches or samples.
    pub(crate) busy_ns: u64,
    busy_until_ns: i64,
    pub(crate) is_listed: bool,
}

impl LaneWork {
    pub(crate) fn new(own: StallCause) -> Self {
        Self {
            frames: Vec::new(),
            at_ns: i64::MIN,
            own,
            item: NO_ITEM,
            window: [0; CAUSES],
            window_number: 0,
            before: [0; CAUSES],
            loose: [0; CAUSES],
            loose_since_ns: None,
            helped_until_ns: i64::MIN,
            helped_by: StallCause::Read,
            depth: 0,
            sample_depth: 0,
            sample_events: 0,
            rounds: 0,
            batches: 0,
            first_ns: i64::MAX,
            last_ns: i64::MIN,
            busy_ns: 0,
            busy_until_ns: i64::MIN,
            is_listed: false,
        }
    }

    /// Whether it is in nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether it is inside of a batch or a sample.
    pub(crate) fn is_in_work(&self) -> bool {
        self.depth > 0
    }

    /// Whether it is inside of a batch or a sample then, even if its time is not added up so far.
    pub(crate) fn is_at_work(&self, at_ns: i64) -> bool {
        self.busy_until_ns > at_ns
    }

    /// Whether it is inside of a sample.
    pub(crate) fn is_in_sample(&self) -> bool {
        self.sample_depth > 0
    }

    /// Something of the lane is in the trace.
    pub(crate) fn see(&mut self, start_ns: i64, end_ns: i64) {
        self.first_ns = self.first_ns.min(start_ns);
        self.last_ns = self.last_ns.max(end_ns);
    }

    /// Something begins; time up to then must have been added up. Without a cause, it is called what is
    /// around it.
    pub(crate) fn begin(
        &mut self,
        start_ns: i64,
        end_ns: i64,
        cause: Option<StallCause>,
        role: FrameKind,
    ) {
        self.at_ns = self.at_ns.max(start_ns);
        let parent = self.frames.last();
        let in_checkpoint = parent.is_some_and(|parent| parent.role == FrameKind::Checkpoint);
        let cause = match cause {
            Some(StallCause::Python) | None => self.own,
            Some(cause) => cause,
        };
        let role = if in_checkpoint { FrameKind::Checkpoint } else { role };
        if matches!(role, FrameKind::Batch | FrameKind::Sample) {
            self.depth += 1;
            self.sample_depth += u32::from(role == FrameKind::Sample);
            self.busy_ns += measure(start_ns.max(self.busy_until_ns), end_ns);
            self.busy_until_ns = self.busy_until_ns.max(end_ns);
        }
        self.frames.push(Frame { end_ns, cause, role });
    }

    /// A thread that works for it is in a call.
    pub(crate) fn help(&mut self, end_ns: i64, cause: StallCause) {
        self.helped_until_ns = self.helped_until_ns.max(end_ns);
        self.helped_by = cause;
    }

    /// Adds up time until a moment.
    #[inline]
    pub(crate) fn advance(&mut self, to_ns: i64, window: &Window, items: &mut PendingBatches) {
        while let Some(top) = self.frames.last().copied() {
            self.spend(top.end_ns.min(to_ns), top, window, items);
            if top.end_ns > to_ns {
                return;
            }
            self.frames.pop();
            match top.role {
                FrameKind::Batch => {
                    self.depth -= 1;
                    self.pause(top.end_ns, window, items);
                    self.finish_item();
                }
                FrameKind::Sample => {
                    self.depth -= 1;
                    self.sample_depth -= 1;
                    self.pause(top.end_ns, window, items);
                }
                FrameKind::Part | FrameKind::Checkpoint => {}
            }
        }
    }

    #[inline]
    fn spend(&mut self, to_ns: i64, frame: Frame, window: &Window, items: &mut PendingBatches) {
        if frame.role == FrameKind::Checkpoint {
            self.at_ns = self.at_ns.max(to_ns);
        } else if frame.cause == self.own && self.helped_until_ns > self.at_ns {
            let until = self.helped_until_ns.min(to_ns);
            self.add(until, self.helped_by, window, items);
            self.add(to_ns, frame.cause, window, items);
        } else {
            self.add(to_ns, frame.cause, window, items);
        }
    }

    #[inline]
    fn add(&mut self, to_ns: i64, cause: StallCause, window: &Window, items: &mut PendingBatches) {
        let from_ns = self.at_ns;
        if from_ns >= to_ns {
            return;
        }
        self.at_ns = to_ns;
        let ns = measure(from_ns, to_ns);
        match items.get_mut(self.item) {
            Some(item) => item.parts[cause as usize] += ns,
            None => {
                self.loose[cause as usize] += ns;
                self.loose_since_ns.get_or_insert(from_ns);
            }
        }
        if to_ns > window.start_ns {
            self.turn_to(window);
            self.window[cause as usize] += window.inside_ns(from_ns, to_ns);
        }
    }

    fn turn_to(&mut self, window: &Window) {
        if self.window_number != window.number {
            self.window_number = window.number;
            self.window = [0; CAUSES];
            self.before = [0; CAUSES];
        }
    }

    /// What it did in the window since the batch began.
    fn since_before(&self) -> NsByCause {
        std::array::from_fn(|cause| self.window[cause] - self.before[cause])
    }

    /// Work on another batch begins. What was done in the window so far was for others.
    pub(crate) fn start_item(&mut self, number: u64, window: &Window, items: &mut PendingBatches) {
        self.turn_to(window);
        self.before = self.window;
        self.item = number;
        if let Some(item) = items.get_mut(number) {
            item.window_number = window.number;
            item.other_ns = self.before.iter().sum();
            item.round = self.rounds;
            item.is_first = self.batches == 0;
        }
        self.rounds += 1;
        self.batches += 1;
        self.forget_loose();
    }

    /// A batch is there at this moment: what was done since the last one was for it.
    pub(crate) fn mark_item(&mut self, number: u64, window: &Window, items: &mut PendingBatches) {
        self.turn_to(window);
        if let Some(item) = items.get_mut(number) {
            item.window_number = window.number;
            item.window = self.since_before();
            item.parts = self.loose;
            item.start_ns = self.loose_since_ns.unwrap_or(item.start_ns);
            item.round = self.rounds;
            item.is_first = self.batches == 0;
        }
        self.before = self.window;
        self.rounds += 1;
        self.batches += 1;
        self.forget_loose();
    }

    fn forget_loose(&mut self) {
        self.loose = [0; CAUSES];
        self.loose_since_ns = None;
    }

    /// The batch that it works on goes on: what was in between was its own time.
    pub(crate) fn resume(&mut self, at_ns: i64, window: &Window, items: &mut PendingBatches) {
        if self.frames.is_empty() {
            self.add(at_ns, self.own, window, items);
        }
    }

    /// So far its batch has come.
    fn pause(&mut self, at_ns: i64, window: &Window, items: &mut PendingBatches) {
        let Some(item) = items.get_mut(self.item) else { return };
        item.end_ns = item.end_ns.max(at_ns);
        item.ended_ns = at_ns;
        if self.window_number == window.number {
            item.window = self.since_before();
            item.window_number = window.number;
        }
    }

    /// The batch is done, or was taken.
    pub(crate) fn finish_item(&mut self) {
        self.before = self.window;
        self.item = NO_ITEM;
    }

    /// What it did in a window for the batch that it works on.
    pub(crate) fn window_of_item(&self, window: &Window) -> NsByCause {
        if self.window_number == window.number { self.since_before() } else { [0; CAUSES] }
    }

    /// All that it did in a window.
    pub(crate) fn window_of_all(&self, window: &Window) -> NsByCause {
        if self.window_number == window.number { self.window } else { [0; CAUSES] }
    }
}
