//! `csv`: a row of decimal numbers for each sample, without header or index column.
//!
//! The text is what pandas prints of such a frame: integers plain, floats as the shortest text that
//! leads back to them, `True` and `False`. Unlike in DLIO, where all rows of a file are the same,
//! every row has a content of its own. Read whole, as pandas does, every number parsed; the text
//! does not say what element type it was printed from, so a sample counts as the 8 bytes a number
//! (1 a boolean) that pandas makes of it.
//!
//! Text has no checksum: a digit that changed into another is read as the other. With compression
//! `gzip` the file is called `.csv.gz`, by which pandas knows it, and the checksum is gzip's.

mod gzip;
mod print;
mod rows;
mod values;

use crate::deflate::Deflater;
use crate::framework::FrameworkReader;
use crate::sample_sink::{Decode, Request};
use crate::window::Window;
use crate::writer::Writer;
use crate::{
    ByteSink, ByteSource, Compression, Content, DecodeError, Decoded, Element, EncodeError,
    Encoded, FileSize, FileSpec, Format, Opened, OptionError, Options, ReadUnit, SampleFormat,
    SampleRead, SampleSink, Scratch,
};
use rows::Rows;
use values::Values;

const NAME: &str = "csv";
/// Elements are printed from blocks of this many bytes, which is a multiple of every element's
/// size and what [`Content`] is fastest at.
const BLOCK_BYTES: u64 = 16 * 1024;

pub(crate) struct Csv {
    /// The level of gzip; `None` means plain text.
    level: Option<u32>,
}

pub(crate) static FACTS: SampleFormat = SampleFormat {
    compressions: &[Compression::Gzip],
    read_unit: ReadUnit::File,
    framework: Some(FrameworkReader::Pandas),
    ..SampleFormat::new(NAME, build)
};

fn build(options: &Options) -> Result<Box<dyn Format>, OptionError> {
    let level = (options.compression == Compression::Gzip).then_some(options.level);
    Ok(Box::new(Csv { level }))
}

impl Format for Csv {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn extension(&self) -> &'static str {
        match self.level {
            Some(_) => "csv.gz",
            None => NAME,
        }
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let payload = file.payload_bytes().unwrap_or(u64::MAX);
        let elements = payload / file.element.size_bytes();
        let text = print::text_size(file.element, elements);
        match self.level {
            Some(level) => FileSize::About(gzip::text_size(file.element, level, text)),
            None => FileSize::About(text),
        }
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let columns = columns(file)?;
        let mut writer = Writer::new(sink);
        let Some(level) = self.level else {
            return print_rows(file, columns, content, |text| writer.put(text));
        };
        writer.put(&gzip::HEADER)?;
        let mut deflater = Deflater::new(NAME, level);
        print_rows(file, columns, content, |text| deflater.put(text, &mut writer))?;
        let packed = deflater.finish(&mut writer)?;
        writer.put(&gzip::trailer(packed.crc, packed.size))
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(OpenedCsv { gzip: self.level.is_some() }))
    }
}

/// Columns of a row, if there are rows that can be printed.
fn columns(file: &FileSpec) -> Encoded<u64> {
    file.payload_bytes().ok_or_else(|| file.too_large())?;
    let refused = |what: &str| Err(EncodeError::Layout { format: NAME, what: what.to_owned() });
    if matches!(file.element, Element::Complex64 | Element::Complex128) {
        return refused("no reader of csv takes complex numbers, choose a real element type");
    }
    let sample = file.sample_bytes().ok_or_else(|| file.too_large())?;
    match sample / file.element.size_bytes() {
        0 => refused("a row needs at least one column, the sample has no elements"),
        columns => Ok(columns),
    }
}

/// Prints the samples and hands the text to `emit` in pieces of some tens of kilobytes.
fn print_rows(
    file: &FileSpec,
    columns: u64,
    content: &Content,
    mut emit: impl FnMut(&[u8]) -> Encoded<()>,
) -> Encoded<()> {
    let element_bytes = file.element.size_bytes();
    let payload = columns * element_bytes * file.samples;
    let mut block = [0; BLOCK_BYTES as usize];
    let mut text = Vec::new();
    let mut row_left = columns;
    let mut at = 0;
    while at < payload {
        let part = (payload - at).min(BLOCK_BYTES) as usize;
        content.fill(file.element, at, &mut block[..part]);
        text.clear();
        let mut rest = &block[..part];
        while !rest.is_empty() {
            let now = row_left.min(rest.len() as u64 / element_bytes);
            let (numbers, later) = rest.split_at((now * element_bytes) as usize);
            print::numbers(file.element, numbers, &mut text);
            row_left -= now;
            if row_left == 0 {
                row_left = columns;
                if let Some(separator) = text.last_mut() {
                    *separator = b'\n';
                }
            }
            rest = later;
        }
        emit(&text)?;
        at += part as u64;
    }
    Ok(())
}

/// A file of which nothing is known yet.
struct OpenedCsv {
    gzip: bool,
}

impl Decode for OpenedCsv {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let mut window = Window::new(source, &mut scratch.piece)?;
        let mut rows = Rows::new();
        let mut values = Values::new(sink, index);
        let feed = |text: &[u8]| {
            rows.feed(text)?;
            values.feed(text)
        };
        if self.gzip {
            gzip::expand(&mut window, &mut scratch.decoded, feed)?;
        } else {
            read_text(&mut window, feed)?;
        }
        let found = rows.finish()?;
        if index >= found.rows {
            let offset = window.len();
            return Err(DecodeError::SampleIndex { offset, index, samples: found.rows });
        }
        values.finish()?;
        Ok(SampleRead {
            bytes: found.row_bytes(),
            file_bytes: window.pulled(),
            samples: found.rows,
            element: None,
        })
    }
}

fn read_text(window: &mut Window<'_>, mut feed: impl FnMut(&[u8]) -> Decoded<()>) -> Decoded<()> {
    let len = window.len();
    let mut at = 0;
    while at < len {
        let text = window.at_least(at, 1, len)?;
        if at == 0 && text.starts_with(&gzip::MAGIC) {
            let feature = "compression with gzip in a workload without it".to_owned();
            return Err(DecodeError::Feature { format: NAME, feature, offset: 0 });
        }
        feed(text)?;
        at += text.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
