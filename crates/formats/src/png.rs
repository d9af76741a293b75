//! `png`: one gray image of 8 bits a file, whatever the number of samples.
//!
//! Every row has filter 0 and all data is in stored blocks: noise neither filters nor deflates, and
//! Pillow's own files of it are as large, within a few bytes in a thousand. Written in pieces, one
//! block an `IDAT` chunk.
//!
//! Read whole, as Pillow does: every chunk's CRC is checked, then the image is inflated (Adler-32
//! checked) and unfiltered row by row, and each row dropped. All color types, depths and interlaced
//! images are decoded; of an animation the image that viewers without animation show. The memory
//! for that is a few rows, and [`row_limit`] says how large one may be.

use std::io::Cursor;

use ::png::InterlaceInfo;
use crc32fast::Hasher;
use simd_adler32::Adler32;

use crate::error::check_limit;
use crate::framework::FrameworkReader;
use crate::image::{self, Size};
use crate::sample_sink::{Decode, Request};
use crate::scratch::grow;
use crate::writer::Writer;
use crate::{
    ByteSink, ByteSource, Content, DecodeError, Decoded, Element, Encoded, FileSize, FileSpec,
    Format, Opened, ReadUnit, SampleFormat, SampleRead, SampleSink, Scratch,
};

mod chunks;
mod pixels;

use chunks::{Chunks, Header, SIGNATURE};
use pixels::Pixels;

/// The longest side that the format can say.
const SIDE_LIMIT: u32 = i32::MAX as u32;

/// The most that a stored block of deflate holds.
const BLOCK_BYTES: u64 = 65_535;
/// Length, type and checksum of a chunk.
const CHUNK_FRAME: u64 = 12;
/// Kind and two lengths of a stored block.
const BLOCK_FRAME: u64 = 5;
/// A zlib header that announces a window of 32 KiB and the fastest compression.
const ZLIB_HEADER: [u8; 2] = [0x78, 0x01];
const ADLER_BYTES: u64 = 4;
const IHDR_BYTES: u64 = 13;

/// How many bytes a row of a file of that size may take, so that the rows that are in memory at once
/// stay within 16 times the file and a mebibyte. Only an image that is far wider than high and
/// nearly empty exceeds it.
fn row_limit(file_bytes: u64) -> u64 {
    file_bytes.saturating_mul(4).saturating_add(256 << 10)
}

pub(crate) struct Png;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    read_unit: ReadUnit::File,
    is_image: true,
    has_dali_reader: true,
    framework: Some(FrameworkReader::PillowPng),
    ..SampleFormat::new("png", |_| Ok(Box::new(Png)))
};

impl Format for Png {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let Ok(size) = Size::of("png", SIDE_LIMIT, file) else {
            return FileSize::Exact(u64::MAX);
        };
        let raw = filtered_bytes(size);
        let frames = raw.div_ceil(BLOCK_BYTES) * (CHUNK_FRAME + BLOCK_FRAME);
        let data = raw + frames + ZLIB_HEADER.len() as u64 + ADLER_BYTES;
        FileSize::Exact(SIGNATURE.len() as u64 + 2 * CHUNK_FRAME + IHDR_BYTES + data)
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let size = Size::of("png", SIDE_LIMIT, file)?;
        let mut writer = Writer::new(sink);
        writer.put(&SIGNATURE)?;
        let mut header = [0; IHDR_BYTES as usize];
        header[..4].copy_from_slice(&size.width.to_be_bytes());
        header[4..8].copy_from_slice(&size.height.to_be_bytes());
        header[8] = 8;
        put_chunk(&mut writer, b"IHDR", &header)?;
        put_data(&mut writer, size, content)?;
        put_chunk(&mut writer, b"IEND", &[])
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(Png))
    }
}

impl Decode for Png {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, scratch, .. } = request;
        let file = image::load(source, &mut scratch.whole)?;
        let chunks = chunks::check(file)?;
        let mut pixels = Pixels::begin(sink, chunks.header)?;
        decode(file, &chunks, &mut scratch.decoded, |place, row| pixels.row(place, row))?;
        pixels.finish()?;
        Ok(SampleRead {
            bytes: chunks.header.pixel_bytes(),
            file_bytes: file.len() as u64,
            samples: 0,
            element: Some(chunks.header.element()),
        })
    }
}

/// Size of all rows, each after the number of its filter.
fn filtered_bytes(size: Size) -> u64 {
    size.pixels() + u64::from(size.height)
}

