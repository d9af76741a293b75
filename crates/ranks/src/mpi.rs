//! Processes joined by MPI.
//!
//! Every call is started without blocking and looked after until it is done, so that a process that waits
//! also hears that the job was aborted: blocking MPI calls have no way out of a meeting to which a
//! dead process never comes. Waiting costs little: the thread looks often at first, then naps for a
//! sixteenth of the time that it has waited, since a spinning rank would take a core away from the
//! readers of its machine.
//!
//! MPI keeps its own threads and time, so nothing here runs under a simulated clock.
#![allow(unsafe_code)]

use std::mem::{self, ManuallyDrop};
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::environment::{Threading, Universe};
use mpi::ffi::{self, MPI_Request};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{
    AsRaw as _, Communicator as _, CommunicatorCollectives as _, Equivalence as _,
    MatchedReceiveVec as _, Root as _, Source as _,
};

use crate::link::Hear;
use crate::{Aborted, Link};

/// Messages to process 0.
const DATA: c_int = 1;
/// News of the end of the job.
const ABORT: c_int = 2;

/// A process was asked to stop.
const STOP: c_int = 3;

/// How often a process that does not wait looks for news.
const WATCH: Duration = Duration::from_millis(25);
/// Looks before the first pause: a meeting of processes that come together is over by then.
const LOOKS: u32 = 64;
/// Waiting longer than this, a thread naps instead of only letting others run.
const PATIENCE: Duration = Duration::from_millis(1);
/// Bytes of one broadcast: MPI counts in 32 bits.
const PIECE_BYTES: usize = 64 << 20;
const NAP_MAX: Duration = Duration::from_micros(500);
/// How long a job that is aborted waits for all processes to have cleaned up.
const FAREWELL: Duration = Duration::from_secs(5);

/// Why MPI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// It was initialized elsewhere already.
    #[error("MPI has been initialized already")]
    Initialized,
    /// It was built without threads.
    #[error("{library} allows calls from one thread only, expected MPI_THREAD_SERIALIZED")]
    Threads {
        /// The library's own name and version.
        library: String,
    },
}

/// A link between processes that an MPI launcher has started.
pub struct Mpi {
    process: u32,
    nodes: Vec<u32>,
    /// `None` once MPI has been finalized.
    wire: Mutex<Option<ManuallyDrop<Wire>>>,
    aborted: OnceLock<Aborted>,
    hearers: Mutex<Vec<Arc<Hear>>>,
    /// Set when this process, or another one, was asked to stop.
    stop: OnceLock<Arc<AtomicBool>>,
}

/// What MPI calls need. Freeing it is a collective call of its own, so that it happens on purpose
/// ([`Mpi::finish`]) or never.
struct Wire {
    /// For the calls of [`Link`].
    work: SimpleCommunicator,
    /// For the end of the job, which comes in the middle of something else.
    news: SimpleCommunicator,
    /// What processes bring to [`Link::max`] and take from it. Leaked: an operation that was given up
    /// may still write there.
    pair: &'static mut [u64; 2],
    _universe: Universe,
}

// SAFETY: MPI's handles belong to the process, not to a thread. MPI was asked for
// MPI_THREAD_SERIALIZED and granted it, and every call is made with the mutex around the wire locked,
// so calls of different threads follow one another.
unsafe impl Send for Wire {}

