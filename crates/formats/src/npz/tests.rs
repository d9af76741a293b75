//! Round trips, files of NumPy, and every way in which a small archive can be damaged.

use super::*;
use crate::{PIECE_BYTES, StreamError, trial};

const NEW_PYTHON: &[u8] = include_bytes!("../../golden/new-python.npz");

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn encoded(file: &FileSpec) -> Vec<u8> {
    trial::encoded(&Npz, file)
}

/// Header and bytes of `x`, read through a buffer of that size.
fn read(mut bytes: &[u8], scratch_len: usize) -> Result<(Header, Vec<u8>), DecodeError> {
    let mut scratch = vec![0; scratch_len];
    let mut window = Window::new(&mut bytes, &mut scratch)?;
    let mut data = Vec::new();
    let header = read_samples(&mut window, 0, |piece| data.extend(piece))?;
    Ok((header, data))
}

fn message(bytes: &[u8]) -> String {
    read(bytes, 4096).unwrap_err().to_string()
}

/// Notes the offset and length of every read.
struct Noting<'a> {
    bytes: &'a [u8],
    reads: Vec<(u64, usize)>,
}

impl Source for Noting<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        self.reads.push((offset, buf.len()));
        self.bytes.read_exact_at(offset, buf)
    }
}

fn read_noting(source: &mut Noting<'_>, piece_bytes: usize) -> SampleRead {
    Npz.read(source, 0, &mut Scratch::new(piece_bytes)).unwrap()
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 1000)] {
            let file = spec(dims, samples, element);
            let bytes = encoded(&file);
            assert_eq!(Npz.size(&file), FileSize::Exact(bytes.len() as u64));
            for scratch_len in [300, 1024, 4096, 1 << 20] {
                let (header, data) = read(&bytes, scratch_len).unwrap();
                assert_eq!((header.element, header.samples), (element, samples));
                let mut content = vec![0; header.data_bytes as usize];
                Content::new(1, 2).fill(element, 0, &mut content);
                assert_eq!(data[header.len as usize..], content);
            }
            let found = trial::read(&Npz, &bytes, samples - 1, 4096).unwrap();
            assert_eq!(found.bytes, dims.iter().product::<u64>() * element.size_bytes());
            assert_eq!((found.samples, found.element), (samples, Some(element)));
        }
    }
}

/// The frame is compared byte for byte; only the samples and their checksum are ours.
#[test]
fn the_frame_is_the_one_numpy_writes() {
    let ours = encoded(&spec(&[2, 3], 1, Element::UInt8));
    let mut golden = NEW_PYTHON.to_vec();
    let crc = crc32fast::hash(&ours[55..189]).to_le_bytes();
    golden[14..18].copy_from_slice(&crc);
    golden[396..400].copy_from_slice(&crc);
    golden[183..189].copy_from_slice(&ours[183..189]);
    assert_eq!(ours, golden);
}

