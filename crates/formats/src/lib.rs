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
mod tar;
mod tfrecord;
mod webdataset;
mod zip;

#[cfg(test)]
mod trial;

pub use content::Content;
pub use element::Element;
pub use error::{DecodeError, EncodeError, Method, StreamError};
pub use format::{
    Access, Companion, FileSize, FileSpec, Format, HEAD_BYTES, Opened, PIECE_BYTES, Place,
    SampleRead, Sink, Source, Stretch,
};
pub use framework::{Libraries, Python, RECORD_BUFFER_BYTES, as_framework};
pub use options::{Compression, OptionError, Options};
pub use sample_sink::{Collect, CollectedPart, Discard, SamplePart, SampleSink};
pub use scratch::{Piece, Scratch};

/// A format by name, to be given its options.
pub struct Entry {
    /// The name in workload files.
    pub name: &'static str,
    /// Makes the format, unless it cannot be laid out as the options say.
    pub build: fn(&Options) -> Result<Box<dyn Format>, OptionError>,
}

/// Every sample format there is.
pub static FORMATS: &[Entry] = &[
    Entry { name: "npz", build: npz::build },
    Entry { name: "npy", build: npy::build },
    Entry { name: "hdf5", build: hdf5::build },
    Entry { name: "jpeg", build: jpeg::build },
    Entry { name: "parquet", build: parquet::build },
    Entry { name: "png", build: png::build },
    Entry { name: "safetensors", build: safetensors::build },
    Entry { name: "webdataset", build: webdataset::build },
    Entry { name: "synthetic", build: synthetic::build },
    Entry { name: "tfrecord", build: tfrecord::build },
    Entry { name: "indexed_binary", build: indexed::build },
    Entry { name: "mmap_indexed_binary", build: indexed::build_mmap },
    Entry { name: "csv", build: csv::build },
];

/// The format that workload files call `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    FORMATS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_their_workload_name() {
        for entry in FORMATS {
            let format = (entry.build)(&Options::default()).unwrap();
            assert_eq!(format.name(), entry.name);
            assert_eq!(find(entry.name).map(|found| found.name), Some(entry.name));
        }
        assert!(find("NPZ").is_none());
    }
}
