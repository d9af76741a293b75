//! Traces of every kind come as the same rows, whatever the number of threads, the memory, and the wrapping.

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use feedline_analyze::Row;
use feedline_analyze::load::{LoadError, Options, Tally, Trace, Unwatched};
use feedline_analyze::row::{NONE, RowKind};
use feedline_trace::{Batch, Event, FolderWriter, Kind, Process, Sink as _, Tables};
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

/// A tally of what is the same in any order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums(u64, u64);

impl Tally for Sums {
    fn add(&mut self, rows: &[Row]) {
        for row in rows {
            self.0 += 1;
            self.1 = self.1.wrapping_add(row.bytes ^ row.start_ns.cast_unsigned());
        }
    }

    fn merge(&mut self, other: Self) {
        self.0 += other.0;
        self.1 = self.1.wrapping_add(other.1);
    }
}

fn options(threads: usize, memory_bytes: u64) -> Options {
    let threads = NonZeroUsize::new(threads).unwrap();
    Options { threads, memory_bytes, ..Options::default() }
}

fn open(path: &Path, options: &Options) -> Trace {
    Trace::open(&[path.to_owned()], options, &Unwatched).unwrap()
}

fn rows(trace: &Trace) -> (Vec<Row>, Sums) {
    let mut rows = Vec::new();
    let sums = trace.stream(&Unwatched, &|_| true, &Sums::default, &mut |some| {
        rows.extend_from_slice(some);
    });
    let sums = sums.unwrap();
    let mut again = Sums::default();
    again.add(&rows);
    assert_eq!(sums, again);
    assert!(rows.is_sorted_by(|a, b| a.order(b).is_le()));
    (rows, sums)
}

