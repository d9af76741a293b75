//! The recorder of this process: from a call to its slot.
//!
//! The way of a call is [`Recorder::commit`]: this thread's segment, one slot, done. Everything else
//! happens once per segment: taking one that was drained, or making one. A child process notices that it
//! is one by a page that the kernel wipes in children, at its first call, however it was forked.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::config::{Config, Text};
use crate::file_name::with_path;
use crate::op::{self, Category, Class, Op};
use crate::os::{self, NoFile};
use crate::process::{
    DropReason, Ending, Head, PROCESS_BYTES, PROCESS_MAGIC, TEXT_BYTES, describe,
};
use crate::record::{CallRecord, SLOT_BYTES, Summary, TextKind};
use crate::route::Route;
use crate::segment::{
    ACTIVE, DRAINED, FIRST_BYTES, FULL, OTHER_BYTES, PROCESS_SUFFIX, SEGMENT_MAGIC, SEGMENT_SUFFIX,
    Segment, capacity,
};
use crate::thread::{Note, OpenSummaries, OpenSummary, Thread, in_thread, unmap};
use crate::ticks::{self, ClockPair};

/// The number that means no text.
pub const UNNAMED: u32 = 0;
/// Longer texts are cut off; the kernel takes no longer path.
const LONGEST_TEXT: usize = 4096;
/// Segments that a process keeps to use again.
const KEPT: usize = 4096;
/// Half-written segments of threads that ended, for others to go on with.
const SPARE: usize = 64;
/// So often is a segment looked for that has room: those of threads that ended may have little.
const TURNS: u32 = 8;
/// Events that are dropped after a segment could not be created, before the next attempt.
const PATIENCE: u32 = 4096;

/// State of a process that every forked child starts with from scratch.
struct Page {
    /// Which process this is: 0 in a child that has not noticed yet.
    epoch: AtomicU32,
    /// Whether a thread is about to notice.
    starting: AtomicU32,
}

/// The recorder of this process.
#[derive(Debug)]
pub struct Recorder {
    page: AtomicPtr<Page>,
    epochs: AtomicU32,
    head: AtomicPtr<Head>,
    started: AtomicU64,
    texts: AtomicU32,
    segments: AtomicU32,
    folder_bytes: AtomicI64,
    /// Events since a segment could not be made.
    misses: AtomicU32,
    /// Where a child that could not make a file of its own counts what it drops: its parent's head.
    parent: AtomicPtr<Head>,
    kept: [AtomicPtr<Segment>; KEPT],
    keeping: AtomicU32,
    spare: [AtomicPtr<Segment>; SPARE],
    thread_end: AtomicU32,
    config: UnsafeCell<Config>,
    thins: AtomicU32,
}

// SAFETY: `config` is written once, by `start`, before `page` is set, which every reader looks at first.
unsafe impl Sync for Recorder {}

impl core::fmt::Debug for Page {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Page").finish_non_exhaustive()
    }
}

static RECORDER: Recorder = Recorder {
    page: AtomicPtr::new(ptr::null_mut()),
    epochs: AtomicU32::new(0),
    head: AtomicPtr::new(ptr::null_mut()),
    started: AtomicU64::new(0),
    texts: AtomicU32::new(1),
    segments: AtomicU32::new(0),
    folder_bytes: AtomicI64::new(0),
    misses: AtomicU32::new(0),
    parent: AtomicPtr::new(ptr::null_mut()),
    kept: [const { AtomicPtr::new(ptr::null_mut()) }; KEPT],
    keeping: AtomicU32::new(0),
    spare: [const { AtomicPtr::new(ptr::null_mut()) }; SPARE],
    thread_end: AtomicU32::new(0),
    config: UnsafeCell::new(Config::EMPTY),
    thins: AtomicU32::new(0),
};

/// The recorder of this process; it is off until it is started.
#[inline]
pub fn recorder() -> &'static Recorder {
    &RECORDER
}