impl Mpi {
    /// Joins the other processes. Must be called once, before any thread needs MPI.
    pub fn join() -> Result<Arc<Self>, MpiError> {
        let started = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, threading) = started.ok_or(MpiError::Initialized)?;
        if threading < Threading::Serialized {
            let library = mpi::environment::library_version().unwrap_or_default();
            let library = library.split([',', '\n']).next().unwrap_or("MPI").trim().to_owned();
            return Err(MpiError::Threads { library });
        }
        let world = universe.world();
        let joined = Arc::new(Self {
            process: world.rank() as u32,
            nodes: nodes(&world),
            wire: Mutex::new(Some(ManuallyDrop::new(Wire {
                work: world.duplicate(),
                news: world.duplicate(),
                pair: Box::leak(Box::default()),
                _universe: universe,
            }))),
            aborted: OnceLock::new(),
            hearers: Mutex::default(),
            stop: OnceLock::new(),
        });
        let watched = Arc::downgrade(&joined);
        let watcher = thread::Builder::new().name("abort watcher".into());
        // Without it the news is heard in meetings alone, which is late but not never.
        let _ = watcher.spawn(move || watch(&watched));
        Ok(joined)
    }

    /// Leaves a job that went well, together with all other processes.
    pub fn finish(&self) {
        let wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(wire.map(ManuallyDrop::into_inner));
    }

    /// Leaves a job that was aborted, once every process has cleaned up after itself; whether all have
    /// within five seconds. If not, one hangs or is dead: see [`Mpi::end_all`].
    pub fn leave_aborted(&self) -> bool {
        let mut request = self.start(|wire, request| {
            // SAFETY: the communicator lives as long as the wire.
            unsafe { ffi::MPI_Ibarrier(wire.news.as_raw(), request) }
        });
        let begin = Instant::now();
        while begin.elapsed() < FAREWELL {
            if is_done(&self.wire(), &mut request) {
                return true;
            }
            thread::sleep(NAP_MAX);
        }
        false
    }

    /// Tells the launcher to end what is left of the job.
    pub fn end_all(&self, code: u8) -> ! {
        self.wire().news.abort(c_int::from(code))
    }

    fn wire(&self) -> WireGuard<'_> {
        WireGuard(self.wire.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a nonblocking operation; the request must be completed by the caller.
    fn start(&self, begin: impl FnOnce(&Wire, &mut MPI_Request) -> c_int) -> MPI_Request {
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // Errors end the job inside of MPI, as its default error handler is in place.
        begin(&self.wire(), &mut request);
        request
    }

    /// Looks until `done` says that it is, or the job was aborted.
    fn settle(&self, mut done: impl FnMut(&Wire) -> bool) -> Result<(), Aborted> {
        let begin = Instant::now();
        let mut looks = 0;
        loop {
            if let Some(news) = self.aborted.get() {
                return Err(news.clone());
            }
            if done(&self.wire()) {
                return Ok(());
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            match begin.elapsed() {
                waited if waited < PATIENCE => thread::yield_now(),
                waited => thread::sleep((waited / 16).min(NAP_MAX)),
            }
        }
    }

    /// Starts an operation on `bytes` and waits for it. MPI may use them after a job was aborted, so
    /// they are given up then.
    fn carry(
        &self,
        mut bytes: Vec<u8>,
        begin: impl FnOnce(&Wire, &mut [u8], &mut MPI_Request) -> c_int,
    ) -> Result<Vec<u8>, Aborted> {
        self.check()?;
        let mut request = self.start(|wire, request| begin(wire, &mut bytes, request));
        match self.settle(|wire| is_done(wire, &mut request)) {
            Ok(()) => Ok(bytes),
            Err(news) => {
                mem::forget(bytes);
                Err(news)
            }
        }
    }

    /// An error if the job was aborted: nothing may be started then.
    fn check(&self) -> Result<(), Aborted> {
        self.aborted.get().map_or(Ok(()), |news| Err(news.clone()))
    }

    /// Tells every other process something that none of them waits for.
    fn tell(&self, tag: c_int, bytes: Vec<u8>) {
        // Leaked: nothing waits until the others have received it.
        let bytes = bytes.leak();
        for process in (0..self.nodes.len() as c_int).filter(|&to| to != self.process as c_int) {
            self.start(|wire, request| isend(&wire.news, bytes, process, tag, request));
        }
    }

    /// What another process has told, if it has.
    fn told(&self, tag: c_int) -> Option<Vec<u8>> {
        let wire = self.wire();
        let found = wire.news.any_process().immediate_matched_probe_with_tag(tag);
        found.map(|message| message.matched_receive_vec::<u8>().0)
    }

    fn hear(&self, news: Aborted) {
        if self.aborted.set(news.clone()).is_ok() {
            let hearers = self.hearers.lock().unwrap_or_else(PoisonError::into_inner).clone();
            hearers.iter().for_each(|hear| hear(&news));
        }
    }
}

impl Link for Mpi {
    fn process(&self) -> u32 {
        self.process
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    fn max(&self, value: u64) -> Result<u64, Aborted> {
        self.check()?;
        let mut request = {
            let mut guard = self.wire();
            let wire = guard.wire_mut();
            wire.pair[0] = value;
            let [send, receive] = &mut *wire.pair;
            // SAFETY: a constant of the library.
            let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
            // SAFETY: both places are leaked, and nothing touches them before the operation is
            // done: calls follow one another, and none is started after one that was given up, since
            // the job was aborted then.
            unsafe {
                ffi::MPI_Iallreduce(
                    (&raw const *send).cast(),
                    (&raw mut *receive).cast(),
                    1,
                    u64::equivalent_datatype().as_raw(),
                    SystemOperation::max().as_raw(),
                    wire.work.as_raw(),
                    &mut request,
                )
            };
            request
        };
        self.settle(|wire| is_done(wire, &mut request))?;
        Ok(self.wire().wire().pair[1])
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Aborted> {
        let own = if self.process == 0 { bytes } else { Vec::new() };
        let len = self.max(own.len() as u64)? as usize;
        let mut whole = Vec::with_capacity(len);
        while whole.len() < len {
            let end = len.min(whole.len() + PIECE_BYTES);
            let piece = match self.process {
                0 => own[whole.len()..end].to_vec(),
                _ => vec![0; end - whole.len()],
            };
            whole.extend(self.carry(piece, |wire, bytes, request| {
                let (place, len) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
                let byte = u8::equivalent_datatype().as_raw();
                // SAFETY: `carry` keeps the bytes until MPI is done with them, or for ever.
                unsafe { ffi::MPI_Ibcast(place, len, byte, 0, wire.work.as_raw(), request) }
            })?);
        }
        Ok(whole)
    }

    fn send(&self, bytes: Vec<u8>) -> Result<(), Aborted> {
        self.carry(bytes, |wire, bytes, request| isend(&wire.work, bytes, 0, DATA, request))
            .map(drop)
    }

    fn receive(&self, process: u32) -> Result<Vec<u8>, Aborted> {
        let mut bytes = Vec::new();
        self.settle(|wire| {
            let sender = wire.work.process_at_rank(process as c_int);
            let found = sender.immediate_matched_probe_with_tag(DATA);
            let Some(message) = found else { return false };
            bytes = message.matched_receive_vec::<u8>().0;
            true
        })?;
        Ok(bytes)
    }

    fn abort(&self, news: Aborted) {
        if self.aborted.get().is_some() {
            return;
        }
        let mut bytes = news.rank.to_le_bytes().to_vec();
        bytes.extend_from_slice(news.reason.as_bytes());
        self.tell(ABORT, bytes);
        self.hear(news);
    }

    fn aborted(&self) -> Option<Aborted> {
        self.aborted.get().cloned()
    }

    fn share_stop(&self, stop: Arc<AtomicBool>) {
        // A process runs one job.
        let _ = self.stop.set(stop);
    }

    fn on_abort(&self, hear: Hear) {
        let hear = Arc::new(hear);
        let mut hearers = self.hearers.lock().unwrap_or_else(PoisonError::into_inner);
        hearers.push(Arc::clone(&hear));
        drop(hearers);
        if let Some(news) = self.aborted.get() {
            hear(news);
        }
    }
}

/// The wire, as long as no other thread calls MPI.
struct WireGuard<'a>(MutexGuard<'a, Option<ManuallyDrop<Wire>>>);

impl WireGuard<'_> {
    fn wire(&self) -> &Wire {
        self.0.as_ref().expect("MPI is finalized last")
    }

    fn wire_mut(&mut self) -> &mut Wire {
        self.0.as_mut().expect("MPI is finalized last")
    }
}

impl std::ops::Deref for WireGuard<'_> {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        self.wire()
    }
}

