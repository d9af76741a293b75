//! `analyze`, `merge`, `diff` and `sql` as their users meet them.

use std::fs;

use serde_json::Value;

use crate::bed::{Bed, Ran, ran};

/// Two ranks, eight files, one sample per batch: 8 epochs of 4 steps; three calls per sample.
const SETS: [&str; 4] = [
    "train.computation_time=0.002",
    "reader.batch_size=1",
    "reader.read_threads=2",
    "reader.read_model=native",
];

/// A run whose storage is slow, and its trace.
fn starved() -> Bed {
    let bed = Bed::with_data();
    run(&bed, "trace", "20ms");
    bed
}

fn run(bed: &Bed, trace: &str, limit: &str) {
    let out = format!("out-{trace}");
    let mut args = vec!["small.yaml", "--out", &out, "--trace", trace, "-n", "2", "--epochs", "8"];
    args.extend(["--store-limit", limit]);
    SETS.iter().for_each(|set| args.extend(["--set", set]));
    bed.runs(&args);
}

fn feedline(bed: &Bed, args: &[&str]) -> Ran {
    ran(&mut bed.feedline(args))
}

#[track_caller]
fn succeeds(bed: &Bed, args: &[&str]) -> String {
    let ended = feedline(bed, args);
    assert_eq!((ended.stderr.as_str(), ended.code), ("", Some(0)));
    ended.stdout
}

