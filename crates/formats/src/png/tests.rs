//! Round trips, files of Pillow, and every way in which a small image can be damaged.

use super::*;
use crate::{ByteRange, PIECE_BYTES, test_support};

fn spec(dims: &[u64], samples: u64) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element: Element::UInt8, index: 0 }
}

fn encoded(dims: &[u64]) -> Vec<u8> {
    test_support::encoded(&Png, &spec(dims, 1))
}

/// The rows of a file, one after the other.
fn rows(file: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let chunks = chunks::check(file)?;
    let row_bytes = chunks.header.row_bytes() as usize;
    let mut pixels = Vec::new();
    decode(file, &chunks, &mut Vec::new(), |_, row| {
        pixels.extend(&row[..row_bytes]);
        Ok(())
    })?;
    Ok(pixels)
}

fn message(file: &[u8]) -> String {
    test_support::read(&Png, file, 0, 4096).unwrap_err().to_string()
}

/// Where each chunk begins and what it is.
fn chunk_list(file: &[u8]) -> Vec<(usize, [u8; 4])> {
    let mut list = Vec::new();
    let mut at = 8;
    while let Some(len) = image::be32(file, at) {
        list.push((at, file[at + 4..at + 8].try_into().unwrap()));
        at += 12 + len as usize;
    }
    list
}

/// Makes the checksum of the chunk at `at` right.
fn seal(file: &mut [u8], at: usize) {
    let end = at + 8 + image::be32(file, at).unwrap() as usize;
    let crc = crc32fast::hash(&file[at + 4..end]).to_be_bytes();
    file[end..end + 4].copy_from_slice(&crc);
}

#[test]
fn what_is_written_is_found_again() {
    for dims in [&[1, 1][..], &[7], &[17, 9], &[1, 70_000], &[70_000, 1], &[300, 1000]] {
        for samples in [1, 5] {
            let file = spec(dims, samples);
            let bytes = test_support::encoded(&Png, &file);
            assert_eq!(Png.size(&file), FileSize::Exact(bytes.len() as u64), "{dims:?}");
            let pixels = dims.iter().product();
            let mut content = vec![0; pixels as usize];
            Content::new(1, 2).fill(Element::UInt8, 0, &mut content);
            assert_eq!(rows(&bytes).unwrap(), content);
            let expected = SampleRead {
                bytes: pixels,
                file_bytes: bytes.len() as u64,
                samples: 0,
                element: Some(Element::UInt8),
            };
            // All samples are the one image; how many there are is never asked.
            for index in [0, samples - 1, 1000] {
                assert_eq!(test_support::read(&Png, &bytes, index, 4096).unwrap(), expected);
            }
        }
    }
}

#[test]
fn the_smallest_file_byte_by_byte() {
    let mut expected = Vec::new();
    expected.extend(b"\x89PNG\r\n\x1A\n");
    expected.extend(b"\0\0\0\x0DIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3A\x7E\x9B\x55");
    let mut pixel = [0];
    Content::new(1, 2).fill(Element::UInt8, 0, &mut pixel);
    // The sums of Adler-32: 1 and the bytes, and the sum of those sums, over a zero and the pixel.
    let low = 1 + u16::from(pixel[0]);
    let high = 1 + low;
    let mut body = b"IDAT\x78\x01\x01\x02\0\xFD\xFF\0".to_vec();
    body.push(pixel[0]);
    body.extend(high.to_be_bytes());
    body.extend(low.to_be_bytes());
    expected.extend([0, 0, 0, 13]);
    expected.extend(&body);
    expected.extend(crc32fast::hash(&body).to_be_bytes());
    expected.extend(b"\0\0\0\0IEND\xAE\x42\x60\x82");
    assert_eq!(encoded(&[1, 1]), expected);
}

#[test]
fn files_of_pillow_are_read() {
    let check = |file: &[u8], bytes, element| {
        let file_bytes = file.len() as u64;
        let expected = SampleRead { bytes, file_bytes, samples: 0, element: Some(element) };
        assert_eq!(test_support::read(&Png, file, 0, 4096).unwrap(), expected);
    };
    let pixels = 21 * 35;
    check(include_bytes!("../../golden/image-gray.png"), pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-gray-16.png"), 2 * pixels, Element::UInt16);
    check(include_bytes!("../../golden/image-bilevel.png"), pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-gray-alpha.png"), 2 * pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-rgb.png"), 3 * pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-rgba.png"), 4 * pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-palette.png"), pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-palette-4.png"), pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-interlaced.png"), pixels, Element::UInt8);
    check(include_bytes!("../../golden/image-animated.png"), pixels, Element::UInt8);
}

#[test]
fn the_pixels_are_those_that_pillow_was_given() {
    let noise = include_bytes!("../../golden/image-noise.pixels");
    assert_eq!(rows(include_bytes!("../../golden/image-gray.png")).unwrap(), noise);
    assert_eq!(rows(include_bytes!("../../golden/image-animated.png")).unwrap(), noise);
    let doubled: Vec<u8> = noise.iter().flat_map(|&pixel| [pixel, pixel]).collect();
    assert_eq!(rows(include_bytes!("../../golden/image-gray-16.png")).unwrap(), doubled);
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    let ours = encoded(&[9, 17]);
    for file in [&ours[..], include_bytes!("../../golden/image-gray.png")] {
        for len in 0..file.len() {
            message(&file[..len]);
        }
    }
    assert_eq!(message(&ours[..100]), "truncated: needs 218 bytes, file has 100");
    assert_eq!(message(&ours[..ours.len() - 1]), "truncated: needs 230 bytes, file has 229");
}

