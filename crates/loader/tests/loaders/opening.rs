//! How files are opened: whole, or for reads anywhere.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use feedline_clock::Clock;
use feedline_dataset::{DataSet, EpochOrder, SampleSpace, Shuffle};
use feedline_loader::{BatchAssignment, TorchConfig, TorchLoader};
use feedline_store::{EntryKind, FolderEntry, Object, Store, StoreError, Upload};

use crate::bed::{Consume, npy_files, record_files, share};

/// A store that counts in which way objects are opened.
struct Noting {
    inner: Arc<dyn Store>,
    whole: AtomicU64,
    anywhere: AtomicU64,
}

impl Store for Noting {
    fn open(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        self.anywhere.fetch_add(1, Ordering::Relaxed);
        self.inner.open(key)
    }

    fn open_whole(&self, key: &str) -> Result<Box<dyn Object>, StoreError> {
        self.whole.fetch_add(1, Ordering::Relaxed);
        self.inner.open_whole(key)
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>, StoreError> {
        self.inner.create(key)
    }

    fn list(
        &self,
        folder: &str,
        visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.list(folder, visit)
    }

    fn make_folder(&self, folder: &str) -> Result<(), StoreError> {
        self.inner.make_folder(folder)
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        self.inner.remove(key)
    }

    fn kind(&self, key: &str) -> Result<Option<EntryKind>, StoreError> {
        self.inner.kind(key)
    }

    fn free_bytes(&self, folder: &str) -> Result<Option<u64>, StoreError> {
        self.inner.free_bytes(folder)
    }

    fn locate(&self, key: &str) -> String {
        self.inner.locate(key)
    }
}

#[test]
fn files_that_are_read_whole_are_opened_for_that() {
    let clock = Clock::simulated();
    let cases = [
        (npy_files(&clock, 4, |_| 0).0, SampleSpace { files: 4, per_file: 1 }, (4, 0)),
        (record_files(&clock, 2, 2, 0), SampleSpace { files: 2, per_file: 2 }, (0, 4)),
    ];
    for (data, space, expected) in cases {
        let zero = AtomicU64::default;
        let noting =
            Arc::new(Noting { inner: Arc::clone(&data.store), whole: zero(), anywhere: zero() });
        let data = DataSet { store: Arc::clone(&noting) as Arc<dyn Store>, ..data };
        let order = EpochOrder::new(space, Shuffle::None, 0);
        let config =
            TorchConfig { workers: 1, prefetch: 1, deal: BatchAssignment::InTurn, shuffle: None };
        let mut loader = TorchLoader::new(&clock, &data, config, |_| Box::new(|| 0));
        loader.epoch(share(&order, 4, 1)).consume(
            |batches| {
                while batches.next_batch().unwrap().is_some() {}
            },
        );
        let found = [&noting.whole, &noting.anywhere].map(|count| count.load(Ordering::Relaxed));
        assert_eq!((found[0], found[1]), expected, "{}", data.format.facts().name);
    }
}
