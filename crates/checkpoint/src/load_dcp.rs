//! Loading from a distributed checkpoint, by as many ranks as there are now: each finds its part of
//! every tensor in whatever pieces it was saved, and reads those bytes and no others.

use std::collections::{BTreeMap, HashMap};

use feedline_store::{Object, Store};

use crate::load::{LoadExtent, LoadFile, LoadPlan, Wrong};
use crate::{
    CheckpointError, ContainerError, DType, DcpChunk, DcpTensor, FileSpec, Tensor, find_dcp_chunk,
    read_dcp_metadata,
};

/// The file that describes a distributed checkpoint.
pub const DCP_METADATA_NAME: &str = ".metadata";
/// Longest that is read; one of a thousand ranks takes some ten MiB.
const METADATA_BYTES_MAX: u64 = 256 << 20;

impl LoadPlan {
    /// Finds the tensors of `specs` in the distributed checkpoint in `folder`.
    ///
    /// What every one of the `saved_ranks` had for itself, a tensor of its own or a piece of one that
    /// grows with the ranks, is dealt out again if there are more or fewer ranks now.
    pub fn of_dcp(
        store: &dyn Store,
        folder: &str,
        saved_ranks: u32,
        mut specs: Vec<FileSpec>,
    ) -> Result<LoadPlan, CheckpointError> {
        let key = format!("{folder}/{DCP_METADATA_NAME}");
        let broken = |source| CheckpointError::Container { file: store.locate(&key), source };
        let Some(len) = store.size(&key)? else {
            return Err(CheckpointError::Incomplete { folder: store.locate(folder) });
        };
        if len > METADATA_BYTES_MAX {
            let (container, what) = ("dcp", format!("{len} bytes of metadata"));
            return Err(broken(ContainerError::Unsupported { container, what }));
        }
        let mut bytes = vec![0; len as usize];
        store.open(&key)?.read_exact_at(0, &mut bytes)?;
        let index = read_dcp_metadata(&bytes).map_err(broken)?;
        let by_name: HashMap<&str, &DcpTensor> =
            index.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        let mut archives = Archives { store, folder, open: None, starts: HashMap::new() };
        let mut files: BTreeMap<String, Vec<LoadExtent>> = BTreeMap::new();
        for (file, spec) in specs.iter_mut().enumerate() {
            for (place, tensor) in spec.tensors.iter_mut().enumerate() {
                redeal(&mut tensor.share.name, saved_ranks);
                let saved = by_name.get(tensor.share.name.as_str());
                settle(tensor, saved.copied(), saved_ranks)
                    .map_err(|wrong| wrong.into_error(store.locate(folder)))?;
                // One file holds tensors of many, so their own keys would not tell them apart.
                tensor.path = vec![tensor.share.name.clone()];
                let saved = saved.expect("settled above");
                for (chunk, stretch) in pieces(tensor, saved) {
                    let start = archives.start(saved.dtype, chunk)?;
                    let name = format!("{folder}/{}", chunk.file);
                    let at = start + stretch.at;
                    let (bytes, offset) = (stretch.bytes, stretch.offset);
                    let extent = LoadExtent { at, bytes, file, index: place, offset };
                    files.entry(name).or_default().push(extent);
                }
            }
        }
        let files = files.into_iter().map(|(key, mut extents)| {
            extents.sort_by_key(|extent| extent.at);
            LoadFile { key, extents }
        });
        Ok(LoadPlan { files: files.collect(), specs })
    }
}

/// The name of a tensor that every rank had for itself, if there were fewer ranks than now.
fn redeal(name: &mut String, saved_ranks: u32) {
    if let Some((front, rank)) = name.rsplit_once(".rank")
        && let Ok(rank) = rank.parse::<u32>()
        && rank >= saved_ranks
    {
        *name = format!("{front}.rank{}", rank % saved_ranks.max(1));
    }
}

/// Makes sure that a tensor can be had, and moves it to where its bytes are.
///
/// Parts of a tensor are rounded down, so that the sum of all parts may lack a few elements of one
/// of another number: the last rank goes without what was not saved.
fn settle(tensor: &mut Tensor, saved: Option<&DcpTensor>, saved_ranks: u32) -> Result<(), Wrong> {
    let wrong = |found: String| Wrong {
        tensor: tensor.share.name.clone(),
        expected: format!("{} of {:?}", tensor.share.total, tensor.dtype),
        found,
    };
    let Some(saved) = saved else { return Err(wrong("none".into())) };
    let &[total] = saved.shape.as_slice() else {
        return Err(wrong(format!("{:?} of {:?}", saved.shape, saved.dtype)));
    };
    let parts = tensor.share.total.checked_div(tensor.len).unwrap_or(1);
    let rounded = total.abs_diff(tensor.share.total) < parts.max(u64::from(saved_ranks));
    let fits = total == tensor.share.total || (rounded && tensor.share.first < total);
    let pieces = total.checked_div(tensor.len).filter(|_| total.is_multiple_of(tensor.len.max(1)));
    if saved.dtype != tensor.dtype || !(fits || pieces.is_some_and(|pieces| pieces > 0)) {
        return Err(wrong(format!("{total} of {:?}", saved.dtype)));
    }
    if let Some(pieces) = pieces.filter(|_| !fits) {
        tensor.share.first = tensor.share.first / tensor.len % pieces * tensor.len;
    }
    tensor.share.total = total;
    tensor.len = tensor.len.min(total - tensor.share.first);
    Ok(())
}

/// A stretch of a piece that belongs to a tensor, in bytes.
struct Stretch {
    /// Where it begins in the piece.
    at: u64,
    bytes: u64,
    /// Where it belongs in the rank's tensor.
    offset: u64,
}

/// The pieces that a rank's tensor is made of.
fn pieces<'a>(
    tensor: &Tensor,
    saved: &'a DcpTensor,
) -> impl Iterator<Item = (&'a DcpChunk, Stretch)> {
    let size = tensor.dtype.size_bytes();
    let (first, end) = (tensor.share.first, tensor.share.first + tensor.len);
    saved.chunks.iter().filter_map(move |chunk| {
        let (from, len) = (*chunk.offsets.first()?, *chunk.sizes.first()?);
        let (start, stop) = (from.max(first), (from + len).min(end));
        (start < stop).then(|| {
            let stretch = Stretch {
                at: (start - from) * size,
                bytes: (stop - start) * size,
                offset: (start - first) * size,
            };
            (chunk, stretch)
        })
    })
}

/// Where tensors begin in the archives that they are kept in.
struct Archives<'a> {
    store: &'a dyn Store,
    folder: &'a str,
    open: Option<(std::sync::Arc<str>, Box<dyn Object>)>,
    /// Archives of one type and length are alike, so one of each is looked into.
    starts: HashMap<(DType, Vec<u64>, u64), u64>,
}

impl Archives<'_> {
    fn start(&mut self, dtype: DType, chunk: &DcpChunk) -> Result<u64, CheckpointError> {
        let kind = (dtype, chunk.sizes.clone(), chunk.length);
        if let Some(start) = self.starts.get(&kind) {
            return Ok(chunk.offset + start);
        }
        let key = format!("{}/{}", self.folder, chunk.file);
        let object = match &mut self.open {
            Some((file, object)) if *file == chunk.file => object,
            other => &mut other.insert((chunk.file.clone(), self.store.open(&key)?)).1,
        };
        let found = find_dcp_chunk(&mut **object, chunk).map_err(|source| {
            CheckpointError::Container { file: self.store.locate(&key), source }
        })?;
        self.starts.insert(kind, found.at - chunk.offset);
        Ok(found.at)
    }
}
