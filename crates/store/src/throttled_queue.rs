//! The queue of a throttled store.
//!
//! The inner queue makes the calls and reports how long each took; this one works out when they would
//! have ended on the emulated storage. It models as many reads in flight as the queue is deep: a read
//! begins when another has ended, spends its latency in parallel with the others, and then takes its
//! slot and its bandwidth. Opens and size queries block the thread that makes them, as they do in the
//! inner queue. The caller gets its answer when the last read has ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::{Call, CallOutcome, Destination, ObjectRange, Op, RateLimiter, ReadQueue, Result};

/// Wraps a queue so that it obeys a rate limiter.
pub(crate) struct ThrottledQueue {
    inner: Box<dyn ReadQueue>,
    limiter: Arc<RateLimiter>,
    depth: usize,
}

impl ThrottledQueue {
    pub(crate) fn new(
        inner: Box<dyn ReadQueue>,
        limiter: Arc<RateLimiter>,
        depth: usize,
    ) -> ThrottledQueue {
        ThrottledQueue { inner, limiter, depth: depth.max(1) }
    }
}

impl ReadQueue for ThrottledQueue {
    fn read(
        &mut self,
        ranges: &[ObjectRange],
        to: Destination<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<u64> {
        let mut course = Course::new(&self.limiter, self.depth, seen);
        let result = self.inner.read(ranges, to, &mut |call| course.take(call));
        course.finish();
        result
    }
}

/// A read that is spending its latency; ordered by when it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    ready_ns: u64,
    began_ns: u64,
    call: Call,
}

/// The state of one call of [`ReadQueue::read`] on the emulated storage.
struct Course<'a> {
    limiter: &'a RateLimiter,
    seen: &'a mut dyn FnMut(Call),
    /// When slots of the queue become free. With `waiting`, as many as the queue is deep.
    free_ns: BinaryHeap<Reverse<u64>>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// When all calls so far have ended.
    end_ns: u64,
}

