//! Traces of runs: what they say is what the results say.

use std::collections::{BTreeMap, BTreeSet};

use crate::bed::{Bed, FILE_BYTES};
use crate::object_stores::Server;
use crate::traced::{Row, of, read};

/// A run with a trace, of `args` and `sets`.
fn run(bed: &Bed, args: &[&str], sets: &[&str]) -> Vec<Row> {
    let mut all = vec!["small.yaml", "--out", "out", "--trace", "trace"];
    all.extend(args);
    sets.iter().for_each(|set| all.extend(["--set", set]));
    bed.runs(&all);
    read(&bed.path("trace"), 0)
}

/// Calls and bytes of one kind of storage call, as the results have them.
fn storage(bed: &Bed, op: &str) -> (u64, u64) {
    let count = |key: &str| {
        bed.json("out/summary.json")["feedline"]["storage"][op][key].as_u64().unwrap_or(0)
    };
    (count("calls"), count("bytes"))
}

/// The same, as the trace has them.
fn traced(rows: &[Row], name: &str) -> (u64, u64) {
    let calls = of(rows, name);
    let moved = |row: &&Row| u64::try_from(row.result.expect("a call has a result")).unwrap();
    (calls.len() as u64, calls.iter().map(moved).sum())
}

fn counts(rows: &[Row]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.name.starts_with("thread/")) {
        *counts.entry(row.name.as_str()).or_default() += 1;
    }
    counts
}

fn threads(rows: &[Row]) -> BTreeSet<&str> {
    rows.iter().map(|row| row.thread.as_str()).collect()
}

/// Seconds of a rank's steps: the wait for the batch, and the whole step without its peers.
fn steps(bed: &Bed, rank: usize) -> Vec<(f64, f64)> {
    let text = bed.read(&format!("out/{rank}_steps.csv"));
    let step = |line: &str| {
        let cells: Vec<_> = line.split(',').collect();
        (cells[3].parse().unwrap(), cells[4].parse().unwrap())
    };
    text.lines().skip(1).map(step).collect()
}

/// Every row has one of these around it on its own thread.
#[track_caller]
fn assert_inside(rows: &[Row], inner: &str, outer: &str) {
    let outside = of(rows, outer);
    for row in of(rows, inner) {
        let around =
            outside.iter().filter(|outer| outer.thread == row.thread && outer.contains(row));
        assert_eq!(around.count(), 1, "{row:?} in {outer}");
    }
}

#[test]
fn a_trace_says_what_the_results_say() {
    let bed = Bed::with_data();
    let sets = ["reader.read_threads=2", "reader.preprocess_time=0.0001", "reader.batch_size=1"];
    let rows = run(&bed, &["-n", "2", "--epochs", "2"], &sets);
    let expected = BTreeMap::from([
        ("POSIX/open", 16),
        // NumPy asks twice for the size of a file, and reads seven times.
        ("POSIX/read", 16 * 7),
        ("POSIX/stat", 16 * 2),
        ("ai_root/ai_root", 2),
        ("comm/all_reduce", 16),
        ("compute/compute", 16),
        ("data/item", 16),
        ("data/preprocess", 16),
        ("dataloader/batch", 16),
        ("dataloader/fetch.iter", 16),
        ("pipeline/epoch.block", 4),
        ("pipeline/train", 4),
        ("read_model/framework", 1),
    ]);
    assert_eq!(counts(&rows), expected);
    for op in ["open", "stat", "read"] {
        assert_eq!(traced(&rows, &format!("POSIX/{op}")), storage(&bed, op), "{op}");
    }
    let readers =
        [0, 1].map(|rank| [0, 1].map(|reader| format!("rank {rank} reader {reader}"))).concat();
    let names: Vec<_> = ["main", "rank 0", "rank 1"]
        .into_iter()
        .chain(readers.iter().map(String::as_str))
        .collect();
    assert_eq!(threads(&rows), names.into_iter().collect());

    // Each epoch reads every sample once; every one stands in its step.
    let samples: Vec<_> = of(&rows, "data/item").iter().map(|row| row.tags).collect();
    for epoch in [1, 2] {
        let mut seen: Vec<_> = samples
            .iter()
            .filter(|tags| tags.epoch == Some(epoch))
            .map(|tags| (tags.sample.unwrap(), tags.step.unwrap(), tags.size.unwrap()))
            .collect();
        seen.sort_unstable();
        let expected: Vec<_> =
            (0..8).map(|sample| (sample, i64::try_from(sample / 2 + 1).unwrap(), 4096)).collect();
        assert_eq!(seen, expected, "epoch {epoch}");
    }
    for row in of(&rows, "POSIX/read") {
        // What was asked for, and what of it the file has.
        let left = FILE_BYTES.cast_signed() - row.offset.unwrap();
        let asked = row.tags.size.unwrap();
        assert_eq!((row.result, row.errno), (Some(left.min(asked.cast_signed())), 0));
        assert!([1, 23, 4096].contains(&asked), "{asked}");
        let file = row.file.as_deref().unwrap();
        assert!(file.contains("/data/train/img_") && file.ends_with("_of_8.npz"), "{file}");
    }
}

