//! Runs that do what was asked of them.

use std::fs;

use serde_json::{Value, json};

use crate::bed::{Bed, FILE_BYTES, RESULT_FILES, SMALL, blurred, ran};

/// Any utilization meets this target, whatever the machine is busy with.
const EASY: &str = "metric.au=0";

fn data_files(total: u32) -> Vec<String> {
    (0..total).map(|number| format!("data/train/img_{number}_of_{total}.npz")).collect()
}

/// The names and sizes of the files below `folder`, without manifests.
fn sizes(bed: &Bed, folder: &str) -> Vec<(String, u64)> {
    let files = bed.tree().into_iter().filter(|p| p.starts_with(folder) && !p.ends_with('/'));
    let own = ["/feedline.manifest.json", "/.feedline-checkpoint.json"];
    let files = files.filter(|path| !own.iter().any(|name| path.ends_with(name)));
    files.map(|path| (path.clone(), fs::metadata(bed.path(&path)).unwrap().len())).collect()
}

/// Number at a path below `feedline` in a run's summary.
fn own(bed: &Bed, pointer: &str) -> Value {
    bed.json("out/summary.json")["feedline"].pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn a_first_run_makes_the_data_and_shows_one_screen() {
    let bed = Bed::new();
    let ran = bed.runs(&["small.yaml", "--generate", "--out", "out", "--set", EASY]);
    assert_eq!(
        blurred(&ran.stdout),
        "\
FED: accelerators were busy [share] of the time, target [share]

workload small: 1 accelerator, 1 epoch × 4 steps, batch 2, 8 npz files
AU [share] (stdev 0.0 over 1 epoch), target [share]; strict [share], worst rank [share]
throughput [rate], [rate] of samples; DLIO counts [rate], [rate]
ranks done first after [time], last after [time]

where step time went, per rank
compute [share] [time]
storage [share] [time]
decode [share] [time]
workers [share] [time]
peers [share] [time]

storage 56 reads of [size] in all, p50 [time], p99 [time]; 8 opens
reading framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to 4,096 bytes asked per read, median 4,096
framework not in these numbers, this machine has no calibration; with PyTorch's reader this client would reach about [share]; measure it: feedline calibrate
page cache held [share] of what the epoch opened
generated 8 files, [size] in [time]: [rate]

warnings - up to [share] of the data lay in the page cache (epochs: 1 of 1): reads show the speed of \
memory, not of the storage
- the run is short (counted steps: 3, [time]): start-up weighs in the numbers
next the reads came from the page cache: measure the storage with --cache drop, or read past the \
cache with --set reader.odirect=true
results out/summary.json and the files of each rank next to it
"
    );
    let told = blurred(&ran.stderr);
    let mut lines = told.lines();
    assert_eq!(lines.next(), Some("generate: 0/8 files, 0 B of [size]"));
    // Further lines come as time passes, so their number is that of the machine.
    assert!(lines.all(|line| line.starts_with("generate: ") || line.starts_with("epoch 1/1: ")));
    let expected: Vec<_> = data_files(8).into_iter().map(|file| (file, FILE_BYTES)).collect();
    assert_eq!(sizes(&bed, "data/"), expected);
    let out: Vec<_> = bed.tree().into_iter().filter(|path| path.starts_with("out")).collect();
    assert_eq!(out, RESULT_FILES);
}

#[test]
fn a_second_run_reads_what_the_first_made() {
    let bed = Bed::new();
    bed.runs(&["small.yaml", "--generate", "--out", "first"]);
    let made = |bed: &Bed| fs::metadata(bed.path("data/train/img_0_of_8.npz")).unwrap().modified();
    let before = made(&bed).unwrap();
    bed.runs(&["small.yaml", "--out", "out"]);
    assert_eq!(made(&bed).unwrap(), before);
    assert_eq!(own(&bed, "/generation"), Value::Null);
    assert_eq!(own(&bed, "/storage/open/calls"), 8);
    // NumPy brings the first buffer twice, and the end of the archive in three pieces.
    let sizes = own(&bed, "/storage/read/asked_bytes/sizes");
    let size = |bytes: u64, calls: u64| json!({"bytes": bytes, "calls": calls});
    assert_eq!(sizes, json!([size(4096, 40), size(1, 8), size(23, 8)]));
    let tail = 22 + 42 + 124;
    assert_eq!(own(&bed, "/storage/read/bytes"), 8 * (4096 + tail + FILE_BYTES));
    assert_eq!(own(&bed, "/read_model"), "framework");
    assert_eq!(own(&bed, "/reader_library"), "NumPy");
    assert_eq!(own(&bed, "/reader_python"), "CPython 3.9 to 3.13");
}

#[test]
fn results_have_a_folder_of_their_own_each() {
    let bed = Bed::with_data();
    for _ in 0..3 {
        bed.runs(&["small.yaml"]);
    }
    let summaries = bed.tree().into_iter().filter(|path| path.ends_with("/summary.json"));
    let below = |path: &String| path.starts_with("feedline_results/small/20");
    assert_eq!(summaries.filter(below).count(), 3);
}

#[test]
fn generate_only_leaves_no_summary() {
    let bed = Bed::new();
    let ran = bed.runs(&["small.yaml", "--generate-only", "--out", "out"]);
    assert_eq!(
        blurred(&ran.stdout),
        "\
DATA READY: 8 files made, nothing trained

workload small: 8 npz files

generated 8 files, [size] in [time]: [rate]

next train on the data: leave --generate-only out
results out (log only: without training, no summary is written)
"
    );
    let json: Vec<_> = bed.tree().into_iter().filter(|path| path.ends_with(".json")).collect();
    assert_eq!(json, ["data/feedline.manifest.json"]);
    assert_eq!(sizes(&bed, "data/").len(), 8);
}

#[test]
fn json_is_one_strict_object() {
    let bed = Bed::with_data();
    // Two steps: DLIO's throughput does not exist, which must be null and not NaN.
    let ran = bed.runs(&["small.yaml", "--json", "--out", "out", "--accelerators", "2"]);
    let object = ran.json();
    assert_eq!(object["feedline_schema"], 1);
    assert_eq!(object["results"], "out");
    assert_eq!(object["summary"], bed.json("out/summary.json"));
    let rate = &object["summary"]["metric"]["train_throughput_mean_samples_per_second"];
    assert_eq!(*rate, Value::Null);
}

#[test]
fn a_requirement_that_is_met_is_silent() {
    let bed = Bed::with_data();
    let ran = bed.runs(&[
        "small.yaml",
        "--set",
        EASY,
        "--require",
        "au",
        "--require",
        "storage.open.calls<=8",
        "--require",
        "steps >= 4",
    ]);
    assert!(!ran.stderr.contains("missed"), "{}", ran.stderr);
}

#[test]
fn a_requirement_that_is_missed_is_exit_code_1() {
    let bed = Bed::with_data();
    let args = ["--require", "storage.open.calls<=7", "--require", "steps>=4.5", "--out", "out"];
    let ran = bed.run(&[&["small.yaml"], &args[..]].concat());
    assert_eq!(ran.code, Some(1));
    let missed: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("missed")).collect();
    assert_eq!(
        missed,
        ["missed: storage.open.calls is 8, required <= 7", "missed: steps is 4, required >= 4.5",]
    );
    assert!(bed.path("out/summary.json").exists());
}

