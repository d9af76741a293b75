//! Writing a file front to back.
//!
//! Contiguous datasets are where they can be computed, so their metadata is final from the start.
//! Where chunks end is only known when they are written: metadata that fits into the part of a file
//! that can be patched is put there when everything else is done, as where HDF5 itself has it;
//! otherwise it goes to the end and only the superblock is patched.
//! In memory: one chunk and its compressed form if chunks are compressed, otherwise a piece; and eight
//! bytes for every compressed chunk of the dataset that is being written.

use super::fields::FORMAT;
use super::index;
use super::metadata::{self, DataPlace, SUPERBLOCK_BYTES};
use super::pack::Packer;
use super::plan::{Filter, Plan};
use crate::writer::Writer;
use crate::{ByteSink, Content, Element, EncodeError, Encoded, FileSize, HEAD_BYTES};

/// Data begins at a multiple of this, as in files of HDF5, which takes metadata space in such blocks.
const METADATA_BLOCK: u64 = 2048;

/// How a compressed chunk turned out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shrunk {
    pub(super) len: u32,
    pub(super) mask: u32,
}

/// Where metadata and data go.
struct Frame {
    /// Room for metadata before the data.
    data_at: u64,
    /// Length of the headers if they go to the end.
    at_end: Option<u64>,
}

impl Frame {
    fn of(plan: &Plan) -> Encoded<Frame> {
        let nowhere = vec![DataPlace::Nowhere; plan.datasets as usize];
        let headers = metadata::headers(plan, 0, &nowhere, DataPlace::Nowhere)?.len() as u64;
        let front = SUPERBLOCK_BYTES + headers;
        let fits = plan.chunk.is_none() || front <= HEAD_BYTES as u64;
        let before = if fits { front } else { SUPERBLOCK_BYTES };
        let data_at = before.next_multiple_of(METADATA_BLOCK);
        Ok(Frame { data_at, at_end: (!fits).then_some(headers) })
    }
}

/// The size of the file.
pub(super) fn size(plan: &Plan) -> FileSize {
    let Ok(frame) = Frame::of(plan) else { return FileSize::Exact(u64::MAX) };
    let each = match &plan.chunk {
        None => Some(plan.bytes),
        Some(chunk) => {
            let counts = plan.counts(&plan.shape, chunk);
            let chunks = counts.iter().try_fold(1u64, |all, &count| all.checked_mul(count));
            chunks.and_then(|chunks| {
                let full = chunks.checked_mul(plan.chunk_bytes(chunk))?;
                shrunk(plan, full).checked_add(index::len(plan, chunk)?)
            })
        }
    };
    let size = each
        .and_then(|each| each.checked_mul(plan.datasets))
        .and_then(|size| size.checked_add(plan.labels_bytes))
        .and_then(|size| size.checked_add(frame.data_at + frame.at_end.unwrap_or(0)));
    match (size, plan.filter) {
        (None, _) => FileSize::Exact(u64::MAX),
        (Some(size), None) => FileSize::Exact(size),
        (Some(size), Some(_)) => FileSize::About(size),
    }
}

/// What is left of that many bytes of content, in thousandths as measured for chunks of 1 MiB.
fn shrunk(plan: &Plan, bytes: u64) -> u64 {
    let thousandths = match (plan.filter, plan.element) {
        (Some(Filter::Lzf), Element::Bool) => 505,
        (None | Some(Filter::Lzf | Filter::Gzip(0)), _) => 1000,
        // Level 1 takes codes that are made for text, whatever the content.
        (Some(Filter::Gzip(1)), Element::Bool) => 405,
        (Some(Filter::Gzip(1)), Element::Float16) => 1025,
        (Some(Filter::Gzip(1)), Element::Float32 | Element::Complex64) => 1036,
        (Some(Filter::Gzip(1)), _) => 1055,
        (Some(Filter::Gzip(_)), Element::Bool) => 163,
        (Some(Filter::Gzip(_)), Element::Float16) => 838,
        (Some(Filter::Gzip(_)), Element::Float32 | Element::Complex64) => 885,
        (Some(Filter::Gzip(_)), Element::Float64 | Element::Complex128) => 940,
        (Some(Filter::Gzip(_)), _) => 1000,
    };
    (u128::from(bytes) * thousandths / 1000).min(u128::from(u64::MAX)) as u64
}

