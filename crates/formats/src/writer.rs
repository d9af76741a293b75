//! A sink with a position.

use crate::{ByteSink, EncodeError, Encoded, PIECE_BYTES};

/// Writes to a sink and knows how far it came, for the offset in an error.
pub(crate) struct Writer<'a> {
    sink: &'a mut dyn ByteSink,
    written: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(sink: &'a mut dyn ByteSink) -> Self {
        Writer { sink, written: 0 }
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Writes `len` bytes in pieces of at most [`PIECE_BYTES`]; `fill` gets each piece with its
    /// place among them.
    pub(crate) fn generate(
        &mut self,
        len: u64,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> Encoded<()> {
        let mut done = 0;
        while done < len {
            let want = (len - done).min(PIECE_BYTES as u64) as usize;
            let offset = self.written;
            let space = self.sink.space(want);
            let space = space.map_err(|source| EncodeError::Sink { offset, source })?;
            assert!(!space.is_empty(), "a sink gives at least one byte");
            fill(done, space);
            done += space.len() as u64;
            self.written += space.len() as u64;
        }
        Ok(())
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Encoded<()> {
        self.generate(bytes.len() as u64, |at, space| {
            let at = at as usize;
            space.copy_from_slice(&bytes[at..at + space.len()]);
        })
    }

    pub(crate) fn patch(&mut self, offset: u64, bytes: &[u8]) -> Encoded<()> {
        self.sink.patch(offset, bytes).map_err(|source| EncodeError::Sink { offset, source })
    }
}
