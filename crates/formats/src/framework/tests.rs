//! Call by call, what strace saw the real libraries do on the same files (CPython 3.11.7, NumPy 2.4.6,
//! h5py 3.14.0, Pillow 13.0.0, pandas 3.1.1, TensorFlow 2.21.0, webdataset 1.0.2, pyarrow 26.0.1).

use super::*;
use crate::{Compression, Element, Options, SampleFormat, StreamError, test_support};

/// A file that notes its calls.
struct Noting {
    bytes: Vec<u8>,
    preferred_bytes: usize,
    stats: u32,
    /// Offset, bytes asked for, bytes found.
    reads: Vec<(u64, usize, usize)>,
}

impl ByteSource for Noting {
    fn len(&mut self) -> Result<u64, StreamError> {
        self.stats += 1;
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        self.reads.push((offset, buf.len(), buf.len()));
        (&self.bytes[..]).read_exact_at(offset, buf)
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, StreamError> {
        let found = (&self.bytes[..]).read_up_to(offset, buf)?;
        self.reads.push((offset, buf.len(), found));
        Ok(found)
    }

    fn preferred_bytes(&self) -> usize {
        self.preferred_bytes
    }

    fn piece_bytes(&self) -> usize {
        1 << 20
    }
}

/// A file system that prefers so many bytes.
const EXT4: usize = 4096;
const HUGE: usize = 2 << 20;

struct Case {
    format: Box<dyn Format>,
    source: Noting,
    scratch: Scratch,
}

impl Case {
    fn new(name: &str, options: &Options, (side, samples): (u64, u64), preferred: usize) -> Case {
        let format = SampleFormat::find(name).unwrap().build(options).unwrap();
        let dims = vec![side, side];
        let file = FileSpec { dims, samples, element: Element::UInt8, index: 0 };
        let bytes = test_support::encoded(format.as_ref(), &file);
        Case::of(format, bytes, preferred)
    }

    fn of(format: Box<dyn Format>, bytes: Vec<u8>, preferred_bytes: usize) -> Case {
        let source = Noting { bytes, preferred_bytes, stats: 0, reads: Vec::new() };
        let format = as_framework(format, Libraries::default());
        Case { format, source, scratch: Scratch::new(1 << 20) }
    }