/// Writes the file.
pub(super) fn encode(plan: &Plan, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
    let size = size(plan).bytes();
    if size == u64::MAX {
        let (dims, samples) = (plan.limits.clone(), plan.samples());
        return Err(EncodeError::TooLarge { dims, samples });
    }
    let frame = Frame::of(plan)?;
    let mut writer = Writer::new(sink);
    match &plan.chunk {
        None => contiguous(plan, &frame, content, &mut writer),
        Some(chunk) => chunked(plan, chunk, &frame, content, &mut writer),
    }
}

fn contiguous(
    plan: &Plan,
    frame: &Frame,
    content: &Content,
    writer: &mut Writer<'_>,
) -> Encoded<()> {
    let place = |bytes, at| if bytes == 0 { DataPlace::Nowhere } else { DataPlace::Contiguous(at) };
    let start = |i| frame.data_at + i * plan.bytes;
    let places: Vec<_> = (0..plan.datasets).map(|i| place(plan.bytes, start(i))).collect();
    let labels_at = start(plan.datasets);
    let labels = place(plan.labels_bytes, labels_at);
    writer.put(&metadata::superblock(SUPERBLOCK_BYTES, labels_at + plan.labels_bytes))?;
    writer.put(&metadata::headers(plan, SUPERBLOCK_BYTES, &places, labels)?)?;
    zeros(writer, frame.data_at - writer.written())?;
    writer.generate(plan.bytes * plan.datasets, |at, space| {
        content.fill(plan.element, at, space);
    })?;
    zeros(writer, plan.labels_bytes)
}

fn zeros(writer: &mut Writer<'_>, len: u64) -> Encoded<()> {
    writer.generate(len, |_, space| space.fill(0))
}

fn chunked(
    plan: &Plan,
    chunk: &[u64],
    frame: &Frame,
    content: &Content,
    writer: &mut Writer<'_>,
) -> Encoded<()> {
    zeros(writer, frame.data_at)?;
    let mut packer = plan.filter.map(Packer::new);
    let mut places = Vec::new();
    for i in 0..plan.datasets {
        let runs = Runs::new(plan, chunk, i * plan.bytes, content);
        places.push(dataset(plan, chunk, &runs, packer.as_mut(), writer)?);
    }
    let labels_at = writer.written();
    let labels =
        if plan.labels_bytes == 0 { DataPlace::Nowhere } else { DataPlace::Contiguous(labels_at) };
    zeros(writer, plan.labels_bytes)?;
    if frame.at_end.is_some() {
        let root = writer.written();
        writer.put(&metadata::headers(plan, root, &places, labels)?)?;
        return writer.patch(0, &metadata::superblock(root, writer.written()));
    }
    let mut front = metadata::superblock(SUPERBLOCK_BYTES, writer.written());
    front.extend(metadata::headers(plan, SUPERBLOCK_BYTES, &places, labels)?);
    writer.patch(0, &front)
}

