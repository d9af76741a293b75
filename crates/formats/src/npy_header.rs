//! The header of an npy: a magic, a version, and a Python dictionary in text.

use crate::array_sample::{Order, Selection};
use crate::window::Window;
use crate::{DecodeError, Decoded, Element, FileSpec};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy starts the data at a multiple of this.
const ALIGN: usize = 64;
/// NumPy leaves room for the growing axis to become this many digits long.
const GROWTH_DIGITS: usize = 21;
/// Room for the axes of most arrays.
const USUAL_AXES: usize = 8;
/// Enough of a file to know how long its header is.
pub(crate) const PREFIX_BYTES: usize = 12;

/// What a header says about the array after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// Size of the header, which is where the data begins.
    pub(crate) len: u64,
    pub(crate) element: Element,
    /// Size of all elements.
    pub(crate) data_bytes: u64,
    /// Length of the last axis, which is the sample's; 1 for an array without axes.
    pub(crate) samples: u64,
    /// All axes.
    shape: Vec<u64>,
    order: Order,
    is_big_endian: bool,
}

impl Header {
    /// Size of one sample.
    pub(crate) fn sample_bytes(&self) -> u64 {
        self.data_bytes.checked_div(self.samples).unwrap_or(0)
    }

    /// One sample of the array, which has the sample axis last.
    pub(crate) fn sample<'a>(&'a self, name: &'a str, index: u64) -> Selection<'a> {
        let shape = self.shape.split_last().map_or(&[][..], |(_, axes)| axes);
        Selection { shape, index, samples: self.samples, ..self.whole(name) }
    }

    /// All of the array, which is one sample.
    pub(crate) fn whole<'a>(&'a self, name: &'a str) -> Selection<'a> {
        let Header { element, order, is_big_endian, .. } = *self;
        let shape = &self.shape[..];
        Selection { name, element, shape, samples: 1, index: 0, order, is_big_endian }
    }

    /// Refuses a sample the array does not have; `offset` is where the array begins.
    pub(crate) fn check_index(&self, index: u64, offset: u64) -> Decoded<()> {
        if index < self.samples {
            return Ok(());
        }
        let offset = offset.saturating_add(self.len);
        Err(DecodeError::SampleIndex { offset, index, samples: self.samples })
    }
}

/// The header NumPy writes for an array of that type and shape.
pub(crate) fn build(element: Element, shape: &[u64]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let shape_text = match &axes[..] {
        [single] => format!("({single},)"),
        _ => format!("({})", axes.join(", ")),
    };
    let mut text = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': {shape_text}, }}",
        element.descr()
    );
    let first_digits = axes.first().map_or(GROWTH_DIGITS, String::len);
    text.extend(std::iter::repeat_n(' ', GROWTH_DIGITS.saturating_sub(first_digits)));
    wrap(text.as_bytes())
}

/// The header of the array that holds a file's samples.
pub(crate) fn of_samples(file: &FileSpec) -> Vec<u8> {
    build(file.element, &file.shape())
}

/// Adds magic, version, length and padding, in the oldest version whose length field is wide enough.
fn wrap(text: &[u8]) -> Vec<u8> {
    let padded = |prefix: usize| {
        let bare = prefix + text.len() + 1;
        // As in NumPy, a header that is aligned already gets a whole further line of padding.
        bare + ALIGN - bare % ALIGN - prefix
    };
    let mut header = MAGIC.to_vec();
    match u16::try_from(padded(10)) {
        Ok(len) => {
            header.extend([1, 0]);
            header.extend(len.to_le_bytes());
        }
        Err(_) => {
            let len =
                u32::try_from(padded(12)).expect("a shape is much shorter than 4 GiB of text");
            header.extend([2, 0]);
            header.extend(len.to_le_bytes());
        }
    }
    let end = header.len() + if header[6] == 1 { padded(10) } else { padded(12) };
    header.extend(text);
    header.resize(end - 1, b' ');
    header.push(b'\n');
    header
}

