//! Generations that go on from an earlier one, and formats whose files come with others.

use std::sync::Arc;

use feedline_formats::{ByteSource, Companion, DecodeError, Format, Opened, SampleFormat, Scratch};
use feedline_store::{EntryKind, FaultInjecting, Memory, Op};

use super::*;
use crate::manifest::MANIFEST_NAME;
use crate::recipe::tests::{format, spec};

const ENOSPC: i32 = 28;

/// npy files with an index beside them and another one in the index folder.
struct Indexed(Arc<dyn Format>);

const BESIDE: Companion = Companion { suffix: ".off", place: CompanionPlace::Beside };
const APART: Companion = Companion { suffix: ".idx", place: CompanionPlace::IndexFolder };

impl Format for Indexed {
    fn facts(&self) -> &'static SampleFormat {
        self.0.facts()
    }

    fn companions(&self) -> &'static [Companion] {
        &[BESIDE, APART]
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        self.0.size(file)
    }

    fn encode(
        &self,
        file: &FileSpec,
        content: &Content,
        sink: &mut dyn ByteSink,
    ) -> Result<(), EncodeError> {
        self.0.encode(file, content, sink)
    }

    fn encode_companion(
        &self,
        which: &Companion,
        file: &FileSpec,
        sink: &mut dyn ByteSink,
    ) -> Result<(), EncodeError> {
        let text = format!("{}{}", file.index, which.suffix);
        let space =
            sink.space(text.len()).map_err(|source| EncodeError::Sink { offset: 0, source })?;
        space.copy_from_slice(text.as_bytes());
        Ok(())
    }

    fn open(
        &self,
        source: &mut dyn ByteSource,
        scratch: &mut Scratch,
    ) -> Result<Box<dyn Opened>, DecodeError> {
        self.0.open(source, scratch)
    }
}

/// One data set to be made.
struct Set {
    spec: DatasetSpec,
    clock: Clock,
    stop: AtomicBool,
}

impl Set {
    /// Four npy files of 64 bytes.
    fn new() -> Self {
        let spec = spec(|spec| {
            spec.format = format("npy");
            (spec.train.total, spec.eval.total) = (3, 1);
            (spec.train.extension, spec.eval.extension) = ("npy", "npy");
        });
        Self { spec, clock: Clock::real(), stop: AtomicBool::new(false) }
    }

    fn indexed() -> Self {
        let mut set = Self::new();
        set.spec.format = Arc::new(Indexed(set.spec.format));
        set
    }

    fn with_seed(seed: u64) -> Self {
        let mut set = Self::new();
        set.spec.seed = seed;
        set
    }

