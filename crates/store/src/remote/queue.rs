//! Many ranges under way at a time, all on the caller's thread.
//!
//! An object has no opening of its own: that costs no request, and what is not there shows with the
//! first read. A range up to the object's end learns its size from the answer to its first read, so
//! that costs no request either. Bytes go from the socket to the caller's memory, or are dropped as
//! they come.

use std::collections::VecDeque;
use std::sync::Arc;

use feedline_clock::Clock;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};

use super::Inner;
use super::attempts::Attempts;
use super::failure;
use super::lane::Lease;
use super::object::{identity, is_past_the_end};
use super::raw::BodyReader;
use crate::pieces::{Pieces, Portions};
use crate::queue::{Delivery, Destination};
use crate::{Call, CallOutcome, ObjectRange, Op, ReadQueue, RemoteFault, StoreError};

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
    /// Index of the first range that is read of it.
    range: usize,
}

/// A request that was not sent yet.
struct Request<'b> {
    target: Arc<Target>,
    /// Index of the range that it is part of.
    range: usize,
    offset: u64,
    len: u64,
    to: To<'b>,
}

/// Where the bytes of a request go.
enum To<'b> {
    /// They are counted and dropped, or go to memory of their length.
    Known(Option<&'b mut [u8]>),
    /// The request begins a range of unknown length; this is the memory of all of it.
    OpenEnded(Option<&'b mut [u8]>),
}

/// A request under way, or one that has ended.
struct Read<'b> {
    request: Request<'b>,
    attempts: Arc<Attempts>,
    began_ns: u64,
}

/// The next thing that happened.
#[expect(clippy::large_enum_variant, reason = "moved once per request, out of a boxed future")]
enum Event<'b> {
    /// The answer has begun; it says how large the object is.
    Answered(Read<'b>, object_store::Result<Answer>),
    /// So many of its bytes have come.
    Finished(Read<'b>, object_store::Result<u64>),
}

struct Answer {
    size: u64,
    etag: Option<String>,
    body: BodyReader,
}

/// What of a range was not requested yet.
struct Rest<'b> {
    target: Arc<Target>,
    range: usize,
    portions: Portions<'b>,
}

/// Where one call of [`ReadQueue::read`] is.
struct Course<'a, 'd, 'b> {
    queue: &'a RemoteQueue,
    lane: &'a Lease,
    ranges: std::iter::Enumerate<std::slice::Iter<'a, ObjectRange>>,
    last: Option<(&'a str, Arc<Target>)>,
    current: Option<Rest<'b>>,
    /// Rests of ranges whose size is known by now.
    rests: VecDeque<Rest<'b>>,
    under_way: FuturesUnordered<BoxFuture<'b, Event<'b>>>,
    delivery: Delivery<'d, 'b>,
    seen: &'a mut dyn FnMut(Call),
}

impl RemoteQueue {
    pub(crate) fn new(inner: Arc<Inner>, depth: usize) -> RemoteQueue {
        RemoteQueue { inner, clock: Clock::real(), depth: depth.max(1) }
    }
}

impl ReadQueue for RemoteQueue {
    fn read(
        &mut self,
        ranges: &[ObjectRange],
        to: Destination<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<u64, StoreError> {
        let lane = self.inner.lanes.take()?;
        let mut course = Course {
            queue: self,
            lane: &lane,
            ranges: ranges.iter().enumerate(),
            last: None,
            current: None,
            rests: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            delivery: Delivery::new(ranges, to),
            seen,
        };
        // Requests enter themselves in their own accounts.
        lane.run(&Arc::default(), course.run())?;
        Ok(course.delivery.bytes())
    }
}

impl<'a, 'b> Course<'a, '_, 'b> {
    async fn run(&mut self) -> Result<(), StoreError> {
        loop {
            while self.under_way.len() < self.queue.depth
                && let Some(request) = self.next_request()?
            {
                self.begin(request);
            }
            match self.under_way.next().await {
                Some(Event::Answered(read, answer)) => self.answered(read, answer)?,
                Some(Event::Finished(read, count)) => self.ended(read, count)?,
                None => return Ok(()),
            }
        }
    }

