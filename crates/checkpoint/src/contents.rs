//! What the tensors of a checkpoint hold: bytes that follow from a seed, or memory.

use std::sync::{Mutex, PoisonError};

use feedline_formats::Content;
use feedline_store::AlignedBuf;

use crate::{FileSpec, Tensor};

/// Where tensors come from when they are saved.
pub trait Source: Send + Sync {
    /// Fills `out` with the bytes of a tensor of a file, from `offset` on.
    fn fill(&self, place: Slot<'_>, offset: u64, out: &mut [u8]);
}

/// Where tensors go when they are loaded.
pub trait Sink: Send + Sync {
    /// Takes bytes of a tensor of a file, from `offset` on; false if they are not what was expected.
    fn take(&self, place: Slot<'_>, offset: u64, bytes: &[u8]) -> bool;
}

/// One tensor of a rank.
#[derive(Debug, Clone, Copy)]
pub struct Slot<'a> {
    /// Which of the rank's files.
    pub file: usize,
    /// Which of the file's tensors.
    pub index: usize,
    /// The tensor.
    pub tensor: &'a Tensor,
}

/// The bytes of every tensor of one checkpoint, on every machine the same.
///
/// They belong to the whole tensor, not to the rank that holds a piece: a reader of any piece, however
/// it is cut, knows what its bytes must be. Another version has other bytes everywhere, so that a
/// mixture of two checkpoints is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    seed: u64,
    values: Values,
}

/// What kind of values tensors have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Random ones.
    Random,
    /// The number 1 in every element.
    Ones,
}

impl Contents {
    /// The contents that `seed` and the `version` of the state name.
    pub fn new(seed: u64, version: u64, values: Values) -> Contents {
        // Odd multipliers are bijections: two versions of a seed never coincide.
        Contents { seed: seed.wrapping_add(version.wrapping_mul(0x9E37_79B9_7F4A_7C15)), values }
    }

    fn fill_tensor(&self, tensor: &Tensor, offset: u64, out: &mut [u8]) {
        let at = tensor.share.first * tensor.dtype.size_bytes() + offset;
        match self.values {
            Values::Random => {
                let content = Content::new(self.seed, name_hash(&tensor.share.name));
                tensor.dtype.fill_random(&content, at, out);
            }
            Values::Ones => tensor.dtype.fill_ones(at, out),
        }
    }
}

impl Source for Contents {
    fn fill(&self, place: Slot<'_>, offset: u64, out: &mut [u8]) {
        self.fill_tensor(place.tensor, offset, out);
    }
}

/// Compares what is read with what must be there.
impl Sink for Contents {
    fn take(&self, place: Slot<'_>, offset: u64, bytes: &[u8]) -> bool {
        let mut expected = [0; 4096];
        let mut at = offset;
        bytes.chunks(expected.len()).all(|found| {
            let expected = &mut expected[..found.len()];
            self.fill_tensor(place.tensor, at, expected);
            at += found.len() as u64;
            found == expected
        })
    }
}

/// Discards everything: only reading is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Sink for Discard {
    fn take(&self, _place: Slot<'_>, _offset: u64, _bytes: &[u8]) -> bool {
        true
    }
}

