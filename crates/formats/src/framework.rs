//! What the readers of Python's frameworks ask their files for.
//!
//! A program that moves the same bytes with other calls puts another load on the storage: NumPy reads
//! an array of an archive in 252 KiB and 4 KiB, Pillow an image in 64 KiB, h5py a sample at once. So
//! the framework model plays the real reader's calls: opens, stats, reads with their sizes, offsets
//! and order, reads of nothing at the end, and what is read twice. The numbers by which libraries
//! differ are one table, [`library`]; modules here play them on a [`Source`], and Feedline's own
//! decoders check the bytes.

mod fragments;
mod known_size;
mod library;
mod numpy;
mod python_file;
mod spans;
mod streams;
mod whole;
mod zipfile;

use known_size::{LIBHDF5, NUMPY_MAP, Opening, SAFETENSORS};
use spans::{Located, Spans, Through};
use streams::{RecordStream, Stream, Streamed, TarStream};
use whole::{Calls, WholeFile};

pub use library::{Libraries, Python, RECORD_BUFFER_BYTES};
pub(crate) use python_file::Buffered;

use crate::{
    Access, Companion, Content, DecodeError, EncodeError, FileSize, FileSpec, Format, Opened,
    Scratch, Sink, Source,
};

/// Lets the readers of `format` ask for what the framework's reader asks for.
///
/// Formats without bytes stay as they are.
pub fn as_framework(format: Box<dyn Format>, libraries: Libraries) -> Box<dyn Format> {
    let reader = match format.name() {
        "npz" => Reader::NumpyArchive,
        "npy" => Reader::NumpyArray,
        "jpeg" => Reader::Whole(Calls::PillowJpeg),
        "png" => Reader::Whole(Calls::PillowPng),
        "csv" if format.extension() == "csv" => Reader::Whole(Calls::PandasText),
        "csv" => Reader::Whole(Calls::PandasGzip),
        "hdf5" => Reader::Opening(LIBHDF5),
        "safetensors" => Reader::Opening(SAFETENSORS),
        "mmap_indexed_binary" => Reader::Opening(NUMPY_MAP),
        "parquet" => Reader::Pyarrow,
        "indexed_binary" => Reader::Indexed,
        "tfrecord" => Reader::TensorflowRecords,
        "webdataset" => Reader::TarStream,
        _ => return format,
    };
    Box::new(Framework { format, reader, libraries })
}

/// Whose calls are played.
#[derive(Debug, Clone, Copy)]
enum Reader {
    NumpyArchive,
    NumpyArray,
    Whole(Calls),
    /// Feedline's own reader, on a file that was opened so.
    Opening(Opening),
    Pyarrow,
    Indexed,
    TensorflowRecords,
    TarStream,
}

/// A format whose readers make the framework's calls.
struct Framework {
    format: Box<dyn Format>,
    reader: Reader,
    libraries: Libraries,
}

impl Format for Framework {
    fn name(&self) -> &'static str {
        self.format.name()
    }

    fn extension(&self) -> &'static str {
        self.format.extension()
    }

    fn companions(&self) -> &'static [Companion] {
        self.format.companions()
    }

    fn access(&self) -> Access {
        self.format.access()
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        self.format.size(file)
    }

    fn encode(
        &self,
        file: &FileSpec,
        content: &Content,
        sink: &mut dyn Sink,
    ) -> Result<(), EncodeError> {
        self.format.encode(file, content, sink)
    }

    fn companion_bytes(&self, file: &FileSpec) -> u64 {
        self.format.companion_bytes(file)
    }

    fn encode_companion(
        &self,
        which: &Companion,
        file: &FileSpec,
        sink: &mut dyn Sink,
    ) -> Result<(), EncodeError> {
        self.format.encode_companion(which, file, sink)
    }

    fn open(
        &self,
        source: &mut dyn Source,
        scratch: &mut Scratch,
    ) -> Result<Box<dyn Opened>, DecodeError> {
        let libraries = self.libraries;
        Ok(match self.reader {
            Reader::NumpyArchive => Box::new(numpy::Archive { libraries }),
            Reader::NumpyArray => Box::new(numpy::Array { libraries }),
            Reader::Whole(calls) => {
                // The decoder sees the file only once it is in memory.
                let decoder = self.format.open(&mut &[][..], scratch)?;
                Box::new(WholeFile { calls, libraries, decoder })
            }
            Reader::Opening(opening) => {
                let open = |source: &mut dyn Source| self.format.open(source, scratch);
                Box::new(opening.open(source, open)?)
            }
            Reader::Pyarrow => {
                // pyarrow asks for the size by name before it opens the file.
                source.len().map_err(|source| DecodeError::Size { source })?;
                Box::new(Located::new(self.format.open(source, scratch)?, Through::Nothing))
            }
            Reader::Indexed => {
                let through = Through::PythonFile(libraries.python);
                let (mut memory, mut buffered) = (Vec::new(), Buffered::default());
                let mut spans = Spans::new(source, through, &mut memory, &mut buffered);
                Box::new(Located::new(self.format.open(&mut spans, scratch)?, through))
            }
            Reader::TensorflowRecords => {
                let mut stream = RecordStream::new(libraries);
                let inner = self.format.open(&mut stream.through(source), scratch)?;
                Box::new(Streamed { inner, stream })
            }
            Reader::TarStream => {
                let mut stream = TarStream::new(libraries);
                let inner = self.format.open(&mut stream.through(source), scratch)?;
                Box::new(Streamed { inner, stream })
            }
        })
    }
}

#[cfg(test)]
mod tests;
