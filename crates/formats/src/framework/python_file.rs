//! A file as CPython opens it for reading: `io.BufferedReader` over `io.FileIO`.
//!
//! Plays the rules of `Modules/_io/bufferedio.c` on positioned reads: what is in the buffer is used
//! first, whole multiples of the buffer go straight to the caller, the rest comes through the buffer.
//! Seeking inside the buffer keeps it. `lseek` itself is left out: it asks no storage for anything.

use super::library::Python;
use crate::{ByteSource, DecodeError, Decoded};

/// The buffer of a file, and its position. Its memory is reused for the next file.
#[derive(Default)]
pub(crate) struct Buffered {
    memory: Vec<u8>,
    /// Bytes of `memory` that are this file's buffer.
    size: usize,
    /// Where in the file the filled part begins.
    start: u64,
    filled: usize,
    /// The next byte that is read.
    at: u64,
    len: u64,
}

impl Buffered {
    /// Opens a file: one `fstat` tells its size and that of the buffer.
    pub(crate) fn open<'a>(
        &'a mut self,
        source: &'a mut dyn ByteSource,
        python: Python,
    ) -> Decoded<PythonFile<'a>> {
        let len = source.len().map_err(|source| DecodeError::Size { source })?;
        self.size = python.buffer_bytes(source.preferred_bytes());
        if self.memory.len() < self.size {
            self.memory.resize(self.size, 0);
        }
        (self.start, self.filled, self.at, self.len) = (0, 0, 0, len);
        Ok(PythonFile { source, buffered: self, python, pulled: 0 })
    }

    /// Goes on with a file that was opened before.
    pub(crate) fn resume<'a>(
        &'a mut self,
        source: &'a mut dyn ByteSource,
        python: Python,
    ) -> PythonFile<'a> {
        PythonFile { source, buffered: self, python, pulled: 0 }
    }
}

/// A file that is open, and where its bytes come from.
pub(crate) struct PythonFile<'a> {
    source: &'a mut dyn ByteSource,
    buffered: &'a mut Buffered,
    python: Python,
    pulled: u64,
}

