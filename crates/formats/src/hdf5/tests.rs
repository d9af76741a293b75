//! Round trips, files of h5py, and every way in which small files can be damaged.

use super::*;
use crate::DecodeError;
use crate::{Collect, Compression, Element, HEAD_BYTES, PIECE_BYTES, StreamError, test_support};

/// Every dataset of the file, put together sample by sample.
fn values(mut bytes: &[u8], count: u64, piece: usize) -> Result<Vec<Vec<u8>>, DecodeError> {
    let mut scratch = Scratch::new(piece);
    let mut file = File::open(&mut bytes, count, &mut scratch)?;
    let mut values = vec![Vec::new(); file.datasets.len()];
    let samples = file.datasets.iter().map(Dataset::samples).min().unwrap_or(0);
    for index in 0..samples {
        let mut sample = Collect::new(1 << 24);
        file.read_into(&mut bytes, index, &mut scratch, &mut sample)?;
        let parts = values.iter_mut().zip(sample.take());
        parts.for_each(|(values, part)| values.extend(part.bytes));
    }
    Ok(values)
}

const EARLIEST: &[u8] = include_bytes!("../../golden/hdf5-earliest.h5");
const CONTIGUOUS: &[u8] = include_bytes!("../../golden/hdf5-contiguous.h5");
const DENSE: &[u8] = include_bytes!("../../golden/hdf5-dense.h5");
const SINGLE: &[u8] = include_bytes!("../../golden/hdf5-single.h5");
const PAGED: &[u8] = include_bytes!("../../golden/hdf5-paged.h5");
const EXTENSIBLE: &[u8] = include_bytes!("../../golden/hdf5-extensible.h5");
const TWO_UNLIMITED: &[u8] = include_bytes!("../../golden/hdf5-two-unlimited.h5");

