//! Headers of tar archives: the plain POSIX ones that are written, and what other writers put around
//! them.
//!
//! A member is a block of 512 bytes that names it and its data, padded to whole blocks. Names and
//! sizes that do not fit that block are in a member of their own before it (pax, GNU).

use crate::error::check_limit;
use crate::window::Window;
use crate::{DecodeError, Decoded};

/// Everything in an archive begins at a multiple of this.
pub const BLOCK_BYTES: u64 = 512;
/// An archive is padded to a multiple of this, as `tar` and Python do.
pub(crate) const RECORD_BYTES: u64 = 10240;
/// The largest size that eleven octal digits hold.
const OCTAL_MAX: u64 = 0o777_7777_7777;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const FORMAT: &str = "tar";

/// The header of a regular file; the name must be ASCII and not longer than 100 bytes.
pub(crate) fn header(name: &str, size: u64) -> [u8; BLOCK_BYTES as usize] {
    let mut block = [0; BLOCK_BYTES as usize];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    if size <= OCTAL_MAX {
        put(124, format!("{size:011o}\0").as_bytes());
    } else {
        // Binary, as GNU tar writes it and every reader understands it.
        put(124, &[0x80, 0, 0, 0]);
        put(128, &size.to_be_bytes());
    }
    put(136, b"00000000000\0");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum = checksum(&block);
    block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Bytes of padding after data of that size.
pub fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK_BYTES
}

/// A member of an archive.
#[derive(Debug)]
pub(crate) struct Member {
    /// Where it begins, headers that only extend the next one included.
    pub(crate) offset: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) data_offset: u64,
    pub(crate) size: u64,
    /// Whether it is a file and not a folder, link or device.
    pub(crate) regular: bool,
}

impl Member {
    pub(crate) fn data_end(&self) -> u64 {
        self.data_offset + self.size
    }

    /// Where the next member begins, which may be after the end of a truncated file.
    pub(crate) fn end(&self) -> u64 {
        self.data_end().saturating_add(padding(self.size))
    }
}

/// The member at `offset`, or `None` at the end of the archive. Of what is not in memory, `reach`
/// bytes are read, a block at least.
pub(crate) fn member(window: &mut Window<'_>, offset: u64, reach: u64) -> Decoded<Option<Member>> {
    let mut at = offset;
    let mut headers = Headers::default();
    loop {
        let block = window.at_least(at, BLOCK_BYTES, at.saturating_add(reach.max(BLOCK_BYTES)))?;
        let block = block.first_chunk().expect("a window gives what was asked for");
        let data_offset = at + BLOCK_BYTES;
        let next = headers.read(block, at)?;
        let size = next.size();
        window.check_end(data_offset.saturating_add(size))?;
        match next {
            Next::End => return Ok(None),
            Next::Extension { kind, size } => {
                let what = "header of the next member";
                check_limit((FORMAT, what), data_offset, size, window.capacity())?;
                let data = window.exactly(data_offset, size)?;
                headers.extend(kind, data, data_offset)?;
            }
            Next::Ignored { .. } => {}
            Next::Member { name, size, regular } => {
                return Ok(Some(Member { offset, name, data_offset, size, regular }));
            }
        }
        at = data_offset + size + padding(size);
    }
}

/// The headers before the data of one member, block by block, wherever they come from.
#[derive(Default)]
pub struct Headers {
    extension: Extension,
}

/// What a header block means. Its data follows, padded to whole blocks.
#[derive(Debug)]
pub enum Next {
    /// The archive has ended.
    End,
    /// The data changes the next header: it has to be read and given to [`Headers::extend`].
    Extension {
        /// The type of the header.
        kind: u8,
        /// Bytes of data.
        size: u64,
    },
    /// The data changes nothing that matters here.
    Ignored {
        /// Bytes of data.
        size: u64,
    },
    /// All headers of the member were read.
    Member {
        /// Its path, as its writer has written it.
        name: Vec<u8>,
        /// Bytes of data.
        size: u64,
        /// Whether it is a file and not a folder, link or device.
        regular: bool,
    },
}

impl Next {
    /// Bytes of data after the header, without padding.
    pub fn size(&self) -> u64 {
        match *self {
            Next::End => 0,
            Next::Extension { size, .. } | Next::Ignored { size } | Next::Member { size, .. } => {
                size
            }
        }
    }
}