#[test]
fn files_of_old_and_new_pythons_are_read() {
    for bytes in [
        NEW_PYTHON,
        include_bytes!("../../golden/old-python.npz"),
        include_bytes!("../../golden/labels-first.npz"),
        include_bytes!("../../golden/comment.npz"),
    ] {
        for scratch_len in [2464, 4096, 1 << 20] {
            let (header, data) = read(bytes, scratch_len).unwrap();
            assert_eq!((header.element, header.data_bytes), (Element::UInt8, 6));
            assert_eq!(data[128..], [0, 1, 2, 3, 4, 5]);
        }
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    assert_eq!(
        message(include_bytes!("../../golden/deflated.npz")),
        "member x.npy at byte 260 is compressed with deflate (method 8), expected stored"
    );
    assert_eq!(
        message(include_bytes!("../../golden/no-samples.npz")),
        "no member x.npy in the zip directory at byte 191"
    );
    assert_eq!(
        message(include_bytes!("../../golden/float16.npy")),
        "not an npz: begins with [93, 4e, 55, 4d]"
    );
    assert_eq!(message(b""), "not an npz: begins with []");
    assert_eq!(
        message(&NEW_PYTHON[..500]),
        "truncated: no zip directory from byte 0 to the end at 500"
    );
    let long_comment = include_bytes!("../../golden/comment.npz");
    assert_eq!(
        read(long_comment, 1800).unwrap_err().to_string(),
        "truncated: no zip directory from byte 664 to the end at 2464"
    );
    let mut damaged = NEW_PYTHON.to_vec();
    damaged[185] ^= 1;
    let found = crc32fast::hash(&damaged[55..189]);
    assert_eq!(
        message(&damaged),
        format!("member x.npy at byte 55 has CRC {found:08x}, expected dd894754")
    );
}

#[test]
fn a_sample_the_file_does_not_have_is_refused() {
    let bytes = encoded(&spec(&[5], 2, Element::UInt8));
    let error = trial::read(&Npz, &bytes, 2, 4096).unwrap_err();
    assert!(matches!(error, DecodeError::SampleIndex { offset: 183, index: 2, samples: 2 }));
}

#[test]
fn a_sample_takes_the_whole_file() {
    let bytes = encoded(&spec(&[5], 2, Element::UInt8));
    assert_eq!(trial::stretches(&Npz, &bytes, 1).unwrap(), [crate::Stretch::WHOLE]);
}

#[test]
fn an_array_larger_than_its_member_is_refused() {
    let mut bytes = NEW_PYTHON.to_vec();
    let shape = bytes.windows(9).position(|text| text == b"(2, 3, 1)").unwrap();
    bytes[shape + 1] = b'9';
    let crc = crc32fast::hash(&bytes[55..189]).to_le_bytes();
    bytes[396..400].copy_from_slice(&crc);
    assert_eq!(message(&bytes), "member x.npy at byte 55 has 134 bytes, its array needs 155");
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    for scratch_len in [300, 4096] {
        for len in 0..NEW_PYTHON.len() {
            read(&NEW_PYTHON[..len], scratch_len).expect_err("an archive without its end");
        }
    }
}

#[test]
fn a_changed_bit_is_an_error_or_changes_nothing_of_the_samples() {
    for golden in [NEW_PYTHON, include_bytes!("../../golden/old-python.npz")] {
        let (_, whole) = read(golden, 4096).unwrap();
        let mut errors = 0;
        for bit in 0..golden.len() * 8 {
            let mut damaged = golden.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read(&damaged, 4096) {
                Ok((_, data)) => assert_eq!(data, whole, "bit {bit}"),
                Err(_) => errors += 1,
            }
            if (55 * 8..189 * 8).contains(&bit) {
                read(&damaged, 4096).expect_err("a changed member");
            }
        }
        assert!(errors > 189 * 8, "{errors}");
    }
}

#[test]
fn arbitrary_damage_never_panics() {
    let golden = [NEW_PYTHON, include_bytes!("../../golden/comment.npz")];
    let mut draws = vec![0; 20 * 3000];
    Content::new(5, 5).fill(Element::UInt8, 0, &mut draws);
    for draw in draws.chunks_exact(20) {
        let mut bytes = golden[usize::from(draw[0] & 1)].to_vec();
        for change in draw[2..2 + 3 * usize::from(draw[1] % 6 + 1)].chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] = change[2];
        }
        // Whatever stands in the fields, the answer is a sample or an error.
        let _ = read(&bytes, 2048);
        let _ = trial::read(&crate::npy::Npy, &bytes[55..], 0, 300);
    }
}

#[test]
fn small_files_cost_one_read_and_large_ones_aligned_pieces() {
    let mut small =
        Noting { bytes: &encoded(&spec(&[338, 338], 1, Element::UInt8)), reads: vec![] };
    let found = read_noting(&mut small, PIECE_BYTES);
    assert_eq!(small.reads, [(0, small.bytes.len())]);
    assert_eq!(found.file_bytes, small.bytes.len() as u64);

    let mut large =
        Noting { bytes: &encoded(&spec(&[700, 1000], 1, Element::UInt8)), reads: vec![] };
    let found = read_noting(&mut large, 1 << 20);
    let (len, end) = (large.bytes.len() as u64, 55 + 128 + 700_000);
    let piece = PIECE_BYTES as u64;
    let mut expected = vec![(len - 1024, 1024)];
    expected.extend((0..5).map(|i| (i * piece, PIECE_BYTES)));
    expected.push((5 * piece, (end - 5 * piece) as usize));
    assert_eq!(large.reads, expected);
    assert_eq!(found.file_bytes, 1024 + end);
}

#[test]
fn an_error_of_the_sink_or_source_is_carried() {
    struct Broken;
    impl Sink for Broken {
        fn space(&mut self, _want: usize) -> Result<&mut [u8], StreamError> {
            Err("disk full".into())
        }
        fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), StreamError> {
            Ok(())
        }
    }
    let file = spec(&[5], 2, Element::UInt8);
    let error = Npz.encode(&file, &Content::new(0, 0), &mut Broken).unwrap_err();
    assert!(
        matches!(&error, EncodeError::Sink { offset: 0, source } if source.to_string() == "disk full")
    );
}
