//! Object headers of both versions: the messages that describe a group or a dataset.

use super::blocks::{Blocks, Budget};
use super::fields::{Fields, unsupported, wrong};
use crate::Decoded;

/// What a message is about, by its number.
pub(super) mod kind {
    pub(in crate::hdf5) const DATASPACE: u16 = 1;
    pub(in crate::hdf5) const LINK_INFO: u16 = 2;
    pub(in crate::hdf5) const DATATYPE: u16 = 3;
    pub(in crate::hdf5) const OLD_FILL_VALUE: u16 = 4;
    pub(in crate::hdf5) const FILL_VALUE: u16 = 5;
    pub(in crate::hdf5) const LINK: u16 = 6;
    pub(in crate::hdf5) const EXTERNAL_FILES: u16 = 7;
    pub(in crate::hdf5) const LAYOUT: u16 = 8;
    pub(in crate::hdf5) const GROUP_INFO: u16 = 10;
    pub(in crate::hdf5) const FILTERS: u16 = 11;
    pub(in crate::hdf5) const CONTINUATION: u16 = 16;
    pub(in crate::hdf5) const SYMBOL_TABLE: u16 = 17;
}

const SHARED: u8 = 2;

/// What libhdf5 reads of a header before it knows how long that is.
pub(super) const SPECULATED_BYTES: u64 = 512;

/// One message of a header.
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    flags: u8,
    fields: Fields<'a>,
}

impl<'a> Message<'a> {
    /// What the message says, unless it only says where else that is.
    pub(super) fn fields(self) -> Decoded<Fields<'a>> {
        if self.flags & SHARED != 0 {
            let feature = format!("shared message of type {}", self.kind);
            return Err(unsupported(self.fields.place(), feature));
        }
        Ok(self.fields)
    }
}

/// Gets one message after the other.
pub(super) type VisitMessage<'v> = dyn FnMut(Message<'_>) -> Decoded<()> + 'v;

/// Shows every message of the header at `offset` to `visit`.
pub(super) fn messages(
    blocks: &mut Blocks<'_>,
    offset: u64,
    visit: &mut VisitMessage<'_>,
) -> Decoded<()> {
    let mut walk = Walk { visit, parts: Vec::new(), budget: Budget::of(blocks) };
    blocks.speculate(offset, SPECULATED_BYTES)?;
    let start = blocks.get(offset, 6)?;
    if start.starts_with(b"OHDR") {
        return walk.current(blocks, offset, Shape::of(&start, offset)?);
    }
    if start[0] != 1 {
        return Err(wrong(offset, "an object header", format!("{:02x?}", &start[..4])));
    }
    walk.old(blocks, offset)
}

/// A way through a header, which may be in several parts.
struct Walk<'w, 'v> {
    visit: &'w mut VisitMessage<'v>,
    /// Where the header goes on, and for how long.
    parts: Vec<(u64, u64)>,
    budget: Budget,
}

impl Walk<'_, '_> {
    /// Version 1: messages with a head of eight bytes, and their number known.
    fn old(&mut self, blocks: &mut Blocks<'_>, offset: u64) -> Decoded<()> {
        let start = blocks.get(offset, 16)?;
        let mut fields = blocks.fields(&start, offset);
        fields.skip(2)?;
        let mut left = fields.u16()?;
        fields.skip(4)?;
        self.parts.push((offset + 16, u64::from(fields.u32()?)));
        while let Some((at, len)) = self.parts.pop() {
            self.budget.spend(len.max(1), at)?;
            let block = blocks.get(at, len)?;
            let mut fields = blocks.fields(&block, at);
            while left > 0 && fields.left() >= 8 {
                left -= 1;
                let (kind, len) = (fields.u16()?, fields.u16()?);
                let flags = fields.u8()?;
                fields.skip(3)?;
                self.message(&mut fields, kind, len, flags)?;
            }
        }
        Ok(())
    }

    /// Version 2: checksums over every part, and optional fields.
    fn current(&mut self, blocks: &mut Blocks<'_>, offset: u64, shape: Shape) -> Decoded<()> {
        let prefix = blocks.get(offset, shape.prefix)?;
        let mut fields = blocks.fields(&prefix, offset);
        fields.skip(prefix.len() - shape.size_bytes)?;
        let len = fields.uint(shape.size_bytes)?.saturating_add(shape.prefix + 4);
        self.budget.spend(len, offset)?;
        let block = blocks.checked(offset, len, "object header")?;
        let body = &block[shape.prefix as usize..block.len() - 4];
        self.body(blocks.fields(body, offset + shape.prefix), &shape)?;
        while let Some((at, len)) = self.parts.pop() {
            self.budget.spend(len.max(1), at)?;
            let block = blocks.checked(at, len, "object header")?;
            let Some(body) =
                block.strip_prefix(b"OCHK").and_then(|body| body.split_last_chunk::<4>())
            else {
                return Err(wrong(at, "OCHK", format!("{:02x?}", &block[..4])));
            };
            self.body(blocks.fields(body.0, at + 4), &shape)?;
        }
        Ok(())
    }

    fn body(&mut self, mut fields: Fields<'_>, shape: &Shape) -> Decoded<()> {
        // What is too short for a message is a gap.
        while fields.left() >= shape.message_head {
            let kind = u16::from(fields.u8()?);
            let len = fields.u16()?;
            let flags = fields.u8()?;
            fields.skip(shape.message_head - 4)?;
            self.message(&mut fields, kind, len, flags)?;
        }
        Ok(())
    }

    /// Takes the message's bytes, follows it or shows it.
    fn message(&mut self, fields: &mut Fields<'_>, kind: u16, len: u16, flags: u8) -> Decoded<()> {
        let place = fields.place();
        let bytes = fields.take(usize::from(len))?;
        let mut inside = Fields::new(bytes, place, fields.addressing());
        if kind != kind::CONTINUATION {
            return (self.visit)(Message { kind, flags, fields: inside });
        }
        let offset = inside.defined("where the header goes on")?;
        self.parts.push((offset, inside.length()?));
        Ok(())
    }
}

/// What the flags of a version 2 header say about its prefix and about every message.
struct Shape {
    prefix: u64,
    size_bytes: usize,
    message_head: usize,
}

impl Shape {
    fn of(start: &[u8], offset: u64) -> Decoded<Shape> {
        if start[4] != 2 {
            return Err(unsupported(offset + 4, format!("object header version {}", start[4])));
        }
        let flags = start[5];
        let size_bytes = 1_usize << (flags & 3);
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let phases = if flags & 0x10 != 0 { 4 } else { 0 };
        let message_head = if flags & 4 != 0 { 6 } else { 4 };
        Ok(Shape { prefix: 6 + times + phases + size_bytes as u64, size_bytes, message_head })
    }
}
