//! Parquet's encodings of values, from bytes to numbers. Pure, and the reverse of [`encode`](super::encode).
//!
//! They are here, and not the `parquet` crate's column readers, because those hand out every name as a
//! counted piece of memory and every number of a constant column one by one; an analysis wants the indices
//! of the dictionary, and wants constant columns for nothing.

/// What is wrong with bytes that do not hold what they should.
pub(crate) type Wrong = &'static str;

const SHORT: Wrong = "values that end too early";

/// A number in groups of seven bits.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Wrong> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(SHORT)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number that is too long")
}

/// A number whose sign is its lowest bit.
pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Eight bytes from a place on; zeros where there are no more.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().unwrap_or_default()),
        None => {
            let mut word = [0; 8];
            let rest = bytes.get(at..).unwrap_or_default();
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}

/// Numbers of `width` bits that stand in a row, as many as there is room for.
#[inline]
fn unpack<T>(bytes: &[u8], width: u32, out: &mut [T], mut take: impl FnMut(&mut T, u64)) {
    let width = width as usize;
    let mask = if width == 64 { u64::MAX } else { (1_u64 << width) - 1 };
    if width > 0 && width <= 8 {
        // Eight numbers are in one word.
        for (eight, packed) in out.chunks_mut(8).zip(bytes.chunks(width)) {
            let mut word = word(packed, 0);
            for place in eight {
                take(place, word & mask);
                word >>= width;
            }
        }
        return;
    }
    for (index, place) in out.iter_mut().enumerate() {
        let bit = index * width;
        let (at, shift) = (bit / 8, bit % 8);
        let mut number = word(bytes, at) >> shift;
        if shift + width > 64 {
            number |= u64::from(bytes.get(at + 8).copied().unwrap_or(0)) << (64 - shift);
        }
        take(place, number & mask);
    }
}

/// Runs of equal numbers and packed numbers between them, of at most 32 bits: `count` of them.
pub(crate) fn hybrid(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u32>, Wrong> {
    if width > 32 {
        return Err("an index that is too wide");
    }
    let mut out = Vec::with_capacity(count);
    let mut at = 0;
    while out.len() < count {
        let left = count - out.len();
        let header = varint(bytes, &mut at)?;
        let length = usize::try_from(header >> 1).map_err(|_| SHORT)?;
        if header & 1 == 0 {
            let size = width.div_ceil(8) as usize;
            let value = word(bytes.get(at..at + size).ok_or(SHORT)?, 0) as u32;
            at += size;
            if length == 0 {
                return Err("a run of nothing");
            }
            out.resize(out.len() + length.min(left), value);
        } else {
            let size = length.checked_mul(width as usize).ok_or(SHORT)?;
            let packed = bytes.get(at..at.saturating_add(size)).ok_or(SHORT)?;
            at += size;
            if length == 0 {
                return Err("a run of nothing");
            }
            let from = out.len();
            out.resize(from + length.saturating_mul(8).min(left), 0);
            unpack(packed, width, &mut out[from..], |place, number| *place = number as u32);
        }
    }
    Ok(out)
}

/// The one number of a column that is nothing but a run of it; none if it is more than that.
pub(crate) fn only_run(bytes: &[u8], width: u32, count: usize) -> Option<u32> {
    let mut at = 0;
    let header = varint(bytes, &mut at).ok()?;
    let is_all = header & 1 == 0 && usize::try_from(header >> 1).is_ok_and(|run| run >= count);
    let value = bytes.get(at..at + width.div_ceil(8) as usize)?;
    is_all.then(|| word(value, 0) as u32)
}

/// Differences between neighbors.
pub(crate) fn deltas(bytes: &[u8], count: usize) -> Result<Vec<i64>, Wrong> {
    let mut at = 0;
    let block = usize::try_from(varint(bytes, &mut at)?).map_err(|_| SHORT)?;
    let parts = usize::try_from(varint(bytes, &mut at)?).map_err(|_| SHORT)?;
    let all = usize::try_from(varint(bytes, &mut at)?).map_err(|_| SHORT)?;
    let mut before = unzigzag(varint(bytes, &mut at)?);
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
        let least = unzigzag(varint(bytes, &mut at)?);
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

/// All lowest bytes, then all second bytes, and so on.
pub(crate) fn byte_streams(bytes: &[u8], size: usize, count: usize) -> Result<Vec<i64>, Wrong> {
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
pub(crate) fn plain(bytes: &[u8], size: usize, count: usize) -> Result<Vec<i64>, Wrong> {
    let bytes = bytes.get(..count.saturating_mul(size)).ok_or(SHORT)?;
    Ok(bytes.chunks_exact(size).map(|number| signed(word(number, 0), size)).collect())
}

fn signed(number: u64, size: usize) -> i64 {
    if size == 4 { i64::from((number as u32).cast_signed()) } else { number.cast_signed() }
}

/// Texts with their lengths.
pub(crate) fn plain_texts(bytes: &[u8], count: usize) -> Result<Vec<String>, Wrong> {
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
    use super::super::encode;
    use super::*;

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