fn count(trace: &Trace, code: &str) -> u64 {
    trace.problems.iter().filter(|problem| problem.code == code).map(|problem| problem.count).sum()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

const HOST: &str = r#""hhash":"6882804a826580cd""#;

/// Metadata at the beginning of a file of the current dialect.
fn names(pid: u32, unit: &str) -> String {
    format!(
        r#"{{"name":"HH","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ph":4,"args":{{{HOST},"name":"vm","value":"6882804a826580cd"}}}}
{{"name":"CM","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ph":4,"args":{{{HOST},"name":"time_metric","value":"{unit}"}}}}
"#
    )
}

fn border(pid: u32, name: &str, ts: u64) -> String {
    format!(
        r#"{{"id":1,"name":"{name}","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ts":{ts},"dur":0,"ph":1,"args":{{{HOST},"ppid":5}}}}
"#
    )
}

fn read_line(pid: u32, tid: u32, ts: u64, dur: u64, file: u64, offset: u64) -> String {
    format!(
        r#"{{"id":8,"name":"pread64","cat":"POSIX","type":3,"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"ph":1,"args":{{{HOST},"fhash":"{file:016x}","count":4096,"offset":{offset},"ret":4096}}}}
"#
    )
}

/// A file of many events, whose paths stand behind the events that use them.
fn many(pid: u32, events: u32, seed: u64) -> String {
    let mut random = StdRng::seed_from_u64(seed);
    let mut text = names(pid, "US") + &border(pid, "start", 1_800_000_000_000_000);
    for id in 0..events {
        let tid = pid + random.random_range(0..3);
        // Few moments, so that many events begin and end at once.
        let ts = 1_800_000_000_000_000 + u64::from(id / 8) + random.random_range(0..50);
        let (dur, file) = (random.random_range(0..4), random.random_range(0..40));
        if id % 9 == 0 {
            let step = id % 5;
            text += &format!(
                r#"{{"id":8,"name":"Reader.item","cat":"data_loader","type":6,"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"ph":1,"args":{{{HOST},"epoch":1,"step":{step},"image_size":77.0}}}}
"#
            );
        } else {
            text += &read_line(pid, tid, ts, dur, file, u64::from(id % 7) * 4096);
        }
    }
    for file in 0..40 {
        text += &format!(
            r#"{{"name":"FH","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ph":4,"args":{{{HOST},"name":"/data/{file:02}.npz","value":"{file:016x}"}}}}
"#
        );
    }
    text + &border(pid, "end", 1_800_000_009_000_000)
}

/// A file of gzip members, each of so many bytes of text, wherever lines end.
fn members(text: &[u8], size: usize) -> Vec<u8> {
    text.chunks(size).flat_map(gzip).collect()
}

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
            let calls: Vec<&Row> = all.iter().filter(|row| row.kind == RowKind::Call).collect();
            let expected = Row {
                start_ns: 1_700_000_000_000_001_000,
                end_ns: 1_700_000_000_000_010_000,
                bytes: 4095,
                offset: 512,
                lane: calls[0].lane,
                what: calls[0].what,
                file: calls[0].file,
                epoch: NONE,
                step: NONE,
                count: 1,
                errno: 0,
                kind: RowKind::Call,
            };
            assert_eq!(calls, [&expected], "{dialect}");
            let lane = &trace.lanes[expected.lane as usize];
            assert_eq!(trace.tables.file(expected.file), "/data/s0.npz", "{dialect}");
            assert_eq!(trace.whats[expected.what as usize].name, "pread64");
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
                .filter(|row| row.kind == RowKind::Call)
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
            assert_eq!(trace.whats, first.whats);
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
    let summary = all.iter().find(|row| row.kind == RowKind::Summary).unwrap();
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
    assert_eq!(trace.problems[0].places, ["c begins 31 s after the first"]);
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
                kind: if is_span { Kind::Span } else { Kind::Call },
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
    let is_span = event.kind == Kind::Span;
    Row {
        start_ns: event.start_ns,
        end_ns: event.start_ns + event.duration_ns.cast_signed(),
        bytes: if is_span { event.size } else { event.result }.unwrap().cast_unsigned(),
        offset: -1,
        lane: event.thread - 1,
        what: u32::from(!is_span),
        file: event.file.unwrap_or(NONE),
        epoch: if is_span { 3 } else { NONE },
        step: NONE,
        count: 1,
        errno: event.errno,
        kind: event.kind.into(),
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
    oracle.sort_by_key(|row| (row.start_ns, -row.end_ns, row.lane, row.what));
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
    let sums = trace.stream(&Unwatched, &|lane| lane == 2, &Sums::default, &mut take).unwrap();
    assert_eq!(sums.0, 131_072);
    oracle.retain(|row| row.lane == 2);
    assert!(of_two == oracle);
}

#[test]
fn several_trace_folders_are_one_trace() {
    let folder = TempDir::new().unwrap();
    own_folder(&folder.path().join("runs/a"), 1, 100);
    own_folder(&folder.path().join("runs/b"), 2, 100);
    let below = open(&folder.path().join("runs"), &options(1, 1 << 26));
    let paths = ["runs/b", "runs/a"].map(|name| folder.path().join(name));
    let named = Trace::open(&paths, &options(2, 1 << 26), &Unwatched).unwrap();
    assert_eq!(below.events, 300);
    assert_eq!(below.tables.processes.len(), 2);
    assert_eq!(rows(&below), rows(&named));
}

/// An archive as tar writes them.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        if name.len() > 100 {
            header(&mut out, "././@LongLink", name.len() + 1, b'L');
            out.extend(name.as_bytes());
            out.push(0);
            out.resize(out.len().next_multiple_of(512), 0);
        }
        header(&mut out, &name[..name.len().min(100)], bytes.len(), b'0');
        out.extend(*bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn header(out: &mut Vec<u8>, name: &str, size: usize, kind: u8) {
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    out.extend(block);
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
            let options = Options { cache: Some(scratch.clone()), ..options(threads, 1 << 26) };
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

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

#[test]
fn the_cache_gives_the_same_rows_and_problems() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw.gz");
    let text = many(100, 20_000, 1) + "broken\n";
    fs::write(&path, members(text.as_bytes(), 300_000)).unwrap();
    let cache = folder.path().join("cache");
    let options = Options { cache: Some(cache.clone()), ..options(2, 1 << 26) };
    let first = open(&path, &options);
    let expected = rows(&first);
    let kept = entries(&cache);
    assert_eq!((kept.len(), count(&first, "bad-lines")), (1, 1));
    let check = || {
        let trace = open(&path, &options);
        assert!(rows(&trace) == expected);
        assert_eq!((trace.events, &trace.lanes), (first.events, &first.lanes));
        assert_eq!((&trace.whats, trace.source), (&first.whats, first.source));
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
        .filter(|row| trace.whats[row.what as usize].category == "data")
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
        Trace::open(&paths, &options(1, 1 << 20), &Unwatched).unwrap_err()
    };
    assert!(matches!(error(&["t.pfw", "t.json"]), LoadError::Mixed { .. }));
    assert!(matches!(error(&["*.none"]), LoadError::NoMatch { .. }));
    assert!(matches!(error(&["t.json"]), LoadError::Empty { .. }));
    for (name, text) in [
        ("t.txt", "is no trace that is known: it begins with \"hello\""),
        ("missing", "cannot read"),
        ("empty", "no trace in"),
        ("bad.tar", "is no whole archive"),
        ("none.tar", "holds no trace that is known"),
    ] {
        let error = error(&[name]).to_string();
        assert!(error.contains(text) && error.contains(at(name).to_str().unwrap()), "{error}");
    }
}
