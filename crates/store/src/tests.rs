//! Every store against the one suite, and what is particular to each.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{
    AlignedBuf, Call, CallOutcome, Destination, Durability, EntryKind, FaultInjecting, FaultSpec,
    Faults, Looped, Memory, Metered, Mode, ObjectRange, Op, Posix, Resident, Result, Store,
    StoreError, Writer, conformance,
};
use feedline_clock::Clock;

fn write(store: &dyn Store, key: &str, bytes: &[u8]) -> Result<()> {
    let mut buf = AlignedBuf::new(4096);
    let mut writer = Writer::create(store, key, &mut buf)?;
    writer.write_all(bytes)?;
    writer.publish(Durability::None).map(drop)
}

fn posix(mode: Mode) -> (tempfile::TempDir, Posix) {
    let folder = tempfile::tempdir().unwrap();
    let store = Posix::new(folder.path().join("root"), mode);
    store.make_folder("").unwrap();
    (folder, store)
}

#[test]
fn posix_buffered_conforms() {
    let (_folder, store) = posix(Mode::Buffered);
    conformance::check(&store);
}

#[test]
fn posix_direct_conforms() {
    let (_folder, store) = posix(Mode::Direct);
    conformance::check(&store);
}

#[test]
fn posix_mapped_conforms() {
    let (_folder, store) = posix(Mode::Mapped);
    conformance::check(&store);
}

#[test]
fn posix_with_a_ring_conforms() {
    for mode in [Mode::Buffered, Mode::Direct] {
        let (_folder, store) = posix(mode);
        let store = store.with_ring().unwrap();
        conformance::check(&store);
        conformance::check(&Metered::new(Arc::new(store), Clock::real()));
    }
}

#[test]
fn posix_with_odd_transfers_conforms() {
    for (mode, read_bytes) in [(Mode::Buffered, 1000), (Mode::Direct, 5000)] {
        let (_folder, store) = posix(mode);
        let store = store.with_read_bytes(read_bytes).with_ring().unwrap();
        assert_eq!(store.read_bytes(), read_bytes);
        conformance::check(&store);
    }
}

#[test]
fn mapped_files_have_no_ring() {
    let (folder, store) = posix(Mode::Mapped);
    let error = store.with_ring().unwrap_err();
    let root = folder.path().join("root");
    assert_eq!(
        error.to_string(),
        format!(
            "files of {} are mapped into memory, expected buffered or direct reads for io_uring",
            root.display()
        )
    );
}

#[test]
fn only_a_ring_has_a_queue() {
    for mode in [Mode::Buffered, Mode::Direct, Mode::Mapped] {
        let (_folder, store) = posix(mode);
        assert!(store.queue(4).unwrap().is_none(), "{mode:?}");
    }
}

#[test]
fn memory_conforms() {
    conformance::check(&Memory::new(Clock::simulated()));
}

#[test]
fn wrapped_stores_conform() {
    let clock = Clock::simulated();
    let failing = FaultInjecting::new(Memory::new(clock.clone()), Op::Read, u64::MAX, libc::EIO);
    conformance::check(&Metered::new(Arc::new(failing), clock));
}

#[test]
fn leftovers_of_a_killed_writer_are_not_listed() {
    let (folder, store) = posix(Mode::Buffered);
    std::fs::write(folder.path().join("root/.img_0.npz.partial-99-0"), "half").unwrap();
    std::fs::write(folder.path().join("root/.img_0.npz.partial-a-b.c-99-0"), "half").unwrap();
    std::fs::write(folder.path().join("root/.hidden"), "whole").unwrap();
    let mut names = Vec::new();
    let listed = store.list("", &mut |entry| {
        names.push(entry.name.to_owned());
        ControlFlow::Continue(())
    });
    listed.unwrap();
    assert_eq!(names, [".hidden"]);
}

#[test]
fn a_dropped_upload_removes_its_file() {
    for mode in [Mode::Buffered, Mode::Direct] {
        let (folder, store) = posix(mode);
        drop(store.create("it").unwrap());
        assert_eq!(std::fs::read_dir(folder.path().join("root")).unwrap().count(), 0);
    }
}

#[test]
fn direct_io_where_there_is_none_is_an_error() {
    // procfs knows no direct I/O on any kernel.
    let store = Posix::new("/proc", Mode::Direct);
    let error = store.open("version").map(drop).unwrap_err();
    assert_eq!(error.to_string(), "the file system of /proc/version refuses direct I/O");
}

