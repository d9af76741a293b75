//! The superblock: where addresses count from, how wide they are, where the root group is.

use super::blocks::Blocks;
use super::checksum::check_block;
use super::fields::{Addressing, Fields, unsupported, wrong};
use crate::window::Window;
use crate::{ByteSource, DecodeError, Decoded};

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Before the superblock there may be anything, up to a power of two from this on.
const FIRST_USER_BLOCK: u64 = 512;

/// The superblock of versions 2 and 3, with addresses of eight bytes.
const CURRENT_BYTES: u64 = 48;

/// Those of versions 0 and 1.
const OLD_BYTES: [u64; 2] = [96, 100];

/// Opens the file: its blocks, and the offset of the root group's header.
pub(super) fn open<'a>(
    source: &'a mut dyn ByteSource,
    piece: &'a mut [u8],
) -> Decoded<(Blocks<'a>, u64)> {
    let unknown = Addressing { address_bytes: 8, length_bytes: 8, base: 0 };
    let mut blocks = Blocks::new(source, piece, unknown)?;
    let base = find(&mut blocks)?;
    let left = blocks.window.len() - base;
    let mut bytes = blocks.get(base, left.min(CURRENT_BYTES))?;
    let old = bytes.get(SIGNATURE.len()).and_then(|&version| OLD_BYTES.get(usize::from(version)));
    if let Some(&old) = old {
        let more = left.min(old).saturating_sub(CURRENT_BYTES);
        bytes.extend(blocks.get(base + CURRENT_BYTES, more)?);
    }
    let (addressing, root, end) = parse(&bytes, base)?;
    blocks.addressing = addressing;
    blocks.window.check_end(end)?;
    Ok((blocks, root))
}

/// Where the signature is: at the beginning or at a power of two.
fn find(blocks: &mut Blocks<'_>) -> Decoded<u64> {
    let len = blocks.window.len();
    let mut base = 0;
    while len.saturating_sub(base) >= SIGNATURE.len() as u64 {
        if blocks.get(base, SIGNATURE.len() as u64)? == SIGNATURE {
            return Ok(base);
        }
        base = if base == 0 { FIRST_USER_BLOCK } else { base.saturating_mul(2) };
    }
    let found = first_bytes(&mut blocks.window)?;
    let expected = "the HDF5 signature";
    Err(DecodeError::Foreign { format: "an HDF5 file", offset: 0, expected, found })
}

fn first_bytes(window: &mut Window<'_>) -> Decoded<Vec<u8>> {
    let len = window.len().min(SIGNATURE.len() as u64);
    Ok(window.exactly(0, len)?.to_vec())
}

/// Addressing, offset of the root group, and where the file should end.
fn parse(bytes: &[u8], base: u64) -> Decoded<(Addressing, u64, u64)> {
    let mut fields =
        Fields::new(bytes, base, Addressing { address_bytes: 8, length_bytes: 8, base });
    fields.skip(SIGNATURE.len())?;
    let version = fields.version(&[0, 1, 2, 3])?;
    if version < 2 {
        fields.skip(4)?;
    }
    let address_bytes = width(&mut fields)?;
    let length_bytes = width(&mut fields)?;
    let addressing = Addressing { address_bytes, length_bytes, base };
    let done = (fields.place() - base) as usize;
    let mut fields = Fields::new(&bytes[done..], fields.place(), addressing);
    match version {
        0 => fields.skip(9)?,
        1 => fields.skip(13)?,
        _ => return current(fields, bytes, base),
    }
    let end = end(&mut fields)?;
    let driver = fields.place();
    if fields.address()?.is_some() {
        return Err(unsupported(driver, "a file driver of its own"));
    }
    let _name = fields.length()?;
    let root = fields.defined("the root group's address")?;
    Ok((addressing, root, end))
}

/// What versions 2 and 3 have after the widths.
fn current(mut fields: Fields<'_>, bytes: &[u8], base: u64) -> Decoded<(Addressing, u64, u64)> {
    let addressing = fields.addressing();
    fields.skip(1)?;
    let end = end(&mut fields)?;
    let root = fields.defined("the root group's address")?;
    fields.skip(4)?;
    let len = (fields.place() - base) as usize;
    check_block(&bytes[..len], base, "superblock")?;
    Ok((addressing, root, end))
}

/// Where the file should end: the only address that does not count from the superblock, unless
/// something was put before the file or taken away there since.
fn end(fields: &mut Fields<'_>) -> Decoded<u64> {
    let Addressing { address_bytes, base, .. } = fields.addressing();
    let written_for = fields.uint(address_bytes)?;
    let _free_space_or_extension = fields.address()?;
    let end = fields.uint(address_bytes)?;
    Ok(end.saturating_sub(written_for).saturating_add(base))
}

fn width(fields: &mut Fields<'_>) -> Decoded<usize> {
    let place = fields.place();
    match fields.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        width => Err(wrong(place, "a width of 2, 4 or 8 bytes", width)),
    }
}