#[test]
fn the_target_can_be_missed() {
    // Computing takes no time, so no accelerator is ever busy for 90 % of it.
    let bed = Bed::with_data();
    let ran = bed.run(&["small.yaml", "--require", "au", "--set", "train.computation_time=0"]);
    assert_eq!(ran.code, Some(1));
    let last = blurred(ran.stderr.lines().last().unwrap());
    assert_eq!(last, "missed: train_au_mean_percentage is [number], required >= 90\n");
}

#[test]
fn every_rank_reads_its_share_and_all_of_it() {
    let bed = Bed::with_data();
    bed.runs(&["small.yaml", "--accelerators", "2", "--epochs", "3", "--out", "out"]);
    let (ranks, epochs, steps, batch) = (2, 3, 2, 2);
    assert_eq!(own(&bed, "/storage/open/calls"), ranks * epochs * steps * batch);
    assert_eq!(own(&bed, "/steps"), epochs * steps);
    assert_eq!(own(&bed, "/accelerators"), 2);
    assert_eq!(bed.json("out/summary.json")["epochs"], epochs);
    for rank in 0..2 {
        assert!(bed.path(format!("out/{rank}_output.json")).exists());
        assert!(bed.path(format!("out/{rank}_per_epoch_stats.json")).exists());
    }
}

