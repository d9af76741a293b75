//! The queue of stores that have none of their own: one read at a time.

use std::hint::black_box;

use feedline_clock::Clock;

use crate::pieces::{Pieces, Portions};
use crate::queue::Delivery;
use crate::{
    AlignedBuf, Call, Destination, Object, ObjectRange, Op, ReadQueue, Result, Store, StoreError,
};

/// Lets any store be read like one with a queue, on the caller's thread and without any overlap.
///
/// Enough where there is no latency to hide, and for programs that want one way to read for all
/// stores.
pub struct SequentialQueue<S> {
    store: S,
    clock: Clock,
    /// For bytes that are discarded.
    buf: AlignedBuf,
}

impl<S: Store> SequentialQueue<S> {
    /// A queue over `store`.
    pub fn new(store: S) -> SequentialQueue<S> {
        let buf = AlignedBuf::new(store.read_bytes());
        SequentialQueue { store, clock: Clock::real(), buf }
    }

    /// Reads the range at this index; `last` is the object that was read before it.
    fn read_one<'a>(
        &mut self,
        range: usize,
        asked: &'a ObjectRange,
        last: &mut Option<(&'a str, Box<dyn Object>)>,
        delivery: &mut Delivery<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<()> {
        let SequentialQueue { store, clock, buf } = self;
        let ObjectRange { key, offset, len } = asked;
        let (_, object) = match last {
            Some(same) if same.0 == key => same,
            other => {
                let open = || store.open(key);
                let object = Call::new(Op::Open, range).make(seen, clock, open)?;
                other.insert((key, object))
            }
        };
        let end = match len {
            Some(len) => offset.checked_add(*len).ok_or_else(|| {
                let (path, offset, needed) = (store.locate(key), *offset, *len);
                StoreError::Short { path, offset, needed, found: 0 }
            })?,
            None => Call::new(Op::Stat, range).make(seen, clock, || object.len())?,
        };
        let pieces = Pieces { next: *offset, end, block: 1, longest: buf.len() };
        for (piece, memory) in Portions::new(pieces, delivery.memory(range), || store.locate(key))?
        {
            let to = memory.unwrap_or(&mut buf[..piece.len]);
            let call =
                Call { offset: piece.start, asked: piece.asked, ..Call::new(Op::Read, range) };
            call.make(seen, clock, || object.read_exact_at(piece.start, to))?;
            // The copy is the point, even if its bytes are dropped.
            black_box(&buf[..]);
            delivery.settle(range, Ok(piece.asked))?;
        }
        Ok(())
    }
}

impl<S: Store> ReadQueue for SequentialQueue<S> {
    fn read(
        &mut self,
        ranges: &[ObjectRange],
        to: Destination<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<u64> {
        let mut delivery = Delivery::new(ranges, to);
        let mut last = None;
        for (range, asked) in ranges.iter().enumerate() {
            if let Err(error) = self.read_one(range, asked, &mut last, &mut delivery, seen) {
                delivery.settle(range, Err(error))?;
            }
        }
        Ok(delivery.bytes())
    }
}