#[test]
fn spans_of_a_trace_stand_inside_each_other_and_take_what_was_measured() {
    let bed = Bed::with_data();
    let rows = run(&bed, &["-n", "2"], &["reader.preprocess_time=0.0001"]);
    for (inner, outer) in [
        ("POSIX/open", "data/item"),
        ("POSIX/stat", "data/item"),
        ("POSIX/read", "data/item"),
        ("data/preprocess", "data/item"),
        ("data/item", "dataloader/batch"),
        ("dataloader/fetch.iter", "pipeline/epoch.block"),
        ("compute/compute", "pipeline/epoch.block"),
        ("comm/all_reduce", "pipeline/epoch.block"),
        ("pipeline/epoch.block", "pipeline/train"),
        ("pipeline/train", "ai_root/ai_root"),
    ] {
        assert_inside(&rows, inner, outer);
    }
    for rank in [0, 1] {
        let thread = format!("rank {rank}");
        let lane: Vec<_> = rows
            .iter()
            .filter(|row| row.thread == thread)
            .filter(|row| ["dataloader", "compute", "comm"].iter().any(|c| row.name.starts_with(c)))
            .collect();
        let order: Vec<_> = lane.iter().map(|row| (row.name.as_str(), row.tags.step)).collect();
        let expected = [1, 2].map(|step| {
            ["dataloader/fetch.iter", "compute/compute", "comm/all_reduce"]
                .map(|name| (name, Some(step)))
        });
        assert_eq!(order, expected.concat());
        assert!(lane.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
        // The wait was measured inside the span, the span inside the step. Both clocks go alike, to a
        // small part of what their reading takes.
        let fetches = lane.iter().filter(|row| row.name == "dataloader/fetch.iter");
        for (row, (load, proc)) in fetches.zip(steps(&bed, rank)) {
            let took = row.ns() as f64 / 1e9;
            assert!(load <= took * 1.01 && took <= proc * 1.01, "{load} {took} {proc}");
            assert_eq!(row.tags.size, Some(8192));
        }
        let batches = of(&rows, "dataloader/batch");
        let reader = format!("{thread} reader 0");
        let batches: Vec<_> = batches.iter().filter(|row| row.thread == reader).collect();
        for (batch, fetch) in
            batches.iter().zip(lane.iter().filter(|row| row.name == "dataloader/fetch.iter"))
        {
            assert_eq!((batch.tags.step, batch.tags.size), (fetch.tags.step, fetch.tags.size));
            assert!(batch.end_ns <= fetch.end_ns, "handed over when it is complete");
        }
    }
}

#[test]
fn every_phase_of_a_run_is_in_its_trace() {
    let bed = Bed::new();
    let sets = [
        "workflow.evaluation=true",
        "workflow.checkpoint=true",
        "dataset.num_files_eval=4",
        "checkpoint.steps_between_checkpoints=2",
    ];
    let rows = run(&bed, &["--generate"], &sets);
    let counts = counts(&rows);
    for (name, count) in [
        ("generator/generate", 1),
        ("ai_root/ai_root", 1),
        ("pipeline/train", 1),
        ("pipeline/evaluate", 1),
        ("dataloader/fetch.iter", 8),
        ("compute/compute", 8),
        ("checkpoint/init", 1),
    ] {
        assert_eq!(counts.get(name), Some(&count), "{name}: {counts:?}");
    }
    let saves = bed.json("out/summary.json")["feedline"]["checkpoints"]["saves"].as_u64();
    let captures = of(&rows, "checkpoint/capture");
    assert_eq!(Some(captures.len() as u64), saves, "{counts:?}");
    assert_eq!(of(&rows, "checkpoint/commit").len(), captures.len());
    assert_inside(&rows, "checkpoint/capture", "pipeline/train");
    let evaluation = of(&rows, "pipeline/evaluate")[0];
    let within = of(&rows, "dataloader/fetch.iter");
    assert_eq!(within.iter().filter(|row| evaluation.contains(row)).count(), 4);
}

#[test]
fn all_ways_of_reading_are_in_the_trace() {
    for sets in [
        &["reader.io_engine=io_uring"][..],
        &["reader.io_engine=mmap"],
        &["reader.read_model=deep", "reader.queue_depth=3"],
        &["reader.read_model=deep", "reader.io_engine=io_uring"],
        &["reader.read_threads=0"],
        &["framework=tensorflow", "reader.data_loader=tensorflow"],
        &["reader.data_loader=dali"],
    ] {
        let bed = Bed::with_data();
        let rows = run(&bed, &[], sets);
        for op in ["open", "stat", "read"] {
            assert_eq!(traced(&rows, &format!("POSIX/{op}")), storage(&bed, op), "{op} {sets:?}");
        }
        for name in ["data/item", "dataloader/batch", "dataloader/fetch.iter"] {
            let count = if name == "data/item" { 8 } else { 4 };
            assert_eq!(of(&rows, name).len(), count, "{name} {sets:?}");
        }
        let files: BTreeSet<_> =
            of(&rows, "POSIX/read").iter().map(|row| row.file.clone().unwrap()).collect();
        assert_eq!(files.len(), 8, "{sets:?}");
        let steps: BTreeSet<_> =
            of(&rows, "dataloader/batch").iter().map(|row| row.tags.step.unwrap()).collect();
        assert_eq!(steps, (1..=4).collect(), "{sets:?}");
    }
}

#[test]
fn object_stores_are_a_layer_of_their_own() {
    let (bed, server) = (Bed::new(), Server::new(&[]));
    let args = ["run", "small.yaml", "--data", "s3://bucket/set", "--generate", "--out", "out"];
    let args = [&args[..], &["--trace", "trace"]].concat();
    let ran = server.feedline(&bed, &server.direct, &args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows = read(&bed.path("trace"), 0);
    for op in ["open", "stat", "read"] {
        assert_eq!(traced(&rows, &format!("S3/{op}")), storage(&bed, op), "{op}");
    }
    let files: BTreeSet<_> =
        of(&rows, "S3/read").iter().map(|row| row.file.clone().unwrap()).collect();
    let expected = (0..8).map(|file| format!("s3://bucket/set/train/img_{file}_of_8.npz"));
    assert_eq!(files, expected.collect());
}

#[test]
fn failed_calls_say_why() {
    let bed = Bed::with_data();
    let args = ["small.yaml", "--out", "out", "--trace", "trace", "--store-fault", "read:3:EIO"];
    assert_eq!(bed.run(&args).code, Some(2));
    // The process says itself how it ended, and what it recorded before is there.
    let rows = read(&bed.path("trace"), 2);
    let failed: Vec<_> = rows.iter().filter(|row| row.errno != 0).collect();
    let [row] = failed[..] else { panic!("{failed:?}") };
    assert_eq!((row.name.as_str(), row.errno, row.result), ("POSIX/read", 5, Some(-1)));
    // After the first buffer and the end record, NumPy asks for a byte that is not there.
    assert_eq!((row.tags.size, row.offset), (Some(1), Some(FILE_BYTES as i64)));
}

#[test]
fn a_trace_goes_where_nothing_is() {
    let bed = Bed::with_data();
    bed.write("trace/mine", "mine");
    bed.refuses(
        &["small.yaml", "--out", "out", "--trace", "trace"],
        "error: --trace: trace is not empty\nhint: choose a new folder, or remove this one\n",
    );
    bed.runs(&["small.yaml", "--out", "out", "--trace", "trace2", "--dry-run"]);
    assert!(!bed.path("trace2").exists());
}
