//! What the readers of Python's frameworks ask their files for.
//!
//! A program that moves the same bytes with other calls puts another load on the storage: NumPy reads
//! an array of an archive in 252 KiB and 4 KiB, Pillow an image in 64 KiB, h5py a sample at once. So
//! the framework model plays the real reader's calls: opens, stats, reads with their sizes, offsets
//! and order, reads of nothing at the end, and what is read twice. The numbers by which libraries
//! differ are one table, [`library`]; modules here play them on a [`ByteSource`], and Feedline's own
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
use streams::{RecordStream, Stream, StreamedFile, TarStream};
use whole::{Calls, WholeFile};

pub use library::{Libraries, Python, RECORD_BUFFER_BYTES};
pub(crate) use python_file::Buffered;

use crate::{
    ByteSink, ByteSource, Companion, Content, DecodeError, Decoded, Encoded, FileSize, FileSpec,
    Format, Opened, SampleFormat, Scratch,
};

/// Lets the readers of `format` ask for what the framework's reader asks for.
///
/// Formats that no framework's reader is known of stay as they are.
pub fn as_framework(format: Box<dyn Format>, libraries: Libraries) -> Box<dyn Format> {
    match format.facts().framework {
        Some(reader) => Box::new(Framework { format, reader, libraries }),
        None => format,
    }
}

/// A reader of a Python framework, whose calls are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of libraries and what they read")]
pub enum FrameworkReader {
    NumpyArchive,
    NumpyArray,
    NumpyMap,
    Indexed,
    PillowJpeg,
    PillowPng,
    Pandas,
    Hdf5,
    Safetensors,
    Pyarrow,
    TensorflowRecords,
    TarStream,
}

impl FrameworkReader {
    /// The library, and its name for pip.
    pub fn library(self) -> (&'static str, &'static str) {
        match self {
            Self::NumpyArchive | Self::NumpyArray => ("NumPy", "numpy"),
            Self::NumpyMap | Self::Indexed => ("DLIO's indexed reader", "numpy"),
            Self::PillowJpeg | Self::PillowPng => ("Pillow", "pillow"),
            Self::Pandas => ("pandas", "pandas"),
            Self::Hdf5 => ("h5py", "h5py"),
            Self::Safetensors => ("safetensors", "safetensors"),
            Self::Pyarrow => ("pyarrow", "pyarrow"),
            Self::TensorflowRecords => ("TensorFlow", "tensorflow"),
            Self::TarStream => ("webdataset", "webdataset"),
        }
    }

    /// Whether it reads through Python's file objects.
    pub fn is_on_python(self) -> bool {
        match self {
            Self::Hdf5 | Self::Safetensors | Self::Pyarrow | Self::TensorflowRecords => false,
            Self::NumpyArchive | Self::NumpyArray | Self::NumpyMap | Self::Indexed => true,
            Self::PillowJpeg | Self::PillowPng | Self::Pandas | Self::TarStream => true,
        }
    }
}

/// A format whose readers make the framework's calls.
struct Framework {
    format: Box<dyn Format>,
    reader: FrameworkReader,
    libraries: Libraries,
}

impl Format for Framework {
    fn facts(&self) -> &'static SampleFormat {
        self.format.facts()
    }

    fn extension(&self) -> &'static str {
        self.format.extension()
    }

    fn companions(&self) -> &'static [Companion] {
        self.format.companions()
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        self.format.size(file)
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        self.format.encode(file, content, sink)
    }

    fn companion_bytes(&self, file: &FileSpec) -> u64 {
        self.format.companion_bytes(file)
    }

    fn encode_companion(
        &self,
        which: &Companion,
        file: &FileSpec,
        sink: &mut dyn ByteSink,
    ) -> Encoded<()> {
        self.format.encode_companion(which, file, sink)
    }

    fn open(&self, source: &mut dyn ByteSource, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        let libraries = self.libraries;
        Ok(match self.reader {
            FrameworkReader::NumpyArchive => Box::new(numpy::Archive { libraries }),
            FrameworkReader::NumpyArray => Box::new(numpy::Array { libraries }),
            FrameworkReader::PillowJpeg => self.whole(Calls::PillowJpeg, scratch)?,
            FrameworkReader::PillowPng => self.whole(Calls::PillowPng, scratch)?,
            FrameworkReader::Pandas => match self.format.extension() {
                "csv" => self.whole(Calls::PandasText, scratch)?,
                _ => self.whole(Calls::PandasGzip, scratch)?,
            },
            FrameworkReader::Hdf5 => self.opening(LIBHDF5, source, scratch)?,
            FrameworkReader::Safetensors => self.opening(SAFETENSORS, source, scratch)?,
            FrameworkReader::NumpyMap => self.opening(NUMPY_MAP, source, scratch)?,
            FrameworkReader::Pyarrow => {
                // pyarrow asks for the size by name before it opens the file.
                source.len().map_err(|source| DecodeError::Size { source })?;
                Box::new(Located::new(self.format.open(source, scratch)?, Through::Nothing))
            }
            FrameworkReader::Indexed => {
                let through = Through::PythonFile(libraries.python);
                let (mut memory, mut buffered) = (Vec::new(), Buffered::default());
                let mut spans = Spans::new(source, through, &mut memory, &mut buffered);
                Box::new(Located::new(self.format.open(&mut spans, scratch)?, through))
            }
            FrameworkReader::TensorflowRecords => {
                let mut stream = RecordStream::new(libraries);
                let inner = self.format.open(&mut stream.through(source), scratch)?;
                Box::new(StreamedFile { inner, stream })
            }
            FrameworkReader::TarStream => {
                let mut stream = TarStream::new(libraries);
                let inner = self.format.open(&mut stream.through(source), scratch)?;
                Box::new(StreamedFile { inner, stream })
            }
        })
    }
}

impl Framework {
    fn whole(&self, calls: Calls, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        // The decoder sees the file only once it is in memory.
        let decoder = self.format.open(&mut &[][..], scratch)?;
        Ok(Box::new(WholeFile { calls, libraries: self.libraries, decoder }))
    }

    /// Feedline's own reader, on a file that was opened as `opening` says.
    fn opening(
        &self,
        opening: Opening,
        source: &mut dyn ByteSource,
        scratch: &mut Scratch,
    ) -> Decoded<Box<dyn Opened>> {
        let open = |source: &mut dyn ByteSource| self.format.open(source, scratch);
        Ok(Box::new(opening.open(source, open)?))
    }
}

#[cfg(test)]
mod tests;
