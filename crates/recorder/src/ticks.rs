//! The clock of records: the processor's time stamp counter where the kernel itself trusts it, else
//! the monotonic clock.
//!
//! Reading the counter costs 13 ns, asking for the monotonic clock 32 (measured in a virtual machine),
//! and each call is timed twice. Ticks become nanoseconds when a trace is drained, by the pairs of both
//! clocks that processes, segments and the drainer leave behind.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::os;

static COUNTER: AtomicBool = AtomicBool::new(false);

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClockPair {
    /// Reading of the tick counter.
    pub ticks: u64,
    /// Nanoseconds of the monotonic clock.
    pub monotonic_ns: u64,
}

impl ClockPair {
    /// Reads both clocks.
    pub fn now() -> Self {
        Self::read(now)
    }

    /// Both clocks now, for readers of recordings that were made with or without the counter: this
    /// process itself need not record.
    pub fn by_counter(is_counter: bool) -> Self {
        Self::read(if is_counter { counter } else { os::monotonic_ns })
    }

    /// Ticks are read on both sides of the other clock. A thread that had to wait for a processor between
    /// them would be milliseconds off, so the closest of three readings counts.
    fn read(ticks: fn() -> u64) -> Self {
        let readings = [(); 3].map(|()| {
            let before = ticks();
            let monotonic_ns = os::monotonic_ns();
            let apart = ticks().saturating_sub(before);
            (apart, Self { ticks: before + apart / 2, monotonic_ns })
        });
        let [first, second, third] = readings;
        let closer = |a: (u64, Self), b: (u64, Self)| if b.0 < a.0 { b } else { a };
        closer(closer(first, second), third).1
    }
}

/// Ticks now: of the processor's counter where this process uses it, otherwise nanoseconds of the
/// monotonic clock.
#[inline]
pub fn now() -> u64 {
    if COUNTER.load(Ordering::Relaxed) { counter() } else { os::monotonic_ns() }
}

/// Chooses the clock of this process; the same for all processes of a machine.
pub(crate) fn use_counter(yes: bool) {
    COUNTER.store(yes, Ordering::Relaxed);
}

/// Whether ticks are the counter's.
#[inline]
pub(crate) fn is_counter() -> bool {
    COUNTER.load(Ordering::Relaxed)
}

/// Whether the kernel keeps its own time by the counter, which it does only if the counters of all
/// processors go alike and never stop.
pub fn is_counter_trusted() -> bool {
    let mut text = [0; 16];
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64")
        && os::read_file(path, &mut text).is_some_and(|length| text[..length].starts_with(b"tsc"))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the counter; where a program may not read it the kernel does
    // not name it as its clock.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    os::monotonic_ns()
}

/// Ticks of one machine to nanoseconds of its monotonic clock, by straight lines between pairs.
#[derive(Clone, Debug, Default)]
pub struct Timebase {
    pairs: Vec<ClockPair>,
}

/// Pairs that are closer together say more about the reading of clocks than about their rates.
const APART_NS: u64 = 1_000_000_000;

impl Timebase {
    /// Takes a pair into account. Pairs between others that are less than a second apart are left out,
    /// but for the first and the last one.
    pub fn add(&mut self, pair: ClockPair) {
        let at = self.pairs.partition_point(|other| other.ticks < pair.ticks);
        if self.pairs.get(at) == Some(&pair) {
            return;
        }
        self.pairs.insert(at, pair);
        let near =
            |a: &ClockPair, b: &ClockPair| b.monotonic_ns.saturating_sub(a.monotonic_ns) < APART_NS;
        // The one that stopped being the first or the last, or the new one between others.
        let last = self.pairs.len() - 1;
        let between = match at {
            0 => 1,
            _ if at == last => last - 1,
            _ => at,
        };
        if between == 0 || between >= last {
            return;
        }
        let (before, this) = (&self.pairs[between - 1], &self.pairs[between]);
        if near(before, this) || (at != last && near(this, &self.pairs[between + 1])) {
            self.pairs.remove(between);
        }
    }

    /// Whether both clocks are known at two moments at least.
    pub fn is_settled(&self) -> bool {
        self.pairs.len() > 1
    }

    /// The line on which `ticks` lie, for those who translate many.
    pub fn rate(&self, ticks: u64) -> Rate {
        let Some(last) = self.pairs.len().checked_sub(2) else {
            let pair = self.pairs.first().copied().unwrap_or_default();
            return Rate { from: pair, ..Rate::ONE };
        };
        let after = self.pairs.partition_point(|pair| pair.ticks <= ticks);
        let line = after.saturating_sub(1).min(last);
        let (from, to) = (self.pairs[line], self.pairs[line + 1]);
        let rise = to.monotonic_ns.saturating_sub(from.monotonic_ns);
        let run = to.ticks.saturating_sub(from.ticks).max(1);
        let least = if line == 0 { 0 } else { from.ticks };
        let most = if line == last { u64::MAX } else { to.ticks };
        let per_tick = (u128::from(rise) << 32) / u128::from(run);
        Rate { from, per_tick: u64::try_from(per_tick).unwrap_or(u64::MAX), least, most }
    }

