//! Round trips, shards of other writers, and what damage does.

use super::*;
use crate::EncodeError;
use crate::{PIECE_BYTES, test_support};

const WRITER: &[u8] = include_bytes!("../../golden/writer.tar");
const GNU: &[u8] = include_bytes!("../../golden/gnu.tar");
const PAX: &[u8] = include_bytes!("../../golden/pax.tar");

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 7 }
}

fn encoded(file: &FileSpec) -> Vec<u8> {
    test_support::encoded(&WebDataset, file)
}

fn read(bytes: &[u8], index: u64) -> Result<SampleRead, DecodeError> {
    test_support::read(&WebDataset, bytes, index, 2048)
}

fn message(bytes: &[u8], index: u64) -> String {
    read(bytes, index).unwrap_err().to_string()
}

/// A header of another type than a regular file.
fn of_kind(kind: u8, name: &str, size: u64) -> [u8; 512] {
    let mut block = tar::header(name, size);
    block[156] = kind;
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Sizes of all samples, read one after the other.
fn sizes(mut bytes: &[u8], piece_bytes: usize) -> Result<Vec<u64>, DecodeError> {
    let mut scratch = Scratch::new(piece_bytes);
    let mut opened = WebDataset.open(&mut bytes, &mut scratch)?;
    let mut found = Vec::new();
    loop {
        match opened.read(&mut bytes, found.len() as u64, &mut scratch) {
            Ok(sample) => found.push(sample.bytes),
            Err(DecodeError::SampleIndex { samples, .. }) => {
                assert_eq!(samples, found.len() as u64);
                return Ok(found);
            }
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 5), (&[0], 3)]
        {
            let file = spec(dims, samples, element);
            let bytes = encoded(&file);
            assert_eq!(WebDataset.size(&file), FileSize::Exact(bytes.len() as u64));
            assert_eq!(bytes.len() % 10240, 0);
            let size = dims.iter().product::<u64>() * element.size_bytes();
            for piece_bytes in [512, 700, 4096, PIECE_BYTES] {
                assert_eq!(sizes(&bytes, piece_bytes).unwrap(), vec![size; samples as usize]);
            }
            let found = read(&bytes, samples - 1).unwrap();
            assert_eq!((found.bytes, found.samples, found.element), (size, 0, Some(element)));
        }
    }
}

#[test]
fn a_shard_is_laid_out_block_by_block() {
    let bytes = encoded(&spec(&[600], 2, Element::UInt8));
    assert_eq!(bytes.len(), 10240);
    let mut content = vec![0; 1200];
    Content::new(1, 2).fill(Element::UInt8, 0, &mut content);
    // 512 header, 128 + 600 array, padding to 1536; 512 header, "0", padding to 2560.
    for (start, sample) in [(0, 0), (2560, 1)] {
        let name = format!("000007_00000{sample}.npy\0");
        assert_eq!(bytes[start..start + 18], *name.as_bytes());
        assert_eq!(bytes[start + 124..start + 136], *b"00000001330\0");
        let data = &content[sample * 600..][..600];
        assert_eq!(bytes[start + 640..start + 1240], *data);
        assert!(bytes[start + 1240..start + 1536].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[start + 1536..start + 1554], *name.replace("npy", "cls").as_bytes());
        assert_eq!(bytes[start + 2048..start + 2050], *b"0\0");
    }
    assert!(bytes[2 * 2560..].iter().all(|&byte| byte == 0));
}

#[test]
fn no_samples_are_an_empty_archive() {
    let bytes = encoded(&spec(&[600], 0, Element::UInt8));
    assert_eq!(bytes, [0; 10240]);
    assert_eq!(message(&bytes, 0), "sample 0 asked for, file has 0 (counted up to byte 0)");
}

#[test]
fn shards_of_other_writers_are_read() {
    for piece_bytes in [512, 1000, 4096, PIECE_BYTES] {
        // Labels do not count: an array of 6 bytes and a text.
        assert_eq!(sizes(WRITER, piece_bytes).unwrap(), [6, 10, 14]);
        // Files of the same name in other folders are another sample; some files are of none.
        assert_eq!(sizes(GNU, piece_bytes).unwrap(), [730, 5, 513]);
        assert_eq!(sizes(PAX, piece_bytes).unwrap(), [730, 5, 513]);
    }
    assert_eq!(read(WRITER, 1).unwrap().element, Some(Element::UInt8));
    assert_eq!(read(GNU, 1).unwrap().element, None);
}

#[test]
fn samples_are_read_in_any_order() {
    let bytes = encoded(&spec(&[600], 5, Element::UInt8));
    let found = test_support::reads(&WebDataset, &bytes, &[3, 3, 0, 1, 2, 4, 1]);
    assert!(found.iter().all(|(sample, _)| sample.bytes == 600));
}

#[test]
fn a_sample_is_located_from_its_first_header_to_its_last_byte() {
    let bytes = encoded(&spec(&[600], 3, Element::UInt8));
    let at = |offset, len| [ByteRange { offset, len: Some(len) }];
    assert_eq!(test_support::ranges(&WebDataset, &bytes, 0).unwrap(), at(0, 2049));
    assert_eq!(test_support::ranges(&WebDataset, &bytes, 2).unwrap(), at(5120, 2049));
    // The header that carries the long name belongs to the sample.
    assert_eq!(test_support::ranges(&WebDataset, GNU, 2).unwrap(), at(6144, 4097));
    test_support::ranges(&WebDataset, &bytes, 3).unwrap_err();
}