/// The length of the header whose first bytes are `prefix`, [`PREFIX_BYTES`] of them if the array
/// has as many. `offset` is where the array begins in its file.
pub(crate) fn header_len(prefix: &[u8], offset: u64) -> Decoded<u64> {
    if !prefix.starts_with(MAGIC) {
        let found = prefix[..prefix.len().min(MAGIC.len())].to_vec();
        return Err(DecodeError::NotNpy { offset, found });
    }
    let short = DecodeError::NpyHeader { offset, expected: "a header of at least 12 bytes" };
    let &[major, minor, a, b, c, d] = prefix[MAGIC.len()..].first_chunk().ok_or(short)?;
    match (major, minor) {
        (1, 0) => Ok(10 + u64::from(u16::from_le_bytes([a, b]))),
        (2 | 3, 0) => Ok(12 + u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => Err(DecodeError::NpyVersion { offset: offset + 6, major, minor }),
    }
}

/// Reads a whole header of the length [`header_len`] gave.
pub(crate) fn parse(header: &[u8], offset: u64) -> Decoded<Header> {
    let text_at = if header.get(6) == Some(&1) { 10 } else { 12 };
    let mut text = Text { bytes: header, at: text_at, offset };
    let (mut element, mut fortran_order, mut shape) = (None, None, None);
    text.expect(b'{', "{")?;
    while !text.take(b'}') {
        match text.string("a key in quotes or }")? {
            "descr" => {
                text.expect(b':', ":")?;
                element = Some(text.element()?);
            }
            "fortran_order" => {
                text.expect(b':', ":")?;
                fortran_order = Some(text.boolean()?);
            }
            "shape" => {
                text.expect(b':', ":")?;
                shape = Some(text.shape()?);
            }
            _ => return Err(text.wrong("descr, fortran_order or shape")),
        }
        if !text.take(b',') {
            text.expect(b'}', ", or }")?;
            break;
        }
    }
    let element = element.ok_or_else(|| text.wrong("a key descr"))?;
    let (element, is_big_endian) = element;
    let is_fortran = fortran_order.ok_or_else(|| text.wrong("a key fortran_order"))?;
    let shape = shape.ok_or_else(|| text.wrong("a key shape"))?;
    let data_bytes = shape.elements.checked_mul(element.size_bytes());
    let data_bytes = data_bytes.ok_or_else(|| text.wrong("an array of less than 2^64 bytes"))?;
    let order = if is_fortran { Order::Fortran } else { Order::C };
    let (len, samples) = (header.len() as u64, shape.axes.last().copied().unwrap_or(1));
    Ok(Header { len, element, data_bytes, samples, shape: shape.axes, order, is_big_endian })
}

/// Reads the header of the array in a member of `size` bytes at `offset` of an archive, whose
/// error `too_short` makes for a member that has not as many bytes as needed.
pub(crate) fn of_member(
    window: &mut Window<'_>,
    offset: u64,
    size: u64,
    too_short: impl Fn(u64) -> DecodeError,
) -> Decoded<Header> {
    let prefix_len = size.min(PREFIX_BYTES as u64);
    let len = header_len(window.exactly(offset, prefix_len)?, offset)?;
    if len > size {
        return Err(too_short(len));
    }
    let header = parse(window.exactly(offset, len)?, offset)?;
    match len.checked_add(header.data_bytes) {
        Some(needed) if needed <= size => Ok(header),
        needed => Err(too_short(needed.unwrap_or(u64::MAX))),
    }
}

/// What matters of a shape.
struct Shape {
    elements: u64,
    axes: Vec<u64>,
}

/// The dictionary's text and how far it has been read.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begins in its file.
    offset: u64,
}

impl<'a> Text<'a> {
    fn wrong(&self, expected: &'static str) -> DecodeError {
        DecodeError::NpyHeader { offset: self.offset + self.at as u64, expected }
    }

    fn skip_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Decoded<()> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    fn string(&mut self, expected: &'static str) -> Decoded<&'a str> {
        let quote = if self.take(b'\'') {
            b'\''
        } else if self.take(b'"') {
            b'"'
        } else {
            return Err(self.wrong(expected));
        };
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == quote);
        let end = end.ok_or_else(|| self.wrong("a closing quote"))?;
        let text = str::from_utf8(&rest[..end]).map_err(|_| self.wrong("text"))?;
        self.at += end + 1;
        Ok(text)
    }

    /// The element type, and whether it is big-endian.
    fn element(&mut self) -> Decoded<(Element, bool)> {
        let offset = self.offset + self.at as u64;
        let descr = self.string("an element type in quotes")?;
        let element = Element::from_descr(descr)
            .ok_or_else(|| DecodeError::ElementType { offset, descr: descr.to_owned() })?;
        Ok((element, descr.starts_with('>')))
    }

    fn boolean(&mut self) -> Decoded<bool> {
        self.skip_space();
        let rest = &self.bytes[self.at..];
        let words = [(&b"True"[..], true), (b"False", false)];
        let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
        let (word, value) = found.ok_or_else(|| self.wrong("True or False"))?;
        self.at += word.len();
        Ok(value)
    }

