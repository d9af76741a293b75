//! Fixed and extensible arrays: chunk indexes that find a chunk by its number.

use super::blocks::{Blocks, Kept};
use super::fields::{Fields, wrong};
use crate::Decoded;

/// What an index says of a chunk: where it is, and, if chunks are filtered, its size and the
/// filters that were left out.
pub(super) struct Entry {
    pub(super) offset: u64,
    pub(super) filtered: Option<(u64, u32)>,
}

/// How entries are written.
#[derive(Clone, Copy)]
struct Entries {
    bytes: u64,
    filtered: bool,
}

impl Entries {
    fn parse(fields: &mut Fields<'_>) -> Decoded<Entries> {
        let place = fields.place();
        let client = fields.u8()?;
        let bytes = fields.u8()?;
        let address = fields.addressing().address_bytes;
        let sound = match client {
            0 => usize::from(bytes) == address,
            1 => (address + 5..=address + 12).contains(&usize::from(bytes)),
            _ => false,
        };
        if !sound {
            return Err(wrong(place, "an index of chunks", format!("{client}, {bytes} bytes")));
        }
        Ok(Entries { bytes: u64::from(bytes), filtered: client == 1 })
    }

    /// Entry `i` of those that begin `head` bytes into the block.
    fn get(
        self,
        blocks: &Blocks<'_>,
        block: &[u8],
        offset: u64,
        head: u64,
        i: u64,
    ) -> Decoded<Option<Entry>> {
        let mut fields = blocks.fields(block, offset);
        fields.skip((head + i * self.bytes) as usize)?;
        let Some(offset) = fields.address()? else { return Ok(None) };
        let filtered = match self.filtered {
            true => {
                let len = self.bytes as usize - blocks.addressing.address_bytes - 4;
                Some((fields.uint(len)?, fields.u32()?))
            }
            false => None,
        };
        Ok(Some(Entry { offset, filtered }))
    }

    fn len(self, count: u64, place: u64) -> Decoded<u64> {
        count
            .checked_mul(self.bytes)
            .filter(|&len| len < 1 << 60)
            .ok_or_else(|| wrong(place, "an index that fits into the file", count))
    }
}

/// Bit `i`, counted from the highest of the first byte.
fn bit(bytes: &[u8], i: u64) -> bool {
    bytes.get((i / 8) as usize).is_some_and(|byte| byte & 0x80 >> (i % 8) != 0)
}

/// As many elements as fit into a page, from the number of bits in the header.
fn page_entries(fields: &mut Fields<'_>) -> Decoded<u64> {
    let place = fields.place();
    match fields.u8()? {
        bits @ 0..=40 => Ok(1 << bits),
        bits => Err(wrong(place, "pages of up to 2^40 entries", bits)),
    }
}

/// The index of datasets whose size is fixed.
pub(super) struct FixedArray {
    entries: Entries,
    page: u64,
    count: u64,
    data: Option<u64>,
    offset: u64,
}

impl FixedArray {
    pub(super) fn open(blocks: &mut Blocks<'_>, offset: u64) -> Decoded<FixedArray> {
        let widths = blocks.addressing;
        let len = 12 + widths.length_bytes + widths.address_bytes;
        let block = blocks.checked(offset, len as u64, "fixed array header")?;
        let mut fields = blocks.fields(&block, offset);
        fields.begins("FAHD", 0)?;
        let entries = Entries::parse(&mut fields)?;
        let page = page_entries(&mut fields)?;
        let count = fields.length()?;
        Ok(FixedArray { entries, page, count, data: fields.address()?, offset })
    }

