//! The filters that chunks went through, undone: deflate, shuffle, Fletcher-32 and h5py's LZF.

use flate2::{Decompress, FlushDecompress, Status};

use super::checksum::check_chunk;
use super::fields::{FORMAT, Fields, unsupported, wrong};
use super::lzf;
use crate::scratch::grow;
use crate::{DecodeError, Decoded};

pub(super) const DEFLATE: u16 = 1;
pub(super) const SHUFFLE: u16 = 2;
pub(super) const FLETCHER32: u16 = 3;
/// Registered for h5py.
pub(super) const LZF: u16 = 32000;

/// As many filters as a mask has bits.
const MOST: u8 = 32;

/// What inflates the last step of a chunk does so in pieces of this size, which stay in the cache.
const INFLATED_BYTES: usize = 64 * 1024;

/// A step that is taken to store a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    Deflate,
    /// First all first bytes, then all second ones, …, of elements of that size.
    Shuffle(usize),
    Fletcher32,
    Lzf,
}

/// The filters of a pipeline message, in the order in which they are applied to store a chunk.
pub(super) fn pipeline(fields: &mut Fields<'_>) -> Decoded<Vec<Filter>> {
    let version = fields.version(&[1, 2])?;
    let place = fields.place();
    let count = fields.u8()?;
    if count > MOST {
        return Err(wrong(place, "at most 32 filters", count));
    }
    if version == 1 {
        fields.skip(6)?;
    }
    (0..count).map(|_| filter(fields, version)).collect()
}

fn filter(fields: &mut Fields<'_>, version: u8) -> Decoded<Filter> {
    let place = fields.place();
    let id = fields.u16()?;
    let named = version == 1 || id >= 256;
    let name_bytes = if named { usize::from(fields.u16()?) } else { 0 };
    fields.skip(2)?;
    let values = fields.u16()?;
    fields.skip(if version == 1 { name_bytes.next_multiple_of(8) } else { name_bytes })?;
    let value_at = fields.place();
    let first = if values > 0 { Some(fields.u32()?) } else { None };
    let padding = usize::from(version == 1 && values % 2 == 1) * 4;
    fields.skip(usize::from(values).saturating_sub(1) * 4 + padding)?;
    match (id, first) {
        (DEFLATE, _) => Ok(Filter::Deflate),
        (SHUFFLE, Some(size @ 1..)) => Ok(Filter::Shuffle(size as usize)),
        (SHUFFLE, _) => Err(wrong(value_at, "the size of shuffled elements", "0")),
        (FLETCHER32, _) => Ok(Filter::Fletcher32),
        (LZF, _) => Ok(Filter::Lzf),
        _ => Err(unsupported(place, format!("filter {id}{}", name_of(id)))),
    }
}

fn name_of(id: u16) -> &'static str {
    match id {
        4 => " (szip)",
        5 => " (n-bit)",
        6 => " (scale-offset)",
        307 => " (bzip2)",
        32001 => " (blosc)",
        32004 => " (lz4)",
        32008 => " (bitshuffle)",
        32015 => " (zstd)",
        32026 => " (blosc2)",
        _ => "",
    }
}

/// A chunk as it was read.
pub(super) struct Packed {
    /// Where it is in the file.
    pub(super) offset: u64,
    pub(super) len: usize,
    /// A bit for every filter that was left out.
    pub(super) mask: u32,
    /// Size of the chunk without any filter.
    pub(super) chunk_bytes: usize,
}

/// Undoes filters, chunk after chunk.
#[derive(Default)]
pub(super) struct Unpacker {
    inflate: Option<Decompress>,
}

