//! Every format, written and collected again, and what sinks refuse.

use super::*;
use crate::StreamError;
use crate::test_support::InMemory;
use crate::{
    Compression, Content, FORMATS, FileSpec, Format, Libraries, Options, SampleFormat, as_framework,
};

const LIMIT: u64 = 1 << 20;
const SAMPLES: u64 = 3;

fn built(name: &str, options: &Options) -> Box<dyn Format> {
    SampleFormat::find(name).unwrap().build(options).unwrap()
}

fn packed(compression: Compression) -> Options {
    Options { compression, ..Options::default() }
}

fn spec(dims: &[u64], element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples: SAMPLES, element, index: 0 }
}

/// Opens the file and collects these samples of it, through pieces of that size.
fn collect(format: &dyn Format, file: &mut InMemory, piece: usize) -> Vec<Vec<CollectedPart>> {
    let mut scratch = Scratch::new(piece);
    file.piece_bytes = piece;
    let mut opened = format.open(file, &mut scratch).unwrap();
    let mut sink = Collect::new(LIMIT);
    // Backwards too, for files that keep a place.
    let mut samples: Vec<_> = (0..SAMPLES)
        .chain([0])
        .map(|index| {
            let plain = opened.read(file, index, &mut scratch).unwrap();
            let read = opened.read_into(file, index, &mut scratch, &mut sink).unwrap();
            assert_eq!((read.bytes, read.element), (plain.bytes, plain.element));
            sink.take()
        })
        .collect();
    let again = samples.pop().unwrap();
    assert_eq!(again, samples[0]);
    samples
}

/// The bytes of the content that the files of [`InMemory::encoded`] have.
fn content(element: Element, offset: u64, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    Content::new(1, 2).fill(element, offset, &mut bytes);
    bytes
}

/// A sample that is in one place, after `index` others.
fn in_a_row(file: &FileSpec, index: u64) -> Vec<u8> {
    let len = file.sample_bytes().unwrap();
    content(file.element, index * len, len)
}

/// A sample of an array whose last axis counts samples.
fn strided(file: &FileSpec, index: u64) -> Vec<u8> {
    let all = content(file.element, 0, file.payload_bytes().unwrap());
    let elements = all.chunks_exact(file.element.size_bytes() as usize);
    elements.skip(index as usize).step_by(SAMPLES as usize).flatten().copied().collect()
}

/// Every format of numbers, and whether its samples are strided.
fn array_formats() -> Vec<(Box<dyn Format>, &'static str, bool)> {
    let chunked = Options { chunk_dims: vec![2, 2, 3], ..Options::default() };
    let chunked_lzf = Options { compression: Compression::Lzf, ..chunked.clone() };
    let chunked_gzip = Options { compression: Compression::Gzip, ..chunked.clone() };
    let none = Options::default();
    vec![
        (built("npz", &none), "x", true),
        (built("npz", &packed(Compression::Zip)), "x", true),
        (built("npy", &none), "", true),
        (built("hdf5", &none), "records_0", false),
        (built("hdf5", &chunked), "records_0", false),
        (built("hdf5", &chunked_lzf), "records_0", false),
        (built("hdf5", &chunked_gzip), "records_0", false),
        (built("hdf5", &packed(Compression::Gzip)), "records_0", false),
        (built("parquet", &none), "x", false),
        (built("parquet", &packed(Compression::Gzip)), "x", false),
        (built("safetensors", &none), "x", false),
        (built("webdataset", &none), "npy", false),
    ]
}

#[test]
fn arrays_of_every_shape_and_type_come_back() {
    for (format, name, is_strided) in array_formats() {
        for element in Element::ALL {
            if format.facts().name == "safetensors" && element == Element::Complex128 {
                continue;
            }
            for dims in [&[5, 7][..], &[3, 3], &[40, 40]] {
                let file = spec(dims, element);
                let mut made = InMemory::encoded(&*format, &file);
                for piece in [1000, 1 << 17] {
                    for (parts, index) in collect(&*format, &mut made, piece).iter().zip(0..) {
                        let bytes =
                            if is_strided { strided(&file, index) } else { in_a_row(&file, index) };
                        let shape = dims.to_vec();
                        let name = name.to_owned();
                        let expected = CollectedPart { name, element: Some(element), shape, bytes };
                        assert_eq!(parts[0], expected, "{} {element:?}", format.facts().name);
                    }
                }
            }
        }
    }
}

