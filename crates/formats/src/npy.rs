//! `npy`: one NumPy array per file, sample axis last, read whole.

use crate::array_sample::ArraySample;
use crate::framework::FrameworkReader;
use crate::npy_header::{self, Header};
use crate::sample_sink::{Decode, Request};
use crate::window::Window;
use crate::writer::Writer;
use crate::{
    ByteSink, ByteSource, Content, Decoded, Encoded, FileSize, FileSpec, Format, Opened, ReadUnit,
    SampleFormat, SampleRead, SampleSink, Scratch,
};

pub(crate) struct Npy;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    read_unit: ReadUnit::File,
    has_dali_reader: true,
    framework: Some(FrameworkReader::NumpyArray),
    ..SampleFormat::new("npy", |_| Ok(Box::new(Npy)))
};

impl Format for Npy {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        let header = npy_header::of_samples(file).len() as u64;
        let size = file.payload_bytes().map_or(u64::MAX, |payload| payload.saturating_add(header));
        FileSize::Exact(size)
    }

    fn encode(&self, file: &FileSpec, content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        let payload = file.payload_bytes().ok_or_else(|| file.too_large())?;
        let mut writer = Writer::new(sink);
        writer.put(&npy_header::of_samples(file))?;
        writer.generate(payload, |at, space| content.fill(file.element, at, space))
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(Npy))
    }
}

impl Decode for Npy {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let mut window = Window::new(source, &mut scratch.piece)?;
        let prefix = window.prefix(0)?;
        let header_len = npy_header::header_len(prefix, 0)?;
        let header = npy_header::parse(window.exactly(0, header_len)?, 0)?;
        let end = header.data_bytes.saturating_add(header.len);
        window.check_end(end)?;
        header.check_index(index, 0)?;
        let mut sample = ArraySample::new(sink);
        sample.begin_npy("", &header, index, 0)?;
        window.stream(header.len..end, |piece| sample.put(piece))?;
        sample.finish()?;
        Ok(found(&header, window.pulled()))
    }
}

pub(crate) fn found(header: &Header, file_bytes: u64) -> SampleRead {
    SampleRead {
        bytes: header.sample_bytes(),
        file_bytes,
        samples: header.samples,
        element: Some(header.element),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeError, Element, EncodeError, test_support};

    fn spec(dims: &[u64], samples: u64, element: Element) -> FileSpec {
        FileSpec { dims: dims.to_vec(), samples, element, index: 0 }
    }

    fn encoded(file: &FileSpec) -> Vec<u8> {
        test_support::encoded(&Npy, file)
    }

    fn read(bytes: &[u8], index: u64) -> Result<SampleRead, DecodeError> {
        test_support::read(&Npy, bytes, index, 1000)
    }

    #[test]
    fn what_is_written_is_found_again() {
        for element in Element::ALL {
            for (dims, samples) in [(&[50, 50][..], 1), (&[3], 7), (&[2, 3, 4], 2), (&[], 5)] {
                let file = spec(dims, samples, element);
                let bytes = encoded(&file);
                assert_eq!(Npy.size(&file), FileSize::Exact(bytes.len() as u64));
                let found = read(&bytes, samples - 1).unwrap();
                let expected = SampleRead {
                    bytes: dims.iter().product::<u64>() * element.size_bytes(),
                    file_bytes: bytes.len() as u64,
                    samples,
                    element: Some(element),
                };
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn the_data_is_the_content() {
        let bytes = encoded(&spec(&[40, 40], 1, Element::Float32));
        let mut data = vec![0; 6400];
        Content::new(1, 2).fill(Element::Float32, 0, &mut data);
        assert_eq!(bytes[128..], data);
    }

    #[test]
    fn files_of_numpy_are_read() {
        let check = |bytes: &[u8], element, sample_bytes, samples| {
            let file_bytes = bytes.len() as u64;
            let expected =
                SampleRead { bytes: sample_bytes, file_bytes, samples, element: Some(element) };
            assert_eq!(read(bytes, 0).unwrap(), expected);
        };
        check(include_bytes!("../golden/float16.npy"), Element::Float16, 12, 2);
        check(include_bytes!("../golden/fortran-big-endian.npy"), Element::Int32, 8, 3);
        check(include_bytes!("../golden/no-axes.npy"), Element::Float64, 8, 1);
        check(include_bytes!("../golden/version-2.npy"), Element::UInt8, 6, 1);
        check(include_bytes!("../golden/version-3.npy"), Element::UInt8, 6, 1);
    }

    #[test]
    fn a_truncated_file_is_an_error_at_every_length() {
        let bytes = encoded(&spec(&[5, 5], 2, Element::Int16));
        for len in 0..bytes.len() {
            read(&bytes[..len], 0).expect_err("a file without its end");
        }
        let message = read(&bytes[..200], 0).unwrap_err().to_string();
        assert_eq!(message, "truncated: needs 228 bytes, file has 200");
    }

    #[test]
    fn a_sample_the_file_does_not_have_is_refused() {
        let bytes = encoded(&spec(&[5], 2, Element::UInt8));
        let message = read(&bytes, 2).unwrap_err().to_string();
        assert_eq!(message, "sample 2 asked for, file has 2 (counted up to byte 128)");
    }

    #[test]
    fn a_header_larger_than_the_buffer_is_an_error() {
        let bytes = encoded(&spec(&[5], 2, Element::UInt8));
        let error = test_support::read(&Npy, &bytes, 0, 100).unwrap_err();
        assert_eq!(error.to_string(), "buffer of 100 bytes is too small for 128 bytes at byte 0");
    }

    #[test]
    fn a_file_too_large_to_describe_is_refused() {
        let file = spec(&[1 << 40, 1 << 40], 1, Element::UInt8);
        assert_eq!(Npy.size(&file), FileSize::Exact(u64::MAX));
        let error = Npy.encode(&file, &Content::new(0, 0), &mut Vec::new()).unwrap_err();
        assert!(matches!(error, EncodeError::TooLarge { .. }));
    }
}
