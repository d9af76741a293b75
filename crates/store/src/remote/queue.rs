//! Many ranges under way at a time, all on the caller's thread.
//!
//! An object has no opening of its own: that costs no request, and what is not there shows with the
//! first read. An extent up to the object's end learns its size from the answer to its first read, so
//! that costs no request either. Bytes are dropped as they come.

use std::collections::VecDeque;
use std::sync::Arc;

use feedline_clock::Clock;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{BoxStream, FuturesUnordered};
use object_store::path::Path;
use object_store::{GetOptions, GetRange};

use super::attempts::Attempts;
use super::fault;
use super::lane::Lease;
use super::object::{identity, is_behind_the_end};
use super::{Inner, RemoteFault};
use crate::piece::Pieces;
use crate::{Call, Ended, Extent, Op, ReadQueue, StoreError};

/// A queue over the objects of a store.
pub(crate) struct RemoteQueue {
    inner: Arc<Inner>,
    clock: Clock,
    depth: usize,
}

/// An object that is being read.
struct Target {
    path: Path,
    name: String,
    etag: Option<String>,
    /// Number of the first extent that is read of it.
    extent: usize,
}

/// A stretch that was not asked for yet.
struct Range {
    target: Arc<Target>,
    offset: u64,
    len: u64,
    /// It begins an extent whose end nobody knows yet.
    open_ended: bool,
}

/// A request under way, or one that has ended.
struct Read {
    range: Range,
    attempts: Arc<Attempts>,
    began_ns: u64,
}

/// The next thing that happened.
enum Event {
    /// The answer has begun; it says how large the object is.
    Answered(Read, object_store::Result<Answer>),
    /// Its bytes have come.
    Drained(Read, object_store::Result<u64>),
}

struct Answer {
    size: u64,
    etag: Option<String>,
    stream: BoxStream<'static, object_store::Result<bytes::Bytes>>,
}

/// Where one call of [`ReadQueue::read`] is.
struct Course<'a> {
    queue: &'a RemoteQueue,
    lane: &'a Lease,
    extents: std::iter::Enumerate<std::slice::Iter<'a, Extent>>,
    last: Option<(&'a str, Arc<Target>)>,
    pieces: Option<(Arc<Target>, Pieces)>,
    /// Rests of extents whose size is known by now.
    rests: VecDeque<(Arc<Target>, Pieces)>,
    under_way: FuturesUnordered<BoxFuture<'a, Event>>,
    seen: &'a mut dyn FnMut(Call),
    bytes: u64,
}

impl RemoteQueue {
    pub(crate) fn new(inner: Arc<Inner>, depth: usize) -> RemoteQueue {
        RemoteQueue { inner, clock: Clock::real(), depth: depth.max(1) }
    }
}

impl ReadQueue for RemoteQueue {
    fn read(&mut self, extents: &[Extent], seen: &mut dyn FnMut(Call)) -> Result<u64, StoreError> {
        let lane = self.inner.lanes.take()?;
        let mut course = Course {
            queue: self,
            lane: &lane,
            extents: extents.iter().enumerate(),
            last: None,
            pieces: None,
            rests: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            seen,
            bytes: 0,
        };
        // Requests enter themselves in their own accounts.
        lane.run(&Arc::default(), course.run())?;
        Ok(course.bytes)
    }
}

impl<'a> Course<'a> {
    async fn run(&mut self) -> Result<(), StoreError> {
        loop {
            while self.under_way.len() < self.queue.depth
                && let Some(range) = self.next_range()?
            {
                self.begin(range);
            }
            match self.under_way.next().await {
                Some(Event::Answered(read, answer)) => self.answered(read, answer)?,
                Some(Event::Drained(read, count)) => self.drained(read, count)?,
                None => return Ok(()),
            }
        }
    }

    /// The next request: rests first, so that as few objects as possible are being read.
    fn next_range(&mut self) -> Result<Option<Range>, StoreError> {
        loop {
            if self.pieces.is_none() {
                self.pieces = self.rests.pop_front();
            }
            if let Some((target, pieces)) = &mut self.pieces {
                if let Some(piece) = pieces.next() {
                    let (target, offset) = (Arc::clone(target), piece.start);
                    let len = piece.asked;
                    return Ok(Some(Range { target, offset, len, open_ended: false }));
                }
                self.pieces = None;
                continue;
            }
            let Some((number, extent)) = self.extents.next() else { return Ok(None) };
            let target = self.target(&extent.key, number)?;
            let longest = self.queue.inner.read_bytes;
            match extent.len {
                None => {
                    let (offset, len) = (extent.offset, longest as u64);
                    return Ok(Some(Range { target, offset, len, open_ended: true }));
                }
                Some(len) => {
                    let Some(end) = extent.offset.checked_add(len) else {
                        return Err(short(&target, extent.offset, len, 0));
                    };
                    let pieces = Pieces { next: extent.offset, end, block: 1, longest };
                    self.pieces = Some((target, pieces));
                }
            }
        }
    }

