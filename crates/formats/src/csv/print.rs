//! Numbers as pandas prints them, each with a comma after it.

use crate::Element;
use crate::deflate::scaled;

/// Below this, and above zero, NumPy turns to an exponent.
const POSITIONAL_MIN: f64 = 1e-4;

/// Prints little-endian elements of a type that is not complex.
pub(super) fn numbers(element: Element, bytes: &[u8], text: &mut Vec<u8>) {
    match element {
        Element::Bool => each(bytes, text, |[byte], text| {
            text.extend_from_slice(if byte == 0 { b"False" } else { b"True" });
        }),
        Element::UInt8 => small(bytes, text, &UNSIGNED),
        Element::Int8 => small(bytes, text, &SIGNED),
        Element::Int16 => each(bytes, text, |b, text| integer(i16::from_le_bytes(b), text)),
        Element::Int32 => each(bytes, text, |b, text| integer(i32::from_le_bytes(b), text)),
        Element::Int64 => each(bytes, text, |b, text| integer(i64::from_le_bytes(b), text)),
        Element::UInt16 => each(bytes, text, |b, text| integer(u16::from_le_bytes(b), text)),
        Element::UInt32 => each(bytes, text, |b, text| integer(u32::from_le_bytes(b), text)),
        Element::UInt64 => each(bytes, text, |b, text| integer(u64::from_le_bytes(b), text)),
        Element::Float16 => each(bytes, text, |b, text| half(u16::from_le_bytes(b), text)),
        Element::Float32 => each(bytes, text, |b, text| {
            let value = f32::from_le_bytes(b);
            real(value, f64::from(value), text);
        }),
        Element::Float64 | Element::Complex64 | Element::Complex128 => {
            each(bytes, text, |b, text| {
                let value = f64::from_le_bytes(b);
                real(value, value, text);
            })
        }
    }
}

fn each<const N: usize>(
    bytes: &[u8],
    text: &mut Vec<u8>,
    mut print: impl FnMut([u8; N], &mut Vec<u8>),
) {
    for number in bytes.as_chunks::<N>().0 {
        print(*number, text);
        text.push(b',');
    }
}

fn integer(value: impl itoa::Integer, text: &mut Vec<u8>) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The text of a byte, comma included, and its length.
#[derive(Clone, Copy)]
struct Small {
    text: [u8; 5],
    len: u8,
}

static UNSIGNED: [Small; 256] = smalls(false);
static SIGNED: [Small; 256] = smalls(true);

const fn smalls(signed: bool) -> [Small; 256] {
    let mut table = [Small { text: [0; 5], len: 0 }; 256];
    let mut byte = 0;
    while byte < table.len() {
        let negative = signed && byte >= 128;
        let magnitude = if negative { 256 - byte } else { byte };
        let mut small = Small { text: [0; 5], len: 0 };
        let mut power = 100;
        if negative {
            small.text[0] = b'-';
            small.len = 1;
        }
        while power > 0 {
            if magnitude >= power || power == 1 {
                small.text[small.len as usize] = b'0' + (magnitude / power % 10) as u8;
                small.len += 1;
            }
            power /= 10;
        }
        small.text[small.len as usize] = b',';
        small.len += 1;
        table[byte] = small;
        byte += 1;
    }
    table
}

/// Bytes are what most samples are made of: five bytes are copied and as many kept as belong to the
/// number, which needs no decision.
fn small(bytes: &[u8], text: &mut Vec<u8>, table: &[Small; 256]) {
    let start = text.len();
    text.resize(start + bytes.len() * 5, 0);
    let mut at = start;
    for byte in bytes {
        let small = table[usize::from(*byte)];
        text[at..at + 5].copy_from_slice(&small.text);
        at += usize::from(small.len);
    }
    text.truncate(at);
}

/// A float that is zero, or positive and less than 1, as NumPy prints it.
fn real(value: impl zmij::Float + std::fmt::LowerExp, wide: f64, text: &mut Vec<u8>) {
    if wide == 0.0 || wide >= POSITIONAL_MIN {
        text.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        return;
    }
    // One number in ten thousand comes here.
    let exponential = format!("{value:e}");
    let (digits, exponent) = exponential.split_once("e-").unwrap_or((&exponential, "0"));
    text.extend_from_slice(digits.as_bytes());
    text.extend_from_slice(if exponent.len() < 2 { b"e-0" } else { b"e-" });
    text.extend_from_slice(exponent.as_bytes());
}

/// A half that is a multiple of 2^-11 and less than 1, as [`Content`](crate::Content) makes them.
///
/// The shortest text is the one with the fewest decimals between the middles to its neighbors; of
/// two with as many, the nearer. All in units of 2^-23, in which the middles are whole numbers.
fn half(bits: u16, text: &mut Vec<u8>) {
    let (exponent, fraction) = (u32::from(bits >> 10), u64::from(bits & 0x3FF));
    // 2^-11 has the exponent 4; less is only zero.
    let Some(shift) = exponent.checked_sub(4).filter(|&shift| shift <= 10) else {
        text.extend_from_slice(b"0.0");
        return;
    };
    let value = (fraction | 0x400) << (shift + 2);
    let above = 1 << (shift + 1);
    // The next power of two below is half as far away.
    let below = if fraction == 0 { above / 2 } else { above };
    let even = fraction.is_multiple_of(2);
    let mut scale = 1;
    for decimals in 1.. {
        scale *= 10;
        let scaled = value * scale;
        let (floor, ceil) = (scaled >> 23, (scaled >> 23) + 1);
        let (down, up) = (scaled - (floor << 23), (ceil << 23) - scaled);
        let fits = |distance: u64, margin: u64| {
            distance < margin * scale || distance == margin * scale && even
        };
        let (down_fits, up_fits) = (fits(down, below), fits(up, above));
        if !down_fits && !up_fits {
            continue;
        }
        let nearer_down = down < up || down == up && floor.is_multiple_of(2);
        let digits = if down_fits && (nearer_down || !up_fits) { floor } else { ceil };
        print_decimal(digits, decimals, text);
        return;
    }
}

/// `digits` with the point `decimals` digits before its end; the digits before it are a 0 or a 1.
fn print_decimal(digits: u64, decimals: usize, text: &mut Vec<u8>) {
    let start = text.len() + 2;
    text.extend_from_slice(b"0.");
    text.resize(start + decimals, b'0');
    let mut rest = digits;
    for place in text[start..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text[start - 2] = b'0' + rest as u8;
}

/// About how long the text of so many elements is.
pub(super) fn text_size(element: Element, elements: u64) -> u64 {
    // Content is uniform: these are the means over all values, in hundredths of a byte.
    let per_100 = match element {
        Element::Bool => 550,
        Element::UInt8 => 357,
        Element::Int8 => 365,
        Element::UInt16 => 583,
        Element::Int16 => 616,
        Element::UInt32 => 1074,
        Element::Int32 => 1098,
        Element::UInt64 => 2040,
        Element::Int64 => 2038,
        Element::Float16 => 672,
        Element::Float32 => 1063,
        Element::Float64 => 1927,
        Element::Complex64 | Element::Complex128 => 0,
    };
    scaled(elements, per_100 * 100)
}
