//! `webdataset`: a tar shard in which files of the same base name are one sample.
//!
//! A sample is written as `FILE_SAMPLE.npy`, its array, and `FILE_SAMPLE.cls`, the label 0; both
//! numbers have six digits at least, so a key is unique in a data set. WebDataset decodes both by
//! their endings. Read as WebDataset does: front to back, every header checked, every member of the
//! sample read and the array's header parsed. A sample further on is reached from header to header,
//! an earlier one from the start; there is no index, and the file does not say how many samples it
//! has.
//!
//! What WebDataset takes for a key goes for foreign shards too: the path up to the first dot of the
//! file's name. Files without a dot, meta data (`__NAME__`), folders and links belong to no sample.

use crate::array_sample::ArraySample;
use crate::framework::FrameworkReader;
use crate::npy_header::{self, Header};
use crate::sample_sink::{self, Decode, Request};
use crate::scratch::AlignedBuffer;
use crate::tar::{self, BLOCK_BYTES, Member, RECORD_BYTES};
use crate::window::{Held, Window};
use crate::writer::Writer;
use crate::{
    ByteRange, ByteSink, ByteSource, Content, DecodeError, Decoded, Discard, Element, Encoded,
    FileSize, FileSpec, Format, Opened, SampleFormat, SampleRead, SampleSink, Scratch,
};

const LABEL: &[u8] = b"0";

pub(crate) struct WebDataset;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    is_streamed: true,
    framework: Some(FrameworkReader::TarStream),
    ..SampleFormat::new("webdataset", |_| Ok(Box::new(WebDataset)))
};

impl Format for WebDataset {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn extension(&self) -> &'static str {
        "tar"
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        FileSize::Exact(Layout::of(file).map_or(u64::MAX, |layout| layout.file))
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let layout = Layout::of(file).ok_or_else(|| file.too_large())?;
        let mut writer = Writer::new(sink);
        let zeros = |_, space: &mut [u8]| space.fill(0);
        for sample in 0..file.samples {
            let key = format!("{:06}_{sample:06}", file.index);
            let start = sample * layout.sample;
            writer.put(&tar::header(&format!("{key}.npy"), layout.array))?;
            writer.put(&layout.npy_header)?;
            writer.generate(layout.sample, |at, space| {
                content.fill(file.element, start + at, space)
            })?;
            writer.generate(tar::padding(layout.array), zeros)?;
            writer.put(&tar::header(&format!("{key}.cls"), LABEL.len() as u64))?;
            writer.put(LABEL)?;
            writer.generate(tar::padding(LABEL.len() as u64), zeros)?;
        }
        writer.generate(layout.file - layout.end, zeros)
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(Shard::default()))
    }
}

/// The sizes in a shard, all of them the same for every sample.
struct Layout {
    npy_header: Vec<u8>,
    /// Bytes of a sample.
    sample: u64,
    /// Bytes of its array with the header.
    array: u64,
    /// Where the end of the archive begins.
    end: u64,
    file: u64,
}

impl Layout {
    /// `None` if 64 bits cannot hold the file's size.
    fn of(file: &FileSpec) -> Option<Layout> {
        let npy_header = npy_header::build(file.element, &file.dims);
        let sample = file.sample_bytes()?;
        let array = sample.checked_add(npy_header.len() as u64)?;
        let member = array.checked_next_multiple_of(BLOCK_BYTES)?.checked_add(BLOCK_BYTES)?;
        let end = member.checked_add(2 * BLOCK_BYTES)?.checked_mul(file.samples)?;
        let size = end.checked_add(2 * BLOCK_BYTES)?.checked_next_multiple_of(RECORD_BYTES)?;
        Some(Layout { npy_header, sample, array, end, file: size })
    }
}

/// How far a shard has been read.
#[derive(Default)]
struct Shard {
    /// The sample that begins at `offset`, if there is one.
    next: u64,
    offset: u64,
    /// Once something was read.
    begun: Option<Begun>,
    held: Held,
}

/// What a shard keeps between samples.
struct Begun {
    /// The rest of a piece: the caller's buffer serves other files in between, and small samples
    /// would fetch the same piece over and over.
    piece: AlignedBuffer,
    /// Size of the file.
    len: u64,
}

/// What is to be done with a sample once it is found.
enum Purpose<'s, S> {
    /// Read, for this sink.
    Read(&'s mut S),
    Locate,
}

/// A sample that was found.
struct Sample {
    /// From its first header to the end of its last member.
    start: u64,
    end: u64,
    bytes: u64,
    element: Option<Element>,
}

impl Decode for Shard {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let (sample, file_bytes) = self.go_to(source, index, scratch, &mut Purpose::Read(sink))?;
        Ok(SampleRead { bytes: sample.bytes, file_bytes, samples: 0, element: sample.element })
    }

    fn locate_sample(&mut self, request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        let Request { source, index, scratch } = request;
        let (sample, _) = self.go_to(source, index, scratch, &mut Purpose::<Discard>::Locate)?;
        let len = Some(sample.end - sample.start);
        ranges.push(ByteRange { offset: sample.start, len });
        Ok(())
    }
}

