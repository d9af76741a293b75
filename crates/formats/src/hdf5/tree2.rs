//! Version 2 B-trees: the index of names in a large group, and of chunks with two unlimited axes.

use std::cmp::Ordering;

use super::blocks::{Blocks, Budget, Kept};
use super::fields::{Addressing, Fields, unsupported, wrong};
use crate::Decoded;

/// Signature, version and type before the records of a node, checksum after them.
const NODE_FRAME: u64 = 10;

/// More levels than 2^64 records could fill.
const MOST_LEVELS: u16 = 64;

/// A tree whose header has been read.
pub(super) struct Tree2 {
    kind: u8,
    node_bytes: u64,
    record_bytes: u64,
    root: Option<Node>,
    /// Widths in the pointers to the children of a node of depth 1, 2, …
    pointers: Vec<Pointer>,
}

/// How a pointer to a child is written.
struct Pointer {
    count_bytes: usize,
    total_bytes: usize,
}

/// Gets a record, its place, and how it writes addresses.
pub(super) type VisitRecord<'v> = dyn FnMut(&[u8], u64, Addressing) -> Decoded<()> + 'v;

#[derive(Clone, Copy)]
struct Node {
    offset: u64,
    records: u64,
    depth: usize,
}

impl Tree2 {
    /// Reads the header at `offset` of a tree with records of that kind.
    pub(super) fn open(blocks: &mut Blocks<'_>, offset: u64, kind: u8) -> Decoded<Tree2> {
        let widths = blocks.addressing;
        let len = 22 + widths.address_bytes + widths.length_bytes;
        let block = blocks.checked(offset, len as u64, "B-tree header")?;
        let mut fields = blocks.fields(&block, offset);
        fields.begins("BTHD", 0)?;
        let place = fields.place();
        match fields.u8()? {
            found if found == kind => {}
            found => return Err(unsupported(place, format!("B-tree with records {found}"))),
        }
        let node_bytes = u64::from(fields.u32()?);
        let record_bytes = u64::from(fields.u16()?);
        let place = fields.place();
        let depth = fields.u16()?;
        fields.skip(2)?;
        let root = fields.address()?;
        let records = u64::from(fields.u16()?);
        if record_bytes == 0 || depth > MOST_LEVELS {
            return Err(wrong(place, "a B-tree of a few levels", depth));
        }
        let root = root.map(|offset| Node { offset, records, depth: usize::from(depth) });
        let pointers = pointers(node_bytes, record_bytes, depth, widths.address_bytes as u64);
        Ok(Tree2 { kind, node_bytes, record_bytes, root, pointers })
    }

    pub(super) fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Shows every record to `visit`, with its place.
    pub(super) fn walk(&self, blocks: &mut Blocks<'_>, visit: &mut VisitRecord<'_>) -> Decoded<()> {
        let mut budget = Budget::of(blocks);
        let mut nodes: Vec<Node> = self.root.into_iter().collect();
        while let Some(node) = nodes.pop() {
            budget.spend(self.len(node, blocks)?, node.offset)?;
            let block = self.load(blocks, node)?;
            let start = node.offset + 6;
            for i in 0..node.records {
                let at = i * self.record_bytes;
                visit(self.record(&block, i), start + at, blocks.addressing)?;
            }
            if node.depth > 0 {
                for i in 0..=node.records {
                    nodes.push(self.child(&block, node, i, blocks)?);
                }
            }
        }
        Ok(())
    }

