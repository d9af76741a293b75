//! The metadata of a file that is written: superblock, root group, headers of the datasets.
//!
//! As HDF5 1.10 writes it with its newest bounds (superblock 3, version 2 headers, layout 4), which
//! every later version reads; what 2.0 would write, 1.x could not read.

use super::checksum::lookup3;
use super::datatype;
use super::fields::FORMAT;
use super::group::RECORDS;
use super::header::kind;
use super::plan::{Filter, Plan};
use super::{filters, tree2};
use crate::{Element, EncodeError, Encoded};

const UNDEFINED: u64 = u64::MAX;
pub(super) const SUPERBLOCK_BYTES: u64 = 48;
/// Entries of a page of a fixed array: 2 to the power of this, HDF5's own choice.
pub(super) const PAGE_BITS: u8 = 10;

const LABELS: &str = "labels";

/// Where the data of a dataset is.
#[derive(Debug, Clone, Copy)]
pub(super) enum DataPlace {
    /// Nowhere, as it has no elements.
    Nowhere,
    Contiguous(u64),
    /// One chunk, its size and the filters that were left out.
    Chunk(u64, u64, u32),
    /// Many chunks, by the index there.
    Index(u64),
}

/// The superblock of a file with its root group at `root` and its end at `end`.
pub(super) fn superblock(root: u64, end: u64) -> Vec<u8> {
    let mut bytes = b"\x89HDF\r\n\x1a\n\x03\x08\x08\x00".to_vec();
    for address in [0, UNDEFINED, end, root] {
        bytes.extend(address.to_le_bytes());
    }
    checksummed(bytes)
}

/// Everything but the superblock: the root group, which is to be at `at`, the headers of the
/// sample datasets, and that of the labels.
pub(super) fn headers(
    plan: &Plan,
    at: u64,
    places: &[DataPlace],
    labels: DataPlace,
) -> Encoded<Vec<u8>> {
    let names = (0..plan.datasets).map(|i| format!("{RECORDS}{i}")).chain([LABELS.to_owned()]);
    let mut datasets = Vec::new();
    for place in places {
        datasets.push(dataset(plan, *place)?);
    }
    datasets.push(labels_header(plan, labels)?);
    // How long the group is does not depend on what its links say.
    let links: Vec<(String, u64)> = names.map(|name| (name, 0)).collect();
    let mut next = at + group(&links)?.len() as u64;
    let links: Vec<_> = links
        .into_iter()
        .zip(&datasets)
        .map(|((name, _), header)| {
            next += header.len() as u64;
            (name, next - header.len() as u64)
        })
        .collect();
    let mut bytes = group(&links)?;
    datasets.into_iter().for_each(|header| bytes.extend(header));
    Ok(bytes)
}