#[test]
fn an_unaligned_direct_write_is_refused() {
    let (_folder, store) = posix(Mode::Direct);
    let buf = AlignedBuf::new(8192);
    let upload = store.create("it").unwrap();
    for (offset, range) in [(1, 0..4096), (0, 1..4097)] {
        let error = upload.write_at(offset, &buf[range]).unwrap_err();
        assert!(matches!(error, StoreError::Unaligned { .. }), "{error:?}");
    }
    upload.write_at(0, &buf[..4100]).unwrap();
    let error = upload.write_at(4096, &buf[..4096]).unwrap_err();
    assert!(
        matches!(error, StoreError::Unaligned { .. }),
        "nothing follows a last block: {error:?}"
    );
}

#[test]
fn pages_just_written_are_resident() {
    let (_folder, store) = posix(Mode::Buffered);
    write(&store, "it", &[7; 10_000]).unwrap();
    write(&store, "empty", &[]).unwrap();
    let whole = Resident { resident: 10_000, total: 10_000 };
    assert_eq!(store.open("it").unwrap().resident().unwrap(), Some(whole));
    // Large enough to be estimated from stretches, of which the last ends with the file.
    let len = (20 << 20) + 777;
    write(&store, "large", &vec![1; len as usize]).unwrap();
    let whole = Resident { resident: len, total: len };
    assert_eq!(store.open("large").unwrap().resident().unwrap(), Some(whole));
    store.evict("large").unwrap();
    let gone = Resident { resident: 0, total: len };
    assert_eq!(
        store.open("large").unwrap().resident().unwrap(),
        Some(gone),
        "on a device, pages can go"
    );
    assert!(store.evict("none").unwrap_err().is_missing());
    let nothing = Resident { resident: 0, total: 0 };
    assert_eq!(store.open("empty").unwrap().resident().unwrap(), Some(nothing));
}

#[test]
fn a_file_system_has_free_space() {
    let (_folder, store) = posix(Mode::Buffered);
    assert!(store.free_bytes("not/there/yet").unwrap().unwrap() > 0);
    assert_eq!(Memory::new(Clock::real()).free_bytes("").unwrap(), None);
}

#[test]
fn errors_name_the_users_path() {
    let (folder, store) = posix(Mode::Buffered);
    let path = folder.path().join("root/none").display().to_string();
    assert_eq!(
        store.open("none").map(drop).unwrap_err().to_string(),
        format!("cannot open {path}")
    );
    let error = store.create("none/it").map(drop).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot create {path}/it"));
    assert_eq!(error.errno(), Some(libc::ENOENT));
}

#[test]
fn the_nth_operation_fails_and_leaves_nothing() {
    let memory = Memory::new(Clock::simulated());
    let store = FaultInjecting::new(memory.clone(), Op::Write, 3, libc::ENOSPC);
    let error = write(&store, "it", &[1; 10_000]).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOSPC));
    assert_eq!(error.to_string(), "cannot write memory:it");
    assert_eq!(memory.get("it"), None);
    write(&store, "it", &[1; 10_000]).unwrap();
    assert_eq!(memory.get("it").as_deref(), Some(&[1; 10_000][..]));
}

