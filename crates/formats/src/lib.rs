//! Sample formats: how the files of a data set are laid out, how samples are written and found.
//!
//! Pure: files, seeds and buffers come in as arguments ([`ByteSink`], [`ByteSource`], [`Content`]). Nothing
//! here opens a file, starts a thread, reads a clock or keeps state between calls.
//! A new format is one module and one line in [`FORMATS`].
//!
//! ```
//! use feedline_formats::{Collect, Content, Element, FileSpec, Options, SampleFormat, Scratch};
//!
//! let npy = SampleFormat::find("npy").ok_or("no such format")?.build(&Options::default())?;
//! let file = FileSpec { dims: vec![4, 8], samples: 3, element: Element::UInt8, index: 0 };
//! let mut bytes = Vec::new();
//! npy.encode(&file, &Content::new(42, 0), &mut bytes)?;
//!
//! let (mut scratch, mut sample) = (Scratch::new(1 << 17), Collect::new(1 << 20));
//! let mut opened = npy.open(&mut &bytes[..], &mut scratch)?;
//! opened.read_into(&mut &bytes[..], 1, &mut scratch, &mut sample)?;
//! assert_eq!(sample.take()[0].shape, [4, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod array_sample;
mod content;
mod deflate;
mod element;
mod error;
mod format;
mod options;
mod sample_format;
mod sample_sink;
mod scratch;
mod window;
mod writer;

mod framework;

mod csv;
mod hdf5;
mod image;
mod indexed;
mod jpeg;
mod npy;
mod npy_header;
mod npz;
mod parquet;
mod png;
pub mod safetensors;
mod synthetic;
pub mod tar;
mod tfrecord;
mod webdataset;
mod zip;
pub mod zip_records;

#[cfg(test)]
mod test_support;

pub use content::Content;
pub use element::Element;
pub use error::{DecodeError, EncodeError, Method, StreamError};
pub(crate) use error::{Decoded, Encoded, Streamed};
pub use format::{
    ByteRange, ByteSink, ByteSource, Companion, CompanionPlace, FileSize, FileSpec, Format,
    HEAD_BYTES, Opened, PIECE_BYTES, SampleRead,
};
pub use framework::{FrameworkReader, Libraries, Python, RECORD_BUFFER_BYTES, as_framework};
pub use options::{Compression, OptionError, Options};
pub use sample_format::{MakeFormat, Mapping, ReadUnit, SampleFormat};
pub use sample_sink::{Collect, CollectedPart, Discard, SamplePart, SampleSink};
pub use scratch::{AlignedBuffer, Scratch};

/// Every sample format there is. The first one is DLIO's default.
pub static FORMATS: &[&SampleFormat] = &[
    &tfrecord::FACTS,
    &hdf5::FACTS,
    &csv::FACTS,
    &npz::FACTS,
    &npy::FACTS,
    &jpeg::FACTS,
    &png::FACTS,
    &indexed::FACTS,
    &indexed::MMAP_FACTS,
    &synthetic::FACTS,
    &parquet::FACTS,
    &webdataset::FACTS,
    &safetensors::FACTS,
];