    /// The object of an extent; the same one for extents that follow each other.
    fn target(&mut self, key: &'a str, extent: usize) -> Result<Arc<Target>, StoreError> {
        if let Some((last, target)) = &self.last
            && *last == key
        {
            return Ok(Arc::clone(target));
        }
        let found = self.queue.inner.target(key);
        let ended = if found.is_ok() { Ended::Well { bytes: 0 } } else { Ended::Badly };
        let (offset, asked, duration_ns) = (0, 0, 0);
        (self.seen)(Call { op: Op::Open, extent, offset, asked, duration_ns, ended });
        let super::object::Target { path, name, .. } = found?;
        let target = Arc::new(Target { path, name, etag: None, extent });
        self.last = Some((key, Arc::clone(&target)));
        Ok(target)
    }

    fn begin(&mut self, range: Range) {
        let attempts = Arc::new(Attempts::default());
        let (objects, counted) = (Arc::clone(&self.lane.client.objects), Arc::clone(&attempts));
        let read = Read { range, attempts, began_ns: self.queue.clock.now() };
        let asked = async move {
            let Range { target, offset, len, .. } = &read.range;
            let range = Some(GetRange::Bounded(*offset..offset.saturating_add(*len)));
            let options =
                GetOptions { range, if_match: target.etag.clone(), ..GetOptions::default() };
            let answer = objects.get_opts(&target.path, options).await.map(|found| {
                let (size, etag) = identity(&found);
                Answer { size, etag, stream: found.into_stream() }
            });
            Event::Answered(read, answer)
        };
        self.under_way.push(counted.over(asked).boxed());
    }

    /// Goes on with the bytes of an answer, and with the rest of an extent that has a size now.
    fn answered(
        &mut self,
        mut read: Read,
        answer: object_store::Result<Answer>,
    ) -> Result<(), StoreError> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) if is_behind_the_end(&read.attempts) => {
                if read.range.open_ended {
                    read.attempts.charge();
                    self.show(&read, Op::Stat, Ended::Well { bytes: 0 });
                    return Ok(());
                }
                return self.drained(read, Ok(0));
            }
            Err(error) => return self.drained(read, Err(error)),
        };
        if read.range.open_ended {
            self.show(&read, Op::Stat, Ended::Well { bytes: 0 });
            let Range { target, offset, len, .. } = &mut read.range;
            let next = offset.saturating_add(*len).min(answer.size);
            *len = next.saturating_sub(*offset);
            if next < answer.size {
                let (path, name) = (target.path.clone(), target.name.clone());
                let (extent, etag) = (target.extent, answer.etag);
                let target = Arc::new(Target { path, name, etag, extent });
                let longest = self.queue.inner.read_bytes;
                let pieces = Pieces { next, end: answer.size, block: 1, longest };
                self.rests.push_back((target, pieces));
            }
        }
        let counted = Arc::clone(&read.attempts);
        let mut stream = answer.stream;
        let drained = async move {
            let mut count = 0;
            while let Some(chunk) = stream.next().await {
                match chunk {
                    Ok(chunk) => count += chunk.len() as u64,
                    Err(error) => return Event::Drained(read, Err(error)),
                }
            }
            Event::Drained(read, Ok(count))
        };
        self.under_way.push(counted.over(drained).boxed());
        Ok(())
    }

    fn drained(&mut self, read: Read, count: object_store::Result<u64>) -> Result<(), StoreError> {
        read.attempts.charge();
        let Range { target, offset, len, .. } = &read.range;
        let ended = match &count {
            Ok(count) if count == len => Ended::Well { bytes: *count },
            _ => Ended::Badly,
        };
        self.show(&read, Op::Read, ended);
        match count {
            Ok(count) if count == *len => {
                self.bytes += count;
                Ok(())
            }
            Ok(count) => Err(short(target, *offset, *len, count)),
            Err(error) => {
                let failure = read.attempts.failure();
                let missing = failure.as_ref().is_some_and(|f| f.fault == RemoteFault::Missing);
                let op = if missing { Op::Open } else { Op::Read };
                Err(fault::of_error(op, &target.name, failure, &error))
            }
        }
    }

    fn show(&mut self, read: &Read, op: Op, ended: Ended) {
        let duration_ns = self.queue.clock.now().saturating_sub(read.began_ns);
        let Range { target, offset, len, .. } = &read.range;
        let (offset, asked) = if op == Op::Read { (*offset, *len) } else { (0, 0) };
        (self.seen)(Call { op, extent: target.extent, offset, asked, duration_ns, ended });
    }
}

fn short(target: &Target, offset: u64, wanted: u64, found: u64) -> StoreError {
    StoreError::Short { path: target.name.clone(), offset, wanted, found }
}
