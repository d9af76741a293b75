//! Baseline JPEG of one component, block row by block row.
//!
//! The frame is byte for byte the one that libjpeg writes at quality 75; the data differs where its
//! integer transform rounds otherwise. In memory at once: eight rows of pixels and what is to go to
//! the sink next, twice: [`FLUSH_BYTES`] and a block.

use super::dct::{self, Block};
use super::quad::{self, Quad};
use super::stuffing::stuff;
use super::tables::{AC, Code, DC, DIVISORS, ZIGZAG, ZIGZAG_BY_COLUMN};
use crate::image::Size;
use crate::writer::Writer;
use crate::{Content, Element, EncodeError};

/// How much data is collected before it goes to the sink.
const FLUSH_BYTES: usize = 32 << 10;
/// What a block takes at most: 64 codes of up to 16 + 11 bits, and what is written beyond them.
const BLOCK_BYTES: usize = 64 * 27 / 8 + 16;

/// All bytes before the data of the scan.
pub(super) fn header(size: Size) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8];
    segment(&mut bytes, 0xE0, &[b"JFIF\0", &[1, 1, 0, 0, 1, 0, 1, 0, 0]]);
    segment(&mut bytes, 0xDB, &[&[0], &ZIGZAG.map(|place| DIVISORS[usize::from(place)])]);
    let [[_, _, h1, h0], [_, _, w1, w0]] = [size.height.to_be_bytes(), size.width.to_be_bytes()];
    segment(&mut bytes, 0xC0, &[&[8, h1, h0, w1, w0, 1, 1, 0x11, 0]]);
    segment(&mut bytes, 0xC4, &[&[0x00], &DC.counts, DC.symbols]);
    segment(&mut bytes, 0xC4, &[&[0x10], &AC.counts, AC.symbols]);
    segment(&mut bytes, 0xDA, &[&[1, 1, 0x00, 0, 63, 0]]);
    bytes
}

/// About how large the file is, for noise.
pub(super) fn estimate(size: Size) -> u64 {
    /// What a block takes, in hundredths of a byte.
    const BLOCK: u64 = 3555;
    /// What a block takes of which so many rows or columns are in the image, in thousandths.
    const SHARES: [u64; 8] = [0, 411, 815, 915, 957, 980, 995, 1000];
    let blocks = |side: u32| u64::from(side / 8) * 1000 + SHARES[side as usize % 8];
    let data = blocks(size.height) * blocks(size.width) / 1000 * BLOCK / 100_000;
    header(size).len() as u64 + data + 2
}

fn segment(bytes: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    bytes.extend([0xFF, marker]);
    bytes.extend((body as u16 + 2).to_be_bytes());
    parts.iter().for_each(|part| bytes.extend(*part));
}

/// Writes the image that `content` gives, its rows one after the other.
pub(super) fn encode(
    size: Size,
    content: &Content,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    writer.put(&header(size))?;
    let width = size.width as usize;
    let mut coder = Coder::new();
    let mut strip = vec![0; width * 8];
    let mut plain = vec![0; FLUSH_BYTES + BLOCK_BYTES];
    let mut stuffed = Vec::with_capacity(plain.len() + plain.len() / 8);
    let (mut offset, mut at) = (0, 0);
    for top in (0..size.height).step_by(8) {
        let rows = 8.min(size.height - top) as usize;
        content.fill(Element::UInt8, offset, &mut strip[..rows * width]);
        offset += (rows * width) as u64;
        // The image ends with its last row and column, the last block does not: libjpeg repeats them.
        for row in rows..8 {
            strip.copy_within((rows - 1) * width..rows * width, row * width);
        }
        for left in (0..width).step_by(8) {
            at = coder.block(&pixels(&strip, width, left), &mut plain, at);
            if at >= FLUSH_BYTES {
                put_stuffed(&plain[..at], &mut stuffed, writer)?;
                at = 0;
            }
        }
    }
    // The last byte is filled with ones.
    if coder.bits.count > 0 {
        let missing = 8 - coder.bits.count;
        coder.bits.push(Word { bits: (1 << missing) - 1, len: missing });
        at = coder.bits.drain(&mut plain, at);
    }
    put_stuffed(&plain[..at], &mut stuffed, writer)?;
    writer.put(&[0xFF, 0xD9])
}

fn put_stuffed(
    plain: &[u8],
    stuffed: &mut Vec<u8>,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    stuffed.clear();
    stuff(plain, stuffed);
    writer.put(stuffed)
}

/// The block of `strip` that begins in column `left`, around zero.
fn pixels(strip: &[u8], width: usize, left: usize) -> Block {
    std::array::from_fn(|y| {
        let row = &strip[y * width + left..(y + 1) * width];
        let eight = match row.first_chunk::<8>() {
            Some(&eight) => eight,
            None => std::array::from_fn(|x| row[x.min(row.len() - 1)]),
        };
        Quad::from_bytes(eight).map(|half| half - Quad::splat(128.0))
    })
}

/// Blocks to bits.
struct Coder {
    factors: Block,
    dc: [Word; 16],
    ac: [Word; 256],
    /// Codes of frequent runs with their values, see [`Coder::frequent`].
    frequent: [Word; FREQUENT_RUNS * FREQUENT_VALUES],
    mean: i32,
    bits: Bits,
}

/// Runs whose codes are made in advance, with values from -64 to 63. That is all but 1 in 200 of the
/// codes of noise.
const FREQUENT_RUNS: usize = 4;
const FREQUENT_VALUES: usize = 128;