#[test]
fn set_changes_a_key_and_is_recorded() {
    let bed = Bed::with_data();
    let args = ["--set", "reader.batch_size=4", "--set", "train.total_training_steps=1"];
    bed.runs(&[&["small.yaml", "--out", "out"], &args[..]].concat());
    assert_eq!(own(&bed, "/storage/open/calls"), 4);
    let overrides = bed.read("out/.hydra/overrides.yaml");
    assert!(overrides.contains("reader.batch_size=4"), "{overrides}");
    assert!(bed.read("out/.hydra/config.yaml").contains("    batch_size: 4\n"));
}

#[test]
fn evaluation_reads_its_own_files() {
    let bed = Bed::new();
    let args = ["--set", "workflow.evaluation=true", "--set", "dataset.num_files_eval=4"];
    let tail = ["--set", "evaluation.eval_time=0.001", "--epochs", "2", "--generate"];
    bed.runs(&[&["small.yaml", "--out", "out"], &args[..], &tail].concat());
    assert_eq!(sizes(&bed, "data/valid/").len(), 4);
    let summary = bed.json("out/summary.json");
    assert_eq!(summary["metric"]["eval_au_percentage"].as_array().unwrap().len(), 2);
    assert_eq!(bed.json("out/0_output.json")["2"]["compute"]["eval"].as_array().unwrap().len(), 4);
}

#[test]
fn checkpoints_have_the_size_that_was_set() {
    let bed = Bed::with_data();
    let args = ["--set", "workflow.checkpoint=true", "--set", "model.model_size_bytes=5000"];
    bed.runs(&[&["small.yaml", "--out", "out", "--epochs", "2"], &args[..]].concat());
    let file = |epoch| format!("checkpoints/global_epoch{epoch}_step4/model_states-0.pt");
    // 5000 bytes in a file as torch.save writes it.
    assert_eq!(sizes(&bed, "checkpoints/"), [(file(1), 6569), (file(2), 6569)]);
    let gib = bed.json("out/summary.json")["metric"]["checkpoint_size_GB"].as_f64().unwrap();
    assert_eq!(gib, 5000.0 / f64::from(1 << 30));
}

#[test]
fn checkpoints_by_steps_split_the_epoch_into_blocks() {
    let bed = Bed::with_data();
    let args =
        ["--set", "workflow.checkpoint=true", "--set", "checkpoint.steps_between_checkpoints=3"];
    bed.runs(&[&["small.yaml", "--out", "out"], &args[..]].concat());
    let made: Vec<_> = sizes(&bed, "checkpoints/").into_iter().map(|(name, _)| name).collect();
    assert_eq!(made, ["checkpoints/global_epoch1_step3/model_states-0.pt"]);
    let stats = bed.json("out/0_per_epoch_stats.json");
    let mut keys: Vec<_> = stats["1"].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["block1", "block2", "duration", "end", "save_ckpt1", "start"]);
    let compute = &bed.json("out/0_output.json")["1"]["compute"];
    assert_eq!(compute["block1"].as_array().unwrap().len(), 3);
    assert_eq!(compute["block2"].as_array().unwrap().len(), 1);
}

#[test]
fn subfolders_take_files_in_turn() {
    let bed = Bed::new();
    let sub = ["--set", "dataset.num_subfolders_train=2"];
    bed.runs(&[&["small.yaml", "--generate", "--out", "first"], &sub[..]].concat());
    bed.runs(&[&["small.yaml", "--out", "out"], &sub[..]].concat());
    let files: Vec<_> = sizes(&bed, "data/").into_iter().map(|(name, _)| name).collect();
    let file = |number: u32| format!("data/train/{}/img_{number}_of_8.npz", number % 2);
    assert_eq!(files, [0, 2, 4, 6, 1, 3, 5, 7].map(file));
    assert_eq!(own(&bed, "/storage/open/calls"), 8);
}

/// Generates and trains with these settings; the size of a data file, if all have the same.
#[track_caller]
fn generated(bed: &Bed, settings: &[&str]) -> Option<u64> {
    let settings: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    bed.runs(&[&["small.yaml", "--generate", "--out", "out"], &settings[..]].concat());
    assert_eq!(own(bed, "/steps"), 4);
    let sizes = sizes(bed, "data/train/");
    assert_eq!(sizes.len(), 8);
    let size = sizes.first()?.1;
    sizes.iter().all(|(_, other)| *other == size).then_some(size)
}

