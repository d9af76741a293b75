//! Decoder of sequential JPEG of one component, which is what Feedline and DLIO write.
//!
//! Noise at quality 75 has a code for nearly every pixel, so this is about reading codes. Stuffing is
//! taken out of an interval before, so that the inner loop meets nothing but codes, and most codes are
//! read together with their value by one look into a table.

use std::ops::Range;

use super::dct::{self, Block};
use super::huffman::{Bits, END_RUN};
use super::quad::Quad;
use super::segments::{self, Head, Segment, Tables, field, truncated};
use super::stuffing::{stuffed_place, unstuff};
use super::tables::ZIGZAG_BY_COLUMN;
use crate::DecodeError;

/// Pixels of an image in blocks, eight rows of them at a time; see [`decode`].
pub(super) struct Plane<'a> {
    /// Columns, a multiple of eight.
    pub(super) stride: usize,
    /// Rows of blocks.
    pub(super) strips: usize,
    /// As many pixels as that makes.
    pub(super) pixels: &'a mut [u8],
}

/// Decodes the data of `scan` to `plane`; returns where in the file it ends.
///
/// `plain` is for the data without its stuffing, and at least as long as the file.
pub(super) fn decode(
    file: &[u8],
    head: &Head,
    scan: &Segment<'_>,
    plane: &mut Plane<'_>,
    plain: &mut [u8],
) -> Result<usize, DecodeError> {
    let tables = head.gray(scan)?;
    let factors = dct::inverse_factors(tables.divisors);
    let flat = Quad::splat(f32::from(tables.divisors[0]) / 8.0);
    let decoder = Decoder { tables, factors, flat };
    let total = plane.stride / 8 * plane.strips;
    let interval = match head.restart_interval() {
        0 => total,
        blocks => blocks,
    };
    let mut at = scan.end;
    let mut blocks = 0..total.min(interval);
    for restart in (0xD0..=0xD7).cycle() {
        let end = segments::marker(file, at)?;
        let data = &file[at..end];
        let len = unstuff(data, plain);
        let done = decoder.interval(&plain[..len], blocks.clone(), plane);
        done.map_err(|fault| fault.at(file, at, end))?;
        if blocks.end == total {
            return Ok(end);
        }
        blocks = blocks.end..total.min(blocks.end + interval);
        let fill = file[end + 1..].iter().take_while(|&&byte| byte == 0xFF).count();
        let marker = end + 1 + fill;
        match file.get(marker) {
            Some(&found) if found == restart => at = marker + 1,
            Some(found) => {
                let found = format!("ff {found:02x}");
                return Err(field(end, "the next restart marker", found));
            }
            None => return Err(truncated(file, marker + 1)),
        }
    }
    Ok(at)
}

/// What is wrong with the data of an interval, and after how many bits of it.
enum Fault {
    /// It ends before its last block.
    Short,
    /// No code stands here, or one for more coefficients than a block has.
    Code { used: usize },
    /// It goes on after its last block.
    Left { used: usize },
}

impl Fault {
    /// The error, for data that stands in `file` from `start` to `end`.
    #[cold]
    fn at(self, file: &[u8], start: usize, end: usize) -> DecodeError {
        let place = |used: usize| start + stuffed_place(&file[start..end], used / 8);
        match self {
            Fault::Short => field(end, "data of the blocks that are missing", "a marker".into()),
            Fault::Code { used } => {
                field(place(used), "a code of the scan's tables", "something else".into())
            }
            Fault::Left { used } => {
                field(place(used + 7), "a marker after the last block", "data".into())
            }
        }
    }
}

/// [`ZIGZAG_BY_COLUMN`], and the last place for what stands behind: the zero that ends a block, which
/// is zero there anyway, and the coefficients that a damaged block has too many.
const PLACES: [u8; 256] = {
    let mut places = [63; 256];
    let mut k = 0;
    while k < 64 {
        places[k] = ZIGZAG_BY_COLUMN[k];
        k += 1;
    }
    places
};

