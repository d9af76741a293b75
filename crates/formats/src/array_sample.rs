//! One sample out of the bytes of an array, as they come by.
//!
//! NumPy files have the sample axis last, so the elements of a sample are spread over all of the array
//! (in C order) or together with their axes the wrong way around (in Fortran order). The first is put
//! right in pieces; the second in memory of the sample's size, which the sink has agreed to.

use std::ops::Range;

use crate::npy_header::Header;
use crate::sample_sink::{begin, put};
use crate::{Decoded, Element, SamplePart, SampleSink};

/// What is gathered before it is handed over.
const GATHERED_BYTES: usize = 64 << 10;

/// Which part of an array is the sample, and how its elements are stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selection<'a> {
    pub(crate) name: &'a str,
    pub(crate) element: Element,
    /// Shape of the sample.
    pub(crate) shape: &'a [u64],
    /// Length of the sample axis, which comes last.
    pub(crate) samples: u64,
    pub(crate) index: u64,
    pub(crate) order: Order,
    pub(crate) is_big_endian: bool,
}

/// Which axis of an array is the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last.
    C,
    /// The first.
    Fortran,
}

/// Takes the bytes of an array, one after the other, and hands those of the sample to a sink.
///
/// Does nothing for a sink that wants no bytes.
pub(crate) struct ArraySample<'s, S> {
    sink: &'s mut S,
    strides: Option<Strides>,
}

/// Where the sample is in the array.
struct Strides {
    /// Bytes that came by, which may begin with a header.
    at: u64,
    /// The bytes that count.
    array: Range<u64>,
    /// Bytes from one run of the sample to the next.
    stride: u64,
    /// Where in each stride the run is.
    run: Range<u64>,
    /// Bytes of a number, if they must be turned around.
    swapped: Option<usize>,
    /// Bytes of an element.
    element_bytes: usize,
    /// Shape of a sample whose axes must be turned around.
    turned: Option<Vec<u64>>,
    gathered: Vec<u8>,
}

impl<'s, S: SampleSink> ArraySample<'s, S> {
    #[inline]
    pub(crate) fn new(sink: &'s mut S) -> Self {
        ArraySample { sink, strides: None }
    }

    /// Announces the sample of an array that begins `skipped` bytes after what is put first.
    #[inline]
    pub(crate) fn begin(&mut self, selection: Selection<'_>, skipped: u64) -> Decoded<()> {
        if !self.sink.wants_bytes() {
            return Ok(());
        }
        let Selection { name, element, shape, .. } = selection;
        begin(self.sink, SamplePart { name, element: Some(element), shape })?;
        self.strides = Some(Strides::of(&selection, skipped));
        Ok(())
    }

    /// Announces sample `index` of the array that `header` describes.
    #[inline]
    pub(crate) fn begin_npy(
        &mut self,
        name: &str,
        header: &Header,
        index: u64,
        skipped: u64,
    ) -> Decoded<()> {
        if !self.sink.wants_bytes() {
            return Ok(());
        }
        self.begin(header.sample(name, index), skipped)
    }

    /// Whether the sink looks at samples at all.
    #[inline]
    pub(crate) fn wants_bytes(&self) -> bool {
        self.sink.wants_bytes()
    }

    /// Whether a sample was announced.
    pub(crate) fn has_begun(&self) -> bool {
        self.strides.is_some()
    }

    /// Takes the next bytes.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Decoded<()> {
        if !self.sink.wants_bytes() {
            return Ok(());
        }
        let Some(strides) = &mut self.strides else { return Ok(()) };
        strides.put(bytes, self.sink)
    }

    /// Hands over what is left.
    #[inline]
    pub(crate) fn finish(mut self) -> Decoded<()> {
        match self.strides.take() {
            Some(strides) => strides.finish(self.sink),
            None => Ok(()),
        }
    }
}

