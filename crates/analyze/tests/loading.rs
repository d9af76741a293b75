//! Traces of every kind come as the same rows, whatever the number of threads, the memory, and the wrapping.

mod files;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use feedline_analyze::Row;
use feedline_analyze::load::{AnalyzeError, LoadOptions, NoProgress, Trace};
use feedline_analyze::row::NONE;
use feedline_trace::{Batch, Event, EventKind, EventSink as _, FolderWriter, Process, Tables};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use files::{
    HOST, Sums, archive, border, count, entries, gzip, many, members, names, open, options,
    read_line, rows,
};

#[test]
fn every_dialect_gives_the_same_row() {
    let a = r#"[
{"id":"3","name":"pread64","cat":"POSIX","pid":"51","tid":"102","ts":"1700000000000001","dur":"9","ph":"X","args":{"hostname":"nodeA","fname":"/data/s0.npz","count":"4096","offset":"512","ret":"4095"}}
"#;
    let b = r#"  {"id":1,"name":"FH","cat":"dftracer","pid":51,"tid":102,"ph":"M","args":{"hhash":9,"name":"/data/s0.npz","value":17}}
{"id":1,"name":"HH","cat":"dftracer","pid":51,"tid":102,"ph":"M","args":{"hhash":9,"name":"nodeA","value":9}}
{"id":3,"name":"pread64","cat":"POSIX","pid":51,"tid":102,"ts":1700000000000001,"dur":9,"ph":"X","args":{"hhash":9,"fhash":17,"count":4096,"offset":512,"ret":4095,"level":1}}
]"#;
    let c = r#"[
{"id":1,"name":"HH","cat":"dftracer","pid":51,"tid":102,"ph":"M","args":{"hhash":"0a1b2c3d4e5f6071","name":"nodeA","value":"0a1b2c3d4e5f6071"}}
{"id":3,"name":"pread64","cat":"POSIX","pid":51,"tid":102,"ts":1700000000000001,"dur":9,"ph":"X","args":{"hhash":"0a1b2c3d4e5f6071","level":2,"p_idx":40,"fhash":"93aa5be1c07f2210","count":4096,"ret":4095,"offset":512}}
{"id":4,"name":"FH","cat":"dftracer","pid":51,"tid":102,"ph":"M","args":{"hhash":"0a1b2c3d4e5f6071","name":"/data/s0.npz","value":"93aa5be1c07f2210"}}
]"#;
    let d = c.replace(r#""level":2,"p_idx":40,"#, "").replace("\n]", "\n");
    let e = r#"{"name":"HH","cat":"dftracer","type":1,"pid":51,"tid":102,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","name":"nodeA","value":"0a1b2c3d4e5f6071"}}
{"id":3,"name":"pread64","cat":"POSIX","type":3,"pid":51,"tid":102,"ts":1700000000000001,"dur":9,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","fhash":"93aa5be1c07f2210","count":4096,"offset":512,"ret":4095}}
{"name":"FH","cat":"dftracer","type":1,"pid":51,"tid":102,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","name":"/data/s0.npz","value":"93aa5be1c07f2210"}}
"#;
    let f = e.to_owned()
        + r#"{"name":"EH","cat":"dftracer","type":1,"pid":51,"tid":102,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","id":"51f0aa07c2e9d3b4","type":"checkpoint","store":3}}
"#;
    for (dialect, text) in [("A", a), ("B", b), ("C", c), ("D", &d), ("E", e), ("F", &f)] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("t.pfw");
        fs::write(&path, text).unwrap();
        for threads in [1, 2] {
            let trace = open(&path, &options(threads, 1 << 20));
            let (all, _) = rows(&trace);
            let calls: Vec<&Row> = all.iter().filter(|row| row.kind == EventKind::Call).collect();
            let expected = Row {
                start_ns: 1_700_000_000_000_001_000,
                end_ns: 1_700_000_000_000_010_000,
                bytes: 4095,
                offset: 512,
                lane: calls[0].lane,
                event_type: calls[0].event_type,
                file: calls[0].file,
                epoch: NONE,
                step: NONE,
                count: 1,
                errno: 0,
                kind: EventKind::Call,
            };
            assert_eq!(calls, [&expected], "{dialect}");
            let lane = &trace.lanes[expected.lane as usize];
            assert_eq!(trace.tables.file(expected.file), "/data/s0.npz", "{dialect}");
            assert_eq!(trace.event_types[expected.event_type as usize].name, "pread64");
            let process = &trace.tables.processes[lane.process as usize];
            let place = (process.host.as_str(), process.pid, lane.thread);
            assert_eq!(place, ("nodeA", 51, 102), "{dialect}");
            assert_eq!((trace.events, trace.source), (1, "dftracer"), "{dialect}");
            assert_eq!((trace.start_ns, trace.end_ns), (expected.start_ns, expected.end_ns));
            assert_eq!(trace.problems, [], "{dialect}");
        }
    }
}

#[test]
fn units_are_those_that_the_file_names_even_late() {
    for (unit, ns) in [("NS", 1), ("US", 1_000), ("MS", 1_000_000), ("SEC", 1_000_000_000)] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("t.pfw");
        let ts = 1_800_000_000_000_000_000 / ns + 3;
        let line = read_line(7, 7, ts, 5, 1, 0);
        for text in [names(7, unit) + &line, line + &names(7, unit)] {
            fs::write(&path, text).unwrap();
            let trace = open(&path, &options(2, 1 << 20));
            let (all, _) = rows(&trace);
            let found: Vec<(i64, i64)> = all
                .iter()
                .filter(|row| row.kind == EventKind::Call)
                .map(|row| (row.start_ns, row.end_ns))
                .collect();
            let (ts, ns) = (ts.cast_signed(), ns.cast_signed());
            assert_eq!(found, [(ts * ns, (ts + 5) * ns)], "{unit}");
            assert_eq!(trace.tables.processes[0].host, "vm");
        }
    }
}

