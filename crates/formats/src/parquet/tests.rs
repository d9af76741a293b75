//! Round trips, files of pyarrow, and what damage does.

use super::*;
use crate::{PIECE_BYTES, test_support};

macro_rules! golden {
    ($name:literal) => {
        &include_bytes!(concat!("../../golden/", $name, ".parquet"))[..]
    };
}

const PLAIN: Parquet = Parquet { gzip: None };
const GZIP: Parquet = Parquet { gzip: Some(4) };

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

/// Sizes of all samples, read one after the other.
fn sizes(mut bytes: &[u8], piece_bytes: usize) -> Result<Vec<u64>, DecodeError> {
    let mut scratch = Scratch::new(piece_bytes);
    let mut opened = PLAIN.open(&mut bytes, &mut scratch)?;
    let mut found = Vec::new();
    loop {
        match opened.read(&mut bytes, found.len() as u64, &mut scratch) {
            Ok(sample) => {
                found.push(sample.bytes);
                if found.len() == 10_000 {
                    return Ok(found);
                }
            }
            Err(DecodeError::SampleIndex { samples, .. }) => {
                assert_eq!(samples, found.len() as u64);
                return Ok(found);
            }
            Err(error) => return Err(error),
        }
    }
}

fn message(bytes: &[u8]) -> String {
    let error = sizes(bytes, 4096).unwrap_err();
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL {
        for (dims, samples) in
            [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 50), (&[0], 3), (&[9], 0)]
        {
            let file = spec(dims, samples, element);
            let size = dims.iter().product::<u64>() * element.size_bytes();
            for format in [PLAIN, GZIP] {
                let bytes = test_support::encoded(&format, &file);
                for piece_bytes in [100, 1000, PIECE_BYTES] {
                    let found = sizes(&bytes, piece_bytes).unwrap();
                    assert_eq!(found, vec![size; samples as usize], "{element:?} {dims:?}");
                }
                if samples > 0 {
                    let found = test_support::read(&format, &bytes, samples - 1, 1000).unwrap();
                    assert_eq!((found.samples, found.element), (samples, Some(element)));
                }
            }
            let bytes = test_support::encoded(&PLAIN, &file);
            assert_eq!(PLAIN.size(&file), FileSize::Exact(bytes.len() as u64));
        }
    }
}

