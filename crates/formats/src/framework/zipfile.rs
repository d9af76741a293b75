//! Python's `zipfile`: how it finds a member of an archive, and how it reads one.

use crc32fast::Hasher;
use flate2::{Decompress, FlushDecompress, Status};

use super::fragments::Fragments;
use super::library::ZIP_READ_BYTES;
use super::python_file::PythonFile;
use crate::window::Window;
use crate::zip::{self, COMMENT_BYTES_MAX, Member, Packing};
use crate::zip_records::{END_BYTES, LOCAL_BYTES, LOCATOR64_BYTES};
use crate::{DecodeError, Decoded};

/// Finds a member: `ZipFile(file)` reads the end record and what leads to the directory, then the
/// directory; `ZipFile.open(name)` the header in front of the member.
pub(super) fn find(
    file: &mut PythonFile<'_>,
    name: &'static str,
    piece: &mut [u8],
) -> Decoded<Member> {
    let mut seen = Fragments::new(file.len());
    read_end(file, &mut seen)?;
    file.seek_from_end(END_BYTES + LOCATOR64_BYTES);
    read_part(file, LOCATOR64_BYTES, &mut seen)?;
    let locator_at = file.len().saturating_sub(END_BYTES + LOCATOR64_BYTES);
    let mut window = Window::new(&mut seen, piece)?;
    if let Some((at, len)) = zip::end64(&mut window, locator_at)? {
        file.seek(at);
        read_part(file, len, &mut seen)?;
    }
    let directory = zip::directory_of(&mut Window::new(&mut seen, piece)?)?;
    file.seek(directory.offset);
    read_part(file, directory.end - directory.offset, &mut seen)?;

    let entry = zip::find_entry(&mut Window::new(&mut seen, piece)?, &directory, name)?;
    file.seek(entry.header_offset);
    read_part(file, LOCAL_BYTES, &mut seen)?;
    read_part(file, name.len() as u64, &mut seen)?;
    zip::member(&mut Window::new(&mut seen, piece)?, &directory, &entry, name)
}

/// The end record: where it is without a comment, otherwise in all that can be one.
fn read_end(file: &mut PythonFile<'_>, seen: &mut Fragments) -> Decoded<()> {
    file.seek_from_end(END_BYTES);
    let at = file.at();
    let mut record = Vec::new();
    file.read_all(&mut record)?;
    let found = zip::is_end_without_comment(&record);
    seen.add(at, record);
    if !found {
        file.seek(file.len().saturating_sub(END_BYTES + COMMENT_BYTES_MAX));
        read_part(file, END_BYTES + COMMENT_BYTES_MAX, seen)?;
    }
    Ok(())
}

/// `read(len)`, as far as the file goes.
fn read_part(file: &mut PythonFile<'_>, len: u64, seen: &mut Fragments) -> Decoded<()> {
    let at = file.at();
    // The caller has checked the length against that of the file, or it is a small constant.
    let mut bytes = vec![0; len as usize];
    let found = file.read(&mut bytes)?;
    bytes.truncate(found);
    seen.add(at, bytes);
    Ok(())
}

/// `ZipExtFile`: a member that is read front to back.
pub(super) struct ZipMember<'f, 'a> {
    file: &'f mut PythonFile<'a>,
    /// Where in the archive its compressed bytes go on.
    at: u64,
    packed_left: u64,
    /// Bytes that have not come out yet.
    left: u64,
    /// What came out and was not asked for yet.
    surplus: Vec<u8>,
    used: usize,
    coding: Coding,
    crc: Hasher,
}

enum Coding {
    Stored,
    Deflated { state: Box<Decompress>, tail: Vec<u8> },
}

impl<'f, 'a> ZipMember<'f, 'a> {
    pub(super) fn open(file: &'f mut PythonFile<'a>, member: &Member) -> Self {
        let coding = match member.packing {
            Packing::Stored => Coding::Stored,
            Packing::Deflated => {
                Coding::Deflated { state: Box::new(Decompress::new(false)), tail: Vec::new() }
            }
        };
        ZipMember {
            file,
            at: member.data_offset,
            packed_left: member.packed_size,
            left: member.size,
            surplus: Vec::new(),
            used: 0,
            coding,
            crc: Hasher::new(),
        }
    }

