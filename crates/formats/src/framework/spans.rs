//! Readers that know where a sample is and ask for all of it at once: pyarrow's column chunks, and
//! DLIO's indexed binary through Python's files.

use super::library::Python;
use super::python_file::Buffered;
use crate::sample_sink::{Decode, Request, decode_opened};
use crate::scratch::grow;
use crate::{ByteRange, ByteSource, Companion, Decoded, Opened, SampleRead, SampleSink, Streamed};

/// Whose file the bytes of a sample come through.
#[derive(Debug, Clone, Copy)]
pub(super) enum Through {
    /// None: one call each.
    Nothing,
    /// Python's buffered file, by `readinto`.
    PythonFile(Python),
}

/// A file whose samples are found by the format's own index.
pub(super) struct Located {
    inner: Box<dyn Opened>,
    through: Through,
    ranges: Vec<ByteRange>,
}

impl Located {
    pub(super) fn new(inner: Box<dyn Opened>, through: Through) -> Located {
        Located { inner, through, ranges: Vec::new() }
    }

    fn read_spans<S: SampleSink>(
        &mut self,
        Request { source, index, scratch }: Request<'_>,
        memory: &mut Vec<u8>,
        sink: &mut S,
    ) -> Decoded<SampleRead> {
        let Located { inner, through, ranges } = self;
        ranges.clear();
        let mut buffered = std::mem::take(&mut scratch.buffered);
        let mut spans = Spans::new(source, *through, memory, &mut buffered);
        let read = inner.locate(&mut spans, index, scratch, ranges).and_then(|()| {
            spans.ranges = ranges;
            decode_opened(&mut **inner, Request { source: &mut spans, index, scratch }, sink)
        });
        scratch.buffered = buffered;
        read
    }
}

impl Decode for Located {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let mut memory = std::mem::take(&mut scratch.file);
        let read = self.read_spans(Request { source, index, scratch }, &mut memory, sink);
        scratch.file = memory;
        read
    }
}

/// A file of which whole ranges are read with one call, whatever part of them is asked for.
pub(super) struct Spans<'a> {
    source: &'a mut dyn ByteSource,
    through: Through,
    ranges: &'a [ByteRange],
    memory: &'a mut Vec<u8>,
    buffered: &'a mut Buffered,
    /// Which bytes of the file are in memory.
    held: std::ops::Range<u64>,
    len: Option<u64>,
}

impl<'a> Spans<'a> {
    pub(super) fn new(
        source: &'a mut dyn ByteSource,
        through: Through,
        memory: &'a mut Vec<u8>,
        buffered: &'a mut Buffered,
    ) -> Spans<'a> {
        Spans { source, through, ranges: &[], memory, buffered, held: 0..0, len: None }
    }

    /// Brings the range into memory that holds these bytes, if one does.
    fn bring(&mut self, offset: u64, end: u64) -> Streamed<()> {
        let holds = |range: &&ByteRange| {
            let range_end = range.len.map(|len| range.offset.saturating_add(len));
            range.offset <= offset && range_end.is_some_and(|range_end| end <= range_end)
        };
        let Some(range) = self.ranges.iter().find(holds) else { return Ok(()) };
        let len = usize::try_from(range.len.unwrap_or(0))?;
        self.held = 0..0;
        let into = grow(self.memory, len);
        match self.through {
            Through::Nothing => self.source.read_exact_at(range.offset, into)?,
            Through::PythonFile(python) => {
                let mut file = self.buffered.resume(self.source, python);
                file.seek(range.offset);
                file.read_exact_into(into)?;
            }
        }
        self.held = range.offset..range.offset + len as u64;
        Ok(())
    }
}

impl ByteSource for Spans<'_> {
    fn len(&mut self) -> Streamed<u64> {
        if let Some(len) = self.len {
            return Ok(len);
        }
        let len = match self.through {
            Through::Nothing => self.source.len()?,
            Through::PythonFile(python) => self.buffered.open(self.source, python)?.len(),
        };
        self.len = Some(len);
        Ok(len)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        let end = offset.saturating_add(buf.len() as u64);
        let is_held = |held: &std::ops::Range<u64>| held.start <= offset && end <= held.end;
        if !is_held(&self.held) {
            self.bring(offset, end)?;
        }
        if !is_held(&self.held) {
            return self.source.read_exact_at(offset, buf);
        }
        let from = (offset - self.held.start) as usize;
        buf.copy_from_slice(&self.memory[from..from + buf.len()]);
        Ok(())
    }

    fn companion(&mut self, which: &Companion) -> Streamed<Box<dyn ByteSource + '_>> {
        let source = self.source.companion(which)?;
        Ok(match self.through {
            Through::Nothing => source,
            Through::PythonFile(python) => {
                Box::new(IndexFile { source, python, buffered: Buffered::default(), len: None })
            }
        })
    }
}

/// An index file that is read through Python's buffered file.
struct IndexFile<'a> {
    source: Box<dyn ByteSource + 'a>,
    python: Python,
    buffered: Buffered,
    len: Option<u64>,
}

impl ByteSource for IndexFile<'_> {
    fn len(&mut self) -> Streamed<u64> {
        match self.len {
            Some(len) => Ok(len),
            None => {
                let len = self.buffered.open(self.source.as_mut(), self.python)?.len();
                Ok(*self.len.insert(len))
            }
        }
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        self.len()?;
        let mut file = self.buffered.resume(self.source.as_mut(), self.python);
        file.seek(offset);
        Ok(file.read_exact_into(buf)?)
    }

    fn piece_bytes(&self) -> usize {
        usize::MAX
    }
}