    /// Reads samples through one open file: the stats and reads that took.
    fn read(&mut self, samples: std::ops::Range<u64>) -> (u32, Vec<(u64, usize, usize)>) {
        let Case { format, source, scratch } = self;
        let mut opened = format.open(source, scratch).unwrap();
        for index in samples {
            opened.read(source, index, scratch).unwrap();
        }
        (std::mem::take(&mut source.stats), std::mem::take(&mut source.reads))
    }
}

fn calls(name: &str, side: u64, preferred: usize) -> (u32, Vec<(u64, usize, usize)>) {
    Case::new(name, &Options::default(), (side, 1), preferred).read(0..1)
}

#[test]
fn numpy_reads_a_small_archive_in_nine_calls() {
    let expected = [
        (0, 4096, 4096),
        (110_037, 23, 22),
        (110_059, 1, 0),
        (110_017, 4096, 42),
        (109_935, 4096, 124),
        (0, 4096, 4096),
        (4096, 4096, 4096),
        (8192, 98_304, 98_304),
        (106_496, 4096, 3563),
    ];
    assert_eq!(calls("npz", 331, EXT4), (2, expected.to_vec()));
}

#[test]
fn numpy_reads_an_array_of_an_archive_in_pieces_that_its_buffer_splits() {
    let (stats, reads) = calls("npz", 1673, EXT4);
    let mut expected = vec![
        (0, 4096, 4096),
        (2_799_405, 23, 22),
        (2_799_427, 1, 0),
        (2_799_385, 4096, 42),
        (2_799_303, 4096, 124),
        (0, 4096, 4096),
        (4096, 4096, 4096),
        (8192, 253_952, 253_952),
    ];
    for at in (262_144..2_621_440).step_by(262_144) {
        expected.extend([(at, 4096, 4096), (at + 4096, 258_048, 258_048)]);
    }
    let last = [(2_621_440, 4096, 4096), (2_625_536, 172_032, 172_032), (2_797_568, 4096, 1859)];
    expected.extend(last);
    assert_eq!((stats, reads), (2, expected));
}

#[test]
fn numpy_reads_twice_what_a_large_buffer_brings() {
    let expected = [
        (0, HUGE, 110_059),
        (110_037, 23, 22),
        (110_059, 1, 0),
        (110_017, HUGE, 42),
        (109_935, HUGE, 124),
        (0, HUGE, 110_059),
    ];
    assert_eq!(calls("npz", 331, HUGE), (2, expected.to_vec()));
}

#[test]
fn numpy_expands_a_member_as_zlib_hands_bytes_out() {
    let options = Options { compression: Compression::Zip, ..Options::default() };
    let (_, reads) = Case::new("npz", &options, (331, 1), EXT4).read(0..1);
    let sizes: Vec<usize> = reads.iter().map(|read| read.1).collect();
    assert_eq!(sizes, [4096, 23, 1, 4096, 4096, 4096, 4096, 98_304, 4096]);
    let (_, reads) = Case::new("npz", &options, (1673, 1), EXT4).read(0..1);
    let sizes: Vec<usize> = reads.iter().map(|read| read.1).collect();
    assert_eq!(sizes[6..14], [4096, 253_952, 4096, 4096, 253_952, 4096, 4096, 253_952]);
}

#[test]
fn numpy_reads_a_file_of_one_array_through_a_c_file() {
    let expected = [
        (0, 4096, 4096),
        (0, 128, 128),
        (0, 4096, 4096),
        (4096, 102_400, 102_400),
        (106_496, 4096, 3193),
    ];
    assert_eq!(calls("npy", 331, EXT4), (2, expected.to_vec()));
    let expected = [
        (0, HUGE, HUGE),
        (0, 128, 128),
        (0, 8192, 8192),
        (8192, 2_785_280, 2_785_280),
        (2_793_472, 8192, 5585),
    ];
    assert_eq!(calls("npy", 1673, HUGE), (2, expected.to_vec()));
    let expected = [(0, 4096, 384), (0, 128, 128), (0, 4096, 384)];
    assert_eq!(calls("npy", 16, EXT4), (2, expected.to_vec()));
}

#[test]
fn h5py_reads_headers_one_by_one_and_a_sample_at_once() {
    let expected =
        [(0, 8, 8), (0, 48, 48), (48, 512, 512), (135, 512, 512), (2048, 109_561, 109_561)];
    assert_eq!(calls("hdf5", 331, EXT4), (2, expected.to_vec()));
    assert_eq!(calls("hdf5", 331, HUGE), (2, expected.to_vec()));
}

#[test]
fn h5py_reads_the_index_of_chunks_and_every_chunk_at_once() {
    let options = Options { chunk_dims: vec![1, 331, 331], ..Options::default() };
    let (stats, reads) = Case::new("hdf5", &options, (331, 4), EXT4).read(3..4);
    let expected = [
        (0, 8, 8),
        (0, 48, 48),
        (48, 512, 512),
        (135, 512, 512),
        (440_292, 28, 28),
        (440_320, 50, 50),
        (330_731, 109_561, 109_561),
    ];
    assert_eq!((stats, reads), (2, expected.to_vec()));
}

#[test]
fn pillow_gives_its_decoder_64_kib_until_the_image_ends() {
    let (stats, reads) = calls("jpeg", 1000, EXT4);
    let len = Case::new("jpeg", &Options::default(), (1000, 1), EXT4).source.bytes.len();
    assert_eq!(stats, 1);
    assert_eq!(reads[..3], [(0, 4096, 4096), (4096, 61_440, 61_440), (65_536, 65_536, 65_536)]);
    let (last, end) = (reads[reads.len() - 2], reads[reads.len() - 1]);
    assert_eq!(last.0 + last.2 as u64, len as u64);
    // What the buffer's multiple leaves of the last 64 KiB is asked for and not there.
    assert_eq!(end, (len as u64, (65_536 - last.2) / 4096 * 4096, 0));

    let expected = [
        (0, 4096, 4096),
        (4096, 61_440, 61_440),
        (65_536, 4096, 4096),
        (69_632, 36_864, 36_864),
        (106_496, 4096, 3481),
    ];
    assert_eq!(calls("png", 331, EXT4), (1, expected.to_vec()));
}

#[test]
fn pandas_reads_256_kib_of_text_until_nothing_comes() {
    let (stats, reads) = calls("csv", 100, EXT4);
    let len = reads[0].2;
    let asked = (262_144 - len) / 4096 * 4096;
    assert_eq!(stats, 2);
    let expected = [(0, 262_144, len), (len as u64, asked, 0), (len as u64, 262_144, 0)];
    assert_eq!(reads, expected);
}

#[test]
fn tensorflow_fills_its_buffer_and_asks_for_no_size() {
    let case = &mut Case::new("tfrecord", &Options::default(), (331, 10), EXT4);
    let len = case.source.bytes.len();
    let (stats, reads) = case.read(0..10);
    assert_eq!((stats, len), (0, 1_096_210));
    let whole = (0..4).map(|number| (number * 262_144, 262_144, 262_144));
    let end = [(1_048_576, 262_144, 47_634), (1_096_210, 214_510, 0)];
    assert_eq!(reads, whole.chain(end).collect::<Vec<_>>());
}

#[test]
fn tarfile_reads_records_of_10_kib_through_a_buffer() {
    let case = &mut Case::new("webdataset", &Options::default(), (331, 10), EXT4);
    let (stats, reads) = case.read(0..10);
    assert_eq!(stats, 1);
    let sizes: Vec<usize> = reads.iter().map(|read| read.1).collect();
    assert_eq!(sizes[..8], [4096, 4096, 4096, 8192, 4096, 4096, 4096, 8192]);
    // Every byte once, up to the record that holds the end of the archive.
    let mut at = 0;
    for (offset, asked, found) in &reads {
        assert_eq!((*offset, asked), (at, found));
        at += *found as u64;
    }
    assert_eq!(at, 1_118_208);
    let reads = Case::new("webdataset", &Options::default(), (331, 10), HUGE).read(0..10).1;
    assert_eq!(reads, [(0, HUGE, 1_126_400)]);
}

#[test]
fn pyarrow_reads_64_kib_of_the_end_and_a_column_chunk_at_once() {
    let case = &mut Case::new("parquet", &Options::default(), (331, 10), EXT4);
    let (stats, reads) = case.read(0..10);
    assert_eq!(stats, 3);
    assert_eq!(reads, [(1_030_385, 65_536, 65_536), (4, 1_095_652, 1_095_652)]);
}

#[test]
fn what_is_read_is_what_the_native_reader_finds() {
    let packed = Options { compression: Compression::Zip, ..Options::default() };
    let gzip = Options { compression: Compression::Gzip, ..Options::default() };
    for (name, options) in [
        ("npz", Options::default()),
        ("npz", packed),
        ("npy", Options::default()),
        ("hdf5", Options::default()),
        ("hdf5", gzip.clone()),
        ("csv", Options::default()),
        ("csv", gzip.clone()),
        ("jpeg", Options::default()),
        ("png", Options::default()),
        ("tfrecord", Options::default()),
        ("webdataset", Options::default()),
        ("parquet", gzip),
    ] {
        for (side, preferred) in [(1, EXT4), (60, EXT4), (61, 7), (331, HUGE)] {
            let case = &mut Case::new(name, &options, (side, 3), preferred);
            let native = SampleFormat::find(name).unwrap().build(&options).unwrap();
            let mut opened = native.open(&mut case.source, &mut case.scratch).unwrap();
            let mut framework = case.format.open(&mut case.source, &mut case.scratch).unwrap();
            for index in 0..3 {
                let expected = opened.read(&mut case.source, index, &mut case.scratch).unwrap();
                let found = framework.read(&mut case.source, index, &mut case.scratch).unwrap();
                let facts = |read: &crate::SampleRead| (read.bytes, read.samples, read.element);
                assert_eq!(facts(&found), facts(&expected), "{name}, side {side}");
            }
        }
    }
}

#[test]
fn truncated_files_are_errors_and_not_panics() {
    for name in ["npz", "npy", "hdf5", "csv", "jpeg", "png", "tfrecord", "webdataset", "parquet"] {
        let whole = Case::new(name, &Options::default(), (40, 2), EXT4).source.bytes;
        for len in (0..whole.len()).step_by(13) {
            let format = SampleFormat::find(name).unwrap().build(&Options::default()).unwrap();
            let case = &mut Case::of(format, whole[..len].to_vec(), EXT4);
            let Case { format, source, scratch } = case;
            let read = format
                .open(source, scratch)
                .and_then(|mut opened| opened.read(source, 1, scratch).map(|_| ()));
            // Text without its end is text, and the end of an archive may be missing.
            if name != "csv" && !(name == "webdataset" && len >= 7168) {
                read.expect_err(&format!("{name} of {len} bytes"));
            }
        }
    }
}
