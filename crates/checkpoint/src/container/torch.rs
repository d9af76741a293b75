//! `torch`: what `torch.save` writes for a dictionary of tensors.
//!
//! The bytes are those of torch 2.15, but for the archive's `serialization_id`, into which torch mixes
//! the checksums of all members: here it depends on their names and sizes. Tensors are in the order of
//! the file's specification, one storage each. In a file by torch itself, tensors that share a storage
//! are found at their own places in it; those that are not contiguous are refused.

use std::collections::HashMap;

use feedline_store::Object;

use super::archive::{ALIGN, ArchiveWriter, Payload};
use super::pickle::Pickler;
use super::stretch::Stretch;
use super::{Container, Found, Image, torch_tensors};
use crate::{DType, FileSpec, Result, Share, Tensor};

const NAME: &str = "torch";

/// Files by `torch.save`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torch;

impl Container for Torch {
    fn extension(&self) -> &'static str {
        "pt"
    }

    fn image(&self, file: &FileSpec) -> Image {
        archive(&pickle(&file.tensors), &file.tensors)
    }

    fn index(&self, object: &mut dyn Object) -> Result<Vec<Found>> {
        let mut stretch = Stretch::whole(object, NAME)?;
        torch_tensors::list(&mut stretch)
    }
}

/// The archive of one tensor without a name.
pub(super) fn lone_tensor(dtype: DType, len: u64) -> Image {
    let tensor = Tensor {
        path: Vec::new(),
        dtype,
        len,
        share: Share { name: String::new(), total: len, first: 0 },
    };
    let mut pickler = Pickler::new();
    put_tensor(&mut pickler, 0, &tensor);
    archive(&pickler.finish(), &[tensor])
}

/// The class of a type's storages.
pub(super) fn storage_class(dtype: DType) -> &'static str {
    match dtype {
        DType::Int8 => "CharStorage",
        DType::UInt8 => "ByteStorage",
        DType::Float16 => "HalfStorage",
        DType::BFloat16 => "BFloat16Storage",
        DType::Float32 => "FloatStorage",
        DType::Float64 => "DoubleStorage",
    }
}

fn archive(pickle: &[u8], tensors: &[Tensor]) -> Image {
    let mut archive = ArchiveWriter::default();
    archive.add("archive/data.pkl", Payload::Bytes(pickle));
    archive.add("archive/.format_version", Payload::Bytes(b"1"));
    archive.add("archive/.storage_alignment", Payload::Bytes(ALIGN.to_string().as_bytes()));
    archive.add("archive/byteorder", Payload::Bytes(b"little"));
    for (index, tensor) in tensors.iter().enumerate() {
        let bytes = tensor.bytes();
        archive.add(&format!("archive/data/{index}"), Payload::Tensor { index, bytes });
    }
    archive.add("archive/version", Payload::Bytes(b"3\n"));
    let id = serialization_id(archive.directory());
    archive.add("archive/.data/serialization_id", Payload::Bytes(id.as_bytes()));
    archive.finish()
}

/// Forty digits, as torch has them, from the directory of all other members: its FNV-1a hash and its
/// CRC-32.
fn serialization_id(directory: &[u8]) -> String {
    let hash = directory.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:020}{:020}", crc32fast::hash(directory))
}

/// Dictionaries in dictionaries, each a list of its items. The first is the outermost.
struct Tree<'a> {
    dicts: Vec<Vec<(&'a str, Item)>>,
}

#[derive(Clone, Copy)]
enum Item {
    Tensor(usize),
    Dict(usize),
}

impl<'a> Tree<'a> {
    fn of(tensors: &'a [Tensor]) -> Tree<'a> {
        let mut dicts = vec![Vec::new()];
        let mut below = HashMap::new();
        for (index, tensor) in tensors.iter().enumerate() {
            let (last, folders) = match tensor.path.split_last() {
                Some((last, folders)) => (last.as_str(), folders),
                None => ("", [].as_slice()),
            };
            let mut dict = 0;
            for key in folders {
                dict = *below.entry((dict, key.as_str())).or_insert_with(|| {
                    let new = dicts.len();
                    dicts[dict].push((key.as_str(), Item::Dict(new)));
                    dicts.push(Vec::new());
                    new
                });
            }
            dicts[dict].push((last, Item::Tensor(index)));
        }
        Tree { dicts }
    }

    fn put(&self, pickler: &mut Pickler<'a>, dict: usize, tensors: &[Tensor]) {
        pickler.dict(&self.dicts[dict], |pickler, &(key, item)| {
            pickler.text(key);
            match item {
                Item::Tensor(index) => put_tensor(pickler, index, &tensors[index]),
                Item::Dict(dict) => self.put(pickler, dict, tensors),
            }
        });
    }
}

fn pickle(tensors: &[Tensor]) -> Vec<u8> {
    let mut pickler = Pickler::new();
    Tree::of(tensors).put(&mut pickler, 0, tensors);
    pickler.finish()
}

/// The call that makes a tensor of all of storage number `index`.
fn put_tensor(pickler: &mut Pickler<'_>, index: usize, tensor: &Tensor) {
    pickler.global("torch._utils", "_rebuild_tensor_v2");
    pickler.mark();
    pickler.mark();
    pickler.text("storage");
    pickler.global("torch", storage_class(tensor.dtype));
    pickler.fresh_text(&index.to_string());
    pickler.text("cpu");
    pickler.int(tensor.len);
    pickler.tuple();
    pickler.persistent();
    pickler.int(0);
    pickler.int(tensor.len);
    pickler.tuple1();
    pickler.int(1);
    pickler.tuple1();
    pickler.bool_false();
    pickler.global("collections", "OrderedDict");
    pickler.empty_tuple();
    pickler.reduce();
    pickler.tuple();
    pickler.reduce();
}