#[test]
fn threads_memory_and_wrapping_do_not_matter() {
    let folder = TempDir::new().unwrap();
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    let texts = [many(100, 30_000, 1), many(200, 20_000, 2)];
    for (name, text) in ["a.pfw", "b.pfw"].iter().zip(&texts) {
        fs::write(plain.join(name), text).unwrap();
    }
    let first = open(&plain, &options(1, 64 << 20));
    let (expected, sums) = rows(&first);
    // Two events a file that say when it begins and ends.
    assert_eq!((first.events, expected.len()), (50_004, 50_004));
    assert_eq!(first.problems, []);
    for size in [usize::MAX, 1 << 20, 100_000, 9_973] {
        let packed = folder.path().join(format!("packed-{size}"));
        fs::create_dir(&packed).unwrap();
        for (name, text) in ["a.pfw.gz", "b.pfw.gz"].iter().zip(&texts) {
            fs::write(packed.join(name), members(text.as_bytes(), size)).unwrap();
        }
        for (threads, memory) in [(1, 1 << 28), (2, 1 << 28), (4, 1 << 19), (7, 1 << 17)] {
            let trace = open(&packed, &options(threads, memory));
            let found = rows(&trace);
            assert!(found.0 == expected && found.1 == sums, "{size} {threads} {memory}");
            assert_eq!(trace.lanes, first.lanes);
            assert_eq!(trace.event_types, first.event_types);
            assert_eq!(trace.tables.files(), first.tables.files());
            assert_eq!(trace.tables.processes, first.tables.processes);
            assert_eq!(trace.problems, []);
            assert!(trace.peak_bytes() <= memory, "{} of {memory}", trace.peak_bytes());
        }
    }
    assert_eq!(first.tables.files().len(), 40);
    assert!(first.tables.files().iter().all(|path| path.starts_with("/data/")));
}

