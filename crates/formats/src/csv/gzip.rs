//! The frame that gzip puts around deflated text.

use crc32fast::Hasher;

use super::NAME;
use crate::deflate::{BUFFER_BYTES, Inflater, scaled};
use crate::window::Window;
use crate::{DecodeError, Decoded, Element};

/// What every gzip file begins with.
pub(super) const MAGIC: [u8; 2] = [0x1F, 0x8B];
/// Deflate, no further fields, no time, made anywhere.
pub(super) const HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];
const TRAILER_BYTES: u64 = 8;

/// What follows the deflated bytes.
pub(super) fn trailer(crc: u32, size: u64) -> [u8; TRAILER_BYTES as usize] {
    let mut out = [0; TRAILER_BYTES as usize];
    out[..4].copy_from_slice(&crc.to_le_bytes());
    // The size is only kept modulo 2^32.
    out[4..].copy_from_slice(&(size as u32).to_le_bytes());
    out
}

/// Expands a gzip file, all its members, and hands the text to `feed` in pieces.
pub(super) fn expand(
    window: &mut Window<'_>,
    decoded: &mut Vec<u8>,
    mut feed: impl FnMut(&[u8]) -> Decoded<()>,
) -> Decoded<()> {
    decoded.resize(decoded.len().max(BUFFER_BYTES), 0);
    let buffer = &mut decoded[..BUFFER_BYTES];
    let len = window.len();
    let mut at = data_offset(window, 0)?;
    let mut inflater = Inflater::new(NAME, at, len);
    loop {
        let (begin, mut crc, mut size) = (at, Hasher::new(), 0u64);
        while !inflater.ended() {
            let filled = inflater.fill(window, buffer)?;
            crc.update(&buffer[..filled]);
            size += filled as u64;
            // What the text says counts only if it is the text that was written, but damage that
            // shows in the text is reported with its place there.
            feed(&buffer[..filled])?;
        }
        at = inflater.at();
        check_trailer(window, at, begin, crc.finalize(), size)?;
        at += TRAILER_BYTES;
        if at == len {
            return Ok(());
        }
        at = data_offset(window, at)?;
        inflater.restart(at);
    }
}

fn check_trailer(window: &mut Window<'_>, at: u64, begin: u64, crc: u32, size: u64) -> Decoded<()> {
    let trailer = window.exactly(at, TRAILER_BYTES)?;
    let field = |at: usize| {
        trailer[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).unwrap_or_default()
    };
    let (expected, announced) = (field(0), field(4));
    if expected != crc {
        let what = "compressed text";
        return Err(DecodeError::Checksum {
            format: NAME,
            what,
            offset: begin,
            expected,
            found: crc,
        });
    }
    if announced != size as u32 {
        return Err(DecodeError::field(
            NAME,
            at + 4,
            "the size of the text modulo 2^32",
            format!("{announced}, not {}", size as u32),
        ));
    }
    Ok(())
}

/// Where the deflated bytes of the member at `begin` are, after a header with any of gzip's fields.
fn data_offset(window: &mut Window<'_>, begin: u64) -> Decoded<u64> {
    const HEADER_CRC: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME_TEXT: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    const RESERVED: u8 = 0b1110_0000;

    let present = window.len().saturating_sub(begin).min(3);
    let magic = window.exactly(begin, present)?;
    if magic != &HEADER[..3] {
        let (format, expected) = ("a csv in gzip", "the gzip magic");
        let found = magic.to_vec();
        return Err(DecodeError::Foreign { format, offset: begin, expected, found });
    }
    let flags = window.exactly(begin, HEADER.len() as u64)?[3];
    if flags & RESERVED != 0 {
        let feature = format!("gzip flags {flags:#04x}");
        return Err(DecodeError::Feature { format: NAME, feature, offset: begin + 3 });
    }
    let mut at = begin + HEADER.len() as u64;
    if flags & EXTRA != 0 {
        let len = window.exactly(at, 2)?;
        at += 2 + u64::from(len[0]) + 256 * u64::from(len[1]);
    }
    for field in [NAME_TEXT, COMMENT] {
        if flags & field != 0 {
            while window.exactly(at, 1)?[0] != 0 {
                at += 1;
            }
            at += 1;
        }
    }
    if flags & HEADER_CRC != 0 {
        at += 2;
    }
    window.check_end(at)?;
    Ok(at)
}

/// About what so much text becomes at that level.
pub(super) fn text_size(element: Element, level: u32, text: u64) -> u64 {
    // Counted. A digit of text holds 3.3 bits; the fastest level gets little more than half of that.
    let per_10_000 = match (element, level) {
        (_, 0) => 10_001,
        (Element::Bool, 1) => 1720,
        (Element::Bool, 2 | 3) => 800,
        (Element::Bool, _) => 480,
        (Element::UInt8 | Element::Int8, 1) => 6300,
        (Element::UInt8 | Element::Int8, 2) => 4060,
        (Element::UInt8 | Element::Int8, _) => 3760,
        (Element::Float16, 1) => 4490,
        (Element::Float16, _) => 3170,
        (Element::Float32, 1) => 6530,
        (Element::Float32, _) => 4300,
        (Element::Float64, 1) => 7110,
        (Element::Float64, _) => 4590,
        (Element::UInt16 | Element::Int16, 1) => 7170,
        (Element::UInt16 | Element::Int16, _) => 4560,
        (_, 1) => 7580,
        _ => 4790,
    };
    const FRAME_BYTES: u64 = HEADER.len() as u64 + TRAILER_BYTES;
    scaled(text, per_10_000).saturating_add(FRAME_BYTES)
}