    /// Nanoseconds of the monotonic clock at `ticks`. Before the first and after the last pair the
    /// nearest line goes on; with less than two pairs ticks count as nanoseconds.
    pub fn monotonic_ns(&self, ticks: u64) -> u64 {
        let Some(last) = self.pairs.len().checked_sub(2) else {
            let pair = self.pairs.first().copied().unwrap_or_default();
            return pair.monotonic_ns.wrapping_add(ticks.wrapping_sub(pair.ticks));
        };
        let after = self.pairs.partition_point(|pair| pair.ticks <= ticks);
        let line = after.saturating_sub(1).min(last);
        let (from, to) = (self.pairs[line], self.pairs[line + 1]);
        let rise = i128::from(to.monotonic_ns) - i128::from(from.monotonic_ns);
        let run = (i128::from(to.ticks) - i128::from(from.ticks)).max(1);
        let along = i128::from(ticks) - i128::from(from.ticks);
        let ns = i128::from(from.monotonic_ns) + along * rise / run;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// A straight line of a [`Timebase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    from: ClockPair,
    /// Nanoseconds a tick, times 2^32.
    per_tick: u64,
    least: u64,
    most: u64,
}

impl Rate {
    /// Ticks that are nanoseconds.
    pub const ONE: Self = Self {
        from: ClockPair { ticks: 0, monotonic_ns: 0 },
        per_tick: 1 << 32,
        least: 0,
        most: u64::MAX,
    };

    /// Whether this is the line for `ticks`.
    #[inline]
    pub fn holds(&self, ticks: u64) -> bool {
        self.least <= ticks && ticks <= self.most
    }

    /// Nanoseconds of the monotonic clock at `ticks`.
    #[inline]
    pub fn monotonic_ns(&self, ticks: u64) -> u64 {
        match ticks.checked_sub(self.from.ticks) {
            Some(after) => self.from.monotonic_ns.wrapping_add(self.length_ns(after)),
            None => {
                let before = self.length_ns(self.from.ticks - ticks);
                self.from.monotonic_ns.saturating_sub(before)
            }
        }
    }

    /// Converts ticks to nanoseconds.
    #[inline]
    pub fn length_ns(&self, ticks: u64) -> u64 {
        // What does not fit is later than any clock.
        ((u128::from(ticks) * u128::from(self.per_tick)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ticks: u64, monotonic_ns: u64) -> ClockPair {
        ClockPair { ticks, monotonic_ns }
    }

    #[test]
    fn time_goes_in_straight_lines_between_pairs_and_beyond_them() {
        let mut base = Timebase::default();
        for (ticks, ns) in
            [(10_000, 5_000_000_000), (30_000, 9_000_000_000), (20_000, 7_000_000_000)]
        {
            base.add(pair(ticks, ns));
        }
        for (ticks, ns) in [
            (10_000, 5_000_000_000),
            (15_000, 6_000_000_000),
            (25_000, 8_000_000_000),
            (40_000, 11_000_000_000),
            (0, 3_000_000_000),
        ] {
            assert_eq!(base.monotonic_ns(ticks), ns, "{ticks}");
        }
    }

    #[test]
    fn rates_are_the_lines_of_their_timebase() {
        let mut base = Timebase::default();
        for second in 0..4 {
            // A counter of 2.5 GHz whose rate changes a little.
            base.add(pair(second * 2_500_000_000 + second * second * 100, second * 1_000_000_000));
        }
        for ticks in [0, 1, 77, 2_500_000_100, 3_000_000_000, 7_000_000_000, 20_000_000_000] {
            let rate = base.rate(ticks);
            assert!(rate.holds(ticks));
            // 2^-32 of the distance from the pair, and two roundings.
            assert!(rate.monotonic_ns(ticks).abs_diff(base.monotonic_ns(ticks)) <= 4, "{ticks}");
        }
        assert!(!base.rate(1).holds(3_000_000_000));
        assert_eq!(Rate::ONE.monotonic_ns(12_345), 12_345);
        assert_eq!(Timebase::default().rate(7).monotonic_ns(7), 7);
    }

    #[test]
    fn pairs_close_together_make_way_for_the_first_and_the_last() {
        let mut base = Timebase::default();
        for index in 0..100 {
            base.add(pair(index * 1000, index * 100_000_000));
        }
        assert_eq!(base.pairs.len(), 11, "{:?}", base.pairs);
        assert_eq!(base.pairs.first(), Some(&pair(0, 0)));
        assert_eq!(base.pairs.last(), Some(&pair(99_000, 9_900_000_000)));
    }

    #[test]
    fn a_single_pair_takes_ticks_for_nanoseconds() {
        let mut base = Timebase::default();
        assert!(!base.is_settled());
        assert_eq!(base.monotonic_ns(42), 42);
        base.add(pair(100, 1000));
        assert_eq!(base.monotonic_ns(142), 1042);
        assert_eq!(base.monotonic_ns(90), 990);
    }
}
