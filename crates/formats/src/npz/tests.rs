//! Round trips, files of NumPy, and every way in which a small archive can be damaged.

use super::*;
use crate::EncodeError;
use crate::{PIECE_BYTES, StreamError, test_support};

const NEW_PYTHON: &[u8] = include_bytes!("../../golden/new-python.npz");

const STORED: Npz = Npz { level: None };

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn encoded(file: &FileSpec) -> Vec<u8> {
    test_support::encoded(&STORED, file)
}

/// Header and bytes of `x`, read through a buffer of that size.
fn read(mut bytes: &[u8], scratch_len: usize) -> Result<(Header, Vec<u8>), DecodeError> {
    let mut scratch = vec![0; scratch_len];
    let mut window = Window::new(&mut bytes, &mut scratch)?;
    let mut data = Vec::new();
    let header = read_samples(&mut window, &mut Vec::new(), 0, |_, piece| {
        data.extend(piece);
        Ok(())
    })?;
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

impl ByteSource for Noting<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        self.reads.push((offset, buf.len()));
        self.bytes.read_exact_at(offset, buf)
    }
}

fn read_noting(source: &mut Noting<'_>, piece_bytes: usize) -> SampleRead {
    OpenedNpz.read(source, 0, &mut Scratch::new(piece_bytes)).unwrap()
}

#[test]
fn what_is_written_is_found_again() {
    for element in Element::ALL {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 1000)] {
            let file = spec(dims, samples, element);
            let bytes = encoded(&file);
            assert_eq!(STORED.size(&file), FileSize::Exact(bytes.len() as u64));
            for scratch_len in [300, 1024, 4096, 1 << 20] {
                let (header, data) = read(&bytes, scratch_len).unwrap();
                assert_eq!((header.element, header.samples), (element, samples));
                let mut content = vec![0; header.data_bytes as usize];
                Content::new(1, 2).fill(element, 0, &mut content);
                assert_eq!(data[header.len as usize..], content);
            }
            let found = test_support::read(&STORED, &bytes, samples - 1, 4096).unwrap();
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
    let mut zstd = include_bytes!("../../golden/deflated.npz").to_vec();
    zstd[270] = 93;
    assert_eq!(
        message(&zstd),
        "member x.npy at byte 260 is compressed with zstd (method 93), expected stored or deflated"
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
    let error = test_support::read(&STORED, &bytes, 2, 4096).unwrap_err();
    assert!(matches!(error, DecodeError::SampleIndex { offset: 183, index: 2, samples: 2 }));
}

#[test]
fn a_sample_takes_the_whole_file() {
    let bytes = encoded(&spec(&[5], 2, Element::UInt8));
    assert_eq!(test_support::ranges(&STORED, &bytes, 1).unwrap(), [crate::ByteRange::WHOLE]);
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
        // Whatever is in the fields, the answer is a sample or an error.
        let _ = read(&bytes, 2048);
        let _ = test_support::read(&crate::npy::Npy, &bytes[55..], 0, 300);
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
    impl ByteSink for Broken {
        fn space(&mut self, _want: usize) -> Result<&mut [u8], StreamError> {
            Err("disk full".into())
        }
        fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), StreamError> {
            Ok(())
        }
    }
    let file = spec(&[5], 2, Element::UInt8);
    let error = STORED.encode(&file, &Content::new(0, 0), &mut Broken).unwrap_err();
    assert!(
        matches!(&error, EncodeError::Sink { offset: 0, source } if source.to_string() == "disk full")
    );
}

mod packed {
    //! Deflated members.

    use super::*;
    use crate::test_support::InMemory;

    const PACKED: Npz = Npz { level: Some(4) };
    const DEFLATED: &[u8] = include_bytes!("../../golden/deflated.npz");

