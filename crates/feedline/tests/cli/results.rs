//! The files of a run: DLIO's keys, and an explanation for every number.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bed::{Bed, blurred, ran};

/// A run with every phase, on two ranks.
fn full_run() -> Bed {
    let bed = Bed::new();
    let mut args = vec!["small.yaml", "--generate", "--out", "out", "-n", "2", "--epochs", "2"];
    for setting in [
        "workflow.evaluation=true",
        "workflow.checkpoint=true",
        "dataset.num_files_eval=4",
        "dataset.num_files_train=12",
        "evaluation.eval_time=0.001",
    ] {
        args.extend(["--set", setting]);
    }
    bed.runs(&args);
    bed
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn set(words: &'static str) -> BTreeSet<&'static str> {
    words.split_whitespace().collect()
}

#[test]
fn the_summary_has_the_keys_of_dlio_and_one_more() {
    let bed = full_run();
    let summary = bed.json("out/summary.json");
    let expected = set("start end num_accelerators num_hosts hostname num_files_train \
        num_files_eval num_samples_per_file host_cpu_count host_memory_GB host_processor_name \
        host_cpuinfo host_meminfo data_size_per_host_GB potential_caching epochs metric feedline");
    assert_eq!(keys(&summary), expected);
    let mut metrics = set("save_checkpoint_io_mean_GB_per_second \
        save_checkpoint_io_stdev_GB_per_second save_checkpoint_duration_mean_seconds \
        save_checkpoint_duration_stdev_seconds checkpoint_size_GB");
    let nine = set("au_percentage au_mean_percentage au_meet_expectation au_stdev_percentage \
        throughput_samples_per_second throughput_mean_samples_per_second \
        throughput_stdev_samples_per_second io_mean_MB_per_second io_stdev_MB_per_second");
    let phases: Vec<String> = ["train", "eval"]
        .iter()
        .flat_map(|phase| nine.iter().map(move |name| format!("{phase}_{name}")))
        .collect();
    metrics.extend(phases.iter().map(String::as_str));
    assert_eq!(keys(&summary["metric"]), metrics);
    let expected = [("num_accelerators", 2), ("num_hosts", 1), ("num_files_train", 12)];
    for (key, value) in expected.into_iter().chain([("num_files_eval", 4), ("epochs", 2)]) {
        assert_eq!(summary[key], value, "{key}");
    }
    assert_eq!(summary["data_size_per_host_GB"], 12.0 * 4096.0 / f64::from(1 << 30));
    assert!(bed.read("out/summary.json").starts_with("{\n    \"start\": \""));
}

/// A run that only trains has only the nine keys of training.
#[test]
fn a_phase_that_did_not_run_has_no_keys() {
    let bed = Bed::with_data();
    bed.runs(&["small.yaml", "--out", "out"]);
    let summary = bed.json("out/summary.json");
    assert_eq!(keys(&summary["metric"]).len(), 9);
    assert!(keys(&summary["metric"]).iter().all(|key| key.starts_with("train_")));
}

/// The dotted names of all numbers, lists of numbers included.
fn numbers(value: &Value, name: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::Number(_) => drop(names.insert(name.to_owned())),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, name, names)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let dot = if name.is_empty() { "" } else { "." };
            numbers(value, &format!("{name}{dot}{key}"), names);
        }),
        _ => {}
    }
}

#[test]
fn every_number_is_explained() {
    let bed = full_run();
    let summary = bed.json("out/summary.json");
    let mut names = BTreeSet::new();
    numbers(&summary["metric"], "", &mut names);
    numbers(&summary["feedline"], "", &mut names);
    assert!(names.contains("storage.read.calls") && names.contains("train_au_percentage"));
    let unexplained: Vec<_> = names
        .iter()
        .filter(|name| ran(&mut bed.feedline(&["explain", name])).code != Some(0))
        .collect();
    assert_eq!(unexplained, [""; 0]);
}

#[test]
fn an_operation_is_explained_by_the_general_name() {
    let bed = Bed::new();
    let one = ran(&mut bed.feedline(&["explain", "storage.read.calls"]));
    let general = ran(&mut bed.feedline(&["explain", "storage.OP.calls"]));
    assert_eq!(general.code, Some(0));
    assert_eq!((one.code, one.stdout), (Some(0), general.stdout));
}

#[test]
fn the_lists_of_a_rank_have_an_entry_for_each_step() {
    let bed = full_run();
    for rank in 0..2 {
        let output = bed.json(&format!("out/{rank}_output.json"));
        let expected = set("host_memory_GB host_cpu_count host_processor_name potential_caching \
            host_cpuinfo host_meminfo hostname 1 2");
        assert_eq!(keys(&output), expected);
        for epoch in ["1", "2"] {
            let epoch = &output[epoch];
            assert_eq!(keys(epoch), set("load proc compute throughput au host_meminfo end"));
            for list in ["load", "proc", "compute"] {
                assert_eq!(keys(&epoch[list]), set("block1 eval"));
                // 12 files in batches of 2, 4 in batches of 1, on two ranks.
                assert_eq!(epoch[list]["block1"].as_array().unwrap().len(), 3, "{list}");
                assert_eq!(epoch[list]["eval"].as_array().unwrap().len(), 2, "{list}");
            }
            let seconds = epoch["compute"]["block1"][0].as_f64().unwrap();
            assert!((0.01..1.0).contains(&seconds), "{seconds}");
            assert_eq!(keys(&epoch["au"]), set("block1 eval"));
            assert_eq!(keys(&epoch["throughput"]), set("block1 eval"));
        }
    }
}