fn put_chunk(writer: &mut Writer<'_>, kind: &[u8; 4], body: &[u8]) -> Encoded<()> {
    let mut crc = Hasher::new();
    crc.update(kind);
    crc.update(body);
    writer.put(&(body.len() as u32).to_be_bytes())?;
    writer.put(kind)?;
    writer.put(body)?;
    writer.put(&crc.finalize().to_be_bytes())
}

/// The image as one zlib stream of stored blocks, a block a chunk.
fn put_data(writer: &mut Writer<'_>, size: Size, content: &Content) -> Encoded<()> {
    let mut rows = Rows::new(size, content);
    let mut adler = Adler32::new();
    let total = filtered_bytes(size);
    let mut done = 0;
    while done < total {
        let len = BLOCK_BYTES.min(total - done);
        let (first, last) = (done == 0, done + len == total);
        let mut head = Vec::with_capacity(16);
        let around = if first { ZLIB_HEADER.len() as u64 } else { 0 };
        let after = if last { ADLER_BYTES } else { 0 };
        head.extend(((around + BLOCK_FRAME + len + after) as u32).to_be_bytes());
        head.extend(b"IDAT");
        if first {
            head.extend(ZLIB_HEADER);
        }
        head.push(u8::from(last));
        head.extend((len as u16).to_le_bytes());
        head.extend((!(len as u16)).to_le_bytes());
        let mut crc = Hasher::new();
        crc.update(&head[4..]);
        writer.put(&head)?;
        writer.generate(len, |_, space| {
            rows.fill(space);
            adler.write(space);
            crc.update(space);
        })?;
        if last {
            let sum = adler.finish().to_be_bytes();
            crc.update(&sum);
            writer.put(&sum)?;
        }
        writer.put(&crc.finalize().to_be_bytes())?;
        done += len;
    }
    Ok(())
}

/// Rows of content, each after its filter number, in any pieces.
///
/// The content is made in blocks of its own: to begin anywhere else costs it a part of a block.
struct Rows<'a> {
    content: &'a Content,
    width: usize,
    /// Bytes of the current row that are still to come; at 0 a new row begins.
    left: usize,
    noise: Vec<u8>,
    /// Where in `noise` the next pixel is.
    at: usize,
    /// Where in the content the next block of noise begins.
    next: u64,
}

impl<'a> Rows<'a> {
    const NOISE_BYTES: usize = 16 << 10;

    fn new(size: Size, content: &'a Content) -> Self {
        let noise = vec![0; Self::NOISE_BYTES];
        let width = size.width as usize;
        Rows { content, width, left: 0, at: noise.len(), noise, next: 0 }
    }

    fn fill(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.left == 0 {
                out[0] = 0;
                out = &mut out[1..];
                self.left = self.width;
                continue;
            }
            if self.at == self.noise.len() {
                self.content.fill(Element::UInt8, self.next, &mut self.noise);
                self.next += self.noise.len() as u64;
                self.at = 0;
            }
            let part = out.len().min(self.left).min(self.noise.len() - self.at);
            out[..part].copy_from_slice(&self.noise[self.at..self.at + part]);
            self.at += part;
            self.left -= part;
            out = &mut out[part..];
        }
    }
}

/// Decodes the image and shows each row to `visit`, with its place in the image.
fn decode(
    file: &[u8],
    chunks: &Chunks,
    row: &mut Vec<u8>,
    mut visit: impl FnMut(InterlaceInfo, &[u8]) -> Decoded<()>,
) -> Decoded<()> {
    let coding = |error: ::png::DecodingError| wrong(error, chunks.data_offset);
    let row_bytes = chunks.header.row_bytes();
    let limit = row_limit(file.len() as u64);
    check_limit(("png", "a row"), Header::OFFSET, row_bytes, limit)?;
    let mut options = ::png::DecodeOptions::default();
    // The CRCs have been checked, those of chunks that the decoder passes over too.
    options.set_ignore_crc(true);
    options.set_ignore_adler32(false);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = ::png::Decoder::new_with_options(Cursor::new(file), options);
    decoder.set_limits(::png::Limits { bytes: usize::MAX });
    let mut reader = decoder.read_info().map_err(coding)?;
    grow(row, row_bytes as usize);
    while let Some(place) = reader.read_row(row).map_err(coding)? {
        visit(place, row)?;
    }
    Ok(())
}

fn wrong(error: ::png::DecodingError, offset: u64) -> DecodeError {
    DecodeError::Coding { format: "png", offset, source: Box::new(error) }
}

#[cfg(test)]
mod tests;
