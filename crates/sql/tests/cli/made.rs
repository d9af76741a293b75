//! What `feedline` makes for the command: a converted trace, and an analysis. A script stands in for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::bed::{Bed, Ran, ran};

/// The command beside a `feedline` that is this script.
fn beside(bed: &Bed, script: &str) -> PathBuf {
    let folder = bed.path("bin");
    fs::create_dir(&folder).unwrap();
    let command = folder.join("feedline-sql");
    fs::hard_link(env!("CARGO_BIN_EXE_feedline-sql"), &command).unwrap();
    let companion = folder.join("feedline");
    fs::write(&companion, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&companion, fs::Permissions::from_mode(0o755)).unwrap();
    command
}

fn run(bed: &Bed, command: &PathBuf, args: &[&str]) -> Ran {
    let scratch = bed.path("scratch");
    fs::create_dir_all(&scratch).unwrap();
    let mut program = std::process::Command::new(command);
    ran(program.args(args).current_dir(bed.path(".")).env("TMPDIR", scratch))
}

#[test]
fn an_analysis_is_made_once_and_only_when_a_query_needs_it() {
    let bed = Bed::new();
    bed.analysis();
    let script = "echo \"$@\" >> calls.txt; cp -r analysis \"$7\"";
    let command = beside(&bed, script);
    let query = "select count(*) as n from events";
    let ended = run(&bed, &command, &["trace", query, "--format", "csv"]);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("n\n11\n", ""));
    assert!(!bed.path("calls.txt").exists());
    let query = "select sum(ns) as ns from stalls; select count(*) as n from steps";
    let ended = run(&bed, &command, &["trace", query, "--format", "csv"]);
    assert_eq!((ended.stdout.as_str(), ended.code), ("ns\n125\n\nn\n4\n", Some(0)));
    let calls = fs::read_to_string(bed.path("calls.txt")).unwrap();
    let words: Vec<&str> = calls.split_whitespace().collect();
    let trace = bed.path("trace");
    assert_eq!(
        words[..6],
        ["analyze", trace.to_str().unwrap(), "--export", "parquet", "--quiet", "--export-dir"]
    );
    assert_eq!(words.len(), 7);
    assert_eq!(ended.stderr, format!("analyzing trace into {}\n", words[6]));
    assert_eq!(fs::read_dir(bed.path("scratch")).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn traces_of_other_tools_are_converted_first() {
    let bed = Bed::new();
    bed.write("t.pfw", "[\n");
    let script = "echo \"$@\" > calls.txt; cp -r trace \"$3\"; echo 'warning: 1 bad line' >&2; echo done >&2";
    let command = beside(&bed, script);
    let ended =
        run(&bed, &command, &["t.pfw", "select count(*) as n from calls", "--format", "csv"]);
    assert_eq!((ended.stdout.as_str(), ended.code), ("n\n9\n", Some(0)));
    let calls = fs::read_to_string(bed.path("calls.txt")).unwrap();
    let words: Vec<&str> = calls.split_whitespace().collect();
    assert_eq!((words[0], words[1], words[3], words[4]), ("convert", "t.pfw", "--to", "feedline"));
    let expected = format!("converting t.pfw into {}\nwarning: 1 bad line\n", words[2]);
    assert_eq!(ended.stderr, expected);
    assert_eq!(fs::read_dir(bed.path("scratch")).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn errors_of_feedline_are_passed_on() {
    let bed = Bed::new();
    let command = beside(
        &bed,
        "echo 'error: the trace has no steps' >&2; echo 'hint: annotate it' >&2; exit 2",
    );
    let ended = run(&bed, &command, &["trace", "select * from steps"]);
    let last: Vec<&str> = ended.stderr.lines().skip(1).collect();
    assert_eq!(last, ["error: feedline analyze: the trace has no steps", "hint: annotate it"]);
    assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(2)));
}

#[test]
fn without_feedline_the_error_says_where_it_belongs() {
    let bed = Bed::new();
    let command = beside(&bed, "");
    fs::remove_file(command.with_file_name("feedline")).unwrap();
    let mut program = std::process::Command::new(&command);
    let ended = ran(program
        .args(["trace", "select * from ranks"])
        .current_dir(bed.path("."))
        .env("PATH", bed.path("empty")));
    let last: Vec<&str> = ended.stderr.lines().skip(1).collect();
    assert_eq!(
        last,
        [
            "error: cannot start feedline: No such file or directory (os error 2)",
            "hint: put `feedline` beside `feedline-sql` or into PATH; `make sql` does so"
        ]
    );
    assert_eq!(ended.code, Some(2));
}
