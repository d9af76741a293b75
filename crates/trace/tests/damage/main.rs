//! Trace folders that someone has damaged: the readers of row groups, fed with mutated files of events.
//!
//! Files have checksums of their columns, which stop nearly all damage before it is looked at. Here they are
//! taken away, so that the decoders see it; that checksums stop it is looked at too.
//! The answer must be columns or an error that names the file: no panic, and no more memory than
//! [`MEMORY_ROW`] bytes a row and [`MEMORY_FACTOR`] times the file plus [`MEMORY_EXTRA`] at any time.
//!
//! `make test` tries some hundred files, `make fuzz` many more (`FEEDLINE_FUZZ` is the number). The files are
//! the same in every run; a failure names the one that it needs.

#[path = "../../../formats/tests/damage/memory.rs"]
mod memory;
mod mutation;

use std::fs;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use feedline_trace::{
    Batch, Blocks, Event, EventKind, EventSink as _, EventSource as _, Folder, FolderWriter,
    Process, Tables, TraceError, columns_of,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use mutation::Mutator;

const MEMORY_ROW: usize = 64;
const MEMORY_FACTOR: usize = 16;
/// Most of it is what the `parquet` crate takes for a damaged footer.
const MEMORY_EXTRA: usize = 16 << 20;
/// Inputs of each subject when nobody asks for more.
const INPUTS: u64 = 500;
const ROWS: u32 = 3_000;

/// The key under which checksums stand at the end of a file.
const CHECKSUMS: &[u8] = b"feedline.trace.crc32";

/// How the events of a folder look.
#[derive(Clone, Copy, Debug)]
enum Looks {
    /// As of a program: pages are small, and packed.
    Usual,
    /// Numbers without any order: nothing can be packed, so that damage is not met by the unpacking.
    Random,
}

fn text(random: &mut StdRng, looks: Looks) -> String {
    match looks {
        Looks::Usual => ["read", "write", "open"][random.random_range(0..3)].to_owned(),
        Looks::Random => (0..8).map(|_| char::from(random.random_range(33..126_u8))).collect(),
    }
}

fn number(random: &mut StdRng, looks: Looks) -> Option<i64> {
    match looks {
        Looks::Usual => random.random_bool(0.9).then(|| random.random_range(0..8) * 4096),
        Looks::Random => random.random_bool(0.5).then(|| random.random()),
    }
}

/// A folder with one file of events.
fn folder(dir: &Path, looks: Looks) -> PathBuf {
    let mut random = StdRng::seed_from_u64(7);
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    for pid in 0..3 {
        tables.add_process(Process { pid, is_traced: true, ..Process::default() });
    }
    let names: Vec<u32> = (0..300).map(|_| tables.name_row(&text(&mut random, looks))).collect();
    let files: Vec<u32> = (0..300).map(|n| tables.file_row(&format!("/data/{n}"))).collect();
    for row in 0..ROWS {
        let extra = random.random_bool(0.1).then(|| {
            batch.texts.push(format!("{{\"x\":{}}}", random.random::<u32>()));
            batch.texts.len() as u32 - 1
        });
        let mut next = || number(&mut random, looks);
        let [offset, size, result, arg, epoch, step, sample] = [(); 7].map(|()| next());
        batch.events.push(Event {
            process: random.random_range(0..3),
            thread: random.random_range(1..9),
            start_ns: 1_700_000_000_000_000_000 + i64::from(row) * random.random_range(0..9_999),
            duration_ns: random.random_range(0..1 << 40),
            kind: EventKind::ALL[random.random_range(0..5)],
            category: names[random.random_range(0..5)],
            name: names[random.random_range(0..300)],
            file: random.random_bool(0.7).then(|| files[random.random_range(0..300)]),
            other_file: random.random_bool(0.1).then(|| files[random.random_range(0..300)]),
            offset,
            size,
            result,
            errno: random.random_range(0..3),
            arg,
            epoch,
            step,
            sample,
            count: random.random_range(1..4),
            shortest_ns: offset.map(i64::unsigned_abs),
            longest_ns: None,
            value: random.random_bool(0.3).then(|| random.random()),
            extra,
        });
    }
    let mut writer = FolderWriter::create(dir).expect("a folder");
    writer.write(&tables, &batch).expect("a folder");
    writer.finish(&tables).expect("a folder");
    let mut events = fs::read_dir(dir.join("events")).expect("events").flatten();
    events.next().expect("a file of events").path()
}

/// Reads every column of every row group and looks at every value; gives how many columns there were.
fn read_all(dir: &Path) -> Result<usize, TraceError> {
    let mut tables = Tables::default();
    let blocks = Blocks::open(dir, &mut tables)?;
    let mut columns = 0;
    for index in 0..blocks.len() {
        for described in columns_of("events") {
            let mut block = blocks.read(index, &[described.name])?;
            let column = block.take(described.name);
            let mut codes = vec![0; block.rows];
            column.append_codes(&mut codes);
            let mut sum = 0_i64;
            for (row, code) in codes.into_iter().enumerate() {
                assert!((code as usize) < column.codes(), "row {row} has value {code}");
                sum = sum.wrapping_add(column.at(row));
            }
            let all: Vec<u32> = (0..block.rows as u32).collect();
            let mut again = 0_i64;
            column.each(&all, |_, value| again = again.wrapping_add(value));
            assert_eq!(sum, again);
            columns += 1;
        }
    }
    Ok(columns)
}

fn inputs() -> u64 {
    match std::env::var("FEEDLINE_FUZZ") {
        Ok(number) => number.parse().expect("FEEDLINE_FUZZ is a number of inputs"),
        Err(_) => INPUTS,
    }
}

/// Errors name the file, whoever reads them.
fn names(error: &TraceError, path: &Path) -> bool {
    error.to_string().contains(&*path.to_string_lossy())
}

/// Damages a folder's file `inputs` times.
fn check(looks: Looks, inputs: u64) {
    let keep = tempfile::tempdir().expect("a folder");
    let dir = keep.path().join("t");
    let path = folder(&dir, looks);
    let whole = fs::read(&path).expect("a file of events");
    let columns = read_all(&dir).expect("a whole folder");
    let file = mutation::Subject::new(&whole, CHECKSUMS);
    let mut mutator = Mutator::new(1);
    let (mut refused, mut read) = (0, 0);
    for input in 0..inputs {
        let data = mutator.damaged(&file);
        fs::write(&path, &data).expect("a file of events");
        let before = memory::start();
        let answer = catch_unwind(AssertUnwindSafe(|| read_all(&dir)));
        let used = memory::peak_since(before);
        let said = format!("{answer:?}");
        match answer {
            Ok(Ok(found)) => {
                assert_eq!(found, columns, "{looks:?}: input {input}");
                read += 1;
            }
            Ok(Err(error)) => {
                assert!(names(&error, &path), "{looks:?}: input {input}: {error}");
                refused += 1;
            }
            Err(_) => panic!("{looks:?}: input {input} made the reader panic"),
        }
        let limit = MEMORY_ROW * ROWS as usize + MEMORY_FACTOR * data.len() + MEMORY_EXTRA;
        assert!(used <= limit, "{looks:?}: input {input} took {used} bytes of {limit}, {said}");
    }
    let line = format!("{looks:?}: {inputs} inputs, {refused} refused, {read} read");
    writeln!(io::stderr(), "{line}").expect("a test has someone to tell");
    assert!(refused > 0 && read > 0, "{looks:?}: {refused} refused, {read} read");
}

/// The allocator counts for the whole process, so all is one test.
#[test]
fn damaged_row_groups_are_read_or_refused_and_cost_no_more_memory_than_promised() {
    for looks in [Looks::Usual, Looks::Random] {
        check(looks, inputs());
        checksums_stop_all_damage(looks);
    }
}

/// With its checksums a damaged column is refused by every reader.
fn checksums_stop_all_damage(looks: Looks) {
    let keep = tempfile::tempdir().expect("a folder");
    let dir = keep.path().join("t");
    let path = folder(&dir, looks);
    let whole = fs::read(&path).expect("a file of events");
    let file = mutation::Subject::new(&whole, CHECKSUMS);
    let mut mutator = Mutator::new(2);
    for input in 0..50 {
        fs::write(&path, mutator.flipped(&whole, &file)).expect("a file of events");
        let error = read_all(&dir).expect_err("a damaged column");
        assert!(names(&error, &path), "{looks:?}: input {input}: {error}");
        let mut source = Folder::open(&dir).expect("a folder");
        let (mut tables, mut batch) = (Tables::default(), Batch::default());
        let error = loop {
            match source.next_batch(&mut tables, &mut batch) {
                Ok(true) => {}
                Ok(false) => panic!("{looks:?}: input {input} was read"),
                Err(error) => break error,
            }
        };
        assert!(names(&error, &path), "{looks:?}: input {input}: {error}");
    }
}
