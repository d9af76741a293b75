//! Counters of what a thread asked of its store and how long it took.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::Op;
use crate::request_count::RequestCount;

/// Two digits of a latency are kept: 35 KiB per histogram even if one operation took an hour.
const LATENCY_DIGITS: u8 = 2;

/// Counters of one thread, by kind of operation; merged when the threads are done.
#[derive(Debug, Clone)]
pub struct Meter {
    ops: [OpMeter; Op::ALL.len()],
}

/// Counters of one kind of operation.
#[derive(Debug, Clone)]
pub struct OpMeter {
    /// Calls, including those that failed.
    pub calls: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// Bytes moved by calls that did not fail.
    pub bytes: u64,
    /// Time in all calls; concurrent reads of a queue count separately.
    pub busy_ns: u64,
    /// Time per call in ns, including calls that failed.
    pub latency_ns: Histogram<u64>,
    /// Sizes that the calls asked for, which may be more than they moved.
    pub asked: AskedSizes,
    /// Requests sent over a network, including retries; 0 for file systems.
    pub requests: u64,
    /// Requests that retried a failed one.
    pub retries: u64,
}

/// How often each size was asked for. Readers use few distinct sizes; past [`AskedSizes::EXACT`] of
/// them, a new one counts as the next power of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedSizes {
    counts: BTreeMap<u64, u64>,
}

impl AskedSizes {
    /// The number of distinct sizes that are counted exactly.
    pub const EXACT: usize = 128;

    /// Sizes and the number of calls that asked for each, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|(&bytes, &calls)| (bytes, calls))
    }

    /// The quantile `share` of the sizes of all calls; `None` without calls.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let total: u64 = self.counts.values().sum();
        let rank = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        self.iter().find_map(|(bytes, calls)| {
            seen += calls;
            (seen >= rank).then_some(bytes)
        })
    }

    fn add(&mut self, bytes: u64, calls: u64) {
        let is_known = self.counts.len() < Self::EXACT || self.counts.contains_key(&bytes);
        let bytes = if is_known { bytes } else { bytes.next_power_of_two() };
        *self.counts.entry(bytes).or_default() += calls;
    }
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOutcome {
    /// The call succeeded.
    Done {
        /// Bytes it moved; 0 for calls that move none.
        bytes: u64,
    },
    /// The call returned an error; bytes it may have moved do not count.
    Failed,
}

impl Meter {
    /// The counters of one kind of operation.
    pub fn op(&self, op: Op) -> &OpMeter {
        &self.ops[op as usize]
    }

    /// Time in storage, over all kinds of operations.
    pub fn busy_ns(&self) -> u64 {
        self.ops.iter().map(|op| op.busy_ns).sum()
    }

    /// Adds the counters of another thread.
    pub fn merge(&mut self, other: &Meter) {
        for (mine, theirs) in self.ops.iter_mut().zip(&other.ops) {
            mine.calls += theirs.calls;
            mine.errors += theirs.errors;
            mine.bytes += theirs.bytes;
            mine.busy_ns += theirs.busy_ns;
            mine.requests += theirs.requests;
            mine.retries += theirs.retries;
            theirs.asked.iter().for_each(|(bytes, calls)| mine.asked.add(bytes, calls));
            let added = mine.latency_ns.add(&theirs.latency_ns);
            added.expect("a histogram without an upper limit takes every value");
        }
    }

    /// Encodes the meter for another process; [`Meter::from_words`] decodes it.
    pub fn to_words(&self) -> Vec<u64> {
        let mut words = Vec::new();
        for op in &self.ops {
            words.extend([op.calls, op.errors, op.bytes, op.busy_ns, op.requests, op.retries]);
            let place = words.len();
            words.push(0);
            for step in op.latency_ns.iter_recorded() {
                words.extend([step.value_iterated_to(), step.count_at_value()]);
                words[place] += 1;
            }
            words.push(op.asked.counts.len() as u64);
            words.extend(op.asked.iter().flat_map(|(bytes, calls)| [bytes, calls]));
        }
        words
    }

    /// Decodes what [`Meter::to_words`] encoded; `None` if it did not.
    pub fn from_words(words: &[u64]) -> Option<Meter> {
        let mut meter = Meter::default();
        let mut words = words.iter().copied();
        for op in &mut meter.ops {
            (op.calls, op.errors) = (words.next()?, words.next()?);
            (op.bytes, op.busy_ns) = (words.next()?, words.next()?);
            (op.requests, op.retries) = (words.next()?, words.next()?);
            for _ in 0..words.next()? {
                op.latency_ns.record_n(words.next()?, words.next()?).ok()?;
            }
            for _ in 0..words.next()? {
                op.asked.counts.insert(words.next()?, words.next()?);
            }
        }
        words.next().is_none().then_some(meter)
    }

