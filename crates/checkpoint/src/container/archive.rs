//! The ZIP archive that `torch.save` writes into a stream, byte for byte: members stored one after
//! another, checksums in descriptors after them, data aligned by an extra field named `FB`.
//!
//! ZIP64 fields appear where torch's writer has them: at members of 4 GiB or past the first 4 GiB, and always
//! at the end. Every checksum comes after its bytes, so one pass is enough.

use std::sync::Arc;

use feedline_formats::zip_records::{
    END, ENTRY, LOCAL, LOCAL_BYTES, ZIP64_EXTRA, put_end64, put16, put32, put64,
};

use super::{Body, Hole, Image, Part};

/// Multiple at which the data of every member begins.
pub(super) const ALIGN: u64 = 64;

const DESCRIPTOR: u32 = 0x0807_4B50;

/// Sizes and offsets from this on are in ZIP64 fields.
pub(super) const WIDE: u64 = u32::MAX as u64;

/// Flag of a member whose checksum and sizes follow its data.
pub(super) const FLAG_DESCRIPTOR: u16 = 1 << 3;
const FLAG_UTF8: u16 = 1 << 11;
const PADDING_EXTRA: &[u8; 2] = b"FB";
/// The versions that torch's writer puts into the ZIP64 end record.
const END64_VERSIONS: [u16; 2] = [0x031E, 45];

/// What a member consists of.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    Bytes(&'a [u8]),
    Tensor { index: usize, bytes: u64 },
}

/// Lays out one archive from offset zero on.
#[derive(Default)]
pub(super) struct ArchiveWriter {
    parts: Vec<Part>,
    /// Known bytes after the last part, and where they begin.
    bytes: Vec<u8>,
    holes: Vec<Hole>,
    bytes_at: u64,
    directory: Vec<u8>,
    directory_holes: Vec<Hole>,
    entries: u64,
}

impl ArchiveWriter {
    /// Appends a member.
    pub(super) fn add(&mut self, name: &str, payload: Payload<'_>) {
        let header_at = self.at();
        let (size, crc) = match payload {
            Payload::Bytes(bytes) => (bytes.len() as u64, crc32fast::hash(bytes)),
            // The checksum of nothing is zero; any other is left open.
            Payload::Tensor { bytes, .. } => (bytes, 0),
        };
        let flags = FLAG_UTF8 | if size > 0 { FLAG_DESCRIPTOR } else { 0 };
        let extra = zip64_extra([size, size], header_at);
        // In front of the data, torch's writer does not know yet what it will take in the archive.
        self.put_local(name, flags, &zip64_extra([size, 0], header_at));
        match payload {
            Payload::Bytes(bytes) => self.bytes.extend(bytes),
            Payload::Tensor { index, bytes } => self.put_tensor(index, bytes),
        }
        let tensor = match payload {
            Payload::Tensor { index, bytes: 1.. } => Some(index),
            _ => None,
        };
        if size > 0 {
            self.bytes.extend(DESCRIPTOR.to_le_bytes());
            self.holes.extend(tensor.map(|tensor| Hole { at: self.bytes.len(), tensor }));
            self.bytes.extend(crc.to_le_bytes());
            for _ in 0..2 {
                let wide = size.to_le_bytes();
                self.bytes.extend(if extra.is_empty() { &wide[..4] } else { &wide });
            }
        }
        self.entries += 1;
        let out = &mut self.directory;
        put32(out, &[ENTRY]);
        put16(out, &[0, 0, flags, 0, 0, 0]);
        self.directory_holes.extend(tensor.map(|tensor| Hole { at: out.len(), tensor }));
        let size = size.min(WIDE) as u32;
        put32(out, &[crc, size, size]);
        put16(out, &[name.len() as u16, extra.len() as u16, 0, 0, 0]);
        put32(out, &[0, header_at.min(WIDE) as u32]);
        out.extend(name.as_bytes());
        out.extend(extra);
    }

    /// The directory of the members so far, with zeros in place of the tensors' checksums.
    pub(super) fn directory(&self) -> &[u8] {
        &self.directory
    }

    /// Where the next byte goes.
    fn at(&self) -> u64 {
        self.bytes_at + self.bytes.len() as u64
    }

    fn put_local(&mut self, name: &str, flags: u16, extra: &[u8]) {
        let known = LOCAL_BYTES + name.len() as u64 + extra.len() as u64 + 4;
        let end = self.at() + known;
        let padding = (end.next_multiple_of(ALIGN) - end) as usize;
        let out = &mut self.bytes;
        put32(out, &[LOCAL]);
        put16(out, &[0, flags, 0, 0, 0]);
        put32(out, &[0, 0, 0]);
        put16(out, &[name.len() as u16, (extra.len() + 4 + padding) as u16]);
        out.extend(name.as_bytes());
        out.extend(extra);
        out.extend(PADDING_EXTRA);
        put16(out, &[padding as u16]);
        out.resize(out.len() + padding, b'Z');
    }

    fn put_tensor(&mut self, index: usize, bytes: u64) {
        self.flush();
        self.parts.push(Part { at: self.bytes_at, body: Body::Tensor { index, bytes } });
        self.bytes_at += bytes;
    }

    /// Makes a part of the known bytes.
    fn flush(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let at = self.at();
        // Exact copies, because a file of many tensors has many parts; the buffer stays for the next.
        let body =
            Body::Bytes { bytes: Arc::from(self.bytes.as_slice()), holes: self.holes.to_vec() };
        self.parts.push(Part { at: self.bytes_at, body });
        self.bytes.clear();
        self.holes.clear();
        self.bytes_at = at;
    }

    /// Appends the directory and the end.
    pub(super) fn finish(mut self) -> Image {
        let at = self.at();
        let size = self.directory.len() as u64;
        let base = self.bytes.len();
        self.holes.extend(
            self.directory_holes
                .iter()
                .map(|hole| Hole { at: base + hole.at, tensor: hole.tensor }),
        );
        self.bytes.append(&mut self.directory);
        let out = &mut self.bytes;
        put_end64(out, END64_VERSIONS, self.entries, at, size);
        let entries = self.entries.min(0xFFFF) as u16;
        put32(out, &[END]);
        put16(out, &[0, 0, entries, entries]);
        put32(out, &[size.min(WIDE) as u32, at.min(WIDE) as u32]);
        put16(out, &[0]);
        self.flush();
        Image::new(self.parts)
    }
}

/// The extra field with what the narrow fields of a member cannot hold; empty if they can. The sizes are
/// that of the data and what it takes in the archive.
pub(super) fn zip64_extra(sizes: [u64; 2], header_at: u64) -> Vec<u8> {
    let mut values = Vec::new();
    if sizes[0] >= WIDE {
        put64(&mut values, &sizes);
    }
    if header_at >= WIDE {
        put64(&mut values, &[header_at]);
    }
    let mut extra = Vec::new();
    if !values.is_empty() {
        put16(&mut extra, &[ZIP64_EXTRA, values.len() as u16]);
        extra.extend(values);
    }
    extra
}