impl Unpacker {
    /// Undoes the filters on the chunk at the beginning of `packed` and shows the result, in one
    /// piece or several, with their place in the chunk. The two buffers change places as it goes.
    pub(super) fn unpack(
        &mut self,
        filters: &[Filter],
        chunk: &Packed,
        [packed, spare]: [&mut Vec<u8>; 2],
        visit: &mut impl FnMut(u64, &[u8]) -> Decoded<()>,
    ) -> Decoded<()> {
        let mut len = chunk.len;
        let mut left: Vec<_> = filters.iter().enumerate().collect();
        left.retain(|(i, _)| chunk.mask >> i & 1 == 0);
        while let Some((_, filter)) = left.pop() {
            let before = &packed[..len];
            // What it was before this filter: the chunk, and checksums that were added earlier.
            let sums = left.iter().filter(|(_, filter)| **filter == Filter::Fletcher32).count();
            let needed = chunk.chunk_bytes + 4 * sums;
            match filter {
                Filter::Fletcher32 => {
                    check_chunk(before, chunk.offset)?;
                    len -= 4;
                    continue;
                }
                Filter::Deflate if left.is_empty() => {
                    let room = grow(spare, needed.min(INFLATED_BYTES));
                    return self.inflate(before, needed, room, chunk.offset, visit);
                }
                Filter::Deflate => {
                    let room = grow(spare, needed);
                    self.inflate(before, needed, room, chunk.offset, &mut |_, _| Ok(()))?;
                    len = needed;
                }
                Filter::Lzf => {
                    lzf::decompress(before, grow(spare, needed))
                        .map_err(|message| coding(chunk.offset, message))?;
                    len = needed;
                }
                Filter::Shuffle(size) => {
                    unshuffle(before, *size, grow(spare, len));
                }
            }
            std::mem::swap(packed, spare);
        }
        if len != chunk.chunk_bytes {
            let expected = "a chunk as large as its dimensions say";
            return Err(wrong(chunk.offset, expected, format!("{len} bytes")));
        }
        visit(0, &packed[..len])
    }

    /// Inflates all of `input`, which must give `needed` bytes, into `room` again and again.
    fn inflate(
        &mut self,
        input: &[u8],
        needed: usize,
        room: &mut [u8],
        offset: u64,
        visit: &mut impl FnMut(u64, &[u8]) -> Decoded<()>,
    ) -> Decoded<()> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(true));
        inflate.reset(true);
        let mut filled = 0;
        loop {
            let (read, made) = (inflate.total_in() as usize, inflate.total_out() as usize);
            // After the last byte one more is offered, so that a stream that goes on shows itself.
            let mut surplus = [0];
            let space = if made == needed { &mut surplus[..] } else { &mut room[filled..] };
            let most = space.len().min((needed - made).max(1));
            let status = inflate
                .decompress(&input[read..], &mut space[..most], FlushDecompress::None)
                .map_err(|source| DecodeError::coding(FORMAT, offset, source))?;
            let now = inflate.total_out() as usize;
            if now > needed {
                return Err(coding(offset, "deflated data is too long"));
            }
            filled += now - made;
            if filled == room.len() || now == needed && now > made {
                visit((now - filled) as u64, &room[..filled])?;
                filled = 0;
            }
            match status {
                Status::StreamEnd if now == needed => return Ok(()),
                Status::StreamEnd => return Err(coding(offset, "deflated data is too short")),
                _ if now == made && inflate.total_in() as usize == read => {
                    return Err(coding(offset, "deflated data ends within a block"));
                }
                _ => {}
            }
        }
    }
}

fn coding(offset: u64, message: &'static str) -> DecodeError {
    DecodeError::Coding { format: FORMAT, offset, source: message.into() }
}

fn unshuffle(from: &[u8], size: usize, to: &mut [u8]) {
    match size {
        1 => to.copy_from_slice(from),
        2 => unshuffle_elements::<2>(from, to),
        4 => unshuffle_elements::<4>(from, to),
        8 => unshuffle_elements::<8>(from, to),
        16 => unshuffle_elements::<16>(from, to),
        _ => {
            let count = from.len() / size;
            for (i, element) in to.chunks_exact_mut(size).enumerate() {
                for (j, byte) in element.iter_mut().enumerate() {
                    *byte = from[j * count + i];
                }
            }
            to[count * size..].copy_from_slice(&from[count * size..]);
        }
    }
}

fn unshuffle_elements<const SIZE: usize>(from: &[u8], to: &mut [u8]) {
    let count = from.len() / SIZE;
    let planes: [&[u8]; SIZE] = std::array::from_fn(|j| &from[j * count..(j + 1) * count]);
    let (elements, rest) = to.as_chunks_mut::<SIZE>();
    for (i, element) in elements.iter_mut().enumerate() {
        *element = std::array::from_fn(|j| planes[j][i]);
    }
    rest.copy_from_slice(&from[count * SIZE..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_bytes_go_back_to_their_elements() {
        for size in [1, 2, 3, 4, 8, 16] {
            for len in [0, 1, 15, 16, 47, 48, 50] {
                let whole: Vec<u8> = (0..len).collect();
                let count = whole.len() / size;
                let planes = (0..size).flat_map(|j| (0..count).map(move |i| i * size + j));
                let mut shuffled: Vec<u8> = planes.map(|at| whole[at]).collect();
                shuffled.extend(&whole[count * size..]);
                let mut back = vec![0; whole.len()];
                unshuffle(&shuffled, size, &mut back);
                assert_eq!(back, whole);
            }
        }
    }
}
