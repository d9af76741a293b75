//! Where the bytes of a sample go: a benchmark drops them, another caller brings a sink of its own.
//!
//! Decoders are generic over the sink. For [`Discard`] that leaves the code of a decoder that knows
//! no sink at all: no call, no copy, no branch per piece.

use crate::{
    ByteRange, ByteSource, DecodeError, Decoded, Element, Opened, SampleRead, Scratch, Streamed,
};

/// One part of a sample, announced before its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePart<'a> {
    /// The npz array, HDF5 dataset, Parquet column, safetensors tensor or WebDataset extension;
    /// empty where the format has no names.
    pub name: &'a str,
    /// `None` for bytes that are no numbers of a NumPy type.
    pub element: Option<Element>,
    /// Axes of the part, whose elements follow in C order. Without an element type: the number of
    /// bytes.
    pub shape: &'a [u64],
}

impl SamplePart<'_> {
    /// Size of the part, or `None` if 64 bits cannot hold it.
    pub fn size_bytes(&self) -> Option<u64> {
        let element = self.element.map_or(1, Element::size_bytes);
        self.shape.iter().try_fold(element, |product, &axis| product.checked_mul(axis))
    }
}

/// Takes a sample, part by part, each part in pieces.
///
/// Numbers are little-endian, whatever the file has. Checksums often come after the data, so what a
/// sink was given is a sample only once the read has returned without an error.
pub trait SampleSink {
    /// Begins a part of at most [`room_bytes`](SampleSink::room_bytes).
    fn begin(&mut self, part: &SamplePart<'_>) -> Streamed<()>;

    /// Takes the next bytes of the part.
    fn put(&mut self, bytes: &[u8]) -> Streamed<()>;

    /// The size of the largest part that it still takes. A file that announces a larger one is refused
    /// before anything is allocated; decoders that must reorder a sample hold as much themselves.
    fn room_bytes(&self) -> u64;

    /// Whether it looks at samples at all. What is done only for the sink's sake is left out if not.
    fn wants_bytes(&self) -> bool {
        true
    }
}

impl<S: SampleSink + ?Sized> SampleSink for &mut S {
    fn begin(&mut self, part: &SamplePart<'_>) -> Streamed<()> {
        (**self).begin(part)
    }

    fn put(&mut self, bytes: &[u8]) -> Streamed<()> {
        (**self).put(bytes)
    }

    fn room_bytes(&self) -> u64 {
        (**self).room_bytes()
    }

    fn wants_bytes(&self) -> bool {
        (**self).wants_bytes()
    }
}

/// Drops samples, as a benchmark does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl SampleSink for Discard {
    #[inline(always)]
    fn begin(&mut self, _part: &SamplePart<'_>) -> Streamed<()> {
        Ok(())
    }

    #[inline(always)]
    fn put(&mut self, _bytes: &[u8]) -> Streamed<()> {
        Ok(())
    }

    #[inline(always)]
    fn room_bytes(&self) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    fn wants_bytes(&self) -> bool {
        false
    }
}

/// Keeps samples in memory, up to a number of bytes.
#[derive(Debug)]
pub struct Collect {
    parts: Vec<CollectedPart>,
    limit_bytes: u64,
    held_bytes: u64,
    /// Bytes that the last part still lacks.
    missing_bytes: u64,
}

/// A part of a sample in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectedPart {
    /// As in [`SamplePart`].
    pub name: String,
    /// As in [`SamplePart`].
    pub element: Option<Element>,
    /// As in [`SamplePart`].
    pub shape: Vec<u64>,
    /// The elements in C order, little-endian.
    pub bytes: Vec<u8>,
}

impl Collect {
    /// Keeps parts of at most `limit_bytes` together.
    pub fn new(limit_bytes: u64) -> Collect {
        Collect { parts: Vec::new(), limit_bytes, held_bytes: 0, missing_bytes: 0 }
    }

    /// What was read, in the order of the file.
    pub fn parts(&self) -> &[CollectedPart] {
        &self.parts
    }

