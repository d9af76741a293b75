//! The segments of a JPEG file: markers, lengths, and what the tables among them say.

use super::huffman::{Table, Use};
use super::stuffing::next_ff;
use super::tables::ZIGZAG;
use crate::DecodeError;
use crate::image::be16;

pub(super) const EOI: u8 = 0xD9;
const SOI: u8 = 0xD8;
const SOS: u8 = 0xDA;

/// What a file says before its first scan.
pub(super) struct Head {
    pub(super) frame: Frame,
    tables: TableSet,
}

/// Tables and settings so far.
#[derive(Default)]
struct TableSet {
    restart_interval: u16,
    divisors: [Option<[u16; 64]>; 4],
    dc: [Option<Box<Table>>; 4],
    ac: [Option<Box<Table>>; 4],
}

/// The image as the frame header announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// Where the header begins.
    pub(super) offset: u64,
    pub(super) progressive: bool,
    pub(super) height: u16,
    pub(super) width: u16,
    pub(super) components: u8,
    /// Name of the first component, and the number of its divisors.
    first: (u8, u8),
}

impl Frame {
    /// Whether it is gray and of one scan.
    pub(super) fn is_plain_gray(&self) -> bool {
        self.components == 1 && !self.progressive
    }

    /// Values of a pixel as it is decoded: gray stays gray, all else becomes RGB.
    pub(super) fn channels(&self) -> usize {
        if self.components == 1 { 1 } else { 3 }
    }

    /// Bytes from one decoded row to the next.
    pub(super) fn stride(&self) -> usize {
        let width = usize::from(self.width);
        if self.is_plain_gray() { width.next_multiple_of(8) } else { width * self.channels() }
    }
}

/// The tables that the only scan of a gray image uses.
pub(super) struct Tables<'a> {
    pub(super) divisors: &'a [u16; 64],
    pub(super) dc: &'a Table,
    pub(super) ac: &'a Table,
}

/// A marker and what belongs to it.
pub(super) struct Segment<'a> {
    pub(super) marker: u8,
    /// Where it begins.
    pub(super) offset: usize,
    body: &'a [u8],
    pub(super) end: usize,
}

/// Reads everything up to the header of the first scan, and that.
pub(super) fn head(file: &[u8]) -> Result<(Head, Segment<'_>), DecodeError> {
    if !file.starts_with(&[0xFF, SOI, 0xFF]) {
        return Err(DecodeError::Foreign {
            format: "a jpeg",
            offset: 0,
            expected: "the markers ff d8 ff",
            found: file[..file.len().min(3)].to_vec(),
        });
    }
    let mut tables = TableSet::default();
    let mut frame = None;
    let mut at = 2;
    loop {
        let found = segment(file, at)?;
        at = found.end;
        match found.marker {
            0xC4 => tables.add_codes(&found)?,
            0xDB => tables.add_divisors(&found)?,
            0xDD => tables.restart_interval = found.number(0)?,
            0xC0..=0xCF if frame.is_some() => return Err(found.feature("a second frame")),
            0xC0..=0xCF => frame = Some(Frame::parse(&found)?),
            SOS | EOI => match frame {
                Some(frame) if found.marker == SOS => return Ok((Head { frame, tables }, found)),
                Some(_) => return Err(field(found.offset, "a scan", found.name())),
                None => return Err(field(found.offset, "a frame header", found.name())),
            },
            _ => (),
        }
    }
}

