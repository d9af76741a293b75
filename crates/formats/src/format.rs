//! The seam between formats and everyone else: what a format promises and what it is given.

use crate::{Content, DecodeError, Element, EncodeError, StreamError};

/// The part of a file that [`Sink::patch`] may still change after later bytes were written.
pub const HEAD_BYTES: usize = 4096;

/// The piece in which a file is written and, unless its source likes another size, read.
///
/// NumPy reads an npz in turns of 252 KiB and 4 KiB: as many calls as with pieces of this size, whose
/// bytes are still in the L2 cache when their checksum is taken (measured: a fifth less CPU time
/// than pieces of 256 KiB).
pub const PIECE_BYTES: usize = 128 * 1024;

/// A sample format: how a file of it is laid out, how a sample is found in it.
pub trait Format: Sync {
    /// The name in workload files; also the extension of a file's name.
    fn name(&self) -> &'static str;

    /// The exact size of the encoded file; `u64::MAX` if 64 bits cannot hold it.
    fn encoded_len(&self, file: &FileSpec) -> u64;

    /// Writes the whole file: exactly [`encoded_len`](Format::encoded_len) bytes.
    fn encode(
        &self,
        file: &FileSpec,
        content: &Content,
        sink: &mut dyn Sink,
    ) -> Result<(), EncodeError>;

    /// Reads one sample the way the framework's reader would, so whole-file formats read all of it.
    ///
    /// Every byte passes through `scratch` and is dropped. It must hold the file's headers, so
    /// [`PIECE_BYTES`] is a good size; where its address and size are multiples of 4096, all reads of
    /// a large file but its ends are aligned too.
    fn read_sample(
        &self,
        source: &mut dyn Source,
        index: u64,
        scratch: &mut [u8],
    ) -> Result<SampleRead, DecodeError>;
}

/// What a file of a data set holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// Shape of one sample: `[dim1, dim2]` or the workload's `record_dims`.
    pub dims: Vec<u64>,
    /// Samples in the file.
    pub samples: u64,
    /// Element type of the samples.
    pub element: Element,
    /// Place of the file in the list of all files; what a `synthetic` file contains.
    pub index: u64,
}

impl FileSpec {
    /// Size of all samples without any framing, or `None` if 64 bits cannot hold it.
    pub fn payload_bytes(&self) -> Option<u64> {
        let per_element = self.element.size_bytes();
        self.dims
            .iter()
            .chain([&self.samples, &per_element])
            .try_fold(1u64, |product, &factor| product.checked_mul(factor))
    }

    /// The shape of the file's array: the sample axis comes last, as DLIO writes it.
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.dims.iter().copied().chain([self.samples]).collect()
    }

    pub(crate) fn too_large(&self) -> EncodeError {
        EncodeError::TooLarge { dims: self.dims.clone(), samples: self.samples }
    }
}

/// What reading one sample found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRead {
    /// Size of the sample itself.
    pub bytes: u64,
    /// Bytes that were pulled from the source to get it.
    pub file_bytes: u64,
    /// Samples the file holds, or 0 if the format does not say.
    pub samples: u64,
    /// Element type the file announces, if it does.
    pub element: Option<Element>,
}

/// Where a file's bytes go, front to back.
pub trait Sink {
    /// Between 1 and `want` writable bytes at the end of the file, which count as written.
    ///
    /// What they contain before the caller fills them is unspecified. `want` is at least 1.
    fn space(&mut self, want: usize) -> Result<&mut [u8], StreamError>;

    /// Overwrites bytes that were written before, all within the first [`HEAD_BYTES`].
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StreamError>;
}

/// A file's bytes, in any order. A short read is an error.
#[expect(clippy::len_without_is_empty, reason = "an empty file is not a case of its own here")]
pub trait Source {
    /// Size of the file in bytes.
    fn len(&mut self) -> Result<u64, StreamError>;

    /// Fills `buf` with the bytes at `offset`.
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError>;

    /// How many bytes it is best asked for at a time.
    fn piece_bytes(&self) -> usize {
        PIECE_BYTES
    }
}

/// Collects the file in memory.
impl Sink for Vec<u8> {
    fn space(&mut self, want: usize) -> Result<&mut [u8], StreamError> {
        let start = self.len();
        self.resize(start + want, 0);
        Ok(&mut self[start..])
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StreamError> {
        let written = self.len();
        let range = usize::try_from(offset).ok().and_then(|start| self.get_mut(start..));
        match range.and_then(|tail| tail.get_mut(..bytes.len())) {
            Some(target) => target.copy_from_slice(bytes),
            None => return Err(format!("patch at byte {offset} of {written}").into()),
        }
        Ok(())
    }
}

/// A file that is in memory already.
impl Source for &[u8] {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok((**self).len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        let found = usize::try_from(offset).ok().and_then(|start| self.get(start..));
        match found.and_then(|tail| tail.get(..buf.len())) {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
        }
        Ok(())
    }
}
