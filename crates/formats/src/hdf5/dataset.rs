//! A dataset: what its header says, and how one sample of it is read.

use super::blocks::Blocks;
use super::chunks::{ChunkLayout, Chunks, IndexAt, Stored};
use super::datatype::{self, Datatype};
use super::fields::{FORMAT, Fields, unsupported, wrong};
use super::filters::{self, Filter, Packed, Unpacker};
use super::group::{Member, Name};
use super::header::{self, Message, kind};
use crate::error::check_limit;
use crate::scratch::grow;
use crate::{ByteRange, DecodeError, Decoded, Element};

/// Size of the largest element type.
const MOST_ELEMENT_BYTES: usize = 16;

/// Most axes that HDF5 allows.
const MOST_AXES: u8 = 32;

/// A chunk that is not inflated in pieces may be this many times as large as the whole file: in
/// memory it may be twice, beside what was read.
const MOST_EXPANDED: u64 = 7;
/// What is fine for any file.
const SMALL_CHUNK: u64 = 256 * 1024;

/// A dataset whose header has been read.
pub(super) struct Dataset {
    space: Space,
    pub(super) element: Element,
    pub(super) is_big_endian: bool,
    pub(super) name: Name,
    /// An element that was never written, unless it is 0.
    pub(super) fill: Option<Vec<u8>>,
    layout: Layout,
    filters: Vec<Filter>,
    /// Size of one sample.
    pub(super) sample_bytes: u64,
}

/// The shape of a dataset.
pub(super) struct Space {
    pub(super) dims: Vec<u64>,
    /// How far each axis may grow.
    pub(super) limits: Vec<Option<u64>>,
    place: u64,
}

enum Layout {
    /// In one range, or in the header itself, or not at all if nothing was ever written.
    Contiguous(Option<u64>),
    Chunked(Box<Chunks>),
}

/// Bytes that were read for a sample.
pub(super) struct Part<'a> {
    /// Coordinates of the chunk it is from, in chunks; of contiguous samples there are none.
    pub(super) chunk: Option<&'a [u64]>,
    /// Where in the chunk or sample it begins.
    pub(super) at: u64,
    pub(super) bytes: &'a [u8],
}

/// What unpacks chunks: its state, and the two buffers that it works in.
pub(super) struct Workbench<'a> {
    pub(super) unpacker: &'a mut Unpacker,
    pub(super) packed: &'a mut Vec<u8>,
    pub(super) spare: &'a mut Vec<u8>,
}

/// What the messages of a header said so far.
#[derive(Default)]
struct Described {
    space: Option<Space>,
    datatype: Option<Datatype>,
    fill: Option<Vec<u8>>,
    layout: Option<LayoutMessage>,
    filters: Vec<Filter>,
}

enum LayoutMessage {
    Compact { offset: u64, len: u64 },
    Contiguous { offset: Option<u64> },
    Chunked { layout: ChunkLayout, element_bytes: u64 },
}

impl Dataset {
    /// Reads the header.
    pub(super) fn open(blocks: &mut Blocks<'_>, member: Member) -> Decoded<Dataset> {
        let Member { header: offset, name } = member;
        let mut described = Described::default();
        header::messages(blocks, offset, &mut |message| described.add(message))?;
        let Described { space, datatype, fill, layout, filters } = described;
        let missing = |expected| move || wrong(offset, expected, "a header without");
        let space = space.ok_or_else(missing("a dataspace"))?;
        let datatype = datatype.ok_or_else(missing("a datatype"))?;
        let Datatype { element, is_big_endian } = datatype;
        let layout = layout.ok_or_else(missing("a layout"))?;
        let size = |dims: &[u64]| {
            let bytes =
                dims.iter().try_fold(element.size_bytes(), |all, &dim| all.checked_mul(dim));
            bytes.ok_or_else(|| wrong(space.place, "a size below 2^64", format!("{dims:?}")))
        };
        let Some(sample_dims) = space.dims.get(1..) else {
            return Err(wrong(space.place, "a dataset with a sample axis", "a scalar"));
        };
        let sample_bytes = size(sample_dims)?;
        let total = size(&space.dims)?;
        let layout = match layout {
            LayoutMessage::Compact { offset, len } if len < total => {
                return Err(wrong(offset, "all of the dataset", format!("{len} bytes")));
            }
            LayoutMessage::Compact { offset, .. } => Layout::Contiguous(Some(offset)),
            LayoutMessage::Contiguous { offset } => {
                if let Some(offset) = offset {
                    blocks.window.check_end(offset.saturating_add(total))?;
                }
                Layout::Contiguous(offset)
            }
            LayoutMessage::Chunked { layout, element_bytes } => {
                datatype::check_size(element, element_bytes, layout.place)?;
                let chunks = Chunks::new(layout, &space, element_bytes, !filters.is_empty())?;
                Layout::Chunked(Box::new(chunks))
            }
        };
        let fill = fill.filter(|fill| fill.len() as u64 == element.size_bytes());
        Ok(Dataset { space, element, is_big_endian, name, fill, layout, filters, sample_bytes })
    }

