//! A transformer of 276,032 parameters and its checkpoints, as tests of saving and loading see them.

use std::fs;

use serde_json::Value;

use crate::bed::{Bed, Ran};

/// Saves two checkpoints and loads them; about 3.9 MB each, whatever the ranks.
const TINY: &str = "\
framework: pytorch
workflow: {generate_data: False, train: False, checkpoint: True}
model:
  type: transformer
  num_layers: 4
  model_datatype: fp16
  optimizer_datatype: fp32
  parallelism: {tensor: 1, pipeline: 1, zero_stage: 1}
  transformer:
    vocab_size: 1000
    hidden_size: 64
    ffn_hidden_size: 128
    num_attention_heads: 8
    num_kv_heads: 4
checkpoint:
  checkpoint_folder: saved
  num_checkpoints_write: 2
  num_checkpoints_read: 2
  verify: True
  chunk_size: 65536
";

/// The names of the first checkpoints of a run that does nothing else.
pub(crate) const FIRST: &str = "global_epoch1_step1";
pub(crate) const SECOND: &str = "global_epoch1_step2";
/// What makes a folder a checkpoint.
pub(crate) const DESCRIPTION: &str = ".feedline-checkpoint.json";

/// Loads two checkpoints that are there.
pub(crate) const LOAD_ONLY: &str = "checkpoint.num_checkpoints_write=0";

/// A bed with the workload above in `tiny.yaml`.
pub(crate) fn bed() -> Bed {
    let bed = Bed::new();
    bed.write("tiny.yaml", TINY);
    bed
}

/// The arguments of a run of the workload into `out`, with these keys set.
pub(crate) fn args<'a>(ranks: &'a str, sets: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["tiny.yaml", "-n", ranks, "--out", "out", "--overwrite"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    args
}

/// Runs the workload with these keys set, which must end well.
#[track_caller]
pub(crate) fn runs(bed: &Bed, ranks: &str, sets: &[&str]) -> Ran {
    let ran = bed.run(&args(ranks, sets));
    assert_eq!(ran.code, Some(0), "{sets:?}: {ran:?}");
    ran
}

/// The run must end with exit code 2 and these lines, warnings aside.
#[track_caller]
pub(crate) fn refuses(bed: &Bed, ranks: &str, sets: &[&str], stderr: &str) {
    let ran = bed.run(&args(ranks, sets));
    let said = ran.stderr.lines().filter(|line| !line.starts_with("warning: "));
    assert_eq!(said.map(|line| format!("{line}\n")).collect::<String>(), stderr);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
}

/// What the last run says of its checkpoints.
pub(crate) fn results(bed: &Bed) -> Value {
    bed.json("out/summary.json")["feedline"]["checkpoints"].take()
}

/// Saves and loads of the last run.
pub(crate) fn counts(bed: &Bed) -> (u64, u64) {
    let results = results(bed);
    let count = |key: &str| results[key].as_u64().expect("a number");
    (count("saves"), count("loads"))
}

/// Everything in the folder of the checkpoints, hidden or not, sorted.
pub(crate) fn entries(bed: &Bed) -> Vec<String> {
    let Ok(entries) = fs::read_dir(bed.path("saved")) else { return Vec::new() };
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("a name in UTF-8")
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

/// The description of a checkpoint.
pub(crate) fn description(bed: &Bed, name: &str) -> Value {
    bed.json(&format!("saved/{name}/{DESCRIPTION}"))
}

/// Names and sizes of the files of a checkpoint, sorted, those that describe it left out.
pub(crate) fn files(bed: &Bed, name: &str) -> Vec<(String, u64)> {
    let entries = fs::read_dir(bed.path(format!("saved/{name}"))).expect("a checkpoint");
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        (name, entry.metadata().expect("a file").len())
    };
    let mut files: Vec<_> = entries.map(file).filter(|(name, _)| !name.starts_with('.')).collect();
    files.sort();
    files
}

/// Loads as many checkpoints as have a name, and finds every byte of them right.
#[track_caller]
pub(crate) fn verifies_all(bed: &Bed, ranks: &str) -> usize {
    let named = entries(bed).iter().filter(|name| name.starts_with("global_")).count();
    let reads = format!("checkpoint.num_checkpoints_read={named}");
    runs(bed, ranks, &[LOAD_ONLY, &reads]);
    assert_eq!(counts(bed), (0, named as u64));
    named
}

/// Changes one byte in the middle of a file.
pub(crate) fn flip(bed: &Bed, file: &str) {
    let mut bytes = fs::read(bed.path(file)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bed.write(file, bytes);
}
