//! Round trips, files of TensorFlow, the order of reads, and damage.

use super::*;
use crate::test_support::{self, InMemory};
use crate::{Element, PIECE_BYTES};

const SIZES: &[u8] = include_bytes!("../../golden/sizes.tfrecord");
const IMAGE_BYTES: [u64; 10] = [0, 10, 60, 90, 100, 120, 127, 128, 300, 16000];

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn encoded(file: &FileSpec) -> Vec<u8> {
    test_support::encoded(&TfRecord, file)
}

fn read(bytes: &[u8], index: u64, piece_bytes: usize) -> Result<u64, DecodeError> {
    test_support::read(&TfRecord, bytes, index, piece_bytes).map(|read| read.bytes)
}

fn message(bytes: &[u8], index: u64) -> String {
    read(bytes, index, 4096).unwrap_err().to_string()
}

/// A record around any payload.
fn framed(payload: &[u8]) -> Vec<u8> {
    let crc = masked(crc32c::crc32c(payload)).to_le_bytes();
    [&record_header(payload.len() as u64)[..], payload, &crc].concat()
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 5), (&[0], 2)]
        {
            let file = spec(dims, samples, element);
            let bytes = encoded(&file);
            assert_eq!(TfRecord.size(&file), FileSize::Exact(bytes.len() as u64));
            for piece_bytes in [1, 13, 100, 4096, 1 << 20] {
                for index in 0..samples {
                    let found = read(&bytes, index, piece_bytes).unwrap();
                    assert_eq!(found, dims.iter().product::<u64>() * element.size_bytes());
                }
            }
        }
    }
}

#[test]
fn the_records_are_those_tensorflow_writes() {
    let mut made = Vec::new();
    for image_bytes in IMAGE_BYTES {
        let example = Example::of(&spec(&[image_bytes], 1, Element::UInt8)).unwrap();
        let image: Vec<u8> = (0..image_bytes).map(|i| (i % 251) as u8).collect();
        let payload = [example.before_image, image, example.after_image].concat();
        made.extend(framed(&payload));
    }
    assert_eq!(made, SIZES);
}

#[test]
fn the_images_are_the_content() {
    let bytes = encoded(&spec(&[10, 10], 3, Element::Float32));
    let mut content = vec![0; 1200];
    Content::new(1, 2).fill(Element::Float32, 0, &mut content);
    let record = bytes.len() / 3;
    for (sample, image) in content.chunks_exact(400).enumerate() {
        let record = &bytes[sample * record..][..record];
        assert_eq!(record.windows(400).filter(|window| *window == image).count(), 1);
    }
}

#[test]
fn files_of_tensorflow_are_read() {
    for (index, expected) in (0..).zip(IMAGE_BYTES) {
        for piece_bytes in [7, 4096, 1 << 20] {
            assert_eq!(read(SIZES, index, piece_bytes).unwrap(), expected);
        }
    }
    let more = include_bytes!("../../golden/features.tfrecord");
    assert_eq!(read(more, 0, 5).unwrap(), 40);
}

