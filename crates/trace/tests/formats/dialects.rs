//! Lines of every dialect of DFTracer, and the events that they are.

use feedline_trace::dftracer::hash_of;
use feedline_trace::{Event, EventKind};
use serde_json::json;

use crate::bed::{Bed, Shown, lines, read};

const HOST: &str = r#"{"name":"HH","cat":"dftracer","type":1,"pid":7101,"tid":7101,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","name":"nodeA","value":"0a1b2c3d4e5f6071"}}
"#;
const FILE: &str = r#"{"name":"FH","cat":"dftracer","type":1,"pid":7101,"tid":7115,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","name":"/data/train/shard_007.npz","value":"93aa5be1c07f2210"}}
"#;
const PREAD: &str = r#"{"id":41,"name":"pread","cat":"POSIX","type":3,"pid":7101,"tid":7115,"ts":1800000000123456,"dur":87,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","fhash":"93aa5be1c07f2210","count":262144,"offset":1048576,"ret":262144}}
"#;

fn call(name: &str, start_ns: i64, duration_ns: u64) -> Shown {
    Shown {
        pid: 7101,
        host: "nodeA".into(),
        category: "POSIX".into(),
        name: name.into(),
        file: None,
        other_file: None,
        extra: None,
        rest: Event { thread: 7115, start_ns, duration_ns, count: 1, ..Event::default() },
    }
}

fn pread() -> Shown {
    let mut shown = call("pread", 1_800_000_000_123_456_000, 87_000);
    shown.file = Some("/data/train/shard_007.npz".into());
    shown.rest.size = Some(262_144);
    shown.rest.offset = Some(1_048_576);
    shown.rest.result = Some(262_144);
    shown
}

#[test]
fn dialect_e_has_numbers_for_kinds_and_no_brackets() {
    let step = r#"{"id":42,"name":"Trainer.step","cat":"COMPUTE","type":6,"pid":7101,"tid":7101,"ts":1800000000123600,"dur":15400,"ph":1}
"#;
    // The path may stand behind the event that uses it.
    for text in [[HOST, FILE, PREAD, step].concat(), [HOST, PREAD, step, FILE].concat()] {
        let trace = lines(&text);
        let mut span = call("Trainer.step", 1_800_000_000_123_600_000, 15_400_000);
        span.category = "COMPUTE".into();
        (span.rest.thread, span.rest.kind) = (7101, EventKind::Span);
        assert_eq!(trace.shown(), [pread(), span]);
        assert_eq!(
            (trace.intake.events, trace.intake.bad_lines, trace.intake.unnamed_files),
            (2, 0, 0)
        );
        assert_eq!(trace.tables.processes.len(), 1);
    }
}

#[test]
fn dialects_c_and_d_have_letters_between_brackets() {
    let text = r#"[
{"id":5,"name":"HH","cat":"dftracer","pid":7101,"tid":7101,"ph":"M","args":{"hhash":"0a1b2c3d4e5f6071","name":"nodeA","value":"0a1b2c3d4e5f6071"}}
{"id":6,"name":"FH","cat":"dftracer","pid":7101,"tid":7115,"ph":"M","args":{"hhash":"0a1b2c3d4e5f6071","name":"/data/train/shard_007.npz","value":"93aa5be1c07f2210"}}
{"id":41,"name":"pread","cat":"POSIX","pid":7101,"tid":7115,"ts":1800000000123456,"dur":87,"ph":"X","args":{"hhash":"0a1b2c3d4e5f6071","level":2,"p_idx":40,"fhash":"93aa5be1c07f2210","count":262144,"ret":262144,"offset":1048576}}
{"name":"read","cat":"POSIX","ts":1800000000000000,"ph":"C","pid":7101,"tid":7115,"args":{"hhash":"0a1b2c3d4e5f6071","dft_cnt":812,"dur_sum":9021,"dur_min":2,"dur_max":71}}
]
"#;
    let trace = lines(text);
    let mut sum = call("read", 1_800_000_000_000_000_000, 9_021_000);
    sum.rest.kind = EventKind::Summary;
    sum.rest.count = 812;
    (sum.rest.shortest_ns, sum.rest.longest_ns) = (Some(2_000), Some(71_000));
    assert_eq!(trace.shown(), [pread(), sum]);
    assert_eq!(trace.intake.bad_lines, 0);
}