/// The golden files, how many sample datasets each has, and what opening them tells.
fn golden() -> [(&'static [u8], u64, u64, Element); 7] {
    [
        (EARLIEST, 2, 3, Element::Int16),
        (CONTIGUOUS, 1, 3, Element::Float64),
        (DENSE, 9, 2, Element::UInt32),
        (SINGLE, 1, 2, Element::UInt16),
        (PAGED, 1, 3, Element::Int8),
        (EXTENSIBLE, 1, 60, Element::Float32),
        (TWO_UNLIMITED, 1, 9, Element::UInt16),
    ]
}

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn with(datasets: u64, compression: Compression, chunk: &[u64], limits: &[u64]) -> Options {
    let (chunk_dims, max_shape) = (chunk.to_vec(), limits.to_vec());
    let explicit_dims = true;
    Options { datasets, compression, chunk_dims, max_shape, explicit_dims, ..Options::default() }
}

fn contiguous() -> Options {
    with(1, Compression::None, &[], &[])
}

fn encoded(options: &Options, file: &FileSpec) -> Vec<u8> {
    test_support::encoded(&*build(options).unwrap(), file)
}

/// Writes and reads back; size, values and what reading reports must be right.
fn check(options: &Options, file: &FileSpec) {
    let format = build(options).unwrap();
    let bytes = test_support::encoded(&*format, file);
    match format.size(file) {
        FileSize::Exact(size) => assert_eq!(size, bytes.len() as u64, "{options:?} {file:?}"),
        FileSize::About(_) => assert_ne!(options.compression, Compression::None),
    }
    let mut content = vec![0; file.payload_bytes().unwrap() as usize];
    Content::new(1, 2).fill(file.element, 0, &mut content);
    let found = values(&bytes, options.datasets, 4096).unwrap();
    assert!(found.concat() == content, "{options:?} {file:?}");
    if file.samples > 0 {
        let read = test_support::read(&*format, &bytes, file.samples - 1, 1000).unwrap();
        assert_eq!(read.bytes, file.sample_bytes().unwrap());
        assert_eq!((read.samples, read.element), (file.samples, Some(file.element)));
    }
}

#[test]
fn what_is_written_is_found_again() {
    use Compression::{Gzip, Lzf, None};
    for element in Element::ALL {
        for compression in [None, Gzip, Lzf] {
            check(&with(1, compression, &[], &[]), &spec(&[20, 30], 3, element));
            check(&with(3, compression, &[], &[]), &spec(&[6, 5], 2, element));
            check(&with(1, compression, &[2, 3, 4], &[]), &spec(&[7, 9], 3, element));
            check(&with(2, compression, &[2, 1, 2, 3], &[4, 5, 9]), &spec(&[6, 4, 5], 3, element));
        }
    }
}

#[test]
fn odd_shapes_are_files_too() {
    use Compression::{Gzip, Lzf, None};
    for compression in [None, Gzip, Lzf] {
        for (dims, samples) in [(&[][..], 5), (&[4, 0], 2), (&[3, 3], 0), (&[1], 1), (&[0], 0)] {
            check(&with(1, compression, &[], &[]), &spec(dims, samples, Element::Int32));
        }
        check(&with(1, compression, &[1, 1], &[]), &spec(&[700], 3, Element::UInt8));
        check(&with(1, compression, &[3, 700], &[]), &spec(&[700], 3, Element::UInt8));
        check(&with(40, compression, &[], &[]), &spec(&[40, 6], 2, Element::UInt8));
        check(&with(40, compression, &[1, 4], &[]), &spec(&[40, 6], 2, Element::UInt8));
    }
    check(&contiguous(), &spec(&[1000, 1000], 1, Element::UInt8));
}

#[test]
fn unsplit_records_keep_an_axis_of_one() {
    let options = Options { datasets: 6, ..Options::default() };
    let bytes = encoded(&options, &spec(&[6, 5], 2, Element::UInt8));
    let mut scratch = Scratch::new(4096);
    let file = File::open(&mut &bytes[..], 6, &mut scratch).unwrap();
    assert_eq!(file.datasets[5].dims(), (&[2, 1, 5][..], None));
}

/// Worked out by hand from the format's specification.
#[test]
fn metadata_is_byte_for_byte_what_the_specification_says() {
    let bytes = encoded(&contiguous(), &spec(&[2, 3], 1, Element::UInt8));
    assert_eq!(bytes.len(), 2048 + 6 + 8);
    assert_eq!(bytes[..12], *b"\x89HDF\r\n\x1a\n\x03\x08\x08\x00");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!([word(12), word(20), word(28), word(36)], [0, u64::MAX, 2062, 48]);

    let mut group = b"OHDR\x02\x02".to_vec();
    group.extend(u32::to_le_bytes(22 + 6 + 24 + 21));
    group.extend(b"\x02\x12\x00\x00\x00\x00");
    group.extend([0xFF; 16]);
    group.extend(b"\x0a\x02\x00\x00\x00\x00");
    group.extend(b"\x06\x14\x00\x00\x01\x00\x09records_0");
    group.extend(u64::to_le_bytes(48 + 87));
    group.extend(b"\x06\x11\x00\x00\x01\x00\x06labels");
    group.extend(u64::to_le_bytes(48 + 87 + 114));
    assert_eq!(bytes[48..48 + 83], group);

    let mut dataset = b"OHDR\x02\x02".to_vec();
    dataset.extend(u32::to_le_bytes(56 + 16 + 6 + 22));
    dataset.extend(b"\x01\x34\x00\x00\x02\x03\x01\x01");
    [1_u64, 2, 3, 1, 2, 3].iter().for_each(|dim| dataset.extend(dim.to_le_bytes()));
    dataset.extend(b"\x03\x0c\x00\x00\x10\x00\x00\x00\x01\x00\x00\x00\x00\x00\x08\x00");
    dataset.extend(b"\x05\x02\x00\x00\x03\x0a");
    dataset.extend(b"\x08\x12\x00\x00\x03\x01");
    dataset.extend(u64::to_le_bytes(2048));
    dataset.extend(u64::to_le_bytes(6));
    assert_eq!(bytes[135..135 + 110], dataset);
    assert_eq!(bytes[245..249], checksum::lookup3(&dataset).to_le_bytes());
}

#[test]
fn only_the_head_is_changed_after_it_was_written() {
    struct Strict(Vec<u8>);
    impl ByteSink for Strict {
        fn space(&mut self, want: usize) -> Result<&mut [u8], StreamError> {
            self.0.space(want.min(100))
        }
        fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StreamError> {
            assert!(offset + bytes.len() as u64 <= HEAD_BYTES as u64);
            self.0.patch(offset, bytes)
        }
    }
    for datasets in [1, 10, 20, 40] {
        let options = with(datasets, Compression::Gzip, &[], &[]);
        let file = spec(&[40, 4, 5], 2, Element::UInt16);
        let file = FileSpec { dims: vec![40 / datasets * datasets, 4, 5], ..file };
        let mut strict = Strict(Vec::new());
        build(&options).unwrap().encode(&file, &Content::new(1, 2), &mut strict).unwrap();
        assert_eq!(strict.0, encoded(&options, &file));
    }
}

#[test]
fn files_of_h5py_are_read() {
    for (bytes, datasets, samples, element) in golden() {
        for piece in [100, 1000, PIECE_BYTES] {
            let found = values(bytes, datasets, piece).unwrap().concat();
            // The first of them is big-endian in the file and turned around for sinks.
            let turn = usize::from(bytes == EARLIEST);
            assert!(found.iter().enumerate().all(|(i, byte)| *byte == ((i ^ turn) % 251) as u8));
            let format = build(&with(datasets, Compression::None, &[], &[])).unwrap();
            let read = test_support::read(&*format, bytes, samples - 1, piece).unwrap();
            assert_eq!(read.bytes * samples, found.len() as u64);
            assert_eq!((read.samples, read.element), (samples, Some(element)));
        }
    }
}

fn message(bytes: &[u8], datasets: u64) -> String {
    values(bytes, datasets, 4096).unwrap_err().to_string()
}

#[test]
fn files_that_cannot_be_read_say_why() {
    assert_eq!(
        message(b"PK\x03\x04 and more", 1),
        "not an HDF5 file: expected the HDF5 signature at byte 0, \
         found [50, 4b, 03, 04, 20, 61, 6e, 64]"
    );
    assert!(message(b"", 1).ends_with("found []"));
    assert_eq!(
        message(CONTIGUOUS, 2),
        "hdf5: expected a group with the sample datasets at byte 96, found no dataset records_1"
    );
    assert_eq!(message(&CONTIGUOUS[..5000], 1), "truncated: needs 7008 bytes, file has 5000");
    let mut bytes = encoded(&contiguous(), &spec(&[2, 3], 1, Element::UInt8));
    bytes[160] ^= 1;
    let found = checksum::lookup3(&bytes[135..245]);
    let expected = u32::from_le_bytes(bytes[245..249].try_into().unwrap());
    assert_eq!(
        message(&bytes, 1),
        format!(
            "hdf5: object header at byte 135 has checksum {found:08x}, expected {expected:08x}"
        )
    );
    let error =
        test_support::read(&*build(&contiguous()).unwrap(), CONTIGUOUS, 3, 4096).unwrap_err();
    assert!(matches!(error, DecodeError::SampleIndex { index: 3, samples: 3, .. }));
}

#[test]
fn a_sample_is_its_bytes_or_its_chunks() {
    let ranges = |options: &Options, file: &FileSpec, index| {
        let format = build(options).unwrap();
        let found =
            test_support::ranges(&*format, &test_support::encoded(&*format, file), index).unwrap();
        found.iter().map(|found| (found.offset, found.len.unwrap())).collect::<Vec<_>>()
    };
    let file = spec(&[4, 5], 3, Element::UInt16);
    assert_eq!(ranges(&contiguous(), &file, 2), [(2048 + 80, 40)]);
    let two = with(2, Compression::None, &[], &[]);
    assert_eq!(ranges(&two, &file, 1), [(2048 + 20, 20), (2048 + 60 + 20, 20)]);
    let chunks = with(1, Compression::None, &[2, 2, 5], &[]);
    assert_eq!(ranges(&chunks, &file, 0), [(2048, 40), (2048 + 40, 40)]);
    assert_eq!(ranges(&chunks, &file, 2), [(2048 + 80, 40), (2048 + 120, 40)]);
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    let own = [contiguous(), with(1, Compression::Gzip, &[1, 3, 2], &[])];
    let own = own.map(|options| encoded(&options, &spec(&[5, 5], 2, Element::Int16)));
    for bytes in own.iter().map(|bytes| &bytes[..]).chain(golden().map(|golden| golden.0)) {
        for len in (0..bytes.len()).rev().step_by(if bytes.len() > 5000 { 7 } else { 1 }) {
            values(&bytes[..len], 1, 4096).expect_err("a file without its end");
        }
    }
}

#[test]
fn a_changed_bit_is_an_error_or_changes_nothing_of_the_samples() {
    let options = with(1, Compression::Gzip, &[1, 3, 2], &[]);
    let bytes = encoded(&options, &spec(&[5, 5], 2, Element::Int16));
    let whole = values(&bytes, 1, 4096).unwrap();
    let mut errors = 0;
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match values(&damaged, 1, 4096) {
            Ok(found) => assert_eq!(found, whole, "bit {bit}"),
            Err(_) => errors += 1,
        }
    }
    // Metadata, chunks and index; between them are unused bytes, after them the labels.
    assert!(errors > (350 + 150 + 200) * 8, "{errors}");
}