impl Recorder {
    /// Starts recording. `arguments` is the command line. False if it is on already or cannot be:
    /// the program then runs as if nothing were there.
    pub fn start<'a>(
        &self,
        config: &Config,
        arguments: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> bool {
        if !self.page.load(Ordering::Acquire).is_null() {
            return false;
        }
        os::keep_errno(|| {
            // SAFETY: recording is off, so no thread reads it; programs start it from one thread.
            unsafe { *self.config.get() = *config };
            ticks::use_counter(config.counter);
            self.thins.store(
                u32::from(config.one_of > 1) + 2 * u32::from(config.summary_ns > 0),
                Ordering::Relaxed,
            );
            let mut key = 0;
            // SAFETY: a new key with a function that lives as long as the program.
            if unsafe { libc::pthread_key_create(&raw mut key, Some(end_of_thread)) } == 0 {
                self.thread_end.store(key + 1, Ordering::Relaxed);
            }
            let Some(page) = os::map_page_of_this_process() else { return false };
            let page = page.cast::<Page>();
            if !self.begin_process(None, arguments) {
                return false;
            }
            // SAFETY: a page of zeros, which are fine for its atomics, that stays.
            unsafe { page.as_ref() }.epoch.store(self.next_epoch(), Ordering::Release);
            self.page.store(page.as_ptr(), Ordering::Release);
            Route::set_own();
            true
        })
    }

