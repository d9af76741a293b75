//! Plans a very large run and walks a whole epoch of its shuffled order, then says what that took.
//!
//! `plan_scale megatron_deepspeed_LLNL` plans the shipped workload with 277 million samples;
//! `plan_scale files 4300000` plans (names, sizes, order) a data set of that many files.
//! Prints one JSON object with the seconds, the peak memory and a checksum of the order.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use feedline_bench::{Plan, Semantics, sample_sizes};
use feedline_dataset::{EpochOrder, FileNames, Shuffle};
use feedline_workload::{BUILT_IN, Source, Workload, compose, presets, resolve};

const RANKS: u32 = 32;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let begin = Instant::now();
    let (workload, name_files) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["files", count] => (many_files(count.parse().expect("a number of files")), true),
        [name] => (preset(name), false),
        _ => panic!("usage: plan_scale WORKLOAD | plan_scale files COUNT"),
    };
    let plan =
        Plan::new(&workload, RANKS, Semantics::Feedline).expect("the workload can be planned");
    let phase = plan.train.expect("the workload trains");
    let mut bytes = 0u64;
    let mut name_bytes = 0u64;
    if name_files {
        let mut sizes = sample_sizes(&workload.dataset);
        let mut key = String::new();
        for number in 0..phase.dealing.index.files() {
            bytes += sizes.next_dims().iter().product::<u64>();
            key.clear();
            plan.train_files.write_key(number, &mut key);
            name_bytes += key.len() as u64;
        }
    }
    let planned = begin.elapsed();
    // Every place of the epoch that one rank reads.
    let order = EpochOrder::new(phase.dealing.index.clone(), Shuffle::Samples, 123);
    let places = phase.dealing.read(0, phase.steps);
    let checksum = (0..places).fold(0u64, |sum, n| {
        let sample = order.sample(phase.dealing.place(0, n));
        sum.rotate_left(1) ^ sample.file ^ (sample.index << 20)
    });
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{{\"samples\": {}, \"files\": {}, \"ranks\": {RANKS}, \"places_walked\": {places}, \
         \"plan_seconds\": {:.4}, \"seconds\": {seconds:.4}, \"peak_rss_bytes\": {}, \
         \"sample_bytes\": {bytes}, \"name_bytes\": {name_bytes}, \"checksum\": {checksum}}}",
        phase.dealing.index.len(),
        phase.dealing.index.files(),
        planned.as_secs_f64(),
        peak_rss_bytes(),
    );
}

fn preset(name: &str) -> Workload {
    let preset = presets::find(name).expect("a shipped workload");
    let source = Source { name, origin: BUILT_IN, text: preset.yaml };
    let composed = compose(source, &[], &|_| String::new()).expect("a shipped workload composes");
    resolve(&composed).expect("a shipped workload resolves").workload
}

fn many_files(count: u64) -> Workload {
    let mut workload = preset("cosmoflow_a100");
    workload.dataset.num_files_train = count;
    workload
}

/// The process's high-water mark, from `/proc`.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