    pub(super) fn find(
        &self,
        blocks: &mut Blocks<'_>,
        kept: &mut Kept,
        i: u64,
    ) -> Decoded<Option<Entry>> {
        if i >= self.count {
            return Err(wrong(self.offset, "an entry for every chunk", self.count));
        }
        let Some(data) = self.data else { return Ok(None) };
        let head = 6 + blocks.addressing.address_bytes as u64;
        let check =
            |blocks: &mut Blocks<'_>, len| blocks.signed(data, len, "FADB", "fixed array block");
        if self.count <= self.page {
            let len = head + self.entries.len(self.count, self.offset)? + 4;
            let block = kept.block(0, data, blocks, |blocks| check(blocks, len))?;
            return self.entries.get(blocks, block, data, head, i);
        }
        let bitmap = self.count.div_ceil(self.page).div_ceil(8);
        let pages_at = head + bitmap + 4;
        let block = kept.block(0, data, blocks, |blocks| check(blocks, pages_at))?;
        let page = i / self.page;
        if !bit(&block[head as usize..(head + bitmap) as usize], page) {
            return Ok(None);
        }
        let stride = self.entries.len(self.page, self.offset)? + 4;
        let first = page * self.page;
        let at = page.checked_mul(stride).and_then(|at| at.checked_add(data + pages_at));
        let at = at.ok_or_else(|| wrong(self.offset, "a smaller index", self.count))?;
        let len = self.entries.len(self.page.min(self.count - first), self.offset)? + 4;
        let load = |blocks: &mut Blocks<'_>| blocks.checked(at, len, "fixed array page");
        let block = kept.block(1, at, blocks, load)?;
        self.entries.get(blocks, block, at, 0, i - first)
    }
}

/// The index of datasets that can grow along one axis.
///
/// Its first entries are in the index block; the others in data blocks that become larger and
/// larger, in groups ("super blocks") of which the first few are addressed by the index block too.
pub(super) struct ExtensibleArray {
    entries: Entries,
    page: u64,
    in_index: u64,
    smallest: u64,
    direct_groups: u32,
    groups: u32,
    offset_bytes: u64,
    index: Option<u64>,
    offset: u64,
}

/// A data block: where its address is in which group, and what is in it.
struct DataBlock {
    group: u32,
    /// Its number among those of the group.
    number: u64,
    /// Entries of it.
    len: u64,
    /// The entry that is looked for.
    entry: u64,
}

impl ExtensibleArray {
    pub(super) fn open(blocks: &mut Blocks<'_>, offset: u64) -> Decoded<ExtensibleArray> {
        let widths = blocks.addressing;
        let len = 16 + 6 * widths.length_bytes + widths.address_bytes;
        let block = blocks.checked(offset, len as u64, "extensible array header")?;
        let mut fields = blocks.fields(&block, offset);
        fields.begins("EAHD", 0)?;
        let entries = Entries::parse(&mut fields)?;
        let place = fields.place();
        let bits = u32::from(fields.u8()?);
        let in_index = u64::from(fields.u8()?);
        let smallest = u64::from(fields.u8()?);
        let pointers = u64::from(fields.u8()?);
        let page = page_entries(&mut fields)?;
        fields.skip(6 * widths.length_bytes)?;
        let index = fields.address()?;
        let sound = (1..=63).contains(&bits)
            && smallest.is_power_of_two()
            && pointers.is_power_of_two()
            && bits >= smallest.ilog2();
        if !sound {
            return Err(wrong(place, "an array of blocks that double", "other sizes"));
        }
        let groups = 1 + bits - smallest.ilog2();
        let direct_groups = 2 * pointers.ilog2();
        let offset_bytes = u64::from(bits.div_ceil(8));
        if direct_groups > groups {
            return Err(wrong(place, "fewer blocks in the index", pointers));
        }
        Ok(ExtensibleArray {
            entries,
            page,
            in_index,
            smallest,
            direct_groups,
            groups,
            offset_bytes,
            index,
            offset,
        })
    }

