//! One sample read from bytes in memory, for the tests of formats.

use crate::{
    ByteRange, ByteSource, Companion, Content, DecodeError, FileSpec, Format, PIECE_BYTES,
    SampleRead, Scratch, StreamError,
};

/// A file in memory with its companions, which notes every read.
pub(crate) struct InMemory {
    pub(crate) data: Vec<u8>,
    /// Each under its suffix.
    pub(crate) companions: Vec<(&'static str, Vec<u8>)>,
    pub(crate) piece_bytes: usize,
    /// Offset and length of each read of the data.
    pub(crate) reads: Vec<(u64, usize)>,
    /// Suffix, offset and length of each read of a companion.
    pub(crate) companion_reads: Vec<(&'static str, u64, usize)>,
}

impl InMemory {
    pub(crate) fn new(data: Vec<u8>) -> InMemory {
        let (companions, reads, companion_reads) = (Vec::new(), Vec::new(), Vec::new());
        InMemory { data, companions, piece_bytes: PIECE_BYTES, reads, companion_reads }
    }

    /// The file that `format` makes of `file`, with all its companions.
    pub(crate) fn encoded(format: &dyn Format, file: &FileSpec) -> InMemory {
        let mut made = InMemory::new(encoded(format, file));
        for which in format.companions() {
            let mut bytes = Vec::new();
            format.encode_companion(which, file, &mut bytes).expect("memory takes every byte");
            made.companions.push((which.suffix, bytes));
        }
        made
    }

    /// The bytes of a companion.
    pub(crate) fn companion_mut(&mut self, suffix: &str) -> &mut Vec<u8> {
        let found = self.companions.iter_mut().find(|(name, _)| *name == suffix);
        &mut found.expect("the format has such a companion").1
    }
}

impl ByteSource for InMemory {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.data.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        self.reads.push((offset, buf.len()));
        self.data.as_slice().read_exact_at(offset, buf)
    }

    fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    fn companion(&mut self, which: &Companion) -> Result<Box<dyn ByteSource + '_>, StreamError> {
        let found = self.companions.iter().find(|(suffix, _)| *suffix == which.suffix);
        let (suffix, bytes) = found.ok_or("no such companion")?;
        Ok(Box::new(InMemoryCompanion { suffix, bytes, reads: &mut self.companion_reads }))
    }
}

/// One of its companions.
struct InMemoryCompanion<'a> {
    suffix: &'static str,
    bytes: &'a [u8],
    reads: &'a mut Vec<(&'static str, u64, usize)>,
}

impl ByteSource for InMemoryCompanion<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        self.reads.push((self.suffix, offset, buf.len()));
        self.bytes.read_exact_at(offset, buf)
    }
}

/// The file that `format` makes of `file`, content 2 of seed 1.
pub(crate) fn encoded(format: &dyn Format, file: &FileSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.encode(file, &Content::new(1, 2), &mut bytes).expect("memory takes every byte");
    bytes
}

/// Opens the file and reads one sample, through pieces of at most `piece_bytes`.
pub(crate) fn read(
    format: &dyn Format,
    mut bytes: &[u8],
    index: u64,
    piece_bytes: usize,
) -> Result<SampleRead, DecodeError> {
    let mut scratch = Scratch::new(piece_bytes);
    format.open(&mut bytes, &mut scratch)?.read(&mut bytes, index, &mut scratch)
}

/// The ranges of the file that hold the sample.
pub(crate) fn ranges(
    format: &dyn Format,
    mut bytes: &[u8],
    index: u64,
) -> Result<Vec<ByteRange>, DecodeError> {
    let mut scratch = Scratch::new(4096);
    let mut found = Vec::new();
    let mut opened = format.open(&mut bytes, &mut scratch)?;
    opened.locate(&mut bytes, index, &mut scratch, &mut found)?;
    Ok(found)
}

/// Opens the file once and reads these samples; for each, the reads that it caused. The first has
/// those of opening the file too.
pub(crate) fn reads(
    format: &dyn Format,
    bytes: &[u8],
    indices: &[u64],
) -> Vec<(SampleRead, Vec<(u64, usize)>)> {
    let mut scratch = Scratch::new(PIECE_BYTES);
    let mut source = InMemory::new(bytes.to_vec());
    let mut opened = format.open(&mut source, &mut scratch).expect("a sound file");
    let mut read = |&index: &u64| {
        let found = opened.read(&mut source, index, &mut scratch).expect("a sound sample");
        (found, std::mem::take(&mut source.reads))
    };
    indices.iter().map(&mut read).collect()
}
