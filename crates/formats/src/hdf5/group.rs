//! The root group: from the names of the sample datasets to where their headers are.
//!
//! One walk over all links, whatever their order: old groups keep them in symbol tables below a
//! B-tree, new ones in the header itself or, when there are many, in a heap with an index.

use std::fmt;

use super::blocks::{Blocks, Budget, Kept};
use super::fields::{Fields, unsupported, wrong};
use super::header::{self, SPECULATED_BYTES, kind};
use super::heap::Heap;
use super::tree2::Tree2;
use crate::Decoded;

/// What the names of the sample datasets begin with; their number follows.
pub(super) const RECORDS: &str = "records_";

/// The name of the only sample dataset in files of DLIO 2.0.0.
const ONLY_RECORDS: &str = "records";

const LINKS_BY_NAME: u8 = 5;

/// Entries that a node of an old group has room for, as HDF5 makes them: children of a node of the
/// tree, and symbols.
const TREE_ENTRIES: u64 = 32;
const NODE_SYMBOLS: u64 = 8;

/// What a sample dataset is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// `records`.
    Only,
    /// `records_` and this number.
    Numbered(u64),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Only => f.write_str(ONLY_RECORDS),
            Name::Numbered(number) => write!(f, "{RECORDS}{number}"),
        }
    }
}

/// A sample dataset of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Where its header is.
    pub(super) header: u64,
    pub(super) name: Name,
}

/// The first `count` sample datasets.
pub(super) fn members(blocks: &mut Blocks<'_>, root: u64, count: u64) -> Decoded<Vec<Member>> {
    let mut found = Found { places: Vec::new(), root, count };
    let mut old = None;
    let mut dense = None;
    header::messages(blocks, root, &mut |message| {
        match message.kind {
            kind::LINK => found.link(&mut message.fields()?)?,
            kind::LINK_INFO => dense = link_info(&mut message.fields()?)?,
            kind::SYMBOL_TABLE => {
                let mut fields = message.fields()?;
                let tree = fields.defined("the group's B-tree")?;
                old = Some((tree, fields.defined("the group's heap")?));
            }
            _ => {}
        }
        Ok(())
    })?;
    if let Some((heap, index)) = dense {
        links(blocks, heap, index, &mut found)?;
    }
    if let Some((tree, heap)) = old {
        symbols(blocks, tree, heap, &mut found)?;
    }
    found.all()
}

/// Goes through the links that an index leads to, in the order of the heap: in that of the index,
/// which is by hash, every link would be in another block than the one before.
fn links(blocks: &mut Blocks<'_>, heap: u64, index: u64, found: &mut Found) -> Decoded<()> {
    let heap = Heap::open(blocks, heap)?;
    let mut objects = Vec::new();
    let tree = Tree2::open(blocks, index, LINKS_BY_NAME)?;
    tree.walk(blocks, &mut |record, place, addressing| {
        let id = record.get(4..).unwrap_or_default();
        objects.push(heap.object(id, place + 4, addressing)?);
        Ok(())
    })?;
    objects.sort_unstable();
    let mut kept = Kept::default();
    for object in objects {
        let (bytes, place) = heap.read(blocks, &mut kept, object)?;
        found.link(&mut Fields::new(bytes, place, blocks.addressing))?;
    }
    Ok(())
}

/// The heap and the name index of a group with many links.
fn link_info(fields: &mut Fields<'_>) -> Decoded<Option<(u64, u64)>> {
    fields.version(&[0])?;
    if fields.u8()? & 1 != 0 {
        fields.skip(8)?;
    }
    let heap = fields.address()?;
    Ok(heap.zip(fields.address()?))
}

/// The datasets found so far, by number.
struct Found {
    /// Number, header and name of each.
    places: Vec<(u64, u64, Name)>,
    root: u64,
    count: u64,
}

impl Found {
    /// The number in the name of a sample dataset that is wanted.
    fn number(&self, name: &[u8]) -> Option<u64> {
        if name == ONLY_RECORDS.as_bytes() && self.count == 1 {
            return Some(0);
        }
        let digits = std::str::from_utf8(name).ok()?.strip_prefix(RECORDS)?;
        let number: u64 = digits.parse().ok()?;
        (number < self.count && number.to_string() == digits).then_some(number)
    }

    fn link(&mut self, fields: &mut Fields<'_>) -> Decoded<()> {
        fields.version(&[1])?;
        let flags = fields.u8()?;
        let place = fields.place();
        let link_type = if flags & 8 != 0 { fields.u8()? } else { 0 };
        if flags & 4 != 0 {
            fields.skip(8)?;
        }
        if flags & 16 != 0 {
            fields.skip(1)?;
        }
        let len = fields.uint(1 << (flags & 3))?;
        let name = fields.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        let Some(number) = self.number(name) else { return Ok(()) };
        if link_type != 0 {
            return Err(unsupported(place, format!("link of type {link_type}")));
        }
        let header = fields.defined("the dataset's address")?;
        self.add(number, header, name);
        Ok(())
    }

    fn add(&mut self, number: u64, header: u64, name: &[u8]) {
        let is_only = name == ONLY_RECORDS.as_bytes();
        let name = if is_only { Name::Only } else { Name::Numbered(number) };
        self.places.push((number, header, name));
    }

