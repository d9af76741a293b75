//! `jpeg`: one gray image per file, whatever the number of samples: baseline, quality 75.
//!
//! Read whole, as Pillow does, and decoded to pixels by `zune-jpeg` in its strict mode: gray stays
//! gray, everything else becomes RGB. Exif, profiles, comments and whatever follows the image are
//! passed over. A file without its end marker is an error, and so is sequential gray data, which
//! Feedline and DLIO write, that ends early; what is missing of other images with an end marker is
//! gray, as in Pillow. Arithmetic, lossless and hierarchical coding and depths other than 8 bits are
//! not supported.
//!
//! A JPEG can be very small: a block of 64 pixels takes a bit. So up to [`PIXELS_PER_BYTE`] are
//! believed, and [`FREE_PIXELS`] in any case; a file that announces more is refused. Memory is a byte
//! per pixel for gray and 3 for color, which is reused, and up to 9 more while a progressive image is
//! decoded.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::error::check_limit;
use crate::framework::FrameworkReader;
use crate::image::{self, Size};
use crate::sample_sink::{self, Decode, Request};
use crate::scratch::grow;
use crate::writer::Writer;
use crate::{
    ByteSink, ByteSource, Content, DecodeError, Decoded, Element, Encoded, FileSize, FileSpec,
    Format, Opened, ReadUnit, SampleFormat, SamplePart, SampleRead, SampleSink, Scratch,
};

mod encode;
mod segments;

use segments::Frame;

/// The longest side that the format can express.
const SIDE_LIMIT: u32 = 65_535;
/// The most pixels that a byte of a file can represent.
const PIXELS_PER_BYTE: u64 = 512;
/// Pixels that a file of any size may announce.
const FREE_PIXELS: u64 = 1 << 20;

/// More ones than a code and its value have bits or the decoder reads ahead, then an end marker.
const PADDING: [u8; 18] =
    [0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0xD9];

pub(crate) struct Jpeg;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    other_extensions: &["jpg"],
    read_unit: ReadUnit::File,
    is_image: true,
    has_dali_reader: true,
    framework: Some(FrameworkReader::PillowJpeg),
    ..SampleFormat::new("jpeg", |_| Ok(Box::new(Jpeg)))
};

impl Format for Jpeg {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let Ok(size) = Size::of("jpeg", SIDE_LIMIT, file) else {
            return FileSize::About(u64::MAX);
        };
        FileSize::About(encode::estimate(size))
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let size = Size::of("jpeg", SIDE_LIMIT, file)?;
        encode::encode(size, content, &mut Writer::new(sink))
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(Jpeg))
    }
}

impl Decode for Jpeg {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, scratch, .. } = request;
        let len = image::load(source, &mut scratch.whole)?.len();
        let frame = decode(&mut scratch.whole, len, &mut scratch.decoded)?;
        let shape = [frame.height.into(), frame.width.into(), frame.channels() as u64];
        let bytes = shape.iter().product();
        if sink.wants_bytes() {
            let element = Some(Element::UInt8);
            sample_sink::begin(sink, SamplePart { name: "", element, shape: &shape })?;
            sample_sink::put(sink, &scratch.decoded[..bytes as usize])?;
        }
        let (file_bytes, element) = (len as u64, Some(Element::UInt8));
        Ok(SampleRead { bytes, file_bytes, samples: 0, element })
    }
}

/// Decodes the image in the first `len` bytes of `whole` to the front of `decoded`. Both keep their
/// size.
fn decode(whole: &mut Vec<u8>, len: usize, decoded: &mut Vec<u8>) -> Decoded<Frame> {
    let file = &whole[..len];
    let (frame, scan) = segments::head(file)?;
    check_proportion(file, &frame)?;
    let mut end = segments::end_of_image(file, scan.end)?;
    let scan = scan.offset;
    if frame.components == 1 && !frame.progressive {
        // The decoder takes zeros for what is missing before an end marker. No code consists of ones
        // only, so with ones in place of the marker it notices.
        end += PADDING.len() - 2;
        grow(whole, end);
        whole[end - PADDING.len()..end].copy_from_slice(&PADDING);
    }
    decode_pixels(&whole[..end], scan, &frame, decoded)?;
    Ok(frame)
}

/// Refuses an image of more pixels than the file can have data for.
fn check_proportion(file: &[u8], frame: &Frame) -> Decoded<()> {
    let side = |pixels: u16| u64::from(pixels).next_multiple_of(8);
    let needed = side(frame.height) * side(frame.width);
    let limit = (file.len() as u64).saturating_mul(PIXELS_PER_BYTE).saturating_add(FREE_PIXELS);
    check_limit(("jpeg", "the image"), frame.offset, needed, limit)
}

fn decode_pixels(image: &[u8], scan: usize, frame: &Frame, decoded: &mut Vec<u8>) -> Decoded<()> {
    let coding = |error: zune_jpeg::errors::DecodeErrors| {
        DecodeError::coding("jpeg", scan as u64, error.to_string())
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
    decoder.decode_into(grow(decoded, len)).map_err(coding)
}

#[cfg(test)]
mod tests;
