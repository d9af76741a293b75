//! A stretch of an object that is read like a file of its own: a whole file, or one archive in it.

use feedline_store::Object;

use crate::{ContainerError, Result};

/// Headers, directories and pickles beyond this are refused. A model of a million shards needs as much.
pub(super) const LIMIT_BYTES: u64 = 256 << 20;

/// Bytes from `begin` on, numbered from zero.
pub(super) struct Stretch<'a> {
    object: &'a mut dyn Object,
    /// Whose file it is, for messages.
    pub(super) container: &'static str,
    begin: u64,
    len: u64,
    /// The last bytes, as far as they were read, because directories and their ends are there.
    tail: Vec<u8>,
}

impl<'a> Stretch<'a> {
    /// All of the object.
    pub(super) fn whole(
        object: &'a mut dyn Object,
        container: &'static str,
    ) -> Result<Stretch<'a>> {
        let len = object.len()?;
        Ok(Stretch { object, container, begin: 0, len, tail: Vec::new() })
    }

    /// `len` bytes of the stretch from `begin` on.
    pub(super) fn part(&mut self, begin: u64, len: u64) -> Result<Stretch<'_>> {
        self.check(begin, len)?;
        let (container, begin) = (self.container, self.begin + begin);
        Ok(Stretch { object: self.object, container, begin, len, tail: Vec::new() })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Where a place of the stretch is in the object.
    pub(super) fn outside(&self, at: u64) -> u64 {
        self.begin + at
    }

    /// Reads the last `len` bytes, or all of them, so that reads there cost nothing.
    pub(super) fn keep_tail(&mut self, len: u64) -> Result<()> {
        let len = len.min(self.len);
        if len > self.tail.len() as u64 {
            self.tail = self.read(self.len - len, len, "the end")?;
        }
        Ok(())
    }

    /// The bytes at a place; `what` names them, should they be too many.
    pub(super) fn read(&mut self, at: u64, len: u64, what: &'static str) -> Result<Vec<u8>> {
        self.check(at, len)?;
        if len > LIMIT_BYTES {
            let (container, needed, limit) = (self.container, len, LIMIT_BYTES);
            return Err(ContainerError::TooMuch { container, what, needed, limit });
        }
        let tail_at = self.len - self.tail.len() as u64;
        if at >= tail_at {
            let from = (at - tail_at) as usize;
            return Ok(self.tail[from..from + len as usize].to_vec());
        }
        let mut bytes = vec![0; len as usize];
        self.object.read_exact_at(self.begin + at, &mut bytes)?;
        Ok(bytes)
    }

    /// An error about a place of the stretch.
    pub(super) fn damaged(&self, what: &'static str, at: u64) -> ContainerError {
        ContainerError::Damaged { container: self.container, what, offset: self.begin + at }
    }

    pub(super) fn unsupported(&self, what: impl Into<String>) -> ContainerError {
        ContainerError::Unsupported { container: self.container, what: what.into() }
    }

    fn check(&self, at: u64, len: u64) -> Result<()> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(self.damaged("a position beyond its end", at)),
        }
    }
}