#[test]
fn bytes_that_look_like_a_member_are_none() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw.gz");
    let text = many(100, 3_000, 1);
    let (head, rest) = text.as_bytes().split_at(100_000);
    // Stored blocks hold their bytes as they are: the beginning of a member among them.
    let mut stored = GzEncoder::new(Vec::new(), Compression::none());
    stored.write_all(head).unwrap();
    stored.write_all(b"\n{\"name\":\"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\"}\n").unwrap();
    let mut packed = stored.finish().unwrap();
    packed.extend(gzip(rest));
    fs::write(&path, packed).unwrap();
    let single = open(&path, &options(1, 1 << 26));
    let many = open(&path, &options(4, 1 << 26));
    assert_eq!(rows(&single), rows(&many));
    assert_eq!(single.problems, many.problems);
    assert_eq!(count(&many, "truncated-file"), 0);
}

#[test]
fn what_is_cut_off_is_read_up_to_there() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw.gz");
    let text = many(100, 6_000, 1);
    let packed = members(text.as_bytes(), 200_000);
    fs::write(&path, &packed).unwrap();
    let whole = rows(&open(&path, &options(1, 1 << 26)));
    for cut in [packed.len() * 3 / 4, packed.len() * 2 / 3, packed.len() / 2] {
        fs::write(&path, &packed[..cut]).unwrap();
        let single = open(&path, &options(1, 1 << 26));
        let found = rows(&single);
        assert!((1_000..whole.0.len()).contains(&found.0.len()));
        assert_eq!(count(&single, "truncated-file"), 1, "{cut}");
        assert_eq!(count(&single, "no-end"), 1, "{cut}");
        for threads in [2, 7] {
            let other = open(&path, &options(threads, 1 << 26));
            assert_eq!(rows(&other), found, "{cut}");
            assert_eq!(other.problems, single.problems, "{cut}");
        }
    }
}

#[test]
fn a_damaged_member_is_left_and_the_next_one_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw.gz");
    let text = many(100, 6_000, 1);
    let mut packed = gzip(&text.as_bytes()[..300_000]);
    let first = packed.len();
    packed.extend(gzip(&text.as_bytes()[300_000..]));
    for byte in &mut packed[first / 2..first / 2 + 40] {
        *byte = !*byte;
    }
    fs::write(&path, &packed).unwrap();
    let single = open(&path, &options(1, 1 << 26));
    let many = open(&path, &options(3, 1 << 26));
    assert_eq!(rows(&single), rows(&many));
    assert_eq!(count(&single, "truncated-file"), 1);
    assert_eq!(count(&many, "truncated-file"), 1);
    assert_eq!(count(&single, "bad-lines"), count(&many, "bad-lines"));
    assert!(rows(&single).0.len() > 3_000);
}

#[test]
fn what_is_wrong_is_counted_and_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw");
    let call = |ts: u64| read_line(7, 7, ts, 5, 1, 0);
    let mut text = names(7, "US") + &border(7, "start", 1_800_000_000_000_000);
    text += &call(1_800_000_000_000_100);
    text += "{\"name\":\"bad\n";
    text += &call(0);
    text += &call(1_800_000_000_000_200).replace("\"dur\":5", "\"dur\":-5");
    text += &call(1_800_000_000_000_300).replace("\"dur\":5", "\"dur\":99000000000000");
    text += &call(1_800_000_000_000_400).replace("\"ph\":1", "\"ph\":8");
    text += &format!(
        r#"{{"name":"read","cat":"POSIX","type":3,"ts":1800000000000500,"ph":3,"pid":7,"tid":7,"args":{{{HOST},"dft_cnt":812,"dur_sum":9021,"dur_min":2,"dur_max":71,"ret_sum":100}}}}
"#
    );
    fs::write(&path, text).unwrap();
    let trace = open(&path, &options(2, 1 << 20));
    let found: Vec<(&str, u64)> =
        trace.problems.iter().map(|problem| (problem.code.as_str(), problem.count)).collect();
    let expected = [
        ("bad-lines", 1),
        ("bad-durations", 1),
        ("no-end", 1),
        ("zero-times", 1),
        ("bad-durations", 1),
        ("summaries", 812),
        ("unknown-records", 1),
        ("unnamed-files", 3),
    ];
    assert_eq!(found, expected);
    let line = format!("{}:5 is not JSON", path.display());
    assert_eq!(trace.problems[0].places, [line.replace("is not JSON", "ends too early")]);
    assert_eq!(trace.problems[2].places, ["vm 7"]);
    // A start, three calls, of which one has no time and one no end, and a summary.
    assert_eq!(trace.events, 5);
    let (all, _) = rows(&trace);
    let summary = all.iter().find(|row| row.kind == EventKind::Summary).unwrap();
    assert_eq!((summary.count, summary.offset, summary.bytes), (812, 9_021_000, 100));
    let extent = (1_800_000_000_000_100_000, 1_800_000_000_009_521_000);
    assert_eq!((trace.start_ns, trace.end_ns), extent);
}

