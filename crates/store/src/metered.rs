//! A store that counts and times its calls.

use std::sync::{Arc, Mutex};

use feedline_clock::Clock;
use feedline_recorder::Site;

use crate::lock::lock;
use crate::trace_sites::{Asked, Names};
use crate::{
    BatchTimer, Call, CallOutcome, Destination, Durability, Meter, Object, ObjectRange, Op,
    ReadQueue, RequestCount, Resident, Result, Store, Upload, Wrapper,
};

/// Wraps a store for one worker: every call is timed, counted, added to the worker's batch timer and,
/// if one is recorded, to the trace.
///
/// Make one per worker; clones and everything opened through it share its meter.
#[derive(Clone)]
pub struct Metered<S> {
    inner: S,
    ledger: Ledger,
}

/// Where calls are recorded.
#[derive(Clone)]
struct Ledger {
    clock: Clock,
    meter: Arc<Mutex<Meter>>,
    progress: Arc<BatchTimer>,
    names: Names,
}

impl<S: Store> Metered<S> {
    /// Starts counting the calls to `inner`.
    pub fn new(inner: S, clock: Clock) -> Metered<S> {
        let names = Names::new(inner.trace_sites());
        let (meter, progress) = (Arc::default(), Arc::default());
        Metered { inner, ledger: Ledger { clock, meter, progress, names } }
    }

    /// The id of an object's name in the trace.
    fn file(&self, key: &str) -> u32 {
        self.ledger.names.number(key, |key| self.inner.locate(key))
    }

    /// The timer of the worker's current batch, for other threads to read.
    pub fn progress(&self) -> Arc<BatchTimer> {
        Arc::clone(&self.ledger.progress)
    }

    /// Returns the counters and resets them.
    pub fn take(&self) -> Meter {
        std::mem::take(&mut lock(&self.ledger.meter))
    }
}

impl Ledger {
    /// Makes and records a call that moves as many bytes as it asks for.
    fn enter<T>(&self, asked: Asked, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.enter_counting(asked, call, |_| asked.bytes)
    }

    /// Makes and records a call that moves as many bytes as `moved` says of its result.
    fn enter_counting<T>(
        &self,
        asked: Asked,
        call: impl FnOnce() -> Result<T>,
        moved: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        let before = RequestCount::of_thread();
        let start = self.clock.now();
        self.progress.enter_storage(start);
        let begun = Site::begin_call();
        let result = call();
        let end = self.clock.now();
        let went = result.as_ref().map(moved).map_err(Some);
        self.names.sites.site(asked.op, asked.durability).end_call(begun, || asked.facts(went));
        self.progress.leave_storage(end);
        let outcome = match went {
            Ok(bytes) => CallOutcome::Done { bytes },
            Err(_) => CallOutcome::Failed,
        };
        let took = RequestCount::of_thread() - before;
        self.record(asked, end.saturating_sub(start), outcome, took);
        result
    }

    fn record(&self, asked: Asked, duration_ns: u64, outcome: CallOutcome, took: RequestCount) {
        let mut meter = lock(&self.meter);
        meter.record(asked.op, duration_ns, outcome);
        meter.record_requests(asked.op, took);
        if asked.moves() {
            meter.record_asked(asked.op, asked.bytes);
        }
    }
}

impl Ledger {
    /// Records a call that a queue has finished.
    fn queued(&self, root: &str, ranges: &[ObjectRange], call: Call, took: RequestCount) {
        let Call { op, range, offset, asked, duration_ns, outcome } = call;
        let key = ranges.get(range).map_or("", |range| range.key.as_str());
        let file = self.names.number(key, |key| match key {
            "" => root.to_owned(),
            key => format!("{root}/{key}"),
        });
        let asked = match op {
            Op::Read => Asked::moving(op, file, (offset, asked)),
            _ => Asked::new(op, file),
        };
        let site = self.names.sites.site(op, Durability::None);
        site.ended_call(duration_ns, || match outcome {
            CallOutcome::Done { bytes } => asked.facts(Ok(bytes)),
            CallOutcome::Failed => asked.facts(Err(None)),
        });
        self.record(asked, duration_ns, outcome, took);
    }
}

/// The time of a listing includes the visits.
impl<S: Store> Wrapper for Metered<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.inner
    }

    fn around<T>(&self, op: Op, key: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.ledger.enter(Asked::new(op, self.file(key)), call)
    }

    fn object(&self, key: &str, inner: Box<dyn Object>) -> Box<dyn Object> {
        Box::new(MeteredObject { inner, ledger: self.ledger.clone(), file: self.file(key) })
    }

    fn upload(&self, key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        Box::new(MeteredUpload { inner, ledger: self.ledger.clone(), file: self.file(key) })
    }

    fn queue_of(&self, depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        let inner = self.inner.queue(depth)?;
        let ledger = self.ledger.clone();
        // Paths and URLs are joined alike.
        let root = self.inner.locate("");
        Ok(inner.map(|inner| Box::new(MeteredQueue { inner, ledger, root }) as Box<dyn ReadQueue>))
    }
}

struct MeteredObject {
    inner: Box<dyn Object>,
    ledger: Ledger,
    file: u32,
}

impl Object for MeteredObject {
    fn len(&mut self) -> Result<u64> {
        self.ledger.enter(Asked::new(Op::Stat, self.file), || self.inner.len())
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let asked = Asked::moving(Op::Read, self.file, (offset, buf.len() as u64));
        self.ledger.enter(asked, || self.inner.read_exact_at(offset, buf))
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let asked = Asked::moving(Op::Read, self.file, (offset, buf.len() as u64));
        let call = || self.inner.read_up_to(offset, buf);
        self.ledger.enter_counting(asked, call, |found| *found as u64)
    }

    fn preferred_bytes(&self) -> usize {
        self.inner.preferred_bytes()
    }

    fn resident(&mut self) -> Result<Option<Resident>> {
        self.inner.resident()
    }
}

struct MeteredUpload {
    inner: Box<dyn Upload>,
    ledger: Ledger,
    file: u32,
}

impl Upload for MeteredUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let asked = Asked::moving(Op::Write, self.file, (offset, bytes.len() as u64));
        self.ledger.enter(asked, || self.inner.write_at(offset, bytes))
    }

    fn is_in_order(&self) -> bool {
        self.inner.is_in_order()
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<()> {
        let MeteredUpload { inner, ledger, file } = *self;
        let asked = Asked { durability, ..Asked::new(Op::Publish, file) };
        ledger.enter(asked, || inner.publish(durability))
    }
}

struct MeteredQueue {
    inner: Box<dyn ReadQueue>,
    ledger: Ledger,
    root: String,
}

impl ReadQueue for MeteredQueue {
    /// Counts every call with its own latency; the worker is in storage for the whole time.
    fn read(
        &mut self,
        ranges: &[ObjectRange],
        to: Destination<'_, '_>,
        seen: &mut dyn FnMut(Call),
    ) -> Result<u64> {
        let Self { inner, ledger, root } = self;
        ledger.progress.enter_storage(ledger.clock.now());
        let mut before = RequestCount::of_thread();
        let result = inner.read(ranges, to, &mut |call| {
            let now = RequestCount::of_thread();
            ledger.queued(root, ranges, call, now - before);
            before = now;
            seen(call);
        });
        ledger.progress.leave_storage(ledger.clock.now());
        result
    }
}
