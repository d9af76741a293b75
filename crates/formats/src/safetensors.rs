//! `safetensors`: named tensors one after the other, described by a JSON text at the front.
//!
//! Written as the reference does, with the two tensors `x`, all samples with the sample axis first,
//! and `y`, a label 0 for each: header padded with blanks to 8 bytes, wider types before narrower
//! ones. Read as `safe_open` with a slice does: the header, then the bytes of one sample. The header
//! is checked as the reference checks it (tensors without gap or overlap up to the end of the file);
//! the format has no checksums.
//!
//! In a foreign file the samples are the tensor `x`, or the tensor that comes first in the data if
//! there is none of that name.

use crate::framework::FrameworkReader;
use crate::sample_sink::{self, Decode, Request};
use crate::scratch::grow;
use crate::window::{Window, fetch};
use crate::writer::Writer;
use crate::{
    ByteRange, ByteSink, ByteSource, Content, Decoded, Element, EncodeError, Encoded, FileSize,
    FileSpec, Format, Mapping, Opened, SampleFormat, SampleRead, SampleSink, Scratch,
};

pub mod header;

use header::{LENGTH_BYTES, Tensor};

/// The first read of a file: most headers are in it.
const FIRST_BYTES: u64 = 4096;
const NAME: &str = "safetensors";

pub(crate) struct SafeTensors;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    mapping: Mapping::ByLibrary,
    framework: Some(FrameworkReader::Safetensors),
    ..SampleFormat::new(NAME, |_| Ok(Box::new(SafeTensors)))
};

impl Format for SafeTensors {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        FileSize::Exact(Layout::of(file).map_or(u64::MAX, |layout| layout.size))
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        if file.element == Element::Complex128 {
            let what = "has no element type complex128, only complex64".to_owned();
            return Err(EncodeError::Layout { format: NAME, what });
        }
        let layout = Layout::of(file).ok_or_else(|| file.too_large())?;
        let mut writer = Writer::new(sink);
        writer.put(&layout.header)?;
        let zeros = |_, space: &mut [u8]| space.fill(0);
        if layout.labels_first {
            writer.generate(layout.labels, zeros)?;
        }
        writer.generate(layout.samples, |at, space| content.fill(file.element, at, space))?;
        if !layout.labels_first {
            writer.generate(layout.labels, zeros)?;
        }
        Ok(())
    }

    fn open(&self, source: &mut dyn ByteSource, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        let mut window = Window::new(source, &mut scratch.piece)?;
        let file_len = window.len();
        let first = window.at_least(0, file_len.min(LENGTH_BYTES), FIRST_BYTES)?;
        let header_len = header::length(first, file_len)?;
        let end = LENGTH_BYTES + header_len;
        let text = if end <= first.len() as u64 {
            &first[LENGTH_BYTES as usize..end as usize]
        } else {
            let text = grow(&mut scratch.whole, header_len as usize);
            fetch(source, LENGTH_BYTES, text)?;
            text
        };
        Ok(Box::new(Samples { tensor: header::find_samples(text, end, file_len)? }))
    }
}

/// Where everything in a file is.
struct Layout {
    /// The length field, the JSON text and its padding.
    header: Vec<u8>,
    samples: u64,
    labels: u64,
    labels_first: bool,
    size: u64,
}

impl Layout {
    /// `None` if 64 bits cannot hold the file's size.
    fn of(file: &FileSpec) -> Option<Layout> {
        let samples = file.payload_bytes()?;
        let labels = file.samples.checked_mul(Element::Int64.size_bytes())?;
        let data = samples.checked_add(labels)?;
        // The reference sorts by type, which only uint64 ranks above int64, and then by name.
        let labels_first = !matches!(file.element, Element::Int64 | Element::UInt64);
        let (x_at, y_at) = if labels_first { (labels, 0) } else { (0, samples) };
        let shape: Vec<u64> = [file.samples].into_iter().chain(file.dims.iter().copied()).collect();
        let x = header::entry("x", header::type_name(file.element), &shape, x_at..x_at + samples);
        let y = header::entry(
            "y",
            header::type_name(Element::Int64),
            &[file.samples],
            y_at..y_at + labels,
        );
        let header = header::build(&if labels_first { [y, x] } else { [x, y] });
        let size = data.checked_add(header.len() as u64)?;
        Some(Layout { header, samples, labels, labels_first, size })
    }
}

/// A file whose header has been read.
struct Samples {
    tensor: Tensor,
}

impl Decode for Samples {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let (offset, end) = self.tensor.sample(index)?;
        let mut window = Window::new(source, &mut scratch.piece)?;
        sample_sink::begin(sink, self.tensor.part())?;
        window.stream(offset..end, |piece| sample_sink::put(sink, piece))?;
        Ok(SampleRead {
            bytes: end - offset,
            file_bytes: window.pulled(),
            samples: self.tensor.samples,
            element: self.tensor.element,
        })
    }

    fn locate_sample(&mut self, request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        let Request { index, .. } = request;
        let (offset, end) = self.tensor.sample(index)?;
        ranges.push(ByteRange { offset, len: Some(end - offset) });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