impl Headers {
    /// Reads a header block, which is at `offset` of the archive.
    pub fn read(&mut self, block: &[u8; BLOCK_BYTES as usize], offset: u64) -> Decoded<Next> {
        if block.iter().all(|&byte| byte == 0) {
            return Ok(Next::End);
        }
        let Plain { kind, size, name } = Plain::parse(block, offset)?;
        match kind {
            b'x' | b'L' => Ok(Next::Extension { kind, size }),
            // Long names of link targets; defaults for all members, which never name a file.
            b'K' | b'g' => Ok(Next::Ignored { size }),
            b'S' => Err(feature("sparse file", offset)),
            _ => {
                let Extension { name: long_name, size: large_size } =
                    std::mem::take(&mut self.extension);
                let name = long_name.unwrap_or(name);
                // Very old archives mark folders by their name alone.
                let regular = matches!(kind, b'0' | b'7' | 0) && name.last() != Some(&b'/');
                // Links, devices and folders have no data, whatever their size says.
                let has_data = !matches!(kind, b'1'..=b'6');
                let size = if has_data { large_size.unwrap_or(size) } else { 0 };
                Ok(Next::Member { name, size, regular })
            }
        }
    }

    /// Takes the data of a header that extends the next one. It is at `offset` of the archive.
    pub fn extend(&mut self, kind: u8, data: &[u8], offset: u64) -> Decoded<()> {
        if kind == b'L' {
            self.extension.name = Some(text(data).to_vec());
            return Ok(());
        }
        self.extension.read_pax(data, offset)
    }
}

/// What a header block says by itself.
struct Plain {
    kind: u8,
    size: u64,
    name: Vec<u8>,
}

impl Plain {
    fn parse(block: &[u8; BLOCK_BYTES as usize], offset: u64) -> Decoded<Plain> {
        check_sum(block, offset)?;
        let size = number(&block[124..136]).ok_or_else(|| {
            DecodeError::field(
                FORMAT,
                offset + 124,
                "a size below 2^64",
                String::from_utf8_lossy(&block[124..136]),
            )
        })?;
        let mut name = Vec::new();
        // The prefix exists in POSIX archives only; GNU tar keeps other things there.
        if block[257..263] == *b"ustar\0" && block[345] != 0 {
            name.extend(text(&block[345..500]));
            name.push(b'/');
        }
        name.extend(text(&block[..100]));
        Ok(Plain { kind: block[156], size, name })
    }
}

fn check_sum(block: &[u8; BLOCK_BYTES as usize], offset: u64) -> Decoded<()> {
    let found = checksum(block);
    let written = number(&block[CHECKSUM]);
    // Some old writers summed signed bytes.
    if written == Some(found.into()) || written.map(u64::cast_signed) == Some(signed_sum(block)) {
        return Ok(());
    }
    let is_tar = block[257..262] == *b"ustar";
    let expected = written.and_then(|sum| u32::try_from(sum).ok()).unwrap_or(u32::MAX);
    if is_tar || offset > 0 {
        let what = "header";
        return Err(DecodeError::Checksum { format: FORMAT, what, offset, expected, found });
    }
    Err(DecodeError::Foreign {
        format: "a tar archive",
        offset,
        expected: "a header with its checksum",
        found: block[..8].to_vec(),
    })
}

/// The sum of the bytes of a header; the field of the sum counts as blanks.
fn checksum(block: &[u8; BLOCK_BYTES as usize]) -> u32 {
    let sum = |bytes: &[u8]| -> u32 { bytes.iter().map(|&byte| u32::from(byte)).sum() };
    sum(block) - sum(&block[CHECKSUM]) + u32::from(b' ') * CHECKSUM.len() as u32
}

/// The same, of signed bytes.
fn signed_sum(block: &[u8; BLOCK_BYTES as usize]) -> i64 {
    let high = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte >= 0x80).count() as i64;
    i64::from(checksum(block)) - 256 * (high(block) - high(&block[CHECKSUM]))
}

/// A number in octal digits between blanks and zeros, or in binary after a set bit.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (high, low) = field.split_last_chunk::<8>()?;
        let unused =
            high.iter().enumerate().all(|(i, &byte)| byte == if i == 0 { 0x80 } else { 0 });
        return (unused && !high.is_empty()).then(|| u64::from_be_bytes(*low));
    }
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 8)?;
        value.checked_mul(8)?.checked_add(digit.into())
    })
}

