//! Round trips, what is read of a small and of a large index, and entries that point nowhere.

use super::*;
use crate::EncodeError;
use crate::test_support::{self, InMemory};
use crate::{Element, StreamError};

const FORMAT: Indexed = Indexed { facts: &FACTS };

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn read(source: &mut InMemory, index: u64) -> Result<SampleRead, DecodeError> {
    let mut scratch = Scratch::new(1000);
    FORMAT.open(source, &mut scratch)?.read(source, index, &mut scratch)
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 5), (&[0], 2)]
        {
            let file = spec(dims, samples, element);
            let mut source = InMemory::encoded(&FORMAT, &file);
            assert_eq!(FORMAT.size(&file), FileSize::Exact(source.data.len() as u64));
            let mut content = vec![0; source.data.len()];
            Content::new(1, 2).fill(element, 0, &mut content);
            assert_eq!(source.data, content);
            for index in 0..samples {
                let found = read(&mut source, index).unwrap();
                let bytes = dims.iter().product::<u64>() * element.size_bytes();
                let file_bytes = bytes + 16 * samples;
                assert_eq!(found, SampleRead { bytes, file_bytes, samples, element: None });
            }
        }
    }
}

#[test]
fn both_names_mean_the_same_files() {
    let file = spec(&[3, 3], 4, Element::Int16);
    let mmap = MMAP_FACTS.build(&crate::Options::default()).unwrap();
    let (one, other) = (InMemory::encoded(&FORMAT, &file), InMemory::encoded(mmap.as_ref(), &file));
    assert_eq!((one.data, one.companions), (other.data, other.companions));
    assert_eq!(
        (mmap.facts().name, mmap.extension()),
        ("mmap_indexed_binary", "mmap_indexed_binary")
    );
}

#[test]
fn companions_hold_little_endian_offsets_and_sizes() {
    let made = InMemory::encoded(&FORMAT, &spec(&[50, 3], 3, Element::Int16));
    let entries = |values: [u64; 3]| values.map(u64::to_le_bytes).concat();
    let expected = [(".off.idx", entries([0, 300, 600])), (".sz.idx", entries([300, 300, 300]))];
    assert_eq!(made.companions, expected);
}

#[test]
fn entries_cut_by_the_sink_are_whole_again() {
    /// Gives three bytes at a time.
    struct Narrow(Vec<u8>);
    impl ByteSink for Narrow {
        fn space(&mut self, want: usize) -> Result<&mut [u8], StreamError> {
            self.0.space(want.min(3))
        }
        fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StreamError> {
            self.0.patch(offset, bytes)
        }
    }
    let file = spec(&[100], 9, Element::UInt64);
    for which in FORMAT.companions() {
        let (mut narrow, mut wide) = (Narrow(Vec::new()), Vec::new());
        FORMAT.encode_companion(which, &file, &mut narrow).unwrap();
        FORMAT.encode_companion(which, &file, &mut wide).unwrap();
        assert_eq!(narrow.0, wide);
    }
}

#[test]
fn a_small_index_is_read_once_and_a_sample_is_read_exactly() {
    let mut source = InMemory::encoded(&FORMAT, &spec(&[700], 5, Element::UInt8));
    let mut scratch = Scratch::new(1000);
    let mut opened = FORMAT.open(&mut source, &mut scratch).unwrap();
    for index in [3, 0, 4] {
        opened.read(&mut source, index, &mut scratch).unwrap();
    }
    assert_eq!(source.companion_reads, [(".off.idx", 0, 40), (".sz.idx", 0, 40)]);
    assert_eq!(source.reads, [(2100, 700), (0, 700), (2800, 700)]);
    let mut ranges = Vec::new();
    opened.locate(&mut source, 2, &mut scratch, &mut ranges).unwrap();
    assert_eq!(ranges, [ByteRange { offset: 1400, len: Some(700) }]);
}