#[test]
fn every_changed_bit_is_an_error() {
    let ours = encoded(&[9, 17]);
    let goldens: [&[u8]; 4] = [
        &ours,
        include_bytes!("../../golden/image-gray.png"),
        include_bytes!("../../golden/image-rgb.png"),
        include_bytes!("../../golden/image-interlaced.png"),
    ];
    for golden in goldens {
        for bit in 0..golden.len() * 8 {
            let mut damaged = golden.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            test_support::read(&Png, &damaged, 0, 4096).expect_err("a changed bit");
        }
    }
}

/// The sum inside the compressed data is checked too, not only those of the chunks.
#[test]
fn a_wrong_adler_sum_under_a_right_crc_is_an_error() {
    for golden in [&encoded(&[9, 17])[..], include_bytes!("../../golden/image-interlaced.png")] {
        let (at, _) = *chunk_list(golden).iter().rfind(|(_, kind)| kind == b"IDAT").unwrap();
        let end = at + 8 + image::be32(golden, at).unwrap() as usize;
        for byte in end - 4..end {
            let mut damaged = golden.to_vec();
            damaged[byte] ^= 1;
            seal(&mut damaged, at);
            let error = test_support::read(&Png, &damaged, 0, 4096).unwrap_err();
            let DecodeError::Coding { offset, source, .. } = error else { panic!("{error}") };
            assert_eq!(offset, at as u64);
            assert_eq!(source.to_string(), "Corrupt deflate stream. WrongChecksum");
        }
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let golden = encoded(&[9, 17]);
    let foreign = "not a png: expected the signature 89 50 4e 47 0d 0a 1a 0a at byte 0, found";
    assert_eq!(message(b""), format!("{foreign} []"));
    assert_eq!(message(b"GIF89a"), format!("{foreign} [47, 49, 46, 38, 39, 61]"));

    let mut damaged = golden.clone();
    damaged[60] ^= 1;
    let expected = image::be32(&golden, 214).unwrap();
    let found = crc32fast::hash(&damaged[37..214]);
    assert_eq!(
        message(&damaged),
        format!("png: the chunk at byte 33 has checksum {found:08x}, expected {expected:08x}")
    );

    let mut empty = golden[..33].to_vec();
    empty.extend(&golden[golden.len() - 12..]);
    assert_eq!(
        message(&empty),
        "png: expected a chunk IDAT at byte 33, found a chunk IEND of 0 bytes"
    );

    let mut headless = golden[..8].to_vec();
    headless.extend(&golden[33..]);
    assert_eq!(
        message(&headless),
        "png: expected a chunk IHDR of 13 bytes at byte 8, found a chunk IDAT of 173 bytes"
    );
}

#[test]
fn a_size_that_the_data_does_not_have_is_an_error() {
    let golden = encoded(&[9, 17]);
    for (place, value) in [(16, 1), (20, 1), (20, 0x7F), (16, 0x7F), (19, 18), (23, 10), (23, 0)] {
        let mut damaged = golden.clone();
        damaged[place] = value;
        seal(&mut damaged, 8);
        test_support::read(&Png, &damaged, 0, 4096).expect_err("another size");
    }
    let mut damaged = golden;
    damaged[16] = 1;
    seal(&mut damaged, 8);
    assert_eq!(
        message(&damaged),
        "png: a row at byte 16 would take 16777233 bytes, the limit is 263064"
    );
}

#[test]
fn a_sample_takes_the_whole_file() {
    assert_eq!(test_support::ranges(&Png, &encoded(&[5, 5]), 1).unwrap(), [ByteRange::WHOLE]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let wide = spec(&[2, 1 << 31], 1);
    assert_eq!(Png.size(&wide), FileSize::Exact(u64::MAX));
    let error = Png.encode(&wide, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "png: width 2147483648 is larger than 2147483647");
}

/// Noise in a sink that gives less than it is asked for, as a full buffer does.
#[test]
fn the_pieces_of_a_sink_do_not_matter() {
    struct Narrow(Vec<u8>);
    impl ByteSink for Narrow {
        fn space(&mut self, want: usize) -> Result<&mut [u8], crate::StreamError> {
            self.0.space(want.min(777))
        }
        fn patch(&mut self, _: u64, _: &[u8]) -> Result<(), crate::StreamError> {
            Ok(())
        }
    }
    let file = spec(&[300, 500], 1);
    let mut narrow = Narrow(Vec::new());
    Png.encode(&file, &Content::new(1, 2), &mut narrow).unwrap();
    assert_eq!(narrow.0, test_support::encoded(&Png, &file));
    assert!(narrow.0.len() > PIECE_BYTES);
}
