//! NumPy: `np.load` of an array in an archive (`npz`) and of one in a file of its own (`npy`).

use std::ops::Range;

use super::library::{Libraries, NUMPY_ARRAY_BYTES, NUMPY_MAGIC_BYTES, STDIO_BUFFER_BYTES};
use super::python_file::{self, PythonFile};
use super::zipfile::{self, ZipMember};
use crate::array_sample::ArraySample;
use crate::npy_header::{self, Header, PREFIX_BYTES};
use crate::sample_sink::{Decode, Request};
use crate::scratch::grow;
use crate::zip::Member;
use crate::{ByteSource, DecodeError, Decoded, SampleRead, SampleSink, Scratch, npy, npz};

/// An archive of which nothing is known yet.
pub(super) struct Archive {
    pub(super) libraries: Libraries,
}

impl Decode for Archive {
    /// `np.load(path)["x"]`: all of `x`, whichever sample of it is asked for.
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let Scratch { piece, buffered, .. } = scratch;
        let mut file = buffered.open(source, self.libraries.python)?;
        look_at_magic(&mut file)?;
        let member = zipfile::find(&mut file, npz::SAMPLES, piece)?;
        let header = read_array(&mut file, &member, index, piece, sink)?;
        Ok(npy::found(&header, file.pulled()))
    }
}

/// `np.load` tells formats by their first bytes, and goes back.
fn look_at_magic(file: &mut PythonFile<'_>) -> Decoded<()> {
    file.read(&mut [0; NUMPY_MAGIC_BYTES])?;
    file.seek(0);
    Ok(())
}

/// `format.read_array` of a member: header, then the array in pieces, its checksum taken.
fn read_array<S: SampleSink>(
    file: &mut PythonFile<'_>,
    member: &Member,
    index: u64,
    piece: &mut [u8],
    sink: &mut S,
) -> Decoded<Header> {
    let mut array = ZipMember::open(file, member);
    let offset = member.data_offset;
    array.read(&mut [0; NUMPY_MAGIC_BYTES])?;
    array.rewind();
    let fits = |needed| match needed <= member.size {
        true => Ok(()),
        false => Err(npz::too_short(member, needed)),
    };
    let header = read_header(offset, |out| array.read(out), fits)?;
    fits(header.len.saturating_add(header.data_bytes))?;
    header.check_index(index, offset)?;

    let mut sample = ArraySample::new(sink);
    sample.begin_npy(npz::SAMPLES_NAME, &header, index, 0)?;
    let item = header.element.size_bytes() as usize;
    let most = (NUMPY_ARRAY_BYTES / item * item).min(piece.len() / item * item);
    let mut left = header.data_bytes;
    while left > 0 {
        let part = &mut piece[..left.min(most as u64) as usize];
        let mut done = 0;
        while done < part.len() {
            match array.read(&mut part[done..])? {
                0 => return Err(npz::too_short(member, member.size + 1)),
                found => done += found,
            }
        }
        sample.put(part)?;
        left -= part.len() as u64;
    }
    sample.finish()?;
    // The checksum of an array that does not fill its member is not taken.
    if let Some(found) = array.finish() {
        npz::check_crc(member, found)?;
    }
    Ok(header)
}

/// Magic and version, the header's length, the header: three reads. `fits` refuses a length that the
/// file does not have.
fn read_header(
    offset: u64,
    mut read: impl FnMut(&mut [u8]) -> Decoded<usize>,
    fits: impl Fn(u64) -> Decoded<()>,
) -> Decoded<Header> {
    let mut header = vec![0; PREFIX_BYTES];
    let mut known = read(&mut header[..8])?;
    let length_bytes = if header[6] == 1 { 2 } else { 4 };
    if known == 8 {
        known += read(&mut header[8..8 + length_bytes])?;
    }
    // Of version 1 the last two bytes are not those of the length.
    let prefix = if known == 8 + length_bytes { PREFIX_BYTES } else { known };
    let len = npy_header::header_len(&header[..prefix], offset)?;
    fits(len)?;
    header.resize(len as usize, 0);
    known += read(&mut header[known..])?;
    npy_header::parse(&header[..known], offset)
}

/// An array of which nothing is known yet.
pub(super) struct Array {
    pub(super) libraries: Libraries,
}

impl Decode for Array {
    /// `np.load(path)`: the header through Python's file, the array by `np.fromfile`, which reads
    /// through a C file on the same descriptor.
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let mut file = scratch.buffered.open(source, self.libraries.python)?;
        let len = file.len();
        look_at_magic(&mut file)?;
        let fits = |needed| match needed <= len {
            true => Ok(()),
            false => Err(DecodeError::truncated(needed, len)),
        };
        let header = read_header(0, |out| file.read(out), fits)?;
        fits(header.len.saturating_add(header.data_bytes))?;
        header.check_index(index, 0)?;
        let pulled = file.pulled();
        let mut sample = ArraySample::new(sink);
        sample.begin_npy("", &header, index, 0)?;
        let array = header.len..header.len + header.data_bytes;
        let more = from_file(file.source(), array, &mut scratch.whole, |part| sample.put(part))?;
        sample.finish()?;
        Ok(npy::found(&header, pulled + more))
    }
}

/// `np.fromfile` of the bytes of an array, each of which is shown once: the bytes that were read.
///
/// The C library fills its buffer up to the place that is sought, then from its beginning, and reads
/// what is left of the array in whole buffers at once.
fn from_file(
    source: &mut dyn ByteSource,
    array: Range<u64>,
    memory: &mut Vec<u8>,
    mut visit: impl FnMut(&[u8]) -> Decoded<()>,
) -> Decoded<u64> {
    let Range { start: begin, end } = array;
    let len = end - begin;
    source.len().map_err(|source| DecodeError::Size { source })?;
    let buffer = source.preferred_bytes().clamp(1, STDIO_BUFFER_BYTES) as u64;
    let start = begin - begin % buffer;
    let most = len.max(buffer);
    let room = usize::try_from(most).map_err(|_| DecodeError::TooMuch {
        format: "npy",
        what: "the array",
        offset: begin,
        needed: most,
        limit: usize::MAX as u64,
    })?;
    grow(memory, room);
    let mut pulled = 0;
    let mut read = |offset: u64, len: u64| -> Decoded<u64> {
        let found = python_file::read_up_to(source, offset, &mut memory[..len as usize])? as u64;
        pulled += found;
        let (from, to) = (begin.max(offset), end.min(offset + found));
        if from < to {
            visit(&memory[(from - offset) as usize..(to - offset) as usize])?;
        }
        Ok(found)
    };
    if begin > start {
        read(start, begin - start)?;
    }
    let mut at = start;
    if len > 0 {
        at += read(start, buffer)?;
    }
    while at < end {
        let left = end - at;
        let asked = if left >= buffer { left / buffer * buffer } else { buffer };
        match read(at, asked)? {
            0 => return Err(DecodeError::truncated(end, at)),
            found => at += found,
        }
    }
    Ok(pulled)
}
