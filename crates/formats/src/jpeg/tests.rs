//! Round trips, files of Pillow, and every way in which a small image can be damaged.

use super::*;
use crate::{ByteRange, test_support};

const GRAY: &[u8] = include_bytes!("../../golden/image-gray.jpeg");
const RESTARTS: &[u8] = include_bytes!("../../golden/image-gray-restarts.jpeg");
const OPTIMIZED: &[u8] = include_bytes!("../../golden/image-gray-optimized.jpeg");
const COLOR: &[u8] = include_bytes!("../../golden/image-color-420.jpeg");
const PROGRESSIVE: &[u8] = include_bytes!("../../golden/image-color-progressive.jpeg");

/// What Pillow makes of [`GRAY`], and what it was made of.
const GRAY_PIXELS: &[u8] = include_bytes!("../../golden/image-gray.pixels");
const NOISE: &[u8] = include_bytes!("../../golden/image-noise.pixels");

fn spec(dims: &[u64], samples: u64) -> FileSpec {
    FileSpec { dims: dims.to_vec(), samples, element: Element::UInt8, index: 0 }
}

fn encoded(dims: &[u64]) -> Vec<u8> {
    test_support::encoded(&Jpeg, &spec(dims, 1))
}

/// The pixels of a gray file.
fn pixels(file: &[u8]) -> Vec<u8> {
    let (mut whole, mut decoded) = (file.to_vec(), Vec::new());
    let frame = decode(&mut whole, file.len(), &mut decoded).unwrap();
    assert_eq!(frame.components, 1);
    decoded
}

fn message(file: &[u8]) -> String {
    test_support::read(&Jpeg, file, 0, 4096).unwrap_err().to_string()
}

/// Where the first segment with this marker begins.
fn find(file: &[u8], marker: u8) -> usize {
    file.windows(2).position(|pair| pair == [0xFF, marker]).unwrap()
}

/// Root of the mean square of the differences.
fn distance(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let squares = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2));
    (squares.sum::<f64>() / a.len() as f64).sqrt()
}

#[test]
fn what_is_written_is_found_again() {
    for dims in [&[1, 1][..], &[7], &[17, 9], &[8, 8], &[3, 3000], &[3000, 3], &[338, 338]] {
        for samples in [1, 5] {
            let file = spec(dims, samples);
            let bytes = test_support::encoded(&Jpeg, &file);
            let count = dims.iter().product();
            let mut content = vec![0; count as usize];
            Content::new(1, 2).fill(Element::UInt8, 0, &mut content);
            // What quality 75 leaves of noise: Pillow's files are 9.52 away at 338 x 338.
            assert!(distance(&pixels(&bytes), &content) < 11.0, "{dims:?}");
            let expected = SampleRead {
                bytes: count,
                file_bytes: bytes.len() as u64,
                samples: 0,
                element: Some(Element::UInt8),
            };
            // All samples are the one image; how many there are is never asked.
            for index in [0, samples - 1, 1000] {
                assert_eq!(test_support::read(&Jpeg, &bytes, index, 4096).unwrap(), expected);
            }
        }
    }
}

#[test]
fn the_estimate_is_close() {
    for dims in [&[338, 338][..], &[1024, 1024], &[8000], &[4, 5000], &[5003, 3], &[100, 101]] {
        let FileSize::About(about) = Jpeg.size(&spec(dims, 1)) else { panic!("exact") };
        let found = encoded(dims).len() as f64;
        assert!((about as f64 / found - 1.0).abs() < 0.06, "{dims:?}: {about} of {found}");
    }
}

#[test]
fn pixels_are_those_that_pillow_decodes() {
    let found = pixels(GRAY);
    let differences = found.iter().zip(GRAY_PIXELS).map(|(a, b)| a.abs_diff(*b));
    assert!(differences.max() <= Some(1), "one is what rounding is worth");
    assert!(distance(&found, GRAY_PIXELS) < 0.2);
    assert_eq!(pixels(RESTARTS), found);
    assert!(distance(&pixels(OPTIMIZED), NOISE) < 40.0, "quality 30");
}

#[test]
fn files_of_pillow_are_read() {
    let check = |file: &[u8], components: u64| {
        let expected = SampleRead {
            bytes: 21 * 35 * components,
            file_bytes: file.len() as u64,
            samples: 0,
            element: Some(Element::UInt8),
        };
        assert_eq!(test_support::read(&Jpeg, file, 0, 4096).unwrap(), expected);
    };
    check(GRAY, 1);
    check(RESTARTS, 1);
    check(OPTIMIZED, 1);
    check(include_bytes!("../../golden/image-gray-progressive.jpeg"), 1);
    check(COLOR, 3);
    check(include_bytes!("../../golden/image-color-422.jpeg"), 3);
    check(include_bytes!("../../golden/image-color-444.jpeg"), 3);
    check(include_bytes!("../../golden/image-color-restarts.jpeg"), 3);
    check(PROGRESSIVE, 3);
    check(include_bytes!("../../golden/image-cmyk.jpeg"), 3);
    // Pillow passes over what follows the image, too.
    check(&[GRAY, b"more"].concat(), 1);
    check(&[COLOR, b"more"].concat(), 3);
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    for file in [&encoded(&[9, 17])[..], GRAY, RESTARTS, COLOR, PROGRESSIVE] {
        for len in 0..file.len() {
            message(&file[..len]);
        }
    }
    assert_eq!(message(&GRAY[..700]), "truncated: needs 702 bytes, file has 700");
    assert_eq!(message(&GRAY[..100]), "truncated: needs 102 bytes, file has 100");
}

