//! The seam between tensors and bytes: what a file looks like before anything is written.
//!
//! A new container is one module and one line in [`CONTAINERS`].

use std::ops::Range;
use std::sync::Arc;

use feedline_store::Object;

use crate::{DType, FileSpec, Result};

mod archive;
mod dcp;
mod dcp_index;
mod dcp_metadata;
mod directory;
mod pickle;
mod raw;
mod safetensors;
mod stretch;
mod torch;
mod torch_tensors;
mod unpickle;

pub use dcp::{Dcp, DcpFile};
pub use dcp_index::{DcpChunk, DcpIndex, DcpTensor, find_dcp_chunk, read_dcp_metadata};
pub use dcp_metadata::dcp_metadata;
pub use raw::Raw;
pub use safetensors::Safetensors;
pub use torch::Torch;

/// Every container there is, by the name that workload files and users know.
pub static CONTAINERS: &[(&str, &dyn Container)] =
    &[("torch", &Torch), ("safetensors", &Safetensors), ("dcp", &Dcp), ("raw", &Raw)];

/// The container of that name.
pub fn find(name: &str) -> Option<&'static dyn Container> {
    CONTAINERS.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// A file format for tensors.
pub trait Container: Send + Sync {
    /// What the names of its files end with, without the dot.
    fn extension(&self) -> &'static str;

    /// The bytes of a file. Depends on nothing but `file`; its size is known before any tensor is.
    fn image(&self, file: &FileSpec) -> Image;

    /// Where the tensors are in a file, our own or one that the format's own library wrote. In the
    /// order of their places. Reads what describes them and nothing of the tensors themselves.
    fn index(&self, object: &mut dyn Object) -> Result<Vec<Found>>;
}

/// A file, described byte for byte: parts that follow one another from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The parts, in order, without gaps.
    pub parts: Vec<Part>,
    /// Bytes of the file.
    pub len: u64,
    /// Where each tensor begins, by its index in the file's specification.
    places: Vec<u64>,
}

impl Image {
    /// The file that `parts` make.
    pub(crate) fn new(parts: Vec<Part>) -> Image {
        let len = parts.last().map_or(0, Part::end);
        let places_len = parts.iter().filter_map(Part::tensor).max().map_or(0, |last| last + 1);
        let mut places = vec![0; places_len];
        for part in &parts {
            if let Some(index) = part.tensor() {
                places[index] = part.at;
            }
        }
        Image { parts, len, places }
    }

    /// Where the bytes of a tensor begin.
    ///
    /// # Panics
    /// If the file has no tensor of that index.
    pub fn tensor_at(&self, index: usize) -> u64 {
        self.places[index]
    }

    /// The parts that have a byte of `range` in them, in order.
    pub fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = &Part> {
        let first = self.parts.partition_point(|part| part.end() <= range.start);
        let behind = self.parts[first..].iter().take_while(move |part| part.at < range.end);
        behind.filter(move |part| part.at < part.end() && range.start < range.end)
    }

    /// Whether the image keeps its promises: parts follow one another up to the length, each tensor is
    /// there once, and checksums come after their tensors, in order and apart. Says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (mut at, mut seen) = (0, vec![false; self.places.len()]);
        for (number, part) in self.parts.iter().enumerate() {
            if part.at != at {
                return Err(format!("part {number} begins at {}, not at {at}", part.at));
            }
            at = part.end();
            match &part.body {
                Body::Bytes { bytes, holes } => check_holes(bytes.len(), holes, &seen)
                    .map_err(|what| format!("part {number}: {what}"))?,
                Body::Tensor { index, .. } => {
                    if std::mem::replace(&mut seen[*index], true) {
                        return Err(format!("tensor {index} appears twice"));
                    }
                    if self.places[*index] != part.at {
                        return Err(format!("tensor {index} is not at {}", self.places[*index]));
                    }
                }
            }
        }
        if let Some(missing) = seen.iter().position(|seen| !seen) {
            return Err(format!("tensor {missing} is missing"));
        }
        if at == self.len { Ok(()) } else { Err(format!("ends at {at}, not at {}", self.len)) }
    }
}

fn check_holes(len: usize, holes: &[Hole], seen: &[bool]) -> Result<(), String> {
    let mut free = 0;
    for hole in holes {
        if hole.at < free || hole.at + Hole::BYTES > len {
            return Err(format!("hole at {} overlaps or leaves {len} bytes", hole.at));
        }
        if seen.get(hole.tensor) != Some(&true) {
            return Err(format!("hole at {} comes before tensor {}", hole.at, hole.tensor));
        }
        free = hole.at + Hole::BYTES;
    }
    Ok(())
}

/// A stretch of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Offset of its first byte in the file.
    pub at: u64,
    /// The bytes or the tensor at this place.
    pub body: Body,
}

impl Part {
    /// Bytes of it.
    pub fn size_bytes(&self) -> u64 {
        match &self.body {
            Body::Bytes { bytes, .. } => bytes.len() as u64,
            Body::Tensor { bytes, .. } => *bytes,
        }
    }

    /// Where the next part begins.
    pub fn end(&self) -> u64 {
        self.at + self.size_bytes()
    }

    fn tensor(&self) -> Option<usize> {
        match self.body {
            Body::Tensor { index, .. } => Some(index),
            Body::Bytes { .. } => None,
        }
    }
}

/// What a part of a file consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Bytes that are known, except for checksums of tensors that come before them in the file.
    Bytes {
        /// The bytes, with anything in the places of the holes. Shared, because an archive a tensor
        /// (dcp) repeats the same ones for all tensors of a size.
        bytes: Arc<[u8]>,
        /// The places of checksums, in order and apart from each other.
        holes: Vec<Hole>,
    },
    /// The bytes of a tensor; none of an empty one, which has its place all the same.
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

impl Hole {
    /// Size of every hole.
    pub const BYTES: usize = 4;
}

/// A tensor that was found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The keys that lead to it, outermost first. One key with dots in it where the format knows no
    /// dictionaries.
    pub path: Vec<String>,
    /// Type of its elements.
    pub dtype: DType,
    /// Lengths of its axes, outermost first.
    pub shape: Vec<u64>,
    /// Where its bytes begin in the file.
    pub at: u64,
}

#[cfg(test)]
mod tests;