impl PythonFile<'_> {
    /// Size of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.buffered.len
    }

    /// The next byte that is read.
    pub(crate) fn at(&self) -> u64 {
        self.buffered.at
    }

    /// Bytes read from the source so far.
    pub(crate) fn pulled(&self) -> u64 {
        self.pulled
    }

    /// The source below the buffer.
    pub(crate) fn source(&mut self) -> &mut dyn ByteSource {
        self.source
    }

    /// Bytes that can be read without a call.
    pub(crate) fn buffered_bytes(&self) -> usize {
        let Buffered { start, filled, at, .. } = *self.buffered;
        filled.saturating_sub((at - start) as usize)
    }

    /// `seek(to)`: keeps the buffer if that is in it.
    pub(crate) fn seek(&mut self, to: u64) {
        let buffered = &mut *self.buffered;
        if !(buffered.start..=buffered.start + buffered.filled as u64).contains(&to) {
            (buffered.start, buffered.filled) = (to, 0);
        }
        buffered.at = to;
    }

    /// `seek(-back, SEEK_END)`: drops the buffer, wherever it leads.
    pub(crate) fn seek_from_end(&mut self, back: u64) {
        let to = self.buffered.len.saturating_sub(back);
        let buffered = &mut *self.buffered;
        (buffered.start, buffered.filled, buffered.at) = (to, 0, to);
    }

    /// `read(len(out))`: how many bytes there were; fewer only at the end of the file.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Decoded<usize> {
        let mut done = self.take(out);
        if done == out.len() {
            return Ok(done);
        }
        self.drop_buffer();
        let size = self.buffered.size;
        while out.len() - done >= size {
            let whole = (out.len() - done) / size * size;
            let found = self.raw_read(&mut out[done..done + whole])?;
            if found == 0 {
                return Ok(done);
            }
            done += found;
        }
        self.drop_buffer();
        while done < out.len() && self.buffered.filled < size {
            if self.fill()? == 0 {
                break;
            }
            done += self.take(&mut out[done..]);
        }
        Ok(done)
    }

    /// `readinto(out)`: what is larger than the buffer goes past it, with one call.
    pub(crate) fn read_into(&mut self, out: &mut [u8]) -> Decoded<usize> {
        let mut done = self.take(out);
        while done < out.len() {
            self.drop_buffer();
            let found = match out.len() - done > self.buffered.size {
                true => self.raw_read(&mut out[done..])?,
                false => {
                    self.fill()?;
                    self.take(&mut out[done..])
                }
            };
            if found == 0 {
                break;
            }
            done += found;
        }
        Ok(done)
    }

    /// `read()`: asks for one byte more than there should be, and again until nothing comes.
    pub(crate) fn read_all(&mut self, out: &mut Vec<u8>) -> Decoded<()> {
        let buffered = &*self.buffered;
        let left = usize::try_from(buffered.len.saturating_sub(buffered.at));
        let left = left.map_err(|_| self.too_much())?;
        out.resize(left + 1, 0);
        let mut done = self.take(out);
        self.drop_buffer();
        for _ in 0..self.python.stats_before_read_all() {
            self.source.len().map_err(|source| DecodeError::Size { source })?;
        }
        while done < out.len() {
            match self.raw_read(&mut out[done..])? {
                0 => break,
                found => done += found,
            }
        }
        out.truncate(done);
        Ok(())
    }

    /// `read` of bytes all of which the file must have.
    pub(crate) fn read_exact(&mut self, out: &mut [u8]) -> Decoded<()> {
        let begin = self.buffered.at;
        let found = self.read(out)?;
        check_full(begin, out.len(), found)
    }

    /// `readinto` of bytes all of which the file must have.
    pub(crate) fn read_exact_into(&mut self, out: &mut [u8]) -> Decoded<()> {
        let begin = self.buffered.at;
        let found = self.read_into(out)?;
        check_full(begin, out.len(), found)
    }

    fn too_much(&self) -> DecodeError {
        DecodeError::TooMuch {
            format: "file",
            what: "the rest of it",
            offset: self.buffered.at,
            needed: self.buffered.len,
            limit: usize::MAX as u64,
        }
    }

    /// Moves what the buffer has to `out`.
    fn take(&mut self, out: &mut [u8]) -> usize {
        let buffered = &mut *self.buffered;
        let from = (buffered.at - buffered.start) as usize;
        let count = buffered.filled.saturating_sub(from).min(out.len());
        out[..count].copy_from_slice(&buffered.memory[from..from + count]);
        buffered.at += count as u64;
        count
    }

    fn drop_buffer(&mut self) {
        (self.buffered.start, self.buffered.filled) = (self.buffered.at, 0);
    }

    /// One read call straight to the caller.
    fn raw_read(&mut self, out: &mut [u8]) -> Decoded<usize> {
        let found = read_up_to(self.source, self.buffered.at, out)?;
        self.pulled += found as u64;
        self.buffered.at += found as u64;
        self.drop_buffer();
        Ok(found)
    }

    /// One read call into the room that the buffer has left.
    fn fill(&mut self) -> Decoded<usize> {
        let Buffered { memory, size, start, filled, .. } = &mut *self.buffered;
        let found = read_up_to(self.source, *start + *filled as u64, &mut memory[*filled..*size])?;
        *filled += found;
        self.pulled += found as u64;
        Ok(found)
    }
}

fn check_full(begin: u64, wanted: usize, found: usize) -> Decoded<()> {
    if found == wanted {
        return Ok(());
    }
    let end = begin + found as u64;
    let needed = begin.saturating_add(wanted as u64);
    Err(DecodeError::truncated(needed, end))
}

/// One read call, with the error of a format.
pub(super) fn read_up_to(
    source: &mut dyn ByteSource,
    offset: u64,
    out: &mut [u8],
) -> Decoded<usize> {
    let wanted = out.len() as u64;
    source.read_up_to(offset, out).map_err(|source| DecodeError::Source { offset, wanted, source })
}
