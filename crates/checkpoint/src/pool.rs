//! Buffers for chunks, made once, touched, and used again.

use feedline_clock::{Clock, Monitor};
use feedline_store::AlignedBuf;

/// Buffers of one size. Whoever finds none waits for one to come back.
pub struct Pool {
    idle: Monitor<Vec<AlignedBuf>>,
    chunk_bytes: usize,
    count: usize,
}

impl Pool {
    /// As many buffers of `chunk_bytes` as fit into `pool_bytes`, but at least `least`.
    pub fn new(clock: &Clock, chunk_bytes: usize, pool_bytes: u64, least: usize) -> Pool {
        let fitting = usize::try_from(pool_bytes / chunk_bytes as u64).unwrap_or(usize::MAX);
        let count = fitting.max(least).max(1);
        let buffers = (0..count).map(|_| AlignedBuf::new(chunk_bytes)).collect();
        Pool { idle: Monitor::new(clock, buffers), chunk_bytes, count }
    }

    /// Bytes of one buffer.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.chunk_bytes as u64 * self.count as u64
    }

    pub(crate) fn take(&self) -> AlignedBuf {
        self.idle.wait_for(Vec::pop)
    }

    pub(crate) fn put_back(&self, buffer: AlignedBuf) {
        self.idle.update(|idle| idle.push(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_what_fits_but_never_too_few() {
        let clock = Clock::real();
        for (bytes, least, expected) in [(0, 0, 1), (3 * 4096 + 4095, 2, 3), (4096, 4, 4)] {
            let pool = Pool::new(&clock, 4096, bytes, least);
            assert_eq!(pool.bytes(), expected * 4096, "{bytes} {least}");
        }
    }
}
