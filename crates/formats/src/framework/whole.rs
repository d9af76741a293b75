//! Readers that go through a whole file: Pillow's images and pandas' text.
//!
//! The file is brought into memory by the library's calls; Feedline's own decoder then works on it
//! there.

use super::library::{
    GZIP_READ_BYTES, Libraries, PANDAS_TEXT_BYTES, PILLOW_DECODER_BYTES, PILLOW_PREFIX_BYTES,
};
use super::python_file::PythonFile;
use crate::image::be32;
use crate::sample_sink::{Decode, Request, decode_opened};
use crate::{ByteSource, DecodeError, Decoded, Opened, SampleRead, SampleSink, Scratch};

/// Whose calls bring the file into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// Pillow's `Image.open` and `load` of a JPEG.
    PillowJpeg,
    /// The same of a PNG.
    PillowPng,
    /// `pd.read_csv`.
    PandasText,
    /// `pd.read_csv` of compressed text.
    PandasGzip,
}

/// A file of which nothing is known yet.
pub(super) struct WholeFile {
    pub(super) calls: Calls,
    pub(super) libraries: Libraries,
    /// Decodes what is in memory.
    pub(super) decoder: Box<dyn Opened>,
}

impl Decode for WholeFile {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let mut memory = std::mem::take(&mut scratch.file);
        let brought = self.bring(source, scratch, &mut memory);
        let read = brought.and_then(|(len, pulled)| {
            let request = Request { source: &mut &memory[..len], index, scratch };
            let decoded = decode_opened(&mut *self.decoder, request, sink)?;
            Ok(SampleRead { file_bytes: pulled, ..decoded })
        });
        scratch.file = memory;
        read
    }
}

impl WholeFile {
    /// Brings the file to the front of `memory`: its size, and the bytes that were read.
    fn bring(
        &self,
        source: &mut dyn ByteSource,
        scratch: &mut Scratch,
        memory: &mut Vec<u8>,
    ) -> Decoded<(usize, u64)> {
        if self.calls == Calls::PandasText {
            // pandas asks whether there is a file before it opens it.
            source.len().map_err(|source| DecodeError::Size { source })?;
        }
        let mut file = scratch.buffered.open(source, self.libraries.python)?;
        let mut image = Image::new(&file, memory)?;
        match self.calls {
            Calls::PillowJpeg => jpeg(&mut file, &mut image)?,
            Calls::PillowPng => png(&mut file, &mut image)?,
            Calls::PandasText => while image.read(&mut file, PANDAS_TEXT_BYTES)? > 0 {},
            Calls::PandasGzip => gzip(&mut file, &mut image)?,
        }
        Ok((image.len, file.pulled()))
    }
}

/// A file in memory, every byte at its place.
struct Image<'m> {
    memory: &'m mut Vec<u8>,
    len: usize,
}

impl<'m> Image<'m> {
    fn new(file: &PythonFile<'_>, memory: &'m mut Vec<u8>) -> Decoded<Image<'m>> {
        let too_much = || DecodeError::TooMuch {
            format: "file",
            what: "the file",
            offset: 0,
            needed: file.len(),
            limit: isize::MAX as u64,
        };
        let len = usize::try_from(file.len()).map_err(|_| too_much())?;
        // A read may ask for more than there is.
        let room = len.checked_add(PANDAS_TEXT_BYTES).ok_or_else(too_much)?;
        if memory.len() < room {
            memory.try_reserve_exact(room - memory.len()).map_err(|_| too_much())?;
            memory.resize(room, 0);
        }
        Ok(Image { memory, len })
    }

    /// `read(len)` of the file, to its place.
    fn read(&mut self, file: &mut PythonFile<'_>, len: usize) -> Decoded<usize> {
        let at = usize::try_from(file.at()).unwrap_or(usize::MAX).min(self.len);
        // What a damaged file announces is asked for as far as the file goes.
        let len = len.min(self.memory.len() - at);
        file.read(&mut self.memory[at..at + len])
    }

    /// The last `N` bytes that were read, if the file has as many.
    fn next<const N: usize>(
        &mut self,
        file: &mut PythonFile<'_>,
    ) -> Result<Option<[u8; N]>, DecodeError> {
        let at = usize::try_from(file.at()).unwrap_or(usize::MAX);
        match self.read(file, N)? {
            found if found == N => Ok(self.memory[at..].first_chunk().copied()),
            _ => Ok(None),
        }
    }
}

/// The format is recognized by the first bytes; markers are read up to the scan; the decoder then gets the
/// file from its beginning until it has seen its end.
fn jpeg(file: &mut PythonFile<'_>, image: &mut Image<'_>) -> Decoded<()> {
    const START_OF_SCAN: u8 = 0xDA;
    image.read(file, PILLOW_PREFIX_BYTES)?;
    file.seek(2);
    while let Some([_, marker]) = image.next(file)? {
        let Some([high, low]) = image.next(file)? else { break };
        image.read(file, usize::from(u16::from_be_bytes([high, low])).saturating_sub(2))?;
        if marker == START_OF_SCAN {
            break;
        }
    }
    file.seek(0);
    while file.at() < file.len() {
        image.read(file, PILLOW_DECODER_BYTES)?;
    }
    Ok(())
}

/// The format is recognized by the first bytes; chunks are read one by one, those with pixels in blocks.
fn png(file: &mut PythonFile<'_>, image: &mut Image<'_>) -> Decoded<()> {
    const CHECKSUM_BYTES: usize = 4;
    image.read(file, PILLOW_PREFIX_BYTES)?;
    file.seek(8);
    while let Some(head) = image.next::<8>(file)? {
        let mut left = be32(&head, 0).unwrap_or(0) as usize;
        let is_pixels = head.ends_with(b"IDAT");
        let block = if is_pixels { PILLOW_DECODER_BYTES } else { left };
        while left > 0 {
            match image.read(file, left.min(block))? {
                0 => return Ok(()),
                found => left -= found,
            }
        }
        if head.ends_with(b"IEND") {
            break;
        }
        image.read(file, CHECKSUM_BYTES)?;
    }
    // The last checksum is not asked for, but it came with the chunk before it.
    bring_rest(file, image)
}

/// Text is expanded until it ends; the end is looked for three times more: for padding, for another
/// member, and once more when the parser asks for more text.
fn gzip(file: &mut PythonFile<'_>, image: &mut Image<'_>) -> Decoded<()> {
    const HEADER_BYTES: usize = 10;
    const NAME_FLAG: u8 = 8;
    if let Some(header) = image.next::<HEADER_BYTES>(file)?
        && header[3] & NAME_FLAG != 0
    {
        while image.next::<1>(file)?.is_some_and(|[byte]| byte != 0) {}
    }
    while image.read(file, GZIP_READ_BYTES)? == GZIP_READ_BYTES {}
    for len in [1, 2, 2] {
        image.read(file, len)?;
    }
    Ok(())
}

/// Moves what is already in the file's buffer into the image, so that the decoder sees it.
fn bring_rest(file: &mut PythonFile<'_>, image: &mut Image<'_>) -> Decoded<()> {
    let left = file.buffered_bytes();
    image.read(file, left)?;
    Ok(())
}
