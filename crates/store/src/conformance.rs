//! The suite every store must pass: `conformance::check(&my_empty_store)` in a test of its own.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use crate::{
    AlignedBuf, BLOCK_BYTES, Call, CallOutcome, Destination, Durability, EntryKind, ObjectRange,
    Op, ReadBuffer, ReadQueue, Result, ScanOptions, Scanned, SequentialQueue, Store, StoreError,
    Writer, Written, scan,
};

/// Runs every test against `store`, which must be empty and is empty again afterwards.
///
/// # Panics
/// If the store breaks a promise of [`Store`], [`Object`](crate::Object) or [`Upload`](crate::Upload).
pub fn check(store: &dyn Store) {
    type Test = fn(&dyn Store);
    let in_a_folder: [(&str, Test); 9] = [
        ("round", bytes_come_back),
        ("reads", reads_are_exact),
        ("late", writes_appear_when_published),
        ("head", the_head_can_be_changed),
        ("sums", checksums_are_those_of_the_bytes),
        ("queue", queues_read_what_is_asked_for),
        ("queue", queues_survive_errors),
        ("queue", queues_keep_errors_apart),
        ("sizes", listings_bring_the_right_sizes),
    ];
    for (folder, test) in in_a_folder {
        store.make_folder(folder).expect("make folder");
        test(store);
        store.remove_tree(folder).expect("remove");
    }
    folders_are_made_listed_and_removed(store);
    scans_are_sorted_walks(store);
    what_is_missing_is_said_to_be(store);
    keys_stay_inside(store);
    folders_take_the_place_of_others(store);
    writes_come_from_many_threads(store);
    clear(store);
}

/// Sizes around the block and the buffers in use here.
const SIZES: [usize; 9] = [0, 1, 4095, 4096, 4097, 8192, 8193, 100_000, 524_288 + 17];

/// Bytes that differ from place to place.
fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn write(store: &dyn Store, key: &str, bytes: &[u8]) {
    let buf = AlignedBuf::new(2 * BLOCK_BYTES);
    let mut writer = Writer::create(store, key, buf).expect("create");
    writer.write_all(bytes).expect("write");
    assert_eq!(writer.written(), bytes.len() as u64);
    let written = writer.publish(Durability::None).expect("publish");
    assert_eq!(written, Written { bytes: bytes.len() as u64, crc32: None });
}

fn read(store: &dyn Store, key: &str) -> Vec<u8> {
    let mut object = store.open(key).expect("open");
    let mut bytes = vec![0; object.len().expect("size") as usize];
    object.read_exact_at(0, &mut bytes).expect("read");
    bytes
}

fn names(store: &dyn Store, folder: &str) -> BTreeMap<String, EntryKind> {
    let mut found = BTreeMap::new();
    let listed = store.list(folder, &mut |entry| {
        assert_eq!(found.insert(entry.name.to_owned(), entry.kind), None, "listed twice");
        ControlFlow::Continue(())
    });
    listed.expect("list");
    found
}

/// Removes everything.
fn clear(store: &dyn Store) {
    for (name, kind) in names(store, "") {
        match kind {
            EntryKind::Folder => store.remove_tree(&name).expect("remove"),
            EntryKind::File => store.remove(&name).expect("remove"),
        }
    }
    store.remove("").expect("remove");
}

fn bytes_come_back(store: &dyn Store) {
    for len in SIZES {
        let (key, bytes) = (format!("round/{len}"), pattern(len));
        write(store, &key, &bytes);
        assert!(read(store, &key) == bytes, "{len} bytes do not come back");
    }
    write(store, "round/1", b"another");
    assert_eq!(read(store, "round/1"), b"another", "what is there is replaced");
}

