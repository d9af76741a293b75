//! LZF as LibLZF and h5py have it: runs of literals and references up to 8 KiB back.
//!
//! A control byte below 32 announces that many literals and one more. Otherwise its upper three bits
//! are a length less two (seven: another byte adds to it), its lower five and the byte after
//! everything else are the distance less one.

/// Most literals in a run.
const LONGEST_RUN: usize = 32;
const FARTHEST: usize = 1 << 13;
const LONGEST_MATCH: usize = 264;
const TABLE_BITS: u32 = 14;
/// Bytes without a repetition after which the search begins to skip.
const PATIENCE: usize = 64;

/// Finds repetitions through a table that is used again for every chunk.
pub(super) struct Compressor {
    /// Where three bytes of that hash were last seen, plus one.
    table: Vec<u32>,
}

impl Compressor {
    pub(super) fn new() -> Compressor {
        Compressor { table: vec![0; 1 << TABLE_BITS] }
    }

    /// Compresses `input` into `out`, which is emptied first. `false` if the result would not be
    /// smaller, and what is in `out` then is of no use.
    pub(super) fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> bool {
        self.table.fill(0);
        out.clear();
        let mut at = 0;
        let mut run_start = 0;
        while let Some(three) = input.get(at..).and_then(|rest| rest.first_chunk::<3>()) {
            let slot = &mut self.table[hash(*three)];
            let seen = std::mem::replace(slot, at as u32 + 1) as usize;
            let distance = at + 1 - seen;
            if seen == 0 || distance > FARTHEST || input[seen - 1..].first_chunk() != Some(three) {
                // The longer nothing was found, the larger the steps: noise is passed over quickly.
                at += 1 + (at - run_start) / PATIENCE;
                continue;
            }
            literals(&input[run_start..at], out);
            let len = match_len(&input[seen - 1..], &input[at..]);
            reference(distance, len, out);
            if out.len() >= input.len() {
                return false;
            }
            at += len;
            run_start = at;
        }
        literals(&input[run_start..], out);
        out.len() < input.len()
    }
}

fn hash([a, b, c]: [u8; 3]) -> usize {
    let word = u32::from_le_bytes([a, b, c, 0]);
    (word.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)) as usize
}

fn match_len(earlier: &[u8], now: &[u8]) -> usize {
    let most = now.len().min(LONGEST_MATCH);
    now[..most].iter().zip(earlier).take_while(|(a, b)| a == b).count()
}

fn literals(bytes: &[u8], out: &mut Vec<u8>) {
    for run in bytes.chunks(LONGEST_RUN) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

fn reference(distance: usize, len: usize, out: &mut Vec<u8>) {
    let (high, low) = (((distance - 1) >> 8) as u8, (distance - 1) as u8);
    match len - 2 {
        len @ ..7 => out.push((len as u8) << 5 | high),
        len => out.extend([7 << 5 | high, (len - 7) as u8]),
    }
    out.push(low);
}

/// Fills `out` from `input`; an error is what is wrong with it.
pub(super) fn decompress(input: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
    const SHORT: &str = "LZF data ends within a run";
    let mut rest = input;
    let mut done = 0;
    while let Some((&control, tail)) = rest.split_first() {
        if usize::from(control) < LONGEST_RUN {
            let len = usize::from(control) + 1;
            let (run, tail) = tail.split_at_checked(len).ok_or(SHORT)?;
            let target = out.get_mut(done..done + len).ok_or("LZF data is too long")?;
            target.copy_from_slice(run);
            (rest, done) = (tail, done + len);
            continue;
        }
        let mut len = usize::from(control >> 5) + 2;
        let mut tail = tail;
        if len == 9 {
            let (&more, behind) = tail.split_first().ok_or(SHORT)?;
            len += usize::from(more);
            tail = behind;
        }
        let (&low, tail) = tail.split_first().ok_or(SHORT)?;
        let distance = (usize::from(control & 31) << 8 | usize::from(low)) + 1;
        if distance > done {
            return Err("LZF data refers to before its beginning");
        }
        if len > out.len() - done {
            return Err("LZF data is too long");
        }
        repeat(out, done, distance, len);
        (rest, done) = (tail, done + len);
    }
    if done < out.len() { Err("LZF data is too short") } else { Ok(()) }
}

/// Copies `len` bytes from `distance` back; they may overlap, and then they repeat.
fn repeat(out: &mut [u8], at: usize, distance: usize, len: usize) {
    let start = at - distance;
    if distance >= len {
        out.copy_within(start..start + len, at);
        return;
    }
    for i in 0..len {
        out[at + i] = out[start + i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Element};

    fn check(input: &[u8]) {
        let mut packed = Vec::new();
        if Compressor::new().compress(input, &mut packed) {
            assert!(packed.len() < input.len());
            let mut out = vec![0; input.len()];
            decompress(&packed, &mut out).unwrap();
            assert!(out == input, "{} bytes", input.len());
            decompress(&packed, &mut vec![0; input.len() + 1]).unwrap_err();
            decompress(&packed, &mut vec![0; input.len() - 1]).unwrap_err();
        }
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let mut noise = vec![0; 70_000];
        Content::new(3, 3).fill(Element::UInt8, 0, &mut noise);
        for len in [0, 1, 2, 3, 4, 31, 32, 33, 264, 265, 8191, 8192, 8193, 70_000] {
            check(&noise[..len]);
            check(&vec![7; len]);
            for alphabet in [1, 3, 7, 31] {
                check(&noise[..len].iter().map(|byte| byte & alphabet).collect::<Vec<_>>());
            }
        }
        let far: Vec<u8> = [&noise[..9000], &noise[..9000]].concat();
        check(&far);
        let near: Vec<u8> = [&noise[..8000], &noise[..8000]].concat();
        check(&near);
    }

    #[test]
    fn noise_is_given_up_and_repetition_is_not() {
        let mut noise = vec![0; 10_000];
        Content::new(3, 3).fill(Element::UInt8, 0, &mut noise);
        assert!(!Compressor::new().compress(&noise, &mut Vec::new()));
        let mut packed = Vec::new();
        assert!(Compressor::new().compress(&[5; 10_000], &mut packed));
        // One literal, then references of up to 264 bytes to the byte before.
        assert_eq!(packed[..5], [0, 5, 7 << 5, 255, 0]);
        assert_eq!(packed.len(), 2 + 38 * 3);
    }

    #[test]
    fn damaged_data_is_an_error() {
        let refused = |bytes: &[u8]| decompress(bytes, &mut [0; 8]).unwrap_err();
        assert_eq!(refused(&[]), "LZF data is too short");
        assert_eq!(refused(&[2, 1, 1]), "LZF data ends within a run");
        assert_eq!(refused(&[0, 1, 0x20]), "LZF data ends within a run");
        assert_eq!(refused(&[0, 1, 0xE0]), "LZF data ends within a run");
        assert_eq!(refused(&[0, 1, 0x20, 1]), "LZF data refers to before its beginning");
        assert_eq!(refused(&[0, 1, 0xE0, 9, 0]), "LZF data is too long");
    }
}
