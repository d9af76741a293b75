//! Saving and loading: the bytes of a file do not depend on how they are cut and who writes them.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use feedline_checkpoint::{
    Background, CONTAINERS, CheckpointError, Contents, DType, Discard, Engine, FileSpec, Held,
    LoadPlan, Pool, RankFile, Share, StateKind, Tensor, Values, rank_files,
};
use feedline_clock::Clock;
use feedline_store::{
    Durability, FaultInjecting, Memory, Mode, Op, Posix, Store, StoreError, Upload, Wrapper,
};

const EIO: i32 = 5;

/// Two files: tensors of all types and of sizes around the chunks.
fn specs() -> Vec<FileSpec> {
    let tensor = |file: &str, index: usize, dtype, len| Tensor {
        path: vec![file.into(), index.to_string()],
        dtype,
        len,
        share: Share { name: format!("{file}.{index}"), total: 3 * len, first: len },
    };
    let file = |stem: &str, state, lens: &[u64]| FileSpec {
        stem: stem.into(),
        state,
        tensors: (0..)
            .zip(lens)
            .map(|(index, &len)| tensor(stem, index, DType::ALL[index % DType::ALL.len()], len))
            .collect(),
    };
    vec![
        file("model", StateKind::Layers, &[1, 4096, 3000, 100_000, 7, 0, 2048, 64_000]),
        file("optim", StateKind::Optimizer, &[300_000]),
    ]
}

fn engine(store: Arc<dyn Store>, chunk_bytes: usize, streams: usize) -> Engine {
    let clock = Clock::real();
    Engine {
        pool: Pool::new(&clock, chunk_bytes, 0, streams),
        clock,
        store,
        streams,
        durability: Durability::None,
        stop: Arc::new(AtomicBool::new(false)),
    }
}

fn files(container: usize) -> Vec<Arc<RankFile>> {
    rank_files(CONTAINERS[container], specs(), 1)
}

fn contents() -> Contents {
    Contents::new(11, 3, Values::Random)
}

fn memory() -> Memory {
    let store = Memory::new(Clock::real());
    store.make_folder("ck").unwrap();
    store
}

fn read(store: &Memory, files: &[Arc<RankFile>]) -> Vec<Arc<[u8]>> {
    files.iter().map(|file| store.get(&format!("ck/{}", file.name)).unwrap()).collect()
}

/// A store that takes writes in order only, as object stores do.
struct InOrder(Memory);

struct InOrderUpload {
    inner: Box<dyn Upload>,
    end: Mutex<u64>,
}

impl Wrapper for InOrder {
    type Inner = Memory;

    fn inner(&self) -> &Memory {
        &self.0
    }

    fn upload(&self, _key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        Box::new(InOrderUpload { inner, end: Mutex::new(0) })
    }
}

impl Upload for InOrderUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut end = self.end.lock().unwrap();
        assert_eq!(offset, *end, "a write that does not follow the one before it");
        *end += bytes.len() as u64;
        self.inner.write_at(offset, bytes)
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        self.inner.publish(durability)
    }
}

#[test]
fn files_do_not_depend_on_chunks_and_streams() {
    for (container, (name, _)) in CONTAINERS.iter().enumerate() {
        let files = files(container);
        let whole = memory();
        engine(Arc::new(whole.clone()), 4 << 20, 1).save("ck", &files, &contents()).unwrap();
        let whole = read(&whole, &files);
        let sizes: Vec<u64> = files.iter().map(|file| file.image.len).collect();
        assert_eq!(whole.iter().map(|file| file.len() as u64).collect::<Vec<_>>(), sizes);
        // A chunk of one block puts every checksum across boundaries.
        for (chunk_bytes, streams) in [(4096, 1), (4096, 4), (65_536, 3)] {
            let plain = memory();
            let stores: [(Arc<dyn Store>, _); 2] = [(Arc::new(plain.clone()), plain), {
                let inner = memory();
                (Arc::new(InOrder(inner.clone())), inner)
            }];
            for (store, inner) in stores {
                let saved =
                    engine(store, chunk_bytes, streams).save("ck", &files, &contents()).unwrap();
                assert!(read(&inner, &files) == whole, "{name} {chunk_bytes} {streams}");
                assert_eq!(saved.meter.op(Op::Write).bytes, sizes.iter().sum::<u64>());
                assert_eq!(
                    saved.tensor_bytes,
                    specs().iter().map(FileSpec::tensor_bytes).sum::<u64>()
                );
            }
        }
    }
}

#[test]
fn saves_in_the_background_are_the_same_and_wait_for_buffers() {
    let expected = memory();
    let files = files(0);
    engine(Arc::new(expected.clone()), 4 << 20, 1).save("ck", &files, &contents()).unwrap();
    let found = memory();
    // Two buffers for a state of a hundred.
    let engine = engine(Arc::new(found.clone()), 16_384, 2);
    let background = Background::new(&engine);
    engine.clock.scope(|scope| {
        background.start(scope).unwrap();
        for version in [1, 2] {
            let other = Contents::new(11, version, Values::Random);
            background.save("ck", &files, &other).unwrap().wait().unwrap();
        }
        let ticket = background.save("ck", &files, &contents()).unwrap();
        let saved = ticket.wait().unwrap();
        assert_eq!(saved.files.len(), 2);
        background.close();
    });
    assert!(read(&found, &files) == read(&expected, &files));
}

