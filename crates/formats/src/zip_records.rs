//! The records that every ZIP archive is made of: their signatures, sizes and numbers.
//!
//! Shared by NumPy's archives here and torch's in `feedline-checkpoint`, which differ in nearly everything
//! that the format leaves open.

/// Begins the header in front of a member.
pub const LOCAL: u32 = 0x0403_4B50;
/// Begins an entry of the directory.
pub const ENTRY: u32 = 0x0201_4B50;
/// Begins the end of the archive.
pub const END: u32 = 0x0605_4B50;
/// Begins the ZIP64 end of the archive.
pub const END64: u32 = 0x0606_4B50;
/// Begins the record that says where the ZIP64 end is.
pub const LOCATOR64: u32 = 0x0706_4B50;

/// Bytes of a member's header, without name and extra field.
pub const LOCAL_BYTES: u64 = 30;
/// Bytes of an entry, without name, extra field and comment.
pub const ENTRY_BYTES: u64 = 46;
/// Bytes of the end, without comment.
pub const END_BYTES: u64 = 22;
/// Bytes of the ZIP64 end.
pub const END64_BYTES: u64 = 56;
/// Bytes of the locator.
pub const LOCATOR64_BYTES: u64 = 20;
/// The part of an extra field that holds what narrow fields cannot.
pub const ZIP64_EXTRA: u16 = 1;

/// Appends numbers of 16 bits.
pub fn put16(out: &mut Vec<u8>, values: &[u16]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// Appends numbers of 32 bits.
pub fn put32(out: &mut Vec<u8>, values: &[u32]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// Appends numbers of 64 bits.
pub fn put64(out: &mut Vec<u8>, values: &[u64]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// The 64-bit values in the ZIP64 part of an extra field; those that are there come in fixed order.
pub fn zip64_values(mut extra: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let mut values: &[[u8; 8]] = &[];
    while let Some((&[id_low, id_high, len_low, len_high], rest)) = extra.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([len_low, len_high])).min(rest.len());
        if u16::from_le_bytes([id_low, id_high]) == ZIP64_EXTRA {
            values = rest[..len].as_chunks().0;
        }
        extra = &rest[len..];
    }
    values.iter().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Appends the ZIP64 end of an archive, and its locator, after a directory of `size` bytes.
pub fn put_end64(
    out: &mut Vec<u8>,
    versions: [u16; 2],
    entries: u64,
    directory_at: u64,
    size: u64,
) {
    put32(out, &[END64]);
    put64(out, &[END64_BYTES - 12]);
    put16(out, &versions);
    put32(out, &[0, 0]);
    put64(out, &[entries, entries, size, directory_at]);
    put32(out, &[LOCATOR64, 0]);
    put64(out, &[directory_at + size]);
    put32(out, &[1]);
}