#[test]
fn a_file_is_laid_out_byte_by_byte() {
    let bytes = test_support::encoded(&PLAIN, &spec(&[2, 3], 2, Element::UInt8));
    let mut content = vec![0; 12];
    Content::new(1, 2).fill(Element::UInt8, 0, &mut content);
    // Type 0; 12 bytes, folded to 24, both ways; then values 2, encoding 0, level encodings 3.
    let header = [0x15, 0, 0x15, 24, 0x15, 24, 0x2c, 0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
    assert_eq!(bytes[..4], *b"PAR1");
    assert_eq!(bytes[4..21], header);
    assert_eq!(bytes[21..33], content);
    assert_eq!(bytes[33 + 17..33 + 33], [0; 16]);
    let (rest, tail) = bytes.split_at(bytes.len() - 8);
    assert_eq!(tail[4..], *b"PAR1");
    let footer = u32::from_le_bytes(tail[..4].try_into().unwrap()) as usize;
    assert_eq!(rest.len() - footer, 33 + 33);
    let text = String::from_utf8_lossy(&rest[66..]);
    assert!(text.contains("shape\u{18}\u{6}[2, 3]"), "{text:?}");
    assert!(text.contains("dtype\u{18}\u{5}uint8"), "{text:?}");
}

#[test]
fn row_groups_and_pages_have_their_sizes() {
    let layout = |dims: &[u64], samples| {
        let layout = Layout::of(&spec(dims, samples, Element::UInt8), 0).unwrap();
        let rows: Vec<u64> = (0..layout.groups()).map(|group| layout.rows_of(group)).collect();
        (rows, layout.page_rows(Column::Samples))
    };
    assert_eq!(layout(&[1 << 20], 40), (vec![16, 16, 8], 1));
    assert_eq!(layout(&[100_000], 170), (vec![167, 3], 10));
    assert_eq!(layout(&[40 << 20], 3), (vec![1, 1, 1], 1));
    assert_eq!(layout(&[], (1 << 20) + 1), (vec![1 << 20, 1], 1 << 20));
    assert_eq!(layout(&[0], 5), (vec![5], 1 << 18));
}

#[test]
fn compressed_files_have_about_the_size_that_was_said() {
    for element in [Element::UInt8, Element::Bool, Element::Float16, Element::Float32] {
        let file = spec(&[20_000], 3, element);
        let real = test_support::encoded(&GZIP, &file).len() as f64;
        let FileSize::About(said) = GZIP.size(&file) else { panic!("not exact") };
        assert!((0.97..1.03).contains(&(said as f64 / real)), "{element:?}: {said} of {real}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let message = |dims: &[u64], samples| {
        let file = spec(dims, samples, Element::UInt8);
        PLAIN.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err().to_string()
    };
    assert_eq!(
        message(&[1 << 31], 1),
        "parquet: a sample of 2147483648 bytes does not fit a value, which has less than 2^31"
    );
    assert_eq!(
        message(&[20 << 20], 1_000_001),
        "parquet: 1000001 row groups are more than the 1000000 that readers take"
    );
    assert!(message(&[1 << 40, 1 << 40], 1).contains("larger than 2^64"));
    let file = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
    assert_eq!(PLAIN.size(&file), FileSize::Exact(u64::MAX));
    let options = Options { compression: Compression::Bz2, ..Options::default() };
    assert_eq!(
        FACTS.build(&options).err().unwrap().to_string(),
        "format parquet has no compression bz2, only: none, gzip"
    );
}

#[test]
fn files_of_pyarrow_are_read() {
    let whole = [0, 1, 200, 200, 3, 200, 17, 200];
    let nulls = [0, 0, 200, 200, 0, 200, 17, 200];
    for piece_bytes in [700, 1000, PIECE_BYTES] {
        let check = |bytes, expected: &[u64]| {
            assert_eq!(sizes(bytes, piece_bytes).unwrap(), expected);
        };
        check(golden!("default"), &nulls);
        check(golden!("required"), &whole);
        check(golden!("fixed"), &[8, 8, 8]);
        check(golden!("list"), &nulls);
        check(golden!("plain-list"), &nulls);
        check(golden!("newer"), &nulls);
        check(golden!("newer-list"), &nulls);
        check(golden!("booleans"), &[1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
        // Without a field `x`, the first column there is.
        check(golden!("image"), &whole);
    }
    let element = |bytes| test_support::read(&PLAIN, bytes, 0, 1000).unwrap().element;
    assert_eq!(element(golden!("default")), None);
    assert_eq!(element(golden!("list")), Some(Element::UInt8));
    assert_eq!(element(golden!("booleans")), Some(Element::Bool));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    assert_eq!(message(golden!("zstd")), "parquet: compression ZSTD at byte 605 is not supported");
    assert_eq!(
        message(golden!("delta")),
        "parquet: encoding DELTA_LENGTH_BYTE_ARRAY at byte 319 is not supported"
    );
    assert_eq!(message(b"PAR1"), "truncated: needs 12 bytes, file has 4");
    assert_eq!(
        message(&golden!("fixed")[..400]),
        "not a parquet file, or not all of it: expected PAR1 at the end at byte 396, \
         found [32, 36, 2e, 30]"
    );
    let mut long = golden!("fixed").to_vec();
    let at = long.len() - 8;
    long[at..at + 4].copy_from_slice(&1000u32.to_le_bytes());
    assert_eq!(
        message(&long),
        "parquet: expected the length of a footer in the file at byte 411, found 1000"
    );
    long[at + 7] = b'E';
    assert_eq!(message(&long), "parquet: encryption at byte 415 is not supported");
}

#[test]
fn a_page_with_another_checksum_is_refused() {
    let golden = golden!("required");
    let value = golden.windows(200).position(|bytes| bytes == [3; 200]).unwrap();
    let mut damaged = golden.to_vec();
    damaged[value + 50] ^= 1;
    let message = message(&damaged);
    assert!(message.starts_with("parquet: page at byte "), "{message}");
    assert!(message.contains("has checksum"), "{message}");
}

#[test]
fn a_damaged_gzip_page_is_refused() {
    let bytes = test_support::encoded(&GZIP, &spec(&[500], 4, Element::UInt8));
    let place = test_support::ranges(&GZIP, &bytes, 0).unwrap()[0];
    let end = (place.offset + place.len.unwrap()) as usize;
    for at in [place.offset as usize + 40, end - 100, end - 8, end - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let message = message(&damaged);
        assert!(message.contains("cannot be decoded"), "{at}: {message}");
    }
}

/// A file of one sample of zeros, compressed.
fn zeros(len: u64) -> Vec<u8> {
    let layout = Layout::of(&spec(&[len], 1, Element::UInt8), 2).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Level::new(1));
    gzip.write_all(&vec![0; len as usize]).unwrap();
    let page = gzip.finish().unwrap();
    let page = [page_header(1, len, page.len() as u64), page].concat();
    let chunk = Chunk { bytes: page.len() as u64, plain_bytes: 0 };
    let footer = layout.footer(&[[chunk, Chunk::default()]]);
    let footer_len = (footer.len() as u32).to_le_bytes();
    [&MAGIC[..], &page, &footer, &footer_len, MAGIC].concat()
}

#[test]
fn a_page_out_of_proportion_is_refused() {
    assert_eq!(sizes(&zeros(500_000), 1000).unwrap(), [500_000]);
    let bytes = zeros(3 << 20);
    let limit = 13 * (bytes.len() + (64 << 10));
    assert_eq!(
        message(&bytes),
        format!(
            "parquet: uncompressed page at byte 26 would take 3145728 bytes, the limit is {limit}"
        )
    );
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    let ours = test_support::encoded(&PLAIN, &spec(&[5, 5], 3, Element::Int16));
    let gzip = test_support::encoded(&GZIP, &spec(&[5, 5], 3, Element::Int16));
    for bytes in [&ours[..], &gzip, golden!("default"), golden!("list"), golden!("required")] {
        for len in 0..bytes.len() {
            sizes(&bytes[..len], 1000).expect_err("a file without its end");
        }
    }
}

#[test]
fn every_changed_bit_ends_in_sizes_or_an_error() {
    let ours = test_support::encoded(&PLAIN, &spec(&[5, 5], 3, Element::Int16));
    for bytes in [&ours[..], golden!("fixed"), golden!("newer"), golden!("newer-list")] {
        let mut errors = 0;
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            errors += u32::from(sizes(&damaged, 1000).is_err());
        }
        assert!(errors > 500, "{errors}");
    }
}

#[test]
fn a_group_is_read_once_while_rows_follow_each_other() {
    let file = spec(&[1 << 20], 20, Element::UInt8);
    let bytes = test_support::encoded(&PLAIN, &file);
    let len = bytes.len();
    assert_eq!(PLAIN.size(&file), FileSize::Exact(len as u64));
    let found = test_support::reads(&PLAIN, &bytes, &[0, 1, 5, 15, 16, 17, 16, 19]);
    let reads: Vec<usize> = found.iter().map(|(_, reads)| reads.len()).collect();
    // The footer and 16 MiB; nothing three times; the second group from 4 MiB, and once more
    // because row 16 comes before row 17.
    let pieces = |from: u64, bytes: u64| {
        let piece = PIECE_BYTES as u64;
        ((from + bytes).div_ceil(piece) - from / piece) as usize
    };
    let chunk = |index| {
        let place = test_support::ranges(&PLAIN, &bytes, index).unwrap()[0];
        pieces(place.offset, place.len.unwrap())
    };
    let (first, second) = (chunk(0), chunk(16));
    assert!((reads[0] - 1).abs_diff(first) <= 16, "{reads:?} {first}");
    assert_eq!(reads[1..4], [0, 0, 0]);
    assert!(reads[4].abs_diff(second) <= 4, "{reads:?} {second}");
    assert_eq!(reads[5], 0);
    assert_eq!(reads[6], reads[4]);
    assert_eq!(reads[7], 0);
    assert_eq!(found[0].1[0], ((len - (64 << 10)) as u64, 64 << 10));
    let whole = found[0].1[2..].iter().filter(|read| read.1 == PIECE_BYTES).count();
    assert!(whole >= 112, "{whole} whole pieces in 16 MiB of pages of 1 MiB");
    assert!(found[0].0.file_bytes >= 16 << 20 && found[0].0.file_bytes < (16 << 20) + 20_000);
}

#[test]
fn a_group_is_decoded_once_while_samples_are_taken() {
    let file = spec(&[1 << 10], 20 << 10, Element::UInt8);
    for format in [PLAIN, GZIP] {
        let mut source = test_support::InMemory::new(test_support::encoded(&format, &file));
        let (mut scratch, mut sink) = (Scratch::new(PIECE_BYTES), crate::Collect::new(1 << 10));
        let mut opened = format.open(&mut source, &mut scratch).unwrap();
        let mut take = |index| {
            let before = source.reads.len();
            opened.read_into(&mut source, index, &mut scratch, &mut sink).unwrap();
            (sink.take().remove(0).bytes, source.reads.len() > before)
        };
        let mut expected = vec![0; 1 << 10];
        let mut decoded = Vec::new();
        for index in 0..file.samples {
            let (bytes, reads) = take(index);
            Content::new(1, 2).fill(Element::UInt8, index << 10, &mut expected);
            assert!(bytes == expected, "sample {index}");
            decoded.extend(reads.then_some(index));
        }
        assert_eq!(decoded, [0, 16 << 10]);
        // Any order, once the first row has been taken.
        let again = [3, 9, 4, 3, 2, 16 << 10].map(|index| take(index).1);
        assert_eq!(again, [true, false, false, false, true, true]);
    }
}

#[test]
fn rows_that_do_not_fit_are_decoded_again_and_large_ones_refused() {
    let mut kept = KeptRows::default();
    kept.restart(0, 5, 100_000, 0);
    assert!(kept.go_to(5));
    kept.room(60_000).unwrap().unwrap().fill(1);
    assert!(kept.go_to(7));
    kept.room(3_000).unwrap().unwrap().fill(2);
    assert!(kept.go_to(8));
    assert!(kept.room(1_000).unwrap().is_some() && kept.room(50_000).unwrap().is_none());
    assert!(!kept.go_to(8) && !kept.go_to(9));
    let sizes = [4, 5, 6, 7, 8].map(|row| Some(kept.find(0, row)?.bytes.len()));
    assert_eq!(sizes, [None, Some(60_000), Some(0), Some(3_000), None]);
    assert!(kept.find(1, 5).is_none());
    kept.restart(0, 5, 10, 0);
    assert!(kept.go_to(5) && kept.room(11).is_err());
}

#[test]
fn a_small_file_costs_two_reads() {
    let bytes = test_support::encoded(&PLAIN, &spec(&[100], 20, Element::UInt8));
    let (sample, reads) = test_support::reads(&PLAIN, &bytes, &[7]).remove(0);
    let chunk = 17 + 1 + 2000;
    assert_eq!(reads[0], (0, bytes.len()));
    assert_eq!(reads.len(), 2);
    assert!(reads[1].1.abs_diff(chunk) < 4, "{reads:?}");
    assert_eq!(sample.file_bytes, reads[1].1 as u64);
}

#[test]
fn a_footer_larger_than_the_first_read_takes_a_second() {
    let layout = Layout::of(&spec(&[20 << 20], 2000, Element::UInt8), 0).unwrap();
    let chunk = Chunk { bytes: 0, plain_bytes: 0 };
    let footer = layout.footer(&vec![[chunk; 2]; 2000]);
    assert!(footer.len() > 64 << 10);
    let len = (footer.len() as u32).to_le_bytes();
    let bytes = [MAGIC, &footer[..], &len, MAGIC].concat();
    let mut buffer = Vec::new();
    let (found, at) = footer_bytes(&mut &bytes[..], bytes.len() as u64, &mut buffer).unwrap();
    assert_eq!((found, at), (&footer[..], 4));
    let parsed = Footer::parse(found, at).unwrap();
    assert_eq!((parsed.rows, parsed.groups.len()), (2000, 2000));
    assert_eq!((parsed.group_of(1999), parsed.group_of(2000)), (Some(1999), None));
}
