//! Which files and which calls the user asked for.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use feedline_recorder::{Category, OPS, OpInfo, Text, matches_any};

/// Patterns, separated by colons, as the user gave them.
pub(crate) type Patterns = Text<4096>;

struct Filter {
    is_set: AtomicBool,
    wanted: UnsafeCell<Patterns>,
    unwanted: UnsafeCell<Patterns>,
}

// SAFETY: the patterns are written before `is_set`, by the thread that loads the library.
unsafe impl Sync for Filter {}

static FILTER: Filter = Filter {
    is_set: AtomicBool::new(false),
    wanted: UnsafeCell::new(Patterns::EMPTY),
    unwanted: UnsafeCell::new(Patterns::EMPTY),
};

/// Which kinds of calls are recorded: one bit per class, those of streams in the upper half. 0 until
/// recording is on.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Where the bit of a call is.
pub(crate) const fn bit(facts: &OpInfo) -> u64 {
    let class = facts.class as u64;
    match facts.category {
        Category::Stdio => 1 << (class + 32),
        _ => 1 << class,
    }
}

/// Whether calls of this kind are recorded.
#[inline]
pub(crate) fn takes(bit: u64) -> bool {
    CALLS.load(Ordering::Relaxed) & bit != 0
}

/// Whether anything is recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    CALLS.load(Ordering::Relaxed) != 0
}

/// Sets what is recorded, from now on.
pub(crate) fn set_calls(bits: u64) {
    CALLS.store(bits, Ordering::Relaxed);
}

/// The bits of a list such as `read,write,-stdio`: only what is named, or all but what is named with
/// a minus. The launcher reports unknown words.
pub(crate) fn calls_of(list: &[u8]) -> u64 {
    let all = OPS.iter().fold(0, |bits, op| bits | bit(op.info()));
    let words =
        || list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|w| !w.is_empty());
    let named = |word: &[u8]| {
        let is_meant = |facts: &OpInfo| {
            word.eq_ignore_ascii_case(facts.category.name().as_bytes())
                || word.eq_ignore_ascii_case(facts.class.name().as_bytes())
        };
        OPS.iter().filter(|op| is_meant(op.info())).fold(0, |bits, op| bits | bit(op.info()))
    };
    let mut bits = if words().any(|word| word[0] != b'-') { 0 } else { all };
    for word in words() {
        match word {
            [b'-', rest @ ..] => bits &= !named(rest),
            _ => bits |= named(word),
        }
    }
    bits
}

/// Sets which files are recorded.
pub(crate) fn set_files(wanted: Patterns, unwanted: Patterns) {
    if wanted.is_empty() && unwanted.is_empty() {
        return;
    }
    // SAFETY: they are not read before `is_set`, and the library is loaded once.
    unsafe {
        *FILTER.wanted.get() = wanted;
        *FILTER.unwanted.get() = unwanted;
    }
    FILTER.is_set.store(true, Ordering::Release);
}

/// Whether files are chosen by their path.
#[inline]
pub(crate) fn is_set() -> bool {
    FILTER.is_set.load(Ordering::Acquire)
}

/// Whether what has no path is recorded: pipes and the like are, unless the user named paths.
pub(crate) fn takes_object(_name: &[u8]) -> bool {
    // SAFETY: not written any more once `is_set`, which callers have looked at.
    unsafe { &*FILTER.wanted.get() }.is_empty()
}

/// Whether a file is recorded.
pub(crate) fn takes_file(path: &[u8]) -> bool {
    // SAFETY: not written any more once `is_set`, which callers have looked at.
    let (wanted, unwanted) = unsafe { (&*FILTER.wanted.get(), &*FILTER.unwanted.get()) };
    let any = |patterns: &Patterns| matches_any(patterns.bytes(), path);
    (wanted.is_empty() || any(wanted)) && !any(unwanted)
}