#[test]
fn dialect_b_has_hashes_that_are_numbers() {
    let file = |hash: &str, path: &str| {
        format!(
            "{{\"id\":1,\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":51,\"tid\":51,\"ph\":\"M\",\"args\":{{\"hhash\":9,\"name\":\"{path}\",\"value\":{hash}}}}}\n"
        )
    };
    let event = |hash: &str| {
        format!(
            "{{\"id\":2,\"name\":\"close\",\"cat\":\"POSIX\",\"pid\":51,\"tid\":51,\"ts\":1700000000000000,\"dur\":1,\"ph\":\"X\",\"args\":{{\"hhash\":9,\"level\":1,\"p_idx\":-1,\"fhash\":{hash},\"ret\":0,\"fd\":7}}}}\n"
        )
    };
    let host = "{\"id\":0,\"name\":\"HH\",\"cat\":\"dftracer\",\"pid\":51,\"tid\":51,\"ph\":\"M\",\"args\":{\"hhash\":9,\"name\":\"old\",\"value\":9}}\n";
    let bed = Bed::new();
    // A file that was never finished: blanks where the bracket was to be. Small numbers mean
    // something else in every file, large ones are digests.
    bed.write(
        "t/a.pfw",
        format!(
            "  {host}{}{}{}{}",
            file("17", "/a"),
            file("18446744073709551557", "/big"),
            event("17"),
            event("18446744073709551557")
        ),
    );
    bed.write(
        "t/b.pfw",
        format!("[\n{host}{}{}{}]\n", file("17", "/b"), event("17"), event("18446744073709551557")),
    );
    let trace = read(&bed.path("t"));
    let files: Vec<_> = trace.shown().into_iter().map(|shown| shown.file.unwrap()).collect();
    assert_eq!(files, ["/a", "/big", "/b", "/big"]);
    let first = &trace.shown()[0];
    assert_eq!((first.host.as_str(), first.pid, first.rest.result), ("old", 51, Some(0)));
    assert_eq!(first.extra, Some(json!({"fd": 7})));
    assert_eq!(trace.intake.unnamed_files, 0);
}

#[test]
fn dialect_a_has_numbers_in_quotes_and_names_in_clear() {
    let text = "[  {\"id\":\"3\",\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":\"51\",\"tid\":\"102\",\"ts\":\"1700000000000001\",\"dur\":\"9\",\"ph\":\"X\",\"args\":{\"hostname\":\"nodeA\",\"fname\":\"/data/s0.npz\",\"fd\":7,\"count\":\"4096\",\"ret\":\"4096\"}}\n";
    // The bracket was written over the first of three blanks, so it stands in the line of an event.
    let trace = lines(&format!("{text}{}", &text[3..]));
    let mut read = call("read", 1_700_000_000_000_001_000, 9_000);
    (read.pid, read.rest.thread) = (51, 102);
    read.file = Some("/data/s0.npz".into());
    (read.rest.size, read.rest.result) = (Some(4096), Some(4096));
    read.extra = Some(json!({"fd": 7}));
    assert_eq!(trace.shown(), [read.clone(), read]);
}