#[test]
fn a_large_index_stays_in_its_files() {
    let samples = KEPT_BYTES_MAX / 16 + 1;
    let mut source = InMemory::encoded(&FORMAT, &spec(&[2], samples, Element::UInt8));
    let mut scratch = Scratch::new(1000);
    let mut opened = FORMAT.open(&mut source, &mut scratch).unwrap();
    for index in [5000, 5001, samples - 1] {
        let found = opened.read(&mut source, index, &mut scratch).unwrap();
        assert_eq!((found.bytes, found.samples), (2, samples));
    }
    assert_eq!(source.reads, [(10000, 2), (10002, 2), (2 * samples - 2, 2)]);
    let block = |suffix, index: u64| {
        let begin = index * 8 / BLOCK_BYTES * BLOCK_BYTES;
        (suffix, begin, (samples * 8 - begin).min(BLOCK_BYTES) as usize)
    };
    let expected = [5000, samples - 1].map(|i| [block(".off.idx", i), block(".sz.idx", i)]);
    assert_eq!(source.companion_reads, expected.concat());
}

#[test]
fn an_index_that_is_wrong_says_how() {
    let made = || InMemory::encoded(&FORMAT, &spec(&[10], 3, Element::UInt8));
    let message = |source: &mut InMemory, index| read(source, index).unwrap_err().to_string();

    assert!(matches!(
        read(&mut made(), 3),
        Err(DecodeError::SampleIndex { offset: 24, index: 3, samples: 3 })
    ));
    let mut source = made();
    source.companion_mut(".sz.idx").truncate(16);
    assert_eq!(
        message(&mut source, 0),
        "indexed_binary: expected .off.idx and .sz.idx of one length at byte 16, \
         found 24 and 16 bytes"
    );
    let mut source = made();
    source.companion_mut(".sz.idx").truncate(20);
    source.companion_mut(".off.idx").truncate(20);
    assert_eq!(
        message(&mut source, 0),
        "indexed_binary: expected whole entries of 8 bytes in .off.idx and .sz.idx at byte 20, \
         found 20 bytes"
    );
    for (suffix, value, size, offset) in
        [(".sz.idx", 21, 21, 10), (".off.idx", u64::MAX, 10, u64::MAX)]
    {
        let mut source = made();
        source.companion_mut(suffix)[8..16].copy_from_slice(&u64::to_le_bytes(value));
        assert_eq!(
            message(&mut source, 1),
            format!(
                "indexed_binary: expected a sample inside the data file at byte 8, found entry 1 \
                 of .off.idx and .sz.idx: {size} bytes at {offset}, file has 30"
            )
        );
        read(&mut source, 2).unwrap();
    }
    let mut source = InMemory::new(vec![0; 10]);
    assert_eq!(message(&mut source, 0), "cannot read the companion .off.idx at byte 0");
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    let whole = InMemory::encoded(&FORMAT, &spec(&[5, 5], 2, Element::Int16));
    for len in 0..whole.data.len() {
        let mut source = InMemory::new(whole.data[..len].to_vec());
        source.companions = whole.companions.clone();
        read(&mut source, 1).expect_err("a file without its end");
        assert_eq!(read(&mut source, 0).is_ok(), len >= 50);
    }
    for suffix in [".off.idx", ".sz.idx"] {
        for len in 0..16 {
            let mut source = InMemory::new(whole.data.clone());
            source.companions = whole.companions.clone();
            source.companion_mut(suffix).truncate(len);
            read(&mut source, 0).expect_err("an index without its end");
        }
    }
}

#[test]
fn every_changed_bit_of_the_index_is_an_error_or_another_range_of_the_file() {
    let whole = InMemory::encoded(&FORMAT, &spec(&[5, 5], 2, Element::Int16));
    for (suffix, bytes) in &whole.companions {
        for bit in 0..bytes.len() * 8 {
            let mut source = InMemory::new(whole.data.clone());
            source.companions = whole.companions.clone();
            source.companion_mut(suffix)[bit / 8] ^= 1 << (bit % 8);
            for index in 0..2 {
                if let Ok(found) = read(&mut source, index) {
                    assert!(found.bytes <= 100);
                }
            }
        }
    }
}

#[test]
fn a_file_too_large_to_describe_is_refused() {
    let file = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
    assert_eq!(FORMAT.size(&file), FileSize::Exact(u64::MAX));
    let error = FORMAT.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { .. }));
    let error = FORMAT.encode_companion(&OFFSETS, &file, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { .. }));
    assert!(test_support::read(&FORMAT, &[], 0, 100).is_err());
}
