//! What each library asks its files for: the numbers by which versions differ.
//!
//! A new version of a library is a changed line here. What the numbers mean is in the modules that
//! play the calls; `tests/fidelity` runs the real libraries beside them, call by call.

/// The versions of the libraries that are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Libraries {
    /// The interpreter, whose buffered files most readers sit on.
    pub python: Python,
    /// Bytes of the buffer of TensorFlow's record reader (`buffer_size` of `TFRecordDataset`).
    pub record_buffer_bytes: usize,
}

impl Default for Libraries {
    fn default() -> Self {
        Libraries { python: Python::Before314, record_buffer_bytes: RECORD_BUFFER_BYTES }
    }
}

/// CPython, by how large it makes the buffer of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Python {
    /// 3.9 to 3.13: the file system's preferred size (`st_blksize`).
    #[default]
    Before314,
    /// 3.14 and later: 128 KiB at least, 8 MiB at most.
    From314,
}

impl Python {
    /// Every Python there is.
    pub const ALL: [Python; 2] = [Python::Before314, Python::From314];

    /// Its version in workload files.
    pub fn name(self) -> &'static str {
        match self {
            Python::Before314 => "3.13",
            Python::From314 => "3.14",
        }
    }

    /// The Python that workload files call `name`.
    pub fn parse(name: &str) -> Option<Python> {
        Python::ALL.into_iter().find(|python| python.name() == name)
    }

    /// The buffer of `open(path, "rb")` on a file system that prefers `preferred_bytes`.
    pub(super) fn buffer_bytes(self, preferred_bytes: usize) -> usize {
        match self {
            Python::Before314 if preferred_bytes > 1 => preferred_bytes,
            Python::Before314 => 8 << 10,
            Python::From314 => preferred_bytes.clamp(128 << 10, 8 << 20),
        }
    }

    /// `fstat` calls of `read()` without a size: 3.14 knows the size from opening the file.
    pub(super) fn stats_before_read_all(self) -> u32 {
        match self {
            Python::Before314 => 1,
            Python::From314 => 0,
        }
    }
}

/// The default of TensorFlow's record reader.
pub const RECORD_BUFFER_BYTES: usize = 256 << 10;

/// NumPy: how many first bytes tell a format, and what of an array in an archive is read at a time.
pub(super) const NUMPY_MAGIC_BYTES: usize = 6;
pub(super) const NUMPY_ARRAY_BYTES: usize = 256 << 10;
/// The largest buffer that glibc gives a C file (`BUFSIZ`), which `np.fromfile` reads through.
pub(super) const STDIO_BUFFER_BYTES: usize = 8 << 10;

/// `zipfile`: the least that a member asks of its archive.
pub(super) const ZIP_READ_BYTES: usize = 4096;

/// Pillow: bytes that tell a format, and what a decoder gets at a time.
pub(super) const PILLOW_PREFIX_BYTES: usize = 16;
pub(super) const PILLOW_DECODER_BYTES: usize = 64 << 10;

/// pandas' C parser: text at a time.
pub(super) const PANDAS_TEXT_BYTES: usize = 256 << 10;
/// `gzip`: compressed bytes at a time (`io.DEFAULT_BUFFER_SIZE` before 3.14).
pub(super) const GZIP_READ_BYTES: usize = 8 << 10;

/// `tarfile` as a stream: one block to tell the compression, then records.
pub(super) const TAR_PROBE_BYTES: usize = 512;
pub(super) const TAR_RECORD_BYTES: usize = 10 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_follows_the_file_system_and_the_version() {
        let before = |preferred| Python::Before314.buffer_bytes(preferred);
        assert_eq!([before(1), before(4096), before(2 << 20)], [8192, 4096, 2 << 20]);
        let from = |preferred| Python::From314.buffer_bytes(preferred);
        assert_eq!([from(1), from(4096), from(2 << 20)], [128 << 10, 128 << 10, 2 << 20]);
        assert_eq!(from(64 << 20), 8 << 20);
    }
}
