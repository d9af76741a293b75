//! The members of a gzip file, each read by itself, so that many threads can read one file.
//!
//! Where members begin is guessed from their first bytes ([`member_starts`]); that a guess was right is known
//! when the member before it ends there ([`Member::next`]). Members of DFTracer hold whole lines; those of
//! other tools may not, so the text before the first and after the last line end is handed out separately.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use flate2::bufread::GzDecoder;

use crate::dftracer::chunk::{Chunk, ParseScope};
use crate::dftracer::pieces::{LINE_LIMIT, MAGIC, PIECE_BYTES, is_of_gzip};
use crate::file_slice::FileSlice;

/// What follows a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The end of the file.
    End,
    /// A member begins at this byte.
    At(u64),
    /// Something else, or the member was damaged: the next one that can be found.
    Any,
}

/// A decompressed and parsed gzip member.
#[derive(Debug)]
pub struct Member {
    /// Its text up to the first line end.
    pub head: Vec<u8>,
    /// The lines after that.
    pub chunks: Vec<Chunk>,
    /// The text after the last line end.
    pub tail: Vec<u8>,
    /// What follows it in the file.
    pub next: Next,
    /// Damaged places: at most this member and what follows it.
    pub damaged: u64,
}

/// Places that look like the beginnings of members; the first is 0. Empty if it is not a gzip file.
pub fn member_starts(slice: &FileSlice) -> io::Result<Vec<u64>> {
    /// Bytes of the smallest gzip header.
    const HEADER: usize = 10;
    let mut region = slice.open()?;
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut held, mut at, mut found) = (0, 0_u64, Vec::new());
    let finder = memchr::memmem::Finder::new(&MAGIC);
    loop {
        let read = region.read(&mut buffer[held..])?;
        held += read;
        if at == 0 && held >= MAGIC.len() && !buffer.starts_with(&MAGIC) {
            return Ok(Vec::new());
        }
        let bytes = &buffer[..held];
        // A header that is cut off by the buffer's end is looked at with the next bytes.
        let whole = if read == 0 { held } else { held.saturating_sub(HEADER - 1) };
        let hits = finder.find_iter(bytes).take_while(|hit| *hit < whole);
        // The upper bits of the flags are reserved.
        let hits = hits.filter(|hit| bytes.get(hit + 3).is_some_and(|flags| flags & 0xe0 == 0));
        found.extend(hits.map(|hit| at + hit as u64));
        if read == 0 {
            return Ok(found);
        }
        buffer.copy_within(whole..held, 0);
        held -= whole;
        at += whole as u64;
    }
}

/// Reads the member that begins at a place.
pub fn read_member(slice: &FileSlice, start: u64, scope: ParseScope) -> io::Result<Member> {
    let mut file = BufReader::with_capacity(1 << 16, slice.open()?);
    file.seek(SeekFrom::Start(start))?;
    let mut decoder = GzDecoder::new(file);
    let mut member = Member {
        head: Vec::new(),
        chunks: Vec::new(),
        tail: Vec::new(),
        next: Next::Any,
        damaged: 0,
    };
    let (mut buffer, mut filled, mut has_head) = (vec![0; PIECE_BYTES], 0, false);
    loop {
        if filled == buffer.len() {
            buffer.resize(filled + PIECE_BYTES, 0);
        }
        let is_whole = match decoder.read(&mut buffer[filled..]) {
            Ok(0) => Some(true),
            Ok(bytes) => {
                filled += bytes;
                None
            }
            Err(error) if is_of_gzip(&error) => Some(false),
            Err(error) => return Err(error),
        };
        if is_whole.is_none() && filled < buffer.len() {
            continue;
        }
        let mut from = 0;
        if !has_head && let Some(end) = memchr::memchr(b'\n', &buffer[..filled]) {
            member.head.extend_from_slice(&buffer[..=end]);
            (from, has_head) = (end + 1, true);
        }
        let end = memchr::memrchr(b'\n', &buffer[from..filled]).map_or(from, |end| from + end + 1);
        if end > from {
            member.chunks.push(Chunk::parse(&buffer[from..end], scope));
        }
        buffer.copy_within(end..filled, 0);
        filled -= end;
        if filled > LINE_LIMIT {
            // One byte that is not a record, so that it is counted.
            (buffer[0], filled) = (b'?', 1);
        }
        if let Some(is_whole) = is_whole {
            buffer.truncate(filled);
            member.tail = buffer;
            if !is_whole {
                member.damaged = 1;
                return Ok(member);
            }
            break;
        }
    }
    member.next = following(decoder.into_inner())?;
    member.damaged = u64::from(member.next == Next::Any);
    Ok(member)
}

/// Zeros after a member are padding.
fn following(mut file: BufReader<crate::file_slice::Region>) -> io::Result<Next> {
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(Next::End);
        }
        let length = bytes.len();
        match bytes.iter().position(|byte| *byte != 0) {
            Some(at) if bytes[at] == MAGIC[0] => {
                return Ok(Next::At(file.stream_position()? + at as u64));
            }
            Some(_) => return Ok(Next::Any),
            None => file.consume(length),
        }
    }
}