fn text(field: &[u8]) -> &[u8] {
    &field[..field.iter().position(|&byte| byte == 0).unwrap_or(field.len())]
}

/// What replaces parts of the header that follows it.
#[derive(Default)]
struct Extension {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Extension {
    /// Reads records of the form `LENGTH KEY=VALUE` with a line feed, where the length is that of
    /// the record.
    fn read_pax(&mut self, records: &[u8], offset: u64) -> Decoded<()> {
        let mut at = 0;
        // Some writers pad with zeros, which Python takes for the end.
        while at < records.len() && records[at] != 0 {
            let place = offset + at as u64;
            let wrong = |expected| {
                let line = &records[at..records.len().min(at + 40)];
                let found = String::from_utf8_lossy(line).into_owned();
                DecodeError::Field { format: FORMAT, offset: place, expected, found }
            };
            let record = pax_record(&records[at..]);
            let (len, key, value) = record.ok_or_else(|| wrong("a pax record"))?;
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or_else(|| wrong("a pax size"))?),
                _ if key.starts_with(b"GNU.sparse.") => return Err(feature("sparse file", place)),
                _ => {}
            }
            at += len;
        }
        Ok(())
    }
}

fn pax_record(rest: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let blank = rest.iter().take(20).position(|&byte| byte == b' ')?;
    let len = usize::try_from(decimal(&rest[..blank])?).ok()?;
    let record = rest.get(blank + 1..len)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=')?;
    Some((len, &record[..equals], &record[equals + 1..]))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn feature(what: &str, offset: u64) -> DecodeError {
    DecodeError::Feature { format: FORMAT, feature: what.to_owned(), offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_its_fields_in_their_places() {
        let block = header("000001_000002.npy", 1000);
        assert_eq!(block[..18], *b"000001_000002.npy\0");
        assert_eq!(block[100..136], *b"0000644\x000000000\x000000000\x0000000001750\0");
        assert_eq!(block[136..148], *b"00000000000\0");
        assert_eq!(block[156..265], *[&b"0"[..], &[0; 100], b"ustar\x0000"].concat());
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        let field: u32 = block[148..156].iter().map(|&byte| u32::from(byte)).sum();
        assert_eq!(block[148..156], *format!("{:06o}\0 ", sum - field + 256).as_bytes());
    }

    #[test]
    fn sizes_beyond_the_octal_field_are_binary() {
        for size in [0, 1, OCTAL_MAX, OCTAL_MAX + 1, 1 << 40, u64::MAX] {
            let block = header("a", size);
            assert_eq!(number(&block[124..136]), Some(size));
            Plain::parse(&block, 0).unwrap();
        }
        assert_eq!(header("a", 1 << 33)[124..136], [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn numbers_that_do_not_fit_or_are_none_are_refused() {
        assert_eq!(number(b" 17 \0x"), Some(15));
        assert_eq!(number(b"\0\0\0"), Some(0));
        assert_eq!(number(b"18"), None);
        assert_eq!(number(&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(number(&[0xff; 12]), None);
        assert_eq!(number(&[0xff; 8]), None);
        assert_eq!(number(b"7777777777777777777777777"), None);
    }

    #[test]
    fn sums_of_signed_bytes_are_accepted() {
        let mut block = header("a", 5);
        block[0] = 0xe4;
        check_sum(&block, 0).unwrap_err();
        let signed = signed_sum(&block);
        assert_eq!(signed, i64::from(checksum(&block)) - 256);
        block[CHECKSUM].copy_from_slice(format!("{signed:06o}\0 ").as_bytes());
        check_sum(&block, 0).unwrap();
    }

    #[test]
    fn pax_records_replace_name_and_size() {
        let mut extension = Extension::default();
        extension.read_pax(b"12 path=ab\n\n19 size=8589934592\n10 uid=17\n", 0).unwrap();
        assert_eq!(extension.name.as_deref(), Some(&b"ab\n"[..]));
        assert_eq!(extension.size, Some(1 << 33));
        for bad in [&b"x"[..], b"5 a", b"0 a=b\n", b"2 a=b\n", b"9 size=x\n", b"9 a=b\n"] {
            Extension::default().read_pax(bad, 0).unwrap_err();
        }
        Extension::default().read_pax(b"23 GNU.sparse.major=1\n\0\0", 0).unwrap_err();
    }
}