    /// The next request: rests first, so that as few objects as possible are being read.
    fn next_request(&mut self) -> Result<Option<Request<'b>>, StoreError> {
        loop {
            if self.current.is_none() {
                self.current = self.rests.pop_front();
            }
            if let Some(Rest { target, range, portions }) = &mut self.current {
                if !self.delivery.has_failed(*range)
                    && let Some((piece, memory)) = portions.next()
                {
                    let (target, range, offset) = (Arc::clone(target), *range, piece.start);
                    let (len, to) = (piece.asked, To::Known(memory));
                    return Ok(Some(Request { target, range, offset, len, to }));
                }
                self.current = None;
                continue;
            }
            let Some((range, asked)) = self.ranges.next() else { return Ok(None) };
            match self.hand_out(range, asked) {
                Ok(None) => {}
                Ok(request) => return Ok(request),
                Err(error) => self.delivery.settle(range, Err(error))?,
            }
        }
    }

    /// Cuts a range into pieces, or gives its first request if that must tell its length.
    fn hand_out(
        &mut self,
        range: usize,
        asked: &'a ObjectRange,
    ) -> Result<Option<Request<'b>>, StoreError> {
        let target = self.target(&asked.key, range)?;
        let memory = self.delivery.memory(range);
        let (offset, longest) = (asked.offset, self.queue.inner.read_bytes);
        let Some(len) = asked.len else {
            let (len, to) = (longest as u64, To::OpenEnded(memory));
            return Ok(Some(Request { target, range, offset, len, to }));
        };
        let end = offset.checked_add(len).ok_or_else(|| short(&target, offset, len, 0))?;
        let pieces = Pieces { next: offset, end, block: 1, longest };
        let portions = Portions::new(pieces, memory, || target.name.clone())?;
        self.current = Some(Rest { target, range, portions });
        Ok(None)
    }

    /// The object of a range; the same one for ranges that follow each other.
    fn target(&mut self, key: &'a str, range: usize) -> Result<Arc<Target>, StoreError> {
        if let Some((last, target)) = &self.last
            && *last == key
        {
            return Ok(Arc::clone(target));
        }
        let found = self.queue.inner.target(key);
        let outcome =
            if found.is_ok() { CallOutcome::Done { bytes: 0 } } else { CallOutcome::Failed };
        (self.seen)(Call { outcome, ..Call::new(Op::Open, range) });
        let super::object::Target { path, name, .. } = found?;
        let target = Arc::new(Target { path, name, etag: None, range });
        self.last = Some((key, Arc::clone(&target)));
        Ok(target)
    }

    fn begin(&mut self, request: Request<'b>) {
        let attempts = match &request.to {
            To::Known(Some(_)) | To::OpenEnded(Some(_)) => Attempts::tapped(),
            To::Known(None) | To::OpenEnded(None) => Arc::default(),
        };
        let (objects, counted) = (Arc::clone(&self.lane.client.objects), Arc::clone(&attempts));
        let read = Read { request, attempts, began_ns: self.queue.clock.now() };
        let asked = async move {
            let Request { target, offset, len, .. } = &read.request;
            let range = Some(GetRange::Bounded(*offset..offset.saturating_add(*len)));
            let options =
                GetOptions { range, if_match: target.etag.clone(), ..GetOptions::default() };
            let answer = objects.get_opts(&target.path, options).await.map(|found| {
                let (size, etag) = identity(&found);
                Answer { size, etag, body: BodyReader::new(found, Arc::clone(&read.attempts)) }
            });
            Event::Answered(read, answer)
        };
        self.under_way.push(counted.over(asked).boxed());
    }

    /// Goes on with the bytes of an answer, and with the rest of a range that has a length now.
    fn answered(
        &mut self,
        mut read: Read<'b>,
        answer: object_store::Result<Answer>,
    ) -> Result<(), StoreError> {
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) if is_past_the_end(&read.attempts) => {
                if matches!(read.request.to, To::OpenEnded(_)) {
                    read.attempts.charge();
                    self.show(&read, Op::Stat, CallOutcome::Done { bytes: 0 });
                    return Ok(());
                }
                return self.ended(read, Ok(0));
            }
            Err(error) => return self.ended(read, Err(error)),
        };
        let Answer { size, etag, mut body } = answer;
        let memory = match std::mem::replace(&mut read.request.to, To::Known(None)) {
            To::Known(memory) => memory,
            To::OpenEnded(memory) => {
                self.show(&read, Op::Stat, CallOutcome::Done { bytes: 0 });
                match self.cut(&mut read.request, size, etag, memory) {
                    Ok(memory) => memory,
                    Err(error) => return self.delivery.settle(read.request.range, Err(error)),
                }
            }
        };
        let counted = Arc::clone(&read.attempts);
        let came = async move {
            let count = match memory {
                Some(memory) => body.fill(memory).await.map(|count| count as u64),
                None => body.skip_all().await,
            };
            Event::Finished(read, count)
        };
        self.under_way.push(counted.over(came).boxed());
        Ok(())
    }

    /// Ends the first request of a range where the object or the piece ends, and keeps the rest of
    /// the range for later. Gives the memory of the first one.
    fn cut(
        &mut self,
        request: &mut Request<'b>,
        size: u64,
        etag: Option<String>,
        memory: Option<&'b mut [u8]>,
    ) -> Result<Option<&'b mut [u8]>, StoreError> {
        let Request { target, range, offset, len, .. } = request;
        let (path, name) = (target.path.clone(), target.name.clone());
        let target = Arc::new(Target { path, name, etag, range: target.range });
        let longest = self.queue.inner.read_bytes;
        let pieces = Pieces { next: *offset, end: size, block: 1, longest };
        let mut portions = Portions::new(pieces, memory, || target.name.clone())?;
        let first = portions.next();
        *len = first.as_ref().map_or(0, |(piece, _)| piece.asked);
        self.rests.push_back(Rest { target, range: *range, portions });
        Ok(first.and_then(|(_, memory)| memory))
    }

    fn ended(
        &mut self,
        read: Read<'b>,
        count: object_store::Result<u64>,
    ) -> Result<(), StoreError> {
        read.attempts.charge();
        let Request { target, range, offset, len, .. } = &read.request;
        let outcome = match &count {
            Ok(count) if count == len => CallOutcome::Done { bytes: *count },
            _ => CallOutcome::Failed,
        };
        self.show(&read, Op::Read, outcome);
        let result = match count {
            Ok(count) if count == *len => Ok(count),
            Ok(count) => Err(short(target, *offset, *len, count)),
            Err(error) => {
                let failure = read.attempts.failure();
                let missing = failure.as_ref().is_some_and(|f| f.fault == RemoteFault::Missing);
                let op = if missing { Op::Open } else { Op::Read };
                Err(failure::of_error(op, &target.name, failure, &error))
            }
        };
        self.delivery.settle(*range, result)
    }

    fn show(&mut self, read: &Read<'b>, op: Op, outcome: CallOutcome) {
        let duration_ns = self.queue.clock.now().saturating_sub(read.began_ns);
        let Request { target, offset, len, .. } = &read.request;
        let (offset, asked) = if op == Op::Read { (*offset, *len) } else { (0, 0) };
        (self.seen)(Call { offset, asked, duration_ns, outcome, ..Call::new(op, target.range) });
    }
}

fn short(target: &Target, offset: u64, needed: u64, found: u64) -> StoreError {
    StoreError::Short { path: target.name.clone(), offset, needed, found }
}
