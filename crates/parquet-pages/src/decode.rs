//! From the bytes of a page to numbers: the reverse of [`encode`](crate::encode).

use crate::bits::{unpack, unzigzag, varint, word};
use crate::hybrid::{Run, Runs};

/// What is wrong with bytes that do not hold what they should.
pub type Wrong = &'static str;

const SHORT: Wrong = "values that end too early";

/// Runs of equal numbers and packed numbers between them, of at most 32 bits: `count` of them.
pub fn hybrid(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>, Wrong> {
    let mut runs = Runs::new(bytes, width).ok_or("an index that is too wide")?;
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        let from = out.len();
        let up_to = |run: u64| from + usize::try_from(run).unwrap_or(usize::MAX).min(count - from);
        match runs.next().ok_or(SHORT)? {
            Run::Equal { value, count } => out.resize(up_to(count), value),
            Run::Packed { bytes, count } => {
                out.resize(up_to(count), 0);
                unpack(bytes, width, &mut out[from..], |place, number| *place = number as u32);
            }
        }
    }
    Ok(out)
}

/// The number of a column that is one run of it; `None` if it is more than that.
pub fn only_run(bytes: &[u8], width: u32, count: usize) -> Option<u32> {
    match Runs::new(bytes, width)?.next()? {
        Run::Equal { value, count: run } if run >= count as u64 => Some(value),
        _ => None,
    }
}

/// Numbers that are stored as differences between neighbors.
pub fn deltas(bytes: &[u8], count: usize) -> Result<Vec<i64>, Wrong> {
    let mut at = 0;
    let number = |at: &mut usize| varint(bytes, at).ok_or(SHORT);
    let size = |at: &mut usize| usize::try_from(number(at)?).map_err(|_| SHORT);
    let (block, parts, all) = (size(&mut at)?, size(&mut at)?, size(&mut at)?);
    let mut before = unzigzag(number(&mut at)?);
    if all != count
        || parts == 0
        || !block.is_multiple_of(parts)
        || !(block / parts).is_multiple_of(8)
    {
        return Err("differences of another number of values");
    }
    let part = block / parts;
    let mut out = Vec::with_capacity(count);
    if count > 0 {
        out.push(before);
    }
    while out.len() < count {
        let least = unzigzag(number(&mut at)?);
        let widths = bytes.get(at..at.saturating_add(parts)).ok_or(SHORT)?;
        at += parts;
        for width in widths {
            let left = (count - out.len()).min(part);
            if left == 0 {
                break;
            }
            if *width > 64 {
                return Err("a difference that is too wide");
            }
            let size = part / 8 * usize::from(*width);
            let packed = bytes.get(at..at.saturating_add(size)).ok_or(SHORT)?;
            at += size;
            let from = out.len();
            out.resize(from + left, 0);
            unpack(packed, u32::from(*width), &mut out[from..], |place, number| {
                before = before.wrapping_add(least).wrapping_add(number.cast_signed());
                *place = before;
            });
        }
    }
    Ok(out)
}

/// Numbers of `size` bytes each, stored as all lowest bytes, then all second bytes, and so on.
pub fn byte_streams(bytes: &[u8], size: usize, count: usize) -> Result<Vec<i64>, Wrong> {
    let bytes = bytes.get(..count.saturating_mul(size)).ok_or(SHORT)?;
    let mut out = vec![0_i64; count];
    // Some at a time, so that they stay close to the processor while their bytes come together.
    for (index, some) in out.chunks_mut(STREAM_ROWS).enumerate() {
        for stream in 0..size {
            let from = stream * count + index * STREAM_ROWS;
            let column = &bytes[from..from + some.len()];
            for (number, byte) in some.iter_mut().zip(column) {
                *number |= i64::from(*byte) << (8 * stream);
            }
        }
    }
    if size == 4 {
        out.iter_mut().for_each(|number| *number = signed(number.cast_unsigned(), 4));
    }
    Ok(out)
}

const STREAM_ROWS: usize = 1024;

