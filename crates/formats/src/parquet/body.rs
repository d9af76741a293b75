//! The bytes of a page, in memory or as they come from the file.

use crc32fast::Hasher;

use super::NAME;
use super::chunk::wrong;
use crate::window::Window;
use crate::{DecodeError, Decoded};

/// What is left of a page.
pub(super) enum Body<'a, 'w> {
    Memory {
        bytes: &'a [u8],
        /// Where the page's data begins in the file.
        offset: u64,
    },
    Stream {
        window: &'a mut Window<'w>,
        at: u64,
        end: u64,
        /// Of what was read, where the page has a checksum.
        crc: Option<Hasher>,
    },
}

impl<'a, 'w> Body<'a, 'w> {
    pub(super) fn memory(bytes: &'a [u8], offset: u64) -> Self {
        Body::Memory { bytes, offset }
    }

    pub(super) fn stream(window: &'a mut Window<'w>, at: u64, end: u64, crc: Option<u32>) -> Self {
        Body::Stream { window, at, end, crc: crc.map(|_| Hasher::new()) }
    }

    /// The next four bytes as a length.
    pub(super) fn u32(&mut self) -> Decoded<u32> {
        let mut bytes = [0; 4];
        self.copy(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Reads and drops `len` bytes.
    pub(super) fn skip(&mut self, len: u64) -> Decoded<()> {
        self.check(len)?;
        match self {
            Body::Memory { bytes, .. } => *bytes = &bytes[len as usize..],
            Body::Stream { window, at, crc, .. } => {
                let to = *at + len;
                while *at < to {
                    let piece = window.at_least(*at, 1, to)?;
                    if let Some(crc) = crc {
                        crc.update(piece);
                    }
                    *at += piece.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Fills `to` with the next bytes.
    pub(super) fn copy(&mut self, mut to: &mut [u8]) -> Decoded<()> {
        self.check(to.len() as u64)?;
        match self {
            Body::Memory { bytes, .. } => {
                let (now, later) = bytes.split_at(to.len());
                to.copy_from_slice(now);
                *bytes = later;
            }
            Body::Stream { window, at, crc, .. } => {
                while !to.is_empty() {
                    let piece = window.at_least(*at, 1, *at + to.len() as u64)?;
                    let (now, later) = to.split_at_mut(piece.len());
                    now.copy_from_slice(piece);
                    if let Some(crc) = crc {
                        crc.update(piece);
                    }
                    *at += piece.len() as u64;
                    to = later;
                }
            }
        }
        Ok(())
    }

    /// The next bytes, in `buffer` if they are not in memory.
    pub(super) fn part(&mut self, len: u32, buffer: &'a mut Vec<u8>) -> Decoded<&'a [u8]> {
        self.check(len.into())?;
        if let Body::Memory { bytes, .. } = self {
            let (now, later) = bytes.split_at(len as usize);
            *bytes = later;
            return Ok(now);
        }
        // Part of the file, which it is never larger than.
        let part = crate::scratch::grow(buffer, len as usize);
        self.copy(part)?;
        Ok(part)
    }

    /// Everything that is left, if it is in memory.
    pub(super) fn rest(self) -> &'a [u8] {
        match self {
            Body::Memory { bytes, .. } => bytes,
            Body::Stream { .. } => &[],
        }
    }

    /// Reads what is left and compares the checksum.
    pub(super) fn finish(mut self, expected: Option<u32>, offset: u64) -> Decoded<()> {
        if let Body::Stream { at, end, .. } = &self {
            let left = *end - *at;
            self.skip(left)?;
        }
        match (self, expected) {
            (Body::Stream { crc: Some(crc), .. }, Some(expected)) => {
                check_crc(crc.finalize(), expected, offset)
            }
            _ => Ok(()),
        }
    }

    /// Value number `at` of packed booleans, which must be in memory.
    pub(super) fn bit(&self, at: u64) -> Decoded<u8> {
        self.check((at / 8).saturating_add(1))?;
        match self {
            Body::Memory { bytes, .. } => Ok(bytes[(at / 8) as usize] >> (at % 8) & 1),
            Body::Stream { at, .. } => Err(wrong(*at, "a page in memory", "one in the file")),
        }
    }

    /// Refuses a page that ends before its next `len` bytes do.
    pub(super) fn check(&self, len: u64) -> Decoded<()> {
        let (left, place) = match self {
            Body::Memory { bytes, offset } => (bytes.len() as u64, *offset),
            Body::Stream { at, end, .. } => (*end - *at, *at),
        };
        if len <= left {
            return Ok(());
        }
        Err(wrong(place, "a page with all its values", format!("{left} bytes instead of {len}")))
    }
}

/// Compares the checksum of a page as it is stored.
pub(super) fn check_crc(found: u32, expected: u32, offset: u64) -> Decoded<()> {
    if found == expected {
        return Ok(());
    }
    Err(DecodeError::Checksum { format: NAME, what: "page", offset, expected, found })
}
