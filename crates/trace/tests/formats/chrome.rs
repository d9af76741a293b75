//! Chrome's JSON as other tools write it.

use feedline_trace::EventKind;
use feedline_trace::chrome::ChromeSource;
use feedline_trace::{EventSource as _, recognize};
use serde_json::json;

use crate::bed::{Bed, Shown, drain};

fn read(text: &str) -> (Vec<Shown>, feedline_trace::ReadStats) {
    let bed = Bed::new();
    let path = bed.write("t.json", text);
    let mut source = ChromeSource::open(&path).unwrap();
    let trace = drain(&mut source);
    (trace.shown(), source.read_stats().clone())
}

#[test]
fn json_is_told_from_lines_by_its_commas() {
    let bed = Bed::new();
    let record = r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}"#;
    let chrome = |text: String| {
        let path = bed.write("t", text);
        recognize(&path).unwrap().format.name == "chrome"
    };
    assert!(chrome(format!("[{record},\n{record}]")));
    assert!(chrome(format!("[\n{record},\n{record}\n]")));
    assert!(chrome(format!("{{\"traceEvents\":[\n{record}\n]}}")));
    assert!(chrome(format!("[{record},{record}]")));
    assert!(!chrome(format!("[\n{record}\n{record}\n]")));
    assert!(!chrome(format!("{record}\n{record}\n")));
}

#[test]
fn begins_and_ends_become_spans() {
    let (shown, intake) = read(
        r#"{"otherData": {"x": ["traceEvents", {"a": 1}]}, "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "trainer"}},
        {"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "ts": 1, "args": {"name": "loader"}},
        {"ph": "B", "name": "outer", "cat": "app", "pid": 5, "tid": 6, "ts": 10, "args": {"step": 3}},
        {"ph": "B", "name": "inner", "cat": "app", "pid": 5, "tid": 6, "ts": 11.5},
        {"ph": "E", "pid": 5, "tid": 6, "ts": 12.25, "args": {"size": 7}},
        {"ph": "E", "pid": 5, "tid": 6, "ts": 20},
        {"ph": "E", "pid": 5, "tid": 6, "ts": 21},
        {"ph": "i", "name": "now", "pid": 5, "tid": 6, "ts": 22, "s": "g"},
        {"ph": "C", "name": "mem", "pid": 5, "tid": 0, "ts": 23, "args": {"used": 4, "free": 0.5}},
        {"ph": "b", "cat": "net", "id": "0x1", "name": "get", "pid": 5, "tid": 6, "ts": 30},
        {"ph": "e", "cat": "net", "id": "0x1", "name": "get", "pid": 5, "tid": 6, "ts": 40},
        {"ph": "s", "id": 1, "name": "flow", "pid": 5, "tid": 6, "ts": 40},
        {"ph": "X", "name": "pread", "cat": "POSIX", "pid": "gpu", "tid": "stream 7", "ts": 1800000000000000, "dur": 2.5, "args": {"file": "/a", "other": null}},
        {"ph": "B", "name": "open end", "pid": 5, "tid": 6, "ts": 50}
        ], "after": {"traceEvents": [{"ph": "X"}]}}"#,
    );
    let of = |name: &str| shown.iter().find(|shown| shown.name == name).unwrap();
    let times = |name: &str| (of(name).rest.start_ns, of(name).rest.duration_ns);
    assert_eq!((times("inner"), of("inner").rest.size), ((11_500, 750), Some(7)));
    assert_eq!((times("outer"), of("outer").rest.step), ((10_000, 10_000), Some(3)));
    assert_eq!(times("get"), (30_000, 10_000));
    assert_eq!(of("now").rest.kind, EventKind::Instant);
    assert_eq!((of("loader").category.as_str(), of("loader").rest.thread), ("thread", 6));
    assert_eq!((of("mem/used").rest.value, of("mem/free").rest.value), (Some(4.0), Some(0.5)));
    let pread = of("pread");
    assert_eq!(
        (pread.file.as_deref(), times("pread")),
        (Some("/a"), (1_800_000_000_000_000_000, 2_500))
    );
    assert_eq!(
        (pread.rest.kind, pread.extra.clone()),
        (EventKind::Call, Some(json!({"other": null})))
    );
    assert_eq!(of("stream 7").rest.thread, pread.rest.thread);
    assert_eq!(of("open end").extra, Some(json!({"unfinished": true})));
    assert_eq!((intake.unpaired, intake.left_out, intake.bad_lines), (2, 1, 0));
    assert_eq!(shown.len(), 10);
}

#[test]
fn an_array_may_lack_its_end() {
    let whole = r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},
{"ph":"X","name":"b]}\"","pid":1,"tid":1,"ts":3,"dur":1}"#;
    for cut in 40..=whole.len() {
        let (shown, intake) = read(&whole[..cut]);
        let first_end = whole.find('\n').unwrap() - 1;
        let expected = usize::from(cut >= first_end) + usize::from(cut == whole.len());
        assert_eq!(shown.len(), expected, "{cut}");
        let is_torn = cut < first_end || (cut > first_end + 2 && cut < whole.len());
        assert_eq!(intake.damaged_files, u64::from(is_torn), "{cut}");
    }
    let (shown, intake) =
        read(r#"[{"ph":1,"name":"a"},{"ph":"X","name":"no time"},{"ph":"X","name":"b","ts":1}]"#);
    assert_eq!((shown.len(), intake.bad_lines), (1, 2));
    assert_eq!(intake.first_bad[1].line, 2);
}
