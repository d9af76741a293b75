//! Deflate in pieces, both ways, with the checksum of what is inside.
//!
//! Neither direction holds more than one buffer besides the 32 KiB window of the method and its
//! tables (0.3 MB to compress, 50 kB to expand), however much goes through.

use crc32fast::Hasher;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::window::Window;
use crate::writer::Writer;
use crate::{DecodeError, Decoded, Element, EncodeError, Encoded};

/// What is compressed or expanded at a time.
pub(crate) const BUFFER_BYTES: usize = 128 * 1024;
const LEVEL_MAX: u32 = 9;

/// A stream that is being compressed into a file.
pub(crate) struct Deflater {
    format: &'static str,
    state: Compress,
    out: Vec<u8>,
    crc: Hasher,
}

/// What became of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Checksum of what went in.
    pub(crate) crc: u32,
    /// Bytes that went in.
    pub(crate) size: u64,
    /// Bytes that came out.
    pub(crate) packed_size: u64,
}

impl Deflater {
    /// Compresses at that level, 9 at most, for a file of `format`.
    pub(crate) fn new(format: &'static str, level: u32) -> Deflater {
        let state = Compress::new(Compression::new(level.min(LEVEL_MAX)), false);
        Deflater { format, state, out: vec![0; BUFFER_BYTES], crc: Hasher::new() }
    }

    pub(crate) fn put(&mut self, bytes: &[u8], writer: &mut Writer<'_>) -> Encoded<()> {
        self.crc.update(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (taken, _) = self.step(rest, FlushCompress::None, writer)?;
            rest = &rest[taken..];
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, writer: &mut Writer<'_>) -> Encoded<Packed> {
        while self.step(&[], FlushCompress::Finish, writer)?.1 != Status::StreamEnd {}
        Ok(Packed {
            crc: self.crc.finalize(),
            size: self.state.total_in(),
            packed_size: self.state.total_out(),
        })
    }

    fn step(
        &mut self,
        bytes: &[u8],
        flush: FlushCompress,
        writer: &mut Writer<'_>,
    ) -> Encoded<(usize, Status)> {
        let (taken, given) = (self.state.total_in(), self.state.total_out());
        let stuck = |writer: &Writer<'_>, source| EncodeError::Coding {
            format: self.format,
            offset: writer.written(),
            source,
        };
        let status = self.state.compress(bytes, &mut self.out, flush);
        let status = status.map_err(|error| stuck(writer, error.into()))?;
        let taken = (self.state.total_in() - taken) as usize;
        let given = (self.state.total_out() - given) as usize;
        if taken == 0 && given == 0 && status != Status::StreamEnd {
            return Err(stuck(writer, "deflate makes no progress".into()));
        }
        writer.put(&self.out[..given])?;
        Ok((taken, status))
    }
}

/// A stream that is being expanded out of a file.
pub(crate) struct Inflater {
    format: &'static str,
    state: Decompress,
    ended: bool,
    /// The next compressed byte.
    at: u64,
    /// Where the compressed bytes end at the latest.
    end: u64,
}

impl Inflater {
    /// The stream that begins at `at` of a file of `format` and ends at `end` or before.
    pub(crate) fn new(format: &'static str, at: u64, end: u64) -> Inflater {
        Inflater { format, state: Decompress::new(false), ended: false, at, end }
    }

    /// Goes on with another stream, at `at`.
    pub(crate) fn restart(&mut self, at: u64) {
        self.state.reset(false);
        self.ended = false;
        self.at = at;
    }

    /// Whether everything has come out.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Where the compressed bytes go on, or where they ended.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Fills `out` as far as the stream goes, and says how far that is: all of it before the end.
    pub(crate) fn fill(&mut self, window: &mut Window<'_>, out: &mut [u8]) -> Decoded<usize> {
        let mut filled = 0;
        while filled < out.len() && !self.ended {
            let packed =
                if self.at < self.end { window.at_least(self.at, 1, self.end)? } else { &[] };
            let (taken, given) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(packed, &mut out[filled..], FlushDecompress::None);
            let status =
                status.map_err(|error| DecodeError::coding(self.format, self.at, error))?;
            let taken = self.state.total_in() - taken;
            let given = self.state.total_out() - given;
            self.at += taken;
            filled += given as usize;
            self.ended = status == Status::StreamEnd;
            if taken == 0 && given == 0 && !self.ended {
                return Err(DecodeError::field(
                    self.format,
                    self.at,
                    "more compressed data",
                    "its end",
                ));
            }
        }
        Ok(filled)
    }
}

/// About what `size` bytes of [`Content`](crate::Content) become at that level.
pub(crate) fn noise_size(element: Element, level: u32, size: u64) -> u64 {
    // Counted. Nothing repeats, so all that can be gained is what single bytes give away: bits that
    // are always zero, exponents that are more likely than others.
    let per_10_000 = match (element, level) {
        (_, 0) => 10_001,
        (Element::Bool, 1) => 4030,
        (Element::Bool, 2 | 3) => 1900,
        (Element::Bool, _) => 1580,
        (Element::Float16, 1) => 10_235,
        (Element::Float16, _) => 8370,
        (Element::Float32 | Element::Complex64, 1) => 10_353,
        (Element::Float32 | Element::Complex64, _) => 8850,
        (Element::Float64 | Element::Complex128, 1) => 10_550,
        (Element::Float64 | Element::Complex128, _) => 9380,
        // The fastest level spends no time on finding out that it makes things worse.
        (_, 1) => 10_548,
        _ => 10_003,
    };
    scaled(size, per_10_000)
}

/// That many ten-thousandths of a size, `u64::MAX` if 64 bits cannot hold it.
pub(crate) fn scaled(size: u64, per_10_000: u64) -> u64 {
    u64::try_from(u128::from(size) * u128::from(per_10_000) / 10_000).unwrap_or(u64::MAX)
}