fn reads_are_exact(store: &dyn Store) {
    let bytes = pattern(700_001);
    write(store, "reads/it", &bytes);
    let mut object = store.open("reads/it").expect("open");
    let mut memory = AlignedBuf::new(1 << 20);
    // Place in memory, offset, length: aligned, at the end, across blocks and across windows.
    for (skip, offset, len) in [
        (0, 0, 4096),
        (0, 4096, 8192),
        (0, 0, 700_001),
        (0, 698_368, 1633),
        (0, 8192, 691_809),
        (1, 0, 4096),
        (0, 1, 4096),
        (7, 5000, 1),
        (3, 123, 699_878),
        (0, 700_000, 1),
        (0, 700_001, 0),
        (0, 655_360, 4096),
    ] {
        let buf = &mut memory[skip..skip + len];
        object.read_exact_at(offset as u64, buf).expect("read");
        assert!(*buf == bytes[offset..offset + len], "{len} bytes at {offset} into {skip}");
    }
    for (offset, len, found) in [
        (700_000, 2, 1),
        (700_001, 1, 0),
        (0, 700_002, 700_001),
        (1 << 40, 5, 0),
        (4096, 1 << 20, 695_905),
    ] {
        let error = object.read_exact_at(offset, &mut memory[..len]).expect_err("too far");
        let StoreError::Short { offset: at, needed, found: there, .. } = error else {
            panic!("expected a short read, found {error:?}");
        };
        assert_eq!((at, needed, there), (offset, len as u64, found));
        let found = usize::try_from(found).expect("a small object");
        assert_eq!(object.read_up_to(offset, &mut memory[..len]).expect("read"), found);
        let start = usize::try_from(offset).expect("an offset of this test").min(bytes.len());
        assert!(memory[..found] == bytes[start..start + found], "{found} bytes at {offset}");
    }
    assert!(object.preferred_bytes() > 0);
}

fn writes_appear_when_published(store: &dyn Store) {
    let mut buf = AlignedBuf::new(BLOCK_BYTES);
    let mut writer = Writer::create(store, "late/it", &mut buf).expect("create");
    writer.write_all(&pattern(10_000)).expect("write");
    assert_eq!(store.kind("late/it").expect("kind"), None);
    assert!(names(store, "late").is_empty(), "an upload is listed");
    writer.publish(Durability::Fsync).expect("publish");
    assert!(read(store, "late/it") == pattern(10_000));

    let mut writer = Writer::create(store, "late/it", &mut buf).expect("create");
    writer.write_all(b"never seen").expect("write");
    drop(writer);
    assert!(read(store, "late/it") == pattern(10_000), "a dropped upload leaves a trace");
    assert_eq!(names(store, "late").len(), 1);
}

fn the_head_can_be_changed(store: &dyn Store) {
    let mut buf = AlignedBuf::new(BLOCK_BYTES);
    for len in [100, 4096, 4097, 30_000] {
        let mut expected = pattern(len);
        let mut writer = Writer::create(store, "head/it", &mut buf).expect("create");
        writer.write_all(&expected).expect("write");
        let end = len.min(BLOCK_BYTES);
        writer.patch(14, b"CRC!").expect("patch");
        writer.patch(end as u64 - 1, b"E").expect("patch the last byte");
        let error = writer.patch(end as u64, b"X").expect_err("a patch after the head");
        assert!(matches!(error, StoreError::Patch { .. }), "{error:?}");
        writer.publish(Durability::None).expect("publish");
        expected[14..18].copy_from_slice(b"CRC!");
        expected[end - 1] = b'E';
        assert!(read(store, "head/it") == expected, "patched object of {len} bytes");
    }
}

fn checksums_are_those_of_the_bytes(store: &dyn Store) {
    for buffer_bytes in [BLOCK_BYTES, 2 * BLOCK_BYTES, 1 << 20] {
        let mut buf = AlignedBuf::new(buffer_bytes);
        for (len, patch) in SIZES.into_iter().flat_map(|len| [(len, ""), (len, "CRC!")]) {
            let mut writer =
                Writer::create(store, "sums/it", &mut buf).expect("create").with_checksum();
            writer.write_all(&pattern(len)).expect("write");
            let patch = &patch.as_bytes()[..patch.len().min(len)];
            writer.patch(len.min(BLOCK_BYTES).saturating_sub(4) as u64, patch).expect("patch");
            let written = writer.publish(Durability::None).expect("publish");
            let crc32 = Some(crc32fast::hash(&read(store, "sums/it")));
            let expected = Written { bytes: len as u64, crc32 };
            assert_eq!(written, expected, "{len} bytes, patched with {patch:?}");
        }
    }
}

