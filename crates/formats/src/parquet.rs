//! `parquet`: rows in groups, a group's values column by column, columns in pages.
//!
//! Written with two columns: `x`, the bytes of a sample in C order, and `y`, a label 0. Both are
//! plain and not null; shape and type of a sample are in the file's metadata (`shape`, `dtype`). A
//! row group has at most 16 MiB of samples or one, a page 1 MiB or one; a page is what `gzip`
//! compresses as one and what is held in memory while it does. No page has a checksum, which is
//! pyarrow's default too.
//!
//! Read as `ParquetFile.read_row_group` with one column does: the footer, then for a sample the whole
//! column chunk of its row group, every page decoded and checked. Sizes of the rows that follow are
//! kept, so a reader that goes on in the same group does not read it again; a reader that takes the
//! samples keeps the rows themselves, as far as they take no more than the file.
//!
//! Files of other writers are read if their pages are plain, dictionaries or packed booleans, not
//! compressed or by snappy or gzip, whatever is null or in lists. Their samples are the field `x`,
//! its first column if it has several, or the first column of all if there is no such field. A
//! sample's size is that of its values in memory.
//!
//! Written by hand because the crate `parquet` panics on damaged files, and reads through a source
//! that it owns.

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use std::io::Write;

use crate::framework::FrameworkReader;
use crate::sample_sink::{self, Decode, Request};
use crate::scratch::grow;
use crate::window::{Window, fetch};
use crate::writer::Writer;
use crate::{
    ByteRange, ByteSink, ByteSource, Compression, Content, DecodeError, Decoded, Element,
    EncodeError, Encoded, FileSize, FileSpec, Format, Opened, OptionError, Options, PIECE_BYTES,
    SampleFormat, SampleRead, SampleSink, Scratch,
};

mod body;
mod chunk;
mod footer;
mod kept;
mod layout;
mod page;
mod rows;
mod values;

use chunk::ChunkReader;
use footer::Footer;
use kept::{Keep, KeepNothing, KeptRows, Meaning};
use layout::{Chunk, Column, Layout, MAGIC, TAIL_BYTES, page_header};
use rows::{Cursor, Rows};

const NAME: &str = "parquet";
/// What is read at the end of a file at first, as in pyarrow.
const FOOTER_READ_BYTES: u64 = 64 << 10;

pub(crate) struct Parquet {
    /// The level, if pages are compressed.
    gzip: Option<u32>,
}

pub(crate) static FACTS: SampleFormat = SampleFormat {
    compressions: &[Compression::Gzip],
    framework: Some(FrameworkReader::Pyarrow),
    ..SampleFormat::new(NAME, build)
};

fn build(options: &Options) -> Result<Box<dyn Format>, OptionError> {
    let gzip = (options.compression == Compression::Gzip).then_some(options.level);
    Ok(Box::new(Parquet { gzip }))
}

impl Format for Parquet {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let Ok(layout) = self.layout(file) else { return FileSize::Exact(u64::MAX) };
        let plain = layout.size();
        if self.gzip.is_none() {
            return FileSize::Exact(plain);
        }
        let samples = file.payload_bytes().unwrap_or(0);
        let thousandths = u128::from(samples) * u128::from(gzip_thousandths(file.element));
        FileSize::About((plain - samples.min(plain)) + (thousandths / 1000) as u64)
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let layout = self.layout(file)?;
        let mut writer = Writer::new(sink);
        writer.put(MAGIC)?;
        let mut pages = Pages {
            gzip: self.gzip,
            piece: vec![0; if self.gzip.is_some() { PIECE_BYTES } else { 0 }],
            compressed: Vec::new(),
            writer,
            written: MAGIC.len() as u64,
        };
        let mut chunks = Vec::new();
        for group in 0..layout.groups() {
            let first = group * layout.group_rows * layout.sample_bytes;
            let rows = layout.rows_of(group);
            let x = pages.chunk(&layout, Column::Samples, rows, |at, space| {
                if layout.sample_bytes > 0 {
                    content.fill(file.element, first + at, space);
                } else {
                    space.fill(0);
                }
            })?;
            let y = pages.chunk(&layout, Column::Labels, rows, |_, space| space.fill(0))?;
            chunks.push([x, y]);
        }
        let footer = layout.footer(&chunks);
        pages.writer.put(&footer)?;
        pages.writer.put(&(footer.len() as u32).to_le_bytes())?;
        pages.writer.put(MAGIC)
    }

    fn open(&self, source: &mut dyn ByteSource, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        let file_len = source.len().map_err(|source| DecodeError::Size { source })?;
        let (bytes, offset) = footer_bytes(source, file_len, &mut scratch.whole)?;
        let footer = Footer::parse(bytes, offset)?;
        Ok(Box::new(Groups {
            kept: KeptRows::of(&footer.name),
            footer,
            offset,
            file_len,
            cursor: Cursor::default(),
        }))
    }
}

