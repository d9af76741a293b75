//! Numbers and addresses out of a block of metadata, and what to say when they are wrong.

use crate::{DecodeError, Decoded};

/// The name of the format in errors.
pub(super) const FORMAT: &str = "hdf5";

/// How a file writes its addresses and lengths; the superblock says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addressing {
    pub(super) address_bytes: usize,
    pub(super) length_bytes: usize,
    /// Where the superblock is, which is what addresses count from.
    pub(super) base: u64,
}

/// A block of metadata that is read front to back.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    start: u64,
    addressing: Addressing,
}

impl<'a> Fields<'a> {
    /// Of bytes that are at byte `start` of the file.
    pub(super) fn new(bytes: &'a [u8], start: u64, addressing: Addressing) -> Fields<'a> {
        Fields { bytes, at: 0, start, addressing }
    }

    /// Where in the file the next field is.
    pub(super) fn place(&self) -> u64 {
        self.start + self.at as u64
    }

    pub(super) fn addressing(&self) -> Addressing {
        self.addressing
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(found) = rest.get(..len) else {
            let found = format!("the end of the record after {} bytes", rest.len());
            return Err(wrong(self.place(), "another field", found));
        };
        self.at += len;
        Ok(found)
    }

    /// The next byte, which stays the next.
    pub(super) fn peek(&mut self) -> Decoded<u8> {
        let byte = self.u8()?;
        self.at -= 1;
        Ok(byte)
    }

    pub(super) fn skip(&mut self, len: usize) -> Decoded<()> {
        self.take(len).map(|_| ())
    }

    /// A little-endian number of up to eight bytes; of more only the first eight count.
    pub(super) fn uint(&mut self, len: usize) -> Decoded<u64> {
        let bytes = self.take(len)?;
        Ok(bytes.iter().take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(super) fn u8(&mut self) -> Decoded<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Decoded<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Decoded<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(super) fn length(&mut self) -> Decoded<u64> {
        self.uint(self.addressing.length_bytes)
    }

    /// The byte of the file that an address means, or `None` if it is the undefined address.
    pub(super) fn address(&mut self) -> Decoded<Option<u64>> {
        let place = self.place();
        let address = self.uint(self.addressing.address_bytes)?;
        if address == u64::MAX >> (64 - 8 * self.addressing.address_bytes) {
            return Ok(None);
        }
        match address.checked_add(self.addressing.base) {
            Some(offset) => Ok(Some(offset)),
            None => Err(wrong(place, "an address inside the file", address)),
        }
    }

    /// An address that must be there.
    pub(super) fn defined(&mut self, expected: &'static str) -> Decoded<u64> {
        let place = self.place();
        self.address()?.ok_or_else(|| wrong(place, expected, "the undefined address"))
    }

    /// A signature and the version that follows it, which must be `version`.
    pub(super) fn begins(&mut self, signature: &'static str, version: u8) -> Decoded<()> {
        let place = self.place();
        let found = self.take(signature.len())?;
        if found != signature.as_bytes() {
            return Err(wrong(place, signature, format!("{found:02x?}")));
        }
        self.version(&[version]).map(|_| ())
    }

    pub(super) fn version(&mut self, known: &[u8]) -> Decoded<u8> {
        let place = self.place();
        match self.u8()? {
            version if known.contains(&version) => Ok(version),
            version => Err(unsupported(place, format!("version {version}"))),
        }
    }
}

/// A field that cannot have the value that it has.
pub(super) fn wrong(offset: u64, expected: &'static str, found: impl ToString) -> DecodeError {
    DecodeError::Field { format: FORMAT, offset, expected, found: found.to_string() }
}

/// Something that other files may have and that is not read here.
pub(super) fn unsupported(offset: u64, feature: impl Into<String>) -> DecodeError {
    DecodeError::Feature { format: FORMAT, feature: feature.into(), offset }
}
