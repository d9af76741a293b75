//! Random events, written and read again.

use feedline_recorder::{Class, OPS};
use feedline_trace::chrome::{ChromeSink, ChromeSource};
use feedline_trace::dftracer::{Dialect, TimeUnit, hash_of};
use feedline_trace::{End, Event, EventKind, EventSource as _, Process};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::bed::{Bed, Shown, Trace, drain, read};

const START_NS: i64 = 1_800_000_000_123_456_789;

fn processes() -> Vec<Process> {
    let process = |host: &str, pid: u32, rank: Option<u32>| Process {
        host: host.into(),
        pid,
        parent_pid: Some(1),
        rank,
        program: "/usr/bin/python3.11".into(),
        arguments: vec!["python3".into(), "/home/me/train \"x\".py".into(), "-v".into()],
        folder: "/work".into(),
        name: rank.is_none().then(|| "main \\ loop".into()),
        start_ns: START_NS - 1_000,
        end_ns: Some(START_NS + 900_000_000_000),
        end: End::Exited(3),
        is_traced: true,
        ..Process::default()
    };
    vec![
        process("nodeA", 7101, Some(0)),
        process("nodeB", 7101, Some(1)),
        process("nodeA", 7102, None),
    ]
}

/// Events of all kinds with any fields.
fn random(seed: u64, count: usize) -> Trace {
    let mut random = StdRng::seed_from_u64(seed);
    let mut trace = Trace::default();
    trace.tables.processes = processes();
    let paths = ["/data/a b.npz", "/data/\"quoted\"\\.npz", "/päth/日本\n", "pipe:[7]"];
    for _ in 0..count {
        let kind = EventKind::ALL[random.random_range(0..EventKind::ALL.len())];
        let calls: Vec<_> = OPS
            .iter()
            .map(|op| op.info())
            .filter(|facts| !matches!(facts.class, Class::Span | Class::Counter))
            .collect();
        let facts = calls[random.random_range(0..calls.len())];
        let (category, name) = match kind {
            EventKind::Call | EventKind::Summary if random.random_bool(0.9) => {
                (facts.category.name(), facts.name)
            }
            EventKind::Counter => {
                ("sys", ["cpu-3/user_pct", "queue", "cpu-3/value"][random.random_range(0..3)])
            }
            _ => {
                [("S3", "get"), ("POSIX", "own"), ("ai \"root\"", "épöch\\block"), ("data", "item")]
                    [random.random_range(0..4)]
            }
        };
        let mut some = |chance: f64, most: i64| {
            random.random_bool(chance).then(|| random.random_range(-1..most))
        };
        let is_counter = kind == EventKind::Counter;
        let is_summary = kind == EventKind::Summary;
        let field = if is_counter { 0.0 } else { 0.5 };
        let once = if is_summary { 0.0 } else { field };
        let mut event = Event {
            kind,
            offset: some(field, 1 << 60),
            size: some(field, 1 << 50),
            result: some(field, 1 << 50),
            arg: some(once, 4096),
            epoch: some(field, 5),
            step: some(field, 1_000),
            sample: some(field, 1 << 40),
            ..Event::default()
        };
        event.process = random.random_range(0..3);
        event.thread = 7101 + random.random_range(0..3);
        event.start_ns = START_NS + random.random_range(0..800_000_000_000);
        event.errno = if is_counter { 0 } else { random.random_range(0..3) };
        event.count = if is_summary { random.random_range(1..1 << 40) } else { 1 };
        if !is_counter && kind != EventKind::Instant {
            event.duration_ns = random.random_range(0..1 << 40);
        }
        if is_summary {
            event.shortest_ns = random.random_bool(0.5).then_some(5);
            event.longest_ns = random.random_bool(0.5).then_some(1 << 39);
        }
        if is_counter {
            event.value = Some(f64::from(random.random_range(-1_000_000..1_000_000)) / 64.0);
        } else if random.random_bool(0.3) {
            let path = |random: &mut StdRng| paths[random.random_range(0..paths.len())];
            event.file = Some(trace.tables.file_row(path(&mut random)));
            event.other_file =
                random.random_bool(0.3).then(|| trace.tables.file_row(path(&mut random)));
        }
        event.category = trace.tables.name_row(category);
        event.name = trace.tables.name_row(name);
        if random.random_bool(0.2) && !is_counter {
            trace.batch.texts.push(r#"{"note":"a \"b\"","nested":{"x":[1,2.5,null]}}"#.to_owned());
            event.extra = u32::try_from(trace.batch.texts.len() - 1).ok();
        }
        trace.batch.events.push(event);
    }
    trace
}

fn sorted(mut shown: Vec<Shown>) -> Vec<Shown> {
    shown.sort_by(|a, b| format!("{a:?}").cmp(&format!("{b:?}")));
    shown
}

#[test]
fn dftracers_files_hold_everything_to_the_nanosecond() {
    for (seed, dialect) in [(1, Dialect::Current), (2, Dialect::Legacy)] {
        for name in ["out/t.pfw.gz", "out/t.pfw"] {
            let trace = random(seed, 2_000);
            let bed = Bed::new();
            std::fs::create_dir(bed.path("out")).unwrap();
            trace.write_dftracer(&bed.path(name), dialect, TimeUnit::Nanoseconds);
            let again = read(&bed.path("out"));
            let (expected, found) = (sorted(trace.shown()), sorted(again.shown_of_program()));
            assert_eq!(expected.len(), found.len());
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!(expected, found);
            }
            assert_eq!(again.intake.bad_lines, 0);
            for process in &trace.tables.processes {
                let is_same =
                    |other: &&Process| (&other.host, other.pid) == (&process.host, process.pid);
                let other = again.tables.processes.iter().find(is_same).unwrap();
                // DFTracer has no place for how a process ended.
                assert_eq!(&Process { end: End::Exited(3), ..other.clone() }, process);
            }
        }
    }
}

