//! `busy_ns(start, end)`: time that a set of intervals covers, overlaps counted once.
//!
//! Its state is the set itself, sorted and disjoint, so partial results of threads, files and machines are
//! joined without error and in any order. Memory grows with the number of gaps, not of rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _, Int64Array, LargeListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use feedline_analyze::interval::Times;

/// Intervals that are gathered before they are joined with what is there: 128 KiB of them.
const GATHERED: usize = 8 * 1024;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BusyNs {
    signature: Signature,
}

impl BusyNs {
    pub(crate) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for BusyNs {
    fn name(&self) -> &'static str {
        "busy_ns"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != 2 {
            return plan_err!("busy_ns takes a start and an end, not {} arguments", types.len());
        }
        types.iter().map(moment).collect()
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    /// Nothing covers no time.
    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::UInt64(Some(0)))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Busy::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format_state_name(args.name, "times");
        Ok(vec![Arc::new(Field::new(name, DataType::LargeList(item()), false))])
    }
}

/// How a moment of this type is brought to nanoseconds.
fn moment(kind: &DataType) -> Result<DataType> {
    match kind {
        DataType::Timestamp(_, zone) => Ok(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())),
        DataType::Null => Ok(DataType::Int64),
        whole if whole.is_integer() => Ok(DataType::Int64),
        other => plan_err!("busy_ns takes timestamps or nanoseconds, not {other}"),
    }
}

fn item() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Int64, false))
}

/// A set of times, and intervals that are not in it yet.
#[derive(Debug, Default)]
struct Busy {
    times: Times,
    gathered: Vec<(i64, i64)>,
}

impl Busy {
    /// Joins when as much was gathered as is there, so that a row costs a logarithm.
    fn push(&mut self, start: i64, end: i64) {
        self.gathered.push((start, end));
        if self.gathered.len() >= GATHERED.max(self.times.parts().len()) {
            self.join();
        }
    }

    fn join(&mut self) {
        if !self.gathered.is_empty() {
            let new = Times::from_intervals(self.gathered.drain(..));
            self.times = self.times.union(&new);
        }
    }
}

impl Accumulator for Busy {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (starts, ends) = (whole(&values[0])?, whole(&values[1])?);
        for (start, end) in starts.iter().zip(&ends) {
            if let (Some(start), Some(end)) = (start, end) {
                self.push(start, end);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.join();
        Ok(ScalarValue::UInt64(Some(self.times.measure_ns())))
    }

    fn size(&self) -> usize {
        let intervals = self.times.parts().len() + self.gathered.capacity();
        size_of::<Self>() + intervals * size_of::<(i64, i64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.join();
        let flat: Vec<i64> =
            self.times.parts().iter().flat_map(|(start, end)| [*start, *end]).collect();
        let offsets = OffsetBuffer::from_lengths([flat.len()]);
        let list =
            LargeListArray::try_new(item(), offsets, Arc::new(Int64Array::from(flat)), None)?;
        Ok(vec![ScalarValue::LargeList(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0]
            .as_list_opt::<i64>()
            .ok_or_else(|| exec_datafusion_err!("a state of busy_ns is not a list"))?;
        for list in lists.iter().flatten() {
            let times = list.as_primitive::<Int64Type>().values();
            for interval in times.chunks_exact(2) {
                self.push(interval[0], interval[1]);
            }
        }
        Ok(())
    }
}

fn whole(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    fn fed(intervals: &[(i64, i64)]) -> Busy {
        let mut busy = Busy::default();
        for part in intervals.chunks(7) {
            let column = |pick: fn(&(i64, i64)) -> i64| -> ArrayRef {
                Arc::new(Int64Array::from_iter_values(part.iter().map(pick)))
            };
            busy.update_batch(&[column(|pair| pair.0), column(|pair| pair.1)]).unwrap();
        }
        busy
    }

    fn measured(mut busy: Busy) -> u64 {
        match busy.evaluate().unwrap() {
            ScalarValue::UInt64(Some(ns)) => ns,
            other => panic!("{other:?} is not a time"),
        }
    }

    /// Counts the nanoseconds that any interval has in it, one by one.
    fn brute_force(intervals: &[(i64, i64)]) -> u64 {
        (-50..400).filter(|at| intervals.iter().any(|(start, end)| start <= at && at < end)).count()
            as u64
    }

    fn random_intervals(random: &mut StdRng) -> Vec<(i64, i64)> {
        let count = random.random_range(0..60);
        let interval = |random: &mut StdRng| {
            let start = random.random_range(-50..300);
            (start, start + random.random_range(-3..20))
        };
        (0..count).map(|_| interval(random)).collect()
    }

    #[test]
    fn unions_equal_a_count_of_every_nanosecond() {
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..500 {
            let intervals = random_intervals(&mut random);
            assert_eq!(measured(fed(&intervals)), brute_force(&intervals), "{intervals:?}");
        }
    }

    #[test]
    fn partial_states_join_to_the_same_in_any_split_and_order() {
        let mut random = StdRng::seed_from_u64(8);
        for _ in 0..300 {
            let intervals = random_intervals(&mut random);
            let expected = brute_force(&intervals);
            let (left, right) = intervals.split_at(random.random_range(0..=intervals.len()));
            for order in [[left, right], [right, left]] {
                let mut all = Busy::default();
                for part in order {
                    let states = fed(part).state().unwrap();
                    all.merge_batch(&[states[0].to_array().unwrap()]).unwrap();
                }
                assert_eq!(measured(all), expected, "{intervals:?}");
            }
        }
    }

    #[test]
    fn more_intervals_than_are_gathered_at_once_are_joined() {
        // Every second one touches the one before, so half of them are gaps.
        let rows = 5 * GATHERED as i64;
        let intervals: Vec<_> = (0..rows).rev().map(|row| (row * 10, row * 10 + 5)).collect();
        let mut busy = fed(&intervals);
        assert!(busy.gathered.len() < 4 * GATHERED);
        assert_eq!(busy.times.parts().len() + busy.gathered.len(), intervals.len());
        assert_eq!(busy.evaluate().unwrap(), ScalarValue::UInt64(Some(5 * rows as u64)));
    }

    #[test]
    fn the_largest_times_do_not_overflow() {
        assert_eq!(measured(fed(&[(i64::MIN, 0), (-1, i64::MAX)])), u64::MAX);
        assert_eq!(measured(fed(&[])), 0);
    }
}
