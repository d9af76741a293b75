//! The ZIP container, as much of it as an npz needs: members stored or deflated, with and without
//! ZIP64.
//!
//! Left out: other compression, encryption, archives in several parts, archives after a foreign
//! prefix.

use crate::window::Window;
use crate::zip_records::{
    END, END_BYTES, END64, END64_BYTES, ENTRY, ENTRY_BYTES, LOCAL, LOCAL_BYTES, LOCATOR64,
    LOCATOR64_BYTES, ZIP64_EXTRA, put_end64, put16, put32, put64, zip64_values,
};
use crate::{DecodeError, Decoded, Method};

pub(crate) const COMMENT_BYTES_MAX: u64 = 0xFFFF;
/// Holds the directory and the end of any npz with two members and no comment.
const TAIL_BYTES: u64 = 1024;

const VERSION: u16 = 45;
const DATE_1980_01_01: u16 = 0x0021;
/// Python marks members as made on Unix, readable and writable by their owner.
const MADE_BY: u16 = 3 << 8 | VERSION;
const ATTRIBUTES: u32 = 0o600 << 16;
/// Python turns to ZIP64 at half of what the narrow fields can hold.
const NARROW_MAX: u64 = (1 << 31) - 1;
const NOT_HERE: u32 = u32::MAX;

/// Where the checksum is in a local header.
pub(crate) const LOCAL_CRC_AT: u64 = 14;

/// A member as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) name: &'static str,
    pub(crate) header_offset: u64,
    pub(crate) size: u64,
    /// What it takes in the archive.
    pub(crate) packed_size: u64,
    pub(crate) packing: Packing,
    pub(crate) crc: u32,
}

/// How the archive stores the bytes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Stored,
    Deflated,
}

impl Packing {
    fn method(self) -> u16 {
        match self {
            Packing::Stored => 0,
            Packing::Deflated => 8,
        }
    }
}

/// A member as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) data_offset: u64,
    pub(crate) size: u64,
    /// What it takes in the archive.
    pub(crate) packed_size: u64,
    pub(crate) packing: Packing,
    pub(crate) crc: u32,
}

/// Size of the local header that [`local_header`] builds.
pub(crate) fn local_len(name: &str) -> u64 {
    LOCAL_BYTES + name.len() as u64 + 20
}

/// The header in front of a member. NumPy forces ZIP64 here whatever the size.
pub(crate) fn local_header(member: &Written) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    put32(&mut out, &[LOCAL]);
    put16(&mut out, &[VERSION, 0, member.packing.method(), 0, DATE_1980_01_01]);
    put32(&mut out, &[member.crc, NOT_HERE, NOT_HERE]);
    put16(&mut out, &[member.name.len() as u16, 20]);
    out.extend(member.name.as_bytes());
    put16(&mut out, &[ZIP64_EXTRA, 16]);
    put64(&mut out, &[member.size, member.packed_size]);
    out
}

/// The directory of an archive, which begins at `directory_at`, and the archive's end.
pub(crate) fn directory(members: &[Written], directory_at: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    for member in members {
        put_entry(&mut out, member);
    }
    let size = out.len() as u64;
    let count = members.len() as u64;
    if directory_at > NARROW_MAX {
        put_end64(&mut out, [VERSION, VERSION], count, directory_at, size);
    }
    put32(&mut out, &[END]);
    put16(&mut out, &[0, 0, count as u16, count as u16]);
    put32(&mut out, &[size as u32, u32::try_from(directory_at).unwrap_or(NOT_HERE)]);
    put16(&mut out, &[0]);
    out
}

fn put_entry(out: &mut Vec<u8>, member: &Written) {
    let mut extra = Vec::new();
    let [size, packed_size] = narrow_or_extra([member.size, member.packed_size], &mut extra);
    let [offset] = narrow_or_extra([member.header_offset], &mut extra);
    let extra_len = if extra.is_empty() { 0 } else { extra.len() as u16 + 4 };
    put32(out, &[ENTRY]);
    put16(out, &[MADE_BY, VERSION, 0, member.packing.method(), 0, DATE_1980_01_01]);
    put32(out, &[member.crc, packed_size, size]);
    put16(out, &[member.name.len() as u16, extra_len, 0, 0, 0]);
    put32(out, &[ATTRIBUTES, offset]);
    out.extend(member.name.as_bytes());
    if extra_len > 0 {
        put16(out, &[ZIP64_EXTRA, extra_len - 4]);
        out.extend(extra);
    }
}

/// The values as narrow fields; if one is too wide, all of them go to the extra field.
fn narrow_or_extra<const N: usize>(values: [u64; N], extra: &mut Vec<u8>) -> [u32; N] {
    if values.iter().all(|&value| value <= NARROW_MAX) {
        return values.map(|value| value as u32);
    }
    put64(extra, &values);
    [NOT_HERE; N]
}