fn range(key: &str, offset: u64, len: impl Into<Option<u64>>) -> ObjectRange {
    ObjectRange { key: key.to_owned(), offset, len: len.into() }
}

/// The store's own queue, or the one that does for every store.
fn queue(store: &dyn Store, depth: usize) -> Box<dyn ReadQueue + '_> {
    let own = store.queue(depth).expect("queue");
    own.unwrap_or_else(|| Box::new(SequentialQueue::new(store)))
}

/// What a queue gives, and how many opens, questions for a size, and bytes it showed.
fn read_queued(
    queue: &mut dyn ReadQueue,
    ranges: &[ObjectRange],
    to: Destination<'_, '_>,
) -> (Result<u64>, [u64; 3]) {
    let mut counts = [0; 3];
    let result = queue.read(ranges, to, &mut |Call { op, outcome, .. }| match (op, outcome) {
        (Op::Open, _) => counts[0] += 1,
        (Op::Stat, _) => counts[1] += 1,
        (Op::Read, CallOutcome::Done { bytes }) => counts[2] += bytes,
        (Op::Read, CallOutcome::Failed) => {}
        _ => panic!("a queue only reads, found {op}"),
    });
    (result, counts)
}

/// What a queue reads to memory of that many bytes per range.
fn read_to_memory(
    queue: &mut dyn ReadQueue,
    ranges: &[ObjectRange],
    room: usize,
) -> Vec<Result<Vec<u8>>> {
    let mut memory: Vec<_> = ranges.iter().map(|_| AlignedBuf::new(room)).collect();
    let mut buffers: Vec<_> = memory.iter_mut().map(|it| ReadBuffer::new(it)).collect();
    let (result, counts) = read_queued(queue, ranges, Destination::Buffers(&mut buffers));
    let results: Vec<_> = buffers.into_iter().map(ReadBuffer::into_result).collect();
    let bytes = result.expect("an error belongs to its range");
    assert_eq!(bytes, results.iter().flatten().sum::<u64>(), "the bytes of ranges that were read");
    assert!(counts[2] >= bytes, "bytes of calls that were shown");
    let of_one = |(memory, result): (&AlignedBuf, Result<u64, _>)| {
        result.map(|bytes| memory[..bytes as usize].to_vec())
    };
    memory.iter().zip(results).map(of_one).collect()
}

fn queues_read_what_is_asked_for(store: &dyn Store) {
    let long = 3 * store.read_bytes() as u64 + 9001;
    let bytes = pattern(long as usize);
    write(store, "queue/long", &bytes);
    write(store, "queue/short", b"12345");
    write(store, "queue/none", b"");
    let has_queue = store.queue(1).expect("queue").is_some();
    assert_eq!(has_queue, store.capabilities().queue, "capabilities");
    for depth in [0, 1, 5, 16] {
        let mut queue = queue(store, depth);
        let mut check = |ranges: &[ObjectRange], expected: [u64; 3]| {
            let (result, counts) = read_queued(&mut *queue, ranges, Destination::Discard);
            assert_eq!(result.expect("read"), expected[2], "{ranges:?} at depth {depth}");
            assert_eq!(counts, expected, "{ranges:?} at depth {depth}");
            if ranges.len() > 2 {
                return;
            }
            let found = read_to_memory(&mut *queue, ranges, bytes.len());
            for (range, found) in ranges.iter().zip(found) {
                let whole: &[u8] = match range.key.as_str() {
                    "queue/long" => &bytes,
                    "queue/short" => b"12345",
                    _ => b"",
                };
                let from = &whole[range.offset as usize..];
                let expected = &from[..range.len.map_or(from.len(), |len| len as usize)];
                assert!(found.expect("read") == expected, "{range:?} at depth {depth}");
            }
        };
        check(&[], [0, 0, 0]);
        check(&[range("queue/none", 0, None)], [1, 1, 0]);
        check(&[range("queue/long", 0, None)], [1, 1, long]);
        check(&[range("queue/long", 0, long)], [1, 0, long]);
        check(&[range("queue/long", 4095, 2)], [1, 0, 2]);
        check(&[range("queue/long", long - 1, 1), range("queue/long", 5, None)], [1, 1, long - 4]);
        check(&[range("queue/long", long, None), range("queue/short", 5, 0)], [2, 1, 0]);
        // More files than the queue has room for.
        let mut many = vec![range("queue/short", 1, 3); 3];
        for _ in 0..40 {
            many.extend([range("queue/short", 0, None), range("queue/long", 4097, 5000)]);
        }
        check(&many, [80, 40, 9 + 40 * 5005]);
    }
}