/// Writes the chunks of a dataset and their index.
fn dataset(
    plan: &Plan,
    chunk: &[u64],
    runs: &Runs<'_>,
    packer: Option<&mut Packer>,
    writer: &mut Writer<'_>,
) -> Encoded<DataPlace> {
    let start = writer.written();
    let counts = plan.counts(&plan.shape, chunk);
    let chunks: u64 = counts.iter().product();
    if chunks == 0 {
        return Ok(DataPlace::Nowhere);
    }
    let chunk_bytes = plan.chunk_bytes(chunk);
    let mut at = vec![0; chunk.len()];
    let mut shrunk = Vec::new();
    let mut packer = packer;
    for _ in 0..chunks {
        match &mut packer {
            None => writer.generate(chunk_bytes, |from, space| runs.fill(&at, from, space))?,
            Some(packer) => {
                let offset = writer.written();
                let coding = |source| EncodeError::Coding { format: FORMAT, offset, source };
                let fill = |space: &mut [u8]| runs.fill(&at, 0, space);
                let (bytes, mask) = packer.pack(chunk_bytes as usize, fill).map_err(coding)?;
                writer.put(bytes)?;
                shrunk.push(Shrunk { len: bytes.len() as u32, mask });
            }
        }
        step(&mut at, &counts);
    }
    if metadata::is_single(plan, chunk) {
        let only = shrunk.first().copied();
        let len = only.map_or(chunk_bytes, |only| u64::from(only.len));
        return Ok(DataPlace::Chunk(start, len, only.map_or(0, |only| only.mask)));
    }
    let shrunk = plan.filter.is_some().then_some(&shrunk[..]);
    index::write(plan, chunk, start, shrunk, writer).map(DataPlace::Index)
}

/// Goes on to the next coordinates, the last axis first.
pub(super) fn step(at: &mut [u64], counts: &[u64]) {
    for (at, count) in at.iter_mut().zip(counts).rev() {
        *at += 1;
        if *at < *count {
            return;
        }
        *at = 0;
    }
}

/// The content of a dataset in the order of a chunk: runs of bytes that follow one another in both.
struct Runs<'a> {
    content: &'a Content,
    element: Element,
    shape: &'a [u64],
    chunk: &'a [u64],
    /// Where the dataset begins among all samples of the file.
    base: u64,
    /// The axis that a run goes along; those after it are in the chunk from end to end.
    axis: usize,
    /// Bytes of a step along that axis.
    step_bytes: u64,
}

impl<'a> Runs<'a> {
    fn new(plan: &'a Plan, chunk: &'a [u64], base: u64, content: &'a Content) -> Runs<'a> {
        let shape = &plan.shape[..];
        let mut axis = shape.len() - 1;
        let mut step_bytes = plan.element.size_bytes();
        while axis > 0 && chunk[axis] == shape[axis] {
            step_bytes *= shape[axis];
            axis -= 1;
        }
        Runs { content, element: plan.element, shape, chunk, base, axis, step_bytes }
    }

    /// Fills `space` with what is `from` bytes into the chunk at coordinates `at`; what is
    /// outside of the dataset is zero.
    fn fill(&self, at: &[u64], mut from: u64, mut space: &mut [u8]) {
        let run_bytes = self.chunk[self.axis] * self.step_bytes;
        while !space.is_empty() {
            let inside = from % run_bytes;
            let part = (run_bytes - inside).min(space.len() as u64);
            let (now, later) = space.split_at_mut(part as usize);
            self.fill_run(at, from / run_bytes, inside, now);
            (from, space) = (from + part, later);
        }
    }

    fn fill_run(&self, at: &[u64], mut run: u64, inside: u64, out: &mut [u8]) {
        let axis = self.axis;
        let first = at[axis] * self.chunk[axis];
        let valid_bytes = self.chunk[axis].min(self.shape[axis] - first) * self.step_bytes;
        let mut offset = first * self.step_bytes;
        let mut stride = self.shape[axis] * self.step_bytes;
        for outer in (0..axis).rev() {
            let place = at[outer] * self.chunk[outer] + run % self.chunk[outer];
            run /= self.chunk[outer];
            if place >= self.shape[outer] {
                return out.fill(0);
            }
            offset += place * stride;
            stride *= self.shape[outer];
        }
        let valid = valid_bytes.saturating_sub(inside).min(out.len() as u64);
        let (filled, beyond) = out.split_at_mut(valid as usize);
        self.content.fill(self.element, self.base + offset + inside, filled);
        beyond.fill(0);
    }
}