#[test]
fn machines_that_begin_late_have_wrong_clocks() {
    let folder = TempDir::new().unwrap();
    for (host, ts) in [("a", 1_800_000_000), ("b", 1_800_000_029), ("c", 1_800_000_031)] {
        let line = format!(
            "{{\"id\":\"1\",\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":\"7\",\"tid\":\"7\",\"ts\":\"{ts}000000\",\"dur\":\"9\",\"ph\":\"X\",\"args\":{{\"hostname\":\"{host}\",\"ret\":\"1\"}}}}\n"
        );
        fs::write(folder.path().join(format!("{host}.pfw")), line).unwrap();
    }
    let trace = open(folder.path(), &options(2, 1 << 20));
    assert_eq!(trace.problems.len(), 1);
    assert_eq!((trace.problems[0].code.as_str(), trace.problems[0].count), ("clock-skew", 1));
    assert_eq!(trace.problems[0].places, ["c starts 31 s after the first"]);
    // The same number on three machines is three processes.
    assert_eq!((trace.tables.processes.len(), trace.lanes.len()), (3, 3));
}

/// Writes a trace folder whose row groups overlap: threads write one after the other, at the same times.
fn own_folder(dir: &Path, threads: u32, events: u32) -> Vec<Event> {
    let mut tables = Tables::default();
    let process = tables.add_process(Process { pid: 9, is_traced: true, ..Process::default() });
    let (posix, read) = (tables.name_row("POSIX"), tables.name_row("read"));
    let (app, item) = (tables.name_row("data"), tables.name_row("item"));
    let file = tables.file_row("/data/x");
    let mut all = Vec::new();
    for thread in 1..=threads {
        for number in 0..events {
            let is_span = number % 10 == 0;
            all.push(Event {
                process,
                thread,
                start_ns: 1_000_000 + i64::from(number) * 7 - i64::from(number % 3) * 20,
                duration_ns: u64::from(number % 5),
                kind: if is_span { EventKind::Span } else { EventKind::Call },
                category: if is_span { app } else { posix },
                name: if is_span { item } else { read },
                file: (!is_span).then_some(file),
                size: Some(i64::from(number % 11)),
                result: (!is_span).then_some(i64::from(number % 13)),
                epoch: is_span.then_some(3),
                count: 1,
                errno: u16::from(number % 50 == 1),
                ..Event::default()
            });
        }
    }
    let mut writer = FolderWriter::create(dir).unwrap();
    writer.write(&tables, &Batch { events: all.clone(), texts: Vec::new() }).unwrap();
    writer.finish(&tables).unwrap();
    all
}