    fn shape(&mut self) -> Decoded<Shape> {
        self.expect(b'(', "(")?;
        let mut shape = Shape { elements: 1, axes: Vec::with_capacity(USUAL_AXES) };
        while !self.take(b')') {
            let axis = self.number()?;
            shape.axes.push(axis);
            let elements = shape.elements.checked_mul(axis);
            shape.elements = elements.ok_or_else(|| self.wrong("less than 2^64 elements"))?;
            if !self.take(b',') {
                self.expect(b')', ", or )")?;
                break;
            }
        }
        Ok(shape)
    }

    fn number(&mut self) -> Decoded<u64> {
        self.skip_space();
        let rest = &self.bytes[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = str::from_utf8(&rest[..digits]).ok().and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.wrong("a length below 2^64"))?;
        self.at += digits;
        // Python 2 marked long integers, and NumPy still reads its files.
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'L'));
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn parsed(header: &[u8]) -> Result<Header, DecodeError> {
        let len = header_len(&header[..header.len().min(PREFIX_BYTES)], 0)?;
        assert_eq!(len, header.len() as u64);
        parse(header, 0)
    }

    /// A version 1 header around a dictionary of our own.
    fn with_text(text: &str) -> Vec<u8> {
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend((text.len() as u16).to_le_bytes());
        header.extend(text.as_bytes());
        header
    }

    #[test]
    fn headers_are_those_numpy_writes() {
        let lines: Vec<&str> = include_str!("../golden/headers.txt").lines().collect();
        assert_eq!(lines.len(), 5 * Element::ALL.len());
        for line in lines {
            let (array, golden) = line.split_once("; ").unwrap();
            let (dtype, axes) = array.split_once(' ').unwrap();
            let element = Element::parse(dtype).unwrap();
            let axes = axes.split(',').filter(|axis| !axis.is_empty());
            let shape: Vec<u64> = axes.map(|axis| axis.parse().unwrap()).collect();

            let header = build(element, &shape);
            assert_eq!(hex(&header), golden, "{array}");
            let found = parsed(&header).unwrap();
            assert_eq!(found.data_bytes, shape.iter().product::<u64>() * element.size_bytes());
            assert_eq!(found.samples, shape.last().copied().unwrap_or(1));
            assert_eq!(found.element, element);
        }
    }

    #[test]
    fn a_header_too_long_for_version_1_is_version_2() {
        let shape = vec![1; 30_000];
        let header = build(Element::UInt8, &shape);
        assert_eq!(header[..8], *b"\x93NUMPY\x02\x00");
        assert_eq!(header.len() % ALIGN, 0);
        assert_eq!(parsed(&header).unwrap().data_bytes, 1);
    }

    #[test]
    fn keys_come_in_any_order_and_spacing() {
        for text in [
            "{'shape': (2, 3L), 'descr': '<f4', 'fortran_order': True}\n",
            "{ \"fortran_order\":False ,\"shape\":(2,3,),\"descr\":\">f4\",}  \n",
        ] {
            let found = parsed(&with_text(text)).unwrap();
            assert_eq!((found.data_bytes, found.samples, found.sample_bytes()), (24, 3, 8));
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_byte() {
        let check = |text: &str, message: &str| {
            assert_eq!(parsed(&with_text(text)).unwrap_err().to_string(), message, "{text}");
        };
        check("[]", "npy header at byte 10: expected {");
        check("{'shape': 3}", "npy header at byte 20: expected (");
        check("{'shape': (3 4)}", "npy header at byte 23: expected , or )");
        check("{'shape': (-1,)}", "npy header at byte 21: expected a length below 2^64");
        check("{'descr': 'x", "npy header at byte 21: expected a closing quote");
        check("{'fortran_order': 1}", "npy header at byte 28: expected True or False");
        check("{'order': 1}", "npy header at byte 18: expected descr, fortran_order or shape");
        check("{}", "npy header at byte 12: expected a key descr");
        check("{'descr': '<f4'}", "npy header at byte 26: expected a key fortran_order");
        let stranger = "element type \"<U8\" is not a plain number type";
        check("{'descr': '<U8'}", &format!("npy header at byte 19: {stranger}"));
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}";
        check(huge, "npy header at byte 83: expected an array of less than 2^64 bytes");
    }

    #[test]
    fn foreign_files_and_future_versions_are_refused() {
        let message = |bytes: &[u8]| header_len(bytes, 57).unwrap_err().to_string();
        assert_eq!(
            message(b"\x89PNG\r\n\x1a\n...."),
            "not an npy: begins with [89, 50, 4e, 47, 0d, 0a] at byte 57"
        );
        assert_eq!(message(b""), "not an npy: begins with [] at byte 57");
        let future = "npy version 4.0 at byte 63, expected 1.0, 2.0 or 3.0";
        assert_eq!(message(b"\x93NUMPY\x04\x00\x10\x00\x00\x00"), future);
    }
}
