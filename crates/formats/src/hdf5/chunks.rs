//! Chunked datasets: which chunks a sample needs, and where they are.

use std::cmp::Ordering;

use super::arrays::{Entry, ExtensibleArray, FixedArray};
use super::blocks::{Blocks, Kept};
use super::dataset::Space;
use super::fields::{FORMAT, Fields, wrong};
use super::tree2::Tree2;
use crate::Decoded;
use crate::error::check_limit;

/// Records of version 2 B-trees that lead to chunks.
const PLAIN_CHUNKS: u8 = 10;
const FILTERED_CHUNKS: u8 = 11;

/// Which index a dataset has and where it begins; `None` if it has no chunks yet.
#[derive(Debug, Clone, Copy)]
pub(super) enum IndexAt {
    Single { chunk: Option<u64>, filtered: Option<(u64, u32)> },
    Implicit(Option<u64>),
    FixedArray(Option<u64>),
    ExtensibleArray(Option<u64>),
    Tree1(Option<u64>),
    Tree2(Option<u64>),
}

/// An index; those with a header of their own read it when the first chunk is looked for.
enum Index {
    None,
    Single(u64, Option<(u64, u32)>),
    Implicit(u64),
    FixedArray(FixedArray),
    ExtensibleArray(ExtensibleArray),
    Tree1(u64),
    Tree2(Tree2),
    NotYet(IndexAt),
}

/// A chunk in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) mask: u32,
}

