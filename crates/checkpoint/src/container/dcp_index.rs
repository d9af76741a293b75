//! Reading the file `.metadata` of a distributed checkpoint, and finding a piece's bytes in its archive.

use std::collections::HashMap;
use std::sync::Arc;

use feedline_store::Object;

use super::dcp::{NAME, TAIL_BYTES};
use super::dcp_metadata::torch_name;
use super::directory::Directory;
use super::stretch::{LIMIT_BYTES, Stretch};
use super::unpickle::{Node, Pickle, Ref};
use super::{Found, torch_tensors};
use crate::{ContainerError, DType, Result};

type Class = (&'static str, &'static str);

const METADATA: Class = ("torch.distributed.checkpoint.metadata", "Metadata");
const TENSOR: Class = ("torch.distributed.checkpoint.metadata", "TensorStorageMetadata");
const BYTES: Class = ("torch.distributed.checkpoint.metadata", "BytesStorageMetadata");
const PROPERTIES: Class = ("torch.distributed.checkpoint.metadata", "TensorProperties");
const CHUNK: Class = ("torch.distributed.checkpoint.metadata", "ChunkStorageMetadata");
const INDEX: Class = ("torch.distributed.checkpoint.metadata", "MetadataIndex");
const PLACE: Class = ("torch.distributed.checkpoint.filesystem", "_StorageInfo");
const SIZE: Class = ("torch", "Size");

/// What a distributed checkpoint holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DcpIndex {
    /// Its tensors, in the order of the metadata. Values that are no tensors are left out.
    pub tensors: Vec<DcpTensor>,
}

/// A tensor that the ranks of a job saved together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DcpTensor {
    /// Its name, with dots between the keys that led to it.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Lengths of its axes, outermost first.
    pub shape: Vec<u64>,
    /// The pieces that it was saved in.
    pub chunks: Vec<DcpChunk>,
}

/// A piece of a tensor and the archive that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DcpChunk {
    /// Where it begins in the tensor, axis by axis.
    pub offsets: Vec<u64>,
    /// How long it is on each axis.
    pub sizes: Vec<u64>,
    /// The data file, relative to the checkpoint's folder.
    pub file: Arc<str>,
    /// Where the archive begins in the file.
    pub offset: u64,
    /// Bytes of the archive.
    pub length: u64,
}

/// Reads a file `.metadata`, by torch or by us.
pub fn read_dcp_metadata(bytes: &[u8]) -> Result<DcpIndex> {
    let needed = bytes.len() as u64;
    if needed > LIMIT_BYTES {
        let (container, what, limit) = (NAME, "metadata", LIMIT_BYTES);
        return Err(ContainerError::TooMuch { container, what, needed, limit });
    }
    let pickle = Pickle::read(bytes);
    let pickle = pickle.map_err(|broken| damaged(broken.what, broken.at as u64))?;
    let field = |name| {
        let items = pickle.attribute(pickle.root, METADATA, name).and_then(|it| pickle.items(it));
        items.ok_or_else(|| damaged("no checkpoint metadata", 0))
    };
    let places = Places::of(&pickle, field("storage_data")?)?;
    let mut tensors = Vec::new();
    // Every name and every piece is in the pickle once; more of them would be one used many times.
    let mut name_bytes_left = bytes.len();
    let mut chunks_left = places.by_piece.len();
    for &(name, value) in field("state_dict_metadata")? {
        let name = pickle.text(name).ok_or_else(|| damaged("a tensor without a name", 0))?;
        if pickle.state(value, BYTES).is_some() {
            continue;
        }
        let left = name_bytes_left.checked_sub(name.len());
        name_bytes_left = left.ok_or_else(|| damaged("names that repeat", 0))?;
        tensors.push(places.tensor(name, value, &mut chunks_left)?);
    }
    Ok(DcpIndex { tensors })
}

/// Finds a piece in its data file. Two reads of about a kilobyte: the archive's directory and its
/// pickle, which must describe a tensor of the piece's sizes.
pub fn find_dcp_chunk(object: &mut dyn Object, chunk: &DcpChunk) -> Result<Found> {
    let mut stretch = Stretch::whole(object, NAME)?;
    let mut archive = stretch.part(chunk.offset, chunk.length)?;
    let directory = Directory::read(&mut archive, TAIL_BYTES)?;
    if directory.archive_at != 0 {
        return Err(damaged("data before the archive", chunk.offset));
    }
    let mut found = torch_tensors::list_archive(&mut archive, &directory)?;
    match found.pop() {
        Some(tensor) if found.is_empty() && tensor.shape == chunk.sizes => Ok(tensor),
        _ => Err(damaged("a different tensor than the metadata describes", chunk.offset)),
    }
}

