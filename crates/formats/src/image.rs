//! What both image formats share: the shape of the one image in a file, and the way into memory.

use crate::scratch::try_grow;
use crate::window::fetch;
use crate::{ByteSource, DecodeError, Decoded, Element, EncodeError, Encoded, FileSpec};

/// Rows and columns of the image that a file holds, whatever its number of samples is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) height: u32,
    pub(crate) width: u32,
}

impl Size {
    /// The image that the samples of `file` are, no side longer than `limit`.
    ///
    /// One axis makes an image of one column, as in Pillow.
    pub(crate) fn of(format: &'static str, limit: u32, file: &FileSpec) -> Encoded<Size> {
        let refuse = |what: String| EncodeError::Layout { format, what };
        if file.element != Element::UInt8 {
            return Err(refuse(format!("pixels are uint8, not {}", file.element.name())));
        }
        let (height, width) = match file.dims[..] {
            [height] => (height, 1),
            [height, width] => (height, width),
            _ => {
                let axes = file.dims.len();
                return Err(refuse(format!("an image has one or two axes, not {axes}")));
            }
        };
        let side = |name: &str, pixels: u64| match u32::try_from(pixels) {
            Ok(0) => Err(refuse(format!("an image of {name} 0 cannot be stored"))),
            Ok(pixels) if pixels <= limit => Ok(pixels),
            _ => Err(refuse(format!("{name} {pixels} is larger than {limit}"))),
        };
        Ok(Size { height: side("height", height)?, width: side("width", width)? })
    }

    pub(crate) fn pixels(self) -> u64 {
        u64::from(self.height) * u64::from(self.width)
    }
}

/// Reads all of the file to the front of `whole`, which keeps its size; returns the file's bytes.
pub(crate) fn load<'a>(source: &mut dyn ByteSource, whole: &'a mut Vec<u8>) -> Decoded<&'a [u8]> {
    let len = source.len().map_err(|source| DecodeError::Size { source })?;
    let piece = source.piece_bytes().max(1);
    let file = try_grow(whole, len, ("image", "the file"))?;
    let mut offset = 0;
    for target in file.chunks_mut(piece) {
        fetch(source, offset, target)?;
        offset += target.len() as u64;
    }
    Ok(file)
}

/// A big-endian number of two bytes at `at`, if there are as many.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|&word| u16::from_be_bytes(word))
}

/// A big-endian number of four bytes at `at`, if there are as many.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|&word| u32::from_be_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamError;

    fn size(dims: &[u64], element: Element) -> Result<Size, String> {
        let file = FileSpec { dims: dims.to_vec(), samples: 3, element, index: 0 };
        Size::of("jpeg", 65_535, &file).map_err(|error| error.to_string())
    }

    #[test]
    fn one_axis_is_a_column_and_two_are_height_and_width() {
        assert_eq!(size(&[7], Element::UInt8), Ok(Size { height: 7, width: 1 }));
        assert_eq!(size(&[7, 9], Element::UInt8), Ok(Size { height: 7, width: 9 }));
        assert_eq!(size(&[65_535, 1], Element::UInt8), Ok(Size { height: 65_535, width: 1 }));
    }

    #[test]
    fn what_is_no_image_is_refused_with_the_limit() {
        let check = |dims: &[u64], element, message: &str| {
            assert_eq!(size(dims, element), Err(message.to_owned()));
        };
        check(&[], Element::UInt8, "jpeg: an image has one or two axes, not 0");
        check(&[2, 3, 4], Element::UInt8, "jpeg: an image has one or two axes, not 3");
        check(&[2, 0], Element::UInt8, "jpeg: an image of width 0 cannot be stored");
        check(&[65_536, 2], Element::UInt8, "jpeg: height 65536 is larger than 65535");
        check(&[2, 1 << 40], Element::UInt8, "jpeg: width 1099511627776 is larger than 65535");
        check(&[2, 2], Element::Float32, "jpeg: pixels are uint8, not float32");
    }

    #[test]
    fn a_file_is_read_in_pieces_and_the_buffer_keeps_its_size() {
        struct Noting<'a>(&'a [u8], Vec<(u64, usize)>);
        impl ByteSource for Noting<'_> {
            fn len(&mut self) -> Result<u64, StreamError> {
                Ok(self.0.len() as u64)
            }
            fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
                self.1.push((offset, buf.len()));
                self.0.read_exact_at(offset, buf)
            }
            fn piece_bytes(&self) -> usize {
                4
            }
        }
        let mut whole = vec![9; 12];
        let mut source = Noting(b"0123456789", vec![]);
        assert_eq!(load(&mut source, &mut whole).unwrap(), b"0123456789");
        assert_eq!(source.1, [(0, 4), (4, 4), (8, 2)]);
        assert_eq!(whole.len(), 12);
        assert_eq!(load(&mut Noting(b"", vec![]), &mut whole).unwrap(), b"");
    }
}