#[test]
fn npy_files_are_a_header_and_the_sample() {
    // 128 bytes of header, 64 x 64 bytes.
    assert_eq!(generated(&Bed::new(), &["dataset.format=npy"]), Some(4224));
}

#[test]
fn dimensions_and_element_type_give_the_size() {
    let settings = [
        "dataset.format=npy",
        "dataset.record_dims=[3,5,7]",
        "dataset.record_element_type=float32",
    ];
    assert_eq!(generated(&Bed::new(), &settings), Some(128 + 3 * 5 * 7 * 4));
}

#[test]
fn synthetic_files_are_made_and_never_read() {
    let bed = Bed::new();
    generated(&bed, &["dataset.format=synthetic"]);
    assert_eq!(own(&bed, "/storage/read/bytes"), Value::Null);
}

#[test]
fn without_reader_threads_the_rank_reads_itself() {
    let bed = Bed::with_data();
    bed.runs(&["small.yaml", "--out", "out", "--set", "reader.read_threads=0"]);
    assert_eq!(own(&bed, "/storage/open/calls"), 8);
}

/// `/tmp` may be a file system without direct I/O, so the data lies beside the binary.
#[test]
fn direct_reads_read_the_same_samples() {
    let bed = Bed::new();
    let beside = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let data = tempfile::tempdir_in(beside).unwrap();
    let data = data.path().to_str().unwrap();
    let direct = ["--data", data, "--set", "reader.odirect=true"];
    bed.runs(&[&["small.yaml", "--generate", "--out", "out"], &direct[..]].concat());
    assert_eq!(own(&bed, "/storage/open/calls"), 8);
    assert_eq!(own(&bed, "/steps"), 4);
    let next = own(&bed, "/next_step");
    assert!(!next.as_str().unwrap().contains("odirect"), "already on: {next}");
}

#[test]
fn a_command_line_of_hydra_is_understood() {
    let bed = Bed::new();
    bed.write("conf/workload/mine.yaml", SMALL);
    let ran = bed.runs(&[
        "workload=mine",
        "++workload.workflow.generate_data=True",
        "++workload.train.epochs=2",
        "hydra.run.dir=run/here",
        "++hydra.output_subdir=dlio_config",
        "--config-dir=conf",
    ]);
    assert!(ran.stdout.contains("workload    mine: 1 accelerator, 2 epochs"), "{}", ran.stdout);
    assert_eq!(bed.json("run/here/summary.json")["epochs"], 2);
    assert_eq!(
        bed.read("run/here/dlio_config/overrides.yaml"),
        "- workload=mine\n- ++workload.workflow.generate_data=True\n- ++workload.train.epochs=2\n"
    );
    assert!(bed.read("run/here/dlio_config/config.yaml").starts_with("workload:\n"));
}

#[test]
fn quick_makes_data_once() {
    let bed = Bed::new();
    bed.runs(&["small.yaml", "--quick", "--out", "first"]);
    assert_ne!(bed.json("first/summary.json")["feedline"]["generation"], Value::Null);
    bed.runs(&["small.yaml", "--quick", "--out", "out"]);
    assert_eq!(own(&bed, "/generation"), Value::Null);
    assert_eq!(own(&bed, "/quick"), true);
    assert_eq!(own(&bed, "/comparable"), false);
    assert_eq!(sizes(&bed, "data/quick/").len(), 8);
}

#[test]
fn the_page_cache_is_dropped_kept_or_warmed() {
    let bed = Bed::with_data();
    let shares = |cache: &str, out: &str| {
        bed.runs(&["small.yaml", "--epochs", "2", "--cache", cache, "--out", out]);
        let own = bed.json(&format!("{out}/summary.json"))["feedline"].clone();
        assert_eq!(own["cache"], cache);
        own["cached_share_percentage"].clone()
    };
    assert_eq!(shares("drop", "a"), serde_json::json!([0.0, 0.0]));
    assert_eq!(shares("keep", "b"), serde_json::json!([100.0, 100.0]), "the last run read it");
    shares("drop", "c");
    assert_eq!(shares("warm", "d"), serde_json::json!([100.0, 100.0]));
}

