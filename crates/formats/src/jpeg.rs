//! `jpeg`: one gray image a file, whatever the number of samples: baseline, quality 75.
//!
//! Read whole, as Pillow does, and decoded to pixels: sequential gray images, which this format and
//! DLIO write, by [`gray`]; colour and progressive ones by `zune-jpeg` in its strict mode, to RGB.
//! Exif, profiles and comments are passed over, and so is what follows the image. A file without its
//! end marker is an error, and so is gray data that ends early or goes on; of colour and progressive
//! images with an end marker what is missing is gray, as in Pillow. Arithmetic, lossless and
//! hierarchical coding and depths other than 8 bits are not read.
//!
//! A JPEG can be very small: a block of 64 pixels takes a bit. So up to [`PIXELS_PER_BYTE`] are
//! believed, and [`FREE_PIXELS`] in any case; what announces more is refused. Memory is a byte a
//! pixel for gray and 3 for colour, which is used again, and up to 9 more while a progressive image
//! is decoded.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::image::{self, Size};
use crate::sample_sink::{self, Decode};
use crate::writer::Writer;
use crate::{
    Access, Content, DecodeError, Element, EncodeError, FileSize, FileSpec, Format, Opened,
    OptionError, Options, SamplePart, SampleRead, SampleSink, Scratch, Sink, Source,
};

mod dct;
mod encode;
mod gray;
mod huffman;
mod quad;
mod segments;
mod stuffing;
mod tables;

use segments::Frame;

/// The longest side that the format can say.
const SIDE_LIMIT: u32 = 65_535;
/// The most pixels that a byte of a file can stand for.
const PIXELS_PER_BYTE: u64 = 512;
/// Pixels that a file of any size may announce.
const FREE_PIXELS: u64 = 1 << 20;

/// The format `jpeg`.
pub(crate) struct Jpeg;

/// The format; it has no options.
pub(crate) fn build(options: &Options) -> Result<Box<dyn Format>, OptionError> {
    options.check_compression("jpeg", &[])?;
    Ok(Box::new(Jpeg))
}

impl Format for Jpeg {
    fn name(&self) -> &'static str {
        "jpeg"
    }

    fn access(&self) -> Access {
        Access::Whole
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let Ok(size) = Size::of("jpeg", SIDE_LIMIT, file) else {
            return FileSize::About(u64::MAX);
        };
        FileSize::About(encode::estimate(size))
    }

    fn encode(
        &self,
        file: &FileSpec,
        content: &Content,
        sink: &mut dyn Sink,
    ) -> Result<(), EncodeError> {
        let size = Size::of("jpeg", SIDE_LIMIT, file)?;
        encode::encode(size, content, &mut Writer::new(sink))
    }

    fn open(
        &self,
        _source: &mut dyn Source,
        _scratch: &mut Scratch,
    ) -> Result<Box<dyn Opened>, DecodeError> {
        Ok(Box::new(Jpeg))
    }
}

impl Decode for Jpeg {
    fn decode<S: SampleSink>(
        &mut self,
        source: &mut dyn Source,
        _index: u64,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> Result<SampleRead, DecodeError> {
        let file = image::load(source, &mut scratch.whole)?;
        let frame = decode(file, &mut scratch.decoded)?;
        if sink.wants_bytes() {
            deliver(&frame, &scratch.decoded, sink)?;
        }
        Ok(SampleRead {
            bytes: u64::from(frame.height) * u64::from(frame.width) * u64::from(frame.components),
            file_bytes: file.len() as u64,
            samples: 0,
            element: Some(Element::UInt8),
        })
    }
}

/// Hands the pixels over, as they were decoded.
fn deliver<S: SampleSink>(frame: &Frame, decoded: &[u8], sink: &mut S) -> Result<(), DecodeError> {
    let channels = frame.channels();
    let shape = [u64::from(frame.height), u64::from(frame.width), channels as u64];
    sample_sink::begin(
        sink,
        SamplePart { name: "", element: Some(Element::UInt8), shape: &shape },
    )?;
    let row = usize::from(frame.width) * channels;
    for pixels in decoded.chunks_exact(frame.stride()).take(usize::from(frame.height)) {
        sample_sink::put(sink, &pixels[..row])?;
    }
    Ok(())
}

/// Decodes the image to the front of `decoded`, which keeps its size.
///
/// Gray images of one scan get rows of a multiple of eight pixels there.
fn decode(file: &[u8], decoded: &mut Vec<u8>) -> Result<Frame, DecodeError> {
    let (head, scan) = segments::head(file)?;
    let frame = head.frame;
    check_proportion(file, &frame)?;
    if frame.is_plain_gray() {
        let stride = frame.stride();
        let strips = usize::from(frame.height).div_ceil(8);
        let len = stride * strips * 8;
        grow(decoded, len + file.len());
        let (pixels, plain) = decoded.split_at_mut(len);
        let mut plane = gray::Plane { stride, strips, pixels };
        let end = gray::decode(file, &head, &scan, &mut plane, plain)?;
        segments::end_of_image(file, end)?;
    } else {
        let end = segments::end_of_image(file, scan.end)?;
        decode_any(&file[..end], scan.offset, &frame, decoded)?;
    }
    Ok(frame)
}

/// Refuses an image of more pixels than the file can have data for.
fn check_proportion(file: &[u8], frame: &Frame) -> Result<(), DecodeError> {
    let side = |pixels: u16| u64::from(pixels).next_multiple_of(8);
    let needed = side(frame.height) * side(frame.width);
    let limit = (file.len() as u64).saturating_mul(PIXELS_PER_BYTE).saturating_add(FREE_PIXELS);
    if needed <= limit {
        return Ok(());
    }
    let (format, what, offset) = ("jpeg", "the image", frame.offset);
    Err(DecodeError::TooMuch { format, what, offset, needed, limit })
}

/// Decodes images of all kinds.
fn decode_any(
    image: &[u8],
    scan: usize,
    frame: &Frame,
    decoded: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let coding = |error: zune_jpeg::errors::DecodeErrors| DecodeError::Coding {
        format: "jpeg",
        offset: scan as u64,
        source: error.to_string().into(),
    };
    let output = if frame.channels() == 1 { ColorSpace::Luma } else { ColorSpace::RGB };
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(SIDE_LIMIT as usize)
        .set_max_height(SIDE_LIMIT as usize)
        .jpeg_set_out_colorspace(output);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(image), options);
    decoder.decode_headers().map_err(coding)?;
    let len = usize::from(frame.height) * usize::from(frame.width) * output.num_components();
    grow(decoded, len);
    decoder.decode_into(&mut decoded[..len]).map_err(coding)
}

fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

#[cfg(test)]
mod tests;