/// The first error ends a read whose bytes are discarded.
fn queues_survive_errors(store: &dyn Store) {
    write(store, "queue/it", &pattern(700_001));
    let mut queue = queue(store, 4);
    let mut read = |ranges: &[ObjectRange]| read_queued(&mut *queue, ranges, Destination::Discard);
    for (offset, len, found) in BEYOND {
        let ranges = [range("queue/it", 0, None), range("queue/it", offset, len)];
        let error = read(&ranges).0.expect_err("too far");
        check_short(store, &error, (offset, len, found));
    }
    let ranges = [range("queue/it", 0, None), range("queue/missing", 0, None)];
    let error = read(&ranges).0.expect_err("nothing is there");
    assert!(error.is_missing(), "{error:?}");
    assert!(error.to_string().contains(&store.locate("queue/missing")), "{error}");
    let error = read(&[range("../x", 0, None)]).0.expect_err("no key");
    assert!(matches!(error, StoreError::Key { .. }), "{error:?}");
    let again = read(&[range("queue/it", 0, None)]);
    assert_eq!(again.0.expect("read"), 700_001);
    assert_eq!(again.1, [1, 1, 700_001]);
}

/// Ranges of an object of 700 001 bytes that reach beyond its end: offset, length, and how many
/// bytes are there.
const BEYOND: [(u64, u64, u64); 4] =
    [(700_000, 2, 1), (700_001, 1, 0), (1 << 40, 5, 0), (u64::MAX - 3, 9, 0)];

fn check_short(store: &dyn Store, error: &StoreError, expected: (u64, u64, u64)) {
    let StoreError::Short { path, offset, needed, found } = error else {
        panic!("expected a short read, found {error:?}");
    };
    assert_eq!(*path, store.locate("queue/it"));
    assert_eq!((*offset, *needed, *found), expected);
}

/// With a buffer per range, an error ends its own range only.
fn queues_keep_errors_apart(store: &dyn Store) {
    let bytes = pattern(700_001);
    write(store, "queue/it", &bytes);
    write(store, "queue/other", b"12345");
    for depth in [1, 3, 16] {
        let mut ranges = Vec::new();
        for (offset, len, _) in BEYOND {
            ranges.extend([
                range("queue/it", offset, len),
                range("queue/it", offset.min(650_000), 50_000),
                range("queue/missing", 0, 1),
                range("../x", 0, 1),
                range("queue/other", 1, None),
            ]);
        }
        // There is not enough room for this one.
        ranges.push(range("queue/it", 600_000, None));
        let mut found = read_to_memory(&mut *queue(store, depth), &ranges, 50_000).into_iter();
        let mut next = || found.next().expect("as many as there are ranges");
        for beyond in BEYOND {
            check_short(store, &next().expect_err("too far"), beyond);
            assert!(next().expect("read") == bytes[650_000..700_000], "at depth {depth}");
            let error = next().expect_err("nothing is there");
            assert!(error.is_missing(), "{error:?}");
            assert!(error.to_string().contains(&store.locate("queue/missing")), "{error}");
            let error = next().expect_err("no key");
            assert!(matches!(error, StoreError::Key { .. }), "{error:?}");
            assert_eq!(next().expect("read"), b"2345");
        }
        let error = next().expect_err("too long for its buffer");
        let StoreError::TooLong { path, bound: 650_000, found: 700_001 } = error else {
            panic!("expected an object that is too long, found {error:?}");
        };
        assert_eq!(path, store.locate("queue/it"));
    }
}

