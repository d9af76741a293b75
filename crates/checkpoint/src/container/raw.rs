//! `raw`: tensors and nothing else, from the first byte on, for the speed of the storage alone.
//!
//! Each tensor begins at a multiple of 64 bytes, with zeros in between. After the last one, again at a
//! multiple of 64, follows a JSON text, `{"tensors":[{"path":[…],"dtype":"float32","len":5,"at":64}]}`,
//! followed by 16 bytes: the text's length (u64, little-endian) and `FEEDRAW1`.

use std::sync::Arc;

use feedline_store::Object;
use serde::{Deserialize, Serialize};

use super::dcp_metadata::torch_name;
use super::stretch::Stretch;
use super::{Body, Container, Found, Image, Part};
use crate::{DType, FileSpec, Result};

const NAME: &str = "raw";
const ALIGN: u64 = 64;
const MAGIC: &[u8; 8] = b"FEEDRAW1";
const FOOTER_BYTES: u64 = 16;
/// The first read of a file, from its end: the text of some 800 tensors is in it.
const TAIL_BYTES: u64 = 64 << 10;

/// Files of nothing but tensors, and an index at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw;

/// The JSON text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    tensors: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: Vec<String>,
    dtype: String,
    len: u64,
    at: u64,
}

impl Container for Raw {
    fn extension(&self) -> &'static str {
        "bin"
    }

    fn image(&self, file: &FileSpec) -> Image {
        let mut parts = Vec::with_capacity(2 * file.tensors.len() + 1);
        let mut tensors = Vec::with_capacity(file.tensors.len());
        let mut end = 0;
        for (index, tensor) in file.tensors.iter().enumerate() {
            let at = pad(&mut parts, end);
            let (path, len) = (tensor.path.clone(), tensor.len);
            tensors.push(Entry { path, dtype: torch_name(tensor.dtype).to_owned(), len, at });
            let bytes = tensor.bytes();
            parts.push(Part { at, body: Body::Tensor { index, bytes } });
            end = at + bytes;
        }
        let at = pad(&mut parts, end);
        let text = serde_json::to_vec(&Index { tensors });
        let mut bytes = text.expect("texts and numbers are always JSON");
        let len = bytes.len() as u64;
        bytes.extend(len.to_le_bytes());
        bytes.extend(MAGIC);
        parts.push(Part { at, body: Body::Bytes { bytes: bytes.into(), holes: Vec::new() } });
        Image::new(parts)
    }

    fn index(&self, object: &mut dyn Object) -> Result<Vec<Found>> {
        let mut stretch = Stretch::whole(object, NAME)?;
        stretch.keep_tail(TAIL_BYTES)?;
        let footer_at = stretch.len().checked_sub(FOOTER_BYTES);
        let footer_at = footer_at.ok_or_else(|| stretch.damaged("no footer", 0))?;
        let footer = stretch.read(footer_at, FOOTER_BYTES, "footer")?;
        let (len, magic) = footer.split_at(8);
        let len = u64::from_le_bytes(len.try_into().expect("eight of sixteen bytes"));
        let text_at = footer_at.checked_sub(len).filter(|_| magic == MAGIC);
        let text_at = text_at.ok_or_else(|| stretch.damaged("no footer", footer_at))?;
        let text = stretch.read(text_at, len, "index")?;
        let index: Index = serde_json::from_slice(&text)
            .map_err(|_| stretch.damaged("an index that is not a JSON map of tensors", text_at))?;
        let mut found = index
            .tensors
            .into_iter()
            .map(|entry| {
                entry.found(text_at).ok_or_else(|| stretch.damaged("an invalid tensor", text_at))
            })
            .collect::<Result<Vec<Found>>>()?;
        found.sort_by_key(|tensor| tensor.at);
        Ok(found)
    }
}

impl Entry {
    /// The tensor, if it is of a known type and ends before `end`.
    fn found(self, end: u64) -> Option<Found> {
        let dtype = DType::ALL.into_iter().find(|dtype| torch_name(*dtype) == self.dtype)?;
        let bytes = self.len.checked_mul(dtype.size_bytes())?;
        let inside = self.at.checked_add(bytes)? <= end;
        let Entry { path, len, at, .. } = self;
        inside.then_some(Found { path, dtype, shape: vec![len], at })
    }
}

/// Adds zeros up to the next multiple, which it gives.
fn pad(parts: &mut Vec<Part>, end: u64) -> u64 {
    let at = end.next_multiple_of(ALIGN);
    if at > end {
        let bytes = Arc::from(vec![0; (at - end) as usize]);
        parts.push(Part { at: end, body: Body::Bytes { bytes, holes: Vec::new() } });
    }
    at
}
