//! `tfrecord`: records in a frame of lengths and checksums, each a `tf.train.Example` with the
//! features `image`, one sample's bytes, and `size`, how many there are.
//!
//! Read front to back through a buffer that belongs to the open file, because a framework has
//! several files open at once and takes records from them in turn. Both checksums of every record
//! that is read are compared and its protobuf is walked; a record that is passed over costs its
//! header only.

mod example;
mod stream;

use crate::error::check_limit;
use crate::framework::FrameworkReader;
use crate::sample_sink::{self, Decode, Request};
use crate::writer::Writer;
use crate::{
    ByteRange, ByteSink, ByteSource, Companion, CompanionPlace, Content, DecodeError, Decoded,
    EncodeError, Encoded, FileSize, FileSpec, Format, Opened, SampleFormat, SampleRead, SampleSink,
    Scratch,
};
use example::Example;
use stream::{Payload, Reader, Stream};

const NAME: &str = "tfrecord";
/// Length and its checksum.
const HEADER_BYTES: u64 = 12;
/// What a record is larger than its payload.
const FRAME_BYTES: u64 = 16;
/// A protobuf message cannot be larger.
const PAYLOAD_BYTES_MAX: u64 = i32::MAX as u64;
/// Where each record begins and how long it is, as DALI expects it.
const INDEX: Companion = Companion { suffix: ".idx", place: CompanionPlace::IndexFolder };
/// The index is written in pieces of about this size.
const INDEX_PIECE_BYTES: usize = 32 * 1024;

pub(crate) struct TfRecord;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    is_streamed: true,
    has_dali_reader: true,
    framework: Some(FrameworkReader::TensorflowRecords),
    ..SampleFormat::new(NAME, |_| Ok(Box::new(TfRecord)))
};

impl Format for TfRecord {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn companions(&self) -> &'static [Companion] {
        &[INDEX]
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let record = Example::of(file).map(|example| example.len() + FRAME_BYTES);
        let size = record.and_then(|record| record.checked_mul(file.samples));
        FileSize::Exact(size.unwrap_or(u64::MAX))
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let example = fitting_example(file)?;
        let before = [&record_header(example.len())[..], &example.before_image].concat();
        let before_crc = crc32c::crc32c(&example.before_image);
        let mut after = [&example.after_image[..], &[0; 4]].concat();
        let mut writer = Writer::new(sink);
        for sample in 0..file.samples {
            let first = sample * example.image_bytes;
            writer.put(&before)?;
            let mut crc = before_crc;
            writer.generate(example.image_bytes, |at, space| {
                content.fill(file.element, first + at, space);
                crc = crc32c::crc32c_append(crc, space);
            })?;
            let crc_at = after.len() - 4;
            crc = crc32c::crc32c_append(crc, &after[..crc_at]);
            after[crc_at..].copy_from_slice(&masked(crc).to_le_bytes());
            writer.put(&after)?;
        }
        Ok(())
    }

    fn companion_bytes(&self, file: &FileSpec) -> u64 {
        let digits = |number: u64| u64::from(number.checked_ilog10().unwrap_or(0)) + 1;
        let record = file.sample_bytes().unwrap_or(u64::MAX);
        let end = record.saturating_mul(file.samples);
        file.samples.saturating_mul(digits(end) + digits(record) + 2)
    }

    fn encode_companion(
        &self,
        _which: &Companion,
        file: &FileSpec,
        sink: &mut dyn ByteSink,
    ) -> Encoded<()> {
        let record = fitting_example(file)?.len() + FRAME_BYTES;
        let mut writer = Writer::new(sink);
        let mut lines = Vec::with_capacity(INDEX_PIECE_BYTES + 64);
        let mut digits = itoa::Buffer::new();
        for sample in 0..file.samples {
            lines.extend(digits.format(sample * record).as_bytes());
            lines.push(b' ');
            lines.extend(digits.format(record).as_bytes());
            lines.push(b'\n');
            if lines.len() >= INDEX_PIECE_BYTES {
                writer.put(&lines)?;
                lines.clear();
            }
        }
        writer.put(&lines)
    }

    fn open(&self, source: &mut dyn ByteSource, scratch: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        let stream = Stream::open(source, scratch)?;
        Ok(Box::new(Cursor { stream, next: 0, at: 0 }))
    }
}

/// The example that a sample of the file becomes, if files of such examples can be.
fn fitting_example(file: &FileSpec) -> Encoded<Example> {
    let example = Example::of(file).ok_or_else(|| file.too_large())?;
    if example.len() > PAYLOAD_BYTES_MAX {
        let bytes = example.image_bytes;
        let what = format!(
            "a sample of {bytes} bytes makes a protobuf of {}, the limit is {PAYLOAD_BYTES_MAX}",
            example.len()
        );
        return Err(EncodeError::Layout { format: NAME, what });
    }
    let size = (example.len() + FRAME_BYTES).checked_mul(file.samples);
    size.ok_or_else(|| file.too_large())?;
    Ok(example)
}

