//! Bytes per second and calls in flight, over all calls of a process.
//!
//! Time is cut into equal bins, and a call counts in every bin that it touches, by the part of it
//! that lies there.

use feedline_recorder::Class;

use crate::event::{Event, EventKind};
use crate::field_names::op_info;

/// Bins of all processes together.
const BINS: u64 = 4 << 20;
const SHORTEST_BIN_NS: u64 = 1_000_000;

/// How time is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bins {
    origin_ns: i64,
    width_ns: u64,
    count: usize,
}

impl Bins {
    pub(crate) fn new(origin_ns: i64, end_ns: i64, processes: usize) -> Self {
        let span_ns = end_ns.abs_diff(origin_ns).max(1);
        let most = (BINS / (processes as u64).max(1)).clamp(64, 4_096);
        let width_ns = span_ns.div_ceil(most).max(SHORTEST_BIN_NS);
        let count = usize::try_from(span_ns / width_ns + 1).unwrap_or(1);
        Self { origin_ns, width_ns, count }
    }

    pub(crate) fn start_ns(&self, bin: usize) -> i64 {
        self.origin_ns.saturating_add_unsigned(self.width_ns * bin as u64)
    }
}

/// A quantity over time. Long calls are added in constant time: what they add to all bins in the
/// middle is kept as a difference.
#[derive(Clone, Debug, Default)]
struct Series {
    own: Vec<f64>,
    differences: Vec<f64>,
}

impl Series {
    /// Adds `amount`, spread evenly over the time of a call; what lies outside of the bins is left out.
    #[expect(clippy::cast_precision_loss, reason = "means of many calls")]
    fn add(&mut self, bins: &Bins, event: &Event, amount: f64) {
        if self.own.is_empty() {
            (self.own, self.differences) = (vec![0.0; bins.count], vec![0.0; bins.count + 1]);
        }
        let width = bins.width_ns as f64;
        let from = (i128::from(event.start_ns) - i128::from(bins.origin_ns)) as f64 / width;
        let length = event.duration_ns as f64 / width;
        let end = bins.count as f64;
        let (first, last) = (from.max(0.0), (from + length).min(end));
        if length == 0.0 {
            if (0.0..end).contains(&from) {
                self.own[whole(from)] += amount;
            }
            return;
        }
        if first >= last {
            return;
        }
        let per_bin = amount / length;
        let (low, high) = (whole(first), whole(last).min(bins.count - 1));
        if low == high {
            self.own[low] += per_bin * (last - first);
            return;
        }
        self.own[low] += per_bin * (low as f64 + 1.0 - first);
        self.own[high] += per_bin * (last - high as f64);
        self.differences[low + 1] += per_bin;
        self.differences[high] -= per_bin;
    }

    /// The amount in every bin.
    fn values(&self) -> impl Iterator<Item = f64> {
        let mut level = 0.0;
        self.own.iter().zip(&self.differences).map(move |(own, difference)| {
            level += difference;
            own + level
        })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the bins")]
fn whole(position: f64) -> usize {
    position as usize
}

/// The counters of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    read: Series,
    written: Series,
    in_flight: Series,
}

/// Names and units, in the order of [`Traffic::rates`].
pub(crate) const RATES: [(&str, &str); 3] =
    [("bytes read", "B/s"), ("bytes written", "B/s"), ("calls in flight", "calls")];

impl Traffic {
    #[expect(clippy::cast_precision_loss, reason = "means of many calls")]
    pub(crate) fn add(&mut self, bins: &Bins, event: &Event, name: &str) {
        if !matches!(event.kind, EventKind::Call | EventKind::Summary) {
            return;
        }
        let moved = event.result.filter(|result| *result > 0).unwrap_or(0) as f64;
        let class = op_info(name).map(|facts| facts.class);
        if matches!(class, Some(Class::Read | Class::Copy)) {
            self.read.add(bins, event, moved);
        }
        if matches!(class, Some(Class::Write | Class::Copy)) {
            self.written.add(bins, event, moved);
        }
        self.in_flight.add(bins, event, event.duration_ns as f64);
    }

    /// What each counter is in each bin: bytes per second, and the mean of calls in flight.
    #[expect(clippy::cast_precision_loss, reason = "means of many calls")]
    pub(crate) fn rates(&self, bins: &Bins) -> [Vec<f64>; 3] {
        let (width, second) = (bins.width_ns as f64, 1e9);
        [
            self.read.values().map(|bytes| bytes * second / width).collect(),
            self.written.values().map(|bytes| bytes * second / width).collect(),
            self.in_flight.values().map(|ns| ns / width).collect(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn read(start_ms: i64, duration_ms: u64, bytes: i64) -> Event {
        Event {
            start_ns: start_ms * MS.cast_signed(),
            duration_ns: duration_ms * MS,
            result: Some(bytes),
            ..Event::default()
        }
    }

    #[test]
    fn a_call_counts_in_every_bin_that_it_touches() {
        let bins = Bins::new(0, 4 * MS.cast_signed(), 1);
        assert_eq!((bins.width_ns, bins.count), (MS, 5));
        let mut traffic = Traffic::default();
        // 4000 bytes from 0 to 4 ms, and 600 more in the second millisecond.
        traffic.add(&bins, &read(0, 4, 4_000), "read");
        traffic.add(&bins, &read(1, 1, 600), "pread64");
        traffic.add(&bins, &read(2, 0, 7), "write");
        let [read, written, in_flight] = traffic.rates(&bins);
        assert_eq!(read, [1e6, 1.6e6, 1e6, 1e6, 0.0]);
        assert_eq!(written, [0.0, 0.0, 7_000.0, 0.0, 0.0]);
        assert_eq!(in_flight, [1.0, 2.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let bins = Bins::new(10 * MS.cast_signed(), 11 * MS.cast_signed(), 1);
        let mut traffic = Traffic::default();
        traffic.add(&bins, &read(9, 2, 2_000), "read");
        traffic.add(&bins, &read(1, 1, 5), "read");
        assert_eq!(traffic.rates(&bins)[0], [1e6, 0.0]);
    }
}
