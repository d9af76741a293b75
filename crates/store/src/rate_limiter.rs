//! When an operation on emulated storage may end.
//!
//! An operation passes three stages. First its latency, as on a longer path to the storage: it delays
//! no other operation. Then it takes a slot among all operations: with n operations per second, slots
//! are 1/n s long and do not overlap. From the beginning of its slot on, its bytes occupy the bandwidth
//! for as long as they need; reads and writes share it, and do not overlap there either. Slots are
//! assigned in the order in which latencies end.
//!
//! A limit means *not faster than*: the storage itself works meanwhile, and the operation ends with
//! the latest of its own work, its slot and its transfer. So a single operation takes 1/n s, or
//! bytes/rate, and the mean over a whole run never exceeds a limit, however many threads there are.
//!
//! Idle time earns no credit, so storage that rests is not faster afterwards. One loss is compensated:
//! the system wakes threads somewhat late (commonly 0.06 ms), which would slow the emulated storage
//! further. Later operations may begin their slots earlier by the time lost, up to [`MADE_GOOD_NS`] in
//! total, and never before the end of the last slot.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use feedline_clock::Clock;

use crate::Limit;
use crate::lock::lock;

/// Bound on the time compensated for late wake-ups, and so on a burst: what the limit allows in a
/// millisecond.
const MADE_GOOD_NS: u64 = 1_000_000;

const SECOND_NS: u128 = 1_000_000_000;

/// Enforces a [`Limit`]. Stores that share it share its rates.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Clock,
    limit: Limit,
    seed: u64,
    stop: Arc<AtomicBool>,
    calls: AtomicU64,
    schedule: Mutex<Schedule>,
}

impl RateLimiter {
    /// Enforces `limit` on all that share it.
    pub fn new(limit: Limit, clock: Clock) -> RateLimiter {
        let schedule = Mutex::new(Schedule::new(&limit, 1, 1));
        RateLimiter {
            clock,
            limit,
            seed: 0,
            stop: Arc::default(),
            calls: AtomicU64::new(0),
            schedule,
        }
    }

    /// Takes share `part` of `of` equal shares of the rates, for one of several processes that obey the
    /// limit together. Latencies stay what they are.
    #[must_use]
    pub fn with_share(self, part: NonZeroU32, of: NonZeroU32) -> RateLimiter {
        let schedule = Mutex::new(Schedule::new(&self.limit, part.get(), of.get()));
        RateLimiter { schedule, ..self }
    }