    fn with<R>(&self, store: &dyn Store, work: impl FnOnce(&Generator<'_>) -> R) -> R {
        work(&Generator {
            team: &Team::alone(1),
            clock: &self.clock,
            store,
            spec: &self.spec,
            workload: "test",
            stop: &self.stop,
            progress: &|_| (),
        })
    }

    fn make(&self, store: &dyn Store) -> Result<Generated, DatasetError> {
        self.with(store, |generator| {
            let earlier = generator.look_back()?;
            generator.check_room(&earlier)?;
            let made = generator.run(&earlier)?;
            assert_eq!(made.files + made.kept_files, self.spec.files());
            Ok(made)
        })
    }
}

const FILE_BYTES: u64 = 128 + 64;

fn counts(made: Generated) -> (u64, u64, u64, u64) {
    (made.files, made.bytes, made.kept_files, made.kept_bytes)
}

/// The entries of a complete manifest, sorted; every one is checked against its file.
#[track_caller]
fn entries(store: &Memory) -> Vec<String> {
    let mut found = Vec::new();
    let reader = ManifestReader::open(store).unwrap().expect("a manifest");
    let (head, _) = reader
        .read(&mut |_, entry| {
            let bytes = store.get(&entry.name).expect("the file of an entry");
            let sum = FileSum { bytes: bytes.len() as u64, crc32: crc32fast::hash(&bytes) };
            assert_eq!(entry.sum, sum, "{}", entry.name);
            found.push(entry.name);
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert!(head.complete);
    found.sort();
    found
}

fn is_complete(store: &Memory) -> bool {
    let reader = ManifestReader::open(store).unwrap().expect("a manifest");
    reader.read(&mut |_, _| Ok(ControlFlow::Continue(()))).unwrap().0.complete
}

const NAMES: [&str; 4] = [
    "train/img_0_of_3.npy",
    "train/img_1_of_3.npy",
    "train/img_2_of_3.npy",
    "valid/img_0_of_1.npy",
];

#[test]
fn a_finished_set_stays_as_it_is() {
    let store = Memory::new(Clock::real());
    assert_eq!(counts(Set::new().make(&store).unwrap()), (4, 4 * FILE_BYTES, 0, 0));
    assert_eq!(entries(&store), NAMES);
    assert_eq!(store.kind("index").unwrap(), None);
    let manifest = store.get(MANIFEST_NAME).unwrap();
    let writes = store.with_latency(|op, key, _, _| match op {
        Op::Create => panic!("{key} is made again"),
        _ => 0,
    });
    assert_eq!(counts(Set::new().make(&writes).unwrap()), (0, 0, 4, 4 * FILE_BYTES));
    assert_eq!(writes.get(MANIFEST_NAME).unwrap(), manifest);
}

#[test]
fn what_is_missing_or_of_another_size_is_made_again() {
    let store = Memory::new(Clock::real());
    Set::new().make(&store).unwrap();
    store.remove(NAMES[1]).unwrap();
    store.put(NAMES[3], &b"short"[..]);
    let made = Set::new().make(&store).unwrap();
    assert_eq!(counts(made), (2, 2 * FILE_BYTES, 2, 2 * FILE_BYTES));
    assert_eq!(entries(&store), NAMES);
}

#[test]
fn another_recipe_makes_everything_anew() {
    let store = Memory::new(Clock::real());
    Set::new().make(&store).unwrap();
    let before = store.get(NAMES[0]).unwrap();
    assert_eq!(counts(Set::with_seed(7).make(&store).unwrap()), (4, 4 * FILE_BYTES, 0, 0));
    assert_ne!(store.get(NAMES[0]).unwrap(), before);
    assert_eq!(entries(&store), NAMES);
    store.remove(MANIFEST_NAME).unwrap();
    assert_eq!(counts(Set::with_seed(7).make(&store).unwrap()).0, 4, "and so does no manifest");
}

/// Whichever write finds the disk full, the next generation makes what is missing and no more, and
/// finds the checksums of the rest without reading it.
#[test]
fn a_generation_that_was_cut_short_goes_on() {
    let whole = Memory::new(Clock::real());
    Set::new().make(&whole).unwrap();
    // The first write is that of the short manifest; the last, of the long one, is not reached.
    for nth in 2..=5 {
        let store = Memory::new(Clock::real());
        let full = FaultInjecting::new(store.clone(), Op::Write, nth, ENOSPC);
        Set::new().make(&full).unwrap_err();
        assert!(!is_complete(&store));
        let there = NAMES.iter().filter(|name| store.exists(name).unwrap()).count() as u64;
        let unread = store.clone().with_latency(|op, key, _, _| match op {
            Op::Read if key != MANIFEST_NAME => panic!("{key} is read"),
            _ => 0,
        });
        let made = Set::new().make(&unread).unwrap();
        let missing = 4 - there;
        assert_eq!(counts(made), (missing, missing * FILE_BYTES, there, there * FILE_BYTES));
        assert_eq!(entries(&store), NAMES);
        assert!(NAMES.iter().all(|name| store.get(name) == whole.get(name)));
    }
}

/// Files of the old set have the names and sizes of the new one. Those that the generation did not
/// come to replace must not be taken for its own.
#[test]
fn an_old_set_that_was_partly_replaced_is_not_mixed_with_the_new_one() {
    for nth in 2..=5 {
        let store = Memory::new(Clock::real());
        Set::with_seed(7).make(&store).unwrap();
        let whole = Memory::new(Clock::real());
        Set::new().make(&whole).unwrap();
        let mut replaced = 0;
        // Twice, since the second generation must remember what the first one saw.
        for _ in 0..2 {
            let full = FaultInjecting::new(store.clone(), Op::Write, nth, ENOSPC);
            if let Ok(made) = Set::new().make(&full) {
                assert_eq!(made.kept_files, replaced);
            }
            replaced =
                NAMES.iter().filter(|name| store.get(name) == whole.get(name)).count() as u64;
        }
        let made = Set::new().make(&store).unwrap();
        assert_eq!(made.kept_files, replaced);
        assert_eq!(entries(&store), NAMES);
        assert!(NAMES.iter().all(|name| store.get(name) == whole.get(name)));
    }
}

#[test]
fn a_stop_before_the_first_file_changes_nothing() {
    let store = Memory::new(Clock::real());
    Set::with_seed(7).make(&store).unwrap();
    let manifest = store.get(MANIFEST_NAME).unwrap();
    let set = Set::new();
    set.stop.store(true, Ordering::Relaxed);
    let made = set.with(&store, |generator| generator.run(&generator.look_back().unwrap()));
    assert_eq!(made.unwrap(), Generated::default());
    assert_eq!(store.get(MANIFEST_NAME).unwrap(), manifest);
}

#[test]
fn what_goes_with_a_file_is_there_before_it() {
    let published = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&published);
    let store = Memory::new(Clock::real()).with_latency(move |op, key, _, _| {
        if op == Op::Publish {
            noted.lock().unwrap().push(key.to_owned());
        }
        0
    });
    let made = Set::indexed().make(&store).unwrap();
    // `0.off` and `0.idx` have five bytes, as those of the other files.
    assert_eq!(counts(made), (4, 4 * (FILE_BYTES + 10), 0, 0));
    let published = published.lock().unwrap();
    let place = |key: &str| published.iter().position(|published| published == key).expect(key);
    let mut all = Vec::new();
    for name in NAMES {
        let companions = [BESIDE.key(name), APART.key(name)];
        for companion in &companions {
            assert!(place(companion) < place(name), "{companion}");
        }
        all.extend(companions);
        all.push(name.to_owned());
    }
    all.sort();
    assert_eq!(entries(&store), all);
    assert_eq!(store.kind("index/train").unwrap(), Some(EntryKind::Folder));
    assert_eq!(&*store.get("index/valid/img_0_of_1.npy.idx").unwrap(), b"3.idx");
}

#[test]
fn q19_a_file_whose_companion_is_missing_or_of_another_size_is_made_with_it_again() {
    let store = Memory::new(Clock::real());
    Set::indexed().make(&store).unwrap();
    let all = entries(&store);
    // A set that is there with all that goes with it stays as it is, its manifest too.
    let manifest = store.get(MANIFEST_NAME).unwrap();
    let made = Set::indexed().make(&store).unwrap();
    assert_eq!(counts(made), (0, 0, 4, 4 * FILE_BYTES));
    assert_eq!(store.get(MANIFEST_NAME).unwrap(), manifest);

    let stale = BESIDE.key(NAMES[0]);
    store.put(&stale, &b"stale!"[..]);
    store.remove(&APART.key(NAMES[1])).unwrap();
    let made = Set::indexed().make(&store).unwrap();
    assert_eq!(counts(made), (2, 2 * (FILE_BYTES + 10), 2, 2 * FILE_BYTES));
    assert_eq!(entries(&store), all);
    assert_eq!(&*store.get(&stale).unwrap(), b"0.off");
}

#[test]
fn only_what_is_missing_needs_room() {
    /// A store with so many bytes free.
    struct Room(Memory, u64);
    impl Store for Room {
        fn free_bytes(&self, _folder: &str) -> Result<Option<u64>, StoreError> {
            Ok(Some(self.1))
        }
        fn open(&self, key: &str) -> Result<Box<dyn feedline_store::Object>, StoreError> {
            self.0.open(key)
        }
        fn create(&self, key: &str) -> Result<Box<dyn feedline_store::Upload>, StoreError> {
            self.0.create(key)
        }
        fn list(
            &self,
            folder: &str,
            visit: &mut dyn FnMut(feedline_store::FolderEntry<'_>) -> ControlFlow<()>,
        ) -> Result<(), StoreError> {
            self.0.list(folder, visit)
        }
        fn make_folder(&self, folder: &str) -> Result<(), StoreError> {
            self.0.make_folder(folder)
        }
        fn remove(&self, key: &str) -> Result<(), StoreError> {
            self.0.remove(key)
        }
        fn kind(&self, key: &str) -> Result<Option<EntryKind>, StoreError> {
            self.0.kind(key)
        }
        fn locate(&self, key: &str) -> String {
            self.0.locate(key)
        }
    }
    let store = Memory::new(Clock::real());
    let refused = |free| match Set::new().make(&Room(store.clone(), free)) {
        Err(DatasetError::NoSpace { needed, .. }) => Some(needed),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    assert_eq!(refused(4 * FILE_BYTES - 1), Some(4 * FILE_BYTES));
    assert_eq!(refused(4 * FILE_BYTES), None);
    assert_eq!(refused(0), None, "all files are there");
    store.remove(NAMES[0]).unwrap();
    store.remove(NAMES[3]).unwrap();
    assert_eq!(refused(2 * FILE_BYTES - 1), Some(2 * FILE_BYTES));
    // Without a manifest the two that are there make room as they are replaced.
    store.remove(MANIFEST_NAME).unwrap();
    assert_eq!(refused(2 * FILE_BYTES - 1), Some(2 * FILE_BYTES));
    assert_eq!(refused(2 * FILE_BYTES), None);
}
