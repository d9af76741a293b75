//! One sample read from bytes in memory, for the tests of formats.

use crate::{Content, DecodeError, FileSpec, Format, SampleRead, Scratch, Stretch};

/// The file that `format` makes of `file`, content 2 of seed 1.
pub(crate) fn encoded(format: &dyn Format, file: &FileSpec) -> Vec<u8> {
    let mut bytes = Vec::new();
    format.encode(file, &Content::new(1, 2), &mut bytes).expect("memory takes every byte");
    bytes
}

/// Opens the file and reads one sample, through pieces of at most `piece_bytes`.
pub(crate) fn read(
    format: &dyn Format,
    mut bytes: &[u8],
    index: u64,
    piece_bytes: usize,
) -> Result<SampleRead, DecodeError> {
    let mut scratch = Scratch::new(piece_bytes);
    format.open(&mut bytes, &mut scratch)?.read(&mut bytes, index, &mut scratch)
}

/// The stretches of the file that hold the sample.
pub(crate) fn stretches(
    format: &dyn Format,
    mut bytes: &[u8],
    index: u64,
) -> Result<Vec<Stretch>, DecodeError> {
    let mut scratch = Scratch::new(4096);
    let mut found = Vec::new();
    let mut opened = format.open(&mut bytes, &mut scratch)?;
    opened.locate(&mut bytes, index, &mut scratch, &mut found)?;
    Ok(found)
}