#[test]
fn axes_of_any_number_come_back() {
    for (format, is_strided) in
        [("npz", true), ("npy", true), ("hdf5", false), ("safetensors", false), ("parquet", false)]
    {
        let format = built(format, &Options::default());
        for dims in [&[][..], &[11], &[2, 3, 5], &[1, 2, 1, 2]] {
            let file = spec(dims, Element::UInt16);
            let mut made = InMemory::encoded(&*format, &file);
            for (parts, index) in collect(&*format, &mut made, 4096).iter().zip(0..) {
                assert_eq!(parts[0].shape, dims);
                let bytes = if is_strided { strided(&file, index) } else { in_a_row(&file, index) };
                assert_eq!(parts[0].bytes, bytes, "{} {dims:?}", format.facts().name);
            }
        }
    }
}

#[test]
fn every_dataset_is_a_part() {
    let options = Options { datasets: 2, ..Options::default() };
    let format = built("hdf5", &options);
    let file = spec(&[4, 3], Element::Int16);
    let mut made = InMemory::encoded(&*format, &file);
    let samples = collect(&*format, &mut made, 4096);
    let part = file.sample_bytes().unwrap() / 2;
    for (parts, index) in samples.iter().zip(0..) {
        assert_eq!(parts.len(), 2);
        for (part_of, number) in parts.iter().zip(0..) {
            assert_eq!(part_of.name, format!("records_{number}"));
            assert_eq!(part_of.shape, [2, 3]);
            let begin = number * part * SAMPLES + index * part;
            assert_eq!(part_of.bytes, content(Element::Int16, begin, part));
        }
    }
}

#[test]
fn bytes_without_a_type_come_back() {
    let file = spec(&[5, 7], Element::Float32);
    for name in ["indexed_binary", "mmap_indexed_binary"] {
        let format = built(name, &Options::default());
        let mut made = InMemory::encoded(&*format, &file);
        for (parts, index) in collect(&*format, &mut made, 100).into_iter().zip(0..) {
            let bytes = in_a_row(&file, index);
            let (name, shape) = (String::new(), vec![140]);
            assert_eq!(parts, [CollectedPart { name, element: None, shape, bytes }]);
        }
    }
    let format = built("webdataset", &Options::default());
    let mut made = InMemory::encoded(&*format, &file);
    for parts in collect(&*format, &mut made, 1024) {
        let (name, shape, bytes) = ("cls".to_owned(), vec![1], b"0".to_vec());
        assert_eq!(parts[1], CollectedPart { name, element: None, shape, bytes });
    }
}

#[test]
fn a_record_is_all_of_its_payload() {
    let file = spec(&[50, 7], Element::UInt8);
    let format = built("tfrecord", &Options::default());
    let mut made = InMemory::encoded(&*format, &file);
    let len = made.data.len() / SAMPLES as usize;
    for (parts, index) in collect(&*format, &mut made, 100).into_iter().zip(0..) {
        let record = &made.data[index * len..(index + 1) * len];
        assert_eq!(parts[0].bytes, record[12..len - 4]);
        assert_eq!(parts[0].shape, [len as u64 - 16]);
        assert_eq!((parts.len(), parts[0].element), (1, None));
        let sample = in_a_row(&file, index as u64);
        assert!(parts[0].bytes.windows(sample.len()).any(|bytes| bytes == sample));
    }
}

#[test]
fn pixels_have_height_width_and_channels() {
    let file = spec(&[40, 30], Element::UInt8);
    let format = built("png", &Options::default());
    let mut made = InMemory::encoded(&*format, &file);
    for parts in collect(&*format, &mut made, 1000) {
        let (name, shape, bytes) = (String::new(), vec![40, 30, 1], in_a_row(&file, 0));
        assert_eq!(parts, [CollectedPart { name, element: Some(Element::UInt8), shape, bytes }]);
    }
    let format = built("jpeg", &Options::default());
    let mut made = InMemory::encoded(&*format, &file);
    for parts in collect(&*format, &mut made, 1000) {
        assert_eq!((parts.len(), &parts[0].shape[..]), (1, &[40, 30, 1][..]));
        let far = |(pixel, written): (&u8, &u8)| u64::from(pixel.abs_diff(*written));
        let total: u64 = parts[0].bytes.iter().zip(&in_a_row(&file, 0)).map(far).sum();
        // Of unrelated noise it would be 85 for each pixel.
        assert!(total < 1200 * 20, "{total}");
    }
}

