//! Trace folders: what goes in comes out, whoever wrote it, and damage is named.

use std::fs;
use std::path::{Path, PathBuf};

use feedline_trace::{
    Batch, End, Event, EventKind, EventSink as _, EventSource as _, Folder, FolderWriter, Process,
    Recovered, Tables, TraceError, recover,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// An event with texts in the place of rows, which differ from table to table.
#[derive(Clone, Debug, PartialEq)]
struct Spelled {
    event: Event,
    process: String,
    names: [String; 2],
    files: [Option<String>; 2],
    extra: Option<String>,
}

fn spell(tables: &Tables, batch: &Batch) -> Vec<Spelled> {
    let spelled = batch.events.iter().map(|event| {
        let file = |row: Option<u32>| row.map(|row| tables.file(row).to_owned());
        Spelled {
            process: tables.processes[event.process as usize].program.clone(),
            names: [tables.name(event.category).to_owned(), tables.name(event.name).to_owned()],
            files: [file(event.file), file(event.other_file)],
            extra: event.extra.map(|row| batch.texts[row as usize].clone()),
            event: Event {
                process: 0,
                category: 0,
                name: 0,
                file: None,
                other_file: None,
                extra: None,
                ..*event
            },
        }
    });
    spelled.collect()
}

fn read(mut folder: Folder) -> (Tables, Vec<Spelled>) {
    let (mut tables, mut batch, mut all) = (Tables::default(), Batch::default(), Vec::new());
    while folder.next_batch(&mut tables, &mut batch).unwrap() {
        assert!(batch.events.len() <= 16 * 1024, "batches are bounded");
        all.extend(spell(&tables, &batch));
    }
    (tables, all)
}

fn read_all(dir: &Path) -> (Tables, Vec<Spelled>) {
    read(Folder::open(dir).unwrap())
}

/// Any number: small ones, steps, and the largest.
fn number(random: &mut StdRng) -> i64 {
    match random.random_range(0..6) {
        0 => 0,
        1 => random.random_range(-4..4),
        2 => random.random_range(0..100_000) * 4096,
        3 => i64::MAX,
        4 => i64::MIN,
        _ => random.random(),
    }
}

fn maybe<T>(random: &mut StdRng, chance: f64, value: impl Fn(&mut StdRng) -> T) -> Option<T> {
    random.random_bool(chance).then(|| value(random))
}

fn random_event(random: &mut StdRng, tables: &mut Tables, batch: &mut Batch) {
    const CHANCES: [f64; 3] = [0.0, 0.5, 1.0];
    let chance = CHANCES[random.random_range(0..3)];
    let file = |random: &mut StdRng, tables: &mut Tables| {
        tables.file_row(&format!("/data/é/{}", random.random_range(0..5000)))
    };
    let names = ["read", "open64", "fread", "my step", "", "naïve \"name\""];
    let unsigned = |random: &mut StdRng| random.random::<u64>() >> random.random_range(1..64);
    let event = Event {
        process: random.random_range(0..3),
        thread: random.random(),
        start_ns: 1_700_000_000_000_000_000 + random.random_range(0..1_000_000_000_i64),
        duration_ns: unsigned(random),
        kind: EventKind::ALL[random.random_range(0..5)],
        category: tables.name_row(["POSIX", "STDIO", "data"][random.random_range(0..3)]),
        name: tables.name_row(names[random.random_range(0..names.len())]),
        file: random.random_bool(0.8).then(|| file(random, tables)),
        other_file: random.random_bool(chance * 0.1).then(|| file(random, tables)),
        offset: maybe(random, chance, number),
        size: maybe(random, chance, number),
        result: maybe(random, chance, number),
        errno: random.random_range(0..134),
        arg: maybe(random, chance, number),
        epoch: maybe(random, chance, |random| random.random_range(0..3)),
        step: maybe(random, chance, |random| random.random_range(0..300)),
        sample: maybe(random, chance, number),
        count: unsigned(random),
        shortest_ns: maybe(random, chance, unsigned),
        longest_ns: maybe(random, chance, unsigned),
        value: maybe(random, chance, |random| random.random::<f64>() * 1e9 - 5e8),
        extra: maybe(random, chance, |random| random.random_range(0..100_u32)).map(|text| {
            batch.texts.push(format!("{{\"ü\":{text}}}"));
            batch.texts.len() as u32 - 1
        }),
    };
    batch.events.push(event);
}

fn process(program: &str, pid: u32) -> Process {
    Process {
        host: "box".to_owned(),
        pid,
        parent_pid: Some(1),
        program: program.to_owned(),
        arguments: vec![program.to_owned(), "--say=\"hé\"".to_owned(), String::new()],
        folder: "/work".to_owned(),
        start_ns: 5,
        is_traced: true,
        ..Process::default()
    }
}

fn write_random(dir: &Path, seed: u64, batches: usize, events: usize) -> Vec<Spelled> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut tables = Tables::default();
    for pid in 0..3 {
        tables.add_process(process(&format!("/bin/{seed}-{pid}"), pid));
    }
    let mut writer = FolderWriter::create(dir).unwrap();
    let mut all = Vec::new();
    for _ in 0..batches {
        let mut batch = Batch::default();
        for _ in 0..events {
            random_event(&mut random, &mut tables, &mut batch);
        }
        writer.write(&tables, &batch).unwrap();
        all.extend(spell(&tables, &batch));
    }
    writer.finish(&tables).unwrap();
    assert_eq!(writer.written().events, all.len() as u64);
    all
}