    /// Adds network requests of calls of a kind.
    pub(crate) fn record_requests(&mut self, op: Op, count: RequestCount) {
        let meter = &mut self.ops[op as usize];
        meter.requests += count.requests;
        meter.retries += count.retries;
    }

    /// Counts the size that a call asked for.
    pub(crate) fn record_asked(&mut self, op: Op, bytes: u64) {
        self.ops[op as usize].asked.add(bytes, 1);
    }

    pub(crate) fn record(&mut self, op: Op, duration_ns: u64, outcome: CallOutcome) {
        let meter = &mut self.ops[op as usize];
        meter.calls += 1;
        meter.busy_ns += duration_ns;
        match outcome {
            CallOutcome::Done { bytes } => meter.bytes += bytes,
            CallOutcome::Failed => meter.errors += 1,
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
        let asked = AskedSizes::default();
        OpMeter {
            calls: 0,
            errors: 0,
            bytes: 0,
            busy_ns: 0,
            latency_ns,
            asked,
            requests: 0,
            retries: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_survives_its_way_to_another_process() {
        let mut meter = Meter::default();
        for duration_ns in [0, 1, 999, 1_000, 123_456_789, 3_600_000_000_000] {
            meter.record(Op::Read, duration_ns, CallOutcome::Done { bytes: 7 });
        }
        meter.record(Op::Open, 55, CallOutcome::Failed);
        meter.record_asked(Op::Read, 4096);
        meter.record_requests(Op::Open, RequestCount { requests: 3, retries: 2 });
        let words = meter.to_words();
        let copy = Meter::from_words(&words).unwrap();
        for op in Op::ALL {
            let (one, other) = (meter.op(op), copy.op(op));
            assert_eq!((one.calls, one.errors), (other.calls, other.errors), "{op}");
            assert_eq!((one.bytes, one.busy_ns), (other.bytes, other.busy_ns), "{op}");
            assert_eq!((one.requests, one.retries), (other.requests, other.retries), "{op}");
            assert_eq!(one.latency_ns, other.latency_ns, "{op}");
            assert_eq!(one.asked, other.asked, "{op}");
        }
        assert!(Meter::from_words(&words[1..]).is_none());
        assert!(Meter::from_words(&[words.as_slice(), &[0]].concat()).is_none());
    }

    #[test]
    fn sizes_are_counted_exactly_while_they_are_few() {
        let mut meter = Meter::default();
        for bytes in [4096, 258_048, 4096, 258_048, 258_048] {
            meter.record_asked(Op::Read, bytes);
        }
        let asked = &meter.op(Op::Read).asked;
        assert_eq!(asked.iter().collect::<Vec<_>>(), [(4096, 2), (258_048, 3)]);
        let quantiles = [0.0, 0.4, 0.5, 1.0].map(|share| asked.quantile(share));
        assert_eq!(quantiles, [Some(4096), Some(4096), Some(258_048), Some(258_048)]);
        assert_eq!(meter.op(Op::Open).asked.quantile(0.5), None);
        (0..1000).for_each(|bytes| meter.record_asked(Op::Write, bytes));
        let asked = &meter.op(Op::Write).asked;
        assert_eq!(asked.iter().map(|(_, calls)| calls).sum::<u64>(), 1000);
        let large: Vec<_> = asked.iter().skip(AskedSizes::EXACT).collect();
        assert_eq!(large, [(128, 1), (256, 128), (512, 256), (1024, 487)]);
    }

    #[test]
    fn merged_meters_count_both() {
        let mut first = Meter::default();
        first.record(Op::Read, 1_000, CallOutcome::Done { bytes: 10 });
        first.record(Op::Open, 50, CallOutcome::Done { bytes: 0 });
        let mut second = Meter::default();
        second.record(Op::Read, 3_000, CallOutcome::Done { bytes: 30 });
        second.record(Op::Read, 7_000, CallOutcome::Failed);
        first.record_requests(Op::Read, RequestCount { requests: 2, retries: 1 });
        second.record_requests(Op::Read, RequestCount { requests: 5, retries: 3 });
        first.merge(&second);

        let read = first.op(Op::Read);
        assert_eq!((read.calls, read.errors, read.bytes, read.busy_ns), (3, 1, 40, 11_000));
        assert_eq!((read.requests, read.retries), (7, 4));
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
            meter.record(op, 1, CallOutcome::Failed);
        }
        assert!(Op::ALL.iter().all(|&op| meter.op(op).calls == 1));
    }
}
