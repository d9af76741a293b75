//! A gray image of generated pixels, encoded by `jpeg-encoder` eight rows at a time.
//!
//! In memory at once: two times eight rows of pixels, and up to [`FLUSH_BYTES`] of the file.

use std::cell::RefCell;

use jpeg_encoder::{Encoder, EncodingError, ImageBuffer, JfifWrite, JpegColorType};

use crate::image::Size;
use crate::writer::Writer;
use crate::{Content, Element, EncodeError, Encoded};

/// Pillow's default.
const QUALITY: u8 = 75;
/// Rows of a block, which are encoded together.
const BLOCK_ROWS: usize = 8;
/// How much data is collected before it goes to the sink.
const FLUSH_BYTES: usize = 32 << 10;

/// An estimate of the file's size, which is good for noise.
pub(super) fn estimate(size: Size) -> u64 {
    /// All segments, and the end marker.
    const FRAME: u64 = 399;
    /// Size of an encoded block, in hundredths of a byte.
    const BLOCK: u64 = 3555;
    /// Share of a full block's size that a block takes if only this many of its rows or columns
    /// belong to the image, in thousandths.
    const SHARES: [u64; BLOCK_ROWS] = [0, 411, 815, 915, 957, 980, 995, 1000];
    let blocks = |side: u32| u64::from(side / 8) * 1000 + SHARES[side as usize % 8];
    FRAME + blocks(size.height) * blocks(size.width) / 1000 * BLOCK / 100_000
}

/// Writes the image whose rows `content` gives.
pub(super) fn encode(size: Size, content: &Content, writer: &mut Writer<'_>) -> Encoded<()> {
    let mut output = Output { writer, pending: Vec::with_capacity(FLUSH_BYTES), error: None };
    let rows = Rows { size, content, strip: RefCell::default() };
    let encoded = Encoder::new(&mut output, QUALITY).encode_image(rows);
    if let Some(error) = output.error {
        return Err(error);
    }
    let pending = output.pending;
    let offset = writer.written();
    encoded.map_err(|source| EncodeError::Coding {
        format: "jpeg",
        offset,
        source: source.to_string().into(),
    })?;
    writer.put(&pending)
}

/// The pixels, of which the encoder asks for one row after the other.
struct Rows<'a> {
    size: Size,
    content: &'a Content,
    /// The rows of the current block: drawing them one by one would draw the content before them
    /// again for each.
    strip: RefCell<Vec<u8>>,
}

impl ImageBuffer for Rows<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Luma
    }

    fn width(&self) -> u16 {
        self.size.width as u16
    }

    fn height(&self) -> u16 {
        self.size.height as u16
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let width = self.size.width as usize;
        let row = usize::from(y) % BLOCK_ROWS;
        let mut strip = self.strip.borrow_mut();
        if row == 0 {
            let rows = BLOCK_ROWS.min(self.size.height as usize - usize::from(y));
            strip.resize(rows * width, 0);
            self.content.fill(Element::UInt8, u64::from(y) * width as u64, &mut strip);
        }
        buffers[0].extend_from_slice(&strip[row * width..(row + 1) * width]);
    }
}

/// Collects the encoder's output, which comes a few bytes at a time.
struct Output<'a, 'w> {
    writer: &'a mut Writer<'w>,
    pending: Vec<u8>,
    /// The error of the sink, which the encoder's own error type could only quote.
    error: Option<EncodeError>,
}

impl JfifWrite for &mut Output<'_, '_> {
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), EncodingError> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= FLUSH_BYTES {
            if let Err(error) = self.writer.put(&self.pending) {
                self.error = Some(error);
                return Err(EncodingError::Write("the sink refused bytes".to_owned()));
            }
            self.pending.clear();
        }
        Ok(())
    }
}
