//! Deflated members, as `np.savez_compressed` writes them.

use crc32fast::Hasher;

use super::{LABELS, Layout, SAMPLES, check_crc, too_short};
use crate::deflate::{self, BUFFER_BYTES, Deflater, Inflater, Packed};
use crate::npy_header::{self, Header, PREFIX_BYTES};
use crate::window::Window;
use crate::writer::Writer;
use crate::zip::{self, Member, Packing, Written};
use crate::{
    ByteSink, Content, DecodeError, Decoded, Encoded, FileSize, FileSpec, HEAD_BYTES, Streamed,
};

const FORMAT: &str = "npz";

/// The size of a file whose frame, labels included, takes `frame` bytes before it is deflated.
pub(super) fn size(file: &FileSpec, level: u32, frame: u64) -> FileSize {
    // Labels and header shrink to next to nothing; what remains are the records of the archive.
    let payload = file.payload_bytes().unwrap_or(u64::MAX);
    let payload = deflate::noise_size(file.element, level, payload);
    FileSize::About(payload.saturating_add(frame.min(500)))
}

pub(super) fn encode(
    file: &FileSpec,
    content: &Content,
    layout: &Layout,
    level: u32,
    sink: &mut dyn ByteSink,
) -> Encoded<()> {
    let mut writer = Writer::new(sink);
    let unknown = Packed { crc: 0, size: 0, packed_size: 0 };
    writer.put(&zip::local_header(&written(SAMPLES, 0, unknown)))?;

    let mut deflater = Deflater::new(FORMAT, level);
    deflater.put(&layout.x_header, &mut writer)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut at = 0;
    while at < layout.x_data {
        let part = (layout.x_data - at).min(BUFFER_BYTES as u64) as usize;
        content.fill(file.element, at, &mut buffer[..part]);
        deflater.put(&buffer[..part], &mut writer)?;
        at += part as u64;
    }
    let x = written(SAMPLES, 0, deflater.finish(&mut writer)?);
    writer.patch(0, &zip::local_header(&x))?;

    // The header in front of the labels may be too far from the beginning to be patched, so they
    // are deflated twice: once to know their size. However many they are, none is held.
    let y = put_labels(layout, level, &mut Writer::new(&mut Nowhere::new()))?;
    let y = written(LABELS, writer.written(), y);
    writer.put(&zip::local_header(&y))?;
    put_labels(layout, level, &mut writer)?;
    let directory_at = writer.written();
    writer.put(&zip::directory(&[x, y], directory_at))
}

fn written(name: &'static str, header_offset: u64, packed: Packed) -> Written {
    let Packed { crc, size, packed_size } = packed;
    Written { name, header_offset, size, packed_size, packing: Packing::Deflated, crc }
}

fn put_labels(layout: &Layout, level: u32, writer: &mut Writer<'_>) -> Encoded<Packed> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut deflater = Deflater::new(FORMAT, level);
    deflater.put(&layout.y_header, writer)?;
    let mut left = layout.y_data;
    while left > 0 {
        let part = left.min(ZEROS.len() as u64);
        deflater.put(&ZEROS[..part as usize], writer)?;
        left -= part;
    }
    deflater.finish(writer)
}

/// Takes bytes and forgets them.
struct Nowhere {
    room: [u8; HEAD_BYTES],
}

impl Nowhere {
    fn new() -> Nowhere {
        Nowhere { room: [0; HEAD_BYTES] }
    }
}

impl ByteSink for Nowhere {
    fn space(&mut self, want: usize) -> Streamed<&mut [u8]> {
        Ok(&mut self.room[..want.min(HEAD_BYTES)])
    }

    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> Streamed<()> {
        Ok(())
    }
}

/// Expands all of `x`, checks it, and shows each piece of it, from its header on, to `visit`.
///
/// What comes out must be as long as both the directory and the array's header say; nothing is
/// allocated by either number. Places in the header count from where the compressed data begins.
pub(super) fn read_samples(
    window: &mut Window<'_>,
    member: &Member,
    decoded: &mut Vec<u8>,
    index: u64,
    mut visit: impl FnMut(&Header, &[u8]) -> Decoded<()>,
) -> Decoded<Header> {
    let (begin, end) = (member.data_offset, member.data_offset + member.packed_size);
    decoded.resize(decoded.len().max(BUFFER_BYTES), 0);
    let buffer = &mut decoded[..BUFFER_BYTES];
    let mut inflater = Inflater::new(FORMAT, begin, end);

    let mut filled = inflater.fill(window, buffer)?;
    let header = array_header(&buffer[..filled], member)?;
    header.check_index(index, begin)?;
    let mut crc = Hasher::new();
    let mut size = 0;
    while filled > 0 {
        crc.update(&buffer[..filled]);
        visit(&header, &buffer[..filled])?;
        size += filled as u64;
        if size > member.size {
            break;
        }
        filled = inflater.fill(window, buffer)?;
    }
    let wrong =
        |expected, found| DecodeError::Field { format: FORMAT, offset: begin, expected, found };
    if size != member.size {
        let than = if size > member.size { "more" } else { "less" };
        let found = format!("{than} than the {} that the zip directory says", member.size);
        return Err(wrong("as many bytes in x.npy as announced", found));
    }
    if inflater.at() != end {
        let found = format!("{}, the end of the member is {end}", inflater.at());
        return Err(wrong("compressed data that fills its member", found));
    }
    check_crc(member, crc.finalize())?;
    Ok(header)
}

/// The header at the beginning of what was expanded, whose array must fill the member.
fn array_header(expanded: &[u8], member: &Member) -> Decoded<Header> {
    let offset = member.data_offset;
    let prefix = &expanded[..expanded.len().min(PREFIX_BYTES)];
    let needed = npy_header::header_len(prefix, offset)?;
    let found = expanded.len() as u64;
    let bytes = usize::try_from(needed).ok().and_then(|len| expanded.get(..len));
    let bytes = bytes.ok_or_else(|| match needed > member.size {
        true => too_short(member, needed),
        false => DecodeError::Scratch { offset, needed, found },
    })?;
    let header = npy_header::parse(bytes, offset)?;
    match needed.checked_add(header.data_bytes) {
        Some(needed) if needed == member.size => Ok(header),
        Some(needed) if needed < member.size => Err(DecodeError::field(
            FORMAT,
            offset,
            "an array that fills member x.npy",
            format!("{needed} of {} bytes", member.size),
        )),
        needed => Err(too_short(member, needed.unwrap_or(u64::MAX))),
    }
}
