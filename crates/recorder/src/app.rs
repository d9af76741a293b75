//! What programs say about themselves, and how a record encodes it.
//!
//! | field    | span                     | counter       | call                      |
//! |----------|--------------------------|---------------|---------------------------|
//! | `file`   | number of the site       | of the site   | number of the file's text |
//! | `result` | epoch, `i64::MIN` if none|               | what the call returned    |
//! | `offset` | step, `i64::MIN` if none |               | where, `i64::MIN` if none |
//! | `arg`    | sample, `u64::MAX` if none|              | number of the site        |
//! | `size`   | size, `u64::MAX` if none | the `f64`     | bytes, `u64::MAX` if none |
//!
//! A site is a text of kind [`TextKind::Span`](crate::TextKind::Span): a category and a name with a NUL
//! between them. The three `pack` functions and [`AppEvent::unpack`] are all that knows this table.

use crate::op::Op;
use crate::record::CallRecord;

const NO_NUMBER: i64 = i64::MIN;
const NO_COUNT: u64 = u64::MAX;

/// The category of the zero-length span by which a thread says what it is called.
pub const THREAD_CATEGORY: &str = "thread";

/// What a span is about, as far as the program says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// Epoch, as the program counts it.
    pub epoch: Option<i64>,
    /// Its step within that.
    pub step: Option<i64>,
    /// Number of the sample within the data set.
    pub sample: Option<u64>,
    /// Size in bytes of what the event is about.
    pub size: Option<u64>,
}

impl Tags {
    /// No tags.
    pub const NONE: Self = Self { epoch: None, step: None, sample: None, size: None };
}

/// A call that a program made on a file by means that no hook sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// The text of the file's name, 0 if there is none.
    pub file: u32,
    /// Where in the file.
    pub offset: Option<i64>,
    /// Bytes asked for.
    pub size: Option<u64>,
    /// Bytes done in calls that move bytes, else 0; -1 if it failed.
    pub result: i64,
    /// The errno, or 0 if the call succeeded or its error is unknown.
    pub errno: u16,
}

/// A record of a program's own, in plain words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AppEvent {
    /// Something took from the record's start to its end.
    Span {
        /// The text of its category and name.
        site: u32,
        /// What it is about.
        tags: Tags,
    },
    /// Something had this value at the record's start.
    Counter {
        /// The text of its category and name.
        site: u32,
        /// Value of the counter at this moment.
        value: f64,
    },
    /// A call.
    Call {
        /// The text of its category and name.
        site: u32,
        /// What was called for.
        facts: CallFacts,
    },
}

impl AppEvent {
    /// What a record says; `None` if it is a call of the C library, see [`OpInfo`](crate::OpInfo).
    pub fn unpack(op: Op, record: &CallRecord) -> Option<Self> {
        match op {
            Op::Span => Some(Self::Span {
                site: record.file,
                tags: Tags {
                    epoch: number(record.result),
                    step: number(record.offset),
                    sample: count(record.arg),
                    size: count(record.size),
                },
            }),
            Op::Counter => {
                Some(Self::Counter { site: record.file, value: f64::from_bits(record.size) })
            }
            Op::AppCall => Some(Self::Call {
                // `pack_call` put a number of 32 bits there.
                site: record.arg as u32,
                facts: CallFacts {
                    file: record.file,
                    offset: number(record.offset),
                    size: count(record.size),
                    result: record.result,
                    errno: record.errno,
                },
            }),
            _ => None,
        }
    }
}

#[inline]
pub(crate) fn pack_span(site: u32, (start, end): (u64, u64), tags: &Tags) -> CallRecord {
    CallRecord {
        start,
        end,
        file: site,
        result: tags.epoch.unwrap_or(NO_NUMBER),
        offset: tags.step.unwrap_or(NO_NUMBER),
        arg: tags.sample.unwrap_or(NO_COUNT),
        size: tags.size.unwrap_or(NO_COUNT),
        errno: 0,
        ..CallRecord::default()
    }
}

#[inline]
pub(crate) fn pack_counter(site: u32, at: u64, value: f64) -> CallRecord {
    CallRecord { start: at, end: at, file: site, size: value.to_bits(), ..CallRecord::default() }
}

#[inline]
pub(crate) fn pack_call(site: u32, (start, end): (u64, u64), facts: &CallFacts) -> CallRecord {
    CallRecord {
        start,
        end,
        file: facts.file,
        result: facts.result,
        offset: facts.offset.unwrap_or(NO_NUMBER),
        arg: u64::from(site),
        size: facts.size.unwrap_or(NO_COUNT),
        errno: facts.errno,
        ..CallRecord::default()
    }
}

fn number(value: i64) -> Option<i64> {
    (value != NO_NUMBER).then_some(value)
}

fn count(value: u64) -> Option<u64> {
    (value != NO_COUNT).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_hold_what_was_said_and_what_was_not() {
        for tags in [
            Tags::NONE,
            Tags { epoch: Some(0), step: Some(-1), sample: Some(0), size: Some(0) },
            Tags { epoch: Some(i64::MAX), sample: Some(u64::MAX - 1), ..Tags::NONE },
            Tags { step: Some(7), size: Some(1 << 40), ..Tags::NONE },
        ] {
            let record = pack_span(9, (3, 5), &tags);
            assert_eq!((record.start, record.end), (3, 5));
            let event = AppEvent::unpack(Op::Span, &record);
            assert_eq!(event, Some(AppEvent::Span { site: 9, tags }));
        }
        for value in [0.0, -1.5, f64::MAX] {
            let record = pack_counter(u32::MAX, 8, value);
            assert_eq!((record.start, record.end), (8, 8));
            let event = AppEvent::unpack(Op::Counter, &record);
            assert_eq!(event, Some(AppEvent::Counter { site: u32::MAX, value }));
        }
        for facts in [
            CallFacts::default(),
            CallFacts { file: 4, offset: Some(0), size: Some(10), result: -1, errno: 5 },
        ] {
            let record = pack_call(2, (1, 2), &facts);
            let event = AppEvent::unpack(Op::AppCall, &record);
            assert_eq!(event, Some(AppEvent::Call { site: 2, facts }));
        }
        assert_eq!(AppEvent::unpack(Op::Read, &CallRecord::default()), None);
    }
}
