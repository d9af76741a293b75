//! Every object below a folder, in key order.
//!
//! Folders are listed when the scan reaches them, a few siblings ahead of it and at the same time, so
//! the latency of a remote store or of a parallel file system is paid once per batch. Memory holds the
//! entries of the folders from the top to where the scan is, and of the siblings listed ahead: it
//! grows with the largest folders and the depth, and not with the number of objects in the tree.
//! Sorting needs all entries of one folder at a time, about 50 bytes plus the name for each; listing
//! itself streams.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use feedline_clock::Clock;

use crate::{EntryKind, Result, Store, StoreError, key};

/// How a tree is scanned.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// How many siblings are listed at a time, each on a thread of its own; 1 starts no thread.
    pub folders_at_a_time: NonZeroUsize,
    /// The clock that starts these threads.
    pub clock: Clock,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        let folders_at_a_time = NonZeroUsize::new(16).expect("not 0");
        ScanOptions { folders_at_a_time, clock: Clock::real() }
    }
}

/// An object found by a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// Its key in the store.
    pub key: String,
    /// Its size, where listings know it.
    pub size_bytes: Option<u64>,
}

/// Walks all objects below `folder` in the byte order of their keys, as S3 lists them: `a-b`, `a.c`,
/// `a/d`. Folders themselves do not appear. The first error ends the scan.
///
/// Links of a file system are followed; a loop of them ends with the system's error.
pub fn scan<'a>(store: &'a dyn Store, folder: &str, options: ScanOptions) -> Scan<'a> {
    let (open, failed) = match key::folder(folder) {
        Ok(clean) => {
            let top = Slot { name: clean.into(), content: Content::Folder };
            (vec![Listing { prefix: String::new(), slots: vec![top] }], None)
        }
        Err(error) => (Vec::new(), Some(error)),
    };
    Scan { store, options, open, failed }
}

/// The objects below a folder; see [`scan`].
pub struct Scan<'a> {
    store: &'a dyn Store,
    options: ScanOptions,
    /// The open folders, from the top down.
    open: Vec<Listing>,
    /// An error that kept the scan from starting.
    failed: Option<StoreError>,
}

/// A folder that is open.
struct Listing {
    /// What keys in it begin with.
    prefix: String,
    /// Its remaining entries, the last one first.
    slots: Vec<Slot>,
}

/// One name in a folder.
struct Slot {
    name: Box<str>,
    content: Content,
}

enum Content {
    Object {
        size_bytes: Option<u64>,
    },
    Folder,
    /// Listed ahead of the scan.
    Listed(Result<Vec<Slot>>),
}

impl Slot {
    /// The bytes that keys of this slot begin with, after the folder's: a folder's name ends with its
    /// slash, or `a/b` would come before `a-b`.
    fn sort_key(&self) -> impl Iterator<Item = u8> + '_ {
        let slash = match self.content {
            Content::Object { .. } => None,
            Content::Folder | Content::Listed(_) => Some(b'/'),
        };
        self.name.bytes().chain(slash)
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Scanned>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        loop {
            let listing = self.open.last_mut()?;
            if let Some(Slot { content: Content::Folder, .. }) = listing.slots.last() {
                list_ahead(self.store, &self.options, listing);
            }
            let Some(Slot { name, content }) = listing.slots.pop() else {
                self.open.pop();
                continue;
            };
            let key = format!("{}{name}", listing.prefix);
            match content {
                Content::Object { size_bytes } => return Some(Ok(Scanned { key, size_bytes })),
                Content::Listed(Ok(slots)) => {
                    let prefix = if key.is_empty() { key } else { key + "/" };
                    self.open.push(Listing { prefix, slots });
                }
                Content::Listed(Err(error)) => {
                    self.open.clear();
                    return Some(Err(error));
                }
                Content::Folder => unreachable!("the next folder was listed above"),
            }
        }
    }
}

/// Lists the next folders of a listing, up to as many as may be listed at a time.
fn list_ahead(store: &dyn Store, options: &ScanOptions, listing: &mut Listing) {
    let Listing { prefix, slots } = listing;
    let is_next = |slot: &&mut Slot| matches!(slot.content, Content::Folder);
    let next = slots.iter_mut().rev().filter(is_next).take(options.folders_at_a_time.get());
    let list = |slot: &mut Slot| {
        slot.content = Content::Listed(sorted(store, &format!("{prefix}{}", slot.name)));
    };
    let mut next: Vec<_> = next.collect();
    let (first, others) = next.split_first_mut().expect("a folder is next");
    options.clock.scope(|scope| {
        for slot in others {
            let slot: &mut Slot = slot;
            if scope.spawn("scan".to_owned(), move || list(slot)).is_err() {
                // No thread: the scan lists it when it gets there.
                break;
            }
        }
        list(first);
    });
}