#[test]
fn damage_never_panics() {
    let mut draws = vec![0; 20 * 2000];
    Content::new(5, 5).fill(Element::UInt8, 0, &mut draws);
    let golden = golden();
    for draw in draws.chunks_exact(20) {
        let (bytes, datasets, ..) = golden[usize::from(draw[0]) % golden.len()];
        let mut bytes = bytes.to_vec();
        for change in draw[2..2 + 3 * usize::from(draw[1] % 6 + 1)].chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] = change[2];
        }
        // Whatever is in the fields, the answer is a sample or an error.
        let format = build(&with(datasets, Compression::None, &[], &[])).unwrap();
        let _ = test_support::read(&*format, &bytes, 1, 1000);
        let _ = test_support::ranges(&*format, &bytes, 1);
    }
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

fn reads(options: &Options, file: &FileSpec, index: u64) -> (Vec<(u64, usize)>, u64) {
    let format = build(options).unwrap();
    let bytes = test_support::encoded(&*format, file);
    let mut source = Noting { bytes: &bytes, reads: Vec::new() };
    let mut scratch = Scratch::new(1 << 20);
    let mut opened = format.open(&mut source, &mut scratch).unwrap();
    let read = opened.read(&mut source, index, &mut scratch).unwrap();
    (source.reads, read.file_bytes)
}