/// An image that ends early but in good order, as a careful tool would leave it.
#[test]
fn data_that_ends_early_is_an_error_in_spite_of_the_end_marker() {
    for file in [GRAY, RESTARTS, OPTIMIZED] {
        let data = find(file, 0xDA) + 10;
        for len in data..file.len() - 3 {
            let cut = [&file[..len], &[0xFF, 0xD9]].concat();
            test_support::read(&Jpeg, &cut, 0, 4096).expect_err("an image without its end");
        }
    }
    let cut = [&GRAY[..700], &[0xFF, 0xD9]].concat();
    assert_eq!(message(&cut), "jpeg: data at byte 318 cannot be decoded");
}

/// There is no checksum: a changed bit of the data may be another image.
#[test]
fn a_changed_bit_is_an_error_or_another_image() {
    // Sizes that are still believed make the large decoder slow: it gets a bit in seven.
    let ours = encoded(&[9, 17]);
    let gray = [&ours[..], GRAY, RESTARTS, OPTIMIZED].map(|file| (file, 1));
    for (golden, step) in gray.into_iter().chain([(COLOR, 7), (PROGRESSIVE, 7)]) {
        let mut errors = 0;
        for bit in (0..golden.len() * 8).step_by(step) {
            let mut damaged = golden.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Err(error) = test_support::read(&Jpeg, &damaged, 0, 4096) else { continue };
            errors += 1;
            if !matches!(error, DecodeError::Truncated { .. }) {
                assert!(error.to_string().contains(" at byte "), "{error}");
            }
        }
        assert!(errors * step * 2 > golden.len(), "{errors} of {} bits", golden.len() * 8 / step);
    }
}

#[test]
fn arbitrary_damage_never_panics() {
    let golden = [GRAY, RESTARTS, OPTIMIZED, COLOR, PROGRESSIVE];
    let mut draws = vec![0; 20 * 500];
    Content::new(5, 5).fill(Element::UInt8, 0, &mut draws);
    for draw in draws.chunks_exact(20) {
        let mut bytes = golden[usize::from(draw[0]) % golden.len()].to_vec();
        for change in draw[2..2 + 3 * usize::from(draw[1] % 6 + 1)].chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            bytes[at] = change[2];
        }
        // Whatever is in the fields, the answer is a sample or an error.
        let _ = test_support::read(&Jpeg, &bytes, 0, 4096);
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let foreign = "not a jpeg: expected the markers ff d8 ff at byte 0, found";
    assert_eq!(message(b""), format!("{foreign} []"));
    assert_eq!(message(b"\x89PNG\r\n"), format!("{foreign} [89, 50, 4e]"));

    let frame = find(GRAY, 0xC0);
    let check = |at: usize, value: u8, expected: &str| {
        let mut changed = GRAY.to_vec();
        changed[at] = value;
        assert_eq!(message(&changed), expected);
    };
    let unsupported = |what: &str| format!("jpeg: {what} at byte {frame} is not supported");
    check(frame + 1, 0xC3, &unsupported("lossless coding"));
    check(frame + 1, 0xC5, &unsupported("hierarchical coding"));
    check(frame + 1, 0xC9, &unsupported("arithmetic coding"));
    check(frame + 4, 12, &unsupported("a depth of 12 bits"));
    check(frame + 9, 2, &unsupported("an image of 2 components"));
    let mut no_height = GRAY.to_vec();
    no_height[frame + 5..frame + 7].fill(0);
    assert_eq!(message(&no_height), unsupported("a height that is given after the image"));

    let restart = find(RESTARTS, 0xD1);
    let mut changed = RESTARTS.to_vec();
    changed[restart + 1] = 0xD3;
    assert_eq!(
        message(&changed),
        format!("jpeg: expected the next restart marker at byte {restart}, found ff d3")
    );
}

#[test]
fn an_image_larger_than_its_file_can_be_is_refused() {
    let mut large = GRAY.to_vec();
    let frame = find(GRAY, 0xC0);
    large[frame + 5..frame + 9].fill(0xFF);
    assert_eq!(
        message(&large),
        format!(
            "jpeg: the image at byte {frame} would take 4294967296 bytes, the limit is {}",
            512 * GRAY.len() + (1 << 20)
        )
    );
}

#[test]
fn a_sample_takes_the_whole_file() {
    assert_eq!(test_support::ranges(&Jpeg, GRAY, 1).unwrap(), [ByteRange::WHOLE]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let high = spec(&[65_536, 2], 1);
    assert_eq!(Jpeg.size(&high), FileSize::About(u64::MAX));
    let error = Jpeg.encode(&high, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "jpeg: height 65536 is larger than 65535");
}

#[test]
fn buffers_keep_their_size() {
    let (large, small) = (encoded(&[200, 200]), encoded(&[8, 8]));
    let mut scratch = Scratch::new(4096);
    Jpeg.read(&mut &large[..], 0, &mut scratch).unwrap();
    let sizes = (scratch.whole.len(), scratch.decoded.len());
    Jpeg.read(&mut &small[..], 0, &mut scratch).unwrap();
    Jpeg.read(&mut &*COLOR, 0, &mut scratch).unwrap();
    assert_eq!((scratch.whole.len(), scratch.decoded.len()), sizes);
}
