//! The seam between formats and everyone else: what a format promises and what it is given.

use crate::{
    Content, Decoded, Element, EncodeError, Encoded, SampleFormat, SampleSink, Scratch, Streamed,
};

/// The part of a file that [`ByteSink::patch`] may still change after later bytes were written.
pub const HEAD_BYTES: usize = 4096;

/// The piece in which a file is written and, unless its source likes another size, read.
///
/// Small enough to be in the L2 cache when its checksum is taken.
pub const PIECE_BYTES: usize = 128 * 1024;

/// A sample format with its options: how a file of it is laid out, how a sample is found in it.
pub trait Format: Send + Sync {
    /// What is known of it without its options.
    fn facts(&self) -> &'static SampleFormat;

    /// What the name of a file ends with, without the dot.
    fn extension(&self) -> &'static str {
        self.facts().name
    }

    /// Files that go with every data file.
    fn companions(&self) -> &'static [Companion] {
        &[]
    }

    /// The size of the encoded file.
    fn size(&self, file: &FileSpec) -> FileSize;

    /// Writes the whole file, front to back, never holding more of it than a piece or two (for
    /// compressed formats: than what is compressed as one).
    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()>;

    /// About the size of all companions of the file together.
    fn companion_bytes(&self, _file: &FileSpec) -> u64 {
        0
    }

    /// Writes a companion of the file, one of [`companions`](Format::companions).
    fn encode_companion(
        &self,
        _which: &Companion,
        _file: &FileSpec,
        _sink: &mut dyn ByteSink,
    ) -> Encoded<()> {
        Ok(())
    }

    /// Opens a file the way the framework's reader would: reads what must be known before a sample
    /// can be found. Formats that are read whole have nothing to do here.
    fn open(&self, source: &mut dyn ByteSource, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>>;
}

/// A file that has been opened, which always comes back with the source it was opened from.
pub trait Opened: Send {
    /// Reads one sample the way the framework's reader would, decoding included, and drops it.
    fn read(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
    ) -> Decoded<SampleRead>;

    /// Reads one sample with the same calls and checks, and hands it to `sink`.
    fn read_into(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
        sink: &mut dyn SampleSink,
    ) -> Decoded<SampleRead>;

    /// Adds the ranges of the file that hold the sample, for callers that read bytes and decode nothing.
    /// Formats that are read whole have one, from 0 to the end.
    fn locate(
        &mut self,
        _source: &mut dyn ByteSource,
        _index: u64,
        _scratch: &mut Scratch,
        ranges: &mut Vec<ByteRange>,
    ) -> Decoded<()> {
        ranges.push(ByteRange::WHOLE);
        Ok(())
    }
}

/// A file that goes with a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Companion {
    /// What is appended to the data file's name.
    pub suffix: &'static str,
    /// Where it is.
    pub place: CompanionPlace,
}

impl Companion {
    /// The key of the companion of the data file `key`, which begins with `train/` or `valid/`.
    pub fn key(&self, key: &str) -> String {
        match self.place {
            CompanionPlace::Beside => format!("{key}{}", self.suffix),
            CompanionPlace::IndexFolder => {
                let (folder, _) = key.split_once('/').unwrap_or(("", key));
                let name = key.rsplit('/').next().unwrap_or(key);
                format!("index/{folder}/{name}{}", self.suffix)
            }
        }
    }
}

/// Where a companion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompanionPlace {
    /// In the folder of the data file.
    Beside,
    /// In the folder `index/train` or `index/valid` of the data set, without sub-folders.
    IndexFolder,
}

/// The size of a file before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSize {
    /// Exactly so many bytes; `u64::MAX` if 64 bits cannot hold it.
    Exact(u64),
    /// About so many: it depends on how well the content compresses or prints.
    About(u64),
}

impl FileSize {
    /// The number of bytes, exact or not.
    pub fn bytes(self) -> u64 {
        match self {
            FileSize::Exact(bytes) | FileSize::About(bytes) => bytes,
        }
    }
}

/// Bytes of a file that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Where they begin.
    pub offset: u64,
    /// How many there are; `None` means up to the end of the file.
    pub len: Option<u64>,
}

impl ByteRange {
    /// All of a file.
    pub const WHOLE: ByteRange = ByteRange { offset: 0, len: None };
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

    /// Size of one sample, or `None` if 64 bits cannot hold it.
    pub fn sample_bytes(&self) -> Option<u64> {
        let per_element = self.element.size_bytes();
        self.dims.iter().try_fold(per_element, |product, &factor| product.checked_mul(factor))
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
pub trait ByteSink {
    /// Between 1 and `want` writable bytes at the end of the file, which count as written.
    ///
    /// What they contain before the caller fills them is unspecified. `want` is at least 1.
    fn space(&mut self, want: usize) -> Streamed<&mut [u8]>;

    /// Overwrites bytes that were written before, all within the first [`HEAD_BYTES`].
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Streamed<()>;
}

/// A file's bytes, in any order. A short read is an error.
#[expect(clippy::len_without_is_empty, reason = "an empty file is not a case of its own here")]
pub trait ByteSource {
    /// Size of the file in bytes.
    fn len(&mut self) -> Streamed<u64>;

    /// Fills `buf` with the bytes at `offset`.
    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()>;

    /// Reads what the file has of the bytes at `offset`, with one call: fewer than `buf` holds only at
    /// the end of the file.
    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<usize> {
        let left = self.len()?.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        self.read_exact_at(offset, &mut buf[..len])?;
        Ok(len)
    }

    /// The size that the file's storage prefers for I/O (`st_blksize`), as the last [`ByteSource::len`]
    /// found it.
    fn preferred_bytes(&self) -> usize {
        4096
    }

    /// Whether readers ask for exactly the bytes they need, one structure at a time, instead of
    /// pieces.
    fn is_exact(&self) -> bool {
        false
    }

    /// How many bytes it is best asked for at a time.
    fn piece_bytes(&self) -> usize {
        PIECE_BYTES
    }

    /// What offsets and sizes of reads are best multiples of.
    fn block_bytes(&self) -> usize {
        1
    }

    /// Opens a companion of the file.
    fn companion(&mut self, which: &Companion) -> Streamed<Box<dyn ByteSource + '_>> {
        Err(format!("a file in memory has no companion {}", which.suffix).into())
    }
}

/// Collects the file in memory.
impl ByteSink for Vec<u8> {
    fn space(&mut self, want: usize) -> Streamed<&mut [u8]> {
        let start = self.len();
        self.resize(start + want, 0);
        Ok(&mut self[start..])
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Streamed<()> {
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
impl ByteSource for &[u8] {
    fn len(&mut self) -> Streamed<u64> {
        Ok((**self).len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        let found = usize::try_from(offset).ok().and_then(|start| self.get(start..));
        match found.and_then(|tail| tail.get(..buf.len())) {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_stand_beside_or_in_the_index_folder() {
        let beside = Companion { suffix: ".off.idx", place: CompanionPlace::Beside };
        assert_eq!(beside.key("train/0/a.bin"), "train/0/a.bin.off.idx");
        let apart = Companion { suffix: ".idx", place: CompanionPlace::IndexFolder };
        assert_eq!(apart.key("train/img_0_of_8.tfrecord"), "index/train/img_0_of_8.tfrecord.idx");
        assert_eq!(apart.key("valid/3/a.tfrecord"), "index/valid/a.tfrecord.idx");
    }
}
