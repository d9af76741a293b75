//! `dcp`: the data files of torch's distributed checkpoints.
//!
//! Every tensor is a whole archive by `torch.save`, one after another; which is which says the file
//! `.metadata` beside them ([`dcp_metadata`](super::dcp_metadata)). Archives of tensors of one type and
//! length are the same but for the tensor and its checksum, so their bytes are shared.

use std::collections::HashMap;
use std::sync::Arc;

use feedline_store::Object;

use super::directory::Directory;
use super::stretch::Stretch;
use super::{Body, Container, Found, Hole, Image, Part, torch, torch_tensors};
use crate::{DType, FileSpec, Result, Tensor};

pub(super) const NAME: &str = "dcp";
/// The end of an archive of one tensor, from its directory on, is less than this.
pub(super) const TAIL_BYTES: u64 = 1024;

/// Data files of torch's distributed checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dcp;

/// A data file of a checkpoint and what is in it.
#[derive(Debug, Clone, Copy)]
pub struct DcpFile<'a> {
    /// Its name in the checkpoint's folder; torch's own are `__{rank}_0.distcp`.
    pub relative_path: &'a str,
    /// The tensors in the file.
    pub spec: &'a FileSpec,
}

impl Container for Dcp {
    fn extension(&self) -> &'static str {
        "distcp"
    }

    fn image(&self, file: &FileSpec) -> Image {
        let mut templates = Templates::default();
        let mut parts = Vec::with_capacity(3 * file.tensors.len());
        let mut at = 0;
        for (index, tensor) in file.tensors.iter().enumerate() {
            let template = templates.of(tensor);
            parts.extend(template.parts.iter().map(|part| moved(part, at, index)));
            at += template.len;
        }
        Image::new(parts)
    }

    /// The tensors have no names here, so their paths are empty.
    fn index(&self, object: &mut dyn Object) -> Result<Vec<Found>> {
        let mut stretch = Stretch::whole(object, NAME)?;
        let mut found = Vec::new();
        let mut end = stretch.len();
        // Only an archive's end says where it begins, so they are found from the last to the first.
        while end > 0 {
            let mut archive = stretch.part(0, end)?;
            let directory = Directory::read(&mut archive, TAIL_BYTES)?;
            let mut tensors = torch_tensors::list_archive(&mut archive, &directory)?;
            tensors.reverse();
            found.append(&mut tensors);
            end = directory.archive_at;
        }
        found.reverse();
        Ok(found)
    }
}

/// The archives of all types and lengths that were asked for.
#[derive(Default)]
pub(super) struct Templates {
    by_size: HashMap<(DType, u64), Image>,
}

impl Templates {
    /// The archive of a tensor, as if it were alone in a file.
    pub(super) fn of(&mut self, tensor: &Tensor) -> &Image {
        let (dtype, len) = (tensor.dtype, tensor.len);
        self.by_size.entry((dtype, len)).or_insert_with(|| torch::lone_tensor(dtype, len))
    }
}

/// The part of an archive that begins at `by`, for tensor number `index`.
fn moved(part: &Part, by: u64, index: usize) -> Part {
    let body = match &part.body {
        Body::Bytes { bytes, holes } => Body::Bytes {
            bytes: Arc::clone(bytes),
            holes: holes.iter().map(|hole| Hole { at: hole.at, tensor: index }).collect(),
        },
        Body::Tensor { bytes, .. } => Body::Tensor { index, bytes: *bytes },
    };
    Part { at: by + part.at, body }
}