    /// Samples it holds.
    pub(super) fn samples(&self) -> u64 {
        self.space.dims[0]
    }

    /// The shape, and that of a chunk if there are any.
    pub(super) fn dims(&self) -> (&[u64], Option<&[u64]>) {
        let chunk = match &self.layout {
            Layout::Chunked(chunks) => Some(chunks.dims()),
            Layout::Contiguous(_) => None,
        };
        (&self.space.dims, chunk)
    }

    /// Whether samples are read front to back, and were written at all.
    pub(super) fn is_streamed(&self) -> bool {
        matches!(self.layout, Layout::Contiguous(Some(_)))
    }

    pub(super) fn check_index(&self, index: u64) -> Decoded<()> {
        let samples = self.samples();
        if index < samples {
            return Ok(());
        }
        Err(DecodeError::SampleIndex { offset: self.space.place, index, samples })
    }

    /// Reads a sample and shows it, part by part.
    pub(super) fn read(
        &mut self,
        blocks: &mut Blocks<'_>,
        index: u64,
        bench: &mut Workbench<'_>,
        visit: &mut impl FnMut(&Part<'_>) -> Decoded<()>,
    ) -> Decoded<()> {
        self.check_index(index)?;
        match &mut self.layout {
            _ if self.sample_bytes == 0 => Ok(()),
            Layout::Contiguous(None) => Ok(()),
            Layout::Contiguous(Some(start)) => {
                let offset = *start + index * self.sample_bytes;
                let mut show = |at, bytes: &[u8]| visit(&Part { chunk: None, at, bytes });
                if blocks.window.is_exact() {
                    let left = (self.space.dims[0] - index) * self.sample_bytes;
                    return bench.read_at_once(
                        blocks,
                        offset,
                        (self.sample_bytes, left),
                        &mut show,
                    );
                }
                stream(blocks, offset, self.sample_bytes, &mut show)
            }
            Layout::Chunked(chunks) => {
                let (chunk_bytes, filters) = (chunks.bytes(), &self.filters);
                chunks.of_sample(blocks, index, &mut |blocks, chunk, stored| {
                    let Some(stored) = stored else { return Ok(()) };
                    let mut show =
                        |at, bytes: &[u8]| visit(&Part { chunk: Some(chunk), at, bytes });
                    bench.read(blocks, stored, chunk_bytes, filters, &mut show)
                })
            }
        }
    }

    /// Adds the ranges of the file that hold a sample.
    pub(super) fn locate(
        &mut self,
        blocks: &mut Blocks<'_>,
        index: u64,
        ranges: &mut Vec<ByteRange>,
    ) -> Decoded<()> {
        self.check_index(index)?;
        let mut add = |offset, len| ranges.push(ByteRange { offset, len: Some(len) });
        match &mut self.layout {
            _ if self.sample_bytes == 0 => {}
            Layout::Contiguous(None) => {}
            Layout::Contiguous(Some(start)) => {
                add(*start + index * self.sample_bytes, self.sample_bytes);
            }
            Layout::Chunked(chunks) => {
                chunks.of_sample(blocks, index, &mut |_, _, stored| {
                    stored.into_iter().for_each(|stored| add(stored.offset, stored.len));
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

impl Workbench<'_> {
    /// Reads a chunk, whole, and undoes its filters.
    fn read(
        &mut self,
        blocks: &mut Blocks<'_>,
        Stored { offset, len, mask }: Stored,
        chunk_bytes: u64,
        filters: &[Filter],
        show: &mut impl FnMut(u64, &[u8]) -> Decoded<()>,
    ) -> Decoded<()> {
        let plain = mask.trailing_ones() as usize >= filters.len();
        if plain && len == chunk_bytes && blocks.window.is_exact() {
            return self.read_at_once(blocks, offset, (len, len), show);
        }
        if plain && len == chunk_bytes {
            return stream(blocks, offset, len, show);
        }
        check_expansion(blocks, filters, chunk_bytes, offset)?;
        let (len, chunk_bytes) = (len as usize, chunk_bytes as usize);
        blocks.window.read_into(offset, grow(self.packed, len))?;
        let chunk = Packed { offset, len, mask, chunk_bytes };
        self.unpacker.unpack(filters, &chunk, [self.packed, self.spare], show)
    }
}

/// What libhdf5 reads of a contiguous dataset when less is asked for (`H5Pset_sieve_buf_size`).
const SIEVE_BYTES: u64 = 64 << 10;

impl Workbench<'_> {
    /// Reads `len` bytes with one call, as libhdf5 does; of few bytes, more of the `left` ones that
    /// the dataset still has.
    fn read_at_once(
        &mut self,
        blocks: &mut Blocks<'_>,
        offset: u64,
        (len, left): (u64, u64),
        show: &mut impl FnMut(u64, &[u8]) -> Decoded<()>,
    ) -> Decoded<()> {
        let asked = if len < SIEVE_BYTES { left.min(SIEVE_BYTES) } else { len };
        let (len, asked) = (len as usize, asked as usize);
        blocks.window.read_into(offset, grow(self.packed, asked))?;
        show(0, &self.packed[..len])
    }
}

/// Reads a range in pieces.
fn stream(
    blocks: &mut Blocks<'_>,
    offset: u64,
    len: u64,
    visit: &mut impl FnMut(u64, &[u8]) -> Decoded<()>,
) -> Decoded<()> {
    let end = offset.saturating_add(len);
    let mut at = offset;
    while at < end {
        let piece = blocks.window.at_least(at, 1, end)?;
        visit(at - offset, piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Refuses a chunk that is out of all proportion, unless it is only inflated, which takes no room.
fn check_expansion(
    blocks: &Blocks<'_>,
    filters: &[Filter],
    chunk_bytes: u64,
    offset: u64,
) -> Decoded<()> {
    let limit = blocks.window.len().saturating_mul(MOST_EXPANDED).max(SMALL_CHUNK);
    match filters {
        [Filter::Deflate] => Ok(()),
        _ => check_limit((FORMAT, "unpacked chunk"), offset, chunk_bytes, limit),
    }
}

impl Described {
    fn add(&mut self, message: Message<'_>) -> Decoded<()> {
        match message.kind {
            kind::DATASPACE => self.space = Some(dataspace(&mut message.fields()?)?),
            kind::DATATYPE => self.datatype = Some(datatype::datatype(&mut message.fields()?)?),
            kind::FILL_VALUE => self.fill = fill_value(&mut message.fields()?)?,
            kind::OLD_FILL_VALUE => self.fill = sized_value(&mut message.fields()?)?,
            kind::LAYOUT => self.layout = Some(layout(&mut message.fields()?)?),
            kind::FILTERS => self.filters = filters::pipeline(&mut message.fields()?)?,
            kind::EXTERNAL_FILES => {
                return Err(unsupported(message.fields()?.place(), "data in other files"));
            }
            _ => {}
        }
        Ok(())
    }
}

fn dataspace(fields: &mut Fields<'_>) -> Decoded<Space> {
    let version = fields.version(&[1, 2])?;
    let place = fields.place();
    let axes = fields.u8()?;
    let flags = fields.u8()?;
    let form = fields.u8()?;
    if axes > MOST_AXES {
        return Err(wrong(place, "at most 32 axes", axes));
    }
    if version == 1 {
        fields.skip(4)?;
    } else if form > 1 {
        return Err(unsupported(place, "dataset without a dataspace"));
    }
    let dims = (0..axes).map(|_| fields.length()).collect::<Result<Vec<_>, _>>()?;
    let unlimited = u64::MAX >> (64 - 8 * fields.addressing().length_bytes);
    let limits = match flags & 1 {
        0 => dims.iter().copied().map(Some).collect(),
        _ => (0..axes)
            .map(|_| Ok(Some(fields.length()?).filter(|&limit| limit != unlimited)))
            .collect::<Decoded<Vec<_>>>()?,
    };
    let within = |(dim, limit): (&u64, &Option<u64>)| limit.is_none_or(|limit| *dim <= limit);
    if !dims.iter().zip(&limits).all(within) {
        return Err(wrong(place, "a shape within its limits", format!("{dims:?}")));
    }
    Ok(Space { dims, limits, place })
}

/// The fill value, if there is one and it is not 0.
fn fill_value(fields: &mut Fields<'_>) -> Decoded<Option<Vec<u8>>> {
    let is_defined = match fields.version(&[1, 2, 3])? {
        3 => fields.u8()? & 0x20 != 0,
        version => {
            // When space is allocated and when the value is written.
            fields.skip(2)?;
            fields.u8()? != 0 || version == 1
        }
    };
    if is_defined { sized_value(fields) } else { Ok(None) }
}

/// A value after its size, unless it is 0 or no number.
fn sized_value(fields: &mut Fields<'_>) -> Decoded<Option<Vec<u8>>> {
    let len = fields.u32()? as usize;
    let value = if len <= MOST_ELEMENT_BYTES { fields.take(len)? } else { &[] };
    Ok(value.iter().any(|&byte| byte != 0).then(|| value.to_vec()))
}

fn layout(fields: &mut Fields<'_>) -> Decoded<LayoutMessage> {
    let place = fields.place();
    let version = fields.version(&[1, 2, 3, 4, 5])?;
    if version < 3 {
        return old_layout(fields);
    }
    match fields.u8()? {
        0 => {
            let len = u64::from(fields.u16()?);
            Ok(LayoutMessage::Compact { offset: fields.place(), len })
        }
        1 => Ok(LayoutMessage::Contiguous { offset: fields.address()? }),
        2 if version == 3 => {
            let axes = axes_of_chunk(fields)?;
            let index = IndexAt::Tree1(fields.address()?);
            chunked(fields, axes, 4, index)
        }
        2 => current_chunks(fields),
        3 => Err(unsupported(place, "virtual dataset")),
        class => Err(wrong(place + 1, "a class of layout", class)),
    }
}

/// Versions 1 and 2, which have the dimensions for every class.
fn old_layout(fields: &mut Fields<'_>) -> Decoded<LayoutMessage> {
    let place = fields.place();
    let axes = fields.u8()?;
    let class = fields.u8()?;
    fields.skip(5)?;
    let offset = if class == 0 { None } else { fields.address()? };
    match class {
        0 => {
            fields.skip(4 * usize::from(axes))?;
            let len = u64::from(fields.u32()?);
            Ok(LayoutMessage::Compact { offset: fields.place(), len })
        }
        1 => Ok(LayoutMessage::Contiguous { offset }),
        2 if (2..=MOST_AXES + 1).contains(&axes) => {
            chunked(fields, usize::from(axes), 4, IndexAt::Tree1(offset))
        }
        _ => Err(wrong(place, "a class of layout", class)),
    }
}

/// Axes of a chunk, of which the last is the size of an element.
fn axes_of_chunk(fields: &mut Fields<'_>) -> Decoded<usize> {
    let place = fields.place();
    match fields.u8()? {
        axes @ 2..=33 => Ok(usize::from(axes)),
        axes => Err(wrong(place, "2 to 33 axes of a chunk", axes)),
    }
}

/// The dimensions of a chunk, each in so many bytes.
fn chunked(
    fields: &mut Fields<'_>,
    axes: usize,
    width: usize,
    index: IndexAt,
) -> Decoded<LayoutMessage> {
    let place = fields.place();
    let mut dims = (0..axes).map(|_| fields.uint(width)).collect::<Result<Vec<_>, _>>()?;
    let element_bytes = dims.pop().unwrap_or_default();
    let layout = ChunkLayout { dims, index, unfiltered_edges: false, place };
    Ok(LayoutMessage::Chunked { layout, element_bytes })
}

/// Versions 4 and 5.
fn current_chunks(fields: &mut Fields<'_>) -> Decoded<LayoutMessage> {
    let flags = fields.u8()?;
    let axes = axes_of_chunk(fields)?;
    let place = fields.place();
    let width = usize::from(fields.u8()?);
    if !(1..=8).contains(&width) {
        return Err(wrong(place, "dimensions of 1 to 8 bytes", width));
    }
    let mut message = chunked(fields, axes, width, IndexAt::Tree1(None))?;
    let place = fields.place();
    let index = match fields.u8()? {
        1 => {
            let filtered = match flags & 2 {
                0 => None,
                _ => Some((fields.length()?, fields.u32()?)),
            };
            IndexAt::Single { chunk: fields.address()?, filtered }
        }
        2 => IndexAt::Implicit(fields.address()?),
        3 => {
            fields.skip(1)?;
            IndexAt::FixedArray(fields.address()?)
        }
        4 => {
            fields.skip(5)?;
            IndexAt::ExtensibleArray(fields.address()?)
        }
        5 => {
            fields.skip(6)?;
            IndexAt::Tree2(fields.address()?)
        }
        other => return Err(wrong(place, "a kind of chunk index", other)),
    };
    if let LayoutMessage::Chunked { layout, .. } = &mut message {
        layout.index = index;
        layout.unfiltered_edges = flags & 1 != 0;
    }
    Ok(message)
}