#[test]
fn any_order_and_unknown_fields_are_fine() {
    // Value before name, an int that is not packed, a fixed64, a fixed32 and an unknown varint.
    let size = b"\x12\x04\x1A\x02\x08\x05\x0A\x04size";
    let image = b"\x12\x09\x0A\x07\x0A\x05hello\x0A\x05image";
    let mut features = vec![0x0A, size.len() as u8];
    features.extend(size);
    features.extend([0x21, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut example = vec![0x3D, 1, 2, 3, 4, 0x0A, features.len() as u8];
    example.extend(&features);
    // The features come in two parts, which are merged.
    example.extend([0x0A, image.len() as u8 + 2, 0x0A, image.len() as u8]);
    example.extend(image);
    example.extend([0x10, 0xFF, 0x01]);
    assert_eq!(read(&framed(&example), 0, 3).unwrap(), 5);
}

#[test]
fn records_that_are_no_samples_say_why() {
    assert_eq!(
        message(&framed(b""), 0),
        "tfrecord: expected one integer in feature size of the example at byte 12, \
         found no such feature"
    );
    assert_eq!(
        message(&framed(b"\x0A\x10\x0A\x0E\x0A\x04size\x12\x06\x1A\x04\x0A\x02\x01\x02"), 0),
        "tfrecord: expected one integer in feature size of the example at byte 12, \
         found 2 integers"
    );
    assert_eq!(
        message(&framed(b"\x0A\x05\x0A\x7F"), 0),
        "tfrecord: expected the length of a protobuf field at byte 13, \
         found 5, message ends at byte 16"
    );
    assert_eq!(
        message(&framed(b"\x0B"), 0),
        "tfrecord: a protobuf group at byte 13 is not supported"
    );
    assert_eq!(
        message(&framed(&[0xFF; 30]), 0),
        "tfrecord: expected a protobuf varint at byte 12, found more than ten bytes"
    );
    assert_eq!(
        message(&framed(b"\x0A"), 0),
        "tfrecord: expected a protobuf varint at byte 13, found the end of its message at 13"
    );
    assert_eq!(
        message(&framed(b"\x00"), 0),
        "tfrecord: expected the number of a protobuf field at byte 12, found 0"
    );
}

#[test]
fn files_of_another_kind_say_what_they_are() {
    assert_eq!(
        message(include_bytes!("../../golden/gzip.tfrecord"), 0),
        "tfrecord: compression with gzip at byte 0 is not supported"
    );
    assert_eq!(
        message(include_bytes!("../../golden/zlib.tfrecord"), 0),
        "tfrecord: compression with zlib at byte 0 is not supported"
    );
    assert_eq!(
        message(include_bytes!("../../golden/new-python.npz"), 0),
        "not a tfrecord: expected a length with its checksum at byte 0, \
         found [50, 4b, 03, 04, 2d, 00, 00, 00]"
    );
    let large = record_header(1 << 32);
    assert_eq!(
        message(&large, 0),
        "tfrecord: record at byte 0 would take 4294967296 bytes, the limit is 2147483647"
    );
}

#[test]
fn a_sample_the_file_does_not_have_is_refused() {
    for (bytes, samples) in [(SIZES, 10), (&[], 0)] {
        let error = read(bytes, 10, 4096).unwrap_err();
        let len = bytes.len() as u64;
        assert!(matches!(error, DecodeError::SampleIndex { offset, index: 10, samples: found }
                if offset == len && found == samples));
    }
}

#[test]
fn the_index_tells_where_records_are() {
    let file = spec(&[5, 5], 3, Element::UInt8);
    let made = InMemory::encoded(&TfRecord, &file);
    let record = made.data.len() / 3;
    let lines = format!("0 {record}\n{record} {record}\n{} {record}\n", 2 * record);
    assert_eq!(made.companions, [(".idx", lines.into_bytes())]);
    for index in 0..3 {
        let expected = ByteRange { offset: index * record as u64, len: Some(record as u64) };
        assert_eq!(test_support::ranges(&TfRecord, &made.data, index).unwrap(), [expected]);
    }

    // Long enough to be written in several pieces.
    let many = spec(&[], 5000, Element::UInt8);
    let made = InMemory::encoded(&TfRecord, &many);
    let lines = String::from_utf8(made.companions[0].1.clone()).unwrap();
    let record = made.data.len() / 5000;
    assert!(lines.lines().enumerate().all(|(i, line)| line == format!("{} {record}", i * record)));
    assert_eq!(lines.lines().count(), 5000);
}

#[test]
fn one_open_file_is_read_in_any_order() {
    let mut source = InMemory::new(SIZES.to_vec());
    let mut scratch = Scratch::new(256);
    let mut opened = TfRecord.open(&mut source, &mut scratch).unwrap();
    for index in [0, 1, 2, 5, 9, 9, 3, 0, 8] {
        let found = opened.read(&mut source, index, &mut scratch).unwrap();
        assert_eq!(found.bytes, IMAGE_BYTES[index as usize]);
        let mut ranges = Vec::new();
        opened.locate(&mut source, index, &mut scratch, &mut ranges).unwrap();
    }
    opened.read(&mut source, 10, &mut scratch).unwrap_err();
    assert_eq!(opened.read(&mut source, 4, &mut scratch).unwrap().bytes, 100);
}

#[test]
fn a_file_read_in_order_costs_aligned_pieces_and_every_byte_once() {
    let mut source = InMemory::encoded(&TfRecord, &spec(&[300, 1000], 3, Element::UInt8));
    let mut scratch = Scratch::new(1 << 20);
    let mut opened = TfRecord.open(&mut source, &mut scratch).unwrap();
    let mut pulled = 0;
    for index in 0..3 {
        pulled += opened.read(&mut source, index, &mut scratch).unwrap().file_bytes;
    }
    let (len, piece) = (source.data.len() as u64, PIECE_BYTES as u64);
    let mut expected: Vec<_> = (0..len / piece).map(|i| (i * piece, PIECE_BYTES)).collect();
    expected.push((len / piece * piece, (len % piece) as usize));
    assert_eq!(source.reads, expected);
    assert_eq!(pulled, len);
}

#[test]
fn large_records_are_passed_over_by_a_page_each() {
    let mut source = InMemory::encoded(&TfRecord, &spec(&[300, 1000], 3, Element::UInt8));
    let record = source.data.len() as u64 / 3;
    let mut scratch = Scratch::new(1 << 20);
    let mut opened = TfRecord.open(&mut source, &mut scratch).unwrap();
    let found = opened.read(&mut source, 2, &mut scratch).unwrap();
    let page = |offset: u64| (offset, (4096 - offset % 4096) as usize);
    assert_eq!(source.reads[..3], [(0, PIECE_BYTES), page(record), page(2 * record)]);
    assert_eq!(source.reads[3].0 % 4096, 0);
    assert_eq!(found.bytes, 300_000);
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    let bytes = encoded(&spec(&[5, 5], 2, Element::Int16));
    let record = bytes.len() / 2;
    for piece_bytes in [5, 4096] {
        for len in 0..bytes.len() {
            read(&bytes[..len], 1, piece_bytes).expect_err("a file without its end");
            assert_eq!(read(&bytes[..len], 0, piece_bytes).is_ok(), len >= record);
        }
    }
    assert_eq!(message(&bytes[..50], 0), format!("truncated: needs {record} bytes, file has 50"));
    assert_eq!(message(&bytes[..5], 0), "truncated: needs 12 bytes, file has 5");
}

#[test]
fn every_changed_bit_is_an_error() {
    let bytes = encoded(&spec(&[5, 5], 1, Element::Int16));
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        read(&damaged, 0, 64).expect_err("a changed record");
    }
    let mut damaged = bytes.clone();
    damaged[40] ^= 1;
    assert!(matches!(
        read(&damaged, 0, 4096),
        Err(DecodeError::Checksum { what: "record", offset: 12, .. })
    ));
    damaged = [bytes.clone(), bytes.clone()].concat();
    damaged[bytes.len()] ^= 1;
    let at = bytes.len() as u64;
    assert!(
        matches!(read(&damaged, 1, 4096), Err(DecodeError::Checksum { offset, .. }) if offset == at)
    );
}

/// With its checksum made right again, a changed payload reaches the parser.
#[test]
fn arbitrary_protobuf_never_panics() {
    let golden = include_bytes!("../../golden/features.tfrecord");
    let payload = &golden[12..golden.len() - 4];
    let mut draws = vec![0; 20 * 5000];
    Content::new(5, 5).fill(Element::UInt8, 0, &mut draws);
    for draw in draws.chunks_exact(20) {
        let mut payload = payload.to_vec();
        for change in draw[2..2 + 2 * usize::from(draw[1] % 6 + 1)].chunks_exact(2) {
            let at = usize::from(change[0]) % payload.len();
            payload[at] = change[1];
        }
        let _ = read(&framed(&payload), 0, 1 + usize::from(draw[0]));
    }
}

#[test]
fn samples_beyond_2_gib_are_refused() {
    let file = spec(&[1 << 31], 1, Element::UInt8);
    let error = TfRecord.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tfrecord: a sample of 2147483648 bytes makes a protobuf of 2147483704, \
         the limit is 2147483647"
    );
    let endless = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
    assert_eq!(TfRecord.size(&endless), FileSize::Exact(u64::MAX));
    let error = TfRecord.encode(&endless, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { .. }));
}