impl Parquet {
    fn layout(&self, file: &FileSpec) -> Encoded<Layout> {
        Layout::of(file, if self.gzip.is_some() { 2 } else { 0 })
    }
}

/// What is left of a thousand bytes of samples, as measured at the usual level: only the random bits
/// of an element stay, and less than that is saved where they fill all of its bytes.
fn gzip_thousandths(element: Element) -> u64 {
    match element {
        Element::Bool => 163,
        Element::Float16 => 837,
        Element::Float32 | Element::Complex64 => 885,
        Element::Float64 | Element::Complex128 => 938,
        _ => 1000,
    }
}

/// Writes pages, one after the other.
struct Pages<'a> {
    gzip: Option<u32>,
    /// Samples on their way to be compressed.
    piece: Vec<u8>,
    /// One page; keeps its size.
    compressed: Vec<u8>,
    writer: Writer<'a>,
    written: u64,
}

impl Pages<'_> {
    /// Writes a column chunk; `fill` gets every piece with its place among the chunk's values.
    fn chunk(
        &mut self,
        layout: &Layout,
        column: Column,
        rows: u64,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> Encoded<Chunk> {
        let (page_rows, value_bytes) = (layout.page_rows(column), layout.value_bytes(column));
        let mut chunk = Chunk::default();
        let mut done = 0;
        while done < rows {
            let now = page_rows.min(rows - done);
            let (first, bytes) = (done * value_bytes, now * value_bytes);
            let page = match self.gzip {
                None => self.plain_page(now, bytes, |at, space| fill(first + at, space))?,
                Some(level) => {
                    self.gzip_page(now, bytes, level, |at, space| fill(first + at, space))?
                }
            };
            chunk.bytes += page.bytes;
            chunk.plain_bytes += page.plain_bytes;
            done += now;
        }
        self.written += chunk.bytes;
        Ok(chunk)
    }

    fn plain_page(
        &mut self,
        rows: u64,
        bytes: u64,
        fill: impl FnMut(u64, &mut [u8]),
    ) -> Encoded<Chunk> {
        let header = page_header(rows, bytes, bytes);
        self.writer.put(&header)?;
        self.writer.generate(bytes, fill)?;
        let bytes = header.len() as u64 + bytes;
        Ok(Chunk { bytes, plain_bytes: bytes })
    }

    fn gzip_page(
        &mut self,
        rows: u64,
        bytes: u64,
        level: u32,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> Encoded<Chunk> {
        let offset = self.written;
        let coding = |error: std::io::Error| EncodeError::Coding {
            format: NAME,
            offset,
            source: error.into(),
        };
        let mut compressed = std::mem::take(&mut self.compressed);
        compressed.clear();
        let mut gzip = GzEncoder::new(compressed, Level::new(level));
        let mut at = 0;
        while at < bytes {
            let part = &mut self.piece[..(bytes - at).min(PIECE_BYTES as u64) as usize];
            fill(at, part);
            gzip.write_all(part).map_err(coding)?;
            at += part.len() as u64;
        }
        self.compressed = gzip.finish().map_err(coding)?;
        let stored = self.compressed.len() as u64;
        if stored > i32::MAX as u64 {
            let what = format!("a compressed page of {stored} bytes, which must be less than 2^31");
            return Err(EncodeError::Layout { format: NAME, what });
        }
        let header = page_header(rows, bytes, stored);
        self.writer.put(&header)?;
        self.writer.put(&self.compressed)?;
        let frame = header.len() as u64;
        Ok(Chunk { bytes: frame + stored, plain_bytes: frame + bytes })
    }
}

/// The footer and where it is: one read of the file's end, another if that was not enough.
fn footer_bytes<'b>(
    source: &mut dyn ByteSource,
    file_len: u64,
    buffer: &'b mut Vec<u8>,
) -> Decoded<(&'b [u8], u64)> {
    let magic = MAGIC.len() as u64;
    if file_len < magic + TAIL_BYTES {
        let needed = magic + TAIL_BYTES;
        return Err(DecodeError::truncated(needed, file_len));
    }
    let have = file_len.min(FOOTER_READ_BYTES);
    let bytes = grow(buffer, have as usize);
    fetch(source, file_len - have, bytes)?;
    let tail_at = file_len - TAIL_BYTES;
    let (_, tail) = bytes.split_at(bytes.len() - TAIL_BYTES as usize);
    let (len, end) = tail.split_at(4);
    if end != MAGIC {
        return Err(match end {
            b"PARE" => DecodeError::Feature {
                format: NAME,
                feature: "encryption".to_owned(),
                offset: tail_at + 4,
            },
            _ => DecodeError::Foreign {
                format: "a parquet file, or not all of it",
                offset: tail_at + 4,
                expected: "PAR1 at the end",
                found: end.to_vec(),
            },
        });
    }
    let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]);
    let at = tail_at.checked_sub(len.into()).filter(|&at| at >= magic);
    let at = at.ok_or_else(|| chunk::wrong(tail_at, "the length of a footer in the file", len))?;
    let len = len as usize;
    if len as u64 + TAIL_BYTES > have {
        let bytes = grow(buffer, len);
        fetch(source, at, bytes)?;
        return Ok((bytes, at));
    }
    let from = (at + have - file_len) as usize;
    Ok((&buffer[from..from + len], at))
}