#[test]
fn what_was_saved_is_loaded_into_memory_or_compared() {
    for container in (0..CONTAINERS.len()).filter(|&place| CONTAINERS[place].0 != "dcp") {
        let (files, store) = (files(container), memory());
        let engine = engine(Arc::new(store.clone()), 16_384, 3);
        engine.save("ck", &files, &contents()).unwrap();
        let plan = LoadPlan::of_files(&store, CONTAINERS[container].1, "ck", &files).unwrap();
        let loaded = engine.load(&plan, &contents()).unwrap();
        assert_eq!(loaded.tensor_bytes, specs().iter().map(FileSpec::tensor_bytes).sum::<u64>());
        let other = Contents::new(11, 4, Values::Random);
        let held = Held::new(&specs(), &other);
        engine.load(&plan, &held).unwrap();
        let again = memory();
        let mut to = self::engine(Arc::new(again.clone()), 16_384, 3);
        to.save("ck", &files, &held).unwrap();
        assert!(read(&again, &files) == read(&store, &files), "memory holds what was saved");
        to.store = Arc::new(store);
        assert!(matches!(to.load(&plan, &other), Err(CheckpointError::Differs { .. })));
    }
}

#[test]
fn direct_files_are_written_and_read_whole() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Posix::new(folder.path(), Mode::Direct);
    store.make_folder("ck").unwrap();
    let files = files(0);
    let engine =
        Engine { durability: Durability::Fsync, ..engine(Arc::new(store.clone()), 32_768, 4) };
    engine.save("ck", &files, &contents()).unwrap();
    for file in &files {
        let size = store.size(&format!("ck/{}", file.name)).unwrap();
        assert_eq!(size, Some(file.image.len));
    }
    let plan = LoadPlan::of_files(&store, CONTAINERS[0].1, "ck", &files).unwrap();
    engine.load(&plan, &contents()).unwrap();
    engine.load(&plan, &Discard).unwrap();
}

#[test]
fn a_call_that_fails_ends_the_save_and_leaves_no_file_of_its_own() {
    let files = files(0);
    let total: u64 = files.iter().map(|file| file.image.len.div_ceil(65_536)).sum();
    for (op, count) in [(Op::Create, 2), (Op::Write, total), (Op::Publish, 2)] {
        for nth in 1..=count {
            let inner = memory();
            let store = FaultInjecting::new(inner.clone(), op, nth, EIO);
            let engine = engine(Arc::new(store), 65_536, 3);
            let error = engine.save("ck", &files, &contents()).unwrap_err();
            let CheckpointError::Store(StoreError::Io { op: failed, path, .. }) = error else {
                panic!("{error}")
            };
            assert_eq!(failed, op);
            let name = path.strip_prefix("memory:").unwrap();
            assert!(inner.get(name).is_none(), "{op} {nth}: {name} is there");
            // All buffers have come back.
            let background = Background::new(&engine);
            engine.clock.scope(|scope| {
                background.start(scope).unwrap();
                background.save("ck", &files, &contents()).unwrap().wait().unwrap();
                background.close();
            });
        }
    }
}

#[test]
fn a_background_save_that_fails_is_heard_of_when_it_is_asked_for() {
    let files = files(0);
    let engine = engine(Arc::new(FaultInjecting::new(memory(), Op::Write, 2, EIO)), 16_384, 2);
    let background = Background::new(&engine);
    engine.clock.scope(|scope| {
        background.start(scope).unwrap();
        let ticket = background.save("ck", &files, &contents()).unwrap();
        assert!(matches!(ticket.wait(), Err(CheckpointError::Store(_))));
        background.save("ck", &files, &contents()).unwrap().wait().unwrap();
        background.close();
    });
}

#[test]
fn a_rank_that_has_nothing_to_save_holds_nobody_up() {
    let (files, store) = (files(0), memory());
    let engine = engine(Arc::new(store.clone()), 16_384, 2);
    let background = Background::new(&engine);
    engine.clock.scope(|scope| {
        background.start(scope).unwrap();
        for files in [&[][..], &files, &[]] {
            let ticket = background.save("ck", files, &contents()).unwrap();
            assert_eq!(ticket.wait().unwrap().files.len(), files.len());
        }
        background.close();
    });
    assert_eq!(read(&store, &files).len(), 2);
}

#[test]
fn a_stop_breaks_off() {
    let files = files(0);
    let store = memory();
    let engine = engine(Arc::new(store.clone()), 16_384, 2);
    engine.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let broken = engine.save("ck", &files, &contents());
    assert!(matches!(broken, Err(CheckpointError::Stopped)));
    assert!(store.get("ck/model.pt").is_none());
}
