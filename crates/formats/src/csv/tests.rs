//! Round trips, text of pandas, texts of all kinds in all kinds of pieces, and damage.

use super::*;
use crate::test_support::{self, InMemory};
use crate::{Compression, PIECE_BYTES};

const PLAIN: Csv = Csv { level: None };
const GZIP: Csv = Csv { level: Some(4) };
const NUMBERS_GZ: &[u8] = include_bytes!("../../golden/numbers.csv.gz");

fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
}

fn real_types() -> impl Iterator<Item = Element> {
    let complex = [Element::Complex64, Element::Complex128];
    Element::ALL.into_iter().filter(move |element| !complex.contains(element))
}

fn read(text: &[u8]) -> Result<SampleRead, DecodeError> {
    test_support::read(&PLAIN, text, 0, 4096)
}

fn message(text: &[u8]) -> String {
    read(text).unwrap_err().to_string()
}

/// Rows, columns and whether all are booleans, read in pieces of that length.
fn shape(text: &[u8], piece_bytes: usize) -> Result<(u64, u64, bool), DecodeError> {
    let mut rows = Rows::new();
    for piece in text.chunks(piece_bytes) {
        rows.feed(piece)?;
    }
    rows.finish().map(|found| (found.rows, found.columns, found.booleans))
}

#[test]
fn what_is_written_is_found_again() {
    for element in real_types() {
        for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 500)] {
            let file = spec(dims, samples, element);
            let number_bytes = if element == Element::Bool { 1 } else { 8 };
            let bytes = dims.iter().product::<u64>() * number_bytes;
            for format in [&PLAIN, &GZIP] {
                let text = test_support::encoded(format, &file);
                for piece_bytes in [11, 1000, 1 << 20] {
                    let found =
                        test_support::read(format, &text, samples - 1, piece_bytes).unwrap();
                    assert_eq!((found.bytes, found.samples), (bytes, samples), "{element:?}");
                    assert_eq!(found.element, None);
                }
            }
        }
    }
}

#[test]
fn sizes_are_about_right() {
    for element in real_types() {
        let file = spec(&[50, 50], 2, element);
        for level in [None, Some(0), Some(1), Some(4)] {
            let format = Csv { level };
            let size = test_support::encoded(&format, &file).len() as f64;
            let expected = format.size(&file);
            assert!(matches!(expected, FileSize::About(_)));
            let ratio = expected.bytes() as f64 / size;
            assert!((0.85..1.15).contains(&ratio), "{element:?} {level:?} {ratio}");
        }
    }
    assert_eq!(PLAIN.size(&spec(&[1 << 40, 1 << 40], 1, Element::UInt8)).bytes(), u64::MAX);
}

/// Printed with Rust's own shortest representation and compared value by value.
#[test]
fn the_text_is_the_content_row_by_row() {
    let file = spec(&[70, 50], 3, Element::Int16);
    let mut content = vec![0; 21_000];
    Content::new(1, 2).fill(Element::Int16, 0, &mut content);
    let values = content.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes).to_string());
    let values: Vec<_> = values.collect();
    let rows: Vec<_> = values.chunks(3500).map(|row| row.join(",") + "\n").collect();
    assert_eq!(String::from_utf8(test_support::encoded(&PLAIN, &file)).unwrap(), rows.concat());

    let file = spec(&[4000], 1, Element::Float32);
    let mut content = vec![0; 16_000];
    Content::new(1, 2).fill(Element::Float32, 0, &mut content);
    let text = String::from_utf8(test_support::encoded(&PLAIN, &file)).unwrap();
    for (bytes, text) in content.as_chunks().0.iter().zip(text.trim_end().split(',')) {
        assert_eq!(text.parse(), Ok(f32::from_le_bytes(*bytes)));
    }
}