impl Coder {
    fn new() -> Coder {
        let ac = words(&AC);
        let mut frequent = [Word::default(); FREQUENT_RUNS * FREQUENT_VALUES];
        for (i, word) in frequent.iter_mut().enumerate() {
            let (run, value) = (i / FREQUENT_VALUES, (i % FREQUENT_VALUES) as i32 - 64);
            *word = with_value(&ac, run as u32, value);
        }
        let factors = dct::forward_factors(&DIVISORS);
        Coder { factors, dc: words(&DC), ac, frequent, mean: 0, bits: Bits::default() }
    }

    /// Appends the code of a block to `out`, which has room for [`BLOCK_BYTES`] after `at`; returns
    /// where it ends.
    fn block(&mut self, pixels: &Block, out: &mut [u8], mut at: usize) -> usize {
        let (coefficients, nonzero) = quantised(&dct::forward(pixels), &self.factors);
        let coefficients = coefficients.as_flattened();
        let mean = i32::from(coefficients[0]);
        let mut bits = self.bits;
        bits.push(with_value(&self.dc, 0, mean - self.mean));
        self.mean = mean;

        let mut left = nonzero & !1;
        let mut last = 0;
        while left != 0 {
            // There is room for the codes of two values between two drains.
            at = bits.drain(out, at);
            for _ in 0..2 {
                let k = left.trailing_zeros();
                left &= left - 1;
                let mut run = k - last - 1;
                last = k;
                if run > 15 {
                    (bits, at) = self.long_run(bits, run, out, at);
                    run %= 16;
                }
                let value = i32::from(coefficients[k as usize & 63]);
                bits.push(self.word(run, value));
                if left == 0 {
                    break;
                }
            }
        }
        at = bits.drain(out, at);
        if last != 63 {
            bits.push(self.ac[0]);
            at = bits.drain(out, at);
        }
        self.bits = bits;
        at
    }

    /// Codes the zeros of a run by the sixteen. Bits go in and out as a copy, so that the loop that
    /// this is called from has them in registers.
    #[cold]
    #[inline(never)]
    fn long_run(&self, mut bits: Bits, run: u32, out: &mut [u8], mut at: usize) -> (Bits, usize) {
        for _ in 0..run / 16 {
            at = bits.drain(out, at);
            bits.push(self.ac[0xF0]);
        }
        at = bits.drain(out, at);
        (bits, at)
    }

    #[inline(always)]
    fn word(&self, run: u32, value: i32) -> Word {
        let place = (value + 64) as usize;
        if run < FREQUENT_RUNS as u32 && place < FREQUENT_VALUES {
            self.frequent[run as usize * FREQUENT_VALUES + place]
        } else {
            with_value(&self.ac, run, value)
        }
    }
}

/// Coefficients in the order in which they are coded, and a bit for each that is not zero.
#[inline(always)]
fn quantised(transformed: &Block, factors: &Block) -> ([[i16; 8]; 8], u64) {
    let by_column: [[i16; 8]; 8] = std::array::from_fn(|u| {
        Quad::to_words([0, 1].map(|half| transformed[u][half] * factors[u][half]))
    });
    let by_column = by_column.as_flattened();
    let ordered = std::array::from_fn(|row| {
        let places: &[u8; 8] = &ZIGZAG_ROWS[row];
        std::array::from_fn(|i| by_column[usize::from(places[i] & 63)])
    });
    (ordered, quad::nonzero(&ordered))
}

/// [`ZIGZAG_BY_COLUMN`] in rows of eight.
const ZIGZAG_ROWS: &[[u8; 8]] = ZIGZAG_BY_COLUMN.as_chunks().0;

/// A code word: its bits and how many there are.
#[derive(Clone, Copy, Default)]
struct Word {
    bits: u32,
    len: u32,
}

/// The code words by symbol.
fn words<const N: usize>(code: &Code) -> [Word; N] {
    let mut words = [Word::default(); N];
    let mut symbols = code.symbols.iter();
    let mut bits = 0;
    for (len, &count) in (1..).zip(&code.counts) {
        for &symbol in symbols.by_ref().take(usize::from(count)) {
            words[usize::from(symbol)] = Word { bits, len };
            bits += 1;
        }
        bits <<= 1;
    }
    words
}

/// The code word for a run of zeros and a value's size, then the value's bits: 27 at most, as no size
/// is larger than 11.
#[inline]
fn with_value(words: &[Word], run: u32, value: i32) -> Word {
    let size = 32 - value.unsigned_abs().leading_zeros();
    let word = words[(run * 16 + size) as usize];
    // A negative value is coded as its one's complement, without the bits above its size.
    let low = (value + (value >> 31)) as u32 & ((1 << size) - 1);
    Word { bits: word.bits << size | low, len: word.len + size }
}

/// Bits on their way to bytes.
#[derive(Clone, Copy, Default)]
struct Bits {
    /// The bits that wait, the first of them on top.
    waiting: u64,
    count: u32,
}

impl Bits {
    /// Appends bits: no more than 56 between two drains.
    #[inline(always)]
    fn push(&mut self, word: Word) {
        self.count += word.len;
        self.waiting |= u64::from(word.bits) << (64 - self.count);
    }

    /// Writes all whole bytes to `at`; returns where they end. Up to 7 bits wait on.
    ///
    /// Eight bytes are written whatever there is, and the surplus the next time again: that is
    /// cheaper than to decide.
    #[inline(always)]
    fn drain(&mut self, out: &mut [u8], at: usize) -> usize {
        out[at..at + 8].copy_from_slice(&self.waiting.to_be_bytes());
        let bytes = self.count / 8;
        // Never by 64 at once, which would be no shift at all.
        self.waiting = self.waiting << (bytes * 4) << (bytes * 4);
        self.count %= 8;
        at + bytes as usize
    }
}