/// A file whose footer has been read.
struct Groups {
    footer: Footer,
    /// Where the footer is.
    offset: u64,
    file_len: u64,
    cursor: Cursor,
    kept: KeptRows,
}

impl Groups {
    fn group_of(&self, row: u64) -> Decoded<usize> {
        let (offset, samples) = (self.offset, self.footer.rows);
        self.footer.group_of(row).ok_or(DecodeError::SampleIndex { offset, index: row, samples })
    }

    /// Decodes a group from `row` on, which `keep` may keep; gives the bytes that were read.
    fn decode_group<K: Keep>(
        &mut self,
        source: &mut dyn ByteSource,
        row: u64,
        scratch: &mut Scratch,
        keep: &mut K,
    ) -> Decoded<u64> {
        let number = self.group_of(row)?;
        let group = self.footer.groups[number];
        let mut window = Window::new(source, &mut scratch.piece)?;
        // At 16 bytes each, and twice that while the list grows, as much as the file and 64 KiB.
        let most = 2048 + (self.file_len / 32) as usize;
        let cursor = std::mem::take(&mut self.cursor);
        let mut rows = Rows::new(row - group.first_row, most, cursor);
        ChunkReader {
            window: &mut window,
            stored: &mut scratch.whole,
            plain: &mut scratch.decoded,
            column: self.footer.column,
            group,
            rows: &mut rows,
            keep,
        }
        .read()?;
        self.cursor = rows.finish(number, group.first_row);
        Ok(window.pulled())
    }

    /// Hands a row over, decoding its group unless the row was kept; gives its bytes, and those that
    /// were read.
    fn deliver<S: SampleSink>(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> Decoded<(u64, u64)> {
        let number = self.group_of(index)?;
        let row = index - self.footer.groups[number].first_row;
        let mut pulled = 0;
        if self.kept.find(number, row).is_none() {
            let mut kept = std::mem::take(&mut self.kept);
            kept.restart(number, row, sink.room_bytes(), self.file_len);
            let decoded = self.decode_group(source, index, scratch, &mut kept);
            self.kept = kept;
            pulled = decoded.inspect_err(|_| self.kept.clear())?;
        }
        let Footer { column, element, shape, name, .. } = &self.footer;
        let Some(found) = self.kept.find(number, row) else { return Ok((0, pulled)) };
        let bytes = found.bytes.len() as u64;
        sample_sink::check_room(sink, name, bytes)?;
        let meaning = Meaning {
            element: column.element,
            is_list: column.max_repetition > 0,
            array: element.zip(shape.as_deref()),
        };
        found.part(name, &meaning, |part| sample_sink::begin(sink, part))?;
        sample_sink::put(sink, found.bytes)?;
        Ok((bytes, pulled))
    }
}

impl Decode for Groups {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let group = self.group_of(index)?;
        let (bytes, file_bytes) = if sink.wants_bytes() {
            self.deliver(source, index, scratch, sink)?
        } else if let Some(bytes) = self.cursor.take(group, index) {
            (bytes, 0)
        } else {
            let pulled = self.decode_group(source, index, scratch, &mut KeepNothing)?;
            (self.cursor.take(group, index).unwrap_or(0), pulled)
        };
        let element = self.footer.element.or(self.footer.column.element);
        Ok(SampleRead { bytes, file_bytes, samples: self.footer.rows, element })
    }

    fn locate_sample(&mut self, request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        let Request { index, .. } = request;
        let group = self.footer.groups[self.group_of(index)?];
        ranges.push(ByteRange { offset: group.offset, len: Some(group.len) });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