#[test]
fn quick_reads_what_is_there_and_writes_nowhere_near_it() {
    let bed = Bed::with_data();
    let before = sizes(&bed, "data/");
    bed.runs(&["small.yaml", "--quick", "--out", "out"]);
    assert_eq!(own(&bed, "/generation"), Value::Null, "a complete set is read as it is");
    std::fs::remove_file(bed.path("data/train/img_3_of_8.npz")).unwrap();
    bed.runs(&["small.yaml", "--quick", "--out", "again"]);
    let others = |files: Vec<(String, u64)>| {
        files.into_iter().filter(|(path, _)| !path.contains("img_3") && !path.contains("quick"))
    };
    assert!(others(sizes(&bed, "data/")).eq(others(before)), "and an incomplete one is left alone");
    assert!(!bed.path("data/train/img_3_of_8.npz").exists());
    assert_eq!(sizes(&bed, "data/quick/").len(), 8);
}

#[test]
fn quick_gives_way_to_overrides_of_either_form() {
    let bed = Bed::new();
    bed.runs(&["small.yaml", "--quick", "--out", "a", "--set", "workflow.checkpoint=true"]);
    assert_eq!(sizes(&bed, "checkpoints/").len(), 1);
    let bed = Bed::new();
    bed.runs(&["small.yaml", "--quick", "--out", "b", "++workload.workflow.checkpoint=true"]);
    assert_eq!(sizes(&bed, "checkpoints/").len(), 1);
}

#[test]
fn as_dlio_is_recorded_and_counts_as_dlio_does() {
    let bed = Bed::new();
    bed.runs(&["small.yaml", "--generate", "--as-dlio", "--out", "out"]);
    assert_eq!(own(&bed, "/semantics"), "dlio");
    let summary = bed.json("out/summary.json");
    // Q7: a run that also generates takes the record for one byte.
    assert_eq!(summary["data_size_per_host_GB"], json!(8.0 / f64::from(1 << 30)));
}

#[test]
fn a_dry_run_writes_nothing() {
    let bed = Bed::new();
    let ran = bed.runs(&["small.yaml", "--generate", "--dry-run"]);
    assert_eq!((&*ran.stderr, bed.tree()), ("", Vec::new()));
    assert!(ran.stdout.contains("8 npz files"), "{}", ran.stdout);
}

#[test]
fn odd_names_of_folders_work() {
    let bed = Bed::new();
    let (data, out) = ("it's a \"dir\" $x,{y} [z] ü=1", "out 'q' ö");
    bed.runs(&["small.yaml", "--generate", "--data", data, "--out", out]);
    assert_eq!(sizes(&bed, &format!("{data}/train/")).len(), 8);
    std::os::unix::fs::symlink(bed.path(data), bed.path("link")).unwrap();
    bed.runs(&["./small.yaml", "--data", "./link/", "--out", "out"]);
    assert_eq!(own(&bed, "/storage/open/calls"), 8);
}

/// A run deletes what it was told not to keep, and nothing that was there before it.
#[test]
fn keep_files_false_deletes_the_data_and_nothing_else() {
    let bed = Bed::new();
    bed.write("mine/precious.txt", "mine");
    let args = ["small.yaml", "--generate", "--data", "mine", "--out", "out"];
    bed.runs(&[&args[..], &["--set", "dataset.keep_files=false"]].concat());
    let left: Vec<_> = bed.tree().into_iter().filter(|path| path.starts_with("mine/")).collect();
    assert_eq!(left, ["mine/", "mine/precious.txt"]);
    // What another run made is not this one's to delete.
    bed.runs(&[&args[..4], &["--out", "made"]].concat());
    bed.runs(&[&args[..4], &["--out", "again", "--set", "dataset.keep_files=false"]].concat());
    assert_eq!(sizes(&bed, "mine/train/").len(), 8);
}

#[test]
fn away_from_a_terminal_there_are_no_escape_codes() {
    let bed = Bed::with_data();
    for variable in ["NO_COLOR", "CLICOLOR_FORCE"] {
        let ran = ran(bed.feedline(&["run", "small.yaml"]).env(variable, "1"));
        assert_eq!(ran.code, Some(0));
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn the_shipped_workloads_are_listed_and_printed() {
    let bed = Bed::new();
    let list = ran(&mut bed.feedline(&["workloads"]));
    assert_eq!((list.code, &*list.stderr), (Some(0), ""));
    assert!(list.stdout.contains("unet3d_h100"), "{}", list.stdout);
    let one = ran(&mut bed.feedline(&["workloads", "unet3d_h100"]));
    assert!(one.stdout.contains("num_files_train: 168\n"), "{}", one.stdout);
    bed.write("printed.yaml", &one.stdout);
    bed.runs(&["printed.yaml", "--dry-run"]);
}