#[test]
fn microseconds_keep_what_lies_within_something_within_it() {
    let mut trace = Trace::default();
    trace.tables.processes = processes();
    let name = trace.tables.name_row("x");
    let event = |start_ns, duration_ns| Event {
        start_ns,
        duration_ns,
        kind: EventKind::Span,
        name,
        category: name,
        count: 1,
        ..Event::default()
    };
    trace.batch.events = vec![event(1_999, 2_002), event(2_500, 1_499), event(3_999, 2)];
    let bed = Bed::new();
    trace.write_dftracer(&bed.path("t.pfw.gz"), Dialect::Current, TimeUnit::Microseconds);
    let again = read(&bed.path("."));
    let times: Vec<_> = again
        .shown_of_program()
        .iter()
        .map(|shown| (shown.rest.start_ns, shown.rest.duration_ns))
        .collect();
    assert_eq!(times, [(1_000, 3_000), (2_000, 1_000), (3_000, 1_000)]);
}

#[test]
fn files_are_named_and_begun_as_dftracer_does() {
    let mut trace = Trace::default();
    trace.tables.processes = processes();
    trace.tables.processes.truncate(1);
    trace.tables.processes[0].arguments =
        vec!["python".into(), "-u".into(), "/w/t.py".into(), "a".into()];
    let (category, name) = (trace.tables.name_row("POSIX"), trace.tables.name_row("pread"));
    let file = Some(trace.tables.file_row("/d/x"));
    let event = Event {
        thread: 9,
        start_ns: 5_000,
        duration_ns: 2_000,
        category,
        name,
        file,
        size: Some(8),
        offset: Some(0),
        result: Some(8),
        count: 1,
        ..Event::default()
    };
    trace.batch.events = vec![event, event];
    let bed = Bed::new();
    trace.write_dftracer(&bed.path("t.pfw"), Dialect::Current, TimeUnit::Microseconds);
    let name = format!("t-{:016x}-app.pfw", hash_of("t.py-nodeA-7101"));
    assert_eq!(bed.names("."), [name.as_str()]);
    let text = std::fs::read_to_string(bed.path(&name)).unwrap();
    let host = format!("{:016x}", hash_of("nodeA"));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        format!(
            "{{\"name\":\"HH\",\"cat\":\"dftracer\",\"type\":1,\"pid\":7101,\"tid\":9,\"ph\":4,\"args\":{{\"hhash\":\"{host}\",\"name\":\"nodeA\",\"value\":\"{host}\"}}}}"
        )
    );
    let file = format!("{:016x}", hash_of("/d/x"));
    let at = lines.iter().position(|line| line.contains("\"FH\"")).unwrap();
    assert_eq!(
        lines[at + 1],
        format!(
            "{{\"id\":2,\"name\":\"pread\",\"cat\":\"POSIX\",\"type\":3,\"pid\":7101,\"tid\":9,\"ts\":5,\"dur\":2,\"ph\":1,\"args\":{{\"hhash\":\"{host}\",\"fhash\":\"{file}\",\"count\":8,\"offset\":0,\"ret\":8}}}}"
        )
    );
    assert_eq!(lines[at + 2].replace("\"id\":3", "\"id\":2"), lines[at + 1]);
    assert!(
        lines[at + 3].starts_with("{\"id\":4,\"name\":\"end\",\"cat\":\"dftracer\",\"type\":1,"),
        "{}",
        lines[at + 3]
    );
    assert_eq!(lines.len(), at + 4);
    let start = lines[at - 1];
    assert!(
        start.contains("\"name\":\"start\"")
            && start.contains("\"version\":20003")
            && start.contains("\"ppid\":1"),
        "{start}"
    );
    for key in ["exec_hash", "cmd_hash", "cwd", "date"] {
        assert!(start.contains(key), "{key}");
    }
}