fn record_header(len: u64) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(&len.to_le_bytes());
    let crc = masked(crc32c::crc32c(&len.to_le_bytes()));
    header[8..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// A checksum as records store it: a checksum over bytes that contain their own checksum is a
/// constant, which this undoes.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// An open file, positioned before a record.
struct Cursor {
    stream: Stream,
    /// The number of that record.
    next: u64,
    /// Where it begins.
    at: u64,
}

impl Decode for Cursor {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, .. } = request;
        let mut reader = self.stream.reader(source);
        let (at, len) = seek(&mut reader, (self.next, self.at), index)
            .inspect_err(|_| (self.next, self.at) = (0, 0))?;
        // If the record is damaged, asking again gives the same answer.
        (self.next, self.at) = (index, at);
        sample_sink::begin_raw(sink, "", len)?;
        let bytes = read_record(&mut reader, at, len, sink)?;
        (self.next, self.at) = (index + 1, at + FRAME_BYTES + len);
        Ok(SampleRead { bytes, file_bytes: reader.pulled(), samples: 0, element: None })
    }

    fn locate_sample(&mut self, request: Request<'_>, ranges: &mut Vec<ByteRange>) -> Decoded<()> {
        let Request { source, index, .. } = request;
        let mut reader = self.stream.reader(source);
        let (at, len) = seek(&mut reader, (self.next, self.at), index)?;
        (self.next, self.at) = (index, at);
        ranges.push(ByteRange { offset: at, len: Some(len + FRAME_BYTES) });
        Ok(())
    }
}

/// Where record `index` begins and how long its payload is, from the record that `stand` tells the
/// number and place of.
fn seek(reader: &mut Reader<'_>, stand: (u64, u64), index: u64) -> Decoded<(u64, u64)> {
    let (mut next, mut at) = if index < stand.0 { (0, 0) } else { stand };
    loop {
        if reader.ends_at(at)? {
            return Err(DecodeError::SampleIndex { offset: at, index, samples: next });
        }
        let len = payload_len(reader, at)?;
        if next == index {
            return Ok((at, len));
        }
        next += 1;
        at += FRAME_BYTES + len;
        reader.pass_over(at, FRAME_BYTES + len, HEADER_BYTES)?;
    }
}

/// The length in the header at `at`, if its checksum is right and the file has as many bytes.
fn payload_len(reader: &mut Reader<'_>, at: u64) -> Decoded<u64> {
    let truncated = |needed: u64, found| DecodeError::truncated(needed, found);
    let left = reader.len() - at;
    if left < HEADER_BYTES {
        if at == 0 {
            check_beginning(reader)?;
        }
        return Err(truncated(at + HEADER_BYTES, reader.len()));
    }
    let [l0, l1, l2, l3, l4, l5, l6, l7, c0, c1, c2, c3] = reader.array(at)?;
    let len = [l0, l1, l2, l3, l4, l5, l6, l7];
    let (found, expected) = (masked(crc32c::crc32c(&len)), u32::from_le_bytes([c0, c1, c2, c3]));
    if found != expected {
        if at == 0 {
            check_beginning(reader)?;
        }
        let what = "length of the record";
        return Err(DecodeError::Checksum { format: NAME, what, offset: at, expected, found });
    }
    let len = u64::from_le_bytes(len);
    check_limit((NAME, "record"), at, len, PAYLOAD_BYTES_MAX)?;
    if left < FRAME_BYTES + len {
        return Err(truncated(at + FRAME_BYTES + len, reader.len()));
    }
    Ok(len)
}

/// Tells the files that TensorFlow writes compressed from those that are of another kind.
///
/// Only asked once a first header has turned out wrong.
fn check_beginning(reader: &mut Reader<'_>) -> Decoded<()> {
    let mut found = Vec::new();
    for at in 0..reader.len().min(8) {
        let [byte] = reader.array(at)?;
        found.push(byte);
    }
    let feature = match found[..] {
        [0x1F, 0x8B, ..] => "compression with gzip",
        // Deflate with a window of 32 KiB, and a check that makes the two bytes a multiple of 31.
        [0x78, flags, ..] if (0x7800 + u16::from(flags)).is_multiple_of(31) => {
            "compression with zlib"
        }
        _ if found.len() < 8 => return Ok(()),
        _ => {
            let expected = "a length with its checksum";
            return Err(DecodeError::Foreign { format: "a tfrecord", offset: 0, expected, found });
        }
    };
    Err(DecodeError::Feature { format: NAME, feature: feature.to_owned(), offset: 0 })
}

/// Reads the record at `at`, whose header was read before, and says how large its image is.
fn read_record<S: SampleSink>(
    reader: &mut Reader<'_>,
    at: u64,
    len: u64,
    sink: &mut S,
) -> Decoded<u64> {
    let begin = at + HEADER_BYTES;
    let mut payload = Payload::new(reader, begin, len, sink);
    let image = example::walk(&mut payload);
    // Of damaged bytes the checksum is the better witness, whatever they look like as protobuf.
    let found = masked(payload.finish()?);
    let expected = u32::from_le_bytes(reader.array(begin + len)?);
    if found != expected {
        let what = "record";
        return Err(DecodeError::Checksum { format: NAME, what, offset: begin, expected, found });
    }
    image
}

#[cfg(test)]
mod tests;