    /// Draws latencies from another seed.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> RateLimiter {
        RateLimiter { seed, ..self }
    }

    /// Stops delaying operations once `stop` is set, so that a run that is asked to end does so.
    #[must_use]
    pub fn with_stop(self, stop: Arc<AtomicBool>) -> RateLimiter {
        RateLimiter { stop, ..self }
    }

    /// Makes a call that moves `bytes`, at the limited rate.
    pub(crate) fn call<T>(&self, bytes: usize, call: impl FnOnce() -> T) -> T {
        let ready_ns = self.clock.now().saturating_add(self.latency_ns());
        self.sleep_until(ready_ns);
        let end_ns = self.place(ready_ns, bytes as u64);
        let result = call();
        self.finish(end_ns);
        result
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Draws the latency of the next operation.
    pub(crate) fn latency_ns(&self) -> u64 {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        self.limit.latency.map_or(0, |latency| latency.draw(self.seed, number))
    }

    /// Assigns a slot to an operation whose latency ended at `ready_ns`, and returns when it ends. Must
    /// not be called before then: slots that begin later would be in the way of others.
    pub(crate) fn place(&self, ready_ns: u64, bytes: u64) -> u64 {
        self.schedule().place(ready_ns, bytes)
    }

    pub(crate) fn sleep_until(&self, at_ns: u64) {
        let now_ns = self.clock.now();
        if at_ns > now_ns {
            self.clock.sleep_unless(at_ns - now_ns, &self.stop);
        }
    }

    /// Waits for the end of a slot.
    pub(crate) fn finish(&self, end_ns: u64) {
        if end_ns > self.clock.now() {
            self.sleep_until(end_ns);
            let late_ns = self.clock.now().saturating_sub(end_ns);
            self.schedule().lose(late_ns);
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        lock(&self.schedule)
    }
}

/// The slots and the bandwidth taken so far.
#[derive(Debug)]
struct Schedule {
    ops: Option<Lane>,
    bytes: Option<Lane>,
    /// Time lost by waking late that was not compensated yet.
    lost_ns: u64,
}

impl Schedule {
    fn new(limit: &Limit, part: u32, of: u32) -> Schedule {
        let lane = |rate: u64| Lane {
            unit_ns: SECOND_NS * u128::from(of),
            divisor: u128::from(rate) * u128::from(part),
            next_ns: 0,
            carry: 0,
        };
        let (ops, bytes) = (limit.ops_per_s.map(lane), limit.bytes_per_s.map(lane));
        Schedule { ops, bytes, lost_ns: 0 }
    }

    fn place(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        let (mut start_ns, mut end_ns) = (ready_ns, ready_ns);
        if let Some(ops) = &mut self.ops {
            start_ns = ops.start(ready_ns, &mut self.lost_ns);
            end_ns = ops.take(1);
        }
        if let Some(lane) = self.bytes.as_mut().filter(|_| bytes > 0) {
            lane.start(start_ns, &mut self.lost_ns);
            end_ns = end_ns.max(lane.take(bytes));
        }
        end_ns
    }

    fn lose(&mut self, late_ns: u64) {
        self.lost_ns = self.lost_ns.saturating_add(late_ns).min(MADE_GOOD_NS);
    }
}

/// A resource that one operation has at a time.
#[derive(Debug)]
struct Lane {
    /// A unit takes `unit_ns / divisor` nanoseconds.
    unit_ns: u128,
    divisor: u128,
    /// Until when it is taken, rounded down, and by how many parts of a nanosecond more.
    next_ns: u64,
    carry: u128,
}

impl Lane {
    /// Where the next slot begins: at `ready_ns` if it is free then, or earlier by the time lost.
    fn start(&mut self, ready_ns: u64, lost_ns: &mut u64) -> u64 {
        if ready_ns > self.next_ns {
            let made_good_ns = (ready_ns - self.next_ns).min(*lost_ns);
            *lost_ns -= made_good_ns;
            let start_ns = ready_ns - made_good_ns;
            if start_ns > self.next_ns {
                (self.next_ns, self.carry) = (start_ns, 0);
            }
        }
        self.next_ns
    }

    /// Reserves it for `units` units from then on; returns when that ends, rounded up.
    fn take(&mut self, units: u64) -> u64 {
        let parts = self.carry + u128::from(units) * self.unit_ns;
        let whole_ns = u64::try_from(parts / self.divisor).unwrap_or(u64::MAX);
        self.next_ns = self.next_ns.saturating_add(whole_ns);
        self.carry = parts % self.divisor;
        self.next_ns.saturating_add(u64::from(self.carry > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(limit: &str, part: u32, of: u32) -> Schedule {
        Schedule::new(&Limit::parse(limit).unwrap(), part, of)
    }

    #[test]
    fn places_follow_each_other_and_save_nothing_up() {
        let mut schedule = schedule("1GB/s", 1, 1);
        // A byte a nanosecond; the third comes after a rest of 400 ns and gains nothing by it.
        let ends = [(0, 100), (50, 100), (600, 100), (600, 0), (600, 1)]
            .map(|(ready_ns, bytes)| schedule.place(ready_ns, bytes));
        assert_eq!(ends, [100, 200, 700, 600, 701]);
    }

    #[test]
    fn fractions_of_a_nanosecond_add_up() {
        let mut schedule = schedule("3GB/s", 1, 1);
        let ends = [1, 1, 1, 1, 3].map(|bytes| schedule.place(0, bytes));
        assert_eq!(ends, [1, 1, 1, 2, 3], "7 bytes end at 2 1/3 ns");
        let mut schedule = self::schedule("3iops", 1, 1);
        let ends = [0; 3].map(|bytes| schedule.place(0, bytes));
        assert_eq!(ends, [333_333_334, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn an_operation_ends_with_the_later_of_its_place_and_its_bytes() {
        // Places of 100 ns, 0.5 bytes a ns.
        let mut schedule = schedule("500MB/s,10Miops", 1, 1);
        // Small: 10 bytes take 20 ns of a place of 100. Large: 100 bytes take 200 ns from the
        // beginning of the place on. Then the bandwidth is the queue: 320, but the place ends at 300.
        let ends = [10, 100, 10, 0].map(|bytes| schedule.place(0, bytes));
        assert_eq!(ends, [100, 300, 320, 400]);
    }

    #[test]
    fn a_share_is_that_part_of_the_rates() {
        let mut third = schedule("3GB/s", 1, 3);
        assert_eq!([third.place(0, 100), third.place(0, 100)], [100, 200]);
        let mut two_thirds = schedule("3GB/s,30Miops", 2, 3);
        assert_eq!([two_thirds.place(0, 100), two_thirds.place(0, 300)], [50, 200]);
    }

    #[test]
    fn what_was_lost_by_waking_late_is_made_good_once() {
        let mut schedule = schedule("1GB/s", 1, 1);
        assert_eq!(schedule.place(0, 100), 100);
        schedule.lose(30);
        // Woken at 130: as if it were 100. Then a rest of 500 ns; nothing is left of the 30.
        assert_eq!(schedule.place(130, 100), 200);
        assert_eq!(schedule.place(700, 100), 800);
        // A backlog loses nothing, so the time stays to be made good, within its bound.
        schedule.lose(MADE_GOOD_NS);
        schedule.lose(20);
        assert_eq!(schedule.place(750, 100), 900);
        // From here on places end in the past: no operation waits until the lost time is made good. None
        // begins before the end of the last.
        let mut place = |ready_ns, bytes| {
            assert_eq!(schedule.place(ready_ns, bytes), ready_ns);
            (schedule.bytes.as_ref().unwrap().next_ns, schedule.lost_ns)
        };
        assert_eq!(place(950, 10), (910, MADE_GOOD_NS - 50));
        assert_eq!(place(5_000_000, 10), (4_000_060, 0));
    }
}