#[test]
fn numbers_are_printed_as_pandas_does() {
    let check = |element, bytes: &[u8], columns: usize, golden: &[u8]| {
        let mut text = Vec::new();
        print::numbers(element, bytes, &mut text);
        let numbers = text.strip_suffix(b",").unwrap().split(|&byte| byte == b',');
        let golden =
            golden.strip_suffix(b"\n").unwrap().split(|&byte| matches!(byte, b',' | b'\n'));
        let (numbers, golden): (Vec<_>, Vec<_>) = (numbers.collect(), golden.collect());
        assert_eq!(numbers.len() % columns, 0);
        for (found, expected) in numbers.iter().zip(&golden) {
            assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string());
        }
        assert_eq!(numbers.len(), golden.len());
    };
    let values = [0.0, 1.0 / 3.0, 1e-3, 1.2e-4, 9.999e-5, f64::NAN, f64::NAN, 0.5];
    let singles = values.map(|value| value as f32);
    let singles = [&singles[..5], &[f32::EPSILON, 1.0 - f32::EPSILON, 0.5]].concat();
    let bytes: Vec<u8> = singles.iter().flat_map(|value| value.to_le_bytes()).collect();
    check(Element::Float32, &bytes, 8, include_bytes!("../../golden/float32.csv"));
    let doubles = [&values[..5], &[f64::EPSILON, 1.0 - f64::EPSILON, 0.5]].concat();
    let bytes: Vec<u8> = doubles.iter().flat_map(|value| value.to_le_bytes()).collect();
    check(Element::Float64, &bytes, 8, include_bytes!("../../golden/float64.csv"));
    check(Element::Bool, &[1, 0, 0, 0], 2, include_bytes!("../../golden/bool.csv"));

    // All the halves that a sample can have.
    let halves = (0..2048u32).flat_map(|steps| {
        let wide = (steps as f32 / 2048.0).to_bits();
        let half = if steps == 0 { 0 } else { (wide - (112 << 23)) >> 13 };
        (half as u16).to_le_bytes()
    });
    let bytes: Vec<u8> = halves.collect();
    check(Element::Float16, &bytes, 128, include_bytes!("../../golden/float16.csv"));
    for byte in 0..=255u8 {
        let mut text = Vec::new();
        print::numbers(Element::UInt8, &[byte], &mut text);
        print::numbers(Element::Int8, &[byte], &mut text);
        assert_eq!(text, format!("{byte},{},", byte as i8).into_bytes());
    }
}

#[test]
fn texts_of_pandas_are_read() {
    for (text, rows, row_bytes) in [
        (&include_bytes!("../../golden/float16.csv")[..], 16, 128 * 8),
        (include_bytes!("../../golden/float64.csv"), 1, 64),
        (include_bytes!("../../golden/bool.csv"), 2, 2),
    ] {
        let found = read(text).unwrap();
        assert_eq!((found.samples, found.bytes), (rows, row_bytes));
        assert_eq!(found.file_bytes, text.len() as u64);
    }
    let found = test_support::read(&GZIP, NUMBERS_GZ, 2, 4096).unwrap();
    assert_eq!((found.samples, found.bytes), (3, 32));
}

#[test]
fn texts_are_the_same_in_pieces_of_any_length() {
    let check = |text: &str, expected: (u64, u64, bool)| {
        for piece_bytes in 1..text.len() + 1 {
            let found = shape(text.as_bytes(), piece_bytes).unwrap();
            assert_eq!(found, expected, "{text:?} in pieces of {piece_bytes}");
        }
    };
    check("1,2\n3,4\n", (2, 2, false));
    check("1,2\r\n3,4", (2, 2, false));
    check("\n\n1\n\r\n  \n2\n\n", (2, 1, false));
    check(" 1 ,\t-2.5e-300 ,+3\n12345678,1234567,123456789012345678901234567890\n", (2, 3, false));
    check("True,False,true,FALSE", (1, 4, true));
    check("True,1\n", (1, 2, false));
    check("nan,inf,-inf,1e400,.5,5.\n", (1, 6, false));
    check("18446744073709551615,-9223372036854775808,18446744073709551616\n", (1, 3, false));
    check("00000001,0000000001,1\n", (1, 3, false));
}

#[test]
fn numbers_have_their_value() {
    for text in ["7,", "1234567,", "12345678,", "123456789,", "18446744073709551615,", "-1,"] {
        let value = text.trim_end_matches(',').parse::<i128>().unwrap();
        assert_eq!(rows::sum_of(text.as_bytes()), value as u64, "{text}");
    }
    assert_eq!(rows::sum_of(b"0.5,"), 0.5f64.to_bits());
    assert_eq!(rows::sum_of(b"18446744073709551616,"), 18446744073709551616f64.to_bits());
    assert_eq!(rows::sum_of(b"12,345,6789,1,0,10000000000,"), 10_000_007_147);
}

