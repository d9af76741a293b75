//! Fractal heaps, as far as the links of a large group need them: managed objects, not filtered.

use super::blocks::{Blocks, Kept};
use super::checksum::check_block;
use super::fields::{Addressing, Fields, unsupported, wrong};
use super::tree2::encoded_bytes;
use crate::Decoded;

/// A heap whose header has been read.
pub(super) struct Heap {
    checksums: bool,
    offset_bytes: usize,
    length_bytes: usize,
    width: u64,
    first_block: u64,
    largest_direct: u64,
    root: u64,
    root_rows: u64,
}

/// An object by its place in the heap, and where in the file that was said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Object {
    at: u64,
    len: u64,
    place: u64,
}

/// A block that holds objects.
#[derive(Clone, Copy)]
struct Direct {
    offset: u64,
    len: u64,
    /// Where in the heap it begins.
    start: u64,
}

impl Heap {
    pub(super) fn open(blocks: &mut Blocks<'_>, offset: u64) -> Decoded<Heap> {
        let widths = blocks.addressing;
        let (address, length) = (widths.address_bytes, widths.length_bytes);
        let len = 26 + 3 * address + 12 * length;
        let prefix = blocks.get(offset, 9)?;
        let mut fields = blocks.fields(&prefix, offset);
        fields.begins("FRHP", 0)?;
        fields.skip(2)?;
        if fields.u16()? != 0 {
            return Err(unsupported(offset + 7, "filtered heap"));
        }
        let block = blocks.checked(offset, len as u64, "heap header")?;
        let mut fields = blocks.fields(&block, offset);
        fields.skip(9)?;
        let checksums = fields.u8()? & 2 != 0;
        let largest_object = u64::from(fields.u32()?);
        fields.skip(length + address + length + address + 8 * length)?;
        let place = fields.place();
        let width = u64::from(fields.u16()?);
        let first_block = fields.length()?;
        let largest_direct = fields.length()?;
        let bits = fields.u16()?;
        fields.skip(2)?;
        let root = fields.defined("the heap's first block")?;
        let root_rows = u64::from(fields.u16()?);
        let sound = first_block.is_power_of_two()
            && largest_direct.is_power_of_two()
            && width.is_power_of_two()
            && first_block <= largest_direct
            && largest_direct <= 1 << 32
            && (1..=64).contains(&bits)
            && root_rows <= 64;
        if !sound {
            return Err(wrong(place, "a heap of blocks that double", "other sizes"));
        }
        let block_bytes = largest_direct.ilog2().div_ceil(8) as usize;
        Ok(Heap {
            checksums,
            offset_bytes: usize::from(bits).div_ceil(8),
            length_bytes: block_bytes.min(encoded_bytes(largest_object)),
            width,
            first_block,
            largest_direct,
            root,
            root_rows,
        })
    }

    /// What an object's identifier at `place` says.
    pub(super) fn object(&self, id: &[u8], place: u64, addressing: Addressing) -> Decoded<Object> {
        let mut fields = Fields::new(id, place, addressing);
        let flags = fields.u8()?;
        if flags >> 4 != 0 {
            return Err(unsupported(place, format!("heap object of kind {}", flags >> 4)));
        }
        let at = fields.uint(self.offset_bytes)?;
        Ok(Object { at, len: fields.uint(self.length_bytes)?, place })
    }

    /// The bytes of an object, and their place in the file.
    pub(super) fn read<'k>(
        &self,
        blocks: &mut Blocks<'_>,
        kept: &'k mut Kept,
        object: Object,
    ) -> Decoded<(&'k [u8], u64)> {
        let block = self.direct(blocks, object.at, object.place)?;
        let inside = object.at - block.start;
        let bytes = kept.block(0, block.offset, blocks, |blocks| self.load(blocks, block))?;
        let end = inside.saturating_add(object.len);
        match bytes.get(inside as usize..end as usize) {
            Some(bytes) => Ok((bytes, block.offset + inside)),
            None => Err(wrong(object.place, "an object inside its block", object.len)),
        }
    }

    /// The block that holds the heap's byte `at`.
    fn direct(&self, blocks: &mut Blocks<'_>, at: u64, place: u64) -> Decoded<Direct> {
        let (mut offset, mut rows, mut start) = (self.root, self.root_rows, 0);
        if rows == 0 {
            let block = Direct { offset, len: self.first_block, start };
            let inside = at < self.first_block;
            return if inside { Ok(block) } else { Err(wrong(place, "a place in the heap", at)) };
        }
        let direct_rows = u64::from(self.largest_direct.ilog2() - self.first_block.ilog2()) + 2;
        // Every turn goes down to a smaller block.
        loop {
            let (row, column, row_start, block_len) = self.cell(at - start);
            if row >= rows {
                return Err(wrong(place, "a place in the heap", at));
            }
            let child = self.child(blocks, offset, rows, row * self.width + column)?;
            start += row_start + column * block_len;
            if row < direct_rows {
                return Ok(Direct { offset: child, len: block_len, start });
            }
            offset = child;
            rows = u64::from(block_len.ilog2())
                .saturating_sub(u64::from((self.first_block * self.width).ilog2()))
                + 1;
        }
    }

    /// Row and column of the block at `at` of an indirect block, where the row starts, and the
    /// size of its blocks: rows 0 and 1 have the first size, every other twice that of the last.
    fn cell(&self, at: u64) -> (u64, u64, u64, u64) {
        let first_row = self.first_block.saturating_mul(self.width);
        if at < first_row {
            return (0, at / self.first_block, 0, self.first_block);
        }
        let doublings = (at / first_row).ilog2();
        let row_start = first_row << doublings;
        let block_len = self.first_block << doublings;
        (u64::from(doublings) + 1, (at - row_start) / block_len, row_start, block_len)
    }

    /// The address in cell `i` of the indirect block at `offset`.
    fn child(&self, blocks: &mut Blocks<'_>, offset: u64, rows: u64, i: u64) -> Decoded<u64> {
        let address = blocks.addressing.address_bytes;
        let head = 5 + address + self.offset_bytes;
        let len = head as u64 + rows * self.width * address as u64 + 4;
        let block = blocks.checked(offset, len, "heap block")?;
        let mut fields = blocks.fields(&block, offset);
        fields.begins("FHIB", 0)?;
        fields.skip(head - 5 + i as usize * address)?;
        fields.defined("a block of the heap")
    }

    /// Reads a block and compares its checksum, which is taken with zeros in its own place.
    fn load(&self, blocks: &mut Blocks<'_>, block: Direct) -> Decoded<Vec<u8>> {
        let mut bytes = blocks.get(block.offset, block.len)?;
        blocks.fields(&bytes, block.offset).begins("FHDB", 0)?;
        let at = 5 + blocks.addressing.address_bytes + self.offset_bytes;
        if !self.checksums {
            return Ok(bytes);
        }
        let Some(stored) = bytes.get_mut(at..at + 4) else {
            return Err(wrong(block.offset, "a block with a checksum", block.len));
        };
        let expected = stored.to_vec();
        stored.fill(0);
        bytes.extend_from_slice(&expected);
        check_block(&bytes, block.offset, "heap block")?;
        bytes.truncate(block.len as usize);
        Ok(bytes)
    }
}
