//! `npz`: a ZIP archive of two arrays, the samples `x` and their labels `y`, stored or deflated.
//!
//! Written as NumPy does under Python 3.11.4 and later, stored members byte for byte. Read as NumPy
//! does: directory at the end, then all of `x` in pieces, its checksum computed and compared; `y` is
//! never read. What a file contains decides how it is read, not what the workload says.

mod packed;

use crc32fast::Hasher;

use crate::array_sample::ArraySample;
use crate::framework::FrameworkReader;
use crate::npy_header::{self, Header};
use crate::sample_sink::{Decode, Request};
use crate::window::Window;
use crate::writer::Writer;
use crate::zip::{self, Member, Packing, Written};
use crate::{
    ByteSink, ByteSource, Compression, Content, DecodeError, Decoded, Element, Encoded, FileSize,
    FileSpec, Format, Opened, OptionError, Options, ReadUnit, SampleFormat, SampleRead, SampleSink,
    Scratch,
};

pub(crate) const SAMPLES: &str = "x.npy";
/// What NumPy calls that member.
pub(crate) const SAMPLES_NAME: &str = "x";
const LABELS: &str = "y.npy";

pub(crate) struct Npz {
    /// The level at which members are deflated; `None` means that they are stored.
    level: Option<u32>,
}

pub(crate) static FACTS: SampleFormat = SampleFormat {
    compressions: &[Compression::Zip],
    read_unit: ReadUnit::File,
    framework: Some(FrameworkReader::NumpyArchive),
    ..SampleFormat::new("npz", build)
};

fn build(options: &Options) -> Result<Box<dyn Format>, OptionError> {
    let level = (options.compression == Compression::Zip).then_some(options.level);
    Ok(Box::new(Npz { level }))
}

impl Format for Npz {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let Some(layout) = Layout::of(file) else { return FileSize::Exact(u64::MAX) };
        let directory = zip::directory(&layout.members(0, 0), layout.directory_at);
        let stored = layout.directory_at.saturating_add(directory.len() as u64);
        match self.level {
            Some(level) => packed::size(file, level, stored - layout.x_data),
            None => FileSize::Exact(stored),
        }
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let layout = Layout::of(file).ok_or_else(|| file.too_large())?;
        if let Some(level) = self.level {
            return packed::encode(file, content, &layout, level, sink);
        }
        let mut writer = Writer::new(sink);
        let [x, y] = layout.members(0, layout.labels_crc());

        writer.put(&zip::local_header(&x))?;
        writer.put(&layout.x_header)?;
        let mut crc = Hasher::new();
        crc.update(&layout.x_header);
        writer.generate(layout.x_data, |at, space| {
            content.fill(file.element, at, space);
            crc.update(space);
        })?;
        let x = Written { crc: crc.finalize(), ..x };
        writer.patch(x.header_offset + zip::LOCAL_CRC_AT, &x.crc.to_le_bytes())?;

        writer.put(&zip::local_header(&y))?;
        writer.put(&layout.y_header)?;
        writer.generate(layout.y_data, |_, space| space.fill(0))?;
        writer.put(&zip::directory(&[x, y], layout.directory_at))
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(OpenedNpz))
    }
}

/// A file of which nothing is known yet.
struct OpenedNpz;

impl Decode for OpenedNpz {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let mut window = Window::new(source, &mut scratch.piece)?;
        let mut sample = ArraySample::new(sink);
        let header = read_samples(&mut window, &mut scratch.decoded, index, |header, piece| {
            if !sample.has_begun() {
                sample.begin_npy(SAMPLES_NAME, header, index, header.len)?;
            }
            sample.put(piece)
        })?;
        sample.finish()?;
        Ok(crate::npy::found(&header, window.pulled()))
    }
}

/// Reads all of `x`, checks it, and shows each piece of it, from its header on, to `visit`.
fn read_samples(
    window: &mut Window<'_>,
    decoded: &mut Vec<u8>,
    index: u64,
    mut visit: impl FnMut(&Header, &[u8]) -> Decoded<()>,
) -> Decoded<Header> {
    let member = zip::locate(window, SAMPLES)?;
    if member.packing == Packing::Deflated {
        return packed::read_samples(window, &member, decoded, index, visit);
    }
    let too_short = |needed| too_short(&member, needed);
    let header = npy_header::of_member(window, member.data_offset, member.size, too_short)?;
    header.check_index(index, member.data_offset)?;

    let mut crc = Hasher::new();
    window.stream(member.data_offset..member.data_offset + member.size, |piece| {
        crc.update(piece);
        visit(&header, piece)
    })?;
    check_crc(&member, crc.finalize())?;
    Ok(header)
}

pub(crate) fn check_crc(member: &Member, found: u32) -> Decoded<()> {
    if found == member.crc {
        return Ok(());
    }
    Err(DecodeError::Crc {
        offset: member.data_offset,
        member: SAMPLES.to_owned(),
        expected: member.crc,
        found,
    })
}

pub(crate) fn too_short(member: &Member, needed: u64) -> DecodeError {
    DecodeError::MemberTooShort {
        offset: member.data_offset,
        member: SAMPLES.to_owned(),
        needed,
        found: member.size,
    }
}

/// Where everything in a file is, known before the first byte is written.
struct Layout {
    x_header: Vec<u8>,
    x_data: u64,
    y_header: Vec<u8>,
    y_data: u64,
    y_offset: u64,
    directory_at: u64,
}

impl Layout {
    /// `None` if 64 bits cannot hold the file's size.
    fn of(file: &FileSpec) -> Option<Layout> {
        let x_header = npy_header::of_samples(file);
        let y_header = npy_header::build(Element::Int64, &[file.samples]);
        let x_data = file.payload_bytes()?;
        let y_data = file.samples.checked_mul(Element::Int64.size_bytes())?;
        let frame = |name: &str, header: &[u8]| zip::local_len(name) + header.len() as u64;
        let y_offset = x_data.checked_add(frame(SAMPLES, &x_header))?;
        let directory_at = y_offset.checked_add(y_data)?.checked_add(frame(LABELS, &y_header))?;
        Some(Layout { x_header, x_data, y_header, y_data, y_offset, directory_at })
    }

    fn members(&self, x_crc: u32, y_crc: u32) -> [Written; 2] {
        let size = |header: &[u8], data| header.len() as u64 + data;
        let x_size = size(&self.x_header, self.x_data);
        let y_size = size(&self.y_header, self.y_data);
        let stored = |name, header_offset, size, crc| {
            let packing = Packing::Stored;
            Written { name, header_offset, size, packed_size: size, packing, crc }
        };
        [stored(SAMPLES, 0, x_size, x_crc), stored(LABELS, self.y_offset, y_size, y_crc)]
    }

    fn labels_crc(&self) -> u32 {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut crc = Hasher::new();
        crc.update(&self.y_header);
        let mut left = self.y_data;
        while left > 0 {
            let part = left.min(ZEROS.len() as u64);
            crc.update(&ZEROS[..part as usize]);
            left -= part;
        }
        crc.finalize()
    }
}

#[cfg(test)]
mod tests;