impl<'a> Course<'a> {
    fn new(limiter: &'a RateLimiter, depth: usize, seen: &'a mut dyn FnMut(Call)) -> Course<'a> {
        let free_ns = (0..depth).map(|_| Reverse(0)).collect();
        let waiting = BinaryHeap::with_capacity(depth);
        Course { limiter, seen, free_ns, waiting, end_ns: 0 }
    }

    /// A call of the inner queue has just ended.
    fn take(&mut self, call: Call) {
        let began_ns = self.limiter.now().saturating_sub(call.duration_ns);
        if call.op == Op::Read {
            self.begin_read(began_ns, call);
        } else {
            self.hold_up(began_ns, call);
        }
    }

    /// Begins a read in the slot that is free first.
    fn begin_read(&mut self, began_ns: u64, call: Call) {
        // A read that is not ready before the first slot is free does not end before that either.
        let first_free = |course: &Self| course.free_ns.peek().map_or(u64::MAX, |free| free.0);
        while self.waiting.peek().is_some_and(|Reverse(read)| read.ready_ns < first_free(self)) {
            self.place_next();
        }
        let Reverse(free_ns) = self.free_ns.pop().expect("a read with a known end leaves a slot");
        let began_ns = began_ns.max(free_ns);
        let ready_ns = began_ns.saturating_add(self.limiter.latency_ns());
        self.waiting.push(Reverse(Waiting { ready_ns, began_ns, call }));
    }

    /// Lets an open or a size query take its time.
    fn hold_up(&mut self, began_ns: u64, call: Call) {
        let latency_ns = self.limiter.latency_ns();
        let ready_ns = began_ns.saturating_add(latency_ns);
        self.place_until(ready_ns);
        self.limiter.sleep_until(ready_ns);
        let end_ns = self.limiter.place(ready_ns, 0).max(ready_ns.saturating_add(call.duration_ns));
        self.place_until(end_ns);
        self.limiter.finish(end_ns);
        self.end_ns = self.end_ns.max(end_ns);
        (self.seen)(Call { duration_ns: end_ns.saturating_sub(began_ns), ..call });
    }

    /// Schedules the read that is ready first, which gives it an end.
    fn place_next(&mut self) {
        let Some(Reverse(read)) = self.waiting.pop() else { return };
        let Waiting { ready_ns, began_ns, call } = read;
        self.limiter.sleep_until(ready_ns);
        let bytes = match call.outcome {
            CallOutcome::Done { bytes } => bytes,
            CallOutcome::Failed => 0,
        };
        let end_ns =
            self.limiter.place(ready_ns, bytes).max(ready_ns.saturating_add(call.duration_ns));
        self.free_ns.push(Reverse(end_ns));
        self.end_ns = self.end_ns.max(end_ns);
        let duration_ns = end_ns.saturating_sub(began_ns);
        (self.seen)(Call { duration_ns, ..call });
    }

    /// Schedules all reads that are ready by then.
    fn place_until(&mut self, until_ns: u64) {
        while self.waiting.peek().is_some_and(|Reverse(read)| read.ready_ns <= until_ns) {
            self.place_next();
        }
    }

    fn finish(&mut self) {
        self.place_until(u64::MAX);
        self.limiter.finish(self.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use feedline_clock::Clock;

    /// A queue that answers at once: an open, and a read of 1000 bytes per range.
    struct AtOnce;

    impl ReadQueue for AtOnce {
        fn read(
            &mut self,
            ranges: &[ObjectRange],
            _to: Destination<'_, '_>,
            seen: &mut dyn FnMut(Call),
        ) -> Result<u64> {
            let call = |op, range, bytes| {
                let (asked, outcome) = (bytes, CallOutcome::Done { bytes });
                Call { asked, outcome, ..Call::new(op, range) }
            };
            seen(call(Op::Open, 0, 0));
            (0..ranges.len()).for_each(|range| seen(call(Op::Read, range, 1000)));
            Ok(1000 * ranges.len() as u64)
        }
    }

    fn limiter(limit: &str, clock: &Clock) -> Arc<RateLimiter> {
        Arc::new(RateLimiter::new(Limit::parse(limit).unwrap(), clock.clone()))
    }

    /// Reads 1000 bytes `count` times; when that ended, and how long each call took.
    fn run(
        clock: &Clock,
        limiter: &Arc<RateLimiter>,
        depth: usize,
        count: usize,
    ) -> (u64, Vec<u64>) {
        let range = ObjectRange { key: "it".to_owned(), offset: 0, len: Some(1000) };
        let mut queue = ThrottledQueue::new(Box::new(AtOnce), Arc::clone(limiter), depth);
        let mut durations = Vec::new();
        let mut note = |call: Call| durations.push(call.duration_ns);
        let read = queue.read(&vec![range; count], Destination::Discard, &mut note);
        assert_eq!(read.unwrap(), 1000 * count as u64);
        (clock.now(), durations)
    }

    #[track_caller]
    fn check(limit: &str, depth: usize, count: usize, end_ns: u64, durations: &[u64]) {
        let clock = Clock::simulated();
        let found = run(&clock, &limiter(limit, &clock), depth, count);
        assert_eq!(found, (end_ns, durations.to_vec()), "{limit} at depth {depth}");
    }

    #[test]
    fn reads_under_way_together_spend_their_latency_together() {
        let us = 1_000;
        check("10us", 4, 8, 30 * us, &[10 * us; 9]);
        check("10us", 1, 3, 40 * us, &[10 * us; 4]);
        check("10us", 0, 3, 40 * us, &[10 * us; 4]);
        check("10us", 16, 3, 20 * us, &[10 * us; 4]);
    }

    #[test]
    fn they_share_the_rates() {
        // The open takes no bytes; all reads of a byte a nanosecond want them at 0, in their turn of
        // four: the fifth begins when the first ends, at 1000, and ends at 5000.
        let durations = [0, 1_000, 2_000, 3_000, 4_000, 4_000, 4_000, 4_000, 4_000];
        check("1GB/s", 4, 8, 8_000, &durations);
        // Places of a microsecond, the first of them for the open; four reads begin at 1000.
        let durations = [1_000, 1_000, 2_000, 3_000, 4_000, 4_000, 4_000];
        check("1Miops", 4, 6, 7_000, &durations);
    }

    #[test]
    fn latency_and_rates_add_up() {
        // The open ends at 10 us. Four reads are ready at 20 and end at 21, 22, 23, 24; the others
        // begin at these times, are ready 10 us later and find the bandwidth free.
        let durations = [10, 11, 12, 13, 14, 11, 11, 11, 11].map(|us| us * 1_000);
        check("1GB/s,10us", 4, 8, 35_000, &durations);
    }

    #[test]
    fn two_queues_do_not_wait_for_each_others_latency() {
        // Depth 1. Both are ready at 20 us and end at 21 and 22; again at 31 and 32, ending at 32 and
        // 33; then at 43 and 44. One after the other they would take 43 + 33.
        let clock = Clock::simulated();
        let limiter = limiter("1GB/s,10us", &clock);
        let ends = std::sync::Mutex::new(Vec::new());
        clock.scope(|scope| {
            for _ in 0..2 {
                let queue = || {
                    let (end_ns, _) = run(&clock, &limiter, 1, 3);
                    ends.lock().unwrap().push(end_ns);
                };
                scope.spawn("queue".to_owned(), queue).unwrap();
            }
        });
        let mut ends = ends.into_inner().unwrap();
        ends.sort_unstable();
        assert_eq!(ends, [43_000, 44_000]);
    }
}
