//! Objects open for reading: ranges on demand, or one answer read from front to back.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStoreExt};

use super::attempts::Attempts;
use super::failure;
use super::lane::{Lane, Lanes, Lease};
use super::raw::BodyReader;
use crate::{Object, Op, RemoteFault, StoreError};

/// How much the request that opens an object brings along, so that it needs no other for its size.
/// The headers and indexes of all formats are below that; of an object of which only a little is
/// read, more would be wasted.
pub(crate) const HEAD_BYTES: u64 = 1 << 20;
/// How far ahead of a stream a reader may look without another request: what lies between is kept in
/// memory until the reader comes there. A zip archive has its directory at the end.
const AHEAD_BYTES_MAX: u64 = 16 << 20;

/// Which object, and which version of it.
pub(crate) struct Target {
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) path: Path,
    /// The name the user knows.
    pub(crate) name: String,
}

/// An object that is open.
pub(crate) struct RemoteObject {
    target: Target,
    size: u64,
    etag: Option<String>,
    /// What came with the opening, from byte 0 on.
    head: Bytes,
    flow: Option<Flow>,
}

/// An answer under way.
struct Flow {
    /// Before the lane, whose runtime its connection belongs to.
    source: BodyReader,
    lane: Lease,
    attempts: Arc<Attempts>,
    /// Where in the object the first of `held` begins, or what comes next.
    at: u64,
    held: VecDeque<Bytes>,
    held_bytes: u64,
}

impl Target {
    fn error(&self, op: Op, attempts: &Attempts, error: &object_store::Error) -> StoreError {
        failure::of_error(op, &self.name, attempts.failure(), error)
    }

    /// Opens the object for reads anywhere.
    pub(crate) fn open(self) -> Result<RemoteObject, StoreError> {
        let (lane, attempts) = (self.lanes.take()?, Attempts::tapped());
        let opened = lane.run(&attempts, async {
            let range = Some(GetRange::Bounded(0..HEAD_BYTES));
            let options = GetOptions { range, ..GetOptions::default() };
            let found = lane.client.objects.get_opts(&self.path, options).await?;
            let (size, etag) = identity(&found);
            let mut head = vec![0; size.min(HEAD_BYTES) as usize];
            let count = BodyReader::new(found, Arc::clone(&attempts)).fill(&mut head).await?;
            head.truncate(count);
            Ok((size, etag, Bytes::from(head)))
        });
        let (size, etag, head) = match opened {
            Ok(opened) => opened,
            Err(_) if is_past_the_end(&attempts) => (0, None, Bytes::new()),
            Err(error) => return Err(self.error(Op::Open, &attempts, &error)),
        };
        if head.len() as u64 != size.min(HEAD_BYTES) {
            return Err(self.broken(Op::Open));
        }
        Ok(RemoteObject { target: self, size, etag, head, flow: None })
    }

    /// Opens the object for being read once from front to back.
    pub(crate) fn open_whole(self) -> Result<RemoteObject, StoreError> {
        let (lane, attempts) = (self.lanes.take()?, Attempts::tapped());
        let found = lane.run(&attempts, lane.client.objects.get(&self.path));
        let found = found.map_err(|error| self.error(Op::Open, &attempts, &error))?;
        let (size, etag) = identity(&found);
        let source = BodyReader::new(found, Arc::clone(&attempts));
        let flow = (size > 0).then(|| Flow {
            source,
            lane,
            attempts,
            at: 0,
            held: VecDeque::new(),
            held_bytes: 0,
        });
        Ok(RemoteObject { target: self, size, etag, head: Bytes::new(), flow })
    }

    fn broken(&self, op: Op) -> StoreError {
        let (path, fault) = (self.name.clone(), RemoteFault::Broken);
        StoreError::Remote { op, path, fault, message: String::new() }
    }
}

/// Size and version. Weak tags cannot be compared by servers.
pub(crate) fn identity(found: &GetResult) -> (u64, Option<String>) {
    let etag = found.meta.e_tag.clone().filter(|etag| !etag.starts_with("W/"));
    (found.meta.size, etag)
}

/// Whether the server said that no byte of the range is there.
pub(crate) fn is_past_the_end(attempts: &Attempts) -> bool {
    attempts.failure().is_some_and(|failure| failure.fault == RemoteFault::Status(416))
}

