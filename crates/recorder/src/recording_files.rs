//! Segments and processes as their reader sees them: files that another process may still be writing.

use std::fs::File;
use std::mem::offset_of;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::op::{self, Op};
use crate::os;
use crate::process::{
    DropReason, Ending, Head, PROCESS_BYTES, PROCESS_MAGIC, ProcessFacts, TEXT_BYTES,
};
use crate::record::{CallRecord, SLOT_BYTES, Summary, TextKind};
use crate::segment::{DRAINED, FULL, HEAD_BYTES, SEGMENT_MAGIC, Segment};
use crate::ticks::ClockPair;

/// Why a file of a recording is not read.
#[derive(Debug)]
pub enum ReadError {
    /// The system says no.
    Io(std::io::Error),
    /// Its writer has not got far enough, or never will.
    Unfinished,
    /// It is something else.
    Foreign,
    /// Another build of Feedline wrote it.
    OtherBuild,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Unfinished => write!(f, "its process ended before writing anything"),
            Self::Foreign => write!(f, "not a recording"),
            Self::OtherBuild => write!(f, "recorded by another build of Feedline"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

#[derive(Debug)]
struct Mapping {
    place: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is reached through atomics, or where its writer is done.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn open(path: &Path, least: usize) -> Result<Self, ReadError> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| ReadError::Foreign)?;
        if bytes < least {
            return Err(ReadError::Unfinished);
        }
        let place = os::map_file(file.as_raw_fd(), bytes)
            .ok_or_else(|| ReadError::Io(std::io::Error::last_os_error()))?;
        Ok(Self { place, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: everything that points into it borrows from it.
        unsafe { os::unmap(self.place, self.bytes) };
    }
}

/// The file of a process.
#[derive(Debug)]
pub struct ProcessFile {
    mapping: Mapping,
    path: PathBuf,
}

impl ProcessFile {
    /// Maps the file of a process or a segment and checks its header.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mapping = Mapping::open(path, PROCESS_BYTES)?;
        let file = Self { mapping, path: path.to_owned() };
        match file.head().magic.load(Ordering::Acquire) {
            PROCESS_MAGIC if file.head().fingerprint == op::fingerprint() => Ok(file),
            PROCESS_MAGIC => Err(ReadError::OtherBuild),
            0 => Err(ReadError::Unfinished),
            _ => Err(ReadError::Foreign),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is at least as large as the head, aligned to a page, and any bytes are
        // fine for its fields.
        unsafe { self.mapping.place.cast::<Head>().as_ref() }
    }

    /// What the process says about itself now.
    pub fn facts(&self) -> ProcessFacts {
        let head = self.head();
        // SAFETY: the texts follow the head, and were complete before the magic number.
        let room = unsafe {
            std::slice::from_raw_parts(
                self.mapping.place.add(size_of::<Head>()).as_ptr(),
                TEXT_BYTES,
            )
        };
        let mut rest = room;
        let mut text = |length: u32| {
            let (text, behind) = rest.split_at((length as usize).min(rest.len()));
            rest = behind;
            String::from_utf8_lossy(text).into_owned()
        };
        let [host, boot, namespace, program, folder, arguments] = head.lengths.map(&mut text);
        let ending = Ending::from_number(head.ending.load(Ordering::Acquire));
        ProcessFacts {
            pid: head.pid,
            parent: head.parent,
            started: head.start.ticks,
            parent_started: (head.parent_started != 0).then_some(head.parent_started),
            first_text: head.first_text,
            start: head.start,
            wall_ns: head.wall_ns,
            counter: head.counter != 0,
            rank: u32::try_from(head.rank).ok(),
            host,
            boot,
            namespace,
            program,
            folder,
            arguments: arguments.split_terminator('\0').map(str::to_owned).collect(),
            ending,
            status: head.status.load(Ordering::Relaxed),
            ended: head.ended.load(Ordering::Relaxed),
            dropped: head.dropped.load(Ordering::Relaxed),
            trouble: DropReason::from_number(head.trouble.load(Ordering::Relaxed)),
            filtered: head.filtered.load(Ordering::Relaxed),
        }
    }
}

/// A segment, mapped for reading.
#[derive(Debug)]
pub struct SegmentFile {
    mapping: Mapping,
    path: PathBuf,
}

/// An entry of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentEntry<'a> {
    /// A single call.
    Call(Op, CallRecord),
    /// Many calls of one kind, summarized.
    Summary(Op, CallRecord, Summary),
    /// A text, which later entries (of any segment of the process) name by its number.
    Text {
        /// The number by which entries name it.
        number: u32,
        /// The text that it continues, 0 for none.
        base: u32,
        /// Whether it is a path, the name of a span or another object.
        kind: TextKind,
        /// The text; not necessarily UTF-8.
        text: &'a [u8],
    },
}

impl SegmentFile {
    /// Maps the file of a process or a segment and checks its header.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mapping = Mapping::open(path, HEAD_BYTES)?;
        let file = Self { mapping, path: path.to_owned() };
        let room = (file.mapping.bytes - HEAD_BYTES) / SLOT_BYTES;
        match file.head().magic.load(Ordering::Acquire) {
            SEGMENT_MAGIC if file.head().fingerprint != op::fingerprint() => {
                Err(ReadError::OtherBuild)
            }
            SEGMENT_MAGIC if file.head().capacity as usize <= room => Ok(file),
            0 => Err(ReadError::Unfinished),
            _ => Err(ReadError::Foreign),
        }
    }

