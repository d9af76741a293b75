//! The segments of a JPEG file: markers, lengths, and the frame header.
//!
//! The decoder stops at the last block, and takes a file without an end for a whole one; walking the
//! markers to the end of the image is what tells a truncated file.

use crate::image::be16;
use crate::{DecodeError, Decoded};

const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;

/// The image as the frame header announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Where the header begins.
    pub(super) offset: u64,
    pub(super) progressive: bool,
    pub(super) height: u16,
    pub(super) width: u16,
    pub(super) components: u8,
}

impl Frame {
    /// Values per pixel as it is decoded: gray stays gray, everything else becomes RGB.
    pub(super) fn channels(&self) -> usize {
        if self.components == 1 { 1 } else { 3 }
    }
}

/// A marker and what belongs to it.
pub(super) struct Segment<'a> {
    marker: u8,
    /// Where the marker begins.
    pub(super) offset: usize,
    body: &'a [u8],
    /// Where the next segment, or the data of the scan, begins.
    pub(super) end: usize,
}

/// Finds the frame header and the header of the first scan.
pub(super) fn head(file: &[u8]) -> Decoded<(Frame, Segment<'_>)> {
    if !file.starts_with(&[0xFF, SOI, 0xFF]) {
        return Err(DecodeError::Foreign {
            format: "a jpeg",
            offset: 0,
            expected: "the markers ff d8 ff",
            found: file[..file.len().min(3)].to_vec(),
        });
    }
    let mut frame = None;
    let mut at = 2;
    loop {
        let found = segment(file, at)?;
        at = found.end;
        match found.marker {
            // Code tables, whose marker is among those of frames.
            0xC4 => (),
            0xC0..=0xCF if frame.is_some() => return Err(found.feature("a second frame")),
            0xC0..=0xCF => frame = Some(Frame::parse(&found)?),
            SOS | EOI => match frame {
                Some(frame) if found.marker == SOS => return Ok((frame, found)),
                Some(_) => return Err(field(found.offset, "a scan", found.name())),
                None => return Err(field(found.offset, "a frame header", found.name())),
            },
            _ => (),
        }
    }
}

/// Walks from the data of a scan to the end of the image; returns where that is.
pub(super) fn end_of_image(file: &[u8], data: usize) -> Decoded<usize> {
    let mut at = end_of_data(file, data)?;
    loop {
        let found = segment(file, at)?;
        at = match found.marker {
            EOI => return Ok(found.end),
            SOS => end_of_data(file, found.end)?,
            _ => found.end,
        };
    }
}

/// The marker that ends the data that begins at `at`. Restart markers belong to the data, and come
/// in turn.
fn end_of_data(file: &[u8], mut at: usize) -> Decoded<usize> {
    for restart in (0xD0..=0xD7).cycle() {
        at = marker(file, at)?;
        match file.get(at + 1) {
            Some(&found) if found == restart => at += 2,
            Some(found @ 0xD0..=0xD7) => {
                return Err(field(at, "the next restart marker", format!("ff {found:02x}")));
            }
            _ => break,
        }
    }
    Ok(at)
}

/// The next `FF` that is not followed by a zero.
fn marker(file: &[u8], data: usize) -> Decoded<usize> {
    let tail = file.get(data..).unwrap_or_default();
    memchr::memchr_iter(0xFF, tail)
        .map(|at| data + at)
        .find(|at| file.get(at + 1) != Some(&0))
        .filter(|at| at + 1 < file.len())
        .ok_or_else(|| truncated(file, file.len() + 2))
}

/// The segment at `at`, which may have fill bytes before its marker.
fn segment(file: &[u8], at: usize) -> Decoded<Segment<'_>> {
    let ones = file.get(at..).unwrap_or_default().iter().take_while(|&&byte| byte == 0xFF).count();
    let after = at + ones;
    let Some(&marker) = file.get(after) else { return Err(truncated(file, after + 1)) };
    if ones == 0 {
        return Err(field(at, "a marker", format!("{marker:02x}")));
    }
    let start = after + 1;
    let (body, end) = match marker {
        EOI => (&file[..0], start),
        0x00 | 0x01 | 0xD0..=0xD8 => {
            return Err(field(after - 1, "a segment", format!("ff {marker:02x}")));
        }
        _ => {
            let Some(len) = be16(file, start) else { return Err(truncated(file, start + 2)) };
            let end = start + usize::from(len);
            if len < 2 {
                return Err(field(start, "a length of 2 or more", len.to_string()));
            }
            (file.get(start + 2..end).ok_or_else(|| truncated(file, end))?, end)
        }
    };
    Ok(Segment { marker, offset: after - 1, body, end })
}

impl Segment<'_> {
    fn name(&self) -> String {
        format!("ff {:02x}", self.marker)
    }

    /// Where byte `at` of the body is in the file.
    fn place(&self, at: usize) -> usize {
        self.end - self.body.len() + at
    }

    fn byte(&self, at: usize) -> Decoded<u8> {
        self.body.get(at).copied().ok_or_else(|| self.short())
    }

    fn number(&self, at: usize) -> Decoded<u16> {
        be16(self.body, at).ok_or_else(|| self.short())
    }

    fn short(&self) -> DecodeError {
        let found = format!("{} bytes in the segment {}", self.body.len(), self.name());
        field(self.offset, "more", found)
    }

    fn feature(&self, feature: impl Into<String>) -> DecodeError {
        let (format, offset) = ("jpeg", self.offset as u64);
        DecodeError::Feature { format, feature: feature.into(), offset }
    }
}

impl Frame {
    fn parse(found: &Segment<'_>) -> Decoded<Frame> {
        let progressive = match found.marker {
            0xC0 | 0xC1 => false,
            0xC2 => true,
            0xC3 => return Err(found.feature("lossless coding")),
            0xC5..=0xC7 => return Err(found.feature("hierarchical coding")),
            0xC8 => return Err(found.feature("an extension")),
            _ => return Err(found.feature("arithmetic coding")),
        };
        let bits = found.byte(0)?;
        if bits != 8 {
            return Err(found.feature(format!("a depth of {bits} bits")));
        }
        let (height, width) = (found.number(1)?, found.number(3)?);
        match (height, width) {
            (0, _) => return Err(found.feature("a height that is given after the image")),
            (_, 0) => return Err(field(found.place(3), "a width", "0".to_owned())),
            _ => (),
        }
        let components = found.byte(5)?;
        if !matches!(components, 1 | 3 | 4) {
            return Err(found.feature(format!("an image of {components} components")));
        }
        Ok(Frame { offset: found.offset as u64, progressive, height, width, components })
    }
}

fn truncated(file: &[u8], needed: usize) -> DecodeError {
    let found = file.len() as u64;
    DecodeError::truncated(needed as u64, found)
}

fn field(offset: usize, expected: &'static str, found: String) -> DecodeError {
    DecodeError::Field { format: "jpeg", offset: offset as u64, expected, found }
}