    /// Hands over what was read and is empty again, as it must be before the next sample and after
    /// an error.
    pub fn take(&mut self) -> Vec<CollectedPart> {
        (self.held_bytes, self.missing_bytes) = (0, 0);
        std::mem::take(&mut self.parts)
    }
}

impl SampleSink for Collect {
    fn begin(&mut self, part: &SamplePart<'_>) -> Streamed<()> {
        let size = part.size_bytes().filter(|&size| size <= self.room_bytes());
        let size = size.ok_or_else(|| format!("part {:?} is too large", part.name))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(size)?)?;
        self.held_bytes += size;
        self.missing_bytes = size;
        let (name, shape) = (part.name.to_owned(), part.shape.to_vec());
        self.parts.push(CollectedPart { name, element: part.element, shape, bytes });
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Streamed<()> {
        let missing = self.missing_bytes.checked_sub(bytes.len() as u64);
        let (Some(missing), Some(part)) = (missing, self.parts.last_mut()) else {
            return Err("more bytes than the part was announced with".into());
        };
        part.bytes.extend_from_slice(bytes);
        self.missing_bytes = missing;
        Ok(())
    }

    fn room_bytes(&self) -> u64 {
        self.limit_bytes - self.held_bytes
    }
}

/// Announces a part, unless the sink has no room for it.
#[inline]
pub(crate) fn begin<S: SampleSink>(sink: &mut S, part: SamplePart<'_>) -> Decoded<()> {
    if !sink.wants_bytes() {
        return Ok(());
    }
    check_room(sink, part.name, part.size_bytes().unwrap_or(u64::MAX))?;
    sink.begin(&part).map_err(|source| DecodeError::SampleSink { source })
}

/// Announces `len` bytes that are no numbers of a NumPy type.
#[inline]
pub(crate) fn begin_raw<S: SampleSink>(sink: &mut S, name: &str, len: u64) -> Decoded<()> {
    begin(sink, SamplePart { name, element: None, shape: &[len] })
}

/// Refuses a part that the sink has no room for.
pub(crate) fn check_room<S: SampleSink>(sink: &S, part: &str, needed: u64) -> Decoded<()> {
    let limit = sink.room_bytes();
    if needed <= limit {
        return Ok(());
    }
    Err(DecodeError::SampleLimit { part: part.to_owned(), needed, limit })
}

/// Hands the next bytes of the part over.
#[inline]
pub(crate) fn put<S: SampleSink>(sink: &mut S, bytes: &[u8]) -> Decoded<()> {
    sink.put(bytes).map_err(|source| DecodeError::SampleSink { source })
}

/// What a caller of [`Opened`] asks for: a sample of a file, and the memory to read it with.
pub(crate) struct Request<'a> {
    pub(crate) source: &'a mut dyn ByteSource,
    pub(crate) index: u64,
    pub(crate) scratch: &'a mut Scratch,
}

/// A file that has been opened, as formats implement it: one decoder for all sinks.
pub(crate) trait Decode: Send {
    /// Reads one sample the way the framework's reader would and hands it to `sink`.
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead>;

    /// [`Opened::locate`].
    fn locate_sample(&mut self, _request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        ranges.push(ByteRange::WHOLE);
        Ok(())
    }
}

impl<D: Decode> Opened for D {
    fn read(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
    ) -> Decoded<SampleRead> {
        self.decode(Request { source, index, scratch }, &mut Discard)
    }

    fn read_into(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
        mut sink: &mut dyn SampleSink,
    ) -> Decoded<SampleRead> {
        self.decode(Request { source, index, scratch }, &mut sink)
    }

    fn locate(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
        ranges: &mut Vec<ByteRange>,
    ) -> Decoded<()> {
        self.locate_sample(Request { source, index, scratch }, ranges)
    }
}

/// Reads a sample of a file of unknown format; a sink that drops it costs no virtual call per piece.
pub(crate) fn decode_opened<S: SampleSink>(
    opened: &mut dyn Opened,
    Request { source, index, scratch }: Request<'_>,
    sink: &mut S,
) -> Decoded<SampleRead> {
    if sink.wants_bytes() {
        opened.read_into(source, index, scratch, sink)
    } else {
        opened.read(source, index, scratch)
    }
}

#[cfg(test)]
mod tests;