    /// Whether calls are recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.page.load(Ordering::Relaxed).is_null()
    }

    /// Records a call. Keeps `errno`.
    #[inline]
    pub fn commit(&self, op: Op, record: &CallRecord) {
        in_thread(|thread| {
            if self.thins.load(Ordering::Relaxed) != 0 && self.thin(thread, op, record) {
                return;
            }
            if let Some(segment) = self.segment_of(thread)
                && let Some(slot) = segment.reserve(1)
            {
                segment.complete(
                    slot,
                    CallRecord { op: op as u16, thread: thread.id.get(), ..*record },
                );
                return;
            }
            self.commit_elsewhere(thread, op as u16, record);
        });
    }

    /// Records a call that may not come back, before it is made. Keeps `errno`.
    pub fn commit_provisionally(&self, op: Op, record: &CallRecord) -> Provisional {
        in_thread(|thread| {
            self.commit(op, record);
            let segment = thread.segment.load(Ordering::Relaxed);
            // SAFETY: null, or this thread's segment, which stays mapped while it has it.
            let head = unsafe { segment.as_ref() };
            let slot = head.and_then(|segment| {
                let last = segment.next.0.load(Ordering::Relaxed).checked_sub(1)?;
                (last < segment.capacity).then(|| segment.slot(last).as_ptr())
            });
            let generation = head.map_or(0, |head| head.generation.load(Ordering::Relaxed));
            Provisional { op, segment, generation, slot: slot.unwrap_or(ptr::null_mut()) }
        })
    }

    /// Corrects a record of a call that came back after all; if its segment is gone, there is another
    /// record of it. Keeps `errno`.
    pub fn correct(&self, provisional: Provisional, record: &CallRecord) {
        in_thread(|thread| {
            let segment = thread.segment.load(Ordering::Relaxed);
            // The thread may have got the same segment back, empty.
            let is_here = ptr::eq(segment, provisional.segment)
                // SAFETY: null, or this thread's segment, which stays mapped while it has it.
                && unsafe { segment.as_ref() }.is_some_and(|head| {
                    head.generation.load(Ordering::Relaxed) == provisional.generation
                });
            let Some(slot) = NonNull::new(provisional.slot).filter(|_| is_here) else {
                self.commit(provisional.op, record);
                return;
            };
            // SAFETY: the slot is this thread's own, in its segment.
            let was_for = unsafe { (*slot.as_ptr()).op };
            if was_for != provisional.op as u16 {
                return;
            }
            // SAFETY: as above; segments are read when they are full or their process is gone.
            unsafe {
                (*slot.as_ptr()).end = record.end;
                (*slot.as_ptr()).result = record.result;
                (*slot.as_ptr()).errno = record.errno;
            }
        });
    }

    /// Records a text and gives its number, [`UNNAMED`] if it was dropped. Keeps `errno`.
    pub fn text(&self, kind: TextKind, base: u32, text: &[u8]) -> u32 {
        let text = text.get(..LONGEST_TEXT).unwrap_or(text);
        in_thread(|thread| {
            let slots = 1 + text.len().div_ceil(SLOT_BYTES) as u32;
            // The first call in a forked child comes here before it takes a number.
            let mut segment = self.segment_of(thread);
            let mut place = segment.and_then(|segment| segment.reserve(slots));
            for _ in 0..TURNS {
                if place.is_some() {
                    break;
                }
                segment = os::keep_errno(|| self.turn(thread));
                place = segment.and_then(|segment| segment.reserve(slots));
            }
            let (Some(segment), Some(place)) = (segment, place) else { return UNNAMED };
            let number = self.texts.fetch_add(1, Ordering::Relaxed);
            thread.write_text(segment, place, Note { number, base, kind }, text);
            number
        })
    }

    /// This thread's mark that it is about to have a child in its own memory.
    pub fn vfork_mark(&self) -> &'static core::cell::Cell<bool> {
        &Thread::this().has_vforked
    }

    /// Says that nothing more is recorded, and why.
    pub fn stop(&self, trouble: DropReason) {
        if let Some(head) = self.head() {
            head.trouble.store(trouble as u32, Ordering::Relaxed);
        }
    }

    /// Says that the process ends, and how; the last word counts.
    pub fn end(&self, ending: Ending, status: i32) {
        if let Some(head) = self.head() {
            head.status.store(status, Ordering::Relaxed);
            head.ended.store(ticks::now(), Ordering::Relaxed);
            head.ending.store(ending as u32, Ordering::Release);
        }
    }

    /// Counts calls that a filter left out.
    pub fn count_filtered(&self) {
        if let Some(head) = self.head() {
            head.filtered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of this process as recording knows it: false in a child that shares its memory with
    /// its parent, which must leave no trace in it.
    pub fn is_this_process(&self) -> bool {
        let Some(page) = self.page() else { return false };
        page.epoch.load(Ordering::Relaxed) == 0
            || self.head().is_some_and(|head| head.pid == os::process_id())
    }

    /// Makes sure that a child which was just forked has a file of its own, with its own start.
    pub fn notice_fork(&self) {
        in_thread(|thread| {
            if self.segment_of(thread).is_none() {
                os::keep_errno(|| self.turn(thread));
            }
        });
    }

    #[inline]
    fn config(&self) -> &Config {
        // SAFETY: `start` wrote it before anything else runs.
        unsafe { &*self.config.get() }
    }

    #[inline]
    fn page(&self) -> Option<&'static Page> {
        // SAFETY: null, or the page that `start` mapped for good.
        unsafe { self.page.load(Ordering::Acquire).as_ref() }
    }

    fn head(&self) -> Option<&'static Head> {
        let page = self.page()?;
        if page.epoch.load(Ordering::Acquire) == 0 {
            return None;
        }
        // SAFETY: null, or a head that stays mapped.
        unsafe { self.head.load(Ordering::Acquire).as_ref() }
    }

    /// This thread's segment, if it has one that is this process's.
    #[inline]
    fn segment_of(&self, thread: &Thread) -> Option<&'static Segment> {
        let page = self.page()?;
        // SAFETY: null, or a segment that stays mapped while this thread has it.
        let segment = unsafe { thread.segment.load(Ordering::Relaxed).as_ref() }?;
        (thread.epoch.get() == page.epoch.load(Ordering::Relaxed)).then_some(segment)
    }

    #[cold]
    fn commit_elsewhere(&self, thread: &Thread, op: u16, record: &CallRecord) {
        os::keep_errno(|| {
            // A segment that another thread left may be full by the time it is used.
            for _ in 0..TURNS {
                let Some(segment) = self.turn(thread) else { break };
                if let Some(slot) = segment.reserve(1) {
                    segment.complete(slot, CallRecord { op, thread: thread.id.get(), ..*record });
                    return;
                }
            }
            self.drop_one();
        });
    }

    /// Counts an event that could not be recorded.
    fn drop_one(&self) {
        // SAFETY: null, or a head that stays mapped.
        let parent = || unsafe { self.parent.load(Ordering::Acquire).as_ref() };
        if let Some(head) = self.head().or_else(parent) {
            head.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn next_epoch(&self) -> u32 {
        self.epochs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Gives this thread a segment with room. `None` if there is none. Takes no signals meanwhile: a
    /// handler that records would make a segment too, and one that jumps away would lose this one.
    fn turn(&self, thread: &Thread) -> Option<&'static Segment> {
        os::without_signals(|| self.turn_undisturbed(thread))
    }

    fn turn_undisturbed(&self, thread: &Thread) -> Option<&'static Segment> {
        let page = self.page()?;
        if page.epoch.load(Ordering::Acquire) == 0 && !self.become_process(page) {
            return None;
        }
        let epoch = page.epoch.load(Ordering::Acquire);
        let old = thread.segment.swap(ptr::null_mut(), Ordering::Relaxed);
        if thread.epoch.replace(epoch) == epoch {
            self.close(thread, old);
        } else {
            // Whatever this thread was in the middle of, its parent was.
            thread.depth.set(1);
            thread.retired.store(ptr::null_mut(), Ordering::Relaxed);
        }
        thread.forget_summaries();
        thread.id.set(os::thread_id());
        let segment = self
            .spare_segment(thread)
            .or_else(|| self.drained_segment())
            .or_else(|| self.new_segment(thread.turns.get()))?;
        thread.turns.set(thread.turns.get().saturating_add(1));
        thread.segment.store(segment.as_ptr(), Ordering::Relaxed);
        let key = self.thread_end.load(Ordering::Relaxed);
        if key > 0 {
            // SAFETY: the key was made by `start`; the value is only looked at for being there.
            unsafe { libc::pthread_setspecific(key - 1, segment.as_ptr().cast()) };
        }
        // SAFETY: just mapped, or taken from a list of mapped ones.
        Some(unsafe { segment.as_ref() })
    }

    /// Closes a segment that the thread has just given up: it is not written to any more.
    fn close(&self, thread: &Thread, segment: *mut Segment) {
        let Some(place) = NonNull::new(segment) else { return };
        // SAFETY: mapped, and owned by this thread; the field is its owner's.
        unsafe { (*place.as_ptr()).to = ClockPair::now() };
        // SAFETY: as above.
        let head = unsafe { place.as_ref() };
        let is_kept = head.is_kept;
        head.state.store(FULL, Ordering::Release);
        if is_kept != 0 {
            return;
        }
        // The record that a signal interrupted may still go there. It is in the middle of one segment
        // only, so others that one handler went through are not needed.
        match thread.depth.get() {
            0 | 1 => unmap(segment),
            _ if thread.retired.load(Ordering::Relaxed).is_null() => {
                thread.retired.store(segment, Ordering::Relaxed);
            }
            2 => unmap(segment),
            // Handlers that were interrupted themselves: it stays mapped.
            _ => {}
        }
    }

    /// Another thread may go on with a segment.
    fn hand_on(&self, thread: &Thread, segment: *mut Segment) {
        if segment.is_null() {
            return;
        }
        let is_taken = self.spare.iter().any(|place| {
            place
                .compare_exchange(ptr::null_mut(), segment, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        if !is_taken {
            self.close(thread, segment);
        }
    }

    fn spare_segment(&self, thread: &Thread) -> Option<NonNull<Segment>> {
        self.spare.iter().find_map(|place| {
            if place.load(Ordering::Relaxed).is_null() {
                return None;
            }
            let taken = NonNull::new(place.swap(ptr::null_mut(), Ordering::AcqRel))?;
            // SAFETY: mapped; no one else uses segments in this list.
            let segment = unsafe { taken.as_ref() };
            if segment.next.0.load(Ordering::Relaxed) < segment.capacity {
                return Some(taken);
            }
            self.close(thread, taken.as_ptr());
            None
        })
    }

    fn drained_segment(&self) -> Option<NonNull<Segment>> {
        let count = (self.keeping.load(Ordering::Acquire) as usize).min(KEPT);
        self.kept.iter().take(count).find_map(|place| {
            let segment = NonNull::new(place.load(Ordering::Acquire))?;
            // SAFETY: kept segments stay mapped.
            let head = unsafe { segment.as_ref() };
            head.state
                .compare_exchange(DRAINED, ACTIVE, Ordering::AcqRel, Ordering::Relaxed)
                .ok()?;
            head.begin(head.generation.load(Ordering::Relaxed).wrapping_add(1));
            head.skipped.store(0, Ordering::Relaxed);
            // SAFETY: this thread has it now; readers look at it when it is full again.
            unsafe { (*segment.as_ptr()).from = ClockPair::now() };
            head.next.0.store(0, Ordering::Release);
            Some(segment)
        })
    }

    /// The first segment of a thread is small: most threads need no more.
    fn new_segment(&self, turns: u32) -> Option<NonNull<Segment>> {
        let head = self.head()?;
        if !self.misses.load(Ordering::Relaxed).is_multiple_of(PATIENCE) {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = self.segments.fetch_add(1, Ordering::Relaxed);
        let bytes = if turns == 0 { FIRST_BYTES } else { OTHER_BYTES };
        let place = match self.new_file(number, SEGMENT_SUFFIX, bytes) {
            Ok(place) => place.cast::<Segment>(),
            Err(trouble) => {
                head.trouble.store(trouble as u32, Ordering::Relaxed);
                self.misses.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        };
        self.misses.store(0, Ordering::Relaxed);
        let is_drained = self.config().is_drained;
        let index = if is_drained { self.keeping.load(Ordering::Relaxed) as usize } else { KEPT };
        let is_kept = index < KEPT && bytes == OTHER_BYTES;
        // SAFETY: a new mapping of zeros that is larger than the head, and not shared yet.
        unsafe {
            let segment = &mut *place.as_ptr();
            segment.fingerprint = op::fingerprint();
            segment.started = self.started.load(Ordering::Relaxed);
            segment.pid = head.pid;
            segment.number = number;
            segment.capacity = capacity(bytes);
            segment.is_kept = u32::from(is_kept);
            segment.from = ClockPair::now();
            segment.begin(1);
            *segment.state.get_mut() = ACTIVE;
            segment.magic.store(SEGMENT_MAGIC, Ordering::Release);
        }
        if is_kept {
            let index = self.keeping.fetch_add(1, Ordering::AcqRel) as usize;
            if let Some(entry) = self.kept.get(index) {
                entry.store(place.as_ptr(), Ordering::Release);
            }
        }
        Some(place)
    }

    /// A new mapped file of this process, in the folder or, when that is full, in the other one.
    fn new_file(&self, number: u32, suffix: &str, bytes: usize) -> Result<NonNull<u8>, DropReason> {
        let config = self.config();
        let in_folder = |folder: &Text<1024>| {
            with_path(|path| {
                path.clear();
                let named = path.push(folder.bytes())
                    && path.push(b"/")
                    && os::push_host(path)
                    && path.push(b"-")
                    && path.push_number(u64::from(os::process_id()))
                    && path.push(b"-")
                    && path.push_number(self.started.load(Ordering::Relaxed))
                    && path.push(b"-")
                    && path.push_number(u64::from(number))
                    && path.push(suffix.as_bytes());
                let path = path.c_str().filter(|_| named).ok_or(NoFile::Open)?;
                os::map_new_file(path, bytes)
            })
        };
        let taken = self.folder_bytes.fetch_add(bytes as i64, Ordering::Relaxed).cast_unsigned();
        let first = if taken.saturating_add(bytes as u64) <= config.folder_bytes {
            in_folder(&config.folder)
        } else {
            Err(NoFile::Room)
        };
        let made = match first {
            Err(_) if !config.overflow.is_empty() => in_folder(&config.overflow),
            other => other,
        };
        made.map_err(|reason| match reason {
            NoFile::Open => DropReason::Folder,
            NoFile::Room => DropReason::Room,
            NoFile::Map => DropReason::Map,
        })
    }

    /// The first call in a forked child: its own file, its own segments.
    #[cold]
    fn become_process(&self, page: &Page) -> bool {
        if page.starting.swap(1, Ordering::AcqRel) != 0 {
            // Another thread of this young child is at it, which takes microseconds.
            return (0..1_000_000).any(|_| {
                core::hint::spin_loop();
                page.epoch.load(Ordering::Acquire) != 0
            });
        }
        // SAFETY: the parent's head, whose mapping children inherit.
        let parent = unsafe { self.head.load(Ordering::Acquire).as_ref() };
        for place in self.kept.iter().chain(&self.spare) {
            if !place.load(Ordering::Relaxed).is_null() {
                place.store(ptr::null_mut(), Ordering::Relaxed);
            }
        }
        for counter in [&self.keeping, &self.segments] {
            counter.store(0, Ordering::Relaxed);
        }
        self.folder_bytes.store(0, Ordering::Relaxed);
        let is_begun = self.begin_process(parent, core::iter::empty());
        // A child without a file records nothing. Its parent's head counts what that loses, but must not
        // say that the parent ended when the child does.
        if !is_begun {
            let head = self.head.swap(ptr::null_mut(), Ordering::AcqRel);
            self.parent.store(head, Ordering::Release);
            if let Some(parent) = parent {
                parent.trouble.store(DropReason::Child as u32, Ordering::Relaxed);
            }
        }
        page.epoch.store(self.next_epoch(), Ordering::Release);
        is_begun
    }

    fn begin_process<'a>(
        &self,
        parent: Option<&Head>,
        arguments: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> bool {
        let start = ClockPair::now();
        self.started.store(start.ticks, Ordering::Relaxed);
        let Ok(place) = self.new_file(0, PROCESS_SUFFIX, PROCESS_BYTES) else { return false };
        let config = self.config();
        let place = place.cast::<Head>();
        // SAFETY: a new mapping of zeros that is larger than the head, and not shared yet.
        let head = unsafe { &mut *place.as_ptr() };
        head.fingerprint = op::fingerprint();
        head.start = start;
        head.wall_ns = os::wall_ns();
        head.parent_started = parent.map_or(0, |parent| parent.start.ticks);
        head.pid = os::process_id();
        head.parent = os::parent_id();
        head.first_text = self.texts.load(Ordering::Relaxed);
        head.counter = u32::from(config.counter);
        head.summary_or_sample = self.thins.load(Ordering::Relaxed);
        head.rank = config.rank;
        // SAFETY: the texts follow the head in the same mapping.
        let room = unsafe {
            core::slice::from_raw_parts_mut(place.as_ptr().add(1).cast::<u8>(), TEXT_BYTES)
        };
        match parent {
            Some(parent) => {
                head.lengths = parent.lengths;
                // SAFETY: the parent's texts follow its head in the same mapping.
                let texts = unsafe {
                    core::slice::from_raw_parts(
                        ptr::from_ref(parent).add(1).cast::<u8>(),
                        TEXT_BYTES,
                    )
                };
                room.copy_from_slice(texts);
            }
            None => describe(&mut head.lengths, room, arguments),
        }
        head.magic.store(PROCESS_MAGIC, Ordering::Release);
        self.head.store(place.as_ptr(), Ordering::Release);
        true
    }

    /// Sampling and summaries. True if there is nothing more to do about this call.
    fn thin(&self, thread: &Thread, op: Op, record: &CallRecord) -> bool {
        let config = self.config();
        let facts = op.info();
        let is_app = facts.category == Category::App;
        if is_app || matches!(facts.class, Class::Process | Class::Open | Class::Close) {
            return false;
        }
        if config.one_of > 1 {
            let calls = thread.calls.get().wrapping_add(1);
            thread.calls.set(calls);
            if !calls.is_multiple_of(config.one_of) {
                match self.segment_of(thread) {
                    Some(segment) => _ = segment.skipped.fetch_add(1, Ordering::Relaxed),
                    // Nowhere to count it: record it.
                    None => return false,
                }
                return true;
            }
        }
        // A summary that a signal interrupted must not be changed under its hands.
        config.summary_ns > 0
            && thread.depth.get() <= 1
            && self.summarize(thread, op, record, config.summary_ns)
    }

    /// Adds a call to its open summary, or opens one. False if there is no room for one.
    fn summarize(&self, thread: &Thread, op: Op, record: &CallRecord, for_ns: u64) -> bool {
        let Some(segment) = self.segment_of(thread) else { return false };
        let Some(entry) = thread.summary(record.file, op as u16) else { return false };
        let duration = record.end.saturating_sub(record.start);
        let done =
            if op.info().class.moves_bytes() { record.result.max(0).cast_unsigned() } else { 0 };
        let open = entry.get().filter(|open| {
            open.segment == NonNull::from(segment)
                && open.file == record.file
                && open.op == op as u16
                // SAFETY: the slot is in this thread's segment; what was in one that was mapped at
                // the same place before was forgotten.
                && record.start.wrapping_sub(unsafe { open.slot.as_ref() }.start) < for_ns
        });
        if let Some(mut open) = open {
            // SAFETY: both slots are this thread's own, in a mapping that stays while it has it.
            unsafe {
                let head = open.slot.as_mut();
                head.end = head.end.max(record.end);
                head.size += record.size;
                head.result += done.cast_signed();
                open.slot.add(1).cast::<Summary>().as_mut().add(duration, done, record.errno);
            }
            return true;
        }
        let Some(slot) = segment.reserve(2) else { return false };
        let mut summary = Summary { shortest: u64::MAX, least: u64::MAX, ..Summary::default() };
        summary.add(duration, done, record.errno);
        // SAFETY: the second of the two slots that were just taken.
        unsafe { slot.add(1).cast::<Summary>().write(summary) };
        let head = CallRecord {
            op: op::SUMMARY,
            more: op as u16,
            result: done.cast_signed(),
            errno: 0,
            thread: thread.id.get(),
            ..*record
        };
        segment.complete(slot, head);
        let segment = NonNull::from(segment);
        entry.set(Some(OpenSummary { segment, slot, file: record.file, op: op as u16 }));
        true
    }
}

/// A record of a call that has not come back.
#[derive(Debug)]
pub struct Provisional {
    op: Op,
    segment: *mut Segment,
    generation: u32,
    slot: *mut CallRecord,
}

/// A thread ends: another one may go on with its segment.
unsafe extern "C" fn end_of_thread(_: *mut c_void) {
    in_thread(|thread| {
        let segment = thread.segment.swap(ptr::null_mut(), Ordering::Relaxed);
        let summaries = thread.summaries.replace(ptr::null_mut());
        if let Some(place) = NonNull::new(summaries) {
            // SAFETY: this thread's own, and forgotten.
            unsafe { os::unmap(place.cast(), size_of::<OpenSummaries>()) };
        }
        let is_here = RECORDER
            .page()
            .is_some_and(|page| page.epoch.load(Ordering::Relaxed) == thread.epoch.get());
        if is_here {
            RECORDER.hand_on(thread, segment);
        }
    });
}