#[track_caller]
fn refuses(bed: &Bed, args: &[&str], stderr: &str) {
    let before = bed.tree();
    let ended = feedline(bed, args);
    assert_eq!((ended.stderr.as_str(), ended.stdout.as_str(), ended.code), (stderr, "", Some(2)));
    assert_eq!(bed.tree(), before, "something was left behind");
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn stalled(analysis: &Value, causes: &[&str]) -> f64 {
    let all = analysis["stall"].as_array().unwrap().iter();
    let wanted = all.filter(|time| causes.contains(&time["cause"].as_str().unwrap()));
    wanted.map(|time| time["ns"].as_f64().unwrap()).sum()
}

#[test]
fn a_starved_run_is_told_as_the_benchmark_tells_it() {
    let bed = starved();
    let found = json(&succeeds(&bed, &["analyze", "trace", "--json"]));
    let summary = bed.json("out-trace/summary.json");
    assert_eq!(found["verdict"]["answer"], "input-bound");
    assert_eq!(found["verdict"]["steps"], 64);
    // Of the three calls for a sample, open and stat count as opening.
    assert_eq!(found["findings"][0]["code"], "slow-open");
    let split = &summary["feedline"]["time_split_percentage"];
    let step_ns = found["verdict"]["step_ns"].as_f64().unwrap();
    let percent = |causes: &[&str]| 100.0 * stalled(&found, causes) / step_ns;
    let near = |ours: f64, theirs: &Value, what: &str| {
        let theirs = theirs.as_f64().unwrap();
        assert!((ours - theirs).abs() < 5.0, "{what}: {ours} beside {theirs}");
    };
    near(percent(&["open", "read", "object-store", "write"]), &split["storage"], "storage");
    near(percent(&["decode", "transform", "python", "collate"]), &split["decode"], "decode");
    near(percent(&["peer"]), &split["peers"], "peers");
    let au = found["verdict"]["au_percent"].as_f64().unwrap();
    near(au, &summary["metric"]["train_au_mean_percentage"], "utilization");
    for step in found["steps"].as_array().unwrap() {
        let parts = step["parts_ns"].as_array().unwrap().iter();
        let sum: u64 = parts.map(|part| part.as_u64().unwrap()).sum();
        assert_eq!(sum, step["stall_ns"].as_u64().unwrap());
    }
}

#[test]
fn shards_and_threads_give_the_same() {
    let bed = starved();
    let whole = succeeds(&bed, &["analyze", "trace", "--json", "--threads", "1"]);
    assert_eq!(succeeds(&bed, &["analyze", "trace", "--json", "--threads", "5"]), whole);
    for shard in 1..=3 {
        let (part, out) = (format!("{shard}/3"), format!("part-{shard}"));
        assert_eq!(succeeds(&bed, &["analyze", "trace", "--shard", &part, "-o", &out]), "");
    }
    assert_eq!(succeeds(&bed, &["merge", "part-2", "part-3", "part-1", "--json"]), whole);
    let hint = "hint: pass all parts of one trace, each once\n";
    let missing = format!("error: shard 2/3 is missing\n{hint}");
    refuses(&bed, &["merge", "part-1", "part-3"], &missing);
    let twice = format!("error: shard 1/3 is given twice\n{hint}");
    refuses(&bed, &["merge", "part-1", "part-1"], &twice);
    bed.write("no", "{}");
    refuses(
        &bed,
        &["merge", "no"],
        "error: no is not a part of an analysis of this version\n\
         hint: parts are written by `feedline analyze TRACE --shard I/N -o FILE`\n",
    );
}

#[test]
fn every_output_works() {
    let bed = starved();
    let args = ["analyze", "trace", "--quiet", "--html", "new/r.html", "--perfetto", "p.pftrace"];
    assert_eq!(succeeds(&bed, &args), "");
    let page = bed.read("new/r.html");
    assert!(page.starts_with("<!doctype html>") && page.len() < 5_000_000, "{}", page.len());
    let perfetto = fs::read(bed.path("p.pftrace")).unwrap();
    let needle = b"input stall: open";
    assert!(perfetto.windows(needle.len()).any(|window| window == needle));
    let names = [
        "checkpoints",
        "epochs",
        "file_use",
        "findings",
        "folder_use",
        "functions",
        "health",
        "layers",
        "overlaps",
        "ranks",
        "stalls",
        "steps",
        "stragglers",
        "timeline",
        "what_if",
    ];
    for format in ["parquet", "csv", "json"] {
        succeeds(&bed, &["analyze", "trace", "-q", "--export", format, "--export-dir", format]);
        let mut found: Vec<String> = bed.tree();
        found.retain(|name| name.starts_with(&format!("{format}/")) && !name.ends_with('/'));
        let expected: Vec<String> =
            names.iter().map(|name| format!("{format}/{name}.{format}")).collect();
        assert_eq!(found, expected);
    }
    let rows = bed.read("csv/steps.csv").lines().count();
    assert_eq!(rows, 65);
    assert_eq!(bed.json("json/steps.json").as_array().unwrap().len(), 64);
    let again = ["analyze", "trace", "-q", "--export", "csv", "--export-dir", "csv"];
    let text = "error: csv is not empty\n\
                hint: choose another folder, or use --overwrite to replace its tables\n";
    refuses(&bed, &again, text);
    let text = "error: new/r.html exists\nhint: use --overwrite to replace it\n";
    refuses(&bed, &["analyze", "trace", "--html", "new/r.html"], text);
    let most = feedline(&bed, &["analyze", "trace", "-q", "--max-stall", "10"]);
    assert_eq!(most.code, Some(1));
    assert!(most.stderr.starts_with("missed: ") && most.stderr.ends_with(" is stalled\n"));
}

#[test]
fn runs_are_compared() {
    let bed = starved();
    run(&bed, "faster", "4ms");
    let worse = feedline(&bed, &["diff", "faster", "trace", "--json"]);
    assert_eq!(worse.code, Some(1));
    let diff = json(&worse.stdout);
    assert_eq!(diff["is_worse"], true);
    assert_eq!(diff["shifts"][0]["what"], "open");
    let better = feedline(&bed, &["diff", "trace", "faster"]);
    assert_eq!(better.code, Some(0));
    assert!(better.stdout.contains(" % faster: "), "{}", better.stdout);
    bed.write("a.json", succeeds(&bed, &["analyze", "trace", "--json"]));
    let same = feedline(&bed, &["diff", "a.json", "trace", "--allow", "0"]);
    assert_eq!(same.code, Some(0));
    assert!(same.stdout.starts_with("no difference beyond chance: "), "{}", same.stdout);
}

#[test]
fn a_comparison_of_read_models_is_marked() {
    let bed = Bed::with_data();
    for model in ["framework", "native"] {
        let (set, out) = (format!("reader.read_model={model}"), format!("out-{model}"));
        bed.runs(&["small.yaml", "--set", &set, "--out", &out, "--trace", model]);
    }
    let text = "the first was read with the framework model, the second with native: they asked the \
                storage for different things";
    let diff = json(&feedline(&bed, &["diff", "framework", "native", "--json"]).stdout);
    assert_eq!(diff["warnings"], serde_json::json!([text]));
    let diff = json(&feedline(&bed, &["diff", "native", "native", "--json"]).stdout);
    assert_eq!(diff["warnings"], serde_json::json!([]));
}

#[test]
fn bad_input_is_named() {
    let bed = Bed::new();
    bed.write("text.txt", "hello");
    fs::create_dir(bed.path("empty")).unwrap();
    let readable = "hint: readable traces: Feedline trace folders, DFTracer files (.pfw.gz, .pfw), \
                    Chrome files (.json, .json.gz); tar archives of these\n";
    let unknown =
        format!("error: unrecognized trace format: text.txt (starts with \"hello\")\n{readable}");
    refuses(&bed, &["analyze", "text.txt"], &unknown);
    let nothing =
        "error: no trace in empty: expected a trace folder, .pfw files or JSON with events\n";
    refuses(&bed, &["analyze", "empty"], &format!("{nothing}{readable}"));
    let missing = "error: cannot read gone: No such file or directory (os error 2)\n";
    refuses(&bed, &["analyze", "gone"], missing);
    let names = "hint: the names are cause-share, straggler-share, checkpoint-share, small-read-bytes, \
                 metadata-calls-share, reread-factor, random-share, slow-target-factor, imbalance, \
                 cold-factor\n";
    let text = format!("error: expected NAME=NUMBER for --threshold, found \"x=1\"\n{names}");
    refuses(&bed, &["analyze", "gone", "--threshold", "x=1"], &text);
    let text = "error: expected I/N for --shard, found \"4/3\"\n\
                hint: use a part, counted from 1, and the number of parts: --shard 3/16\n";
    refuses(&bed, &["analyze", "gone", "--shard", "4/3", "-o", "x"], text);
    let text = "error: feedline-sql is neither next to this program nor in PATH\n\
                hint: build it separately, because DataFusion is large: make sql\n";
    bed.write("none", "");
    fs::hard_link(env!("CARGO_BIN_EXE_feedline"), bed.path("feedline-alone"))
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_feedline"), bed.path("feedline-alone")).map(drop))
        .unwrap();
    let alone = ran(bed.command(bed.path("feedline-alone")).args(["sql", "t", "select 1"]));
    assert_eq!((alone.stderr.as_str(), alone.code), (text, Some(2)));
}
