//! Plans of small workloads, in full.

use feedline_workload::{BUILT_IN, Override, Source, compose, presets, resolve};

use super::*;
use crate::style::strip;

fn preset(name: &str, overrides: &[&str]) -> Workload {
    let preset = presets::find(name).expect("a shipped workload");
    let source = Source { name, origin: BUILT_IN, text: preset.yaml };
    let overrides: Vec<_> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
    let composed = compose(source, &overrides, &|_| String::new()).unwrap();
    resolve(&composed).unwrap().workload
}

#[track_caller]
fn check(workload: &Workload, ranks: u32, semantics: Semantics, expected: &str) {
    let made = Plan::new(workload, ranks, semantics).unwrap();
    let text = plan(&made, workload, Style { width: 80, color: false });
    assert_eq!(text, expected);
    assert_eq!(strip(&plan(&made, workload, Style { width: 80, color: true })), text);
}

#[test]
fn training_with_evaluation_and_generation() {
    check(
        &preset("default", &["++workload.workflow.generate_data=True"]),
        2,
        Semantics::Feedline,
        "\
DRY RUN: nothing was written or read; a run would generate data, train and
  evaluate

generate    64 npz files in data/default/train (in 2 sub-folders), 262 kB of
            samples
            8 npz files in data/default/valid (in 2 sub-folders), 32.8 kB of
            samples
train       2 accelerators, 10 epochs × 8 steps, batch 4, 1 reader thread each
reading     pytorch loader, framework model (the calls of NumPy on CPython 3.9
            to 3.13), pread through the page cache
each epoch  all 64 samples, 262 kB, sequential order, `strided` sharding
evaluate    10 evaluations, each of 4 steps, all 8 samples, 32.8 kB
time        100 s if storage were infinitely fast: 80 steps of 1.00 s and 40
            evaluation steps of 500 ms
",
    );
}

#[test]
fn training_with_checkpoints() {
    check(
        &preset("unet3d_h100", &[]),
        8,
        Semantics::Feedline,
        "\
DRY RUN: nothing was written or read; a run would train and checkpoint

data        168 npz files in data/unet3d/train, 25.3 GB of samples
train       8 accelerators, 5 epochs × 3 steps, batch 7, 4 reader threads each
reading     pytorch loader, framework model (the calls of NumPy on CPython 3.9
            to 3.13), pread through the page cache
each epoch  all 168 samples, 25.3 GB, permuted order, `strided` sharding
checkpoints 1 save of 499 MB in checkpoints/unet3d
time        4.84 s if storage were infinitely fast: 15 steps of 323 ms
",
    );
}

#[test]
fn checkpoints_every_few_steps_and_a_limit_of_steps() {
    let overrides = [
        "++workload.train.max_steps=40",
        "++workload.workflow.checkpoint=True",
        "++workload.workflow.evaluation=False",
        "++workload.checkpoint.steps_between_checkpoints=5",
        "++workload.model.parallelism.zero_stage=1",
    ];
    check(
        &preset("default", &overrides),
        1,
        Semantics::Dlio,
        "\
DRY RUN: nothing was written or read; a run would train and checkpoint

data        64 npz files in data/default/train (in 2 sub-folders), 262 kB of
            samples
train       1 accelerator, 40 steps in 3 epochs, batch 4, 1 reader thread each,
            semantics of DLIO main (e1919d7)
reading     pytorch loader, framework model (the calls of NumPy on CPython 3.9
            to 3.13), pread through the page cache
each epoch  all 64 samples, 262 kB, sequential order, `dlio` sharding
checkpoints 7 saves of 10.2 kB in ./checkpoints
time        40.0 s if storage were infinitely fast: 40 steps of 1.00 s
",
    );
}

#[test]
fn generation_only() {
    let overrides = [
        "++workload.workflow.generate_data=True",
        "++workload.workflow.train=False",
        "++workload.dataset.record_element_type=float32",
    ];
    check(
        &preset("default", &overrides),
        1,
        Semantics::Feedline,
        "\
DRY RUN: nothing was written or read; a run would generate data

generate    64 npz files in data/default/train (in 2 sub-folders), 1.05 MB of
            samples
            8 npz files in data/default/valid (in 2 sub-folders), 131 kB of
            samples
",
    );
}

#[test]
fn what_is_done_about_the_framework_is_part_of_the_plan() {
    let workload = preset("unet3d_h100", &[]);
    let mut made = Plan::new(&workload, 1, Semantics::Feedline).unwrap();
    let why = "this machine has no calibration".to_owned();
    made.framework = FrameworkPlan::LeftOut(feedline_bench::LeftOut { why, forecast: None });
    let text = plan(&made, &workload, Style { width: 100, color: false });
    assert!(
        text.contains(
            "\nframework   left out, this machine has no calibration; measure it: feedline calibrate\n"
        ),
        "{text}"
    );
}