#[test]
fn a_shard_is_read_once_in_whole_pieces() {
    let piece = PIECE_BYTES as u64;
    let bytes = encoded(&spec(&[300_000], 3, Element::UInt8));
    let found = test_support::reads(&WebDataset, &bytes, &[0, 1, 2]);
    let reads: Vec<(u64, usize)> = found.iter().flat_map(|(_, reads)| reads.clone()).collect();
    let whole = bytes.len() as u64 / piece;
    let mut expected: Vec<(u64, usize)> = (0..whole).map(|i| (i * piece, PIECE_BYTES)).collect();
    expected.push((whole * piece, bytes.len() - (whole * piece) as usize));
    assert_eq!(reads, expected);
    let pulled: u64 = found.iter().map(|(sample, _)| sample.file_bytes).sum();
    assert_eq!(pulled, bytes.len() as u64);
}

#[test]
fn small_samples_share_a_piece() {
    let bytes = encoded(&spec(&[100], 50, Element::UInt8));
    let found = test_support::reads(&WebDataset, &bytes, &(0..50).collect::<Vec<u64>>());
    let reads: usize = found.iter().map(|(_, reads)| reads.len()).sum();
    assert_eq!(reads, 1);
}

#[test]
fn large_samples_are_passed_over_by_their_headers() {
    let bytes = encoded(&spec(&[300_000], 3, Element::UInt8));
    let (_, reads) = test_support::reads(&WebDataset, &bytes, &[2]).remove(0);
    let small: Vec<u64> = reads.iter().filter(|read| read.1 == 512).map(|read| read.0).collect();
    assert_eq!(small, [512 + 300_544, 302_080 + 512 + 300_544]);
    let pulled: usize = reads.iter().map(|read| read.1).sum();
    assert!(pulled < 600_000, "{pulled}");
}

#[test]
fn a_truncated_shard_is_an_error_at_every_length() {
    for (bytes, last, end) in [
        (encoded(&spec(&[60], 2, Element::UInt8)), 1, 2 * 2048),
        (WRITER.to_vec(), 2, 8704),
        (GNU.to_vec(), 2, 10752),
        (PAX.to_vec(), 2, 10752),
    ] {
        // One block of the end must be there, as for Python; padding after it says nothing.
        for len in 0..end + 512 {
            read(&bytes[..len], last).expect_err("a shard without its end");
        }
        read(&bytes[..end + 512], last).unwrap();
    }
    let bytes = encoded(&spec(&[600], 2, Element::UInt8));
    assert_eq!(message(&bytes[..1000], 0), "truncated: needs 1240 bytes, file has 1000");
}

#[test]
fn every_changed_bit_of_a_header_is_an_error_and_others_change_no_size() {
    let bytes = encoded(&spec(&[20], 2, Element::UInt8));
    for bit in 0..2 * 1024 * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = sizes(&damaged, 4096);
        // Headers are at every second block.
        if bit / 8 / 512 % 2 == 0 {
            // Leading zeros of the sum may become blanks, and what follows it is not read.
            let harmless = [148, 149, 154, 155].contains(&(bit / 8 % 512));
            assert!(found.is_err() || harmless, "bit {bit}");
        } else if let Ok(sizes) = found {
            assert!(sizes == [20, 20] || (bit / 8 % 2048) < 640, "bit {bit}: {sizes:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let bytes = encoded(&spec(&[20], 2, Element::UInt8));
    let mut damaged = bytes.clone();
    damaged[3] = b'1';
    assert_eq!(
        message(&damaged, 0),
        "tar: header at byte 0 has checksum 00001011, expected 00001010"
    );
    assert_eq!(
        message(&[b'a'; 600], 0),
        "not a tar archive: expected a header with its checksum at byte 0, \
         found [61, 61, 61, 61, 61, 61, 61, 61]"
    );
    let mut short = bytes.clone();
    short[..512].copy_from_slice(&tar::header("a.npy", 100));
    assert_eq!(message(&short, 0), "member a.npy at byte 512 has 100 bytes, its array needs 128");
    let sparse = [&of_kind(b'S', "a.npy", 5)[..], &bytes].concat();
    assert_eq!(message(&sparse, 0), "tar: sparse file at byte 0 is not supported");
}

#[test]
fn a_header_for_the_next_member_must_fit_the_buffer() {
    let bytes = [&of_kind(b'L', "", 5000)[..], &[b'n'; 6000]].concat();
    assert_eq!(
        message(&bytes, 0),
        "tar: header of the next member at byte 512 would take 5000 bytes, the limit is 2048"
    );
}

#[test]
fn keys_are_those_of_webdataset() {
    let key = |name: &str| {
        let name = name.as_bytes().to_vec();
        let member = Member { offset: 0, name, data_offset: 0, size: 0, regular: true };
        key_of(&member).map(|key| String::from_utf8(key.to_vec()).unwrap())
    };
    assert_eq!(key("a.b.c").as_deref(), Some("a"));
    assert_eq!(key("x.y/a.b").as_deref(), Some("x.y/a"));
    assert_eq!(key("./a.b").as_deref(), Some("./a"));
    for name in ["a", "x.y/a", ".hidden", "x/.hidden", "__meta__", "__meta__/a.b", ""] {
        assert_eq!(key(name), None, "{name}");
    }
    assert_eq!(key("__meta.b").as_deref(), Some("__meta"));
}

#[test]
fn a_shard_too_large_to_describe_is_refused() {
    let file = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
    assert_eq!(WebDataset.size(&file), FileSize::Exact(u64::MAX));
    let error = WebDataset.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { .. }));
}

#[test]
fn compression_is_refused() {
    let options = crate::Options { compression: crate::Compression::Gzip, ..Default::default() };
    assert!(FACTS.build(&options).is_err());
}
