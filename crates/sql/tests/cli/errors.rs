//! Errors name what the user wrote, in one line, and say what to write instead.

use crate::bed::Bed;

#[track_caller]
fn refuses(bed: &Bed, args: &[&str], stderr: &str) {
    let ran = bed.run(args);
    assert_eq!((ran.stderr.as_str(), ran.stdout.as_str(), ran.code), (stderr, "", Some(2)));
}

#[test]
fn unknown_names_are_answered_with_known_ones() {
    let bed = Bed::new();
    refuses(
        &bed,
        &["trace", "select * from event"],
        "error: no table `event`\nhint: tables: calls, checkpoints, epochs, events, file_use, files, \
         findings, folder_use, functions, health, layers, overlaps, processes, ranks, spans, stalls, steps, \
         stragglers, timeline, what_if\n",
    );
    refuses(
        &bed,
        &["trace", "select e.clas from events e"],
        "error: no column `e.clas`\nhint: columns: class\n",
    );
    refuses(
        &bed,
        &["trace", "select zzz from files"],
        "error: no column `zzz`\nhint: columns: id, path\n",
    );
    refuses(
        &bed,
        &["trace", "select buzy_ns(start, start) from events"],
        "error: no function `buzy_ns`\nhint: did you mean `busy_ns`?\n",
    );
}

#[test]
fn syntax_errors_say_where() {
    let bed = Bed::new();
    refuses(
        &bed,
        &["trace", "select name\nfrom events wher kind = 'call'"],
        "error: syntax error at line 2, column 18: expected end of statement, found kind\n",
    );
    refuses(
        &bed,
        &["trace", "select 'a"],
        "error: syntax error at line 1, column 8: unterminated string literal\n",
    );
    refuses(
        &bed,
        &["trace", "select name, offset, size from events"],
        "error: syntax error at line 1, column 20: expected an expression, found ,\n\
         hint: the columns \"offset\" and \"end\" need double quotes: they are also SQL keywords\n",
    );
    refuses(
        &bed,
        &["trace", " ; "],
        "error: no statement in the query\nhint: omit the query to list the tables\n",
    );
}

#[test]
fn arguments_of_functions_are_checked() {
    let bed = Bed::new();
    refuses(
        &bed,
        &["trace", "select busy_ns(name, start) from events"],
        "error: busy_ns takes timestamps or nanoseconds, not Utf8View\n",
    );
    refuses(
        &bed,
        &["trace", "select busy_ns(start) from events"],
        "error: busy_ns takes a start and an end, not 1 arguments\n",
    );
    refuses(
        &bed,
        &["trace", "select time_bucket(0, start) from events"],
        "error: a time_bucket of 0 ns is not longer than 0\n",
    );
    refuses(
        &bed,
        &["trace", "select time_bucket(duration, start) from events"],
        "error: the width of a time_bucket is not the same for all rows\n",
    );
}

#[test]
fn a_trace_is_not_changed() {
    let bed = Bed::new();
    let hint = "hint: to keep a result, add --out FILE and --format parquet, csv or json\n";
    refuses(
        &bed,
        &["trace", "copy events to 'copy.parquet'"],
        &format!("error: a trace is read-only: no COPY\n{hint}"),
    );
    refuses(
        &bed,
        &["trace", "insert into files values (9, '/x')"],
        &format!("error: a trace is read-only: no Insert Into\n{hint}"),
    );
    assert!(!bed.path("copy.parquet").exists());
    assert_eq!(bed.csv("select count(*) as n from files"), "n\n3\n");
}

#[test]
fn what_is_no_trace_and_no_place_is_said() {
    let bed = Bed::new();
    refuses(
        &bed,
        &["nothing", "select 1"],
        "error: cannot read nothing: No such file or directory (os error 2)\n",
    );
    bed.write("note.txt", "hello");
    refuses(
        &bed,
        &["note.txt", "select 1"],
        "error: unrecognized trace format: note.txt (starts with \"hello\")\n\
         hint: readable traces: Feedline trace folders, DFTracer files (.pfw.gz, .pfw), Chrome files \
         (.json, .json.gz)\n",
    );
    refuses(
        &bed,
        &["trace", "-f", "nothing.sql"],
        "error: cannot read nothing.sql: No such file or directory (os error 2)\n",
    );
    refuses(
        &bed,
        &["trace", "select 1", "--out", "no/such/folder.csv"],
        "error: cannot write no/such/folder.csv: No such file or directory (os error 2)\n",
    );
    std::fs::create_dir(bed.path("empty")).unwrap();
    let empty = bed.path("empty");
    let empty = empty.display();
    refuses(
        &bed,
        &["trace", "select 1", "--analysis", "empty"],
        &format!(
            "error: no analysis in {empty}: no file there ends with .parquet\n\
             hint: write it with: feedline analyze TRACE --export parquet --export-dir {empty}\n"
        ),
    );
}

#[test]
fn a_later_version_of_the_format_is_refused() {
    let bed = Bed::new();
    let file = "trace/trace.json";
    let text = std::fs::read_to_string(bed.path(file)).unwrap();
    let later: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(later["version"], 1);
    bed.write(
        file,
        &text
            .replace("\"version\":1", "\"version\":99")
            .replace("\"version\": 1", "\"version\": 99"),
    );
    let ran = bed.run(&["trace", "select 1"]);
    assert!(ran.stderr.contains("99"), "{}", ran.stderr);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
}

#[test]
fn engines_that_are_not_there_are_named() {
    let bed = Bed::new();
    let ran = bed.run(&["trace", "select 1", "--engine", "spark"]);
    assert!(ran.stderr.contains("no engine `spark`"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
    // A port that was free a moment ago, with nobody behind it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let engine = format!("ballista://{address}");
    refuses(
        &bed,
        &["trace", "select 1", "--engine", &engine],
        &format!(
            "error: no Ballista scheduler at {address}: Connection refused (os error 111)\n\
             hint: start one, or omit --engine to run the query here\n"
        ),
    );
}

#[test]
fn a_cap_on_memory_holds() {
    let bed = Bed::new();
    let sorted = "select count(*) as n, count(distinct repeat('x', cast(value % 7 as int))) as d from \
                  generate_series(1, 1000)";
    assert_eq!(bed.ask(sorted, &["--memory", "64"]), "n,d\n1000,7\n");
    let joined = "select count(*) as n from generate_series(1, 1000000) a join \
                  generate_series(1, 1000000) b on a.value = b.value";
    let ran = bed.run(&["trace", joined, "--memory", "1"]);
    assert!(ran.stderr.starts_with("error: Resources exhausted: "), "{}", ran.stderr);
    assert_eq!((ran.stderr.lines().count(), ran.stdout.as_str(), ran.code), (1, "", Some(2)));
    refuses(
        &bed,
        &["trace", "select 1", "--memory", "64", "--engine", "ballista://127.0.0.1:1"],
        "error: --memory applies to queries that run here, but these run on a cluster\n\
         hint: omit it; executors have their own limit\n",
    );
}
