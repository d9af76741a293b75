//! Counters of what a thread asked of its store and how long it took.

use hdrhistogram::Histogram;

use crate::Op;

/// Two digits of a latency are kept: 35 KiB a histogram even if one operation took an hour.
const LATENCY_DIGITS: u8 = 2;

/// What one thread did; merged when the threads are done.
#[derive(Debug, Clone)]
pub struct Meter {
    ops: [OpMeter; Op::ALL.len()],
}

/// What one thread did of one kind.
#[derive(Debug, Clone)]
pub struct OpMeter {
    /// Calls, those that failed included.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Bytes moved by calls that did not fail.
    pub bytes: u64,
    /// Time in all calls; those that a queue had under way together count one by one.
    pub busy_ns: u64,
    /// Time in each call, in ns, those that failed included.
    pub latency_ns: Histogram<u64>,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// It did what it was asked for.
    Well {
        /// Bytes it moved.
        bytes: u64,
    },
    /// It failed.
    Badly,
}

impl Meter {
    /// The account of one kind of operation.
    pub fn op(&self, op: Op) -> &OpMeter {
        &self.ops[op as usize]
    }

    /// Time in storage, all kinds together.
    pub fn busy_ns(&self) -> u64 {
        self.ops.iter().map(|op| op.busy_ns).sum()
    }

    /// Adds what another thread did.
    pub fn merge(&mut self, other: &Meter) {
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.calls += theirs.calls;
            mine.errors += theirs.errors;
            mine.bytes += theirs.bytes;
            mine.busy_ns += theirs.busy_ns;
            let added = mine.latency_ns.add(&theirs.latency_ns);
            added.expect("a histogram without an upper limit takes every value");
        }
    }

    pub(crate) fn record(&mut self, op: Op, duration_ns: u64, ended: Ended) {
        let meter = &mut self.ops[op as usize];
        meter.calls += 1;
        meter.busy_ns += duration_ns;
        match ended {
            Ended::Well { bytes } => meter.bytes += bytes,
            Ended::Badly => meter.errors += 1,
        }
        let recorded = meter.latency_ns.record(duration_ns);
        recorded.expect("a histogram without an upper limit takes every value");
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter { ops: std::array::from_fn(|_| OpMeter::default()) }
    }
}

impl Default for OpMeter {
    fn default() -> OpMeter {
        let latency_ns = Histogram::new(LATENCY_DIGITS).expect("two digits are within its limits");
        OpMeter { calls: 0, errors: 0, bytes: 0, busy_ns: 0, latency_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_meters_count_both() {
        let mut first = Meter::default();
        first.record(Op::Read, 1_000, Ended::Well { bytes: 10 });
        first.record(Op::Open, 50, Ended::Well { bytes: 0 });
        let mut second = Meter::default();
        second.record(Op::Read, 3_000, Ended::Well { bytes: 30 });
        second.record(Op::Read, 7_000, Ended::Badly);
        first.merge(&second);

        let read = first.op(Op::Read);
        assert_eq!((read.calls, read.errors, read.bytes, read.busy_ns), (3, 1, 40, 11_000));
        assert_eq!(read.latency_ns.len(), 3);
        assert!((2_980..=3_020).contains(&read.latency_ns.value_at_quantile(0.5)));
        assert_eq!(first.busy_ns(), 11_050);
        assert_eq!(first.op(Op::Write).calls, 0);
    }

    #[test]
    fn every_kind_has_its_own_account() {
        let mut meter = Meter::default();
        for (calls, op) in Op::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, calls);
            meter.record(op, 1, Ended::Badly);
        }
        assert!(Op::ALL.iter().all(|&op| meter.op(op).calls == 1));
    }
}
