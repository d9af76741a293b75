//! A sample of a dataset for a sink: as it comes from the file, or put together from its chunks.

use super::dataset::{Dataset, Part};
use super::fields::FORMAT;
use crate::array_sample::{ArraySample, Order, Selection, swap};
use crate::sample_sink::{begin, put};
use crate::scratch::try_grow;
use crate::{Decoded, SamplePart, SampleSink};

/// Takes what is read of a dataset. Does nothing for a sink that wants no bytes.
pub(super) enum Assembly<'s, S> {
    /// Contiguous samples come in order.
    Streamed(ArraySample<'s, S>),
    /// Chunks are boxes of the sample.
    Scattered(Scattered, &'s mut S),
}

/// A sample in memory, whose size the sink has agreed to.
pub(super) struct Scattered {
    sample: Vec<u8>,
    /// Lengths of the axes, the sample axis first, and of a chunk.
    dims: Vec<u64>,
    chunk: Vec<u64>,
    /// Where the sample is on the first axis of its chunks.
    row: u64,
    element_bytes: u64,
    /// Bytes of a number, if they must be turned around.
    swapped: Option<usize>,
}

impl<'s, S: SampleSink> Assembly<'s, S> {
    /// Announces a sample.
    #[inline]
    pub(super) fn begin(dataset: &Dataset, index: u64, sink: &'s mut S) -> Decoded<Self> {
        if !sink.wants_bytes() {
            return Ok(Assembly::Streamed(ArraySample::new(sink)));
        }
        dataset.check_index(index)?;
        let name = dataset.name.to_string();
        let (dims, chunk) = dataset.dims();
        let (element, shape) = (dataset.element, &dims[1..]);
        if dataset.is_streamed() {
            let is_big_endian = dataset.is_big_endian;
            let (name, order) = (&name[..], Order::C);
            let mut sample = ArraySample::new(sink);
            let selection =
                Selection { name, element, shape, samples: 1, index: 0, order, is_big_endian };
            sample.begin(selection, 0)?;
            return Ok(Assembly::Streamed(sample));
        }
        begin(sink, SamplePart { name: &name, element: Some(element), shape })?;
        let number = element.number_bytes() as usize;
        let scattered = Scattered {
            sample: filled(dataset)?,
            dims: dims.to_vec(),
            row: chunk.map_or(0, |chunk| index % chunk[0]),
            chunk: chunk.unwrap_or(dims).to_vec(),
            element_bytes: element.size_bytes(),
            swapped: (dataset.is_big_endian && number > 1).then_some(number),
        };
        Ok(Assembly::Scattered(scattered, sink))
    }

    #[inline]
    pub(super) fn put(&mut self, part: &Part<'_>) -> Decoded<()> {
        match self {
            Assembly::Streamed(sample) => sample.put(part.bytes),
            Assembly::Scattered(scattered, _) => {
                scattered.put(part);
                Ok(())
            }
        }
    }

    #[inline]
    pub(super) fn finish(self) -> Decoded<()> {
        match self {
            Assembly::Streamed(sample) => sample.finish(),
            Assembly::Scattered(mut scattered, sink) => {
                if let Some(number) = scattered.swapped {
                    swap(&mut scattered.sample, number);
                }
                put(sink, &scattered.sample)
            }
        }
    }
}

/// A sample of which nothing was ever written.
fn filled(dataset: &Dataset) -> Decoded<Vec<u8>> {
    let mut sample = Vec::new();
    try_grow(&mut sample, dataset.sample_bytes, (FORMAT, "sample"))?;
    if let Some(fill) = &dataset.fill {
        sample.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
    }
    Ok(sample)
}

impl Scattered {
    /// Copies what of a chunk belongs to the sample, row by row.
    fn put(&mut self, part: &Part<'_>) {
        let Some(at) = part.chunk else { return };
        let inner: u64 = self.chunk[1..].iter().product::<u64>() * self.element_bytes;
        let own = self.row * inner..(self.row + 1) * inner;
        let part_end = part.at + part.bytes.len() as u64;
        let (mut from, end) = (part.at.max(own.start), part_end.min(own.end));
        let last = if self.chunk.len() > 1 { self.chunk[self.chunk.len() - 1] } else { 1 };
        let row_bytes = last * self.element_bytes;
        while from < end {
            let inside = (from - own.start) % row_bytes;
            let next = (from + row_bytes - inside).min(end);
            if let Some((target, room)) = self.target(at, (from - own.start) / row_bytes)
                && inside < room
            {
                let len = (next - from).min(room - inside) as usize;
                let (source, target) = ((from - part.at) as usize, (target + inside) as usize);
                self.sample[target..target + len]
                    .copy_from_slice(&part.bytes[source..source + len]);
            }
            from = next;
        }
    }

    /// Where in the sample row number `row` of the chunk at `at` begins and how many bytes of it are
    /// inside; `None` if it is outside.
    fn target(&self, at: &[u64], mut row: u64) -> Option<(u64, u64)> {
        let axes = self.dims.len();
        if axes == 1 {
            return Some((0, self.element_bytes));
        }
        let begin = at[axes - 1] * self.chunk[axes - 1];
        let inside = self.dims[axes - 1].checked_sub(begin)?.min(self.chunk[axes - 1]);
        let mut offset = begin * self.element_bytes;
        let mut stride = self.dims[axes - 1] * self.element_bytes;
        for axis in (1..axes - 1).rev() {
            let place = at[axis] * self.chunk[axis] + row % self.chunk[axis];
            row /= self.chunk[axis];
            if place >= self.dims[axis] {
                return None;
            }
            offset += place * stride;
            stride *= self.dims[axis];
        }
        Some((offset, inside * self.element_bytes))
    }
}
