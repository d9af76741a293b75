//! `safetensors`: named tensors one after another after a JSON header, as the reference writes them.
//!
//! Names are the keys of a tensor's path with dots between them. The reference puts wider types first
//! and then goes by name, which is what keeps every tensor aligned; so tensors are not in the order
//! of the specification. There are no checksums.

use std::cmp::Reverse;
use std::sync::Arc;

use feedline_formats::safetensors::header;
use feedline_store::Object;

use super::stretch::Stretch;
use super::{Body, Container, Found, Image, Part};
use crate::{DType, FileSpec, Result};

const NAME: &str = "safetensors";
/// The first read of a file: the header of some 500 tensors is in it.
const FIRST_BYTES: u64 = 64 << 10;

/// Files by safetensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Safetensors;

impl Container for Safetensors {
    fn extension(&self) -> &'static str {
        "safetensors"
    }

    fn image(&self, file: &FileSpec) -> Image {
        let mut order: Vec<(usize, String)> =
            file.tensors.iter().map(|tensor| tensor.path.join(".")).enumerate().collect();
        order.sort_by(|a, b| {
            let key = |it: &(usize, String)| Reverse(rank(file.tensors[it.0].dtype));
            (key(a), &a.1).cmp(&(key(b), &b.1))
        });
        let mut at = 0;
        let mut entries = Vec::with_capacity(order.len());
        for (index, name) in &order {
            let tensor = &file.tensors[*index];
            let end = at + tensor.bytes();
            entries.push(header::entry(name, type_name(tensor.dtype), &[tensor.len], at..end));
            at = end;
        }
        let bytes: Arc<[u8]> = header::build(&entries).into();
        let mut at = bytes.len() as u64;
        let mut parts = Vec::with_capacity(order.len() + 1);
        parts.push(Part { at: 0, body: Body::Bytes { bytes, holes: Vec::new() } });
        for (index, _) in order {
            let bytes = file.tensors[index].bytes();
            parts.push(Part { at, body: Body::Tensor { index, bytes } });
            at += bytes;
        }
        Image::new(parts)
    }

    fn index(&self, object: &mut dyn Object) -> Result<Vec<Found>> {
        let mut stretch = Stretch::whole(object, NAME)?;
        let len = stretch.len();
        let mut first = stretch.read(0, len.min(FIRST_BYTES), "header")?;
        let end = header::LENGTH_BYTES + header::length(&first, len)?;
        if end > first.len() as u64 {
            first = stretch.read(0, end, "header")?;
        }
        let text = &first[header::LENGTH_BYTES as usize..end as usize];
        let found = header::list(text, end, len)?.into_iter().map(|tensor| {
            let dtype = DType::ALL.into_iter().find(|dtype| type_name(*dtype) == tensor.dtype);
            let dtype = dtype.ok_or_else(|| {
                stretch.unsupported(format!("tensor {:?} of type {}", tensor.name, tensor.dtype))
            })?;
            let path = vec![tensor.name];
            Ok(Found { path, dtype, shape: tensor.shape, at: tensor.offset })
        });
        found.collect()
    }
}

fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Int8 => "I8",
        DType::UInt8 => "U8",
        DType::Float16 => "F16",
        DType::BFloat16 => "BF16",
        DType::Float32 => "F32",
        DType::Float64 => "F64",
    }
}

/// The reference's order of types.
fn rank(dtype: DType) -> u8 {
    match dtype {
        DType::UInt8 => 0,
        DType::Int8 => 1,
        DType::Float16 => 2,
        DType::BFloat16 => 3,
        DType::Float32 => 4,
        DType::Float64 => 5,
    }
}
