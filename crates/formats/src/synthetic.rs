//! `synthetic`: files that exist so that they can be counted, samples that cost no storage at all.

use crate::writer::Writer;
use crate::{Content, DecodeError, EncodeError, FileSpec, Format, SampleRead, Sink, Source};

/// The format `synthetic`.
pub(crate) struct Synthetic;

impl Format for Synthetic {
    fn name(&self) -> &'static str {
        "synthetic"
    }

    fn encoded_len(&self, file: &FileSpec) -> u64 {
        file.index.to_string().len() as u64
    }

    fn encode(
        &self,
        file: &FileSpec,
        _content: &Content,
        sink: &mut dyn Sink,
    ) -> Result<(), EncodeError> {
        Writer::new(sink).put(file.index.to_string().as_bytes())
    }

    fn read_sample(
        &self,
        _source: &mut dyn Source,
        _index: u64,
        _scratch: &mut [u8],
    ) -> Result<SampleRead, DecodeError> {
        Ok(SampleRead { bytes: 0, file_bytes: 0, samples: 0, element: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;

    #[test]
    fn the_file_contains_its_list_index_and_reading_touches_nothing() {
        let spec = FileSpec { dims: vec![8], samples: 2, element: Element::UInt8, index: 1024 };
        let mut file = Vec::new();
        Synthetic.encode(&spec, &Content::new(1, 1024), &mut file).unwrap();
        assert_eq!(file, b"1024");
        assert_eq!(Synthetic.encoded_len(&spec), 4);

        let nothing: &mut &[u8] = &mut &[][..];
        let read = Synthetic.read_sample(nothing, 7, &mut []).unwrap();
        assert_eq!((read.bytes, read.file_bytes), (0, 0));
    }
}