    #[test]
    fn what_is_written_is_found_again() {
        for element in Element::ALL {
            for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 1000)] {
                let file = spec(dims, samples, element);
                for level in [0, 1, 6] {
                    let bytes = test_support::encoded(&Npz { level: Some(level) }, &file);
                    let (header, data) = read(&bytes, 1024).unwrap();
                    assert_eq!((header.element, header.samples), (element, samples));
                    let mut content = vec![0; header.data_bytes as usize];
                    Content::new(1, 2).fill(element, 0, &mut content);
                    assert_eq!(data[header.len as usize..], content);
                }
            }
        }
    }

    #[test]
    fn sizes_are_about_right() {
        for element in Element::ALL {
            let file = spec(&[60, 60], 2, element);
            for level in [0, 1, 2, 4] {
                let format = Npz { level: Some(level) };
                let size = test_support::encoded(&format, &file).len() as f64;
                let ratio = format.size(&file).bytes() as f64 / size;
                assert!((0.85..1.15).contains(&ratio), "{element:?} {level} {ratio}");
            }
        }
        let endless = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
        assert_eq!(PACKED.size(&endless).bytes(), u64::MAX);
    }

    /// All but the compressed bytes themselves, which differ between implementations of deflate.
    #[test]
    fn the_frame_is_the_one_numpy_writes() {
        let ours = test_support::encoded(&PACKED, &spec(&[2, 3], 1, Element::UInt8));
        let crc_and_sizes = [14..18, 39..55];
        let (x_len, golden_x_len) = (packed_len(&ours, 39), packed_len(DEFLATED, 39));
        for at in (0..55).filter(|at| !crc_and_sizes.iter().any(|range| range.contains(at))) {
            assert_eq!(ours[at], DEFLATED[at], "byte {at}");
        }
        assert_eq!(ours[39..47], DEFLATED[39..47]);
        let (y, golden_y) = (&ours[55 + x_len..], &DEFLATED[55 + golden_x_len..]);
        assert_eq!(y[..47], golden_y[..47]);
        let (y_len, golden_y_len) = (packed_len(y, 39), packed_len(golden_y, 39));

        let mut directory = DEFLATED[110 + golden_x_len + golden_y_len..].to_vec();
        let ours_directory = &ours[110 + x_len + y_len..];
        directory[16..20].copy_from_slice(&ours_directory[16..20]);
        directory[20] = x_len as u8;
        directory[51 + 20] = y_len as u8;
        directory[51 + 42] = (55 + x_len) as u8;
        let at = ours.len() - ours_directory.len();
        directory[102 + 16..102 + 20].copy_from_slice(&(at as u32).to_le_bytes());
        assert_eq!(ours_directory, directory);
    }

    fn packed_len(local_header: &[u8], sizes_at: usize) -> usize {
        usize::from(local_header[sizes_at + 8])
    }

    #[test]
    fn files_of_numpy_are_read() {
        let (_, data) = read(DEFLATED, 300).unwrap();
        assert_eq!(data[128..], [0, 1, 2, 3, 4, 5]);
        let (header, data) = read(include_bytes!("../../golden/zeros.npz"), 300).unwrap();
        assert_eq!((header.data_bytes, data.len()), (1_000_000, 1_000_128));
        assert!(data[128..].iter().all(|&byte| byte == 0));
        let (header, data) = read(include_bytes!("../../golden/blocks.npz"), 300).unwrap();
        assert_eq!((header.data_bytes, data.len()), (60_000, 60_128));
        assert_eq!(data[128..].iter().copied().max(), Some(3));
    }

    #[test]
    fn labels_of_any_number_are_deflated_without_being_held() {
        let bytes = test_support::encoded(&PACKED, &spec(&[], 200_000, Element::Bool));
        // Labels are 1.6 MB of zeros.
        assert!(bytes.len() < 50_000, "{}", bytes.len());
        assert_eq!(test_support::read(&PACKED, &bytes, 199_999, 4096).unwrap().samples, 200_000);
    }

    #[test]
    fn a_truncated_file_is_an_error_at_every_length() {
        for len in 0..DEFLATED.len() {
            read(&DEFLATED[..len], 4096).expect_err("an archive without its end");
        }
    }

    #[test]
    fn a_changed_bit_is_an_error_or_changes_nothing_of_the_samples() {
        let (_, whole) = read(DEFLATED, 4096).unwrap();
        for bit in 0..DEFLATED.len() * 8 {
            let mut damaged = DEFLATED.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok((_, data)) = read(&damaged, 4096) {
                assert_eq!(data, whole, "bit {bit}");
            }
        }
    }

    #[test]
    fn members_of_another_size_than_announced_are_refused() {
        // Entry of x: CRC at 276, packed size at 280, size at 284.
        let message = |at: usize, change: i16| {
            let mut bytes = DEFLATED.to_vec();
            bytes[at] = (i16::from(bytes[at]) + change) as u8;
            super::message(&bytes)
        };
        assert_eq!(message(284, -1), "member x.npy at byte 55 has 133 bytes, its array needs 134");
        assert_eq!(
            message(284, 1),
            "npz: expected an array that fills member x.npy at byte 55, found 134 of 135 bytes"
        );
        assert_eq!(
            message(280, -1),
            "npz: expected more compressed data at byte 133, found its end"
        );
        assert_eq!(
            message(280, 1),
            "npz: expected compressed data that fills its member at byte 55, \
             found 134, the end of the member is 135"
        );
        let found = u32::from_le_bytes([0x54, 0x47, 0x89, 0xDD]);
        assert_eq!(
            message(276, 1),
            format!("member x.npy at byte 55 has CRC {found:08x}, expected dd894755")
        );
    }

    #[test]
    fn arbitrary_damage_never_panics() {
        let mut draws = vec![0; 20 * 3000];
        Content::new(5, 5).fill(Element::UInt8, 0, &mut draws);
        for draw in draws.chunks_exact(20) {
            let mut bytes = DEFLATED.to_vec();
            for change in draw[2..2 + 3 * usize::from(draw[1] % 6 + 1)].chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
                bytes[at] = change[2];
            }
            let _ = read(&bytes, 2048);
        }
    }

    #[test]
    fn a_file_is_read_in_aligned_pieces() {
        let file = spec(&[700, 500], 1, Element::UInt8);
        let mut source = InMemory::encoded(&Npz { level: Some(0) }, &file);
        let mut scratch = Scratch::new(1 << 20);
        OpenedNpz.read(&mut source, 0, &mut scratch).unwrap();
        let offsets: Vec<_> = source.reads.iter().map(|&(offset, _)| offset).collect();
        let piece = PIECE_BYTES as u64;
        let tail = source.data.len() as u64 - 1024;
        assert_eq!(offsets, [tail, 0, piece, 2 * piece]);
    }

    #[test]
    fn compression_zip_is_the_only_one() {
        let with = |compression| FACTS.build(&Options { compression, ..Options::default() });
        assert_eq!(with(Compression::Zip).unwrap().extension(), "npz");
        for refused in [Compression::Gzip, Compression::Bz2, Compression::Xz, Compression::Lzf] {
            assert!(with(refused).is_err());
        }
    }
}