#[test]
fn faults_count_over_all_stores_that_share_them() {
    let specs = ["read:every2:EIO", "read:3:ESTALE", "open:3:ENOENT"];
    let specs = specs.map(|text| FaultSpec::parse(text).unwrap()).to_vec();
    let faults = Arc::new(Faults::new(specs));
    let stores = ["a", "b"].map(|key| {
        let memory = Memory::new(Clock::simulated());
        memory.put(key, &b"12345"[..]);
        FaultInjecting::sharing(memory, Arc::clone(&faults))
    });
    let mut objects = [stores[0].open("a").unwrap(), stores[1].open("b").unwrap()];
    let missing = stores[0].open("a").map(drop).unwrap_err();
    assert_eq!((missing.to_string(), missing.is_missing()), ("cannot open memory:a".into(), true));
    let mut read = |of: usize| {
        let read = objects[of].read_exact_at(0, &mut [0; 5]);
        read.map_err(|error| (error.errno(), error.to_string()))
    };
    let failed = |errno, path: &str| Err((Some(errno), format!("cannot read memory:{path}")));
    let found = [read(0), read(1), read(0), read(0), read(1), read(1)];
    let expected = [
        Ok(()),
        failed(libc::EIO, "b"),
        failed(libc::ESTALE, "a"),
        failed(libc::EIO, "a"),
        Ok(()),
        failed(libc::EIO, "b"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_meter_counts_what_the_clock_says() {
    let clock = Clock::simulated();
    let memory = Memory::new(clock.clone()).with_latency(|op, key, offset, len| match op {
        Op::Open => 1_000,
        Op::Read if key == "slow" => 1_000_000 + offset,
        Op::Read => len as u64,
        _ => 0,
    });
    memory.put("fast", vec![0; 100]);
    memory.put("slow", vec![0; 100]);
    let store = Metered::new(memory, clock.clone());
    let progress = store.progress();

    progress.begin_batch(clock.now());
    for key in ["fast", "slow"] {
        let mut object = store.open(key).unwrap();
        object.read_exact_at(20, &mut [0; 50]).unwrap();
        clock.sleep(500);
    }
    let spent = progress.snapshot(clock.now());
    assert_eq!((spent.batch_no, spent.storage_ns, spent.busy_ns), (1, 1_002_070, 1_003_070));
    store.open("fast").unwrap().read_exact_at(90, &mut [0; 50]).unwrap_err();

    let meter = store.take();
    let (open, read) = (meter.op(Op::Open), meter.op(Op::Read));
    assert_eq!((open.calls, open.errors, open.bytes, open.busy_ns), (3, 0, 0, 3_000));
    assert_eq!((read.calls, read.errors, read.bytes, read.busy_ns), (3, 1, 100, 1_000_120));
    assert_eq!(meter.busy_ns(), 1_003_120);
    assert_eq!(store.take().busy_ns(), 0);
}

#[test]
fn an_operation_in_flight_is_seen_from_another_thread() {
    let clock = Clock::simulated();
    let memory = Memory::new(clock.clone()).with_latency(|op, _, _, _| match op {
        Op::Read => 1_000_000,
        _ => 0,
    });
    memory.put("it", vec![0; 8]);
    let store = Metered::new(memory, clock.clone());
    let progress = store.progress();
    clock.scope(|scope| {
        scope
            .spawn("worker".to_owned(), || {
                store.progress().begin_batch(clock.now());
                store.open("it").unwrap().read_exact_at(0, &mut [0; 8]).unwrap();
            })
            .unwrap();
        clock.sleep(300_000);
        let spent = progress.snapshot(clock.now());
        assert_eq!((spent.batch_no, spent.storage_ns), (1, 300_000));
    });
}

#[test]
fn a_queue_is_metered_call_by_call_and_in_storage_throughout() {
    let (_folder, store) = posix(Mode::Direct);
    let store = Metered::new(store.with_ring().unwrap(), Clock::real());
    write(&store, "it", &vec![1; (3 << 20) + 5]).unwrap();
    store.take();
    let progress = store.progress();
    progress.begin_batch(0);
    let mut queue = store.queue(2).unwrap().unwrap();
    let ranges = [
        ObjectRange { key: "it".to_owned(), offset: 1, len: None },
        ObjectRange { key: "none".to_owned(), offset: 0, len: None },
    ];
    let mut calls = Vec::new();
    let error =
        queue.read(&ranges, Destination::Discard, &mut |call| calls.push(call)).unwrap_err();
    assert!(error.is_missing());
    let spent = progress.snapshot(u64::MAX);
    let meter = store.take();
    let count = |op| {
        let meter = meter.op(op);
        let busy_ns: u64 =
            calls.iter().filter(|call| call.op == op).map(|call| call.duration_ns).sum();
        assert_eq!(meter.busy_ns, busy_ns, "{op}");
        assert_eq!(meter.latency_ns.len(), meter.calls, "{op}");
        (meter.calls, meter.errors, meter.bytes)
    };
    assert_eq!((count(Op::Open), count(Op::Stat)), ((2, 1, 0), (1, 0, 0)));
    // Whatever was under way when the second open failed is not counted.
    assert_eq!(meter.op(Op::Read).errors, 0);
    let mut seen = |call: Call| assert!(call.outcome != CallOutcome::Failed);
    let whole = queue.read(&ranges[..1], Destination::Discard, &mut seen);
    assert_eq!(whole.unwrap(), (3 << 20) + 4);
    let meter = store.take();
    assert_eq!((meter.op(Op::Read).calls, meter.op(Op::Read).bytes), (4, (3 << 20) + 4));
    assert!(spent.storage_ns > 0 && progress.snapshot(u64::MAX).storage_ns > spent.storage_ns);
}

#[test]
fn a_killed_writer_is_cleaned_up_after() {
    let (folder, store) = posix(Mode::Buffered);
    let living = store.create("living").unwrap();
    let name = std::fs::read_dir(folder.path().join("root")).unwrap().next().unwrap().unwrap();
    let name = name.file_name().into_string().unwrap();
    let ours = format!("-{}-", std::process::id());
    assert!(name.starts_with(".living.partial-") && name.contains(&ours), "{name}");

    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let child_name = |number: u32| {
        let (host, _) = name.strip_prefix(".living.partial-").unwrap().split_once(&ours).unwrap();
        (format!(".it.partial-{host}-{}-{number}", child.id()), format!("x{host}"), child.id())
    };
    let (of_child, other_host, pid) = child_name(7);
    let elsewhere = format!(".it.partial-{other_host}-{pid}-8");
    let former = format!(".it.partial-{pid}-9");
    for name in [&of_child, &elsewhere, &former, "whole"] {
        std::fs::write(folder.path().join("root").join(name), "half").unwrap();
    }
    assert_eq!(store.remove_stale("").unwrap(), 0, "everybody is alive");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(store.remove_stale("").unwrap(), 1);
    assert_eq!(Arc::new(store.clone()).remove_stale("not/there").unwrap(), 0);

    let left = std::fs::read_dir(folder.path().join("root")).unwrap();
    let mut left: Vec<_> =
        left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    let mut expected = [elsewhere, former, name, "whole".to_owned()];
    expected.sort();
    assert_eq!(left, expected);
    living.publish(Durability::None).unwrap();
    assert!(store.exists("living").unwrap());
}

fn looped() -> Looped {
    let object = |suffix: &str, bytes: &[u8]| (suffix.to_owned(), Arc::from(bytes));
    Looped::new([
        object(".npz", b"short"),
        object("big.npz", &vec![9; 2_100_000]),
        object(".jpg", b"one"),
        object(".jpg", b"three"),
    ])
}

#[test]
fn a_looped_store_answers_by_suffix() {
    let store = looped();
    let read = |key: &str| {
        let mut object = store.open(key).unwrap();
        let mut bytes = vec![0; object.len().unwrap() as usize];
        object.read_exact_at(0, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(read("train/img_000001.npz"), b"short");
    assert_eq!(read("./train//img_000001.npz"), b"short");
    assert_eq!(read("a_big.npz"), vec![9; 2_100_000], "the longest suffix counts");
    let lengths: Vec<usize> = (0..1000).map(|i| read(&format!("img_{i:04}.jpg")).len()).collect();
    let ones = lengths.iter().filter(|&&len| len == 3).count();
    assert!((400..600).contains(&ones), "{ones} of 1000 keys have the first object");
    assert_eq!(read("img_0000.jpg"), read("img_0000.jpg"));
    assert_eq!(store.kind("x/y.npz").unwrap(), Some(EntryKind::File));
    assert_eq!(store.kind("train").unwrap(), None);

    let error = store.open("x.npz").unwrap().read_exact_at(2, &mut [0; 9]).unwrap_err();
    let words = "looped:x.npz is too short: expected 9 bytes at byte 2, found 3";
    assert_eq!(error.to_string(), words);
    assert!(store.open("x.txt").map(drop).unwrap_err().is_missing());
    assert!(matches!(store.open("../x.npz").map(drop), Err(StoreError::Key { .. })));
}

#[test]
fn a_looped_store_holds_nothing() {
    let store = looped();
    let words = |result: Result<()>| result.unwrap_err().to_string();
    let why = "this is a read-only synthetic store";
    assert_eq!(
        words(store.create("x.npz").map(drop)),
        format!("cannot create looped:x.npz: {why}")
    );
    let listed = store.list("train", &mut |_| ControlFlow::Continue(()));
    assert_eq!(words(listed), format!("cannot list looped:train: {why}"));
    assert_eq!(words(store.remove("a.npz")), format!("cannot remove looped:a.npz: {why}"));
    assert_eq!(words(store.make_folder("a")), format!("cannot make folder looped:a: {why}"));
    assert_eq!(store.free_bytes("").unwrap(), None);
    assert_eq!(store.open("a.npz").unwrap().resident().unwrap(), None);
}

#[test]
fn a_looped_queue_copies_in_pieces() {
    let mut queue = looped().queue(8).unwrap().unwrap();
    let range = |key: &str, offset, len| ObjectRange { key: key.to_owned(), offset, len };
    let ranges = [
        range("big.npz", 10, None),
        range("big.npz", 0, Some(7)),
        range("x.npz", 0, Some(5)),
        range("x.npz", 1, Some(5)),
    ];
    let mut calls = Vec::new();
    let mut note = |Call { op, outcome, .. }: Call| {
        let CallOutcome::Done { bytes } = outcome else { return calls.push((op, None)) };
        calls.push((op, Some(bytes)));
    };
    assert_eq!(
        queue.read(&ranges[..3], Destination::Discard, &mut note).unwrap(),
        2_099_990 + 7 + 5
    );
    let error = queue.read(&ranges[3..], Destination::Discard, &mut note).unwrap_err();
    assert!(matches!(error, StoreError::Short { offset: 1, needed: 5, found: 4, .. }), "{error:?}");
    let expected = [
        (Op::Open, Some(0)),
        (Op::Stat, Some(0)),
        (Op::Read, Some(1 << 20)),
        (Op::Read, Some(1 << 20)),
        (Op::Read, Some(2_838)),
        (Op::Read, Some(7)),
        (Op::Open, Some(0)),
        (Op::Read, Some(5)),
        (Op::Open, Some(0)),
        (Op::Read, None),
    ];
    assert_eq!(calls, expected);
}