/// What the loader must make of an event of such a folder.
fn expected_row(event: &Event) -> Row {
    let is_span = event.kind == EventKind::Span;
    Row {
        start_ns: event.start_ns,
        end_ns: event.start_ns + event.duration_ns.cast_signed(),
        bytes: if is_span { event.size } else { event.result }.unwrap().cast_unsigned(),
        offset: -1,
        lane: event.thread - 1,
        event_type: u32::from(!is_span),
        file: event.file.unwrap_or(NONE),
        epoch: if is_span { 3 } else { NONE },
        step: NONE,
        count: 1,
        errno: event.errno,
        kind: event.kind,
    }
}

#[test]
fn row_groups_that_overlap_are_put_in_order_within_the_memory() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("t");
    let events = own_folder(&dir, 6, 131_072);
    let trace = open(&dir, &options(1, 1 << 30));
    let (expected, sums) = rows(&trace);
    let mut oracle: Vec<Row> = events.iter().map(expected_row).collect();
    // The span is the first kind of event, and above the call.
    oracle.sort_by_key(|row| (row.start_ns, -row.end_ns, row.lane, row.event_type));
    assert!(expected == oracle);
    assert_eq!((trace.source, trace.events), ("feedline", events.len() as u64));
    let end_ns = oracle.iter().map(|row| row.end_ns).max().unwrap();
    assert_eq!((trace.start_ns, trace.end_ns), (oracle[0].start_ns, end_ns));
    assert_eq!(trace.lanes[2].thread, 3);
    assert_eq!(trace.lanes[2].events.iter().sum::<u64>(), 131_072);
    for (threads, memory) in [(1, 96 << 20), (2, 96 << 20), (4, 160 << 20), (1, 48 << 20)] {
        let trace = open(&dir, &options(threads, memory));
        let found = rows(&trace);
        assert!(found.0 == expected && found.1 == sums, "{threads} {memory}");
        assert!(trace.peak_bytes() <= memory, "{} of {memory}", trace.peak_bytes());
    }
    let mut of_two = Vec::new();
    let mut take = |some: &[Row]| of_two.extend_from_slice(some);
    let sums = trace.stream(&NoProgress, &|lane| lane == 2, &Sums::default, &mut take).unwrap();
    assert_eq!(sums.0, 131_072);
    oracle.retain(|row| row.lane == 2);
    assert!(of_two == oracle);
}