    pub(super) fn find(
        &self,
        blocks: &mut Blocks<'_>,
        kept: &mut Kept,
        i: u64,
    ) -> Decoded<Option<Entry>> {
        let Some(index) = self.index else { return Ok(None) };
        let head = 6 + blocks.addressing.address_bytes as u64;
        let address = blocks.addressing.address_bytes as u64;
        let direct = self.first_block(self.direct_groups);
        let apart = u64::from(self.groups - self.direct_groups);
        let inside = self.in_index * self.entries.bytes;
        let len = head + inside + (direct + apart) * address + 4;
        let block = kept.block(0, index, blocks, |blocks| {
            blocks.signed(index, len, "EAIB", "extensible array index")
        })?;
        if i < self.in_index {
            return self.entries.get(blocks, block, index, head, i);
        }
        let Some(place) = self.block_of(i - self.in_index) else {
            return Err(wrong(self.offset, "an entry for every chunk", i));
        };
        let slot = match place.group.checked_sub(self.direct_groups) {
            None => self.first_block(place.group) + place.number,
            Some(apart) => direct + u64::from(apart),
        };
        let mut fields = blocks.fields(block, index);
        fields.skip((head + inside + slot * address) as usize)?;
        let Some(found) = fields.address()? else { return Ok(None) };
        if place.group < self.direct_groups {
            return self.in_block(blocks, kept, found, &place);
        }
        match self.in_group(blocks, kept, found, &place)? {
            Some(data) => self.in_block(blocks, kept, data, &place),
            None => Ok(None),
        }
    }

    /// Data blocks in all groups before `group`: a group has 1, 1, 2, 2, 4, 4, … of them.
    fn first_block(&self, group: u32) -> u64 {
        let pairs = (1 << (group / 2)) - 1;
        2 * pairs + if group % 2 == 1 { 1 << (group / 2) } else { 0 }
    }

    /// The data block of the `i`th entry that is not in the index block.
    fn block_of(&self, i: u64) -> Option<DataBlock> {
        let group = (i / self.smallest).saturating_add(1).ilog2();
        if group >= self.groups {
            return None;
        }
        let before = self.smallest * ((1 << group) - 1);
        let len = self.smallest << group.div_ceil(2);
        let inside = i - before;
        Some(DataBlock { group, number: inside / len, len, entry: inside % len })
    }

    /// Pages of a data block, if it is so large that it has any.
    fn pages(&self, place: &DataBlock) -> Option<u64> {
        (place.len > self.page).then(|| place.len / self.page)
    }

    /// The address of the data block in the group at `offset`.
    fn in_group(
        &self,
        blocks: &mut Blocks<'_>,
        kept: &mut Kept,
        offset: u64,
        place: &DataBlock,
    ) -> Decoded<Option<u64>> {
        let address = blocks.addressing.address_bytes as u64;
        let head = 6 + address + self.offset_bytes;
        let count = 1_u64 << (place.group / 2);
        let bitmap = self.pages(place).map_or(0, |pages| pages.div_ceil(8).saturating_mul(count));
        let len = bitmap.saturating_add(count * address).saturating_add(head + 4);
        let block = kept.block(1, offset, blocks, |blocks| {
            blocks.signed(offset, len, "EASB", "extensible array group")
        })?;
        if let Some(pages) = self.pages(place) {
            let bits = block.get(head as usize..(head + bitmap) as usize).unwrap_or_default();
            if !bit(bits, place.number * pages + place.entry / self.page) {
                return Ok(None);
            }
        }
        let mut fields = blocks.fields(block, offset);
        fields.skip((head + bitmap + place.number * address) as usize)?;
        fields.address()
    }

    fn in_block(
        &self,
        blocks: &mut Blocks<'_>,
        kept: &mut Kept,
        offset: u64,
        place: &DataBlock,
    ) -> Decoded<Option<Entry>> {
        let head = 6 + blocks.addressing.address_bytes as u64 + self.offset_bytes;
        if self.pages(place).is_some() {
            let page = place.entry / self.page;
            let len = self.entries.len(self.page, self.offset)? + 4;
            let at = page.checked_mul(len).and_then(|at| at.checked_add(head + 4));
            let at = at.and_then(|at| at.checked_add(offset));
            let at = at.ok_or_else(|| wrong(self.offset, "a smaller index", place.len))?;
            let load = |blocks: &mut Blocks<'_>| blocks.checked(at, len, "extensible array page");
            let block = kept.block(2, at, blocks, load)?;
            return self.entries.get(blocks, block, at, 0, place.entry % self.page);
        }
        let len = head + self.entries.len(place.len, self.offset)? + 4;
        let block = kept.block(2, offset, blocks, |blocks| {
            blocks.signed(offset, len, "EADB", "extensible array block")
        })?;
        self.entries.get(blocks, block, offset, head, place.entry)
    }
}
