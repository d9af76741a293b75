//! Sample formats: how the bytes of a data set file are laid out, how a sample is written and found.
//!
//! Pure: files, seeds and buffers come in as arguments ([`Sink`], [`Source`], [`Content`]). Nothing
//! here opens a file, starts a thread, reads a clock or keeps state between calls.
//! A new format is one module and one line in [`FORMATS`].
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

#[cfg(test)]
mod trial;

pub use content::Content;
pub use element::Element;
pub use error::{DecodeError, EncodeError, Method, StreamError};
pub use format::{
    Companion, FileSize, FileSpec, Format, HEAD_BYTES, Opened, PIECE_BYTES, Place, SampleRead,
    Sink, Source, Stretch,
};
pub use framework::{FrameworkReader, Libraries, Python, RECORD_BUFFER_BYTES, as_framework};
pub use options::{Compression, OptionError, Options};
pub use sample_format::{MakeFormat, Mapping, ReadUnit, SampleFormat};
pub use sample_sink::{Collect, CollectedPart, Discard, SamplePart, SampleSink};
pub use scratch::{Piece, Scratch};

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