/// Finds a member. One read is enough if the file fits into a piece, two if it does not.
pub(crate) fn locate(window: &mut Window<'_>, name: &'static str) -> Decoded<Member> {
    let directory = directory_of(window)?;
    let entry = find_entry(window, &directory, name)?;
    member(window, &directory, &entry, name)
}

/// Where the directory is, by the records at the end of the archive.
pub(crate) fn directory_of(window: &mut Window<'_>) -> Decoded<Directory> {
    let end_at = find_end(window)?;
    Directory::read(window, end_at)
}

/// The member of an entry, whose data begins where its own header says.
pub(crate) fn member(
    window: &mut Window<'_>,
    directory: &Directory,
    entry: &Entry,
    name: &str,
) -> Decoded<Member> {
    let data_offset = data_offset(window, directory, entry, name)?;
    let &Entry { size, packed_size, packing, crc, .. } = entry;
    Ok(Member { data_offset, size, packed_size, packing, crc })
}

/// Whether these are the last bytes of an archive that has no comment.
pub(crate) fn is_end_without_comment(tail: &[u8]) -> bool {
    tail.len() as u64 == END_BYTES && end_record(tail) == Some(0)
}

/// Where the ZIP64 end record is and how long, if there is a locator at `locator_at`.
pub(crate) fn end64(window: &mut Window<'_>, locator_at: u64) -> Decoded<Option<(u64, u64)>> {
    let end_at = locator_at + LOCATOR64_BYTES;
    if end_at > window.len() {
        return Ok(None);
    }
    Ok(locate_end64(window, end_at)?.map(|at| (at, END64_BYTES)))
}

/// Where the end record is, which only a comment may follow.
fn find_end(window: &mut Window<'_>) -> Decoded<u64> {
    let len = window.len();
    let whole = len <= window.piece();
    let first = if whole { len } else { TAIL_BYTES.min(window.piece()) };
    let longest = (END_BYTES + COMMENT_BYTES_MAX).min(len).min(window.capacity());
    for tail in [first, longest] {
        let start = len - tail;
        let bytes = window.at_least(start, tail, len)?;
        if let Some(at) = end_record(bytes) {
            return Ok(start + at as u64);
        }
    }
    let found = window.exactly(0, len.min(4))?.to_vec();
    if found == LOCAL.to_le_bytes() {
        return Err(DecodeError::NoDirectory { offset: len - longest, found: len });
    }
    Err(DecodeError::NotNpz { found })
}

/// The place of the last end record in `tail` whose comment ends where `tail` does.
fn end_record(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(END_BYTES as usize)?;
    (0..=last).rev().find(|&at| {
        let record = Fields(&tail[at..]);
        record.u32(0) == END && at + 22 + usize::from(record.u16(20)) == tail.len()
    })
}

/// The list of an archive's members.
pub(crate) struct Directory {
    pub(crate) offset: u64,
    pub(crate) end: u64,
    entries: u64,
}

impl Directory {
    fn read(window: &mut Window<'_>, end_at: u64) -> Decoded<Directory> {
        let record = Fields(window.exactly(end_at, END_BYTES)?);
        let mut entries = u64::from(record.u16(10));
        let mut size = u64::from(record.u32(12));
        let mut offset = u64::from(record.u32(16));
        let (mut record_name, mut bound) = ("end of zip directory", end_at);

        if let Some(end64_at) = locate_end64(window, end_at)? {
            let record = Fields(window.exactly(end64_at, END64_BYTES)?);
            record.expect(END64, "zip64 end of directory", end64_at)?;
            (entries, size, offset) = (record.u64(32), record.u64(40), record.u64(48));
            (record_name, bound) = ("zip64 end of directory", end64_at);
        }
        match offset.checked_add(size) {
            Some(end) if end <= bound => Ok(Directory { offset, end, entries }),
            end => Err(DecodeError::ZipRange {
                offset: bound,
                record: record_name,
                end: end.unwrap_or(u64::MAX),
                found: bound,
            }),
        }
    }
}

/// Where the ZIP64 end record is, if there is one.
fn locate_end64(window: &mut Window<'_>, end_at: u64) -> Decoded<Option<u64>> {
    let Some(locator_at) = end_at.checked_sub(LOCATOR64_BYTES) else { return Ok(None) };
    let locator = Fields(window.exactly(locator_at, LOCATOR64_BYTES)?);
    if locator.u32(0) != LOCATOR64 {
        return Ok(None);
    }
    let at = locator.u64(8);
    match at.checked_add(END64_BYTES) {
        Some(end) if end <= locator_at => Ok(Some(at)),
        end => Err(DecodeError::ZipRange {
            offset: locator_at,
            record: "zip64 locator",
            end: end.unwrap_or(u64::MAX),
            found: locator_at,
        }),
    }
}