fn parts(dir: &Path, table: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(dir.join(table)).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn every_column_comes_back_as_it_went() {
    for (seed, batches, events) in [(1, 1, 1), (2, 3, 40), (3, 27, 5000), (4, 1, 17)] {
        let dir = tempfile::tempdir().unwrap();
        let written = write_random(dir.path(), seed, batches, events);
        let (_, found) = read_all(dir.path());
        assert_eq!(found.len(), written.len(), "seed {seed}");
        for (index, (found, written)) in found.iter().zip(&written).enumerate() {
            assert_eq!(found, written, "seed {seed}, event {index}");
        }
    }
}

#[test]
fn processes_come_back_as_they_went() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::default();
    let all = [
        process("/bin/a", 7),
        Process {
            parent: Some(0),
            rank: Some(4),
            name: Some("loader".to_owned()),
            end_ns: Some(99),
            end: End::Exited(-3),
            dropped: 17,
            trouble: Some("no room for another segment".to_owned()),
            filtered: 3,
            skipped: u64::MAX >> 1,
            ..process("/bin/b", u32::MAX)
        },
        Process { end: End::Became, parent_pid: None, is_traced: false, ..process("", 0) },
        Process { end: End::Killed, arguments: Vec::new(), ..process("/c", 8) },
    ];
    for process in &all {
        tables.add_process(process.clone());
    }
    let mut writer = FolderWriter::create(dir.path()).unwrap();
    writer.finish(&tables).unwrap();
    let (mut found, mut batch) = (Tables::default(), Batch::default());
    assert!(!Folder::open(dir.path()).unwrap().next_batch(&mut found, &mut batch).unwrap());
    assert_eq!(found.processes, all);
    // Written anew when something changes, in the same place.
    tables.processes[0].end = End::Killed;
    writer.finish(&tables).unwrap();
    assert_eq!(read_all(dir.path()).0.processes, tables.processes);
    assert_eq!(parts(dir.path(), "processes").len(), 1);
}

#[test]
fn parts_of_several_writers_are_one_trace() {
    let dir = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    // Writers at the same time, and one later.
    let threads: Vec<_> = (10..14_u64)
        .map(|seed| {
            let dir = dir.path().to_owned();
            std::thread::spawn(move || write_random(&dir, seed, 2, 300))
        })
        .collect();
    for thread in threads {
        written.extend(thread.join().unwrap());
    }
    written.extend(write_random(dir.path(), 14, 1, 100));
    let (tables, mut found) = read_all(dir.path());
    assert_eq!(tables.processes.len(), 15);
    assert_eq!(parts(dir.path(), "writers").len(), 5);
    let order = |a: &Spelled, b: &Spelled| format!("{a:?}").cmp(&format!("{b:?}"));
    found.sort_by(order);
    written.sort_by(order);
    assert_eq!(found, written);
}

#[test]
fn files_rotate_at_a_mebi_of_events() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::default();
    tables.add_process(process("/bin/a", 1));
    let (category, name) = (tables.name_row("POSIX"), tables.name_row("read"));
    let mut writer = FolderWriter::create(dir.path()).unwrap();
    let mut batch = Batch::default();
    for start_ns in 0..(1 << 17) {
        batch.events.push(Event { start_ns, category, name, count: 1, ..Event::default() });
    }
    for _ in 0..9 {
        writer.write(&tables, &batch).unwrap();
    }
    assert_eq!(writer.written().events, 8 << 17);
    writer.finish(&tables).unwrap();
    let parts = parts(dir.path(), "events");
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|path| path.extension().is_some_and(|end| end == "parquet")));
    let (mut folder, mut batch) = (Folder::open(dir.path()).unwrap(), Batch::default());
    let mut count = 0;
    while folder.next_batch(&mut tables, &mut batch).unwrap() {
        count += batch.events.len();
    }
    assert_eq!(count, 9 << 17);
    // A column that is constant or in a row costs next to nothing.
    let bytes: u64 = parts.iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(bytes < (9 << 17) / 20, "{bytes} bytes");
}