fn checksummed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = lookup3(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// A block of metadata with its checksum.
pub(super) fn block(parts: &[&[u8]]) -> Vec<u8> {
    checksummed(parts.concat())
}

fn object_header(messages: &[(u16, Vec<u8>)]) -> Encoded<Vec<u8>> {
    let mut body = Vec::new();
    for (kind, message) in messages {
        let len = u16::try_from(message.len()).map_err(|_| too_long(message.len()))?;
        body.push(*kind as u8);
        body.extend(len.to_le_bytes());
        body.push(0);
        body.extend(message);
    }
    let len = u32::try_from(body.len()).map_err(|_| too_long(body.len()))?;
    Ok(block(&[b"OHDR\x02\x02", &len.to_le_bytes(), &body]))
}

fn too_long(len: usize) -> EncodeError {
    EncodeError::Layout { format: FORMAT, what: format!("object header of {len} bytes") }
}

fn group(links: &[(String, u64)]) -> Encoded<Vec<u8>> {
    let mut info = vec![0, 0];
    info.extend([0xFF; 16]);
    let mut messages = vec![(kind::LINK_INFO, info), (kind::GROUP_INFO, vec![0, 0])];
    for (name, address) in links {
        let mut link = vec![1, 0, name.len() as u8];
        link.extend(name.as_bytes());
        link.extend(address.to_le_bytes());
        messages.push((kind::LINK, link));
    }
    object_header(&messages)
}

fn labels_header(plan: &Plan, place: DataPlace) -> Encoded<Vec<u8>> {
    let samples = plan.samples();
    object_header(&[
        (kind::DATASPACE, dataspace(&[samples], &[samples])),
        (kind::DATATYPE, datatype::message(Element::Int64)),
        (kind::FILL_VALUE, LATE.to_vec()),
        (kind::LAYOUT, contiguous(place, plan.labels_bytes)),
    ])
}

/// Fill values: version, then allocation late or as needed, writing of the value if there is one.
const LATE: [u8; 2] = [3, 0x0A];
const INCREMENTAL: [u8; 2] = [3, 0x0B];

fn dataset(plan: &Plan, place: DataPlace) -> Encoded<Vec<u8>> {
    let mut messages = vec![
        (kind::DATASPACE, dataspace(&plan.shape, &plan.limits)),
        (kind::DATATYPE, datatype::message(plan.element)),
    ];
    let Some(chunk) = &plan.chunk else {
        messages.push((kind::FILL_VALUE, LATE.to_vec()));
        messages.push((kind::LAYOUT, contiguous(place, plan.bytes)));
        return object_header(&messages);
    };
    messages.push((kind::FILL_VALUE, INCREMENTAL.to_vec()));
    if let Some(filter) = plan.filter {
        messages.push((kind::FILTERS, pipeline(filter, plan.chunk_bytes(chunk))));
    }
    messages.push((kind::LAYOUT, chunked(plan, chunk, place)));
    object_header(&messages)
}

fn dataspace(shape: &[u64], limits: &[u64]) -> Vec<u8> {
    let mut bytes = vec![2, shape.len() as u8, 1, 1];
    shape.iter().chain(limits).for_each(|dim| bytes.extend(dim.to_le_bytes()));
    bytes
}

fn contiguous(place: DataPlace, len: u64) -> Vec<u8> {
    let address = if let DataPlace::Contiguous(address) = place { address } else { UNDEFINED };
    [&[3, 1][..], &address.to_le_bytes(), &len.to_le_bytes()].concat()
}

/// The message of h5py for the filter: optional, so that a chunk that does not shrink may go without.
fn pipeline(filter: Filter, chunk_bytes: u64) -> Vec<u8> {
    let mut bytes = vec![2, 1];
    match filter {
        Filter::Gzip(level) => {
            bytes.extend(filters::DEFLATE.to_le_bytes());
            bytes.extend([1, 0, 1, 0]);
            bytes.extend(level.to_le_bytes());
        }
        Filter::Lzf => {
            bytes.extend(filters::LZF.to_le_bytes());
            bytes.extend([4, 0, 1, 0, 3, 0]);
            bytes.extend(b"lzf\0");
            // Version of the filter, of LibLZF, and how large a chunk is when unpacked.
            for value in [4, 0x0105, chunk_bytes as u32] {
                bytes.extend(value.to_le_bytes());
            }
        }
    }
    bytes
}

/// The dataset is one chunk and will stay so.
pub(super) fn is_single(plan: &Plan, chunk: &[u64]) -> bool {
    plan.shape == chunk && plan.limits == chunk
}

/// Bytes of a chunk's size in the index: one more than it needs, for chunks that grow.
pub(super) fn size_bytes(chunk_bytes: u64) -> usize {
    (tree2::encoded_bytes(chunk_bytes) + 1).min(8)
}

fn chunked(plan: &Plan, chunk: &[u64], place: DataPlace) -> Vec<u8> {
    let single = is_single(plan, chunk);
    let flags = if single && plan.filter.is_some() { 2 } else { 0 };
    let dims = || chunk.iter().copied().chain([plan.element.size_bytes()]);
    let width = tree2::encoded_bytes(dims().max().unwrap_or(1));
    let mut bytes = vec![4, 2, flags, chunk.len() as u8 + 1, width as u8];
    dims().for_each(|dim| bytes.extend(&dim.to_le_bytes()[..width]));
    bytes.extend(if single { &[1][..] } else { &[3, PAGE_BITS] });
    let (address, len, mask) = match place {
        DataPlace::Chunk(address, len, mask) => (address, len, mask),
        DataPlace::Index(address) => (address, 0, 0),
        DataPlace::Nowhere | DataPlace::Contiguous(_) => (UNDEFINED, 0, 0),
    };
    if flags == 2 {
        bytes.extend(len.to_le_bytes());
        bytes.extend(mask.to_le_bytes());
    }
    bytes.extend(address.to_le_bytes());
    bytes
}