#[test]
fn a_trace_of_dftracer_comes_out_as_it_went_in() {
    let trace = random(3, 300);
    let bed = Bed::new();
    for (number, dialect) in
        [Dialect::Current, Dialect::Legacy, Dialect::Current].into_iter().enumerate()
    {
        std::fs::create_dir(bed.path(&number.to_string())).unwrap();
        let from =
            if number == 0 { None } else { Some(read(&bed.path(&(number - 1).to_string()))) };
        let path = bed.path(&format!("{number}/t.pfw.gz"));
        from.as_ref().unwrap_or(&trace).write_dftracer(&path, dialect, TimeUnit::Nanoseconds);
    }
    // Starts and ends included: they are not written twice.
    assert_eq!(sorted(read(&bed.path("0")).shown()), sorted(read(&bed.path("2")).shown()));
}

#[test]
fn chromes_json_holds_everything_to_the_nanosecond() {
    let trace = random(4, 2_000);
    let bed = Bed::new();
    for name in ["t.json", "t.json.gz"] {
        trace.write(&mut ChromeSink::new(&bed.path(name)).unwrap(), 7);
        assert_eq!(bed.names(".").len(), 1);
        let mut source = ChromeSource::open(&bed.path(name)).unwrap();
        let again = drain(&mut source);
        assert_eq!(source.read_stats().left_out + source.read_stats().bad_lines, 0);
        let (expected, found) = (sorted(trace.shown()), sorted(again.shown()));
        assert_eq!(expected.len(), found.len());
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(expected, found);
        }
        let hosts = |trace: &Trace| {
            let mut processes: Vec<_> =
                trace.tables.processes.iter().map(|process| format!("{process:?}")).collect();
            processes.sort();
            processes
        };
        assert_eq!(hosts(&trace), hosts(&again));
        std::fs::remove_file(bed.path(name)).unwrap();
    }
}

#[test]
fn nothing_has_its_name_before_it_is_complete() {
    let trace = random(5, 50);
    let bed = Bed::new();
    let mut sink = feedline_trace::dftracer::DftracerSink::new(
        &bed.path("t.pfw"),
        Dialect::Current,
        TimeUnit::Microseconds,
    );
    feedline_trace::EventSink::write(&mut sink, &trace.tables, &trace.batch).unwrap();
    assert!(bed.names(".").iter().all(|name| name.starts_with('.') && name.ends_with(".partial")));
    drop(sink);
    assert!(bed.names(".").is_empty());
}