/// Starts to send bytes, which must stay as they are until that is done.
fn isend(
    on: &SimpleCommunicator,
    bytes: &mut [u8],
    to: c_int,
    tag: c_int,
    request: &mut MPI_Request,
) -> c_int {
    let (place, len) = (bytes.as_ptr().cast(), bytes.len() as c_int);
    let byte = u8::equivalent_datatype().as_raw();
    // SAFETY: callers keep the bytes until MPI is done with them, or for ever.
    unsafe { ffi::MPI_Isend(place, len, byte, to, tag, on.as_raw(), request) }
}

/// Whether an operation is done; the wire is the proof that no other thread calls MPI.
fn is_done(_wire: &Wire, request: &mut MPI_Request) -> bool {
    let mut flag = 0;
    // SAFETY: the request came from MPI and is its own until it says that it is done.
    unsafe { ffi::MPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
    flag != 0
}

/// The machine of every process: those that can share memory are on one.
fn nodes(world: &SimpleCommunicator) -> Vec<u32> {
    let node = world.split_shared(world.rank());
    let mut leader = world.rank();
    node.process_at_rank(0).broadcast_into(&mut leader);
    let mut leaders = vec![0; world.size() as usize];
    world.all_gather_into(&leader, &mut leaders[..]);
    let mut known = leaders.clone();
    known.sort_unstable();
    known.dedup();
    let number = |leader| known.binary_search(leader).expect("it is one of them") as u32;
    leaders.iter().map(number).collect()
}

/// Hears of an abort or a stop while this process does something else, and tells of its own stop.
fn watch(watched: &Weak<Mpi>) {
    let mut stopped = false;
    while let Some(mpi) = watched.upgrade() {
        if mpi.wire.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
            return;
        }
        if let Some((rank, reason)) = mpi.told(ABORT).as_deref().and_then(<[u8]>::split_first_chunk)
        {
            let reason = String::from_utf8_lossy(reason).into_owned();
            mpi.hear(Aborted { rank: u32::from_le_bytes(*rank), reason });
        }
        if let (Some(stop), false) = (mpi.stop.get(), stopped) {
            if mpi.told(STOP).is_some() {
                stop.store(true, Ordering::Relaxed);
                stopped = true;
            } else if stop.load(Ordering::Relaxed) {
                // The abort of a job sets the flag too, and is told by itself.
                if mpi.aborted.get().is_none() {
                    mpi.tell(STOP, Vec::new());
                }
                stopped = true;
            }
        }
        drop(mpi);
        thread::sleep(WATCH);
    }
}