    /// Goes back to the member's beginning, which is still in memory.
    pub(super) fn rewind(&mut self) {
        self.used = 0;
    }

    /// The next bytes, as many as `out` holds unless the member ends.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Decoded<usize> {
        let mut done = self.take(out);
        while done < out.len() && self.left > 0 {
            let wanted = out.len() - done;
            if matches!(self.coding, Coding::Stored) && wanted >= ZIP_READ_BYTES {
                let part = self.packed_left.min(wanted as u64) as usize;
                let part = &mut out[done..done + part];
                pull(self.file, &mut self.at, part)?;
                self.packed_left -= part.len() as u64;
                self.left = self.left.saturating_sub(part.len() as u64);
                self.crc.update(part);
                done += part.len();
            } else {
                self.advance(wanted)?;
                done += self.take(&mut out[done..]);
            }
        }
        Ok(done)
    }

    /// The checksum, once everything has come out.
    pub(super) fn finish(self) -> Option<u32> {
        (self.left == 0).then(|| self.crc.finalize())
    }

    fn take(&mut self, out: &mut [u8]) -> usize {
        let count = (self.surplus.len() - self.used).min(out.len());
        out[..count].copy_from_slice(&self.surplus[self.used..self.used + count]);
        self.used += count;
        count
    }

    /// Lets more come out, for somebody who wants `wanted` bytes.
    fn advance(&mut self, wanted: usize) -> Decoded<()> {
        let ZipMember { file, at, packed_left, surplus, coding, .. } = self;
        let mut fetch = |wanted: usize, into: &mut Vec<u8>| {
            let part = (*packed_left).min(wanted.max(ZIP_READ_BYTES) as u64);
            let begin = into.len();
            into.resize(begin + part as usize, 0);
            *packed_left -= part;
            pull(file, at, &mut into[begin..])
        };
        self.used = 0;
        match coding {
            Coding::Stored => {
                surplus.clear();
                fetch(wanted, surplus)?;
            }
            Coding::Deflated { state, tail } => {
                if wanted > tail.len() {
                    fetch(wanted - tail.len(), tail)?;
                }
                inflate(state, tail, wanted.max(ZIP_READ_BYTES), surplus, self.at)?;
            }
        }
        surplus.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        if surplus.is_empty() {
            let offset = self.at;
            return Err(DecodeError::truncated(offset + self.left, offset));
        }
        self.left -= surplus.len() as u64;
        self.crc.update(surplus);
        Ok(())
    }
}

/// `_SharedFile.read`: goes to the member's own place in the archive first.
fn pull(file: &mut PythonFile<'_>, at: &mut u64, out: &mut [u8]) -> Decoded<()> {
    file.seek(*at);
    file.read_exact(out)?;
    *at += out.len() as u64;
    Ok(())
}

/// `decompress(tail, most)`: expands up to `most` bytes and leaves what it did not need in `tail`.
fn inflate(
    state: &mut Decompress,
    tail: &mut Vec<u8>,
    most: usize,
    out: &mut Vec<u8>,
    offset: u64,
) -> Decoded<()> {
    out.resize(most, 0);
    let (mut taken, mut given) = (0, 0);
    while given < most {
        let (total_in, total_out) = (state.total_in(), state.total_out());
        let status = state.decompress(&tail[taken..], &mut out[given..], FlushDecompress::None);
        let status = status.map_err(|error| DecodeError::coding("npz", offset, error))?;
        let (more_in, more_out) = (state.total_in() - total_in, state.total_out() - total_out);
        taken += more_in as usize;
        given += more_out as usize;
        if status == Status::StreamEnd || (more_in == 0 && more_out == 0) {
            break;
        }
    }
    tail.drain(..taken);
    out.truncate(given);
    Ok(())
}