/// Changes bytes of every file of events behind a text that stands in it.
fn spoil(dir: &Path, text: &[u8], change: impl Fn(&mut [u8])) {
    for path in entries(&dir.join("events")) {
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(text.len()).rposition(|some| some == text).unwrap() + text.len();
        change(&mut bytes[at..]);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_folder_without_its_survey_is_the_same_trace() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("trace");
    own_folder(&dir, 3, 60_000);
    let with = open(&dir, &options(2, 1 << 28));
    // The checksum is the first thing of the value, behind three bytes of its length at most.
    spoil(&dir, b"feedline.trace.survey", |rest| {
        let at = rest.windows(2).position(|two| two == b"[{").unwrap();
        rest[at - 1] = if rest[at - 1] == b'0' { b'1' } else { b'0' };
    });
    let without = open(&dir, &options(2, 1 << 28));
    assert!(rows(&with) == rows(&without));
    let lanes = |trace: &Trace| -> Vec<_> {
        trace.lanes.iter().map(|lane| (lane.process, lane.thread, lane.events)).collect()
    };
    assert_eq!(lanes(&with), lanes(&without));
    assert_eq!(with.lanes.len(), 3);
    assert_eq!(with.event_types, without.event_types);
    assert_eq!((with.start_ns, with.end_ns), (without.start_ns, without.end_ns));
    assert_eq!((with.events, without.events), (180_000, 180_000));
}

#[test]
fn row_groups_of_other_lanes_are_not_read() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("trace");
    // A row group a thread.
    own_folder(&dir, 2, 131_072);
    let [path] = entries(&dir.join("events")).try_into().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // The first bytes of the file are a column of the first thread.
    bytes[40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let trace = open(&dir, &options(1, 1 << 28));
    let stream = |wanted: u32| {
        let mut count = 0;
        let mut take = |some: &[Row]| count += some.len();
        trace.stream(&NoProgress, &|lane| lane == wanted, &|| (), &mut take).map(|()| count)
    };
    assert_eq!(stream(1).unwrap(), 131_072);
    let error = stream(0).unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn several_trace_folders_are_one_trace() {
    let folder = TempDir::new().unwrap();
    own_folder(&folder.path().join("runs/a"), 1, 100);
    own_folder(&folder.path().join("runs/b"), 2, 100);
    let below = open(&folder.path().join("runs"), &options(1, 1 << 26));
    let paths = ["runs/b", "runs/a"].map(|name| folder.path().join(name));
    let named = Trace::open(&paths, &options(2, 1 << 26), &NoProgress).unwrap();
    assert_eq!(below.events, 300);
    assert_eq!(below.tables.processes.len(), 2);
    assert_eq!(rows(&below), rows(&named));
}

#[test]
fn archives_and_patterns_hold_the_same_trace() {
    let folder = TempDir::new().unwrap();
    let texts = [many(100, 2_000, 1), many(200, 2_000, 2)];
    let packed = members(texts[1].as_bytes(), 50_000);
    fs::write(folder.path().join("a.pfw"), &texts[0]).unwrap();
    fs::write(folder.path().join("b.pfw.gz"), &packed).unwrap();
    let expected = rows(&open(folder.path(), &options(1, 1 << 26)));
    let pattern = open(&folder.path().join("*.pfw*"), &options(2, 1 << 26));
    assert_eq!(rows(&pattern), expected);
    let long = format!("{}/b.pfw.gz", "x".repeat(120));
    let tar = archive(&[("a.pfw", texts[0].as_bytes()), ("notes", b"hello"), (&long, &packed)]);
    let scratch = folder.path().join("scratch");
    for (name, bytes) in [("t.tar", tar.clone()), ("t.tar.gz", gzip(&tar)), ("t.tgz", gzip(&tar))] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        for threads in [1, 3] {
            let options = LoadOptions { cache: Some(scratch.clone()), ..options(threads, 1 << 26) };
            let trace = open(&path, &options);
            assert!(rows(&trace) == expected, "{name} {threads}");
        }
    }
    let left = fs::read_dir(&scratch).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_trace_folder_in_an_archive_is_read() {
    let folder = TempDir::new().unwrap();
    let own = folder.path().join("own");
    own_folder(&own, 2, 500);
    let expected = rows(&open(&own, &options(1, 1 << 26)));
    let mut files = Vec::new();
    collect(&own, &own, &mut files);
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    for (name, bytes) in [("t.tar", archive(&files)), ("t.tar.gz", gzip(&archive(&files)))] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert!(rows(&open(&path, &options(2, 1 << 26))) == expected, "{name}");
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = format!("run/{}", path.strip_prefix(root).unwrap().display());
            files.push((name, fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn the_cache_gives_the_same_rows_and_problems() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw.gz");
    let text = many(100, 20_000, 1) + "broken\n";
    fs::write(&path, members(text.as_bytes(), 300_000)).unwrap();
    let cache = folder.path().join("cache");
    let options = LoadOptions { cache: Some(cache.clone()), ..options(2, 1 << 26) };
    let first = open(&path, &options);
    let expected = rows(&first);
    let kept = entries(&cache);
    assert_eq!((kept.len(), count(&first, "bad-lines")), (1, 1));
    let check = || {
        let trace = open(&path, &options);
        assert!(rows(&trace) == expected);
        assert_eq!((trace.events, &trace.lanes), (first.events, &first.lanes));
        assert_eq!((&trace.event_types, trace.source), (&first.event_types, first.source));
        assert_eq!((trace.start_ns, trace.end_ns), (first.start_ns, first.end_ns));
        assert_eq!(trace.problems, first.problems);
        assert_eq!(trace.tables.files(), first.tables.files());
        assert_eq!(trace.tables.processes, first.tables.processes);
    };
    check();
    // A damaged entry is made anew.
    let events = entries(&kept[0].join("events")).remove(0);
    let mut bytes = fs::read(&events).unwrap();
    let place = bytes.len() / 3;
    bytes[place] ^= 0x55;
    fs::write(&events, &bytes).unwrap();
    check();
    assert!(!events.exists());
    fs::write(kept[0].join("analysis.json"), "{").unwrap();
    check();
    check();
    assert_eq!(entries(&cache), kept);
    // Other contents are another entry.
    fs::write(&path, gzip(many(100, 20_000, 3).as_bytes())).unwrap();
    let other = open(&path, &options);
    assert!(rows(&other) != expected);
    assert_eq!(entries(&cache).len(), 2);
}

#[test]
fn chrome_is_read_plain_and_packed() {
    let folder = TempDir::new().unwrap();
    let text = r#"{"traceEvents":[
{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"loader"}},
{"ph":"X","cat":"data","name":"item","pid":1,"tid":2,"ts":0,"dur":10.5,"args":{"size":7}},
{"ph":"B","cat":"data","name":"batch","pid":1,"tid":2,"ts":20},
{"ph":"E","pid":1,"tid":2,"ts":30},
{"ph":"C","cat":"sys","name":"cpu","pid":1,"tid":2,"ts":25,"args":{"value":2.5}}
]}"#;
    fs::write(folder.path().join("t.json"), text).unwrap();
    fs::write(folder.path().join("t.json.gz"), gzip(text.as_bytes())).unwrap();
    let trace = open(&folder.path().join("t.json"), &options(1, 1 << 20));
    assert_eq!((trace.source, trace.events), ("chrome", 3));
    assert_eq!((trace.start_ns, trace.end_ns), (0, 30_000));
    assert_eq!(trace.lanes[0].name.as_deref(), Some("loader"));
    let (all, _) = rows(&trace);
    let spans: Vec<(i64, i64, u64)> = all
        .iter()
        .filter(|row| trace.event_types[row.event_type as usize].category == "data")
        .map(|row| (row.start_ns, row.end_ns, row.bytes))
        .collect();
    assert_eq!(spans, [(0, 10_500, 7), (20_000, 30_000, 0)]);
    let packed = open(&folder.path().join("t.json.gz"), &options(2, 1 << 20));
    assert_eq!(rows(&packed).0, all);
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("t.pfw"), many(1, 10, 1)).unwrap();
    fs::write(at("t.json"), r#"{"traceEvents":[]}"#).unwrap();
    fs::write(at("t.txt"), "hello").unwrap();
    fs::write(at("bad.tar"), [7; 2000]).unwrap();
    fs::write(at("none.tar"), archive(&[("a.txt", b"x")])).unwrap();
    fs::create_dir(at("empty")).unwrap();
    let error = |paths: &[&str]| {
        let paths: Vec<PathBuf> = paths.iter().map(|name| at(name)).collect();
        Trace::open(&paths, &options(1, 1 << 20), &NoProgress).unwrap_err()
    };
    assert!(matches!(error(&["t.pfw", "t.json"]), AnalyzeError::Mixed { .. }));
    assert!(matches!(error(&["*.none"]), AnalyzeError::NoMatch { .. }));
    assert!(matches!(error(&["t.json"]), AnalyzeError::Empty { .. }));
    for (name, text) in [
        ("t.txt", "(starts with \"hello\")"),
        ("missing", "cannot read"),
        ("empty", "no trace in"),
        ("bad.tar", "not a complete archive"),
        ("none.tar", "the archive has no trace in a known format"),
    ] {
        let error = error(&[name]).to_string();
        assert!(error.contains(text) && error.contains(at(name).to_str().unwrap()), "{error}");
    }
}
