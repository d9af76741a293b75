//! Compressing chunks.

use flate2::{Compress, Compression, FlushCompress, Status};

use super::lzf;
use super::plan::Filter;
use crate::Streamed;

/// Buffers for a chunk and its compressed form, and the state of the compressor.
pub(super) struct Packer {
    method: Method,
    chunk: Vec<u8>,
    packed: Vec<u8>,
}

enum Method {
    Deflate(Compress),
    Lzf(lzf::Compressor),
}

impl Packer {
    pub(super) fn new(filter: Filter) -> Packer {
        let method = match filter {
            Filter::Gzip(level) => Method::Deflate(Compress::new(Compression::new(level), true)),
            Filter::Lzf => Method::Lzf(lzf::Compressor::new()),
        };
        Packer { method, chunk: Vec::new(), packed: Vec::new() }
    }

    /// Compresses the `len` bytes that `fill` gives: what to store, and the mask that says whether
    /// the filter was left out.
    ///
    /// LZF is left out where it does not make the chunk smaller, deflate only where the result
    /// exceeds the 32 bits of a chunk's size: both as in HDF5.
    pub(super) fn pack(
        &mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Streamed<(&[u8], u32)> {
        self.chunk.resize(len, 0);
        fill(&mut self.chunk);
        let smaller = match &mut self.method {
            Method::Lzf(lzf) => lzf.compress(&self.chunk, &mut self.packed),
            Method::Deflate(deflate) => {
                deflated(deflate, &self.chunk, &mut self.packed)?;
                u32::try_from(self.packed.len()).is_ok()
            }
        };
        Ok(if smaller { (&self.packed, 0) } else { (&self.chunk, 1) })
    }
}

fn deflated(deflate: &mut Compress, chunk: &[u8], out: &mut Vec<u8>) -> Streamed<()> {
    deflate.reset();
    out.clear();
    // Noise grows by five bytes for every few thousand.
    out.reserve(chunk.len() + chunk.len() / 512 + 64);
    loop {
        let read = deflate.total_in() as usize;
        match deflate.compress_vec(&chunk[read..], out, FlushCompress::Finish)? {
            Status::StreamEnd => return Ok(()),
            _ => out.reserve(out.len() / 8 + 64),
        }
    }
}
