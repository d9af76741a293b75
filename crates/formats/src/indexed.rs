//! `indexed_binary` and `mmap_indexed_binary`: samples one after the other without any frame, and
//! two companions that say where each begins and how many bytes it has.
//!
//! The two names mean the same files. DLIO maps those of the second and never touches a page of
//! them; here a sample is copied out of whatever the store has, so both read the same bytes.
//! Neither the data nor the companions have a checksum: damage shows only where an entry points
//! beyond the file.

use crate::framework::FrameworkReader;
use crate::sample_sink::{self, Decode, Request};
use crate::window::Window;
use crate::writer::Writer;
use crate::{
    ByteRange, ByteSink, ByteSource, Companion, CompanionPlace, Content, DecodeError, Decoded,
    Encoded, FileSize, FileSpec, Format, Mapping, Opened, ReadUnit, SampleFormat, SampleRead,
    SampleSink, Scratch,
};

const OFFSETS: Companion = Companion { suffix: ".off.idx", place: CompanionPlace::Beside };
const SIZES: Companion = Companion { suffix: ".sz.idx", place: CompanionPlace::Beside };
const ENTRY_BYTES: u64 = 8;
/// A larger index stays in its files: the memory of a reader must not grow with the data set.
const KEPT_BYTES_MAX: u64 = 16 << 20;
/// What is read of an index that is not kept, so that neighbors cost one look: a page.
const BLOCK_BYTES: u64 = 4096;

/// The format, under one of its names.
pub(crate) struct Indexed {
    facts: &'static SampleFormat,
}

pub(crate) static FACTS: SampleFormat = SampleFormat {
    read_unit: ReadUnit::IndexedSample,
    framework: Some(FrameworkReader::Indexed),
    ..SampleFormat::new("indexed_binary", |_| Ok(Box::new(Indexed { facts: &FACTS })))
};

/// The format `mmap_indexed_binary`: the same files, read through a memory map.
pub(crate) static MMAP_FACTS: SampleFormat = SampleFormat {
    read_unit: ReadUnit::IndexedSampleOfOpenFile,
    mapping: Mapping::Always,
    framework: Some(FrameworkReader::NumpyMap),
    ..SampleFormat::new("mmap_indexed_binary", |_| Ok(Box::new(Indexed { facts: &MMAP_FACTS })))
};

impl Format for Indexed {
    fn facts(&self) -> &'static SampleFormat {
        self.facts
    }

    fn companions(&self) -> &'static [Companion] {
        &[OFFSETS, SIZES]
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        FileSize::Exact(file.payload_bytes().unwrap_or(u64::MAX))
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let payload = file.payload_bytes().ok_or_else(|| file.too_large())?;
        Writer::new(sink).generate(payload, |at, space| content.fill(file.element, at, space))
    }

    fn companion_bytes(&self, file: &FileSpec) -> u64 {
        file.samples.saturating_mul(2 * ENTRY_BYTES)
    }

    fn encode_companion(
        &self,
        which: &Companion,
        file: &FileSpec,
        sink: &mut dyn ByteSink,
    ) -> Encoded<()> {
        file.payload_bytes().ok_or_else(|| file.too_large())?;
        let sample = file.sample_bytes().ok_or_else(|| file.too_large())?;
        let bytes = file.samples.checked_mul(ENTRY_BYTES).ok_or_else(|| file.too_large())?;
        let step = if *which == OFFSETS { sample } else { 0 };
        let first = if *which == OFFSETS { 0 } else { sample };
        Writer::new(sink).generate(bytes, |at, space| {
            // A sink may give any number of bytes, so an entry may be cut in two.
            let mut entry = at / ENTRY_BYTES;
            let mut inside = (at % ENTRY_BYTES) as usize;
            let mut rest = space;
            while !rest.is_empty() {
                let value = (first + entry * step).to_le_bytes();
                let part = rest.len().min(value.len() - inside);
                let (now, later) = rest.split_at_mut(part);
                now.copy_from_slice(&value[inside..inside + part]);
                (entry, inside, rest) = (entry + 1, 0, later);
            }
        })
    }

    fn open(&self, source: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        let offsets = Entries::open(source, OFFSETS)?;
        let sizes = Entries::open(source, SIZES)?;
        let wrong = |expected, found| {
            DecodeError::field(self.facts.name, offsets.len.min(sizes.len), expected, found)
        };
        if offsets.len != sizes.len {
            let found = format!("{} and {} bytes", offsets.len, sizes.len);
            return Err(wrong(".off.idx and .sz.idx of one length", found));
        }
        if !offsets.len.is_multiple_of(ENTRY_BYTES) {
            let found = format!("{} bytes", offsets.len);
            return Err(wrong("whole entries of 8 bytes in .off.idx and .sz.idx", found));
        }
        let samples = offsets.len / ENTRY_BYTES;
        Ok(Box::new(OpenedIndexed { name: self.facts.name, samples, offsets, sizes }))
    }
}

