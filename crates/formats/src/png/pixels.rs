//! The rows of an image as the array that Pillow makes of them, with an axis of channels in any case.
//!
//! Gray of 2 and 4 bits is spread over 0 to 255, one bit is 0 or 1, palettes stay indices; 16 bits
//! stay in gray images only and lose their lower half in others.

use png::{Adam7Info, InterlaceInfo, expand_interlaced_row};

use super::chunks::Header;
use crate::sample_sink::{begin, put};
use crate::{Decoded, SamplePart, SampleSink};

/// Takes rows and hands pixels to a sink. Does nothing for a sink that wants none.
pub(super) struct Pixels<'s, S> {
    sink: &'s mut S,
    header: Header,
    /// An interlaced image, put together from its passes.
    woven: Vec<u8>,
    values: Vec<u8>,
}

impl<'s, S: SampleSink> Pixels<'s, S> {
    #[inline]
    pub(super) fn begin(sink: &'s mut S, header: Header) -> Decoded<Self> {
        let element = Some(header.element());
        begin(sink, SamplePart { name: "", element, shape: &header.shape() })?;
        Ok(Pixels { sink, header, woven: Vec::new(), values: Vec::new() })
    }

    /// Takes a row, which may be longer than it must be.
    #[inline]
    pub(super) fn row(&mut self, place: InterlaceInfo, row: &[u8]) -> Decoded<()> {
        if !self.sink.wants_bytes() {
            return Ok(());
        }
        match place {
            InterlaceInfo::Null(_) => self.put(&row[..self.header.row_bytes() as usize]),
            InterlaceInfo::Adam7(pass) => {
                self.weave(&pass, row);
                Ok(())
            }
        }
    }

    /// Hands over what could not be before the last pass.
    #[inline]
    pub(super) fn finish(mut self) -> Decoded<()> {
        let woven = std::mem::take(&mut self.woven);
        woven
            .chunks_exact(self.header.row_bytes().max(1) as usize)
            .try_for_each(|row| self.put(row))
    }

    fn weave(&mut self, pass: &Adam7Info, row: &[u8]) {
        let row_bytes = self.header.row_bytes() as usize;
        if self.woven.is_empty() {
            // At most twice the part that the sink has agreed to.
            self.woven = vec![0; row_bytes * self.header.shape()[0] as usize];
        }
        expand_interlaced_row(&mut self.woven, row_bytes, row, pass, self.header.pixel_bits());
    }

    fn put(&mut self, row: &[u8]) -> Decoded<()> {
        if self.header.bit_depth() == 8 {
            return put(self.sink, row);
        }
        self.values.clear();
        match self.header.bit_depth() {
            16 if self.header.is_gray() => {
                self.values.extend(row.as_chunks().0.iter().flat_map(|&[high, low]| [low, high]));
            }
            16 => self.values.extend(row.as_chunks().0.iter().map(|&[high, _]| high)),
            depth => {
                let [_, width, channels] = self.header.shape();
                let scale = match (self.header.is_gray(), depth) {
                    (true, 2) => 85,
                    (true, 4) => 17,
                    _ => 1,
                };
                let values = (0..(width * channels) as usize).map(|at| {
                    let bit = at * usize::from(depth);
                    let shift = 8 - usize::from(depth) - bit % 8;
                    (row[bit / 8] >> shift & ((1 << depth) - 1)) * scale
                });
                self.values.extend(values);
            }
        }
        put(self.sink, &self.values)
    }
}