    /// The places in order, none missing.
    fn all(mut self) -> Decoded<Vec<Member>> {
        self.places.sort_unstable_by_key(|&(number, header, _)| (number, header));
        self.places.dedup_by_key(|(number, ..)| *number);
        let missing = self.places.iter().zip(0..).find(|((number, ..), i)| number != i);
        let missing = missing.map_or(self.places.len() as u64, |(_, i)| i);
        if missing < self.count {
            let found = format!("no dataset {RECORDS}{missing}");
            return Err(wrong(self.root, "a group with the sample datasets", found));
        }
        Ok(self.places.into_iter().map(|(_, header, name)| Member { header, name }).collect())
    }
}

/// Goes through the symbol tables of an old group.
fn symbols(blocks: &mut Blocks<'_>, tree: u64, heap: u64, found: &mut Found) -> Decoded<()> {
    let names = local_heap(blocks, heap)?;
    let mut budget = Budget::of(blocks);
    let mut nodes = vec![(tree, None)];
    while let Some((offset, level)) = nodes.pop() {
        if level == Some(0) {
            symbol_node(blocks, offset, &names, found, &mut budget)?;
        } else {
            tree_node(blocks, offset, level, &mut nodes, &mut budget)?;
        }
    }
    Ok(())
}

/// Adds the children of a node, each with the number of levels from it down to the symbols.
fn tree_node(
    blocks: &mut Blocks<'_>,
    offset: u64,
    level: Option<u16>,
    nodes: &mut Vec<(u64, Option<u16>)>,
    budget: &mut Budget,
) -> Decoded<()> {
    let widths = blocks.addressing;
    let head = 8 + 2 * widths.address_bytes as u64;
    let (links, addresses) = (widths.length_bytes as u64, widths.address_bytes as u64);
    blocks.speculate(offset, head + TREE_ENTRIES * (links + addresses) + links)?;
    let block = blocks.get(offset, head)?;
    let mut fields = blocks.fields(&block, offset);
    // A node's type, 0 for groups, is where other blocks have their version.
    fields.begins("TREE", 0)?;
    let own = u16::from(fields.u8()?) + 1;
    if level.is_some_and(|level| level != own) {
        return Err(wrong(offset + 5, "the level below", own - 1));
    }
    let entries = u64::from(fields.u16()?);
    let len = head + entries * (widths.length_bytes + widths.address_bytes) as u64;
    budget.spend(len, offset)?;
    let block = blocks.get(offset, len)?;
    let mut fields = blocks.fields(&block, offset);
    fields.skip(head as usize)?;
    for _ in 0..entries {
        fields.skip(widths.length_bytes)?;
        nodes.push((fields.defined("a child's address")?, Some(own - 1)));
    }
    Ok(())
}

fn symbol_node(
    blocks: &mut Blocks<'_>,
    offset: u64,
    names: &[u8],
    found: &mut Found,
    budget: &mut Budget,
) -> Decoded<()> {
    let widths = blocks.addressing;
    let symbol_bytes = (widths.length_bytes + widths.address_bytes + 24) as u64;
    blocks.speculate(offset, 8 + NODE_SYMBOLS * symbol_bytes)?;
    let head = blocks.get(offset, 8)?;
    let mut fields = blocks.fields(&head, offset);
    fields.begins("SNOD", 1)?;
    fields.skip(1)?;
    let symbols = u64::from(fields.u16()?);
    let len = 8 + symbols * symbol_bytes;
    budget.spend(len, offset)?;
    let block = blocks.get(offset, len)?;
    let mut fields = blocks.fields(&block, offset);
    fields.skip(8)?;
    for _ in 0..symbols {
        let place = fields.place();
        let name = fields.length()?;
        let header = fields.address()?;
        let cached = fields.u32()?;
        fields.skip(20)?;
        let name = usize::try_from(name).ok().and_then(|at| names.get(at..));
        let Some(name) = name else { return Err(wrong(place, "a name in the heap", "none")) };
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let Some(number) = found.number(name) else { continue };
        match header {
            Some(header) if cached != 2 => found.add(number, header, name),
            _ => return Err(unsupported(place, "soft link")),
        }
    }
    Ok(())
}

/// The names of an old group.
fn local_heap(blocks: &mut Blocks<'_>, offset: u64) -> Decoded<Vec<u8>> {
    let widths = blocks.addressing;
    blocks.speculate(offset, SPECULATED_BYTES)?;
    let head = blocks.get(offset, (8 + 2 * widths.length_bytes + widths.address_bytes) as u64)?;
    let mut fields = blocks.fields(&head, offset);
    fields.begins("HEAP", 0)?;
    fields.skip(3)?;
    let len = fields.length()?;
    let _free = fields.length()?;
    let data = fields.defined("the names of the group")?;
    blocks.get(data, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_dataset_of_dlio_2_0_0_is_the_first_one() {
        let number = |count, name: &[u8]| Found { places: Vec::new(), root: 0, count }.number(name);
        assert_eq!(number(1, b"records"), Some(0));
        assert_eq!(number(1, b"records_0"), Some(0));
        assert_eq!(number(2, b"records"), None, "one of several has a number");
        assert_eq!(number(1, b"records_1"), None);
        assert_eq!(number(1, b"records_00"), None);
    }
}