impl Object for RemoteObject {
    fn len(&mut self) -> Result<u64, StoreError> {
        Ok(self.size)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let needed = buf.len() as u64;
        let found = self.size.saturating_sub(offset).min(needed);
        if found < needed {
            let path = self.target.name.clone();
            return Err(StoreError::Short { path, offset, needed, found });
        }
        if let Some(flow) = &mut self.flow
            && flow.reaches(offset, needed)
        {
            flow.read(&self.target, offset, buf)?;
            if flow.at >= self.size {
                self.flow = None;
            }
            return Ok(());
        }
        let done = copy_from(std::slice::from_ref(&self.head), offset, buf);
        self.read_range(offset + done as u64, &mut buf[done..])
    }
}

impl RemoteObject {
    /// Fills `buf` with one request, straight from the connection.
    fn read_range(&self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        if buf.is_empty() {
            return Ok(());
        }
        let spare;
        // A stream's lane can drive one more request, on a connection beside that of the stream.
        let lane: &Lane = match &self.flow {
            Some(flow) => &flow.lane,
            None => {
                spare = self.target.lanes.take()?;
                &spare
            }
        };
        let attempts = Attempts::tapped();
        let range = Some(GetRange::Bounded(offset..offset + buf.len() as u64));
        let options = GetOptions { range, if_match: self.etag.clone(), ..GetOptions::default() };
        let read = lane.run(&attempts, async {
            let found = lane.client.objects.get_opts(&self.target.path, options).await?;
            BodyReader::new(found, Arc::clone(&attempts)).fill(buf).await
        });
        let done = read.map_err(|error| self.target.error(Op::Read, &attempts, &error))?;
        match done == buf.len() {
            true => Ok(()),
            false => Err(self.target.broken(Op::Read)),
        }
    }
}

/// Copies what the chunks, which begin at byte 0, have of the bytes at `offset`; how many.
fn copy_from(chunks: &[Bytes], offset: u64, buf: &mut [u8]) -> usize {
    let (mut start, mut done) = (0, 0);
    for chunk in chunks {
        let end = start + chunk.len() as u64;
        let at = offset + done as u64;
        if (start..end).contains(&at) && done < buf.len() {
            let from = &chunk[(at - start) as usize..];
            let count = from.len().min(buf.len() - done);
            buf[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        start = end;
    }
    done
}

impl Flow {
    /// Whether the stream can serve a read: at its place, or not far ahead.
    fn reaches(&self, offset: u64, len: u64) -> bool {
        offset >= self.at && (offset == self.at || offset + len - self.at <= AHEAD_BYTES_MAX)
    }

    fn read(&mut self, target: &Target, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let attempts = Arc::clone(&self.attempts);
        let Flow { source, lane, at, held, held_bytes, .. } = self;
        let read = lane.run(&attempts, async {
            if offset > *at {
                let missing = (offset + buf.len() as u64).saturating_sub(*at + *held_bytes);
                let mut more = vec![0; missing as usize];
                let count = source.fill(&mut more).await?;
                more.truncate(count);
                *held_bytes += count as u64;
                held.extend((count > 0).then(|| Bytes::from(more)));
                return Ok(copy_from(held.make_contiguous(), offset - *at, buf));
            }
            let mut done = 0;
            while done < buf.len()
                && let Some(chunk) = held.front_mut()
            {
                let count = chunk.len().min(buf.len() - done);
                chunk.copy_to_slice(&mut buf[done..done + count]);
                done += count;
                *held_bytes -= count as u64;
                if chunk.is_empty() {
                    held.pop_front();
                }
            }
            done += source.fill(&mut buf[done..]).await?;
            *at += done as u64;
            Ok(done)
        });
        let done = read.map_err(|error| target.error(Op::Read, &attempts, &error))?;
        match done == buf.len() {
            true => Ok(()),
            false => Err(target.broken(Op::Read)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_one_stretch() {
        let chunks = [&b"0123"[..], b"", b"45", b"6789"].map(Bytes::from_static);
        for (offset, len, expected) in
            [(0, 10, "0123456789"), (3, 4, "3456"), (4, 2, "45"), (9, 5, "9"), (10, 1, "")]
        {
            let mut buf = vec![0; len];
            let done = copy_from(&chunks, offset, &mut buf);
            assert_eq!(&buf[..done], expected.as_bytes(), "{len} at {offset}");
        }
    }
}