fn damaged(what: &'static str, offset: u64) -> ContainerError {
    ContainerError::Damaged { container: NAME, what, offset }
}

/// Where the pieces of each tensor are.
struct Places<'a, 'p> {
    pickle: &'a Pickle<'p>,
    /// By the tensor's name and the piece's offsets; values that are no tensors have none.
    by_piece: HashMap<(&'p str, Vec<u64>), Place>,
}

#[derive(Clone)]
struct Place {
    file: Arc<str>,
    offset: u64,
    length: u64,
}

impl<'a, 'p> Places<'a, 'p> {
    fn of(pickle: &'a Pickle<'p>, items: &[(Ref, Ref)]) -> Result<Places<'a, 'p>> {
        let mut files: HashMap<&str, Arc<str>> = HashMap::new();
        let mut by_piece = HashMap::new();
        for &(index, place) in items {
            let key = || {
                let name = pickle.text(pickle.attribute(index, INDEX, "fqn")?)?;
                let offset = pickle.attribute(index, INDEX, "offset");
                match offset.filter(|&offset| pickle.node(offset) != Node::None) {
                    Some(offset) => Some((name, size(pickle, offset)?)),
                    None => Some((name, Vec::new())),
                }
            };
            let mut place = || {
                let of = |name| pickle.attribute(place, PLACE, name);
                let transformed = of("transform_descriptors").map(|it| pickle.node(it));
                let file = pickle.text(of("relative_path")?)?;
                let file = files.entry(file).or_insert_with(|| Arc::from(file));
                let (offset, length) =
                    (pickle.unsigned(of("offset")?)?, pickle.unsigned(of("length")?)?);
                let place = Place { file: Arc::clone(file), offset, length };
                Some((place, transformed.is_some_and(|it| it != Node::None)))
            };
            let (key, (place, transformed)) = key()
                .zip(place())
                .ok_or_else(|| damaged("an invalid tensor location in the metadata", 0))?;
            if transformed {
                let what = format!("compressed pieces of {}", key.0);
                return Err(ContainerError::Unsupported { container: NAME, what });
            }
            by_piece.insert(key, place);
        }
        Ok(Places { pickle, by_piece })
    }

    fn tensor(&self, name: &'p str, value: Ref, chunks_left: &mut usize) -> Result<DcpTensor> {
        let pickle = self.pickle;
        let broken = || damaged("an invalid tensor in the metadata", 0);
        let of = |name| pickle.attribute(value, TENSOR, name).ok_or_else(broken);
        let properties = pickle.state(of("properties")?, PROPERTIES);
        let dtype = properties.and_then(|it| pickle.global(*pickle.elements(it)?.first()?));
        let Some(("torch", dtype)) = dtype else { return Err(broken()) };
        let known = DType::ALL.into_iter().find(|it| torch_name(*it) == dtype);
        let dtype = known.ok_or_else(|| ContainerError::Unsupported {
            container: NAME,
            what: format!("tensor {name} of type {dtype}"),
        })?;
        let shape = size(pickle, of("size")?).ok_or_else(broken)?;
        let chunks = pickle.elements(of("chunks")?).ok_or_else(broken)?;
        *chunks_left = chunks_left.checked_sub(chunks.len()).ok_or_else(broken)?;
        let chunks: Option<Vec<DcpChunk>> =
            chunks.iter().map(|&chunk| self.chunk(name, chunk, &shape)).collect();
        let name = name.to_owned();
        Ok(DcpTensor { name, dtype, shape, chunks: chunks.ok_or_else(broken)? })
    }

    fn chunk(&self, name: &'p str, chunk: Ref, shape: &[u64]) -> Option<DcpChunk> {
        let pickle = self.pickle;
        let offsets = size(pickle, pickle.attribute(chunk, CHUNK, "offsets")?)?;
        let sizes = size(pickle, pickle.attribute(chunk, CHUNK, "sizes")?)?;
        let ends = offsets.iter().zip(&sizes).map(|(&offset, &size)| offset.checked_add(size));
        let inside = ends.zip(shape).all(|(end, &len)| end.is_some_and(|end| end <= len));
        if !inside || offsets.len() != shape.len() || sizes.len() != shape.len() {
            return None;
        }
        let Place { file, offset, length } = self.by_piece.get(&(name, offsets.clone()))?.clone();
        Some(DcpChunk { offsets, sizes, file, offset, length })
    }
}

/// The numbers in a `torch.Size`.
fn size(pickle: &Pickle<'_>, value: Ref) -> Option<Vec<u64>> {
    torch_tensors::axes(pickle, *pickle.made_by(value, SIZE)?.first()?)
}
