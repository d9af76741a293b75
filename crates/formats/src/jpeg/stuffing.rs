//! The zeros that follow each `FF` in the data of a scan, so that no marker can be found there.

/// Copies `data` without the zeros after each `FF`; returns how much is left of it.
///
/// `plain` is at least as long as `data`.
pub(super) fn unstuff(mut data: &[u8], plain: &mut [u8]) -> usize {
    let mut len = 0;
    loop {
        let part = next_ff(data);
        let with_ff = data.len().min(part + 1);
        plain[len..len + with_ff].copy_from_slice(&data[..with_ff]);
        len += with_ff;
        match data.get(part + 2..) {
            Some(rest) => data = rest,
            None => return len,
        }
    }
}

/// Appends `plain` to `data`, with a zero after each `FF`.
pub(super) fn stuff(mut plain: &[u8], data: &mut Vec<u8>) {
    loop {
        let part = next_ff(plain);
        match plain.get(part + 1..) {
            Some(rest) => {
                data.extend_from_slice(&plain[..part]);
                data.extend_from_slice(&[0xFF, 0]);
                plain = rest;
            }
            None => return data.extend_from_slice(plain),
        }
    }
}

/// Where byte `place` of the data without stuffing stands in the data.
pub(super) fn stuffed_place(data: &[u8], place: usize) -> usize {
    let mut plain = 0;
    let mut at = 0;
    while plain < place && at < data.len() {
        at += if data[at] == 0xFF { 2 } else { 1 };
        plain += 1;
    }
    at.min(data.len())
}

/// The place of the first `FF`, or the length. Sixteen bytes at a time, which is vectorised.
pub(super) fn next_ff(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<16>();
    let none = |chunk: &&[u8; 16]| chunk.iter().fold(0, |any, &b| any | u8::from(b == 0xFF)) == 0;
    let before = chunks.iter().take_while(none).count() * 16;
    let rest = &bytes[before..];
    before + rest.iter().position(|&byte| byte == 0xFF).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_go_in_after_each_ff_and_come_out_again() {
        let mut long = vec![7; 100];
        long[40] = 0xFF;
        for plain in [&b""[..], b"abc", b"\xFF", b"\xFF\xFF", b"a\xFFb", b"\xFF\x00", &long] {
            let mut data = Vec::new();
            stuff(plain, &mut data);
            let ffs = plain.iter().filter(|&&byte| byte == 0xFF).count();
            assert_eq!(data.len(), plain.len() + ffs);
            let mut back = vec![1; data.len()];
            let len = unstuff(&data, &mut back);
            assert_eq!(&back[..len], plain);
            for place in 0..plain.len() {
                assert_eq!(data[stuffed_place(&data, place)], plain[place]);
            }
            assert_eq!(stuffed_place(&data, plain.len()), data.len());
        }
    }
}
