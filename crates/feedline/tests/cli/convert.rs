//! `feedline convert`.

use std::fs;

use crate::bed::{Bed, Ran, ran};

const LINES: &str = r#"{"name":"HH","cat":"dftracer","type":1,"pid":7,"tid":7,"ph":4,"args":{"hhash":"0a1b2c3d4e5f6071","name":"n1","value":"0a1b2c3d4e5f6071"}}
{"id":1,"name":"read","cat":"POSIX","type":3,"pid":7,"tid":7,"ts":1800000000000000,"dur":9,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","count":8,"ret":8}}
{"id":2,"name":"read","cat":"POSIX"
{"id":3,"name":"close","cat":"POSIX","type":3,"pid":7,"tid":7,"ts":1800000000000010,"dur":1,"ph":1,"args":{"hhash":"0a1b2c3d4e5f6071","ret":0}}
"#;

fn bed() -> Bed {
    let bed = Bed::new();
    bed.write("in.pfw", LINES);
    bed
}

fn convert(bed: &Bed, args: &[&str]) -> Ran {
    ran(bed.feedline(&["convert"]).args(args))
}

#[track_caller]
fn refuses(bed: &Bed, args: &[&str], stderr: &str) {
    let before = bed.tree();
    let ended = convert(bed, args);
    assert_eq!((ended.stderr.as_str(), ended.stdout.as_str(), ended.code), (stderr, "", Some(2)));
    assert_eq!(bed.tree(), before, "something was left behind");
}

#[test]
fn the_suffix_says_the_format_and_the_report_what_was_bad() {
    let bed = bed();
    let bad = "warning: in.pfw:3: this ends too early\nwarning: 1 bad line: skipped\n";
    let ended = convert(&bed, &["in.pfw", "new/t.json"]);
    assert_eq!(ended.stderr, format!("new/t.json: 2 events, 1 file read, 1 file written\n{bad}"));
    assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(0)));
    assert_eq!(bed.json("new/t.json")["traceEvents"].as_array().unwrap().len(), 8);
    let ended = convert(&bed, &["in.pfw", "t.pftrace"]);
    assert_eq!(
        ended.stderr,
        format!("t.pftrace: 2 events as 2 slices, 1 file read, 1 file written\n{bad}")
    );
    let ended = convert(&bed, &["new/t.json", "back.pfw", "--time-unit", "ns"]);
    assert_eq!(ended.stderr, "back-*-app.pfw: 2 events, 1 file read, 1 file written\n");
    let name = bed.tree().into_iter().find(|name| name.starts_with("back-")).unwrap();
    let text = bed.read(&name);
    assert!(text.contains("\"name\":\"time_metric\",\"value\":\"NS\""), "{text}");
    assert!(text.contains("\"ts\":1800000000000010000,\"dur\":1000,"), "{text}");
}

#[test]
fn what_is_there_is_replaced_only_on_request() {
    let bed = bed();
    assert_eq!(convert(&bed, &["in.pfw", "t.json"]).code, Some(0));
    let first = bed.read("t.json");
    refuses(
        &bed,
        &["in.pfw", "t.json"],
        "error: t.json already exists\nhint: use --overwrite to replace it\n",
    );
    fs::write(bed.path("t.json"), "old").unwrap();
    assert_eq!(convert(&bed, &["in.pfw", "t.json", "--overwrite"]).code, Some(0));
    assert_eq!(bed.read("t.json"), first);

    assert_eq!(convert(&bed, &["in.pfw", "d", "--to", "dftracer-legacy"]).code, Some(0));
    let file = bed.tree().into_iter().find(|name| name.starts_with("d/trace-")).unwrap();
    refuses(
        &bed,
        &["in.pfw", "d", "--to", "dftracer"],
        &format!("error: {file} already exists\nhint: use --overwrite to replace it\n"),
    );
    // A file of another process of an earlier conversion would be taken for a part of this one.
    bed.write("d/trace-0123456789abcdef-app.pfw.gz", "");
    assert_eq!(convert(&bed, &["in.pfw", "d", "--to", "dftracer", "--overwrite"]).code, Some(0));
    assert_eq!(bed.tree().iter().filter(|name| name.starts_with("d/trace-")).count(), 1);
    refuses(
        &bed,
        &["d", "d", "--to", "dftracer", "--overwrite"],
        &format!("error: {file} is part of the input trace\nhint: choose a different OUT\n"),
    );
}

#[test]
fn what_cannot_be_done_is_said_in_words() {
    let bed = bed();
    bed.write("note.txt", "hello");
    refuses(
        &bed,
        &["note.txt", "t.json"],
        "error: unrecognized trace format: note.txt (starts with \"hello\")\nhint: readable traces: Feedline \
         trace folders, DFTracer files (.pfw.gz, .pfw), Chrome files (.json, .json.gz)\n",
    );
    refuses(
        &bed,
        &["none", "t.json"],
        "error: cannot read none: No such file or directory (os error 2)\n",
    );
    refuses(
        &bed,
        &["in.pfw", "t.csv"],
        "error: cannot tell the trace format from the name t.csv\nhint: end it with one of .pftrace, \
         .perfetto-trace, .pfw.gz, .pfw, .json, .json.gz, or select a format with --to\n",
    );
    refuses(
        &bed,
        &["in.pfw", "t.json", "--max-events", "5000"],
        "error: --max-events applies to Perfetto output, not to t.json\nhint: drop --max-events, or select \
         the format with --to\n",
    );
    refuses(
        &bed,
        &["in.pfw", "t.pftrace", "--min-duration", "3 weeks"],
        "error: expected a time for --min-duration, found \"3 weeks\"\nhint: write a number and ns, us, ms or \
         s: --min-duration 100us\n",
    );
    assert_eq!(convert(&bed, &["in.pfw", "t.pftrace"]).code, Some(0));
    refuses(
        &bed,
        &["t.pftrace", "t.json"],
        "error: t.pftrace is a Perfetto trace: Feedline writes this format but cannot read it\nhint: convert \
         the trace it was made from\n",
    );
}
