//! `synthetic`: files that exist so that they can be counted, samples that cost no storage at all.

use crate::sample_sink::{Decode, Request};
use crate::writer::Writer;
use crate::{
    ByteRange, ByteSink, ByteSource, Content, Decoded, Encoded, FileSize, FileSpec, Format, Opened,
    ReadUnit, SampleFormat, SampleRead, SampleSink, Scratch,
};

pub(crate) struct Synthetic;

pub(crate) static FACTS: SampleFormat = SampleFormat {
    read_unit: ReadUnit::Nothing,
    ..SampleFormat::new("synthetic", |_| Ok(Box::new(Synthetic)))
};

impl Format for Synthetic {
    fn facts(&self) -> &'static SampleFormat {
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        FileSize::Exact(file.index.to_string().len() as u64)
    }

    fn encode(&self, file: &FileSpec, _content: &Content, sink: &mut dyn ByteSink) -> Encoded<()> {
        Writer::new(sink).put(file.index.to_string().as_bytes())
    }

    fn open(&self, _: &mut dyn ByteSource, _: &mut Scratch) -> Decoded<Box<dyn Opened>> {
        Ok(Box::new(Synthetic))
    }
}

impl Decode for Synthetic {
    fn decode<S: SampleSink>(
        &mut self,
        _request: Request<'_>,
        _sink: &mut S,
    ) -> Decoded<SampleRead> {
        Ok(SampleRead { bytes: 0, file_bytes: 0, samples: 0, element: None })
    }

    fn locate_sample(
        &mut self,
        _request: Request<'_>,
        _ranges: &mut Vec<ByteRange>,
    ) -> Decoded<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, test_support};

    #[test]
    fn the_file_contains_its_list_index_and_reading_touches_nothing() {
        let spec = FileSpec { dims: vec![8], samples: 2, element: Element::UInt8, index: 1024 };
        let mut file = Vec::new();
        Synthetic.encode(&spec, &Content::new(1, 1024), &mut file).unwrap();
        assert_eq!(file, b"1024");
        assert_eq!(Synthetic.size(&spec), FileSize::Exact(4));

        let read = test_support::read(&Synthetic, &[], 7, 0).unwrap();
        assert_eq!((read.bytes, read.file_bytes), (0, 0));
    }
}