#[test]
fn rows_have_the_type_that_pandas_gives_them() {
    let row = |text: &str, index| {
        let format = built("csv", &Options::default());
        let mut file = InMemory::new(text.as_bytes().to_vec());
        file.piece_bytes = 5;
        let (mut scratch, mut sink) = (Scratch::new(5), Collect::new(LIMIT));
        let mut opened = format.open(&mut file, &mut scratch).unwrap();
        opened.read_into(&mut file, index, &mut scratch, &mut sink).unwrap();
        let part = sink.take().remove(0);
        (part.element.unwrap(), part.shape, part.bytes)
    };
    let words = |numbers: &[i64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    let floats = |numbers: &[f64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(row("1,-2\n\n 300 ,4\r\n", 1), (Element::Int64, vec![2], words(&[300, 4])));
    assert_eq!(row("1,2\n3,4.5", 0), (Element::Float64, vec![2], floats(&[1.0, 2.0])));
    assert_eq!(row("1e3,inf\n3,4", 0), (Element::Float64, vec![2], floats(&[1e3, f64::INFINITY])));
    let large = "18446744073709551615";
    assert_eq!(row(&format!("{large},1"), 0), (Element::UInt64, vec![2], words(&[-1, 1])));
    let both = format!("{large},1\n-1,2");
    assert_eq!(row(&both, 1), (Element::Float64, vec![2], floats(&[-1.0, 2.0])));
    assert_eq!(row("True,False\n", 0), (Element::Bool, vec![2], vec![1, 0]));
    assert_eq!(row("True,7\n", 0), (Element::Int64, vec![2], words(&[1, 7])));
}

#[test]
fn text_comes_back_as_numbers() {
    for compression in [Compression::None, Compression::Gzip] {
        let format = built("csv", &packed(compression));
        let file = spec(&[5, 7], Element::Int32);
        let mut made = InMemory::encoded(&*format, &file);
        for (parts, index) in collect(&*format, &mut made, 64).into_iter().zip(0..) {
            let numbers = in_a_row(&file, index);
            let wide = numbers.as_chunks().0.iter().map(|&n| i64::from(i32::from_le_bytes(n)));
            let bytes: Vec<u8> = wide.flat_map(i64::to_le_bytes).collect();
            let (name, shape) = (String::new(), vec![35]);
            assert_eq!(
                parts,
                [CollectedPart { name, element: Some(Element::Int64), shape, bytes }]
            );
        }
    }
}

#[test]
fn the_framework_reads_the_same_samples() {
    for entry in FORMATS {
        let plain = entry.build(&Options::default()).unwrap();
        let mut made = InMemory::encoded(&*plain, &spec(&[20, 30], Element::UInt8));
        let expected = collect(&*plain, &mut made, 4096);
        let framework = as_framework(plain, Libraries::default());
        assert_eq!(collect(&*framework, &mut made, 4096), expected, "{}", entry.name);
        let is_empty = expected.iter().all(Vec::is_empty);
        assert_eq!(is_empty, entry.name == "synthetic");
    }
    for (name, compression) in [("npz", Compression::Zip), ("csv", Compression::Gzip)] {
        let plain = built(name, &packed(compression));
        let mut made = InMemory::encoded(&*plain, &spec(&[20, 30], Element::UInt16));
        let expected = collect(&*plain, &mut made, 4096);
        let framework = as_framework(plain, Libraries::default());
        assert_eq!(collect(&*framework, &mut made, 4096), expected, "{name}");
    }
}

#[test]
fn a_sample_above_the_limit_is_refused_and_one_at_it_is_not() {
    for entry in FORMATS.iter().filter(|entry| entry.name != "synthetic") {
        let format = entry.build(&Options::default()).unwrap();
        let mut made = InMemory::encoded(&*format, &spec(&[20, 30], Element::UInt8));
        let mut scratch = Scratch::new(4096);
        let mut opened = format.open(&mut made, &mut scratch).unwrap();
        let mut sink = Collect::new(LIMIT);
        opened.read_into(&mut made, 0, &mut scratch, &mut sink).unwrap();
        let size: usize = sink.take().iter().map(|part| part.bytes.len()).sum();
        let mut tight = Collect::new(size as u64);
        opened.read_into(&mut made, 0, &mut scratch, &mut tight).unwrap();
        assert_eq!(tight.room_bytes(), 0);
        let mut short = Collect::new(size as u64 - 1);
        let error = opened.read_into(&mut made, 0, &mut scratch, &mut short).unwrap_err();
        assert!(matches!(error, DecodeError::SampleLimit { .. }), "{}: {error}", entry.name);
        let message = error.to_string();
        assert!(message.ends_with(&format!("the limit is {}", short.room_bytes())), "{message}");
        // After an error the same file can be read on.
        let _ = short.take();
        let mut again = Collect::new(LIMIT);
        opened.read_into(&mut made, 1, &mut scratch, &mut again).unwrap();
    }
}

#[test]
fn an_error_of_the_sink_is_carried() {
    struct Refusing;
    impl SampleSink for Refusing {
        fn begin(&mut self, part: &SamplePart<'_>) -> Result<(), StreamError> {
            Err(format!("no room for {}", part.name).into())
        }
        fn put(&mut self, _bytes: &[u8]) -> Result<(), StreamError> {
            Ok(())
        }
        fn room_bytes(&self) -> u64 {
            u64::MAX
        }
    }
    let format = built("npz", &Options::default());
    let mut made = InMemory::encoded(&*format, &spec(&[2], Element::UInt8));
    let mut scratch = Scratch::new(4096);
    let mut opened = format.open(&mut made, &mut scratch).unwrap();
    let error = opened.read_into(&mut made, 0, &mut scratch, &mut Refusing).unwrap_err();
    let DecodeError::SampleSink { source } = error else { panic!("{error}") };
    assert_eq!(source.to_string(), "no room for x");
}

#[test]
fn a_part_takes_no_more_than_was_announced() {
    let mut sink = Collect::new(10);
    sink.put(&[1]).unwrap_err();
    sink.begin(&SamplePart { name: "a", element: Some(Element::UInt16), shape: &[3] }).unwrap();
    assert_eq!(sink.room_bytes(), 4);
    sink.put(&[1, 2, 3]).unwrap();
    sink.put(&[4, 5, 6]).unwrap();
    sink.put(&[7]).unwrap_err();
    sink.begin(&SamplePart { name: "b", element: None, shape: &[5] }).unwrap_err();
    let axes = [u64::MAX, 2];
    sink.begin(&SamplePart { name: "c", element: None, shape: &axes }).unwrap_err();
    assert_eq!(sink.parts()[0].bytes, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn arrays_of_other_orders_are_turned_around() {
    let part = |bytes: &[u8], index| {
        let format = built("npy", &Options::default());
        let mut file = InMemory::new(bytes.to_vec());
        let (mut scratch, mut sink) = (Scratch::new(1000), Collect::new(LIMIT));
        let mut opened = format.open(&mut file, &mut scratch).unwrap();
        opened.read_into(&mut file, index, &mut scratch, &mut sink).unwrap();
        sink.take().remove(0)
    };
    let header = |descr: &str, shape: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}}}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    };
    // Element (i, j, sample) is 100 * sample + 10 * i + j.
    let mut bytes = header(">u2", "(2, 3, 2)");
    for sample in 0..2u16 {
        for j in 0..3 {
            bytes.extend((0..2).flat_map(|i| (100 * sample + 10 * i + j).to_be_bytes()));
        }
    }
    for sample in 0..2u16 {
        let found = part(&bytes, sample.into());
        assert_eq!(found.shape, [2, 3]);
        let numbers = found.bytes.as_chunks().0.iter().map(|&n| u16::from_le_bytes(n));
        let expected = [0, 1, 2, 10, 11, 12].map(|number| 100 * sample + number);
        assert_eq!(numbers.collect::<Vec<_>>(), expected);
    }
    let mut bytes = header(">c8", "(1,)");
    bytes.extend(1.5f32.to_be_bytes());
    bytes.extend((-2f32).to_be_bytes());
    let found = part(&bytes, 0);
    assert_eq!(found.bytes, [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat());
    assert!(found.shape.is_empty());
}