    fn head(&self) -> &Segment {
        // SAFETY: the mapping is at least as large as the head, aligned to a page, and any bytes are
        // fine for its fields.
        unsafe { self.mapping.place.cast::<Segment>().as_ref() }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process that writes it: its number, and when its recording started.
    pub fn process(&self) -> (u32, u64) {
        (self.head().pid, self.head().started)
    }

    /// Which filling of the segment this is; a drained segment is filled again.
    pub fn generation(&self) -> u32 {
        self.head().generation.load(Ordering::Acquire)
    }

    /// Whether no thread will take another slot.
    pub fn is_full(&self) -> bool {
        self.head().state.load(Ordering::Acquire) == FULL
    }

    /// Whether everything in it was read.
    pub fn is_drained(&self) -> bool {
        self.head().state.load(Ordering::Acquire) == DRAINED
    }

    /// Whether its process will fill it again once it is drained; else its file can go.
    pub fn is_kept(&self) -> bool {
        self.head().is_kept != 0
    }

    /// Calls that sampling left out.
    pub fn skipped(&self) -> u64 {
        self.head().skipped.load(Ordering::Relaxed)
    }

    /// Both clocks when the segment was begun, and when it was full.
    pub fn pairs(&self) -> (ClockPair, Option<ClockPair>) {
        (self.head().from, self.is_full().then_some(self.head().to))
    }

    /// Whether a slot was taken that is not complete: its writer is at work, or was killed at it.
    pub fn has_holes(&self) -> bool {
        self.slots().any(|(_, is_complete)| !is_complete)
    }

    /// Gives every text that is in it now: number, base, kind, bytes. True if no slot was taken whose
    /// writer may still write there; one way through the segment for both questions.
    pub fn texts(&self, mut take: impl FnMut(u32, u32, TextKind, &[u8])) -> bool {
        let mut is_whole = true;
        for (slot, is_complete) in self.slots() {
            if !is_complete {
                is_whole = false;
            } else if self.record(slot).op == op::TEXT {
                match self.entry(slot) {
                    Some(SegmentEntry::Text { number, base, kind, text }) => {
                        take(number, base, kind, text);
                    }
                    // The bytes are on their way.
                    _ => is_whole = false,
                }
            }
        }
        is_whole
    }

    /// Copies a full segment into a new file, which is as full and will not be filled again. The head
    /// comes last, so that an incomplete copy is not taken for a segment.
    pub fn copy_to(&self, path: &Path) -> Result<Self, ReadError> {
        let head = self.head();
        let slots = head.next.0.load(Ordering::Acquire).min(head.capacity);
        let end = HEAD_BYTES + slots as usize * SLOT_BYTES;
        // SAFETY: inside the mapping; a full segment is not written to.
        let bytes = unsafe { std::slice::from_raw_parts(self.mapping.place.as_ptr(), end) };
        let (first, behind) = bytes.split_at(HEAD_BYTES);
        let mut first = first.to_vec();
        for (field, value) in
            [(offset_of!(Segment, capacity), slots), (offset_of!(Segment, is_kept), 0)]
        {
            first[field..field + size_of::<u32>()].copy_from_slice(&value.to_ne_bytes());
        }
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        let written = file
            .write_all_at(behind, HEAD_BYTES as u64)
            .and_then(|()| file.write_all_at(&first, 0));
        let copy = written.map_err(ReadError::from).and_then(|()| Self::open(path));
        if copy.is_err() {
            // What is half there is in the way of the next attempt.
            let _ = std::fs::remove_file(path);
        }
        copy
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.mapping.bytes as u64
    }

    /// Lets the process write it from the start. Everything in it must be safe elsewhere.
    pub fn mark_drained(&self) {
        self.head().state.store(DRAINED, Ordering::Release);
    }

    /// Its entries so far, in the order in which slots were taken.
    pub fn entries(&self) -> impl Iterator<Item = SegmentEntry<'_>> {
        self.slots()
            .filter(|(_, is_complete)| *is_complete)
            .filter_map(|(slot, _)| self.entry(slot))
    }