struct Decoder<'a> {
    tables: Tables<'a>,
    factors: Block,
    /// The first of the factors, which is all that a block of one gray needs.
    flat: Quad,
}

impl Decoder<'_> {
    /// Decodes these blocks of the plane from data that holds them and no more.
    fn interval(
        &self,
        data: &[u8],
        blocks: Range<usize>,
        plane: &mut Plane<'_>,
    ) -> Result<(), Fault> {
        let available = data.len() * 8;
        let across = plane.stride / 8;
        let mut bits = Bits::new(data);
        let mut mean = 0;
        for block in blocks {
            let mut coefficients = [[[0; 4]; 2]; 8];
            let kind = self.block(
                &mut bits,
                &mut mean,
                coefficients.as_flattened_mut().as_flattened_mut(),
            );
            let used = bits.used();
            if used > available {
                return Err(Fault::Short);
            }
            let corner = block / across * plane.stride * 8 + block % across * 8;
            let rows = plane.pixels[corner..].chunks_mut(plane.stride);
            match kind.ok_or(Fault::Code { used })? {
                Kind::Flat => {
                    let gray = Quad::from_ints([mean; 4]) * self.flat + Quad::splat(128.0);
                    let eight = Quad::to_bytes([gray; 2]);
                    rows.take(8).for_each(|row| row[..8].copy_from_slice(&eight));
                }
                Kind::Any => {
                    let block = self.pixels(&coefficients);
                    rows.zip(&block).for_each(|(row, eight)| row[..8].copy_from_slice(eight));
                }
            }
        }
        match bits.used() {
            used if available - used >= 8 => Err(Fault::Left { used }),
            _ => Ok(()),
        }
    }

    /// Reads the coefficients of a block, column by column; `None` if there is a wrong code.
    #[inline(always)]
    fn block(
        &self,
        shared_bits: &mut Bits<'_>,
        mean: &mut i32,
        coefficients: &mut [i32],
    ) -> Option<Kind> {
        let mut bits = *shared_bits;
        bits.refill();
        let difference = match self.tables.dc.look(&bits) {
            look if look.found() => bits.take(look),
            _ => bits.take_long(self.tables.dc)?,
        };
        // Of whatever differences a damaged file has, the sum wraps.
        *mean = mean.wrapping_add(difference.value());
        coefficients[0] = *mean;
        let mut k = 1;
        let mut look = self.tables.ac.look(&bits);
        while k < 64 {
            bits.refill();
            // There are bits enough for three codes that are found with a look.
            for _ in 0..3 {
                let found = match look {
                    look if look.found() => bits.take(look),
                    _ => bits.take_long(self.tables.ac)?,
                };
                k += found.run();
                coefficients[usize::from(PLACES[k & 255])] = found.value();
                k += 1;
                look = self.tables.ac.look(&bits);
                if k >= 64 {
                    break;
                }
            }
        }
        *shared_bits = bits;
        match k {
            2..=64 => Some(Kind::Any),
            ..=END_RUN => None,
            _ if k == END_RUN + 2 => Some(Kind::Flat),
            _ => Some(Kind::Any),
        }
    }

    #[inline(always)]
    fn pixels(&self, coefficients: &[[[i32; 4]; 2]; 8]) -> [[u8; 8]; 8] {
        let mut block = self.factors;
        for (values, coefficients) in block.iter_mut().zip(coefficients) {
            for half in 0..2 {
                values[half] = Quad::from_ints(coefficients[half]) * values[half];
            }
        }
        block[0][0] = block[0][0] + Quad::load([128.0, 0.0, 0.0, 0.0]);
        dct::inverse(&block).map(Quad::to_bytes)
    }
}

/// What a block consists of.
enum Kind {
    /// One gray.
    Flat,
    Any,
}