/// Walks from the data of a scan to the end of the image; returns where that is.
pub(super) fn end_of_image(file: &[u8], data: usize) -> Result<usize, DecodeError> {
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

/// The marker that ends the data which begins at `at`, restarts not counted.
fn end_of_data(file: &[u8], mut at: usize) -> Result<usize, DecodeError> {
    loop {
        at = marker(file, at)?;
        match file.get(at + 1) {
            Some(0xD0..=0xD7) => at += 2,
            _ => return Ok(at),
        }
    }
}

/// The next `FF` that is not followed by a zero.
pub(super) fn marker(file: &[u8], mut at: usize) -> Result<usize, DecodeError> {
    loop {
        at += next_ff(file.get(at..).unwrap_or_default());
        match file.get(at + 1) {
            Some(0) => at += 2,
            Some(_) => return Ok(at),
            None => return Err(truncated(file, file.len() + 2)),
        }
    }
}

/// The segment at `at`, which may have fill bytes before its marker.
pub(super) fn segment(file: &[u8], at: usize) -> Result<Segment<'_>, DecodeError> {
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
    pub(super) fn name(&self) -> String {
        format!("ff {:02x}", self.marker)
    }

    /// Where byte `at` of the body stands in the file.
    fn place(&self, at: usize) -> usize {
        self.end - self.body.len() + at
    }

    fn byte(&self, at: usize) -> Result<u8, DecodeError> {
        self.body.get(at).copied().ok_or_else(|| self.short())
    }

    fn number(&self, at: usize) -> Result<u16, DecodeError> {
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
    fn parse(found: &Segment<'_>) -> Result<Frame, DecodeError> {
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
        let offset = found.offset as u64;
        let first = (found.byte(6)?, found.byte(8)?);
        Ok(Frame { offset, progressive, height, width, components, first })
    }
}

impl TableSet {
    fn add_divisors(&mut self, found: &Segment<'_>) -> Result<(), DecodeError> {
        let mut at = 0;
        while at < found.body.len() {
            let kind = found.byte(at)?;
            let (wide, index) = (kind >> 4 == 1, usize::from(kind & 15));
            if kind >> 4 > 1 || index > 3 {
                let found_kind = format!("{kind:02x}");
                return Err(field(found.place(at), "a table of 8 or 16 bits, 0 to 3", found_kind));
            }
            at += 1;
            let mut divisors = [0; 64];
            for place in ZIGZAG {
                let (divisor, len) =
                    if wide { (found.number(at)?, 2) } else { (u16::from(found.byte(at)?), 1) };
                divisors[usize::from(place)] = divisor;
                at += len;
            }
            self.divisors[index] = Some(divisors);
        }
        Ok(())
    }

    fn add_codes(&mut self, found: &Segment<'_>) -> Result<(), DecodeError> {
        let mut at = 0;
        while at < found.body.len() {
            let kind = found.byte(at)?;
            let (tables, usage) = match kind >> 4 {
                0 => (&mut self.dc, Use::Means),
                1 => (&mut self.ac, Use::Rest),
                _ => return Err(field(found.place(at), "a code table", format!("{kind:02x}"))),
            };
            let Some(table) = tables.get_mut(usize::from(kind & 15)) else {
                return Err(field(found.place(at), "a code table 0 to 3", format!("{kind:02x}")));
            };
            let counts: &[u8; 16] =
                found.body[at + 1..].first_chunk().ok_or_else(|| found.short())?;
            let total: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let symbols = at + 17..at + 17 + total;
            let meanings = found.body.get(symbols.clone()).ok_or_else(|| found.short())?;
            let built = Table::new(usage, counts, meanings).ok_or_else(|| {
                let words = format!("{total} codes of {counts:?}");
                field(found.place(at), "a code that no two symbols share", words)
            })?;
            *table = Some(Box::new(built));
            at = symbols.end;
        }
        Ok(())
    }
}

impl Head {
    /// The number of blocks between two restarts, or 0 for all of them.
    pub(super) fn restart_interval(&self) -> usize {
        usize::from(self.tables.restart_interval)
    }

    /// The tables that a scan of the one component of the frame names.
    pub(super) fn gray(&self, scan: &Segment<'_>) -> Result<Tables<'_>, DecodeError> {
        let TableSet { divisors, dc, ac, .. } = &self.tables;
        let (name, divisor) = self.frame.first;
        let expected = [1, name, 0, 63, 0];
        let stands = [scan.byte(0)?, scan.byte(1)?, scan.byte(3)?, scan.byte(4)?, scan.byte(5)?];
        if stands != expected {
            let found = format!("{stands:02x?}");
            return Err(field(scan.offset, "a scan of the whole of the one component", found));
        }
        let codes = scan.byte(2)?;
        let missing = |what| move || field(scan.offset, what, "none".to_owned());
        Ok(Tables {
            divisors: (divisors.get(usize::from(divisor)).and_then(Option::as_ref))
                .ok_or_else(missing("the scan's divisors before it"))?,
            dc: (dc.get(usize::from(codes >> 4)).and_then(Option::as_deref))
                .ok_or_else(missing("the scan's DC code before it"))?,
            ac: (ac.get(usize::from(codes & 15)).and_then(Option::as_deref))
                .ok_or_else(missing("the scan's AC code before it"))?,
        })
    }
}

pub(super) fn truncated(file: &[u8], needed: usize) -> DecodeError {
    let found = file.len() as u64;
    DecodeError::Truncated { offset: found, needed: needed as u64, found }
}

pub(super) fn field(offset: usize, expected: &'static str, found: String) -> DecodeError {
    DecodeError::Field { format: "jpeg", offset: offset as u64, expected, found }
}
