//! A file of text as pieces of whole lines, whether it is compressed or not.
//!
//! A gzip file may have many members, as DFTracer's have. A truncated one gives what comes before
//! the cut, and one that is damaged is left for the next member: each begins at the start of a line.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::GzDecoder;

use crate::file_slice::{FileSlice, Region};

/// Text of a piece; the last line of a piece may make it longer.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// A line that is longer than this is not a record.
pub(crate) const LINE_LIMIT: usize = 64 << 20;
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A file, piece by piece.
pub struct Pieces {
    text: Text,
    /// What was read; from `given` on it was not handed out.
    buffer: Vec<u8>,
    given: usize,
    is_at_end: bool,
    /// Damaged places of the compressed file.
    pub damaged: u64,
}

enum Text {
    Plain(BufReader<Region>),
    /// A gzip member, and where it begins.
    Member(Box<GzDecoder<BufReader<Region>>>, u64),
    End,
}

impl Pieces {
    /// Opens a file, compressed or not.
    pub fn open(slice: &FileSlice) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(1 << 18, slice.open()?);
        let is_gzip = file.fill_buf()?.starts_with(&MAGIC[..2]);
        let text = if is_gzip { member(file)? } else { Text::Plain(file) };
        Ok(Self { text, buffer: Vec::new(), given: 0, is_at_end: false, damaged: 0 })
    }

    /// The next whole lines, none at the end.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.drain(..self.given);
        self.given = 0;
        let mut end = None;
        while end.is_none() && !self.is_at_end {
            let from = self.buffer.len();
            self.fill(from + PIECE_BYTES)?;
            end =
                self.buffer[from..].iter().rposition(|byte| *byte == b'\n').map(|at| from + at + 1);
            if end.is_none() && self.buffer.len() > LINE_LIMIT {
                self.skip_line()?;
            }
        }
        self.given = if self.is_at_end { self.buffer.len() } else { end.unwrap_or(0) };
        Ok((self.given > 0).then(|| &self.buffer[..self.given]))
    }

    /// How much of the file was read.
    pub fn position(&mut self) -> u64 {
        match &mut self.text {
            Text::Plain(file) => file.stream_position().unwrap_or(0),
            Text::Member(decoder, _) => decoder.get_mut().stream_position().unwrap_or(0),
            Text::End => u64::MAX,
        }
    }

    /// The next bytes, wherever lines end.
    pub(crate) fn next_bytes(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        self.fill(PIECE_BYTES)?;
        self.given = self.buffer.len();
        Ok((self.given > 0).then(|| &self.buffer[..self.given]))
    }

    /// What a line too long leaves is one byte that is not a record, so that it is counted.
    fn skip_line(&mut self) -> io::Result<()> {
        while !self.is_at_end && !self.buffer.contains(&b'\n') {
            self.buffer.clear();
            self.fill(PIECE_BYTES)?;
        }
        let rest = self.buffer.iter().position(|byte| *byte == b'\n').unwrap_or(self.buffer.len());
        self.buffer.splice(..rest, *b"?");
        Ok(())
    }

    fn fill(&mut self, size: usize) -> io::Result<()> {
        let from = self.buffer.len();
        self.buffer.resize(size, 0);
        let mut filled = from;
        while filled < size {
            match self.read(filled)? {
                0 => {
                    self.is_at_end = true;
                    break;
                }
                bytes => filled += bytes,
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }

    /// Bytes that came, 0 at the end of the file.
    fn read(&mut self, at: usize) -> io::Result<usize> {
        loop {
            let (bytes, decoder, start) = match std::mem::replace(&mut self.text, Text::End) {
                Text::End => return Ok(0),
                Text::Plain(mut file) => {
                    let bytes = file.read(&mut self.buffer[at..])?;
                    self.text = Text::Plain(file);
                    return Ok(bytes);
                }
                Text::Member(mut decoder, start) => {
                    (decoder.read(&mut self.buffer[at..]), decoder, start)
                }
            };
            match bytes {
                Ok(0) => {
                    let (text, is_clean) = following(decoder.into_inner())?;
                    self.text = text;
                    self.damaged += u64::from(!is_clean);
                }
                Ok(bytes) => {
                    self.text = Text::Member(decoder, start);
                    return Ok(bytes);
                }
                Err(error) if is_of_gzip(&error) => {
                    self.damaged += 1;
                    // A decoder that lost its way may have run into the next member.
                    let mut file = decoder.into_inner();
                    file.seek(SeekFrom::Start(start + 1))?;
                    self.text = next_member(file)?;
                    // What follows begins a line; what came before may have been cut off in one.
                    if matches!(self.text, Text::Member(..))
                        && at > 0
                        && self.buffer[at - 1] != b'\n'
                    {
                        self.buffer[at] = b'\n';
                        return Ok(1);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn is_of_gzip(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidInput | InvalidData | UnexpectedEof)
}

fn member(mut file: BufReader<Region>) -> io::Result<Text> {
    let start = file.stream_position()?;
    Ok(Text::Member(Box::new(GzDecoder::new(file)), start))
}

/// Goes to what follows a member: another one, or the end. Zeros in between are padding, anything else
/// is damage.
fn following(mut file: BufReader<Region>) -> io::Result<(Text, bool)> {
    loop {
        let bytes = file.fill_buf()?;
        match bytes.iter().position(|byte| *byte != 0) {
            _ if bytes.is_empty() => return Ok((Text::End, true)),
            Some(at) if bytes[at] == MAGIC[0] => {
                file.consume(at);
                return Ok((member(file)?, true));
            }
            Some(_) => return Ok((next_member(file)?, false)),
            None => {
                let length = bytes.len();
                file.consume(length);
            }
        }
    }
}

/// Goes to the next place that begins like a member. At the end of the buffer a part of the beginning
/// is enough; if it is not one after all, the decoder says so and the search goes on.
fn next_member(mut file: BufReader<Region>) -> io::Result<Text> {
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(Text::End);
        }
        let begins = |at: &usize| {
            let rest = &bytes[*at..];
            MAGIC.starts_with(&rest[..rest.len().min(MAGIC.len())])
        };
        let found = (0..bytes.len()).find(begins);
        let length = bytes.len();
        file.consume(found.unwrap_or(length));
        if found.is_some() {
            return member(file);
        }
    }
}