#[test]
fn dialect_f_has_entities_and_relations() {
    let text = [HOST, r#"{"name":"EH","cat":"dftracer","type":1,"pid":7101,"tid":7101,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","id":"51f0aa07c2e9d3b4","type":"checkpoint","store":3,"uri":"/scratch/ck/120.pt"}}
{"id":90,"name":"save","cat":"APP","type":6,"pid":7101,"tid":7101,"ts":1800000002000000,"dur":880,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","relations":{"used":["2bd7740f19a6cc80"]},"epoch":2,"step":-1,"image_idx":17,"image_size":150528.0,"count":4}}
"#].concat();
    let trace = lines(&text);
    let mut entity = call("EH", 1_800_000_002_000_000_000, 0);
    entity.category = "dftracer".into();
    (entity.rest.kind, entity.rest.thread) = (EventKind::Instant, 7101);
    entity.extra = Some(
        json!({"id": "51f0aa07c2e9d3b4", "type": "checkpoint", "store": 3, "uri": "/scratch/ck/120.pt"}),
    );
    let mut save = call("save", 1_800_000_002_000_000_000, 880_000);
    save.category = "APP".into();
    (save.rest.kind, save.rest.thread) = (EventKind::Span, 7101);
    (save.rest.epoch, save.rest.step, save.rest.sample) = (Some(2), Some(-1), Some(17));
    save.rest.size = Some(150_528);
    save.extra = Some(json!({"relations": {"used": ["2bd7740f19a6cc80"]}, "count": 4}));
    assert_eq!(trace.shown(), [entity, save]);
}

#[test]
fn aggregates_and_counters_become_summaries_and_series() {
    let text = [HOST, r#"{"name":"read","cat":"POSIX","type":3,"ts":1800000000000000,"ph":3,"pid":7101,"tid":7115,"args":{"hhash":"0a1b2c3d4e5f6071","dft_cnt":812,"dur_sum":9021,"dur_min":2,"dur_max":71,"count_sum":3325952,"count_min":4096,"count_max":4096,"ret_sum":3325952}}
{"name":"fread","cat":"STDIO","type":3,"ts":1800000000000000,"ph":3,"pid":7101,"tid":7115,"args":{"hhash":"0a1b2c3d4e5f6071","dft_cnt":1,"dur":5,"count":10,"size_min":8,"size_max":8,"ret":9}}
{"name":"cpu-3","cat":"sys","type":7,"ts":1800000001000000,"ph":2,"pid":7101,"tid":0,"args":{"hhash":"0a1b2c3d4e5f6071","user_pct":41.5,"irq_pct":0,"labels":{"a":1}}}
{"name":"queue","cat":"app","type":2,"ts":1800000001000001,"ph":2,"pid":7101,"tid":0,"args":{"hhash":"0a1b2c3d4e5f6071","value":3}}
"#].concat();
    let shown = lines(&text).shown();
    assert_eq!((shown[0].rest.kind, shown[0].rest.count), (EventKind::Summary, 812));
    assert_eq!((shown[0].rest.duration_ns, shown[0].rest.longest_ns), (9_021_000, Some(71_000)));
    assert_eq!((shown[0].rest.size, shown[0].rest.result), (Some(3_325_952), Some(3_325_952)));
    assert_eq!(shown[0].extra, Some(json!({"count_min": 4096, "count_max": 4096})));
    assert_eq!((shown[1].rest.size, shown[1].rest.result), (Some(80), Some(72)));
    assert_eq!((shown[1].rest.shortest_ns, shown[1].rest.longest_ns), (Some(5_000), Some(5_000)));
    let counters: Vec<_> =
        shown[2..].iter().map(|shown| (shown.name.as_str(), shown.rest.value.unwrap())).collect();
    assert_eq!(counters, [("cpu-3/user_pct", 41.5), ("cpu-3/irq_pct", 0.0), ("queue", 3.0)]);
    assert_eq!(shown[2].extra, Some(json!({"labels": {"a": 1}})));
    assert!(shown[2..].iter().all(|shown| shown.rest.kind == EventKind::Counter));
}

#[test]
fn units_of_time_are_what_the_file_says() {
    let check = |unit: &str, ts: i64, start_ns: i64| {
        let metric = format!(
            "{{\"name\":\"CM\",\"cat\":\"dftracer\",\"type\":1,\"pid\":7101,\"tid\":7101,\"ph\":4,\"args\":{{\"hhash\":\"0a1b2c3d4e5f6071\",\"name\":\"time_metric\",\"value\":\"{unit}\"}}}}\n"
        );
        let event = format!(
            "{{\"id\":1,\"name\":\"x\",\"cat\":\"A\",\"type\":6,\"pid\":7101,\"tid\":1,\"ts\":{ts},\"dur\":2,\"ph\":1}}\n"
        );
        let trace = lines(&format!("{HOST}{}{event}", if unit.is_empty() { "" } else { &metric }));
        let event = trace.batch.events[0];
        let duration_ns = start_ns / ts * 2;
        assert_eq!(
            (event.start_ns, event.duration_ns.cast_signed()),
            (start_ns, duration_ns),
            "{unit}"
        );
    };
    check("NS", 1_800_000_000_000_000_000, 1_800_000_000_000_000_000);
    check("US", 1_800_000_000_000_000, 1_800_000_000_000_000_000);
    check("MS", 1_800_000_000_000, 1_800_000_000_000_000_000);
    check("SEC", 1_800_000_000, 1_800_000_000_000_000_000);
    check("", 1_800_000_000_000_000, 1_800_000_000_000_000_000);
    // Wall clocks in microseconds never get so far.
    check("", 1_800_000_000_000_000_000, 1_800_000_000_000_000_000);
}

#[test]
fn children_of_a_fork_find_paths_and_units_in_their_parents_file() {
    let bed = Bed::new();
    let unit = r#"{"name":"CM","cat":"dftracer","type":1,"pid":7101,"tid":7101,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","name":"time_metric","value":"MS"}}
"#;
    bed.write("t/z-parent.pfw", [HOST, FILE, unit].concat());
    let child = PREAD.replace("7101", "7102").replace("1800000000123456", "1800000000123");
    bed.write_members("t/a-child.pfw.gz", &[&child, &child]);
    let trace = read(&bed.path("t"));
    let mut expected = pread();
    expected.pid = 7102;
    expected.rest.start_ns = 1_800_000_000_123_000_000;
    expected.rest.duration_ns = 87_000_000;
    assert_eq!(trace.shown(), [expected.clone(), expected]);
    assert_eq!((trace.intake.files, trace.intake.unnamed_files), (2, 0));
}

#[test]
fn a_hash_without_a_path_stays_that_hash() {
    let trace = lines(&[HOST, PREAD].concat());
    assert_eq!(trace.shown()[0].file.as_deref(), Some("fhash:93aa5be1c07f2210"));
    assert_eq!(trace.intake.unnamed_files, 1);
}

#[test]
fn the_same_number_on_two_hosts_is_two_processes() {
    let other = HOST.replace("nodeA", "nodeB").replace("0a1b2c3d4e5f6071", "ffffffffffffffff");
    let event = PREAD.replace("0a1b2c3d4e5f6071", "ffffffffffffffff");
    let trace = lines(&[HOST, &other, FILE, PREAD, &event].concat());
    let hosts: Vec<_> = trace.shown().into_iter().map(|shown| (shown.host, shown.pid)).collect();
    assert_eq!(hosts, [("nodeA".to_owned(), 7101), ("nodeB".to_owned(), 7101)]);
}

#[test]
fn what_a_process_is_stands_in_its_first_events() {
    let string = |name: &str, value: &str| {
        format!(
            "{{\"name\":\"SH\",\"cat\":\"dftracer\",\"type\":1,\"pid\":7101,\"tid\":7101,\"ph\":4,\"args\":{{\"hhash\":\"0a1b2c3d4e5f6071\",\"name\":\"{name}\",\"value\":\"{value}\"}}}}\n"
        )
    };
    let pair = |record: &str, name: &str, value: &str| {
        string(name, value).replace("\"SH\"", &format!("\"{record}\""))
    };
    let start = r#"{"id":1,"name":"start","cat":"dftracer","type":1,"pid":7101,"tid":7101,"ts":1800000000000000,"dur":0,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","version":20003,"exec_hash":"1111111111111111","cmd_hash":"2222222222222222","cwd":"3333333333333333","date":"Fri Jan 15 08:00:00 2027","ppid":7000}}
"#;
    let end = r#"{"id":2,"name":"end","cat":"dftracer","type":1,"pid":7101,"tid":7101,"ts":1800000009000000,"dur":0,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","num_events":2,"cfg":{"io":true}}}
"#;
    let text = [
        HOST,
        &string("train.py", "1111111111111111"),
        &string("python;train.py;-v", "2222222222222222"),
        &string("/home/me", "3333333333333333"),
        &pair("thread_name", "7101", "thread_name"),
        &pair("process_name", "Rank 3", "process_name"),
        &pair("PR", "core_affinity", "[0]").replace("\"[0]\"", "[0,1]"),
        &pair("CM", "experiment", "lr-sweep-2"),
        start,
        end,
    ]
    .concat();
    let trace = lines(&text);
    let process = trace.process(7101);
    assert_eq!(
        (process.rank, process.name.as_deref(), process.parent_pid),
        (Some(3), None, Some(7000))
    );
    assert_eq!((process.program.as_str(), process.folder.as_str()), ("train.py", "/home/me"));
    assert_eq!(process.arguments, ["python", "train.py", "-v"]);
    assert_eq!(process.start_ns, 1_800_000_000_000_000_000);
    assert_eq!(process.end_ns, Some(1_800_000_009_000_000_000));
    let names: Vec<_> = trace.shown().into_iter().map(|shown| (shown.name, shown.extra)).collect();
    let expected = [
        ("PR", json!({"name": "core_affinity", "value": [0, 1]})),
        ("CM", json!({"name": "experiment", "value": "lr-sweep-2"})),
        ("start", json!({"version": 20003, "date": "Fri Jan 15 08:00:00 2027"})),
        ("end", json!({"num_events": 2, "cfg": {"io": true}})),
    ];
    assert_eq!(names, expected.map(|(name, extra)| (name.to_owned(), Some(extra))));
}

#[test]
fn other_strings_find_their_places() {
    let file = |path: &str| {
        let hash = format!("{:016x}", hash_of(path));
        FILE.replace("/data/train/shard_007.npz", path).replace("93aa5be1c07f2210", &hash)
    };
    let event = |name: &str, args: &str| {
        format!(
            "{{\"id\":1,\"name\":\"{name}\",\"cat\":\"POSIX\",\"type\":3,\"pid\":7101,\"tid\":7115,\"ts\":1,\"dur\":1,\"ph\":1,\"args\":{{\"hhash\":\"0a1b2c3d4e5f6071\",{args}}}}}\n"
        )
    };
    let hash = |path: &str| format!("{:016x}", hash_of(path));
    let text = [
        HOST.to_owned(),
        file("/old"),
        file("/new"),
        event(
            "rename",
            &format!("\"fhash\":\"{}\",\"newpath_hash\":\"{}\"", hash("/old"), hash("/new")),
        ),
        event("execve", &format!("\"pathname_hash\":\"{}\",\"ret\":-1", hash("/new"))),
        event(
            "openat",
            &format!(
                "\"dirfd\":4,\"flags\":65,\"mode\":420,\"fhash\":\"{}\",\"pathname_hash\":\"{}\"",
                hash("/old"),
                hash("/new")
            ),
        ),
        event("fwrite", "\"size\":16,\"count\":4,\"ret\":3"),
        event("lseek", "\"offset\":-5,\"whence\":2,\"ret\":95"),
    ]
    .concat();
    let shown = lines(&text).shown();
    assert_eq!(
        (shown[0].file.as_deref(), shown[0].other_file.as_deref()),
        (Some("/old"), Some("/new"))
    );
    assert_eq!((shown[1].file.as_deref(), shown[1].rest.result), (Some("/new"), Some(-1)));
    assert_eq!((shown[2].rest.arg, shown[2].rest.size), (Some(65), Some(420)));
    assert_eq!(shown[2].extra, Some(json!({"dirfd": 4, "pathname": "/new"})));
    assert_eq!(
        (shown[3].rest.size, shown[3].rest.result, shown[3].rest.arg),
        (Some(64), Some(48), Some(16))
    );
    assert_eq!(
        (shown[4].rest.offset, shown[4].rest.arg, shown[4].rest.result),
        (Some(-5), Some(2), Some(95))
    );
}