/// FNV-1a: the standard library's hash may change from release to release.
fn name_hash(name: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Memory of a tensor is locked in pieces of this size, so that several threads copy at a time.
const PIECE_BYTES: usize = 4 << 20;

/// The memory of one tensor.
type Pieces = Vec<Mutex<AlignedBuf>>;

/// Tensors held in memory, as a training job holds them: saved from there, loaded into there.
pub struct Held {
    /// By file and tensor.
    files: Vec<Vec<Pieces>>,
}

impl Held {
    /// Makes room for a rank's tensors and fills it.
    pub fn new(files: &[FileSpec], contents: &Contents) -> Held {
        let tensor = |tensor: &Tensor| {
            let mut at = 0;
            let mut pieces = Vec::new();
            while at < tensor.bytes() {
                let len =
                    PIECE_BYTES.min(usize::try_from(tensor.bytes() - at).unwrap_or(usize::MAX));
                let mut piece = AlignedBuf::new(len);
                contents.fill_tensor(tensor, at, &mut piece);
                pieces.push(Mutex::new(piece));
                at += len as u64;
            }
            pieces
        };
        let files = files.iter().map(|file| file.tensors.iter().map(tensor).collect()).collect();
        Held { files }
    }

    /// Whether it has room for just these tensors.
    pub fn fits(&self, files: &[FileSpec]) -> bool {
        let bytes = |pieces: &Pieces| {
            let len = |piece: &Mutex<AlignedBuf>| {
                piece.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
            };
            pieces.iter().map(len).sum::<u64>()
        };
        let same = |(held, file): (&Vec<Pieces>, &FileSpec)| {
            held.len() == file.tensors.len()
                && held
                    .iter()
                    .zip(&file.tensors)
                    .all(|(held, tensor)| bytes(held) == tensor.bytes())
        };
        self.files.len() == files.len() && self.files.iter().zip(files).all(same)
    }

    /// Shows the memory at `offset` of a tensor, stretch by stretch, with its place in `len` bytes.
    fn visit(
        &self,
        place: Slot<'_>,
        offset: u64,
        len: usize,
        mut visit: impl FnMut(&mut [u8], std::ops::Range<usize>),
    ) {
        let pieces = &self.files[place.file][place.index];
        let mut done = 0;
        while done < len {
            let at = usize::try_from(offset).expect("it is in memory") + done;
            let mut piece = pieces[at / PIECE_BYTES].lock().unwrap_or_else(PoisonError::into_inner);
            let inside = at % PIECE_BYTES;
            let part = (piece.len() - inside).min(len - done);
            visit(&mut piece[inside..inside + part], done..done + part);
            done += part;
        }
    }
}

impl Source for Held {
    fn fill(&self, place: Slot<'_>, offset: u64, out: &mut [u8]) {
        self.visit(place, offset, out.len(), |memory, at| out[at].copy_from_slice(memory));
    }
}

impl Sink for Held {
    fn take(&self, place: Slot<'_>, offset: u64, bytes: &[u8]) -> bool {
        self.visit(place, offset, bytes.len(), |memory, at| memory.copy_from_slice(&bytes[at]));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Share, StateKind};

    fn tensor(len: u64, first: u64) -> Tensor {
        let share = Share { name: "w".into(), total: 1 << 30, first };
        Tensor { path: vec!["w".into()], dtype: DType::Float16, len, share }
    }

    fn bytes(contents: Contents, tensor: &Tensor) -> Vec<u8> {
        let mut out = vec![0; tensor.bytes() as usize];
        contents.fill(Slot { file: 0, index: 0, tensor }, 0, &mut out);
        out
    }

    #[test]
    fn pieces_of_a_whole_hold_the_bytes_of_their_place() {
        let contents = Contents::new(7, 3, Values::Random);
        let whole = bytes(contents, &tensor(30_000, 0));
        assert_eq!(bytes(contents, &tensor(10_000, 20_000)), whole[40_000..]);
        assert_ne!(bytes(Contents::new(7, 4, Values::Random), &tensor(30_000, 0)), whole);
        assert_ne!(bytes(Contents::new(8, 3, Values::Random), &tensor(30_000, 0)), whole);
        let ones = bytes(Contents::new(7, 3, Values::Ones), &tensor(2, 1));
        assert_eq!(ones, [0x00, 0x3C, 0x00, 0x3C]);
    }

    #[test]
    fn one_wrong_byte_is_found() {
        let contents = Contents::new(7, 3, Values::Random);
        let tensor = tensor(9_000, 5);
        let mut found = bytes(contents, &tensor);
        let place = Slot { file: 0, index: 0, tensor: &tensor };
        assert!(contents.take(place, 0, &found));
        assert!(contents.take(place, 4_099, &found[4_099..]));
        found[17_777] ^= 1;
        assert!(!contents.take(place, 0, &found));
    }

    #[test]
    fn memory_gives_back_what_it_was_given() {
        let tensors = vec![tensor(100, 0), tensor(5 << 20, 100)];
        let file = FileSpec { stem: "f".into(), state: StateKind::Blob, tensors };
        let contents = Contents::new(1, 1, Values::Random);
        let held = Held::new(std::slice::from_ref(&file), &contents);
        let place = Slot { file: 0, index: 1, tensor: &file.tensors[1] };
        assert!(held.fits(std::slice::from_ref(&file)));
        let mut other = file.clone();
        other.tensors[1].len -= 1;
        assert!(!held.fits(&[other]) && !held.fits(&[]));
        let mut out = vec![0; 5 << 20];
        held.fill(place, 3 << 20, &mut out);
        assert!(contents.take(place, 3 << 20, &out));
        out.fill(9);
        assert!(held.take(place, (4 << 20) - 7, &out[..100]));
        let mut around = [0; 102];
        held.fill(place, (4 << 20) - 8, &mut around);
        assert_eq!(around[1..101], [9; 100]);
        assert!(contents.take(place, (4 << 20) - 8, &around[..1]));
        assert!(contents.take(place, (4 << 20) + 93, &around[101..]));
    }
}
