//! Runs that are cut short: by Ctrl-C, by a reader that goes away.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use crate::bed::{Bed, RESULT_FILES};

#[test]
fn ctrl_c_while_training_writes_what_there_is() {
    let bed = Bed::with_data();
    let run = bed.start(&["small.yaml", "--out", "out", "--epochs", "100000"]);
    bed.wait_for_log("out/dlio.log", "Ending epoch 1 - 4 steps");
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130));
    assert_eq!(ran.stderr.lines().last(), Some("stopped: the results so far are in out"));
    assert!(ran.stdout.starts_with("INTERRUPTED, "), "{}", ran.stdout);

    let summary = bed.json("out/summary.json");
    assert_eq!(summary["feedline"]["interrupted"], true);
    assert_eq!(summary["feedline"]["comparable"], false);
    let output = bed.json("out/0_output.json");
    let steps: usize = (1..=summary["epochs"].as_u64().unwrap())
        .map(|epoch| output[epoch.to_string()]["compute"]["block1"].as_array().unwrap().len())
        .sum();
    assert!(steps >= 4, "{steps}");
    assert_eq!(summary["feedline"]["steps"], steps);
    let left: Vec<_> = bed.tree().into_iter().filter(|path| path.starts_with("out/")).collect();
    assert_eq!(left, RESULT_FILES);
}

#[test]
fn ctrl_c_in_the_middle_of_a_long_step_ends_it() {
    let bed = Bed::with_data();
    let run = bed.start(&["small.yaml", "-o", "out", "--set", "train.computation_time=1000"]);
    bed.wait_for_log("out/dlio.log", "Starting block 1");
    run.signal("TERM");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(bed.json("out/summary.json")["feedline"]["interrupted"], true);
}

#[test]
fn ctrl_c_stops_all_ranks() {
    let bed = Bed::with_data();
    let run = bed.start(&["small.yaml", "-o", "out", "-n", "2", "--epochs", "100000"]);
    bed.wait_for_log("out/dlio.log", "Ending epoch 1 - 2 steps");
    run.signal("INT");
    assert_eq!(run.wait().code, Some(130));
    let steps = |rank: u32| {
        let output = bed.json(&format!("out/{rank}_output.json"));
        let epochs = bed.json("out/summary.json")["epochs"].as_u64().unwrap();
        (1..=epochs)
            .map(|e| output[e.to_string()]["compute"]["block1"].as_array().unwrap().len())
            .sum::<usize>()
    };
    // The signal may find one rank waiting for a batch and the other already computing.
    assert!(steps(0).abs_diff(steps(1)) <= 1, "{} and {}", steps(0), steps(1));
}

/// 256 MB would be made; the signal comes after the first file.
#[test]
fn ctrl_c_while_generating_leaves_complete_files_only() {
    let bed = Bed::new();
    let run = bed.start(&[
        "small.yaml",
        "--generate",
        "--out",
        "out",
        "--set",
        "dataset.num_files_train=4000",
        "--set",
        "dataset.record_length_bytes=65536",
    ]);
    let files = |bed: &Bed| -> Vec<(String, u64)> {
        let Ok(entries) = fs::read_dir(bed.path("data/train")) else { return Vec::new() };
        let entries = entries.map(|entry| entry.unwrap());
        entries
            .filter_map(|e| Some((e.file_name().to_str()?.to_owned(), e.metadata().ok()?.len())))
            .collect()
    };
    let complete = |name: &str| name.starts_with("img_") && name.ends_with("_of_4000.npz");
    bed.wait_until("the first file", |bed| files(bed).iter().any(|(name, _)| complete(name)));
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let left = files(&bed);
    assert!(ran.stdout.starts_with(&format!("INTERRUPTED: {} of 4,000 files made", left.len())));
    for (name, size) in left {
        assert!(complete(&name), "{name}");
        assert_eq!(size, 66034, "{name}");
    }
    assert!(!bed.path("out/summary.json").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bed = Bed::with_data();
    let mut command = bed.feedline(&["run", "small.yaml", "--json", "--out", "out"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    assert!(stderr.lines().all(|line| line.starts_with("epoch 1/1: step ")), "{stderr}");
    assert!(bed.path("out/summary.json").exists());
}

/// `feedline run … 2>&1 | head -1` must not end the run at its second line.
#[test]
fn a_reader_of_the_progress_that_goes_away_is_no_error() {
    let bed = Bed::with_data();
    let mut command = bed.feedline(&["run", "small.yaml", "--out", "out"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(bed.path("out/summary.json").exists());
}
