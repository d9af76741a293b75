//! The chunks of a PNG file: their order, their lengths and their checksums.

use crate::image::{be16, be32};
use crate::{DecodeError, Decoded, Element};

/// What every file begins with.
pub(super) const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1A\n";

/// What a walk over the chunks found.
pub(super) struct Chunks {
    pub(super) header: Header,
    /// Where the first chunk of image data begins.
    pub(super) data_offset: u64,
}

/// The image as the first chunk announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    width: u32,
    height: u32,
    bit_depth: u8,
    color_type: u8,
}

impl Header {
    /// Where the fields are in the file: after the signature, a length and a type.
    pub(super) const OFFSET: u64 = 16;

    fn parse(file: &[u8]) -> Option<Header> {
        let at = Header::OFFSET as usize;
        let [bit_depth, color_type] = be16(file, at + 8)?.to_be_bytes();
        Some(Header { width: be32(file, at)?, height: be32(file, at + 4)?, bit_depth, color_type })
    }

    /// Height, width and channels.
    pub(super) fn shape(&self) -> [u64; 3] {
        [self.height.into(), self.width.into(), self.channels()]
    }

    pub(super) fn bit_depth(&self) -> u8 {
        self.bit_depth
    }

    /// Whether values are shades of gray and nothing else.
    pub(super) fn is_gray(&self) -> bool {
        self.color_type == 0
    }

    /// Size of a pixel as it is stored.
    pub(super) fn pixel_bits(&self) -> u8 {
        self.bit_depth.saturating_mul(self.channels() as u8)
    }

    fn channels(&self) -> u64 {
        match self.color_type {
            2 => 3,
            4 => 2,
            6 => 4,
            _ => 1,
        }
    }

    /// Size of a row as it is stored, its filter number apart.
    pub(super) fn row_bytes(&self) -> u64 {
        (u64::from(self.width) * self.channels() * u64::from(self.bit_depth)).div_ceil(8)
    }

    /// Size of the array that Pillow makes of the image: a byte a value, of 16 bits only in gray.
    pub(super) fn pixel_bytes(&self) -> u64 {
        let values = u64::from(self.width) * u64::from(self.height);
        values.saturating_mul(self.channels()).saturating_mul(self.element().size_bytes())
    }

    /// Element type of that array.
    pub(super) fn element(&self) -> Element {
        if self.bit_depth == 16 && self.is_gray() { Element::UInt16 } else { Element::UInt8 }
    }
}

/// Walks over all chunks to the last, checks their CRCs, and finds the header and the data.
pub(super) fn check(file: &[u8]) -> Decoded<Chunks> {
    if !file.starts_with(&SIGNATURE) {
        return Err(DecodeError::Foreign {
            format: "a png",
            offset: 0,
            expected: "the signature 89 50 4e 47 0d 0a 1a 0a",
            found: file[..file.len().min(8)].to_vec(),
        });
    }
    let (first, mut at) = chunk(file, SIGNATURE.len())?;
    if first.kind != *b"IHDR" || first.body.len() != 13 {
        return Err(field(SIGNATURE.len(), "a chunk IHDR of 13 bytes", &first));
    }
    let header = Header::parse(file).ok_or_else(|| truncated(file, SIGNATURE.len() + 25))?;
    let mut data_offset = None;
    loop {
        let (found, end) = chunk(file, at)?;
        match &found.kind {
            b"IDAT" => data_offset = data_offset.or(Some(at as u64)),
            b"IEND" => match data_offset {
                Some(data_offset) if found.body.is_empty() => {
                    return Ok(Chunks { header, data_offset });
                }
                Some(_) => return Err(field(at, "a chunk IEND of no bytes", &found)),
                None => return Err(field(at, "a chunk IDAT", &found)),
            },
            _ => (),
        }
        at = end;
    }
}

/// A chunk whose CRC is right.
struct Chunk<'a> {
    kind: [u8; 4],
    body: &'a [u8],
}

/// The chunk at `at`, and where the next begins.
fn chunk(file: &[u8], at: usize) -> Decoded<(Chunk<'_>, usize)> {
    let frame = at.saturating_add(12);
    let len = be32(file, at).ok_or_else(|| truncated(file, frame))? as usize;
    let end = frame.saturating_add(len);
    if end > file.len() {
        return Err(truncated(file, end));
    }
    let covered = &file[at + 4..end - 4];
    let expected = be32(file, end - 4).ok_or_else(|| truncated(file, end))?;
    let found = crc32fast::hash(covered);
    if found != expected {
        let (format, what, offset) = ("png", "the chunk", at as u64);
        return Err(DecodeError::Checksum { format, what, offset, expected, found });
    }
    match covered.split_first_chunk() {
        Some((&kind, body)) => Ok((Chunk { kind, body }, end)),
        None => Err(truncated(file, end)),
    }
}

fn truncated(file: &[u8], end: usize) -> DecodeError {
    let found = file.len() as u64;
    DecodeError::truncated(end as u64, found)
}

fn field(at: usize, expected: &'static str, found: &Chunk<'_>) -> DecodeError {
    let kind = found.kind.escape_ascii();
    let found = format!("a chunk {kind} of {} bytes", found.body.len());
    DecodeError::Field { format: "png", offset: at as u64, expected, found }
}
