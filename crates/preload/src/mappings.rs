//! Which file is mapped where, so that `munmap` and `msync` of files can be told from those of
//! memory. Reads and writes through a mapping are not visible to anybody but the kernel.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use feedline_recorder::UNNAMED;

const MOST: usize = 1024;

struct Mapping {
    start: AtomicUsize,
    bytes: AtomicUsize,
    file: AtomicU32,
}

static ALL: [Mapping; MOST] = [const {
    Mapping {
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        file: AtomicU32::new(UNNAMED),
    }
}; MOST];
static USED: AtomicUsize = AtomicUsize::new(0);

/// Ranges are whole pages.
const PAGE: usize = 4096;

/// A file was mapped, in place of whatever was there. The 1025th one at a time is not remembered.
pub(crate) fn add(start: usize, bytes: usize, file: u32) {
    let bytes = bytes.next_multiple_of(PAGE);
    take(start, bytes);
    insert(start, bytes, file);
}

fn insert(start: usize, bytes: usize, file: u32) {
    for (index, mapping) in ALL.iter().enumerate() {
        if mapping.start.load(Ordering::Relaxed) == 0
            && mapping.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            mapping.bytes.store(bytes, Ordering::Relaxed);
            mapping.file.store(file, Ordering::Relaxed);
            USED.fetch_max(index + 1, Ordering::Release);
            return;
        }
    }
}

/// Those that were made so far, with their ranges.
fn ranges() -> impl Iterator<Item = (&'static Mapping, usize, usize)> {
    let used = USED.load(Ordering::Acquire).min(MOST);
    ALL.iter().take(used).filter_map(|mapping| {
        let start = mapping.start.load(Ordering::Acquire);
        (start != 0)
            .then(|| (mapping, start, start.saturating_add(mapping.bytes.load(Ordering::Relaxed))))
    })
}

/// The file that is mapped at an address.
pub(crate) fn file_at(address: usize) -> Option<u32> {
    ranges()
        .find(|(_, start, end)| (*start..*end).contains(&address))
        .map(|(mapping, ..)| mapping.file.load(Ordering::Relaxed))
}

/// The file that was mapped in a range, which is forgotten; of a mapping that goes beyond the range the
/// rest is kept.
pub(crate) fn take(from: usize, bytes: usize) -> Option<u32> {
    let to = from.saturating_add(bytes.next_multiple_of(PAGE));
    let mut found = None;
    for (mapping, start, end) in ranges().filter(|(_, start, end)| *start < to && from < *end) {
        let file = mapping.file.load(Ordering::Relaxed);
        found = found.or(Some(file));
        match (start < from, to < end) {
            (false, false) => mapping.start.store(0, Ordering::Release),
            (true, false) => mapping.bytes.store(from - start, Ordering::Relaxed),
            (false, true) => {
                mapping.bytes.store(end - to, Ordering::Relaxed);
                mapping.start.store(to, Ordering::Release);
            }
            (true, true) => {
                mapping.bytes.store(from - start, Ordering::Relaxed);
                insert(to, end - to, file);
            }
        }
    }
    found
}
