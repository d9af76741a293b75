//! The index of chunks that is written: a fixed array, with an entry for every chunk there may be.

use super::encode::{Shrunk, step};
use super::metadata::{PAGE_BITS, block, size_bytes};
use super::plan::Plan;
use crate::Encoded;
use crate::writer::Writer;

const HEADER_BYTES: u64 = 28;
/// Signature, version, client and the header's address.
const PREFIX_BYTES: u64 = 14;
const PAGE_ENTRIES: u64 = 1 << PAGE_BITS;

/// Length of the index, or `None` if 64 bits cannot hold it.
pub(super) fn len(plan: &Plan, chunk: &[u64]) -> Option<u64> {
    let present = !plan.shape.contains(&0);
    if !present || super::metadata::is_single(plan, chunk) {
        return Some(0);
    }
    let counts = plan.counts(&plan.limits, chunk);
    let entries = counts.iter().try_fold(1u64, |all, &count| all.checked_mul(count))?;
    let bytes = entries.checked_mul(entry_bytes(plan, chunk) as u64)?;
    let pages = entries.div_ceil(PAGE_ENTRIES);
    let paging = if pages > 1 { pages.div_ceil(8) + 4 * pages } else { 0 };
    bytes.checked_add(HEADER_BYTES + PREFIX_BYTES + paging + 4)
}

fn entry_bytes(plan: &Plan, chunk: &[u64]) -> usize {
    8 + plan.filter.map_or(0, |_| size_bytes(plan.chunk_bytes(chunk)) + 4)
}

/// Writes the index of chunks that are one after the other from `start` on; where it begins.
pub(super) fn write(
    plan: &Plan,
    chunk: &[u64],
    start: u64,
    shrunk: Option<&[Shrunk]>,
    writer: &mut Writer<'_>,
) -> Encoded<u64> {
    let at = writer.written();
    let limits = plan.counts(&plan.limits, chunk);
    let mut entries = Entries {
        limits: &limits,
        counts: &plan.counts(&plan.shape, chunk),
        at: vec![0; chunk.len()],
        next: start,
        shrunk: shrunk.map(|shrunk| shrunk.iter()),
        chunk_bytes: plan.chunk_bytes(chunk),
    };
    let count: u64 = limits.iter().product();
    let client = u8::from(shrunk.is_some());
    let about = [0, client, entry_bytes(plan, chunk) as u8, PAGE_BITS];
    let data = (at + HEADER_BYTES).to_le_bytes();
    writer.put(&block(&[b"FAHD", &about, &count.to_le_bytes(), &data]))?;

    let prefix = [&b"FADB\0"[..], &[client], &at.to_le_bytes()].concat();
    if count <= PAGE_ENTRIES {
        writer.put(&block(&[&prefix, &entries.page(count)]))?;
        return Ok(at);
    }
    let pages = count.div_ceil(PAGE_ENTRIES);
    let mut bitmap = vec![0xFF; (pages / 8) as usize];
    if !pages.is_multiple_of(8) {
        bitmap.push(0xFF << (8 - pages % 8));
    }
    writer.put(&block(&[&prefix, &bitmap]))?;
    for page in 0..pages {
        let entries = entries.page(PAGE_ENTRIES.min(count - page * PAGE_ENTRIES));
        writer.put(&block(&[&entries]))?;
    }
    Ok(at)
}

/// Goes through all chunks there may be, of which those that exist are side by side.
struct Entries<'a> {
    limits: &'a [u64],
    counts: &'a [u64],
    at: Vec<u64>,
    next: u64,
    shrunk: Option<std::slice::Iter<'a, Shrunk>>,
    chunk_bytes: u64,
}

impl Entries<'_> {
    fn page(&mut self, count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let exists = self.at.iter().zip(self.counts).all(|(at, count)| at < count);
            self.entry(exists, &mut bytes);
            step(&mut self.at, self.limits);
        }
        bytes
    }

    fn entry(&mut self, exists: bool, bytes: &mut Vec<u8>) {
        let address = if exists { self.next } else { u64::MAX };
        bytes.extend(address.to_le_bytes());
        let Some(shrunk) = &mut self.shrunk else {
            self.next += if exists { self.chunk_bytes } else { 0 };
            return;
        };
        let found = if exists { shrunk.next().copied() } else { None };
        let Shrunk { len, mask } = found.unwrap_or(Shrunk { len: 0, mask: 0 });
        bytes.extend(&u64::from(len).to_le_bytes()[..size_bytes(self.chunk_bytes)]);
        bytes.extend(mask.to_le_bytes());
        self.next += u64::from(len);
    }
}