/// Whole numbers of four or eight bytes.
pub fn plain(bytes: &[u8], size: usize, count: usize) -> Result<Vec<i64>, Wrong> {
    let bytes = bytes.get(..count.saturating_mul(size)).ok_or(SHORT)?;
    Ok(bytes.chunks_exact(size).map(|number| signed(word(number, 0), size)).collect())
}

fn signed(number: u64, size: usize) -> i64 {
    if size == 4 { i64::from((number as u32).cast_signed()) } else { number.cast_signed() }
}

/// Texts, each after its length.
pub fn plain_texts(bytes: &[u8], count: usize) -> Result<Vec<String>, Wrong> {
    let mut at = 0_usize;
    let mut out = Vec::new();
    for _ in 0..count {
        let length = bytes.get(at..at + 4).ok_or(SHORT)?;
        let length = word(length, 0) as usize;
        at += 4;
        let text = bytes.get(at..at.saturating_add(length)).ok_or(SHORT)?;
        out.push(std::str::from_utf8(text).map_err(|_| "a text that is not UTF-8")?.to_owned());
        at += length;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    /// Numbers that need every width up to 64 bits, runs among them.
    fn samples() -> Vec<i64> {
        let wide = (0..64).map(|bit| i64::MIN >> bit).chain((0..63).map(|bit| (1 << bit) - 1));
        let mut all: Vec<i64> = wide.collect();
        all.extend([7; 100]);
        all.extend((0..500).map(|index: i64| index * index * 31 - 9000));
        all
    }

    #[test]
    fn what_was_encoded_comes_back() {
        let numbers = samples();
        for count in [0, 1, 2, 31, 32, 33, 128, 129, 130, numbers.len()] {
            let some = &numbers[..count];
            let bytes = written(|out| encode::deltas(out, some));
            assert_eq!(deltas(&bytes, count).unwrap(), some);
            for (size, some) in
                [(8, some.to_vec()), (4, some.iter().map(|n| i64::from(*n as i32)).collect())]
            {
                let bytes = written(|out| encode::byte_streams(out, &some, size));
                assert_eq!(byte_streams(&bytes, size, count).unwrap(), some);
                let bytes = written(|out| encode::plain(out, &some, size));
                assert_eq!(plain(&bytes, size, count).unwrap(), some);
            }
            for width in [1, 3, 8, 13, 32] {
                let mask = (1_u64 << width) - 1;
                let codes: Vec<u32> =
                    some.iter().map(|n| (n.cast_unsigned() & mask) as u32).collect();
                let bytes = written(|out| encode::hybrid(out, &codes, width));
                assert_eq!(hybrid(&bytes, width, count).unwrap(), codes, "{width} {count}");
            }
        }
        let texts = ["", "read", "päth"];
        let bytes = written(|out| encode::plain_texts(out, texts.into_iter()));
        assert_eq!(plain_texts(&bytes, 3).unwrap(), texts);
    }

    #[test]
    fn one_run_is_known_without_its_numbers() {
        let bytes = written(|out| encode::hybrid(out, &[5_u32; 100], 3));
        assert_eq!(only_run(&bytes, 3, 100), Some(5));
        assert_eq!(only_run(&bytes, 3, 101), None);
        let bytes = written(|out| encode::hybrid(out, &[5_u32, 4], 3));
        assert_eq!(only_run(&bytes, 3, 2), None);
    }

    #[test]
    fn damage_is_an_error_at_any_place() {
        let numbers = samples();
        let bytes = written(|out| encode::deltas(out, &numbers));
        for cut in 0..bytes.len() {
            assert!(deltas(&bytes[..cut], numbers.len()).is_err(), "{cut}");
        }
        assert!(hybrid(&[0, 1], 1, 5).is_err());
        assert!(hybrid(&[], 1, 5).is_err());
        assert!(plain(&[0; 15], 8, 2).is_err());
        assert!(byte_streams(&[0; 15], 8, 2).is_err());
        assert!(plain_texts(&[9, 0, 0, 0, b'a'], 1).is_err());
    }
}