    /// First slots of records up to the last one that was taken, and whether they are complete.
    fn slots(&self) -> impl Iterator<Item = (u32, bool)> {
        let head = self.head();
        let end = head.next.0.load(Ordering::Acquire).min(head.capacity);
        let tag = head.tag_now();
        let mut slot = 0;
        std::iter::from_fn(move || {
            if slot >= end {
                return None;
            }
            let this = slot;
            let place = head.slot(this);
            let is_complete = Segment::tag_in(place).load(Ordering::Acquire) == tag;
            slot += if is_complete { self.extent(this) } else { 1 };
            Some((this, is_complete))
        })
    }

    fn record(&self, slot: u32) -> CallRecord {
        // SAFETY: the slot is below the capacity and complete, so it is not written except for fields that
        // are whole at any time.
        unsafe { self.head().slot(slot).as_ptr().read_volatile() }
    }

    fn extent(&self, slot: u32) -> u32 {
        let record = self.record(slot);
        match record.op {
            op::TEXT => {
                1 + u32::try_from(record.size.div_ceil(SLOT_BYTES as u64)).unwrap_or(u32::MAX - 1)
            }
            op::SUMMARY => 2,
            op::PADDING => self.head().capacity,
            _ => 1,
        }
    }

    fn entry(&self, slot: u32) -> Option<SegmentEntry<'_>> {
        let record = self.record(slot);
        match record.op {
            op::TEXT if record.more == 1 => {
                // The text was there before `more` said so.
                std::sync::atomic::fence(Ordering::Acquire);
                let text = self.behind(slot, usize::try_from(record.size).ok()?)?;
                let base = u32::try_from(record.offset).ok()?;
                Some(SegmentEntry::Text {
                    number: record.file,
                    base,
                    kind: TextKind::from_number(record.arg)?,
                    text,
                })
            }
            op::SUMMARY => {
                let summary = self.behind(slot, SLOT_BYTES)?.as_ptr().cast::<Summary>();
                // SAFETY: `behind` holds as many bytes, aligned as slots are.
                let summary = unsafe { summary.read_volatile() };
                Some(SegmentEntry::Summary(Op::from_number(record.more)?, record, summary))
            }
            number => Some(SegmentEntry::Call(Op::from_number(number)?, record)),
        }
    }

    /// The bytes after a slot; `None` if they are not all in the segment.
    fn behind(&self, slot: u32, bytes: usize) -> Option<&[u8]> {
        let start = HEAD_BYTES + (slot as usize + 1) * SLOT_BYTES;
        (start + bytes <= self.mapping.bytes).then(|| {
            // SAFETY: inside the mapping; complete records are not written any more, but for
            // summaries, which are read as a whole after their process ended.
            unsafe { std::slice::from_raw_parts(self.mapping.place.add(start).as_ptr(), bytes) }
        })
    }
}