#[test]
fn texts_that_are_no_numbers_say_where() {
    for (text, expected) in [
        ("1,2\n3,x4\n", "csv: expected a number at byte 6, found \"x4\""),
        ("1,,2\n", "csv: expected a number at byte 2, found an empty field"),
        ("1,2,\n", "csv: expected a number at byte 4, found an empty field"),
        ("1,2,", "csv: expected a number at byte 4, found an empty field"),
        ("1,\"2\"\n", "csv: expected a number at byte 2, found a quote, which is not supported"),
        ("1 2,3\n", "csv: expected a number at byte 0, found \"1 2\""),
        ("1,-\n", "csv: expected a number at byte 2, found \"-\""),
        ("1,Truely\n", "csv: expected a number at byte 2, found \"Truely\""),
        (
            "1,2\n3\n",
            "csv: expected the end of a row as long as the first at byte 4, \
             found 1 columns in row 1, not 2",
        ),
        (
            "1,2\n3,4,5",
            "csv: expected the end of a row as long as the first at byte 8, \
             found 3 columns in row 1, not 2",
        ),
    ] {
        assert_eq!(message(text.as_bytes()), expected);
        for piece_bytes in 1..text.len() {
            let found = shape(text.as_bytes(), piece_bytes).unwrap_err().to_string();
            assert_eq!(found, expected, "in pieces of {piece_bytes}");
        }
    }
    let long = [b"1,".to_vec(), vec![b'7'; 600]].concat();
    assert_eq!(
        message(&long),
        "csv: expected a number at byte 2, found a field of more than 512 bytes"
    );
    assert_eq!(
        message(NUMBERS_GZ),
        "csv: compression with gzip in a workload without it at byte 0 is not supported"
    );
    assert_eq!(
        test_support::read(&GZIP, b"1,2\n", 0, 4096).unwrap_err().to_string(),
        "not a csv in gzip: expected the gzip magic at byte 0, found [31, 2c, 32]"
    );
}

#[test]
fn a_sample_the_file_does_not_have_is_refused() {
    for (text, samples) in [(&b"1,2\n3,4\n"[..], 2), (b"", 0), (b"\n\n", 0)] {
        let error = test_support::read(&PLAIN, text, 2, 4096).unwrap_err();
        assert!(
            matches!(error, DecodeError::SampleIndex { index: 2, samples: s, .. } if s == samples)
        );
    }
}

/// Text does not show that its end is missing unless a row is cut; the cut row is then an error.
#[test]
fn a_cut_row_is_an_error() {
    let text = test_support::encoded(&PLAIN, &spec(&[5, 5], 2, Element::Int16));
    let last_comma = text.iter().rposition(|&byte| byte == b',').unwrap();
    let row_end = text.iter().position(|&byte| byte == b'\n').unwrap();
    for len in 0..last_comma + 1 {
        test_support::read(&PLAIN, &text[..len], 1, 64).expect_err("a row without its end");
        let first = test_support::read(&PLAIN, &text[..len], 0, 64);
        assert!(first.is_err() || len <= row_end + 1, "{len}");
    }
}

#[test]
fn a_truncated_or_changed_gzip_is_an_error() {
    let file = spec(&[5, 5], 2, Element::Int16);
    for whole in [NUMBERS_GZ.to_vec(), test_support::encoded(&GZIP, &file)] {
        for len in 0..whole.len() {
            test_support::read(&GZIP, &whole[..len], 0, 64).expect_err("a gzip without its end");
        }
        // Time, further flags, operating system and file name do not matter, nor do the
        // bits after the end of the deflated data.
        let text = expanded(&whole).unwrap();
        let mut harmless = 0;
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(same) = expanded(&damaged) {
                assert_eq!(same, text);
                harmless += 1;
            }
        }
        assert!(harmless <= (1 + 6 + 12) * 8, "{harmless}");
    }
}

fn expanded(mut file: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut piece = vec![0; 4096];
    let mut window = Window::new(&mut file, &mut piece)?;
    let mut text = Vec::new();
    gzip::expand(&mut window, &mut Vec::new(), |part| {
        text.extend(part);
        Ok(())
    })?;
    Ok(text)
}

