//! Readers that go through a file front to back and keep a buffer between samples: TensorFlow's
//! record reader, and `tarfile` under WebDataset.

use std::io::ErrorKind;

use super::library::{Libraries, TAR_PROBE_BYTES, TAR_RECORD_BYTES};
use super::python_file::Buffered;
use crate::sample_sink::{Decode, Request, decode_opened};
use crate::{ByteSource, Decoded, Opened, SampleRead, SampleSink, Streamed};

/// A file and the stream that its calls go through.
pub(super) struct StreamedFile<S> {
    pub(super) inner: Box<dyn Opened>,
    pub(super) stream: S,
}

/// What is kept of a stream between samples.
pub(super) trait Stream: Send {
    /// The file seen through the stream.
    type Through<'a>: ByteSource
    where
        Self: 'a;

    /// Puts the stream in front of the file that it was opened on.
    fn through<'a>(&'a mut self, source: &'a mut dyn ByteSource) -> Self::Through<'a>;
}

impl<T: Stream> Decode for StreamedFile<T> {
    fn decode<S: SampleSink>(&mut self, request: Request<'_>, sink: &mut S) -> Decoded<SampleRead> {
        let Request { source, index, scratch } = request;
        let StreamedFile { inner, stream } = self;
        let source = &mut stream.through(source);
        decode_opened(&mut **inner, Request { source, index, scratch }, sink)
    }
}

/// TensorFlow's `BufferedInputStream`: fills its buffer until the file ends, asks for no sizes.
pub(super) struct RecordStream {
    memory: Vec<u8>,
    start: u64,
    filled: usize,
    /// Where the file ends, once that was seen.
    end: Option<u64>,
}

impl RecordStream {
    pub(super) fn new(libraries: Libraries) -> RecordStream {
        let memory = vec![0; libraries.record_buffer_bytes.max(1)];
        RecordStream { memory, start: 0, filled: 0, end: None }
    }

    /// Fills the buffer from `start` on.
    fn fill(&mut self, source: &mut dyn ByteSource, start: u64) -> Streamed<()> {
        (self.start, self.filled) = (start, 0);
        while self.filled < self.memory.len() {
            let at = start + self.filled as u64;
            match source.read_up_to(at, &mut self.memory[self.filled..])? {
                0 => {
                    self.end = Some(at);
                    break;
                }
                found => self.filled += found,
            }
        }
        Ok(())
    }
}

impl Stream for RecordStream {
    type Through<'a> = Records<'a>;

    fn through<'a>(&'a mut self, source: &'a mut dyn ByteSource) -> Records<'a> {
        Records { source, stream: self }
    }
}

/// A file of records, seen through the stream.
pub(super) struct Records<'a> {
    source: &'a mut dyn ByteSource,
    stream: &'a mut RecordStream,
}

impl ByteSource for Records<'_> {
    /// Unknown until the end was seen.
    fn len(&mut self) -> Streamed<u64> {
        Ok(self.stream.end.unwrap_or(u64::MAX))
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<usize> {
        let size = self.stream.memory.len() as u64;
        let mut done = 0;
        while done < buf.len() {
            let at = offset.saturating_add(done as u64);
            if self.stream.end.is_some_and(|end| at >= end) {
                break;
            }
            let held = self.stream.start..self.stream.start + self.stream.filled as u64;
            if !held.contains(&at) {
                self.stream.fill(self.source, at / size * size)?;
                continue;
            }
            let from = (at - held.start) as usize;
            let part = (self.stream.filled - from).min(buf.len() - done);
            buf[done..done + part].copy_from_slice(&self.stream.memory[from..from + part]);
            done += part;
        }
        Ok(done)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        match self.read_up_to(offset, buf)? {
            found if found == buf.len() => Ok(()),
            _ => Err(std::io::Error::from(ErrorKind::UnexpectedEof).into()),
        }
    }

    fn piece_bytes(&self) -> usize {
        self.stream.memory.len()
    }
}

/// `tarfile.open(fileobj, mode="r|*")`: one block to tell the compression, then records of 10 KiB,
/// through Python's buffered file.
pub(super) struct TarStream {
    libraries: Libraries,
    buffered: Buffered,
    /// Size of the file, once it is open.
    len: Option<u64>,
    /// What was read and may still be asked for.
    held: Vec<u8>,
    start: u64,
}

impl TarStream {
    pub(super) fn new(libraries: Libraries) -> TarStream {
        TarStream {
            libraries,
            buffered: Buffered::default(),
            len: None,
            held: Vec::new(),
            start: 0,
        }
    }
}

impl Stream for TarStream {
    type Through<'a> = Archive<'a>;

    fn through<'a>(&'a mut self, source: &'a mut dyn ByteSource) -> Archive<'a> {
        Archive { source, stream: self }
    }
}

/// A tar archive, seen through the stream.
pub(super) struct Archive<'a> {
    source: &'a mut dyn ByteSource,
    stream: &'a mut TarStream,
}

impl ByteSource for Archive<'_> {
    fn len(&mut self) -> Streamed<u64> {
        let TarStream { libraries, buffered, len, .. } = &mut *self.stream;
        match *len {
            Some(len) => Ok(len),
            None => Ok(*len.insert(buffered.open(self.source, libraries.python)?.len())),
        }
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Streamed<()> {
        self.len()?;
        let TarStream { libraries, buffered, held, start, .. } = &mut *self.stream;
        let mut file = buffered.resume(self.source, libraries.python);
        if offset < *start {
            // A stream is never read backwards; a program that has to opens it again.
            file.seek(0);
            (*start, *held) = (0, Vec::new());
        }
        let end = offset.saturating_add(buf.len() as u64);
        while *start + (held.len() as u64) < end {
            let passed = usize::try_from(offset - *start).unwrap_or(usize::MAX).min(held.len());
            held.drain(..passed);
            *start += passed as u64;
            let begin = held.len();
            let asked = if file.at() == 0 { TAR_PROBE_BYTES } else { TAR_RECORD_BYTES };
            held.resize(begin + asked, 0);
            let found = file.read(&mut held[begin..])?;
            held.truncate(begin + found);
            if found == 0 {
                return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into());
            }
        }
        let from = (offset - *start) as usize;
        buf.copy_from_slice(&held[from..from + buf.len()]);
        Ok(())
    }

    /// A block of the archive: a record is read when its first byte is needed, not before.
    fn piece_bytes(&self) -> usize {
        TAR_PROBE_BYTES
    }
}
