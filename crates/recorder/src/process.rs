//! What a process says about itself: the head of a file that it maps when it starts.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use crate::os;
use crate::ticks::ClockPair;

/// Bytes of a process's file.
pub(crate) const PROCESS_BYTES: usize = 16 * 1024;
/// Says that this is such a file.
pub(crate) const PROCESS_MAGIC: u64 = u64::from_le_bytes(*b"FLPROC01");
/// Bytes for texts after the head.
pub(crate) const TEXT_BYTES: usize = PROCESS_BYTES - size_of::<Head>();

/// The head of a process's file.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) magic: AtomicU64,
    pub(crate) fingerprint: u64,
    pub(crate) start: ClockPair,
    pub(crate) wall_ns: u64,
    pub(crate) parent_started: u64,
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) first_text: u32,
    pub(crate) counter: u32,
    pub(crate) rank: i32,
    pub(crate) summary_or_sample: u32,
    /// Lengths of host, boot, namespace, program, folder and arguments, which follow the head one after another.
    pub(crate) lengths: [u32; TEXTS],
    pub(crate) ending: AtomicU32,
    pub(crate) status: AtomicI32,
    pub(crate) trouble: AtomicU32,
    pub(crate) ended: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) filtered: AtomicU64,
}

/// How many texts a process has.
pub(crate) const TEXTS: usize = 6;

/// How a process's own account of itself ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Ending {
    /// It does not: the process is running, or was killed.
    None = 0,
    /// It ended by itself.
    Exit = 1,
    /// It became another program.
    Exec = 2,
}

/// Why events were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum DropReason {
    /// They were not.
    None = 0,
    /// Files could not be made in the trace's folder.
    Folder = 1,
    /// No room for another segment.
    Room = 2,
    /// A segment could not be mapped.
    Map = 3,
    /// Threads that started at the same time as recording did.
    Start = 4,
    /// A child of the process could not make files: it changed its root or its user.
    Child = 5,
    /// The program forbade itself system calls, or the clock, that recording needs.
    Sandbox = 6,
}

/// What a process said about itself, for readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id, as the kernel reported it.
    pub pid: u32,
    /// The number of its parent when it started.
    pub parent: u32,
    /// Ticks when recording started; with `pid`, the name of this process.
    pub started: u64,
    /// If it was forked off a recorded process: when that one's recording started. Texts with numbers
    /// below `first_text` are those of that process.
    pub parent_started: Option<u64>,
    /// Its first text of its own.
    pub first_text: u32,
    /// Both clocks at the start.
    pub start: ClockPair,
    /// Nanoseconds since 1970 at the start.
    pub wall_ns: u64,
    /// Whether ticks are those of the processor's counter.
    pub counter: bool,
    /// Its rank, if it has one.
    pub rank: Option<u32>,
    /// Name of the machine.
    pub host: String,
    /// The kernel's name of this boot of the machine: clocks of two boots have nothing to do with each
    /// other.
    pub boot: String,
    /// The kernel's name of the namespace that `pid` belongs to.
    pub namespace: String,
    /// Path of the executable.
    pub program: String,
    /// The current folder at the start.
    pub folder: String,
    /// The command line, argument by argument.
    pub arguments: Vec<String>,
    /// How its account ends.
    pub ending: Ending,
    /// The exit status, if it exited by itself.
    pub status: i32,
    /// Ticks of its end, if it said so.
    pub ended: u64,
    /// Events that could not be recorded.
    pub dropped: u64,
    /// Why.
    pub trouble: DropReason,
    /// Calls that the user's filters left out.
    pub filtered: u64,
}

impl Ending {
    pub(crate) fn from_number(number: u32) -> Self {
        [Self::Exit, Self::Exec].into_iter().find(|e| *e as u32 == number).unwrap_or(Self::None)
    }
}

impl DropReason {
    pub(crate) fn from_number(number: u32) -> Self {
        [Self::Folder, Self::Room, Self::Map, Self::Start, Self::Child, Self::Sandbox]
            .into_iter()
            .find(|trouble| *trouble as u32 == number)
            .unwrap_or(Self::None)
    }

    /// In words, for reports.
    pub fn describe(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Folder => "files could not be created in the trace folder",
            Self::Room => "no room for another segment",
            Self::Map => "a segment could not be mapped",
            Self::Start => "recording had not started yet",
            Self::Child => "a forked child could not create files in the trace folder",
            Self::Sandbox => "it entered a sandbox and was not recorded after that",
        }
    }
}

/// What replaces arguments that did not fit.
const CUT_OFF: &[u8] = b"<cut off>\0";

/// Writes host, boot, namespace, program, folder and arguments into the room after a head.
pub(crate) fn describe<'a>(
    lengths: &mut [u32; TEXTS],
    room: &mut [u8],
    arguments: impl Iterator<Item = &'a [u8]>,
) {
    let [host, boot, namespace, program, folder, args] = lengths;
    let mut at = 0;
    let mut take = |length: &mut u32, write: &mut dyn FnMut(&mut [u8]) -> usize| {
        let rest = room.get_mut(at..).unwrap_or_default();
        let written = write(rest).min(rest.len());
        *length = written as u32;
        at += written;
    };
    take(host, &mut os::host_name);
    take(boot, &mut |rest| {
        let read = os::read_file(c"/proc/sys/kernel/random/boot_id", rest).unwrap_or(0);
        rest.get(..read).map_or(0, |text| text.trim_ascii_end().len())
    });
    take(namespace, &mut |rest| os::read_link(c"/proc/self/ns/pid", rest).unwrap_or(0));
    take(program, &mut |rest| os::read_link(c"/proc/self/exe", rest).unwrap_or(0));
    take(folder, &mut |rest| os::current_folder(rest).unwrap_or(0));
    let mut arguments = arguments;
    take(args, &mut |rest| {
        let mut end = 0;
        for argument in arguments.by_ref() {
            let next = end + argument.len() + 1;
            if next + CUT_OFF.len() > rest.len() {
                let mark = rest.get_mut(end..end + CUT_OFF.len()).unwrap_or_default();
                mark.copy_from_slice(CUT_OFF.get(..mark.len()).unwrap_or_default());
                end += mark.len();
                break;
            }
            let Some(place) = rest.get_mut(end..next) else { break };
            let (text, nul) = place.split_at_mut(argument.len());
            text.copy_from_slice(argument);
            nul.fill(0);
            end = next;
        }
        end
    });
}