fn folders_are_made_listed_and_removed(store: &dyn Store) {
    store.make_folder("a/b/c").expect("make folder");
    store.make_folder("a/b").expect("a folder that is there is no error");
    write(store, "a/file", b"x");
    write(store, "a/b/deep", b"y");
    write(store, "a-sibling", b"z");
    let expected = [("b", EntryKind::Folder), ("file", EntryKind::File)];
    assert_eq!(names(store, "a"), BTreeMap::from(expected.map(|(name, kind)| (name.into(), kind))));
    assert_eq!(names(store, "a/"), names(store, "./a"));
    let root: Vec<String> = names(store, "").into_keys().collect();
    assert_eq!(root, ["a", "a-sibling"]);

    let mut seen = 0;
    let broken_off = store.list("a", &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    });
    broken_off.expect("breaking off is no error");
    assert_eq!(seen, 1);

    assert_eq!(store.kind("a/b").expect("kind"), Some(EntryKind::Folder));
    assert_eq!(store.kind("a/b/deep").expect("kind"), Some(EntryKind::File));
    assert!(store.exists("a/file").expect("exists"));
    assert_eq!(store.size("a/file").expect("size"), Some(1));
    assert_eq!(store.size("a").expect("size"), None, "a folder has none");
    store.remove("a").expect("a folder with something in it stays");
    assert!(store.exists("a/b/deep").expect("exists"));
    for key in ["a/b/deep", "a/b/deep", "a/b/c", "a/b"] {
        store.remove(key).expect("objects and empty folders go, and may be gone");
        assert!(!store.exists(key).expect("exists"), "{key}");
    }
    assert!(store.exists("a/file").expect("exists"));
    store.remove_tree("a").expect("remove");
    assert!(!store.exists("a").expect("exists") && !store.exists("a/b/deep").expect("exists"));
    assert!(store.exists("a-sibling").expect("exists"), "a neighbor is gone");
    store.remove("a").expect("removing nothing is no error");
}

fn listings_bring_the_right_sizes(store: &dyn Store) {
    store.make_folder("sizes/folder").expect("make folder");
    for len in [0, 1, 4097] {
        write(store, &format!("sizes/{len}"), &pattern(len));
    }
    let mut found = BTreeMap::new();
    let listed = store.list("sizes", &mut |entry| {
        found.insert(entry.name.to_owned(), entry.size_bytes);
        ControlFlow::Continue(())
    });
    listed.expect("list");
    let brings_sizes = found["1"].is_some();
    assert!(brings_sizes || store.capabilities().network.is_none(), "answers have sizes");
    let size = |bytes| Some(bytes).filter(|_| brings_sizes);
    let expected = [("0", size(0)), ("1", size(1)), ("4097", size(4097)), ("folder", None)];
    assert_eq!(found, expected.map(|(name, size)| (name.to_owned(), size)).into());
}

/// Every object below a folder, found one folder after the other.
fn walk(store: &dyn Store, folder: &str, found: &mut Vec<String>) {
    for (name, kind) in names(store, folder) {
        let key = format!("{folder}/{name}");
        match kind {
            EntryKind::File => found.push(key),
            EntryKind::Folder => walk(store, &key, found),
        }
    }
}

fn scans_are_sorted_walks(store: &dyn Store) {
    // Characters before and after the slash, and beyond ASCII.
    let words = ["a", "a-", "a.b", "a0", "b", "B", "\u{fc}", "z"];
    let mut state = 1_u64;
    let mut pick = |count: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % count) as usize
    };
    for _tree in 0..3 {
        for _file in 0..40 {
            let depth = pick(4);
            let folder =
                (0..depth).fold("scan".to_owned(), |path, _| format!("{path}/{}", words[pick(8)]));
            // Files have names of their own: none is a folder elsewhere.
            let key = format!("{folder}/{}.file", words[pick(8)]);
            store.make_folder(&folder).expect("make folder");
            write(store, &key, &pattern(pick(50)));
        }
        let mut expected = Vec::new();
        walk(store, "scan", &mut expected);
        expected.sort_unstable();
        for folders_at_a_time in [1, 3, 16].map(|count| NonZeroUsize::new(count).expect("not 0")) {
            let options = ScanOptions { folders_at_a_time, ..ScanOptions::default() };
            let found: Vec<_> = scan(store, "scan", options).map(|it| it.expect("scan")).collect();
            let keys: Vec<_> = found.iter().map(|it| it.key.as_str()).collect();
            assert_eq!(keys, expected);
            for Scanned { key, size_bytes } in found.iter().filter(|it| it.size_bytes.is_some()) {
                assert_eq!(*size_bytes, store.size(key).expect("size"), "{key}");
            }
        }
        store.remove_tree("scan").expect("remove");
    }
}

