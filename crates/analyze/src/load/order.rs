//! The order of rows, which is total: rows that compare equal are equal. So it does not matter in which
//! pieces, on which threads or through which files rows come.

use std::cmp::{Ordering, Reverse};

use crate::layer::StackLayer;
use crate::row::Row;

/// What rows are ordered by. After start and end comes the lane; of things that took the same time on the same
/// lane, those of upper layers enclose the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    start_ns: i64,
    end_ns: Reverse<i64>,
    lane: u32,
    layer: StackLayer,
    event_type: u32,
    file: u32,
    offset: i64,
    bytes: u64,
    rest: (u32, u32, u32, u16, u8),
}

/// The layer of every kind of event, by its number.
pub(crate) type Layers = [StackLayer];

impl Key {
    pub(crate) fn new(row: &Row, layers: &Layers) -> Self {
        Self {
            start_ns: row.start_ns,
            end_ns: Reverse(row.end_ns),
            lane: row.lane,
            layer: layers.get(row.event_type as usize).copied().unwrap_or(StackLayer::Meta),
            event_type: row.event_type,
            file: row.file,
            offset: row.offset,
            bytes: row.bytes,
            rest: (row.epoch, row.step, row.count, row.errno, row.kind as u8),
        }
    }
}

#[inline]
pub(crate) fn compare(a: &Row, b: &Row, layers: &Layers) -> Ordering {
    match a.start_ns.cmp(&b.start_ns) {
        Ordering::Equal => Key::new(a, layers).cmp(&Key::new(b, layers)),
        order => order,
    }
}

/// Sorts rows. They often are in order already.
pub(crate) fn sort(rows: &mut Vec<Row>, layers: &Layers) {
    if rows.is_sorted_by(|a, b| compare(a, b, layers).is_le()) {
        return;
    }
    let order = by_start(rows.len(), |row| Some(rows[row].start_ns));
    let mut sorted = Vec::with_capacity(rows.len());
    sorted.extend(order.iter().map(|row| rows[*row as usize]));
    settle_ties(&mut sorted, layers);
    *rows = sorted;
}

/// Puts rows that begin at the same time in order; all others are.
pub(crate) fn settle_ties(rows: &mut [Row], layers: &Layers) {
    let mut at = 0;
    while at + 1 < rows.len() {
        if rows[at].start_ns != rows[at + 1].start_ns {
            at += 1;
            continue;
        }
        let start_ns = rows[at].start_ns;
        let ties = rows[at..].iter().take_while(|row| row.start_ns == start_ns).count();
        rows[at..at + ties].sort_unstable_by(|a, b| compare(a, b, layers));
        at += ties;
    }
}

/// Bits of a key that a pass of the sort looks at.
const DIGIT: u32 = 11;

/// Numbers of rows in the order of their starts; those without one are left out.
pub(crate) fn by_start(rows: usize, start: impl Fn(usize) -> Option<i64>) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::with_capacity(rows);
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    let mut is_sorted = true;
    for row in 0..rows {
        if let Some(start_ns) = start(row) {
            is_sorted &= start_ns >= most;
            (least, most) = (least.min(start_ns), most.max(start_ns));
            order.push(row as u32);
        }
    }
    if is_sorted {
        return order;
    }
    let since = |row: u32| start(row as usize).unwrap_or(least).abs_diff(least);
    let bits = u64::BITS - most.abs_diff(least).leading_zeros();
    let row_bits = usize::BITS - rows.leading_zeros();
    // A pass costs as much as two comparisons a row do.
    if bits > 5 * DIGIT || bits + row_bits > u64::BITS || order.len() < 1 << DIGIT {
        order.sort_by_key(|row| since(*row));
        return order;
    }
    // The number of the row is in the bits below its start, so that one word is moved.
    let keys = order.iter().map(|row| since(*row) << row_bits | u64::from(*row)).collect();
    let rows = by_digits(keys, row_bits, bits).into_iter().map(|key| key & ((1 << row_bits) - 1));
    rows.map(|row| row as u32).collect()
}

/// Sorts by some bits at a time, from the lowest on that counts.
fn by_digits(mut keys: Vec<u64>, first: u32, bits: u32) -> Vec<u64> {
    let mut other = vec![0; keys.len()];
    for shift in (first..first + bits).step_by(DIGIT as usize) {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
        let mut places = [0_usize; 1 << DIGIT];
        keys.iter().for_each(|key| places[digit(*key)] += 1);
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for key in &keys {
            let place = &mut places[digit(*key)];
            other[*place] = *key;
            *place += 1;
        }
        std::mem::swap(&mut keys, &mut other);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_encloses_others_comes_first() {
        let layers = [StackLayer::Storage, StackLayer::Sample];
        let row = |start_ns, end_ns, lane, event_type, file| Row {
            start_ns,
            end_ns,
            lane,
            event_type,
            file,
            ..Row::default()
        };
        let sorted = [
            row(1, 9, 5, 0, 0),
            row(1, 5, 0, 0, 0),
            row(1, 5, 1, 1, 9),
            row(1, 5, 1, 0, 3),
            row(1, 5, 1, 0, 4),
            row(2, 3, 0, 0, 0),
        ];
        for turn in 0..sorted.len() {
            let mut rows = sorted.to_vec();
            rows.rotate_left(turn);
            sort(&mut rows, &layers);
            assert_eq!(rows, sorted);
        }
    }

    #[test]
    fn numbers_of_rows_come_by_start_whatever_the_range() {
        for range in [10, 5_000, 1 << 30, 1 << 50, i64::MAX] {
            let starts: Vec<i64> = (0..5_000_i64)
                .map(|row| (row * 7_919_777 % 4_999).wrapping_mul(range / 4_999 + 1) - 3)
                .collect();
            let found = by_start(starts.len(), |row| (row != 17).then(|| starts[row]));
            let mut expected: Vec<u32> = (0..5_000).filter(|row| *row != 17).collect();
            expected.sort_by_key(|row| starts[*row as usize]);
            assert_eq!(found, expected, "{range}");
        }
    }
}