impl Shard {
    /// The sample and the bytes that were read to get it.
    fn go_to<S: SampleSink>(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
        purpose: &mut Purpose<'_, S>,
    ) -> Decoded<(Sample, u64)> {
        let held = std::mem::take(&mut self.held);
        let begun = match &mut self.begun {
            Some(begun) => begun,
            unknown => {
                let len = source.len().map_err(|source| DecodeError::Size { source })?;
                let piece = source.piece_bytes().min(scratch.piece.len());
                unknown.insert(Begun { piece: scratch.another(piece), len })
            }
        };
        if index < self.next {
            (self.next, self.offset) = (0, 0);
        }
        let mut window = Window::with_len(source, &mut begun.piece, begun.len).resume(held);
        let mut walk = Walk { next: self.next, offset: self.offset };
        let sample = walk.find(&mut window, index, purpose)?;
        (self.next, self.offset) = (walk.next, walk.offset);
        let pulled = window.pulled();
        self.held = window.held();
        Ok((sample, pulled))
    }
}

/// The way through the members of a shard.
struct Walk {
    next: u64,
    offset: u64,
}

impl Walk {
    /// Goes after the sample `index`, which is not before the next one.
    fn find<S: SampleSink>(
        &mut self,
        window: &mut Window<'_>,
        index: u64,
        purpose: &mut Purpose<'_, S>,
    ) -> Decoded<Sample> {
        let mut key = None;
        let mut found: Option<Sample> = None;
        // Next to small members the rest of the piece is worth its read; after large ones that are
        // passed over, only the header is.
        let mut reach = u64::MAX;
        while let Some(member) = tar::member(window, self.offset, reach)? {
            if let Some(its_key) = key_of(&member) {
                if key.as_deref() != Some(its_key) {
                    if let Some(sample) = found {
                        return Ok(sample);
                    }
                    key = Some(its_key.to_vec());
                    if self.next == index {
                        let (start, end) = (member.offset, member.offset);
                        found = Some(Sample { start, end, bytes: 0, element: None });
                    }
                    self.next += 1;
                }
                if let Some(sample) = &mut found {
                    sample.end = member.data_end();
                    if let Purpose::Read(sink) = purpose {
                        sample.take(window, &member, its_key.len(), *sink)?;
                    }
                }
            }
            let read = found.is_some() && matches!(purpose, Purpose::Read(_));
            reach = if read || member.size < window.piece() { u64::MAX } else { BLOCK_BYTES };
            self.offset = member.end();
        }
        let samples = self.next;
        let offset = self.offset;
        found.ok_or(DecodeError::SampleIndex { offset, index, samples })
    }
}

impl Sample {
    /// Reads a member as WebDataset does: all of it, arrays with their header.
    fn take<S: SampleSink>(
        &mut self,
        window: &mut Window<'_>,
        member: &Member,
        key_len: usize,
        sink: &mut S,
    ) -> Decoded<()> {
        let size = member.size;
        // After the key and its dot; looked at only by sinks.
        let extension = || String::from_utf8_lossy(&member.name[key_len + 1..]).into_owned();
        if member.name.ends_with(b".npy") {
            let header = array(window, member)?;
            self.element = Some(header.element);
            self.bytes = self.bytes.saturating_add(header.data_bytes);
            let mut array = ArraySample::new(sink);
            if array.wants_bytes() {
                array.begin(header.whole(&extension()), header.len)?;
            }
            read_member(window, member, |piece| array.put(piece))?;
            return array.finish();
        }
        if !member.name.ends_with(b".cls") {
            // A label is not part of the sample, here as in the other formats.
            self.bytes = self.bytes.saturating_add(size);
        }
        if sink.wants_bytes() {
            sample_sink::begin_raw(sink, &extension(), size)?;
        }
        read_member(window, member, |piece| sample_sink::put(sink, piece))
    }
}

/// Shows all bytes of a member.
fn read_member(
    window: &mut Window<'_>,
    member: &Member,
    mut visit: impl FnMut(&[u8]) -> Decoded<()>,
) -> Decoded<()> {
    let (mut at, end) = (member.data_offset, member.data_end());
    while at < end {
        // What follows the member in the same piece is read next.
        let piece = window.at_least(at, 1, u64::MAX)?;
        visit(&piece[..piece.len().min(usize::try_from(end - at).unwrap_or(usize::MAX))])?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// The header of the array in a member.
fn array(window: &mut Window<'_>, member: &Member) -> Decoded<Header> {
    let offset = member.data_offset;
    let too_short = |needed| DecodeError::MemberTooShort {
        offset,
        member: String::from_utf8_lossy(&member.name).into_owned(),
        needed,
        found: member.size,
    };
    npy_header::of_member(window, offset, member.size, too_short)
}

/// What WebDataset takes for the key of a member, or `None` if it is part of no sample.
fn key_of(member: &Member) -> Option<&[u8]> {
    let name = &member.name[..];
    if !member.regular || is_meta(name) {
        return None;
    }
    let base = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = base + name[base..].iter().position(|&byte| byte == b'.')?;
    (dot > base).then(|| &name[..dot])
}

/// `__NAME__`, as a file or as the first folder.
fn is_meta(name: &[u8]) -> bool {
    let first = name.split(|&byte| byte == b'/').next().unwrap_or_default();
    first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__")
}

#[cfg(test)]
mod tests;