/// What the directory says about a member.
pub(crate) struct Entry {
    at: u64,
    pub(crate) header_offset: u64,
    size: u64,
    packed_size: u64,
    packing: Packing,
    crc: u32,
}

/// The first entry of that name.
pub(crate) fn find_entry(
    window: &mut Window<'_>,
    directory: &Directory,
    name: &'static str,
) -> Decoded<Entry> {
    let mut at = directory.offset;
    for _ in 0..directory.entries {
        let wanted = directory.end.saturating_sub(at).min(ENTRY_BYTES);
        let fixed = Fields(window.at_least(at, wanted, directory.end)?);
        fixed.expect(ENTRY, "zip directory entry", at)?;
        if wanted < ENTRY_BYTES {
            return Err(past_directory(at, at + ENTRY_BYTES, directory));
        }
        let name_len = u64::from(fixed.u16(28));
        let behind_name = u64::from(fixed.u16(30)) + u64::from(fixed.u16(32));
        let len = ENTRY_BYTES + name_len + behind_name;
        if at + len > directory.end {
            return Err(past_directory(at, at + len, directory));
        }
        let bytes = window.exactly(at, len)?;
        if bytes[46..].starts_with(name.as_bytes()) && name_len == name.len() as u64 {
            return read_entry(Fields(bytes), at, name);
        }
        at += len;
    }
    Err(DecodeError::MissingMember { offset: directory.offset, member: name })
}

fn past_directory(offset: u64, end: u64, directory: &Directory) -> DecodeError {
    DecodeError::ZipRange { offset, record: "zip directory entry", end, found: directory.end }
}

fn read_entry(entry: Fields<'_>, at: u64, name: &str) -> Decoded<Entry> {
    let refused = |method| DecodeError::Method { offset: at, member: name.to_owned(), method };
    let packing = match (entry.u16(8) & 1, entry.u16(10)) {
        (0, 0) => Packing::Stored,
        (0, 8) => Packing::Deflated,
        (0, method) => return Err(refused(Method::Compressed(method))),
        _ => return Err(refused(Method::Encrypted)),
    };
    let extra_at = 46 + usize::from(entry.u16(28));
    let extra = &entry.0[extra_at..extra_at + usize::from(entry.u16(30))];
    let mut wide = zip64_values(extra);
    let mut value = |narrow: u32| match narrow {
        NOT_HERE => wide.next().unwrap_or(u64::from(NOT_HERE)),
        narrow => u64::from(narrow),
    };
    let (size, packed_size) = (value(entry.u32(24)), value(entry.u32(20)));
    let header_offset = value(entry.u32(42));
    if packing == Packing::Stored && size != packed_size {
        let found = entry.0[20..24].to_vec();
        let expected = "the size of an uncompressed member";
        return Err(DecodeError::ZipRecord { offset: at + 20, expected, found });
    }
    Ok(Entry { at, header_offset, size, packed_size, packing, crc: entry.u32(16) })
}

/// Where a member's data begins, which only its local header knows.
fn data_offset(
    window: &mut Window<'_>,
    directory: &Directory,
    entry: &Entry,
    name: &str,
) -> Decoded<u64> {
    let at = entry.header_offset;
    let beyond = |end: Option<u64>| DecodeError::ZipRange {
        offset: entry.at,
        record: "zip directory entry",
        end: end.unwrap_or(u64::MAX),
        found: directory.offset,
    };
    let fixed_end = at.checked_add(LOCAL_BYTES).filter(|&end| end <= directory.offset);
    fixed_end.ok_or_else(|| beyond(at.checked_add(LOCAL_BYTES)))?;
    let local = Fields(window.at_least(at, LOCAL_BYTES, directory.offset)?);
    local.expect(LOCAL, "zip member", at)?;
    let (name_len, extra_len) = (u64::from(local.u16(26)), u64::from(local.u16(28)));

    let data_offset = at + LOCAL_BYTES + name_len + extra_len;
    let end = data_offset.checked_add(entry.packed_size);
    end.filter(|&end| end <= directory.offset).ok_or_else(|| beyond(end))?;
    let found = window.exactly(at + LOCAL_BYTES, name_len)?;
    if found != name.as_bytes() {
        let expected = "the member's name, as in the zip directory,";
        let found = found[..found.len().min(4)].to_vec();
        return Err(DecodeError::ZipRecord { offset: at + LOCAL_BYTES, expected, found });
    }
    Ok(data_offset)
}

/// Little-endian fields of a record. The caller of its constructor has checked its length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        *self.0[at..].first_chunk().expect("the record's length was checked when it was read")
    }

    fn expect(&self, signature: u32, expected: &'static str, offset: u64) -> Decoded<()> {
        if self.0.starts_with(&signature.to_le_bytes()) {
            return Ok(());
        }
        let found = self.0[..self.0.len().min(4)].to_vec();
        Err(DecodeError::ZipRecord { offset, expected, found })
    }
}

#[cfg(test)]
mod tests;