    /// The record for which `compare` says equal, which tells how a record compares to the requested
    /// one, and its place.
    pub(super) fn find<'k>(
        &self,
        blocks: &mut Blocks<'_>,
        kept: &'k mut Kept,
        compare: impl Fn(&[u8]) -> Ordering,
    ) -> Decoded<Option<(&'k [u8], u64)>> {
        let Some(mut node) = self.root else { return Ok(None) };
        loop {
            let load = |blocks: &mut Blocks<'_>| self.load(blocks, node);
            let block = kept.block(node.depth, node.offset, blocks, load)?;
            // The same node with another number of records is another way to read its bytes.
            if block.len() as u64 != self.len(node, blocks)? {
                return Err(wrong(node.offset, "one length of a node", block.len()));
            }
            let (mut low, mut high) = (0, node.records);
            let mut equal = None;
            while low < high && equal.is_none() {
                let middle = low.midpoint(high);
                match compare(self.record(block, middle)) {
                    Ordering::Less => low = middle + 1,
                    Ordering::Greater => high = middle,
                    Ordering::Equal => equal = Some(middle),
                }
            }
            if let Some(i) = equal {
                let place = node.offset + 6 + i * self.record_bytes;
                return Ok(Some((self.record(kept.at(node.depth), i), place)));
            }
            if node.depth == 0 {
                return Ok(None);
            }
            node = self.child(block, node, low, blocks)?;
        }
    }

    fn record<'b>(&self, block: &'b [u8], i: u64) -> &'b [u8] {
        let start = (6 + i * self.record_bytes) as usize;
        &block[start..start + self.record_bytes as usize]
    }

    /// Bytes of a node that are in use.
    fn len(&self, node: Node, blocks: &Blocks<'_>) -> Decoded<u64> {
        let mut len = NODE_FRAME + node.records * self.record_bytes;
        if node.depth > 0 {
            let pointer = &self.pointers[node.depth - 1];
            let width = blocks.addressing.address_bytes + pointer.count_bytes + pointer.total_bytes;
            len = len.saturating_add((node.records + 1).saturating_mul(width as u64));
        }
        if len > self.node_bytes {
            return Err(wrong(node.offset, "records that fit into the node", node.records));
        }
        Ok(len)
    }

    fn load(&self, blocks: &mut Blocks<'_>, node: Node) -> Decoded<Vec<u8>> {
        let len = self.len(node, blocks)?;
        let block = blocks.checked(node.offset, len, "B-tree node")?;
        let mut fields = blocks.fields(&block, node.offset);
        fields.begins(if node.depth == 0 { "BTLF" } else { "BTIN" }, 0)?;
        match fields.u8()? {
            kind if kind == self.kind => Ok(block),
            kind => Err(wrong(node.offset + 5, "the tree's kind of records", kind)),
        }
    }

    /// The child of a node that is not a leaf, before its record `i`.
    fn child(&self, block: &[u8], node: Node, i: u64, blocks: &Blocks<'_>) -> Decoded<Node> {
        let pointer = &self.pointers[node.depth - 1];
        let width = blocks.addressing.address_bytes + pointer.count_bytes + pointer.total_bytes;
        let at = 6 + (node.records * self.record_bytes) as usize + i as usize * width;
        let place = node.offset + at as u64;
        let mut fields = Fields::new(&block[at..at + width], place, blocks.addressing);
        let offset = fields.defined("a child's address")?;
        let records = fields.uint(pointer.count_bytes)?;
        // More records than any node can have would overflow what is computed from them.
        if records > self.node_bytes {
            return Err(wrong(place, "records that fit into a node", records));
        }
        Ok(Node { offset, records, depth: node.depth - 1 })
    }
}

/// The widths of pointers follow from how many records nodes can have.
fn pointers(node_bytes: u64, record_bytes: u64, depth: u16, address_bytes: u64) -> Vec<Pointer> {
    let mut most = node_bytes.saturating_sub(NODE_FRAME) / record_bytes;
    let count_bytes = encoded_bytes(most);
    let (mut total, mut total_bytes) = (most, 0);
    let mut pointers = Vec::new();
    for _ in 0..depth {
        pointers.push(Pointer { count_bytes, total_bytes });
        let width = address_bytes + (count_bytes + total_bytes) as u64;
        most = node_bytes.saturating_sub(NODE_FRAME + width) / (record_bytes + width);
        total = (most + 1).saturating_mul(total).saturating_add(most);
        total_bytes = encoded_bytes(total);
    }
    pointers
}

/// Bytes that hold every number up to `limit`.
pub(super) fn encoded_bytes(limit: u64) -> usize {
    (limit.max(1).ilog2() / 8 + 1) as usize
}
