//! Readers that ask for the size of a file when they open it and not again: libhdf5, and the libraries
//! that map their files.

use crate::sample_sink::{Decode, Request, decode_opened};
use crate::{
    ByteSource, Companion, DecodeError, Decoded, Opened, SampleRead, SampleSink, Streamed,
};

/// How a library opens a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opening {
    /// Times that it asks for the size.
    pub(super) stats: u32,
    /// Whether it asks for one structure of the file at a time ([`ByteSource::is_exact`]).
    pub(super) is_exact: bool,
}

/// libhdf5: an `fstat` for the size and an `lstat` for the real path. One structure at a time, and all
/// of a sample's bytes at once.
pub(super) const LIBHDF5: Opening = Opening { stats: 2, is_exact: true };
/// safetensors, whose map is Rust's.
pub(super) const SAFETENSORS: Opening = Opening { stats: 1, is_exact: false };
/// NumPy's `memmap`: Python's file and its map ask each.
pub(super) const NUMPY_MAP: Opening = Opening { stats: 2, is_exact: false };

impl Opening {
    /// The size of the file, asked for as often as the library does.
    fn size(self, source: &mut dyn ByteSource) -> Streamed<u64> {
        let mut len = 0;
        for _ in 0..self.stats.max(1) {
            len = source.len()?;
        }
        Ok(len)
    }

    /// Opens a file by `open`.
    pub(super) fn open(
        self,
        source: &mut dyn ByteSource,
        open: impl FnOnce(&mut dyn ByteSource) -> Decoded<Box<dyn Opened>>,
    ) -> Decoded<OfKnownSize> {
        let len = self.size(source).map_err(|source| DecodeError::Size { source })?;
        let inner = open(&mut KnownSize { source, len, opening: self })?;
        Ok(OfKnownSize { inner, len, opening: self })
    }
}

/// A file that was opened so.
pub(super) struct OfKnownSize {
    inner: Box<dyn Opened>,
    len: u64,
    opening: Opening,
}

impl Decode for OfKnownSize {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let source = &mut KnownSize { source, len: self.len, opening: self.opening };
        decode_opened(&mut *self.inner, Request { source, index, scratch }, sink)
    }
}

/// A source that is not asked for its size again.
struct KnownSize<'a> {
    source: &'a mut dyn ByteSource,
    len: u64,
    opening: Opening,
}

impl ByteSource for KnownSize<'_> {
    fn len(&mut self) -> Streamed<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        self.source.read_exact_at(offset, buf)
    }

    fn is_exact(&self) -> bool {
        self.opening.is_exact
    }

    fn piece_bytes(&self) -> usize {
        self.source.piece_bytes()
    }

    fn companion(&mut self, which: &Companion) -> Streamed<Box<dyn ByteSource + '_>> {
        let source = self.source.companion(which)?;
        Ok(Box::new(OpenedCompanion { source, opening: self.opening, len: None }))
    }
}

/// A companion that is opened in the same way.
struct OpenedCompanion<'a> {
    source: Box<dyn ByteSource + 'a>,
    opening: Opening,
    len: Option<u64>,
}

impl ByteSource for OpenedCompanion<'_> {
    fn len(&mut self) -> Streamed<u64> {
        match self.len {
            Some(len) => Ok(len),
            None => Ok(*self.len.insert(self.opening.size(self.source.as_mut())?)),
        }
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        self.source.read_exact_at(offset, buf)
    }
}
