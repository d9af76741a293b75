//! Reading the directory of an archive by torch: which members there are, and where their data begins.
//!
//! Only local headers know for sure where data begins, and each is a read of its own. torch's padding
//! can be worked out, though, and is right if it ends exactly where the next member begins; only
//! members for which that does not hold are asked.

use feedline_formats::zip_records::{
    END, END_BYTES, END64, END64_BYTES, ENTRY, ENTRY_BYTES, LOCAL, LOCAL_BYTES, LOCATOR64,
    LOCATOR64_BYTES, zip64_values,
};

use super::archive::{ALIGN, FLAG_DESCRIPTOR, WIDE, zip64_extra};
use super::stretch::Stretch;
use crate::Result;

/// Flag of an encrypted member.
const FLAG_ENCRYPTED: u16 = 1;

/// The last archive of a stretch.
pub(super) struct Directory {
    /// Where the archive begins in the stretch.
    pub(super) archive_at: u64,
    /// Where the directory begins in the archive.
    at: u64,
    /// In the order of their places.
    pub(super) members: Vec<Member>,
}

/// A member of an archive.
pub(super) struct Member {
    pub(super) name: String,
    /// Offset of its local header in the archive.
    header_at: u64,
    pub(super) size: u64,
    flags: u16,
    /// Whether its bytes are stored without compression.
    plain: bool,
}

impl Directory {
    /// Reads the directory of the archive that ends where the stretch does. `tail_bytes` are read at
    /// first, which is all if the directory is in them.
    pub(super) fn read(stretch: &mut Stretch<'_>, tail_bytes: u64) -> Result<Directory> {
        stretch.keep_tail(tail_bytes)?;
        let place = Place::find(stretch)?;
        let bytes = stretch.read(place.directory_at, place.size, "directory")?;
        let archive_at = place.archive_at;
        let at = place.directory_at - archive_at;
        let mut members = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let entry_at = place.directory_at + place.size - rest.len() as u64;
            let member = Member::parse(&mut rest, at);
            members.push(
                member.ok_or_else(|| stretch.damaged("an invalid directory entry", entry_at))?,
            );
        }
        if members.len() as u64 != place.entries {
            return Err(stretch.damaged("a wrong number of members", place.directory_at));
        }
        members.sort_by_key(|member| member.header_at);
        Ok(Directory { archive_at, at, members })
    }

    /// Where the data of a member begins in the stretch.
    pub(super) fn data_at(&self, stretch: &mut Stretch<'_>, index: usize) -> Result<u64> {
        let member = &self.members[index];
        if !member.plain {
            return Err(stretch.unsupported(format!("the compressed member {}", member.name)));
        }
        let next = self.members.get(index + 1).map_or(self.at, |next| next.header_at);
        let data_at = match member.expected_data_at(next) {
            Some(at) => at,
            None => self.ask_member(stretch, member, next)?,
        };
        Ok(self.archive_at + data_at)
    }

    /// Where its own header says that a member's data begins.
    fn ask_member(&self, stretch: &mut Stretch<'_>, member: &Member, next: u64) -> Result<u64> {
        let at = self.archive_at + member.header_at;
        let header = stretch.read(at, LOCAL_BYTES, "member")?;
        let begins = u32_at(&header, 0) == Some(LOCAL);
        let lens = u16_at(&header, 26).zip(u16_at(&header, 28)).filter(|_| begins);
        let (name, extra) = lens.ok_or_else(|| stretch.damaged("no archive member", at))?;
        let data_at = member.header_at + LOCAL_BYTES + u64::from(name) + u64::from(extra);
        if data_at + member.size > next {
            return Err(stretch.damaged("a member larger than its space", at));
        }
        Ok(data_at)
    }
}