#[test]
fn the_stats_of_an_epoch_have_the_keys_of_dlio() {
    let bed = full_run();
    let stats = bed.json("out/0_per_epoch_stats.json");
    assert_eq!(keys(&stats), set("1 2"));
    for epoch in ["1", "2"] {
        let epoch = &stats[epoch];
        assert_eq!(keys(epoch), set("start end duration block1 eval save_ckpt1"));
        assert_eq!(keys(&epoch["block1"]), set("start end duration"));
        assert_eq!(keys(&epoch["eval"]), set("start end duration"));
        assert_eq!(keys(&epoch["save_ckpt1"]), set("start end duration throughput"));
        assert!(epoch["duration"].is_string() && epoch["save_ckpt1"]["duration"].is_number());
    }
}

#[test]
fn the_log_tells_the_run_in_order() {
    let bed = full_run();
    let epoch = |number| {
        format!(
            "\
[OUTPUT] [date] Starting epoch {number}: 3 steps expected
[OUTPUT] [date] Starting block 1
[OUTPUT] [date] Ending block 1 - 3 steps completed in [time]
[OUTPUT] [date] Epoch {number} - Block 1 [Training] Accelerator Utilization [AU] (%): [number]
[OUTPUT] [date] Epoch {number} - Block 1 [Training] Throughput (samples/second): [number]
[OUTPUT] [date] Epoch {number} - Block 1 [Training] Computation time per step (second): \
[number]+/-[number] (set value: 0.01)
[OUTPUT] [date] Saving checkpoint 1 after step 3 of epoch {number}
[OUTPUT] [date] Finished saving checkpoint 1 for epoch {number} in [time]; Throughput: [rate]
[OUTPUT] [date] Ending epoch {number} - 3 steps completed in [time]
[OUTPUT] [date] Starting eval - 2 steps expected
[OUTPUT] [date] Ending eval - 2 steps completed in [time]
[OUTPUT] [date] Epoch {number} [Eval] Accelerator Utilization [AU] (%): [number]
[OUTPUT] [date] Epoch {number} [Eval] Throughput (samples/second): [number]
"
        )
    };
    let factors = "(samples per file * num files / batch size / comm size)";
    let begin = format!(
        "\
[OUTPUT] [date] Running [Generating data & Training & Evaluation & Checkpointing] with 2 process(es)
[OUTPUT] [date] Starting data generation
[OUTPUT] [date] Generation done: 16 files, 73504 bytes
[OUTPUT] [date] Max steps per epoch: 3 = 1 * 12 / 2 / 2 {factors}
[OUTPUT] [date] Steps per eval: 2 = 1 * 4 / 1 / 2 {factors}
[OUTPUT] [date] Model size: [size]
[OUTPUT] [date] Optimizer state size: [size]
[OUTPUT] [date] Total checkpoint size: [size]
"
    );
    let log = blurred(&bed.read("out/dlio.log"));
    assert!(log.starts_with(&(begin + &epoch(1) + &epoch(2))), "{log}");
}

/// A block without steps has no rate; a negative one would be nonsense that tools then average.
#[test]
fn no_rate_is_negative() {
    let bed = Bed::with_data();
    let args =
        ["--set", "workflow.checkpoint=true", "--set", "checkpoint.steps_between_checkpoints=4"];
    bed.runs(&[&["small.yaml", "--out", "out"], &args[..]].concat());
    let throughput = bed.json("out/0_output.json")["1"]["throughput"].clone();
    assert_eq!(keys(&throughput), set("block1 block2"));
    assert!(throughput["block2"].as_f64().is_none_or(|rate| rate >= 0.0), "{throughput}");
}

#[test]
fn the_files_of_hydra_are_those_of_the_run() {
    let bed = full_run();
    let overrides = bed.read("out/.hydra/overrides.yaml");
    assert!(overrides.lines().all(|line| line.starts_with("- ") && line.contains('=')));
    let config = bed.read("out/.hydra/config.yaml");
    assert!(config.contains("    num_files_train: 12\n"), "{config}");
    assert!(config.contains("    generate_data: true\n"), "{config}");
    // What a run wrote down can be run again.
    bed.runs(&["out/.hydra/config.yaml", "--dry-run"]);
    assert!(bed.read("out/.hydra/hydra.yaml").starts_with("hydra:\n"));
}