impl Strides {
    fn of(selection: &Selection<'_>, skipped: u64) -> Strides {
        let Selection { element, shape, samples, index, .. } = *selection;
        let element_bytes = element.size_bytes();
        // The sink has agreed to the size of a sample, and the array is as long as its file.
        let sample: u64 = shape.iter().product::<u64>() * element_bytes;
        let total = sample.saturating_mul(samples);
        let (stride, run) = match selection.order {
            Order::C if samples > 1 => (element_bytes * samples, element_bytes),
            _ => (total.max(1), sample),
        };
        let first = index * run;
        let number = element.number_bytes() as usize;
        let is_turned = selection.order == Order::Fortran && shape.len() > 1;
        Strides {
            at: 0,
            array: skipped..skipped.saturating_add(total),
            stride,
            run: first..first + run,
            swapped: (selection.is_big_endian && number > 1).then_some(number),
            element_bytes: element_bytes as usize,
            turned: is_turned.then(|| shape.to_vec()),
            gathered: Vec::new(),
        }
    }

    fn put<S: SampleSink>(&mut self, bytes: &[u8], sink: &mut S) -> Decoded<()> {
        let start = self.at;
        self.at += bytes.len() as u64;
        let mut at = start.max(self.array.start);
        let end = self.at.min(self.array.end);
        while at < end {
            let inside = (at - self.array.start) % self.stride;
            let next = if inside < self.run.start {
                at + (self.run.start - inside)
            } else if inside < self.run.end {
                let next = (at + (self.run.end - inside)).min(end);
                self.take(&bytes[(at - start) as usize..(next - start) as usize], sink)?;
                next
            } else {
                at + (self.stride - inside)
            };
            at = next;
        }
        Ok(())
    }

    /// Takes bytes of the sample.
    fn take<S: SampleSink>(&mut self, bytes: &[u8], sink: &mut S) -> Decoded<()> {
        let is_plain = self.swapped.is_none() && self.turned.is_none();
        if is_plain && self.gathered.is_empty() && bytes.len() >= GATHERED_BYTES / 16 {
            return put(sink, bytes);
        }
        self.gathered.extend_from_slice(bytes);
        if self.turned.is_none() && self.gathered.len() >= GATHERED_BYTES {
            return self.flush(sink);
        }
        Ok(())
    }

    /// Hands over all whole elements that were gathered.
    fn flush<S: SampleSink>(&mut self, sink: &mut S) -> Decoded<()> {
        let whole = self.gathered.len() / self.element_bytes * self.element_bytes;
        if let Some(number) = self.swapped {
            swap(&mut self.gathered[..whole], number);
        }
        put(sink, &self.gathered[..whole])?;
        self.gathered.drain(..whole);
        Ok(())
    }

    fn finish<S: SampleSink>(mut self, sink: &mut S) -> Decoded<()> {
        let Some(shape) = self.turned.take() else { return self.flush(sink) };
        if let Some(number) = self.swapped {
            swap(&mut self.gathered, number);
        }
        let mut turned = Vec::with_capacity(GATHERED_BYTES + self.element_bytes);
        let mut coordinates = vec![0u64; shape.len()];
        for _ in 0..self.gathered.len() / self.element_bytes {
            let axes = coordinates.iter().zip(&shape).rev();
            let number = axes.fold(0, |number, (&at, &axis)| number * axis + at);
            let from = number as usize * self.element_bytes;
            turned.extend_from_slice(&self.gathered[from..from + self.element_bytes]);
            if turned.len() >= GATHERED_BYTES {
                put(sink, &turned)?;
                turned.clear();
            }
            for (at, &axis) in coordinates.iter_mut().zip(&shape).rev() {
                *at += 1;
                if *at < axis {
                    break;
                }
                *at = 0;
            }
        }
        put(sink, &turned)
    }
}

/// Turns the bytes of every number around.
pub(crate) fn swap(bytes: &mut [u8], number_bytes: usize) {
    for number in bytes.chunks_exact_mut(number_bytes) {
        number.reverse();
    }
}