impl Member {
    /// Takes the first entry off `rest`; `end` is where members end.
    fn parse(rest: &mut &[u8], end: u64) -> Option<Member> {
        let entry = *rest;
        if u32_at(entry, 0)? != ENTRY {
            return None;
        }
        let (flags, method) = (u16_at(entry, 8)?, u16_at(entry, 10)?);
        let [name_len, extra_len, comment_len] =
            [u16_at(entry, 28)?, u16_at(entry, 30)?, u16_at(entry, 32)?].map(usize::from);
        let name_at = ENTRY_BYTES as usize;
        let extra_at = name_at + name_len;
        let name = str::from_utf8(entry.get(name_at..extra_at)?).ok()?.to_owned();
        let mut wide = zip64_values(entry.get(extra_at..extra_at + extra_len)?);
        let mut value = |at| match u64::from(u32_at(entry, at)?) {
            WIDE => wide.next(),
            narrow => Some(narrow),
        };
        let (size, packed_size) = (value(24)?, value(20)?);
        let header_at = value(42)?;
        *rest = entry.get(extra_at + extra_len + comment_len..)?;
        let inside = header_at.checked_add(LOCAL_BYTES)?.checked_add(packed_size)? <= end;
        let plain = method == 0 && flags & FLAG_ENCRYPTED == 0;
        let sizes_agree = !plain || size == packed_size;
        (inside && sizes_agree).then_some(Member { name, header_at, size, flags, plain })
    }

    /// Where torch would have put the data, if the member then ends where the next one begins.
    fn expected_data_at(&self, next: u64) -> Option<u64> {
        let extra = zip64_extra([self.size; 2], self.header_at).len() as u64;
        let descriptor = match (self.flags & FLAG_DESCRIPTOR, extra) {
            (0, _) => 0,
            (_, 0) => 16,
            _ => 24,
        };
        let fixed = LOCAL_BYTES + self.name.len() as u64 + extra + 4;
        let at = (self.header_at + fixed).checked_next_multiple_of(ALIGN)?;
        (at.checked_add(self.size)?.checked_add(descriptor)? == next).then_some(at)
    }
}

/// Where the directory is, in the stretch.
struct Place {
    archive_at: u64,
    directory_at: u64,
    size: u64,
    entries: u64,
}

impl Place {
    fn find(stretch: &mut Stretch<'_>) -> Result<Place> {
        let len = stretch.len();
        let missing = |stretch: &Stretch<'_>| stretch.damaged("no end-of-archive record", len);
        let end_at = len.checked_sub(END_BYTES).ok_or_else(|| missing(stretch))?;
        let end = stretch.read(end_at, END_BYTES, "end")?;
        let narrow = Place::narrow(&end).ok_or_else(|| missing(stretch))?;
        let (behind, [entries, size, offset]) = match wide_end(stretch, end_at)? {
            Some(wide) => wide,
            None => (end_at, narrow),
        };
        // The directory ends where the end begins, and says how far it is from the archive's beginning.
        let directory_at = behind.checked_sub(size);
        let archive_at = directory_at.and_then(|at| at.checked_sub(offset));
        match (directory_at, archive_at) {
            (Some(directory_at), Some(archive_at)) => {
                Ok(Place { archive_at, directory_at, size, entries })
            }
            _ => Err(stretch.damaged("a directory beyond the end of the file", behind)),
        }
    }

    /// Number of members, size and offset of the directory, from the plain end record.
    fn narrow(end: &[u8]) -> Option<[u64; 3]> {
        let comment = u16_at(end, 20)?;
        let fields =
            [u64::from(u16_at(end, 10)?), u64::from(u32_at(end, 12)?), u64::from(u32_at(end, 16)?)];
        (u32_at(end, 0)? == END && comment == 0).then_some(fields)
    }
}

/// The same from the ZIP64 end record, and its position, if there is one.
fn wide_end(stretch: &mut Stretch<'_>, end_at: u64) -> Result<Option<(u64, [u64; 3])>> {
    let Some(at) = end_at.checked_sub(LOCATOR64_BYTES + END64_BYTES) else { return Ok(None) };
    let bytes = stretch.read(at, LOCATOR64_BYTES + END64_BYTES, "end")?;
    if u32_at(&bytes, END64_BYTES as usize) != Some(LOCATOR64) {
        return Ok(None);
    }
    let fields = [u64_at(&bytes, 32), u64_at(&bytes, 40), u64_at(&bytes, 48)];
    match (u32_at(&bytes, 0), fields) {
        (Some(END64), [Some(entries), Some(size), Some(offset)]) => {
            Ok(Some((at, [entries, size, offset])))
        }
        _ => Err(stretch.damaged("no zip64 end-of-archive record", at)),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
