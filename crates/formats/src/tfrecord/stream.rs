//! A file that is read front to back through a buffer of its own.

use crate::sample_sink;
use crate::scratch::AlignedBuffer;
use crate::{ByteSource, DecodeError, Decoded, SampleSink, Scratch};

/// What a look at a far header reads: storage gives no less than a page anyway.
const LOOK_BYTES: u64 = 4096;

/// The part of a file that is in memory.
pub(super) struct Stream {
    buffer: AlignedBuffer,
    /// Where in the file the filled part of the buffer comes from.
    start: u64,
    filled: usize,
    piece: u64,
    len: u64,
}

impl Stream {
    /// A buffer for pieces of the size that the source likes, though not of more than the reader's
    /// own buffer or the whole file.
    pub(super) fn open(source: &mut dyn ByteSource, scratch: &Scratch) -> Decoded<Stream> {
        let len = source.len().map_err(|source| DecodeError::Size { source })?;
        let piece = source.piece_bytes().min(scratch.piece.len()).max(1);
        let room = usize::try_from(len).map_or(piece, |len| len.min(piece));
        let buffer = scratch.another(room);
        Ok(Stream { buffer, start: 0, filled: 0, piece: piece as u64, len })
    }

    /// The file again, with the source it was opened from.
    pub(super) fn reader<'a>(&'a mut self, source: &'a mut dyn ByteSource) -> Reader<'a> {
        Reader { stream: self, source, pulled: 0 }
    }
}

/// A stream and where its bytes come from.
pub(super) struct Reader<'a> {
    stream: &'a mut Stream,
    source: &'a mut dyn ByteSource,
    pulled: u64,
}

impl Reader<'_> {
    /// Size of the file.
    pub(super) fn len(&self) -> u64 {
        self.stream.len
    }

    /// Whether the file ends at `offset`; reads on if that is not known.
    pub(super) fn ends_at(&mut self, offset: u64) -> Decoded<bool> {
        match self.chunk(offset).map(|_| false) {
            Err(DecodeError::Truncated { .. }) if offset == self.stream.len => Ok(true),
            found => found,
        }
    }

    /// Bytes read from the source by this reader.
    pub(super) fn pulled(&self) -> u64 {
        self.pulled
    }

    /// The bytes in memory from `offset` on, at least one; a read up to the next multiple of the
    /// piece size fetches them if there is none.
    fn chunk(&mut self, offset: u64) -> Decoded<&[u8]> {
        if !self.in_memory(offset) {
            let piece = self.stream.piece;
            self.load(offset, (offset / piece + 1).saturating_mul(piece))?;
        }
        let stream = &*self.stream;
        Ok(&stream.buffer[(offset - stream.start) as usize..stream.filled])
    }

    /// The `N` bytes at `offset`, which may be in two pieces.
    pub(super) fn array<const N: usize>(&mut self, offset: u64) -> Result<[u8; N], DecodeError> {
        let mut out = [0; N];
        let mut done = 0;
        while done < N {
            let chunk = self.chunk(offset + done as u64)?;
            let part = chunk.len().min(N - done);
            out[done..done + part].copy_from_slice(&chunk[..part]);
            done += part;
        }
        Ok(out)
    }

    /// Gets ready for the header of `header` bytes at `offset`, after a record of `record` bytes
    /// that is not read.
    ///
    /// Where records are larger than a piece most of the piece would be for nothing, so only the
    /// rest of the header's page is read.
    pub(super) fn pass_over(&mut self, offset: u64, record: u64, header: u64) -> Decoded<()> {
        let far = record > self.stream.piece && self.stream.piece > LOOK_BYTES;
        if far && offset < self.len() && !self.in_memory(offset) {
            let page_end = (offset / LOOK_BYTES + 1).saturating_mul(LOOK_BYTES);
            self.load(offset, page_end.max(offset.saturating_add(header)))?;
        }
        Ok(())
    }

    fn in_memory(&self, offset: u64) -> bool {
        let start = self.stream.start;
        (start..start + self.stream.filled as u64).contains(&offset)
    }

    /// Reads from `offset` to `end` in place of what was in memory.
    fn load(&mut self, offset: u64, end: u64) -> Decoded<()> {
        let stream = &mut *self.stream;
        let end = end.min(stream.len).min(offset.saturating_add(stream.buffer.len() as u64));
        let wanted = end.saturating_sub(offset);
        if wanted == 0 {
            let needed = offset.saturating_add(1);
            return Err(DecodeError::truncated(needed, stream.len));
        }
        stream.filled = 0;
        let target = &mut stream.buffer[..wanted as usize];
        let read = self.source.read_up_to(offset, target);
        let found = read.map_err(|source| DecodeError::Source { offset, wanted, source })?;
        stream.start = offset;
        stream.filled = found;
        self.pulled += found as u64;
        if (found as u64) < wanted {
            // Not every source knows its size before its end was seen.
            stream.len = offset + found as u64;
        }
        if found == 0 {
            let needed = offset.saturating_add(1);
            return Err(DecodeError::truncated(needed, offset));
        }
        Ok(())
    }
}

/// The payload of one record, whose checksum is taken as its bytes come by.
pub(super) struct Payload<'a, 'b, S> {
    reader: &'a mut Reader<'b>,
    sink: &'a mut S,
    /// The next byte to be looked at.
    at: u64,
    /// Up to where the checksum was taken; what is before is in memory from `at` on.
    summed: u64,
    end: u64,
    crc: u32,
}

impl<'a, 'b, S: SampleSink> Payload<'a, 'b, S> {
    /// The `len` bytes at `begin`, which the file has; all of them go to `sink`.
    pub(super) fn new(reader: &'a mut Reader<'b>, begin: u64, len: u64, sink: &'a mut S) -> Self {
        Payload { reader, sink, at: begin, summed: begin, end: begin + len, crc: 0 }
    }

    /// Where in the file the next byte is.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Where in the file the payload ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The next byte. The caller has made sure that there is one.
    #[inline]
    pub(super) fn byte(&mut self) -> Decoded<u8> {
        self.sum()?;
        let stream = &*self.reader.stream;
        // What was summed and not yet looked at is in memory.
        let byte = stream.buffer[(self.at - stream.start) as usize];
        self.at += 1;
        Ok(byte)
    }

    /// Goes on to `offset`, which is not after the end of the payload.
    pub(super) fn skip_to(&mut self, offset: u64) -> Decoded<()> {
        while self.at < offset {
            self.sum()?;
            self.at = offset.min(self.summed);
        }
        Ok(())
    }

    /// Goes to the end and gives the checksum of everything.
    pub(super) fn finish(mut self) -> Decoded<u32> {
        self.skip_to(self.end)?;
        Ok(self.crc)
    }

    /// Takes the checksum of the next chunk if the last one is used up.
    #[inline]
    fn sum(&mut self) -> Decoded<()> {
        if self.at == self.summed { self.sum_next() } else { Ok(()) }
    }

    #[cold]
    fn sum_next(&mut self) -> Decoded<()> {
        let left = self.end.saturating_sub(self.at);
        let chunk = self.reader.chunk(self.at)?;
        let chunk = &chunk[..chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        self.crc = crc32c::crc32c_append(self.crc, chunk);
        sample_sink::put(self.sink, chunk)?;
        self.summed += chunk.len() as u64;
        Ok(())
    }
}
