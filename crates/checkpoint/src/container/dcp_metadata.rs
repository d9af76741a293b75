//! The file `.metadata` of a distributed checkpoint: which piece of which tensor is where.
//!
//! A pickle of torch's `Metadata`, protocol 2. Tensors are known by the names of their shares, without
//! dictionaries around them, so that they can be loaded into a flat dictionary. Of pieces that several
//! ranks have, the first counts; pieces without elements are left out.

use std::collections::{HashMap, HashSet};

use super::dcp::{DcpFile, Templates};
use super::pickle::Pickler;
use crate::{DType, Tensor};

const MODULE: &str = "torch.distributed.checkpoint.metadata";
const FILESYSTEM: &str = "torch.distributed.checkpoint.filesystem";
const VERSION: &str = "1.0.0";

/// A piece of a tensor.
#[derive(Clone, Copy)]
struct Piece<'a> {
    tensor: &'a Tensor,
    file: &'a str,
    offset: u64,
    length: u64,
}

/// A tensor and its pieces.
struct Whole<'a> {
    pieces: Vec<Piece<'a>>,
}

/// The bytes of `.metadata` for the data files of all ranks.
pub fn dcp_metadata(files: &[DcpFile<'_>]) -> Vec<u8> {
    let wholes = wholes(files);
    let mut pickler = Pickler::new();
    pickler.object(MODULE, "Metadata", |pickler| {
        pickler.dict(&FIELDS, |pickler, &(name, put)| {
            pickler.text(name);
            put(pickler, &wholes);
        });
    });
    pickler.finish()
}

/// Puts one of the fields of the metadata.
type Put = for<'a> fn(&mut Pickler<'a>, &[Whole<'a>]);

const FIELDS: [(&str, Put); 5] = [
    ("state_dict_metadata", put_tensors),
    ("planner_data", put_names),
    ("storage_data", put_places),
    ("storage_meta", |pickler, _| pickler.none()),
    ("version", |pickler, _| pickler.text(VERSION)),
];

/// The tensors of all files, in the order in which they first appear.
fn wholes<'a>(files: &[DcpFile<'a>]) -> Vec<Whole<'a>> {
    let mut wholes: Vec<Whole<'a>> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut pieces = HashSet::new();
    let mut templates = Templates::default();
    for file in files {
        let mut offset = 0;
        for tensor in &file.spec.tensors {
            let length = templates.of(tensor).len;
            let piece = Piece { tensor, file: file.relative_path, offset, length };
            offset += length;
            let share = &tensor.share;
            let empty = tensor.len == 0 && share.total > 0;
            if empty || !pieces.insert((share.name.as_str(), share.first)) {
                continue;
            }
            let number = *numbers.entry(&share.name).or_insert(wholes.len());
            match wholes.get_mut(number) {
                Some(whole) => whole.pieces.push(piece),
                None => wholes.push(Whole { pieces: vec![piece] }),
            }
        }
    }
    wholes
}

impl<'a> Whole<'a> {
    /// The first piece, which speaks for all of them where they must agree.
    fn tensor(&self) -> &'a Tensor {
        self.pieces[0].tensor
    }
}

fn put_tensors<'a>(pickler: &mut Pickler<'a>, wholes: &[Whole<'a>]) {
    pickler.dict(wholes, |pickler, whole| {
        let tensor = whole.tensor();
        pickler.text(&tensor.share.name);
        pickler.object(MODULE, "TensorStorageMetadata", |pickler| {
            pickler.dict(&["properties", "size", "chunks"], |pickler, &field| {
                pickler.text(field);
                match field {
                    "properties" => put_properties(pickler, tensor.dtype),
                    "size" => put_size(pickler, tensor.share.total),
                    _ => pickler.list(&whole.pieces, |pickler, piece| {
                        put_chunk(pickler, piece.tensor);
                    }),
                }
            });
        });
    });
}

/// The five fields that every version of torch takes; newer ones write a sixth.
fn put_properties(pickler: &mut Pickler<'_>, dtype: DType) {
    pickler.object(MODULE, "TensorProperties", |pickler| {
        pickler.mark();
        pickler.global("torch", torch_name(dtype));
        pickler.global("torch.serialization", "_get_layout");
        pickler.text("torch.strided");
        pickler.tuple1();
        pickler.reduce();
        pickler.bool_false();
        pickler.global(MODULE, "_MEM_FORMAT_ENCODING");
        pickler.int(0);
        pickler.tuple1();
        pickler.reduce();
        pickler.bool_false();
        pickler.tuple();
    });
}

fn put_chunk(pickler: &mut Pickler<'_>, tensor: &Tensor) {
    pickler.object(MODULE, "ChunkStorageMetadata", |pickler| {
        let fields = [("offsets", tensor.share.first), ("sizes", tensor.len)];
        pickler.dict(&fields, |pickler, &(field, value)| {
            pickler.text(field);
            put_size(pickler, value);
        });
    });
}

/// Where each name is in the dictionaries of the saved state: at the top.
fn put_names<'a>(pickler: &mut Pickler<'a>, wholes: &[Whole<'a>]) {
    pickler.dict(wholes, |pickler, whole| {
        let name = &whole.tensor().share.name;
        pickler.text(name);
        pickler.text(name);
        pickler.tuple1();
    });
}

fn put_places<'a>(pickler: &mut Pickler<'a>, wholes: &[Whole<'a>]) {
    let pieces: Vec<(u64, Piece<'a>)> =
        wholes.iter().flat_map(|whole| (0..).zip(whole.pieces.iter().copied())).collect();
    pickler.dict(&pieces, |pickler, &(number, piece)| {
        let share = &piece.tensor.share;
        pickler.object(MODULE, "MetadataIndex", |pickler| {
            pickler.dict(&["fqn", "offset", "index"], |pickler, &field| {
                pickler.text(field);
                match field {
                    "fqn" => pickler.text(&share.name),
                    "offset" => put_size(pickler, share.first),
                    _ => pickler.int(number),
                }
            });
        });
        pickler.object(FILESYSTEM, "_StorageInfo", |pickler| {
            pickler.dict(&["relative_path", "offset", "length"], |pickler, &field| {
                pickler.text(field);
                match field {
                    "relative_path" => pickler.text(piece.file),
                    "offset" => pickler.int(piece.offset),
                    _ => pickler.int(piece.length),
                }
            });
        });
    });
}

/// A `torch.Size` of one axis.
fn put_size(pickler: &mut Pickler<'_>, len: u64) {
    pickler.global("torch", "Size");
    pickler.int(len);
    pickler.tuple1();
    pickler.tuple1();
    pickler.reduce();
}

/// What torch calls a type.
pub(super) fn torch_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Int8 => "int8",
        DType::UInt8 => "uint8",
        DType::Float16 => "float16",
        DType::BFloat16 => "bfloat16",
        DType::Float32 => "float32",
        DType::Float64 => "float64",
    }
}
