//! How much of a data set lies in the page cache when an epoch comes to it.
//!
//! A look from outside would have to open files before they are read, which warms what a cold run is
//! about to open. So the epoch's own readers look, at a few files, each between its open and its first
//! read.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use feedline_store::Object;

/// Files that are looked at in an epoch.
const SAMPLE_FILES: u64 = 16;

/// What the readers of one process have seen in the current epoch.
#[derive(Debug, Default)]
pub struct CacheLook {
    epoch: AtomicU32,
    /// Files to choose from.
    files: AtomicU64,
    /// A bit for each chosen file that was looked at.
    seen: AtomicU32,
    resident: AtomicU64,
    total: AtomicU64,
    untold: AtomicBool,
}

impl CacheLook {
    /// Forgets the last epoch. Every rank says so before all of them begin; the first one counts.
    pub fn begin(&self, epoch: u32, files: u64) {
        if self.epoch.swap(epoch, Ordering::Relaxed) == epoch {
            return;
        }
        self.files.store(files, Ordering::Relaxed);
        self.seen.store(0, Ordering::Relaxed);
        self.resident.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
        self.untold.store(false, Ordering::Relaxed);
    }

    /// The cached share of the files that were looked at; `None` if there were none, or it cannot be
    /// known.
    pub fn share(&self) -> Option<f64> {
        let (resident, total) =
            (self.resident.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let told = !self.untold.load(Ordering::Relaxed) && total > 0;
        told.then(|| resident as f64 / total as f64)
    }

    /// A reader has opened file `number` and not read it yet.
    pub(crate) fn opened(&self, number: u64, object: &mut dyn Object) {
        let Some(bit) = self.chosen(number) else { return };
        if self.seen.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return;
        }
        match object.resident() {
            Ok(Some(found)) => {
                self.resident.fetch_add(found.resident, Ordering::Relaxed);
                self.total.fetch_add(found.total, Ordering::Relaxed);
            }
            Ok(None) | Err(_) => self.untold.store(true, Ordering::Relaxed),
        }
    }

    /// The bit of a file, if it is one of the evenly chosen ones.
    fn chosen(&self, number: u64) -> Option<u32> {
        let files = self.files.load(Ordering::Relaxed);
        let count = files.min(SAMPLE_FILES);
        if number >= files {
            return None;
        }
        // Of the files at i * files / count, the first one at or after this file.
        let i = (number * count).div_ceil(files);
        (i < count && i * files / count == number).then_some(1 << i)
    }
}

#[cfg(test)]
mod tests {
    use feedline_store::{Resident, StoreError};

    use super::*;

    /// An object of 100 bytes, some of them cached.
    struct Cached(Option<u64>);

    impl Object for Cached {
        fn len(&mut self) -> Result<u64, StoreError> {
            Ok(100)
        }

        fn read_exact_at(&mut self, _offset: u64, _buf: &mut [u8]) -> Result<(), StoreError> {
            Ok(())
        }

        fn resident(&mut self) -> Result<Option<Resident>, StoreError> {
            Ok(self.0.map(|resident| Resident { resident, total: 100 }))
        }
    }

    #[test]
    fn sixteen_files_are_chosen_evenly() {
        for files in [1, 5, 16, 17, 61, 1000, 168_000] {
            let look = CacheLook::default();
            look.begin(1, files);
            let chosen: Vec<u64> =
                (0..files).filter(|&number| look.chosen(number).is_some()).collect();
            let count = files.min(16);
            assert_eq!(chosen, (0..count).map(|i| i * files / count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_file_is_looked_at_once_in_an_epoch() {
        let look = CacheLook::default();
        assert_eq!(look.share(), None);
        look.begin(1, 32);
        look.opened(0, &mut Cached(Some(0)));
        look.opened(0, &mut Cached(Some(100)));
        look.opened(1, &mut Cached(Some(100)));
        look.opened(2, &mut Cached(Some(50)));
        assert_eq!(look.share(), Some(0.25), "file 1 is not chosen");
        look.begin(1, 32);
        assert_eq!(look.share(), Some(0.25), "another rank begins the same epoch");
        look.begin(2, 32);
        assert_eq!(look.share(), None);
        look.opened(2, &mut Cached(None));
        look.opened(4, &mut Cached(Some(100)));
        assert_eq!(look.share(), None, "a share of what is told would be a guess");
    }
}
