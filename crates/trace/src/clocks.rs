//! From ticks of recordings to nanoseconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use feedline_recorder::{ClockPair, Rate, Timebase};

/// Nanoseconds since 1970 now.
pub(crate) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The wall clock less the monotonic clock, now.
pub(crate) fn wall_offset_ns() -> i64 {
    let monotonic_ns = ClockPair::by_counter(false).monotonic_ns;
    wall_ns() - i64::try_from(monotonic_ns).unwrap_or(0)
}

/// The clocks of one boot of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    timebase: Timebase,
    /// One for all processes, so that what happened at once has the same time in the trace.
    wall_offset_ns: i64,
}

impl Clocks {
    pub(crate) fn new(wall_offset_ns: i64) -> Self {
        Self { timebase: Timebase::default(), wall_offset_ns }
    }

    pub(crate) fn add(&mut self, pair: ClockPair) {
        self.timebase.add(pair);
    }

    /// Nanoseconds since 1970 of a moment of the monotonic clock.
    pub(crate) fn wall_of(&self, monotonic_ns: u64) -> i64 {
        i64::try_from(monotonic_ns).unwrap_or(i64::MAX).saturating_add(self.wall_offset_ns)
    }

    /// Nanoseconds since 1970 at `ticks` of a process's clock.
    pub(crate) fn at(&self, ticks: u64, is_counter: bool) -> i64 {
        self.wall_of(if is_counter { self.timebase.monotonic_ns(ticks) } else { ticks })
    }

    /// A translation that is good around `ticks`.
    pub(crate) fn around(&self, ticks: u64, is_counter: bool) -> Translation {
        let rate = if is_counter { self.timebase.rate(ticks) } else { Rate::ONE };
        Translation { rate, wall_offset_ns: self.wall_offset_ns }
    }
}

/// Ticks to nanoseconds by one straight line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Translation {
    rate: Rate,
    wall_offset_ns: i64,
}

impl Translation {
    /// Whether the line holds at `ticks`.
    #[inline]
    pub(crate) fn holds(&self, ticks: u64) -> bool {
        self.rate.holds(ticks)
    }

    /// Nanoseconds since 1970.
    #[inline]
    pub(crate) fn at(&self, ticks: u64) -> i64 {
        self.rate.monotonic_ns(ticks).cast_signed().wrapping_add(self.wall_offset_ns)
    }

    /// Converts ticks to nanoseconds.
    #[inline]
    pub(crate) fn length(&self, ticks: u64) -> u64 {
        self.rate.length_ns(ticks)
    }
}
