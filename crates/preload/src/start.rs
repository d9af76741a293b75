//! When the library is loaded: what the environment asks for, and whether there is anything to do.
//!
//! Runs before the program's own code. Without `FEEDLINE_TRACE` (or DFTracer's own switch) nothing is
//! started and every hook goes straight to the function that was meant.

use core::ffi::{CStr, c_char, c_int, c_void};

use feedline_recorder::{
    Config, Ending, MARK_BYTES, Text, build_mark, current_folder, environment, is_counter_trusted,
    recorder,
};

use crate::filter::{self, Patterns};
use crate::{hooks, names};

/// The function that the loader calls, with what `main` will be given.
type Constructor = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

/// For the launcher, which reads the library's file.
#[used]
static BUILD: [u8; MARK_BYTES] = build_mark();

#[used]
#[unsafe(link_section = ".init_array")]
static START: Constructor = start;

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn start(
    _count: c_int,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) {
    hooks::resolve();
    // What was looked for in vain must not be the program's error.
    // SAFETY: takes no arguments.
    unsafe { libc::dlerror() };
    let given = Environment { rows: environment };
    let Some(config) = given.config() else { return };
    filter::set_files(given.included(), given.patterns(environment::EXCLUDE));
    if !recorder().start(&config, Row { next: arguments }) {
        return;
    }
    names::look_at_folder();
    filter::set_calls(given.calls());
    // SAFETY: the function lives as long as the library, which is never unloaded.
    unsafe { on_exit(end, core::ptr::null_mut()) };
}

extern "C" fn end(status: c_int, _argument: *mut c_void) {
    recorder().end(Ending::Exit, status & 0xff);
}

/// Texts of a row of pointers that ends with null.
#[derive(Clone)]
struct Row {
    next: *const *const c_char,
}

impl Iterator for Row {
    type Item = &'static [u8];

    fn next(&mut self) -> Option<Self::Item> {
        if self.next.is_null() {
            return None;
        }
        // SAFETY: the array ends with null, after which nothing is read.
        let text = unsafe { *self.next };
        if text.is_null() {
            return None;
        }
        // SAFETY: not the end.
        self.next = unsafe { self.next.add(1) };
        // SAFETY: the loader's texts end with NUL and stay.
        Some(unsafe { CStr::from_ptr(text) }.to_bytes())
    }
}

struct Environment {
    rows: *const *const c_char,
}

/// Variables that say which rank a process is, in the order in which they are believed.
const RANKS: [&str; 6] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "RANK",
    "SLURM_PROCID",
];

impl Environment {
    fn get(&self, name: &str) -> Option<&'static [u8]> {
        Row { next: self.rows }
            .find_map(|row| row.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .filter(|value| !value.is_empty())
    }

    /// A variable of DFTracer, under its old name too.
    fn dftracer(&self, name: &str) -> Option<&'static [u8]> {
        let find = |prefix: &[u8]| {
            let mut full = Text::<64>::new(prefix)?;
            full.push(name.as_bytes());
            full.push(b"=");
            Row { next: self.rows }.find_map(|row| row.strip_prefix(full.bytes()))
        };
        find(b"DFTRACER_").or_else(|| find(b"DLIO_PROFILER_")).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Option<u64> {
        parse(self.get(name)?)
    }

    fn patterns(&self, name: &str) -> Patterns {
        self.get(name).and_then(Patterns::new).unwrap_or(Patterns::EMPTY)
    }

    /// Which files to record: the launcher's patterns, or DFTracer's data folders.
    fn included(&self) -> Patterns {
        match self.dftracer("DATA_DIR") {
            Some(folders) if !self.is_ours() && folders != b"all" => {
                Patterns::new(folders).unwrap_or(Patterns::EMPTY)
            }
            _ => self.patterns(environment::INCLUDE),
        }
    }

    fn is_ours(&self) -> bool {
        self.get(environment::FOLDER).is_some()
    }

    /// The trace folder, if there is anything to do.
    fn folder(&self) -> Option<&'static [u8]> {
        if let Some(folder) = self.get(environment::FOLDER) {
            return Some(folder);
        }
        let is_yes = |value: &[u8]| {
            [&b"1"[..], b"true", b"on", b"yes"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
        };
        self.dftracer("ENABLE").filter(|value| is_yes(value))?;
        Some(self.dftracer("LOG_FILE").unwrap_or(b"./trace"))
    }

    fn config(&self) -> Option<Config> {
        let folder = absolute(self.folder()?)?;
        let mut segments = folder;
        if !segments.push(b"/segments") {
            return None;
        }
        make_folder(&folder);
        make_folder(&segments);
        let memory = self.get(environment::MEMORY).and_then(Text::new);
        let segments = self.get(environment::OVERFLOW).and_then(Text::new).unwrap_or(segments);
        let counter = match self.get(environment::CLOCK) {
            Some(clock) => clock == b"counter",
            None => is_counter_trusted(),
        };
        // Summaries are kept open for a time, which the counter does not tell.
        let summary_ns = self.summary_ms().saturating_mul(1_000_000);
        let rank = RANKS.into_iter().find_map(|name| self.number(name));
        Some(Config {
            folder: memory.unwrap_or(segments),
            overflow: if memory.is_some() { segments } else { Text::EMPTY },
            folder_bytes: self.number(environment::MEMORY_BYTES).unwrap_or(u64::MAX),
            is_drained: self.get(environment::DRAINED).is_some(),
            counter: counter && summary_ns == 0,
            one_of: self.one_of(),
            summary_ns,
            rank: rank.and_then(|rank| i32::try_from(rank).ok()).unwrap_or(-1),
        })
    }

    fn one_of(&self) -> u32 {
        let asked = self.number(environment::SAMPLE).unwrap_or(1);
        u32::try_from(asked).unwrap_or(u32::MAX).max(1)
    }

    fn summary_ms(&self) -> u64 {
        if let Some(ms) = self.number(environment::SUMMARY_MS) {
            return ms;
        }
        if !self.is_ours() && self.dftracer("ENABLE_AGGREGATION") == Some(b"1") {
            return self.dftracer("TRACE_INTERVAL_MS").and_then(parse).unwrap_or(1000);
        }
        0
    }

    /// Which calls are recorded.
    fn calls(&self) -> u64 {
        let mut list = Text::<1024>::EMPTY;
        list.push(self.get(environment::CALLS).unwrap_or_default());
        let is_set = |name: &str| !self.is_ours() && self.dftracer(name) == Some(b"1");
        if is_set("DISABLE_IO") || is_set("DISABLE_POSIX") {
            list.push(b",-posix");
        }
        if is_set("DISABLE_IO") || is_set("DISABLE_STDIO") {
            list.push(b",-stdio");
        }
        filter::calls_of(list.bytes())
    }
}

fn parse(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A folder whose name means the same wherever the program goes.
fn absolute(folder: &[u8]) -> Option<Text<1024>> {
    if folder.first() == Some(&b'/') {
        return Text::new(folder);
    }
    let mut here = [0_u8; 1024];
    let length = current_folder(&mut here)?;
    let mut full = Text::new(here.get(..length)?)?;
    (full.push(b"/") && full.push(folder)).then_some(full)
}

/// Makes a folder and those above it unless they are there; where one cannot be made, recording says so
/// later.
fn make_folder(path: &Text<1024>) {
    let path = path.bytes();
    let ends = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        let Some(mut folder) = path.get(..end).and_then(Text::<1024>::new) else { return };
        folder.push(b"\0");
        // SAFETY: the path ends with NUL.
        unsafe {
            libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, folder.bytes().as_ptr(), 0o777);
        }
    }
}