/// The entries of a folder, the last in key order first.
fn sorted(store: &dyn Store, folder: &str) -> Result<Vec<Slot>> {
    let mut slots = Vec::new();
    store.list(folder, &mut |entry| {
        let content = match entry.kind {
            EntryKind::File => Content::Object { size_bytes: entry.size_bytes },
            EntryKind::Folder => Content::Folder,
        };
        slots.push(Slot { name: entry.name.into(), content });
        ControlFlow::Continue(())
    })?;
    slots.sort_unstable_by(|a, b| b.sort_key().cmp(a.sort_key()));
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultInjecting, Memory, Op, Wrapper};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn memory(keys: &[&str]) -> Memory {
        let store = Memory::new(Clock::real());
        keys.iter().for_each(|key| store.put(key, key.as_bytes()));
        store
    }

    fn keys(store: &dyn Store, folder: &str) -> Vec<String> {
        scan(store, folder, ScanOptions::default()).map(|found| found.unwrap().key).collect()
    }

    #[test]
    fn objects_come_in_the_order_of_their_keys() {
        let expected = ["a-b", "a.c", "a/b/c", "a/b0", "a0", "b"];
        let store = memory(&["b", "a0", "a/b0", "a/b/c", "a.c", "a-b"]);
        store.make_folder("empty").unwrap();
        assert_eq!(keys(&store, ""), expected);
        assert_eq!(keys(&store, "a"), ["a/b/c", "a/b0"]);
        assert_eq!(keys(&store, "./a/b/"), ["a/b/c"]);
        assert_eq!(keys(&store, "empty"), [""; 0]);
    }

    #[test]
    fn the_first_error_ends_the_scan() {
        let store =
            FaultInjecting::new(memory(&["a/x", "b/x", "c/x", "d"]), Op::List, 3, libc::EIO);
        let options =
            ScanOptions { folders_at_a_time: NonZeroUsize::MIN, ..ScanOptions::default() };
        let mut found = scan(&store, "", options);
        assert_eq!(found.next().unwrap().unwrap().key, "a/x");
        let error = found.next().unwrap().unwrap_err();
        assert_eq!((error.errno(), found.next().is_none()), (Some(libc::EIO), true));
        for folder in ["..", "none"] {
            let mut found = scan(&store, folder, ScanOptions::default());
            assert!(found.next().unwrap().is_err() && found.next().is_none(), "{folder}");
        }
    }

    /// Counts folders that were listed.
    struct Counting(Memory, AtomicUsize);

    impl Wrapper for Counting {
        type Inner = Memory;

        fn inner(&self) -> &Memory {
            &self.0
        }

        fn around<T>(&self, op: Op, _key: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
            self.1.fetch_add(usize::from(op == Op::List), Ordering::Relaxed);
            call()
        }
    }

    #[test]
    fn folders_are_listed_a_few_ahead_and_not_all_at_once() {
        let keys: Vec<_> = (0..100).map(|folder| format!("{folder:02}/x")).collect();
        let store = memory(&keys.iter().map(String::as_str).collect::<Vec<_>>());
        let store = Counting(store, AtomicUsize::new(0));
        let folders_at_a_time = NonZeroUsize::new(4).unwrap();
        let found = scan(&store, "", ScanOptions { folders_at_a_time, ..ScanOptions::default() });
        for (number, found) in found.enumerate() {
            assert_eq!(found.unwrap().key, keys[number]);
            let listed = store.1.load(Ordering::Relaxed);
            assert_eq!(listed, 1 + 4 * (number / 4 + 1), "at {number}");
        }
    }

    #[test]
    fn siblings_are_listed_at_the_same_time() {
        let clock = Clock::simulated();
        let store = Memory::new(clock.clone()).with_latency(|_, _, _, _| 1_000);
        (0..32).for_each(|folder| store.put(&format!("{folder:02}/x"), &b""[..]));
        let options = ScanOptions { clock: clock.clone(), ..ScanOptions::default() };
        assert_eq!(scan(&store, "", options).count(), 32);
        assert_eq!(clock.now(), 3_000, "the top, then twice sixteen");
    }
}
