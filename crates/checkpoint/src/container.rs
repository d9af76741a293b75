//! The seam between tensors and bytes: what a file looks like before anything is written.

use feedline_store::Object;

use crate::{ContainerError, DType, FileSpec};

/// A file format for tensors.
pub trait Container: Send + Sync {
    /// What the names of its files end with, without the dot.
    fn extension(&self) -> &'static str;

    /// The bytes of a file. Depends on nothing but `file`; its size is known before any tensor is.
    fn image(&self, file: &FileSpec) -> Image;

    /// Where the tensors stand in a file, our own or one that the format's own library wrote. In the
    /// order of their places. Reads what describes them and nothing of the tensors themselves.
    fn index(&self, object: &mut dyn Object) -> Result<Vec<Found>, ContainerError>;
}

/// A file, described byte for byte: parts that follow one another from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The parts, in order, without gaps.
    pub parts: Vec<Part>,
    /// Bytes of the file.
    pub len: u64,
}

/// A stretch of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it begins.
    pub at: u64,
    /// What stands there.
    pub body: Body,
}

/// What a part of a file consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Bytes that are known, but for checksums of tensors that stand before them in the file.
    Bytes {
        /// The bytes, with anything in the places of the holes.
        bytes: Vec<u8>,
        /// The places of checksums, in order and apart from each other.
        holes: Vec<Hole>,
    },
    /// The bytes of a tensor.
    Tensor {
        /// Which of the file's.
        index: usize,
        /// How many.
        bytes: u64,
    },
}

/// Four bytes for the CRC-32 (zlib's polynomial, little-endian) of a tensor's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Where in the part.
    pub at: usize,
    /// Which of the file's tensors.
    pub tensor: usize,
}

/// A tensor that stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The keys that lead to it, outermost first. One key with dots in it where the format knows no
    /// dictionaries.
    pub path: Vec<String>,
    /// Type of its elements.
    pub dtype: DType,
    /// Its axes.
    pub shape: Vec<u64>,
    /// Where its bytes begin in the file.
    pub at: u64,
}