/// An open file and the part of its index that is in memory.
struct OpenedIndexed {
    name: &'static str,
    samples: u64,
    offsets: Entries,
    sizes: Entries,
}

impl Decode for OpenedIndexed {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let (begin, size, pulled) = self.find(source, index)?;
        let mut window = Window::new(source, &mut scratch.piece)?;
        let end = self.check_end(index, begin, size, window.len())?;
        sample_sink::begin_raw(sink, "", size)?;
        window.stream(begin..end, |piece| sample_sink::put(sink, piece))?;
        Ok(SampleRead {
            bytes: size,
            file_bytes: pulled + window.pulled(),
            samples: self.samples,
            element: None,
        })
    }

    fn locate_sample(&mut self, request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        let Request { source, index, .. } = request;
        let (offset, size, _) = self.find(source, index)?;
        let len = source.len().map_err(|source| DecodeError::Size { source })?;
        self.check_end(index, offset, size, len)?;
        ranges.push(ByteRange { offset, len: Some(size) });
        Ok(())
    }
}

impl OpenedIndexed {
    /// Offset and size of a sample, and how many bytes of the index were read to know them.
    fn find(&mut self, source: &mut dyn ByteSource, index: u64) -> Decoded<(u64, u64, u64)> {
        if index >= self.samples {
            let offset = self.samples * ENTRY_BYTES;
            return Err(DecodeError::SampleIndex { offset, index, samples: self.samples });
        }
        let (offset, pulled) = self.offsets.entry(source, index)?;
        let (size, more) = self.sizes.entry(source, index)?;
        Ok((offset, size, pulled + more))
    }

    /// Where the sample ends, if the file has as many bytes.
    fn check_end(&self, index: u64, offset: u64, size: u64, len: u64) -> Decoded<u64> {
        let end = offset.checked_add(size).filter(|&end| end <= len);
        end.ok_or_else(|| DecodeError::field(self.name, index * ENTRY_BYTES, "a sample inside the data file", format!(
                "entry {index} of .off.idx and .sz.idx: {size} bytes at {offset}, file has {len}"
            )))
    }
}

/// The entries of one companion, of which one block is in memory: all of them if they are few.
struct Entries {
    which: Companion,
    len: u64,
    /// Where in the companion `block` begins.
    begin: u64,
    block: Vec<u8>,
    /// Bytes read that no sample was charged with yet.
    pulled: u64,
}

impl Entries {
    fn open(source: &mut dyn ByteSource, which: Companion) -> Decoded<Entries> {
        let broken = |source| DecodeError::Companion { suffix: which.suffix, offset: 0, source };
        let mut companion = source.companion(&which).map_err(broken)?;
        let len = companion.len().map_err(broken)?;
        let mut entries = Entries { which, len, begin: 0, block: Vec::new(), pulled: 0 };
        if len <= KEPT_BYTES_MAX / 2 {
            entries.load(companion.as_mut(), 0, len)?;
        }
        Ok(entries)
    }

    /// An entry that there is, and how many bytes were read to know it.
    fn entry(&mut self, source: &mut dyn ByteSource, index: u64) -> Decoded<(u64, u64)> {
        let at = index * ENTRY_BYTES;
        let in_memory = self.begin..self.begin + self.block.len() as u64;
        if !in_memory.contains(&at) {
            let begin = at - at % BLOCK_BYTES;
            let suffix = self.which.suffix;
            let companion = source.companion(&self.which);
            let mut companion = companion.map_err(|source| DecodeError::Companion {
                suffix,
                offset: begin,
                source,
            })?;
            self.load(companion.as_mut(), begin, (self.len - begin).min(BLOCK_BYTES))?;
        }
        let value = self.block[(at - self.begin) as usize..].first_chunk();
        let value = value.expect("blocks begin and end with an entry");
        Ok((u64::from_le_bytes(*value), std::mem::take(&mut self.pulled)))
    }

    /// Reads a block in place of the one in memory.
    fn load(&mut self, companion: &mut dyn ByteSource, begin: u64, len: u64) -> Decoded<()> {
        let mut block = std::mem::take(&mut self.block);
        block.resize(len as usize, 0);
        let mut offset = begin;
        for target in block.chunks_mut(companion.piece_bytes().max(1)) {
            let suffix = self.which.suffix;
            companion.read_exact_at(offset, target).map_err(|source| DecodeError::Companion {
                suffix,
                offset,
                source,
            })?;
            offset += target.len() as u64;
        }
        // Only a block that was read in full is kept.
        (self.begin, self.block) = (begin, block);
        self.pulled += len;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
