//! Parts of a file that were read, for parsers that look at it by place.

use crate::{ByteSource, Streamed};

/// A file of which some parts are in memory. What was not read counts as zeros, which look like no
/// record of any format.
pub(super) struct Fragments {
    len: u64,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Fragments {
    pub(super) fn new(len: u64) -> Fragments {
        Fragments { len, parts: Vec::new() }
    }

    pub(super) fn add(&mut self, offset: u64, bytes: Vec<u8>) {
        self.parts.push((offset, bytes));
    }
}

impl ByteSource for Fragments {
    fn len(&mut self) -> Streamed<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        if offset.saturating_add(buf.len() as u64) > self.len {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        buf.fill(0);
        let end = offset + buf.len() as u64;
        for (start, bytes) in &self.parts {
            let (from, to) = (offset.max(*start), end.min(start + bytes.len() as u64));
            if from < to {
                let part = &bytes[(from - start) as usize..(to - start) as usize];
                buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }
}