#[test]
fn gzip_of_several_members_and_all_fields_is_read() {
    let whole = test_support::encoded(&GZIP, &spec(&[5], 2, Element::Int16));
    let twice = [whole.clone(), whole.clone()].concat();
    assert_eq!(test_support::read(&GZIP, &twice, 3, 64).unwrap().samples, 4);

    let mut fields = whole[..10].to_vec();
    fields[3] = 0b11110;
    fields.extend(b"\x03\x00abcname\0comment\0\x12\x34");
    fields.extend(&whole[10..]);
    assert_eq!(test_support::read(&GZIP, &fields, 1, 64).unwrap().samples, 2);
    for len in 0..fields.len() {
        test_support::read(&GZIP, &fields[..len], 0, 64).expect_err("a gzip without its end");
    }
    fields[3] |= 0b10_0000;
    assert_eq!(
        test_support::read(&GZIP, &fields, 1, 64).unwrap_err().to_string(),
        "csv: gzip flags 0x3e at byte 3 is not supported"
    );
    let mut wrong_size = whole.clone();
    *wrong_size.last_mut().unwrap() ^= 1;
    let error = test_support::read(&GZIP, &wrong_size, 1, 64).unwrap_err().to_string();
    assert!(error.contains("expected the size of the text modulo 2^32"), "{error}");
}

#[test]
fn arbitrary_text_never_panics() {
    const LETTERS: &[u8] = b"0123456789,,,\n\r .-+eETrueFalsnif\"\xFF\0";
    let mut draws = vec![0; 40 * 20_000];
    Content::new(5, 5).fill(Element::UInt8, 0, &mut draws);
    for draw in draws.chunks_exact(40) {
        let text: Vec<u8> =
            draw[1..].iter().map(|&byte| LETTERS[usize::from(byte) % LETTERS.len()]).collect();
        let whole = shape(&text, text.len());
        let pieces = shape(&text, 1 + usize::from(draw[0]) % 20);
        assert_eq!(whole.is_ok(), pieces.is_ok(), "{}", text.escape_ascii());
        if let (Ok(whole), Ok(pieces)) = (whole, pieces) {
            assert_eq!(whole, pieces, "{}", text.escape_ascii());
        }
    }
    for draw in draws.chunks_exact(40).take(1000) {
        let mut bytes = NUMBERS_GZ.to_vec();
        for change in draw[2..2 + 2 * usize::from(draw[1] % 6 + 1)].chunks_exact(2) {
            let at = usize::from(change[0]) % bytes.len();
            bytes[at] = change[1];
        }
        let _ = test_support::read(&GZIP, &bytes, 0, 64);
    }
}

#[test]
fn a_file_is_read_once_in_aligned_pieces() {
    let mut source = InMemory::encoded(&PLAIN, &spec(&[100_000], 1, Element::UInt8));
    let mut scratch = Scratch::new(1 << 20);
    let found = OpenedCsv { gzip: false }.read(&mut source, 0, &mut scratch).unwrap();
    let (len, piece) = (source.data.len() as u64, PIECE_BYTES as u64);
    let mut expected: Vec<_> = (0..len / piece).map(|i| (i * piece, PIECE_BYTES)).collect();
    expected.push((len / piece * piece, (len % piece) as usize));
    assert_eq!(source.reads, expected);
    assert_eq!(found.file_bytes, len);
}

#[test]
fn what_no_csv_can_hold_is_refused() {
    let message = |file: &FileSpec| {
        PLAIN.encode(file, &Content::new(0, 0), &mut Vec::new()).unwrap_err().to_string()
    };
    assert_eq!(
        message(&spec(&[5], 2, Element::Complex64)),
        "csv: no reader of csv takes complex numbers, choose a real element type"
    );
    assert_eq!(
        message(&spec(&[5, 0], 2, Element::UInt8)),
        "csv: a row needs at least one column, the sample has no elements"
    );
    let endless = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
    let error = PLAIN.encode(&endless, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, EncodeError::TooLarge { .. }));
    assert!(test_support::encoded(&PLAIN, &spec(&[5], 0, Element::UInt8)).is_empty());
}

#[test]
fn compression_decides_the_name() {
    let with = |compression| FACTS.build(&Options { compression, ..Options::default() });
    assert_eq!(with(Compression::None).unwrap().extension(), "csv");
    assert_eq!(with(Compression::Gzip).unwrap().extension(), "csv.gz");
    for refused in [Compression::Bz2, Compression::Xz, Compression::Zip, Compression::Lzf] {
        assert!(with(refused).is_err());
    }
}
