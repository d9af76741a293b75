//! What can go wrong while a file is laid out or read.
//!
//! Two enums, because the two directions share no case but a stream that breaks: a writer
//! never sees a foreign file, and a reader never meets a file that is too large to describe.
//! A [`DecodeError`] names the byte at which the file is wrong; the caller adds the file's name.

/// The error of a [`ByteSink`](crate::ByteSink) or [`ByteSource`](crate::ByteSource), carried unchanged.
pub type StreamError = Box<dyn std::error::Error + Send + Sync>;

/// What a decoder returns.
pub(crate) type Decoded<T> = Result<T, DecodeError>;
/// What an encoder returns.
pub(crate) type Encoded<T> = Result<T, EncodeError>;
/// What a [`ByteSource`](crate::ByteSource), [`ByteSink`](crate::ByteSink) or
/// [`SampleSink`](crate::SampleSink) returns.
pub(crate) type Streamed<T> = Result<T, StreamError>;

/// Why a file could not be laid out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields are")]
pub enum EncodeError {
    /// The sink refused bytes.
    #[error("cannot write at byte {offset}")]
    Sink {
        /// Bytes of the file that were written before.
        offset: u64,
        source: StreamError,
    },
    /// An encoder gave up.
    #[error("{format}: cannot be encoded at byte {offset}")]
    Coding {
        format: &'static str,
        /// Bytes of the file that were written before.
        offset: u64,
        source: StreamError,
    },
    /// The samples do not go into a file of this format.
    #[error("{format}: {what}")]
    Layout { format: &'static str, what: String },
    /// The file's size does not fit 64 bits.
    #[error("file of {samples} samples of {dims:?} elements is larger than 2^64 bytes")]
    TooLarge { dims: Vec<u64>, samples: u64 },
}

/// Why a sample could not be read, and at which byte of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields are")]
pub enum DecodeError {
    /// The source did not deliver.
    #[error("cannot read {wanted} bytes at byte {offset}")]
    Source { offset: u64, wanted: u64, source: StreamError },
    /// The source does not know how large the file is.
    #[error("cannot get the size of the file")]
    Size { source: StreamError },
    /// A companion of the file did not deliver.
    #[error("cannot read the companion {suffix} at byte {offset}")]
    Companion { suffix: &'static str, offset: u64, source: StreamError },
    /// The bytes at `offset` are not the NumPy magic.
    #[error("not an npy: begins with {found:02x?} at byte {offset}")]
    NotNpy {
        offset: u64,
        /// The bytes that are there, six at most.
        found: Vec<u8>,
    },
    /// An npy of a version that does not exist yet.
    #[error("npy version {major}.{minor} at byte {offset}, expected 1.0, 2.0 or 3.0")]
    NpyVersion { offset: u64, major: u8, minor: u8 },
    /// The dictionary in the npy header does not parse.
    #[error("npy header at byte {offset}: expected {expected}")]
    NpyHeader {
        /// The byte at which the header stops making sense.
        offset: u64,
        expected: &'static str,
    },
    /// An element type that no sample has.
    #[error("npy header at byte {offset}: element type {descr:?} is not a plain number type")]
    ElementType { offset: u64, descr: String },
    /// The file ends before what it announces.
    #[error("truncated: needs {needed} bytes, file has {found}")]
    Truncated {
        /// The first byte that is missing.
        offset: u64,
        needed: u64,
        found: u64,
    },
    /// A member of the archive is smaller than the array it announces.
    #[error("member {member} at byte {offset} has {found} bytes, its array needs {needed}")]
    MemberTooShort {
        offset: u64,
        member: String,
        /// Bytes its array needs, header included.
        needed: u64,
        found: u64,
    },
    /// Neither the beginning nor the end of the file is that of an archive.
    #[error("not an npz: begins with {found:02x?}")]
    NotNpz {
        /// The file's first bytes, four at most.
        found: Vec<u8>,
    },
    /// An archive without its end, as an interrupted copy leaves it.
    #[error("truncated: no zip directory from byte {offset} to the end at {found}")]
    NoDirectory { offset: u64, found: u64 },
    /// Something else is where a record of the archive should be.
    #[error("expected {expected} at byte {offset}, found {found:02x?}")]
    ZipRecord {
        offset: u64,
        expected: &'static str,
        /// The bytes that are there, four at most.
        found: Vec<u8>,
    },
    /// A record of the archive points outside of the file.
    #[error("{record} at byte {offset} points to byte {end}, file has {found}")]
    ZipRange {
        offset: u64,
        record: &'static str,
        /// One past the last byte it points to.
        end: u64,
        /// Bytes that may be pointed to.
        found: u64,
    },
    /// The archive has no such member.
    #[error("no member {member} in the zip directory at byte {offset}")]
    MissingMember { offset: u64, member: &'static str },
    /// A member that is encrypted or compressed in an unusual way.
    #[error("member {member} at byte {offset} is {method}, expected stored or deflated")]
    Method { offset: u64, member: String, method: Method },
    /// The bytes of a member are not those that were written.
    #[error("member {member} at byte {offset} has CRC {found:08x}, expected {expected:08x}")]
    Crc { offset: u64, member: String, expected: u32, found: u32 },
    /// The file has fewer samples.
    #[error("sample {index} asked for, file has {samples} (counted up to byte {offset})")]
    SampleIndex {
        /// Where the file says how many samples it has.
        offset: u64,
        index: u64,
        samples: u64,
    },
    /// A file of another kind.
    #[error("not {format}: expected {expected} at byte {offset}, found {found:02x?}")]
    Foreign {
        /// What the file should be, with its article where it has one.
        format: &'static str,
        offset: u64,
        expected: &'static str,
        /// The bytes that are there, eight at most.
        found: Vec<u8>,
    },
    /// A field of the file cannot have the value that it has.
    #[error("{format}: expected {expected} at byte {offset}, found {found}")]
    Field { format: &'static str, offset: u64, expected: &'static str, found: String },
    /// The bytes are not those that were written.
    #[error("{format}: {what} at byte {offset} has checksum {found:08x}, expected {expected:08x}")]
    Checksum { format: &'static str, what: &'static str, offset: u64, expected: u32, found: u32 },
    /// Something that the format allows and Feedline does not read.
    #[error("{format}: {feature} at byte {offset} is not supported")]
    Feature { format: &'static str, feature: String, offset: u64 },
    /// A decoder gave up.
    #[error("{format}: data at byte {offset} cannot be decoded")]
    Coding {
        format: &'static str,
        /// Where the data that it was given begins.
        offset: u64,
        source: StreamError,
    },
    /// What the file announces is out of all proportion to its size.
    #[error("{format}: {what} at byte {offset} would take {needed} bytes, the limit is {limit}")]
    TooMuch { format: &'static str, what: &'static str, offset: u64, needed: u64, limit: u64 },
    /// The caller's sink has no room for a part of the sample.
    #[error("part {part:?} of the sample has {needed} bytes, the limit is {limit}")]
    SampleLimit {
        /// Name of the part, empty if it has none.
        part: String,
        /// Bytes it has, or has at least.
        needed: u64,
        limit: u64,
    },
    /// The caller's sink refused the sample.
    #[error("the sample was refused")]
    SampleSink { source: StreamError },
    /// The caller's buffer cannot hold a header or directory.
    #[error("buffer of {found} bytes is too small for {needed} bytes at byte {offset}")]
    Scratch {
        offset: u64,
        /// How many must be in memory at once.
        needed: u64,
        found: u64,
    },
}

impl DecodeError {
    /// A file of `found` bytes that ends before byte `needed`.
    pub(crate) fn truncated(needed: u64, found: u64) -> DecodeError {
        DecodeError::Truncated { offset: found, needed, found }
    }

    /// A [`Field`](DecodeError::Field) with a value in place of words.
    pub(crate) fn field(
        format: &'static str,
        offset: u64,
        expected: &'static str,
        found: impl ToString,
    ) -> DecodeError {
        DecodeError::Field { format, offset, expected, found: found.to_string() }
    }

    /// What a decoder of another crate says about the data at `offset`.
    pub(crate) fn coding(
        format: &'static str,
        offset: u64,
        source: impl Into<StreamError>,
    ) -> DecodeError {
        DecodeError::Coding { format, offset, source: source.into() }
    }
}

/// Refuses what would take more than `limit` bytes.
pub(crate) fn check_limit(
    (format, what): (&'static str, &'static str),
    offset: u64,
    needed: u64,
    limit: u64,
) -> Decoded<()> {
    if needed <= limit {
        return Ok(());
    }
    Err(DecodeError::TooMuch { format, what, offset, needed, limit })
}

/// A way of storing a member that this crate does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Compressed by the method of that number in the ZIP specification.
    Compressed(u16),
    /// Encrypted.
    Encrypted,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Method::Encrypted => f.write_str("encrypted"),
            Method::Compressed(12) => f.write_str("compressed with bzip2 (method 12)"),
            Method::Compressed(14) => f.write_str("compressed with lzma (method 14)"),
            Method::Compressed(93) => f.write_str("compressed with zstd (method 93)"),
            Method::Compressed(method) => write!(f, "compressed with method {method}"),
        }
    }
}
