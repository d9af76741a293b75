//! Every store against the one suite, and what is particular to each.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{
    AlignedBuf, Durability, Failing, Memory, Metered, Mode, Op, Posix, Resident, Store, StoreError,
    Writer, conformance,
};
use feedline_clock::Clock;

fn write(store: &dyn Store, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let mut buf = AlignedBuf::new(4096);
    let mut writer = Writer::create(store, key, &mut buf)?;
    writer.write_all(bytes)?;
    writer.publish(Durability::None)
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
fn memory_conforms() {
    conformance::check(&Memory::new(Clock::simulated()));
}

#[test]
fn wrapped_stores_conform() {
    let clock = Clock::simulated();
    let failing = Failing::new(Memory::new(clock.clone()), Op::Read, u64::MAX, libc::EIO);
    conformance::check(&Metered::new(Arc::new(failing), clock));
}

#[test]
fn leftovers_of_a_killed_writer_are_not_listed() {
    let (folder, store) = posix(Mode::Buffered);
    std::fs::write(folder.path().join("root/.img_0.npz.partial-99-0"), "half").unwrap();
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
    let mut upload = store.create("it").unwrap();
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
    assert_eq!(store.resident_bytes("it").unwrap(), Some(whole));
    // Large enough to be estimated from stretches, of which the last ends with the file.
    let len = (20 << 20) + 777;
    write(&store, "large", &vec![1; len as usize]).unwrap();
    let whole = Resident { resident: len, total: len };
    assert_eq!(store.resident_bytes("large").unwrap(), Some(whole));
    store.evict("large").unwrap();
    let gone = Resident { resident: 0, total: len };
    assert_eq!(store.resident_bytes("large").unwrap(), Some(gone), "on a device, pages can go");
    assert!(store.evict("none").unwrap_err().is_missing());
    let nothing = Resident { resident: 0, total: 0 };
    assert_eq!(store.resident_bytes("empty").unwrap(), Some(nothing));
    assert!(store.resident_bytes("none").unwrap_err().is_missing());
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
    let store = Failing::new(memory.clone(), Op::Write, 3, libc::ENOSPC);
    let error = write(&store, "it", &[1; 10_000]).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOSPC));
    assert_eq!(error.to_string(), "cannot write memory:it");
    assert_eq!(memory.get("it"), None);
    write(&store, "it", &[1; 10_000]).unwrap();
    assert_eq!(memory.get("it").as_deref(), Some(&[1; 10_000][..]));
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
