//! Round trips, files of the reference, and what damage does.

use super::*;
use crate::DecodeError;
use crate::{PIECE_BYTES, test_support};

const SAMPLES: &[u8] = include_bytes!("../../golden/samples.safetensors");
const MODEL: &[u8] = include_bytes!("../../golden/model.safetensors");

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn encoded(file: &FileSpec) -> Vec<u8> {
    test_support::encoded(&SafeTensors, file)
}

fn read(bytes: &[u8], index: u64) -> Result<SampleRead, DecodeError> {
    test_support::read(&SafeTensors, bytes, index, 4096)
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL.into_iter().filter(|&element| element != Element::Complex128) {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 5), (&[0], 3)]
        {
            let file = spec(dims, samples, element);
            let bytes = encoded(&file);
            assert_eq!(SafeTensors.size(&file), FileSize::Exact(bytes.len() as u64));
            let size = dims.iter().product::<u64>() * element.size_bytes();
            let mut content = vec![0; (size * samples) as usize];
            Content::new(1, 2).fill(element, 0, &mut content);
            for index in 0..samples {
                let found = read(&bytes, index).unwrap();
                let expected =
                    SampleRead { bytes: size, file_bytes: size, samples, element: Some(element) };
                assert_eq!(found, expected);
                let place = test_support::ranges(&SafeTensors, &bytes, index).unwrap()[0];
                assert_eq!(place.len, Some(size));
                let data = &bytes[place.offset as usize..][..size as usize];
                assert_eq!(*data, content[(index * size) as usize..][..size as usize]);
            }
        }
    }
}

/// Everything but the samples is compared byte for byte.
#[test]
fn the_frame_is_the_one_the_reference_writes() {
    let ours = encoded(&spec(&[3, 4], 2, Element::Float32));
    let mut golden = SAMPLES.to_vec();
    golden[144..].copy_from_slice(&ours[144..]);
    assert_eq!(ours, golden);
}

#[test]
fn labels_stand_behind_samples_of_the_widest_types_only() {
    let header = |element| String::from_utf8(encoded(&spec(&[], 1, element))[8..].to_vec());
    let x = |dtype| format!(r#"{{"x":{{"dtype":"{dtype}","shape":[1],"data_offsets":[0,8]}}"#);
    let text = |element| {
        header(element)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    };
    assert!(text(Element::Int64).starts_with(&x("I64")));
    assert!(text(Element::UInt64).starts_with(&x("U64")));
    assert!(text(Element::Float64).starts_with(r#"{"y":{"#));
}

#[test]
fn what_the_reference_cannot_load_is_refused() {
    let file = spec(&[3], 2, Element::Complex128);
    let error = SafeTensors.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "safetensors: has no element type complex128, only complex64");
    let file = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
    assert_eq!(SafeTensors.size(&file), FileSize::Exact(u64::MAX));
    let error = SafeTensors.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { .. }));
}

#[test]
fn files_of_the_reference_are_read() {
    let found = read(SAMPLES, 1).unwrap();
    assert_eq!((found.bytes, found.samples, found.element), (48, 2, Some(Element::Float32)));
    // Without a tensor `x`, the first in the data.
    let found = read(MODEL, 4).unwrap();
    assert_eq!((found.bytes, found.samples, found.element), (4, 5, Some(Element::Int32)));
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    for golden in [SAMPLES, MODEL] {
        for len in 0..golden.len() {
            read(&golden[..len], 0).expect_err("a file without its end");
        }
    }
    let message = read(&SAMPLES[..200], 0).unwrap_err().to_string();
    assert_eq!(message, "truncated: needs 240 bytes, file has 200");
    let longer = [SAMPLES, &[0]].concat();
    assert_eq!(
        read(&longer, 0).unwrap_err().to_string(),
        "safetensors: expected the end of the file at byte 240, found 1 more"
    );
}

#[test]
fn a_changed_bit_of_the_header_is_an_error_or_changes_no_sample() {
    let (mut errors, mut other) = (0, 0);
    for bit in 0..128 * 8 {
        let mut damaged = SAMPLES.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match read(&damaged, 1) {
            Err(_) => errors += 1,
            Ok(found) if found.bytes == 48 => {}
            // Another name for `x` makes the labels the first tensor; no checksum tells.
            Ok(_) => other += 1,
        }
    }
    assert!(errors > 700 && other < 20, "{errors} errors, {other} others");
}

#[test]
fn a_header_has_a_bound() {
    let message = |bytes: &[u8]| read(bytes, 0).unwrap_err().to_string();
    assert_eq!(
        message(&[0xff; 100]),
        "safetensors: header at byte 0 would take 18446744073709551615 bytes, \
         the limit is 100000000"
    );
    assert_eq!(message(b"\x10\0\0\0\0\0\0\0{"), "truncated: needs 24 bytes, file has 9");
}

#[test]
fn a_long_header_takes_a_second_read_and_a_sample_its_bytes() {
    let bytes = encoded(&spec(&[300_000], 2, Element::UInt8));
    let found = test_support::reads(&SafeTensors, &bytes, &[1, 0]);
    let start = (bytes.len() - 600_000) as u64;
    let piece = PIECE_BYTES as u64;
    let sample = start + 300_000;
    let mut expected = vec![(0, 4096), (sample, PIECE_BYTES), (sample + piece, PIECE_BYTES)];
    expected.push((sample + 2 * piece, 300_000 - 2 * PIECE_BYTES));
    assert_eq!(found[0].1, expected);
    assert_eq!(found[0].0.file_bytes, 300_000);
    assert_eq!(found[1].1.len(), 3);

    let padding = " ".repeat(5000 - 8);
    let text = format!(r#"{{"x":{{"dtype":"U8","shape":[1,3],"data_offsets":[0,3]}}}}{padding}"#);
    let mut long = (text.len() as u64).to_le_bytes().to_vec();
    long.extend(text.as_bytes());
    long.extend([1, 2, 3]);
    let (sample, reads) = test_support::reads(&SafeTensors, &long, &[0]).remove(0);
    assert_eq!(reads, [(0, 4096), (8, text.len()), (8 + text.len() as u64, 3)]);
    assert_eq!((sample.bytes, sample.file_bytes), (3, 3));
}