fn what_is_missing_is_said_to_be(store: &dyn Store) {
    let missing = |result: Result<()>| {
        let error = result.expect_err("nothing is there");
        assert!(error.is_missing(), "{error:?}");
        let named = error.to_string().contains(&store.locate("no/where"));
        assert!(named, "{error} does not name what is missing");
    };
    missing(store.open("no/where").map(drop));
    missing(store.create("no/where").map(drop));
    missing(store.list("no/where", &mut |_| ControlFlow::Continue(())));
    assert_eq!(store.kind("no/where").expect("kind"), None);
    assert_eq!(store.size("no/where").expect("size"), None);
    store.free_bytes("no/where").expect("a folder to come has a file system already");
}

fn keys_stay_inside(store: &dyn Store) {
    for key in ["../x", "a/../../x", "/etc/passwd", ""] {
        let error = store.open(key).map(drop).expect_err("no such key");
        assert!(matches!(error, StoreError::Key { .. }), "{key:?}: {error:?}");
        let error = store.create(key).map(drop).expect_err("no such key");
        assert!(matches!(error, StoreError::Key { .. }), "{key:?}: {error:?}");
    }
    assert!(store.remove("..").is_err());
}

fn folders_take_the_place_of_others(store: &dyn Store) {
    let hidden = crate::partial_name("trade");
    store.make_folder(&hidden).expect("make folder");
    write(store, &format!("{hidden}/new"), b"new");
    if !store.capabilities().folder_renames {
        assert!(store.replace_folder(&hidden, "trade", Durability::None).is_err());
        store.remove_tree(&hidden).expect("remove");
        return;
    }
    assert!(!names(store, "").contains_key(&hidden), "what is prepared is not listed");
    store.replace_folder(&hidden, "trade", Durability::Fsync).expect("replace");
    assert_eq!(read(store, "trade/new"), b"new");
    assert_eq!(store.kind(&hidden).expect("kind"), None);

    store.make_folder(&format!("{hidden}/deep")).expect("make folder");
    write(store, &format!("{hidden}/deep/newer"), b"newer");
    store.replace_folder(&hidden, "trade", Durability::None).expect("replace");
    assert_eq!(names(store, "trade"), BTreeMap::from([("deep".to_owned(), EntryKind::Folder)]));
    assert_eq!(read(store, "trade/deep/newer"), b"newer");
    assert_eq!(read(store, &format!("{hidden}/new")), b"new", "the old one is aside");
    for folder in [hidden.as_str(), "trade", "trade"] {
        store.remove_tree(folder).expect("remove");
        assert_eq!(store.kind(folder).expect("kind"), None);
    }
    assert!(store.replace_folder(&hidden, "trade", Durability::None).is_err(), "nothing there");
}

fn writes_come_from_many_threads(store: &dyn Store) {
    let bytes = pattern(9 * BLOCK_BYTES);
    let upload = store.create("many").expect("create");
    if upload.is_in_order() {
        return;
    }
    let mut blocks = AlignedBuf::new(bytes.len());
    blocks.copy_from_slice(&bytes);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (upload, blocks) = (&upload, &blocks);
            scope.spawn(move || {
                for at in (thread * BLOCK_BYTES..blocks.len()).step_by(3 * BLOCK_BYTES) {
                    upload.write_at(at as u64, &blocks[at..at + BLOCK_BYTES]).expect("write");
                }
            });
        }
    });
    upload.publish(Durability::None).expect("publish");
    assert!(read(store, "many") == bytes);
}