/// Gets a chunk's coordinates, counted in chunks, and where it is unless it was never written.
/// The blocks come along to read from.
pub(super) type VisitChunk<'v> =
    dyn FnMut(&mut Blocks<'_>, &[u64], Option<Stored>) -> Decoded<()> + 'v;

/// The chunks of a dataset. Holds the blocks of the index on the way to the last chunk, no more.
pub(super) struct Chunks {
    dims: Vec<u64>,
    bytes: u64,
    filtered: bool,
    /// Chunks along each axis.
    counts: Vec<u64>,
    /// What a step along an axis adds to the number of a chunk.
    strides: Vec<u64>,
    unfiltered_edges: bool,
    shape: Vec<u64>,
    index: Index,
    kept: Kept,
    place: u64,
}

/// What a layout message says of chunks.
pub(super) struct ChunkLayout {
    pub(super) dims: Vec<u64>,
    pub(super) index: IndexAt,
    /// Chunks that stick out of the dataset were not filtered.
    pub(super) unfiltered_edges: bool,
    pub(super) place: u64,
}

impl Chunks {
    /// `bytes_each` is the size of an element.
    pub(super) fn new(
        layout: ChunkLayout,
        space: &Space,
        bytes_each: u64,
        filtered: bool,
    ) -> Decoded<Chunks> {
        let ChunkLayout { dims, index, unfiltered_edges, place } = layout;
        if dims.len() != space.dims.len() || dims.contains(&0) {
            return Err(wrong(place, "a chunk with the axes of the dataset", format!("{dims:?}")));
        }
        let bytes = dims.iter().try_fold(bytes_each, |bytes, &dim| bytes.checked_mul(dim));
        let Some(bytes) = bytes.filter(|&bytes| bytes <= u64::from(u32::MAX)) else {
            return Err(wrong(place, "a chunk below 4 GiB", format!("{dims:?}")));
        };
        let per_axis = |dim: u64, chunk: &u64| dim.div_ceil(*chunk);
        let counts = space.dims.iter().zip(&dims).map(|(&dim, chunk)| per_axis(dim, chunk));
        let counts: Vec<u64> = counts.collect();
        let limits = space.limits.iter().zip(&dims);
        let limits: Vec<_> =
            limits.map(|(limit, chunk)| limit.map(|dim| per_axis(dim, chunk))).collect();
        let numbered = !matches!(index, IndexAt::Tree1(_) | IndexAt::Tree2(_));
        let strides = strides(&limits).or(if numbered { None } else { Some(Vec::new()) });
        let strides = strides.ok_or_else(|| wrong(place, "fewer chunks", format!("{limits:?}")))?;
        let shape = space.dims.clone();
        Ok(Chunks {
            dims,
            bytes,
            filtered,
            counts,
            strides,
            unfiltered_edges,
            shape,
            index: Index::NotYet(index),
            kept: Kept::default(),
            place,
        })
    }

    /// Size of a chunk without filters.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Shows every chunk that holds a part of sample `index`.
    pub(super) fn of_sample(
        &mut self,
        blocks: &mut Blocks<'_>,
        index: u64,
        visit: &mut VisitChunk<'_>,
    ) -> Decoded<()> {
        let needed = self.counts[1..].iter().try_fold(1u64, |all, &count| all.checked_mul(count));
        // Every chunk has an entry in some index: more chunks than bytes are not in the file.
        let limit = blocks.window.len();
        let needed = needed.unwrap_or(u64::MAX);
        check_limit((FORMAT, "index of a sample's chunks"), self.place, needed, limit)?;
        let mut at = vec![0; self.dims.len()];
        at[0] = index / self.dims[0];
        for _ in 0..needed {
            let stored = self.find(blocks, &at)?;
            visit(blocks, &at, stored)?;
            for axis in (1..at.len()).rev() {
                at[axis] += 1;
                if at[axis] < self.counts[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Ok(())
    }

    /// The chunk at these coordinates.
    fn find(&mut self, blocks: &mut Blocks<'_>, at: &[u64]) -> Decoded<Option<Stored>> {
        if let Index::NotYet(index) = self.index {
            self.index = load(index, blocks, self.filtered)?;
        }
        let steps = at.iter().zip(&self.strides);
        let number =
            steps.fold(0u64, |sum, (at, stride)| sum.saturating_add(at.saturating_mul(*stride)));
        let kept = &mut self.kept;
        let found = match &self.index {
            Index::None | Index::NotYet(_) => None,
            Index::Single(offset, filtered) => Some(Entry { offset: *offset, filtered: *filtered }),
            Index::Implicit(start) => {
                let offset = number.checked_mul(self.bytes).and_then(|at| at.checked_add(*start));
                let offset = offset.ok_or_else(|| wrong(self.place, "fewer chunks", number))?;
                Some(Entry { offset, filtered: None })
            }
            Index::FixedArray(array) => array.find(blocks, kept, number)?,
            Index::ExtensibleArray(array) => array.find(blocks, kept, number)?,
            Index::Tree1(root) => find_in_tree(blocks, kept, *root, &self.dims, at)?,
            Index::Tree2(tree) => find_in_tree2(blocks, kept, tree, at, self.filtered)?,
        };
        let Some(Entry { offset, filtered }) = found else { return Ok(None) };
        let (len, mask) = filtered.unwrap_or((self.bytes, u32::MAX));
        let edge = self.unfiltered_edges && self.sticks_out(at);
        let mask = if edge || !self.filtered { u32::MAX } else { mask };
        blocks.window.check_end(offset.saturating_add(len))?;
        Ok(Some(Stored { offset, len, mask }))
    }

    fn sticks_out(&self, at: &[u64]) -> bool {
        let axes = at.iter().zip(&self.dims).zip(&self.shape);
        axes.into_iter().any(|((at, chunk), dim)| (at + 1).saturating_mul(*chunk) > *dim)
    }
}

fn load(index: IndexAt, blocks: &mut Blocks<'_>, filtered: bool) -> Decoded<Index> {
    Ok(match index {
        IndexAt::Single { chunk: Some(at), filtered } => Index::Single(at, filtered),
        IndexAt::Implicit(Some(at)) => Index::Implicit(at),
        IndexAt::FixedArray(Some(at)) => Index::FixedArray(FixedArray::open(blocks, at)?),
        IndexAt::ExtensibleArray(Some(at)) => {
            Index::ExtensibleArray(ExtensibleArray::open(blocks, at)?)
        }
        IndexAt::Tree1(Some(at)) => Index::Tree1(at),
        IndexAt::Tree2(Some(at)) => {
            let kind = if filtered { FILTERED_CHUNKS } else { PLAIN_CHUNKS };
            Index::Tree2(Tree2::open(blocks, at, kind)?)
        }
        _ => Index::None,
    })
}

/// Chunks are numbered as if the dataset had its largest size, the unlimited axis being the
/// slowest. `None` if there are too many to number.
fn strides(limits: &[Option<u64>]) -> Option<Vec<u64>> {
    let mut strides = vec![0; limits.len()];
    let mut stride = 1u64;
    for (axis, limit) in limits.iter().enumerate().rev() {
        if let Some(count) = limit {
            strides[axis] = stride;
            stride = stride.checked_mul(*count)?;
        }
    }
    let unlimited = limits.iter().position(Option::is_none);
    if let Some(axis) = unlimited {
        strides[axis] = stride;
    }
    Some(strides)
}

/// The chunk at coordinates `at` in a version 1 B-tree, whose keys are coordinates in elements.
fn find_in_tree(
    blocks: &mut Blocks<'_>,
    kept: &mut Kept,
    root: u64,
    dims: &[u64],
    at: &[u64],
) -> Decoded<Option<Entry>> {
    let address = blocks.addressing.address_bytes;
    let (head, key) = (8 + 2 * address, 16 + 8 * dims.len());
    let wanted: Vec<u64> = at.iter().zip(dims).map(|(at, dim)| at * dim).collect();
    let (mut offset, mut slot, mut above) = (root, 0, None);
    loop {
        let load = |blocks: &mut Blocks<'_>| tree_node(blocks, offset, head, key);
        let node = kept.block(slot, offset, blocks, load)?;
        let level = node[5];
        if above.is_some_and(|above| level.checked_add(1) != Some(above)) {
            return Err(wrong(offset + 5, "the level below", level));
        }
        let entries = (node.len() - head) / (key + address);
        let coordinates = |i: usize| {
            let at = head + i * (key + address) + 8;
            node[at..at + 8 * dims.len()]
                .as_chunks::<8>()
                .0
                .iter()
                .map(|at| u64::from_le_bytes(*at))
        };
        let not_behind = |i: usize| coordinates(i).le(wanted.iter().copied());
        let (mut low, mut high) = (0, entries);
        while low < high {
            let middle = low.midpoint(high);
            if not_behind(middle) { low = middle + 1 } else { high = middle }
        }
        let Some(last) = low.checked_sub(1) else { return Ok(None) };
        let place = head + last * (key + address);
        let mut fields = Fields::new(&node[place..], offset + place as u64, blocks.addressing);
        let (len, mask) = (u64::from(fields.u32()?), fields.u32()?);
        fields.skip(key - 8)?;
        let child = fields.defined("a child's address")?;
        if level == 0 {
            let exact = coordinates(last).eq(wanted.iter().copied());
            return Ok(exact.then_some(Entry { offset: child, filtered: Some((len, mask)) }));
        }
        (offset, slot, above) = (child, slot + 1, Some(level));
    }
}

/// Chunks that a node has room for, as HDF5 makes it.
const TREE_ENTRIES: usize = 64;

/// The used part of a node, its last key left out.
fn tree_node(blocks: &mut Blocks<'_>, offset: u64, head: usize, key: usize) -> Decoded<Vec<u8>> {
    let room = head + TREE_ENTRIES * (key + blocks.addressing.address_bytes) + key;
    blocks.speculate(offset, room as u64)?;
    let block = blocks.get(offset, head as u64)?;
    let mut fields = blocks.fields(&block, offset);
    // A node's type, 1 for chunks, is where other blocks have their version.
    fields.begins("TREE", 1)?;
    fields.skip(1)?;
    let entries = usize::from(fields.u16()?);
    let len = head + entries * (key + blocks.addressing.address_bytes);
    blocks.get(offset, len as u64)
}

/// The chunk at coordinates `at` in a version 2 B-tree, whose keys are coordinates in chunks.
fn find_in_tree2(
    blocks: &mut Blocks<'_>,
    kept: &mut Kept,
    tree: &Tree2,
    at: &[u64],
    filtered: bool,
) -> Decoded<Option<Entry>> {
    let addressing = blocks.addressing;
    let keys = 8 * at.len();
    let head = (tree.record_bytes() as usize).checked_sub(keys);
    let fixed = addressing.address_bytes + if filtered { 4 } else { 0 };
    let Some(size_bytes) = head.and_then(|head| head.checked_sub(fixed)) else {
        return Err(wrong(blocks.addressing.base, "longer records", tree.record_bytes()));
    };
    let compare = |record: &[u8]| -> Ordering {
        let keys = &record[record.len() - keys..];
        let keys = keys.as_chunks::<8>().0.iter().map(|key| u64::from_le_bytes(*key));
        keys.cmp(at.iter().copied())
    };
    let Some((record, place)) = tree.find(blocks, kept, compare)? else { return Ok(None) };
    let mut fields = Fields::new(record, place, addressing);
    let Some(offset) = fields.address()? else { return Ok(None) };
    let filtered = match filtered {
        true => Some((fields.uint(size_bytes)?, fields.u32()?)),
        false => None,
    };
    Ok(Some(Entry { offset, filtered }))
}