#[test]
fn nothing_has_its_name_before_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Tables::default();
    tables.add_process(process("/bin/a", 1));
    let mut writer = FolderWriter::create(dir.path()).unwrap();
    let batch = Batch { events: vec![Event::default(); 200_000], texts: Vec::new() };
    writer.write(&tables, &batch).unwrap();
    let hidden = parts(dir.path(), "events");
    assert_eq!(hidden.len(), 1);
    let name = hidden[0].file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.starts_with('.') && name.ends_with(".partial"), "{name}");
    assert!(read_all(dir.path()).1.is_empty());
    drop(writer);
    assert!(read_all(dir.path()).1.is_empty());
}

#[test]
fn only_the_columns_that_were_asked_for_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let written = write_random(dir.path(), 5, 1, 100);
    let (_, found) = read(Folder::open(dir.path()).unwrap().only(&["start", "size", "name"]));
    for (found, written) in found.iter().zip(&written) {
        assert_eq!(found.event.start_ns, written.event.start_ns);
        assert_eq!(found.event.size, written.event.size);
        assert_eq!(found.names[1], written.names[1]);
        assert_eq!((found.event.offset, found.event.count), (None, 1));
    }
    assert_eq!(found.len(), 100);
}

fn error_of(dir: &Path) -> TraceError {
    let mut folder = match Folder::open(dir) {
        Ok(folder) => folder,
        Err(error) => return error,
    };
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    loop {
        match folder.next_batch(&mut tables, &mut batch) {
            Ok(true) => {}
            Ok(false) => panic!("nothing was found wrong"),
            Err(error) => return error,
        }
    }
}

#[test]
fn damage_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    write_random(dir.path(), 6, 1, 2000);
    for table in ["events", "files", "processes"] {
        let path = parts(dir.path(), table).remove(0);
        let whole = fs::read(&path).unwrap();
        let name = path.display().to_string();
        for length in [0, 4, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            let error = error_of(dir.path());
            assert!(matches!(error, TraceError::Damaged { .. }), "{error:?}");
            assert_eq!(error.to_string(), format!("{name}: damaged"));
        }
        fs::write(&path, &whole).unwrap();
    }
    // A file of another table, whole as it is.
    let events = parts(dir.path(), "events").remove(0);
    let whole = fs::read(&events).unwrap();
    fs::copy(parts(dir.path(), "files").remove(0), &events).unwrap();
    let expected = format!("{}: no column `process` of type int64", events.display());
    assert_eq!(error_of(dir.path()).to_string(), expected);
    fs::write(&events, whole).unwrap();
    // Events whose files are not there.
    fs::remove_file(parts(dir.path(), "files").remove(0)).unwrap();
    let expected = format!("{}: a file that is missing from its table", events.display());
    assert_eq!(error_of(dir.path()).to_string(), expected);
}

#[test]
fn damage_inside_a_file_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    write_random(dir.path(), 7, 1, 60);
    let path = parts(dir.path(), "events").remove(0);
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        fs::write(&path, damaged).unwrap();
        let Ok(mut folder) = Folder::open(dir.path()) else { continue };
        let (mut tables, mut batch) = (Tables::default(), Batch::default());
        loop {
            match folder.next_batch(&mut tables, &mut batch) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    refused += 1;
                    break;
                }
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn other_folders_and_later_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let name = dir.path().display().to_string();
    assert_eq!(error_of(dir.path()).to_string(), format!("{name}: not a Feedline trace"));
    fs::write(dir.path().join("trace.json"), "{}").unwrap();
    assert_eq!(error_of(dir.path()).to_string(), format!("{name}: not a Feedline trace"));
    let later = r#"{"format":"feedline-trace","version":2,"created_ns":0,"feedline":"9"}"#;
    fs::write(dir.path().join("trace.json"), later).unwrap();
    let words = "version 2 of the trace format; this Feedline reads up to 1";
    assert_eq!(error_of(dir.path()).to_string(), format!("{name}/trace.json: {words}"));
    let refused = FolderWriter::create(dir.path()).unwrap_err();
    assert!(matches!(refused, TraceError::Version { found: 2, .. }), "{refused:?}");
}

#[test]
fn nothing_is_recovered_where_nothing_was_left() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(recover(dir.path()).unwrap(), Recovered::default());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    write_random(dir.path(), 8, 1, 10);
    assert_eq!(recover(dir.path()).unwrap(), Recovered::default());
}
