//! The file as blocks of metadata: read by place and length, checked, and kept where it pays.

use super::checksum::check_block;
use super::fields::{Addressing, Fields, wrong};
use crate::window::Window;
use crate::{ByteSource, Decoded};

/// Metadata is read up to the next multiple of this, because what comes next is mostly there.
const PAGE_BYTES: u64 = 4096;

/// A file whose addressing is known.
pub(super) struct Blocks<'a> {
    pub(super) window: Window<'a>,
    pub(super) addressing: Addressing,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(
        source: &'a mut dyn ByteSource,
        piece: &'a mut [u8],
        addressing: Addressing,
    ) -> Decoded<Self> {
        Ok(Blocks { window: Window::new(source, piece)?, addressing })
    }

    /// The `len` bytes at `offset`, of which the file must have every one.
    pub(super) fn get(&mut self, offset: u64, len: u64) -> Decoded<Vec<u8>> {
        let end = offset.saturating_add(len);
        self.window.check_end(end)?;
        let is_exact = self.window.is_exact();
        let limit = if is_exact { end } else { end.next_multiple_of(PAGE_BYTES) };
        let most = self.window.capacity();
        let mut block = Vec::with_capacity(len as usize);
        while (block.len() as u64) < len {
            let at = offset + block.len() as u64;
            let least = if is_exact { (end - at).min(most) } else { 1 };
            let found = self.window.at_least(at, least, limit)?;
            let wanted = found.len().min((end - at) as usize);
            block.extend_from_slice(&found[..wanted]);
        }
        Ok(block)
    }

    /// Reads `len` bytes of a structure whose length is not known, as libhdf5 does: what follows it in
    /// the same bytes costs no further read. Where pieces are read, that is so anyway.
    pub(super) fn speculate(&mut self, offset: u64, len: u64) -> Decoded<()> {
        let left = self.window.len().saturating_sub(offset);
        let len = len.min(left).min(self.window.capacity());
        if self.window.is_exact() && len > 0 {
            self.window.at_least(offset, len, offset + len)?;
        }
        Ok(())
    }

    /// As [`get`](Blocks::get), for a block whose last four bytes are its checksum.
    pub(super) fn checked(
        &mut self,
        offset: u64,
        len: u64,
        what: &'static str,
    ) -> Decoded<Vec<u8>> {
        let block = self.get(offset, len)?;
        check_block(&block, offset, what)?;
        Ok(block)
    }

    /// As [`checked`](Blocks::checked), for a block of version 0 that begins with `signature`.
    pub(super) fn signed(
        &mut self,
        offset: u64,
        len: u64,
        signature: &'static str,
        what: &'static str,
    ) -> Decoded<Vec<u8>> {
        let block = self.checked(offset, len, what)?;
        self.fields(&block, offset).begins(signature, 0)?;
        Ok(block)
    }

    pub(super) fn fields<'b>(&self, block: &'b [u8], offset: u64) -> Fields<'b> {
        Fields::new(block, offset, self.addressing)
    }
}

/// How much metadata a walk may still go through. Blocks do not overlap in a sound file, so all of
/// them together are no longer than the file; a walk that exceeds this goes in circles.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    pub(super) fn of(blocks: &Blocks<'_>) -> Budget {
        Budget { left: blocks.window.len() }
    }

    pub(super) fn spend(&mut self, len: u64, offset: u64) -> Decoded<()> {
        match self.left.checked_sub(len) {
            Some(left) => self.left = left,
            None => return Err(wrong(offset, "a block seen once", "blocks that go in circles")),
        }
        Ok(())
    }
}

/// The last block of each kind or level on the way to a chunk, so that the next chunk's way costs no
/// read where it is the same. Never more than the file's own size.
#[derive(Default)]
pub(super) struct Kept {
    slots: Vec<(u64, Vec<u8>)>,
}

impl Kept {
    /// The block at `offset`, from `slot` if it is there, otherwise by `load`.
    pub(super) fn block(
        &mut self,
        slot: usize,
        offset: u64,
        blocks: &mut Blocks<'_>,
        load: impl FnOnce(&mut Blocks<'_>) -> Decoded<Vec<u8>>,
    ) -> Decoded<&[u8]> {
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || (u64::MAX, Vec::new()));
        }
        if self.slots[slot].0 != offset {
            self.slots[slot] = (u64::MAX, Vec::new());
            let block = load(blocks)?;
            let kept: usize = self.slots.iter().map(|(_, block)| block.len()).sum();
            if (kept + block.len()) as u64 > blocks.window.len() {
                return Err(wrong(offset, "blocks side by side", "blocks that overlap"));
            }
            self.slots[slot] = (offset, block);
        }
        Ok(&self.slots[slot].1)
    }

    /// What was loaded into `slot` last.
    pub(super) fn at(&self, slot: usize) -> &[u8] {
        &self.slots[slot].1
    }
}