#[test]
fn opening_costs_one_read_and_a_sample_its_own_bytes() {
    let file = spec(&[700, 1000], 2, Element::UInt8);
    let (found, file_bytes) = reads(&contiguous(), &file, 1);
    let (start, end) = (2048 + 700_000, 2048 + 1_400_000);
    let piece = PIECE_BYTES as u64;
    let mut expected = vec![(0, 4096)];
    expected.extend((0..5).map(|i| (start + i * piece, PIECE_BYTES)));
    expected.push((start + 5 * piece, (end - start - 5 * piece) as usize));
    assert_eq!(found, expected);
    assert_eq!(file_bytes, 4096 + 700_000);
}

#[test]
fn a_chunk_costs_one_read_and_the_index_one_for_many() {
    let file = spec(&[700, 1000], 2, Element::UInt8);
    let (found, file_bytes) = reads(&with(1, Compression::Gzip, &[1, 100, 1000], &[]), &file, 1);
    // Metadata, the index with all its entries, and seven chunks.
    assert_eq!(found[0], (0, 4096));
    assert_eq!(found.len(), 1 + 1 + 7, "{found:?}");
    assert!(found[2..].iter().all(|(_, len)| (100_000..101_000).contains(len)));
    assert_eq!(file_bytes, found.iter().map(|(_, len)| *len as u64).sum::<u64>());
}

#[test]
fn a_chunk_that_is_only_inflated_takes_no_room() {
    // 100 MiB that are a thousandth of that in the file.
    let mut bytes = Vec::new();
    let zeros = vec![0; 1 << 20];
    let mut deflate = flate2::Compress::new(flate2::Compression::new(6), true);
    while deflate.total_in() < 100 << 20 {
        bytes.reserve(1 << 16);
        deflate.compress_vec(&zeros, &mut bytes, flate2::FlushCompress::None).unwrap();
    }
    bytes.reserve(1 << 16);
    deflate.compress_vec(&[], &mut bytes, flate2::FlushCompress::Finish).unwrap();
    let chunk = filters::Packed { offset: 0, len: bytes.len(), mask: 0, chunk_bytes: 100 << 20 };
    let mut spare = Vec::new();
    let mut total = 0;
    Unpacker::default()
        .unpack(&[filters::Filter::Deflate], &chunk, [&mut bytes, &mut spare], &mut |at, piece| {
            assert_eq!(at, total);
            total += piece.len() as u64;
            Ok(())
        })
        .unwrap();
    assert_eq!(total, 100 << 20);
    assert!(spare.len() < 1 << 20);
}
