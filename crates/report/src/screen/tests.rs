//! Whole screens of runs whose values were made up.

use feedline_bench::{
    AskedRange, Burnt, Cause, Geometry, Host, LeftOut, Moment, PerSample, Plan, Split,
    StorageCounts, StorageEmulation, Strict, Transfer, Transfers, Verdict,
};
use feedline_dataset::Generated;
use feedline_workload::{BUILT_IN, Location, Override, Source, compose, presets, resolve};

use super::*;
use crate::style::strip;

const S: u64 = 1_000_000_000;
const NARROW: Style = Style { width: 80, color: false };
const WIDE: Style = Style { width: 100, color: false };

/// A run, made up.
struct Made {
    plan: Plan,
    summary: Summary,
    assessment: Assessment,
    generated: Option<Generated>,
    storage: StorageCounts,
    warnings: Vec<String>,
    interrupted: bool,
    worked: bool,
}

impl Made {
    fn render(&self, style: Style) -> String {
        let shown = Shown {
            plan: &self.plan,
            summary: &self.summary,
            assessment: &self.assessment,
            generated: self.generated,
            storage: self.storage,
            warnings: &self.warnings,
            interrupted: self.interrupted,
            worked: self.worked,
            out_folder: "results/unet3d/",
        };
        render(&shown, style)
    }
}

fn planned(name: &str, overrides: &[&str], ranks: u32, semantics: Semantics) -> Plan {
    let preset = presets::find(name).expect("a shipped workload");
    let source = Source { name, origin: BUILT_IN, text: preset.yaml };
    let overrides: Vec<_> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
    let composed = compose(source, &overrides, &|_| String::new()).unwrap();
    Plan::new(&resolve(&composed).unwrap().workload, ranks, semantics).unwrap()
}

fn untrained() -> Summary {
    Summary {
        train: None,
        eval: None,
        saves: None,
        loads: None,
        strict: Strict::default(),
        rank_done_s: None,
        cached_share: Vec::new(),
    }
}

/// Two ranks and five epochs of 12 steps that waited for storage.
fn starved() -> Made {
    let split = Split {
        compute_ns: 39 * S,
        storage_ns: 50 * S,
        decode_ns: 4 * S,
        framework_ns: 0,
        worker_ns: S,
        peers_ns: 0,
        behind_ns: 0,
    };
    let (au_percent, target_percent) = (41.34, 90.0);
    let by = Cause::Storage;
    Made {
        plan: planned("unet3d_h100", &[], 2, Semantics::Feedline),
        summary: Summary {
            train: Some(Series {
                au_percent: vec![Some(41.0), Some(42.0), Some(41.0), Some(41.7), Some(41.0)],
                throughput: vec![Some(16.0); 5],
            }),
            strict: Strict {
                asked_ns: 1,
                au_percent: Some(41.26),
                au_worst_rank_percent: Some(40.12),
                samples_per_s: Some(17.91),
                sample_bytes_per_s: Some(2.626e9),
                split,
                steps: 60,
                counted_steps: 55,
            },
            rank_done_s: Some((46.81, 47.13)),
            cached_share: vec![Some(0.0), Some(0.2), Some(0.3), Some(0.31), Some(0.314)],
            ..untrained()
        },
        assessment: Assessment {
            workload: "unet3d_h100".into(),
            target: 0.9,
            quick: false,
            storage: StorageEmulation::default(),
            per_sample: None,
            forecast_au_percent: None,
            verdict: Verdict::Starved { au_percent, target_percent, by, share_percent: 53.2 },
            cautions: vec![
                "the data set (24.6 GB) fits in memory (33.0 GB): later epochs may not touch the \
                 storage"
                    .into(),
            ],
            next_step: "ask the storage for more at once: --set reader.read_threads=8".into(),
        },
        generated: None,
        storage: StorageCounts {
            reads: 6_720,
            read_bytes: 123_144_527_520,
            asked: Some(AskedRange { least: 1, median: 4096, most: 258_048 }),
            p50_s: Some(0.0121),
            p99_s: Some(0.0874),
            opens: 840,
            open_p50_s: Some(0.000_031),
            open_p99_s: Some(0.000_4),
            requests: 0,
            retries: 0,
        },
        warnings: vec!["`dataset.num_files_eval` is set, but nothing is evaluated".into()],
        interrupted: false,
        worked: true,
    }
}

fn fed() -> Made {
    let mut run = starved();
    run.summary.strict.split =
        Split { compute_ns: 97 * S, storage_ns: 2 * S, peers_ns: S, ..Split::default() };
    run.summary.strict.au_percent = Some(96.9);
    run.summary.strict.au_worst_rank_percent = Some(96.4);
    run.summary.train.as_mut().unwrap().au_percent = vec![Some(97.2); 5];
    run.assessment.verdict = Verdict::Fed { au_percent: 97.2, target_percent: 90.0 };
    run.assessment.next_step = "find the limit: --accelerators 4".into();
    run.assessment.cautions.clear();
    run.warnings.clear();
    run
}

fn unpaced() -> Made {
    let mut run = fed();
    run.summary.strict.split = Split { storage_ns: 9 * S, decode_ns: S, ..Split::default() };
    run.summary.train.as_mut().unwrap().au_percent = vec![Some(0.0); 5];
    run.assessment.verdict = Verdict::Unpaced;
    run.assessment.next_step = "give the accelerators something to do".into();
    run
}

/// One epoch of one step, which does not count; nothing was measured besides.
fn too_short() -> Made {
    let mut run = starved();
    run.plan =
        planned("unet3d_h100", &["++workload.dataset.num_files_train=7"], 1, Semantics::Dlio);
    run.summary.train = Some(Series { au_percent: vec![Some(0.0)], throughput: vec![None] });
    run.summary.strict = Strict {
        split: Split { compute_ns: S / 3, storage_ns: S, ..Split::default() },
        steps: 1,
        ..Strict::default()
    };
    run.summary.rank_done_s = Some((1.2, 1.2));
    run.summary.cached_share = vec![None];
    run.storage = StorageCounts::default();
    run.assessment.verdict = Verdict::TooShort;
    run.assessment.quick = true;
    run.assessment.next_step = "make more steps: --epochs N, or more files".into();
    run.assessment.cautions.clear();
    run.warnings.clear();
    run
}

fn interrupted() -> Made {
    let mut run = starved();
    run.interrupted = true;
    run.summary.strict.steps = 55;
    run
}

fn generation_only() -> Made {
    let mut run = fed();
    let overrides = ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"];
    run.plan = planned("default", &overrides, 1, Semantics::Feedline);
    run.summary = untrained();
    run.assessment.workload = "default".into();
    run.assessment.verdict = Verdict::NotTrained;
    run.assessment.next_step = "train on the data: leave --generate-only out".into();
    run.generated =
        Some(Generated { files: 72, bytes: 312_624, wall_ns: S / 4, ..Generated::default() });
    run.storage = StorageCounts::default();
    run.worked = false;
    run
}

/// Everything that a run can have.
fn full() -> Made {
    let mut run = starved();
    let overrides = [
        "++workload.workflow.generate_data=True",
        "++workload.workflow.evaluation=True",
        "++workload.dataset.num_files_eval=42",
    ];
    run.plan = planned("unet3d_h100", &overrides, 2, Semantics::Feedline);
    run.summary.eval = Some(Series {
        au_percent: vec![Some(60.0), Some(64.0)],
        throughput: vec![Some(20.0), Some(22.0)],
    });
    run.summary.saves = Some(saves(&[1.0, 1.5, 1.25]));
    run.generated = Some(Generated {
        files: 210,
        bytes: 30_786_131_880,
        wall_ns: 64 * S,
        ..Generated::default()
    });
    run
}

/// Saves that took these seconds, with a file at 100 and one at 400 MB/s.
fn saves(seconds: &[f64]) -> Transfers {
    let each = (0..).zip(seconds).map(|(number, &seconds)| Transfer {
        begin_ns: number * 10 * S,
        bytes: 499_153_191,
        moved_bytes: 499_155_000,
        seconds,
        rank0_seconds: seconds,
        ..Transfer::default()
    });
    Transfers {
        each: each.collect(),
        file_rates: vec![1e8, 4e8],
        publish_share: Some(0.125),
        requests: 0,
        retries: 0,
        semantics: Semantics::Feedline,
    }
}

#[track_caller]
fn check(run: &Made, style: Style, expected: &str) {
    let text = run.render(style);
    assert_eq!(text, expected);
    assert!(text.lines().count() <= MOST_LINES);
    assert!(
        text.lines().all(|line| line.chars().count() <= style.width && line.trim_end() == line)
    );
}

#[test]
fn a_fed_run() {
    check(
        &fed(),
        WIDE,
        "\
FED: accelerators were busy 97.2 % of the time, target 90 %

workload    unet3d_h100: 2 accelerators, 5 epochs × 12 steps, batch 7, 168 npz files
AU          97.2 % (stdev 0.0 over 5 epochs), target 90 %; strict 96.9 %, worst rank 96.4 %
throughput  17.9 samples/s, 2,626 MB/s of samples; DLIO counts 16.0 samples/s, 2,237 MiB/s
ranks done  first after 46.8 s, last after 47.1 s

where step time went, per rank
  compute    97.0 %  48.5 s  ████████████████████████████████████████████████████████████████████▉
  storage     2.0 %  1.00 s  █▍
  decode      0.0 %     0 s
  workers     0.0 %     0 s
  peers       1.0 %  500 ms  ▊

storage     6,720 reads of 123 GB in all, p50 12.1 ms, p99 87.4 ms; 840 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to 258,048 bytes asked
            per read, median 4,096
page cache  held 0.0 % of what epoch 1 opened, 31.4 % of what epoch 5 opened

next        find the limit: --accelerators 4
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
}

#[test]
fn a_run_starved_by_storage() {
    check(
        &starved(),
        NARROW,
        "\
STARVED by storage: accelerators were busy 41.3 % of the time, target 90 %

workload    unet3d_h100: 2 accelerators, 5 epochs × 12 steps, batch 7, 168 npz
            files
AU          41.3 % (stdev 0.4 over 5 epochs), target 90 %; strict 41.3 %, worst
            rank 40.1 %
throughput  17.9 samples/s, 2,626 MB/s of samples; DLIO counts 16.0 samples/s,
            2,237 MiB/s
ranks done  first after 46.8 s, last after 47.1 s

where step time went, per rank
  compute    41.5 %  19.5 s  █████████████████████▏
  storage    53.2 %  25.0 s  ███████████████████████████▏
  decode      4.3 %  2.00 s  ██▏
  workers     1.1 %  500 ms  ▌
  peers       0.0 %     0 s

storage     6,720 reads of 123 GB in all, p50 12.1 ms, p99 87.4 ms; 840 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to
            258,048 bytes asked per read, median 4,096
page cache  held 0.0 % of what epoch 1 opened, 31.4 % of what epoch 5 opened

warnings    - `dataset.num_files_eval` is set, but nothing is evaluated
            - the data set (24.6 GB) fits in memory (33.0 GB): later epochs may
              not touch the storage
next        ask the storage for more at once: --set reader.read_threads=8
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
    check(
        &starved(),
        WIDE,
        "\
STARVED by storage: accelerators were busy 41.3 % of the time, target 90 %

workload    unet3d_h100: 2 accelerators, 5 epochs × 12 steps, batch 7, 168 npz files
AU          41.3 % (stdev 0.4 over 5 epochs), target 90 %; strict 41.3 %, worst rank 40.1 %
throughput  17.9 samples/s, 2,626 MB/s of samples; DLIO counts 16.0 samples/s, 2,237 MiB/s
ranks done  first after 46.8 s, last after 47.1 s

where step time went, per rank
  compute    41.5 %  19.5 s  █████████████████████████████▌
  storage    53.2 %  25.0 s  █████████████████████████████████████▊
  decode      4.3 %  2.00 s  ███
  workers     1.1 %  500 ms  ▊
  peers       0.0 %     0 s

storage     6,720 reads of 123 GB in all, p50 12.1 ms, p99 87.4 ms; 840 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to 258,048 bytes asked
            per read, median 4,096
page cache  held 0.0 % of what epoch 1 opened, 31.4 % of what epoch 5 opened

warnings    - `dataset.num_files_eval` is set, but nothing is evaluated
            - the data set (24.6 GB) fits in memory (33.0 GB): later epochs may not touch the
              storage
next        ask the storage for more at once: --set reader.read_threads=8
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
}

#[test]
fn an_emulated_storage_is_said_to_be_one() {
    let mut run = starved();
    let line = |run: &Made| {
        let text = run.render(WIDE);
        text.lines().find(|line| line.starts_with("what if")).map(str::to_owned)
    };
    assert_eq!(line(&run), None);
    let faults = ["read:9:EIO".to_owned(), "open:5:ENOENT".to_owned()];
    let emulation = StorageEmulation::parse(Some("2GB/s,200us"), &faults).unwrap();
    run.assessment.storage.limit = emulation.limit;
    let expected = "what if     storage limited to 2GB/s,200us: not comparable with other results";
    assert_eq!(line(&run).as_deref(), Some(expected));
    run.assessment.storage.faults = emulation.faults;
    let expected = "what if     storage limited to 2GB/s,200us, failing read:9:EIO open:5:ENOENT: not \
                    comparable with";
    assert_eq!(line(&run).as_deref(), Some(expected));
    run.assessment.storage.limit = None;
    let expected = "what if     storage failing read:9:EIO open:5:ENOENT: not comparable with other \
                    results";
    assert_eq!(line(&run).as_deref(), Some(expected));
}

#[test]
fn an_unpaced_run() {
    check(
        &unpaced(),
        NARROW,
        "\
UNPACED: the workload computes nothing, so the data was read as fast as it came

workload    unet3d_h100: 2 accelerators, 5 epochs × 12 steps, batch 7, 168 npz
            files
AU          n/a: nothing is computed
throughput  17.9 samples/s, 2,626 MB/s of samples; DLIO counts 16.0 samples/s,
            2,237 MiB/s
ranks done  first after 46.8 s, last after 47.1 s

where step time went, per rank
  compute     0.0 %     0 s
  storage    90.0 %  4.50 s  █████████████████████████████████████████████▉
  decode     10.0 %  500 ms  █████▏
  workers     0.0 %     0 s
  peers       0.0 %     0 s

storage     6,720 reads of 123 GB in all, p50 12.1 ms, p99 87.4 ms; 840 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to
            258,048 bytes asked per read, median 4,096
page cache  held 0.0 % of what epoch 1 opened, 31.4 % of what epoch 5 opened

next        give the accelerators something to do
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
}

#[test]
fn a_run_too_short_to_judge() {
    check(
        &too_short(),
        NARROW,
        "\
TOO SHORT to judge: 1 step made, none left after those that do not count

workload    unet3d_h100: 1 accelerator, 1 epoch × 1 step, batch 7, 7 npz files,
            semantics of DLIO main (e1919d7); --quick: not comparable with other
            results
AU          n/a: too few steps count; target 90 %
throughput  n/a: no step counts
ranks done  first after 1.20 s, last after 1.20 s

where step time went, per rank
  compute    25.0 %  333 ms  ████████████▊
  storage    75.0 %  1.00 s  ██████████████████████████████████████▎
  decode      0.0 %     0 s
  workers     0.0 %     0 s
  peers       0.0 %     0 s

storage     no reads; 0 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13)
page cache  n/a: the system does not tell what it holds

next        make more steps: --epochs N, or more files
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
}

#[test]
fn an_interrupted_run() {
    check(
        &interrupted(),
        NARROW,
        "\
INTERRUPTED, STARVED by storage: accelerators were busy 41.3 % of the time,
  target 90 %

workload    unet3d_h100: 2 accelerators, 55 steps in 5 epochs, batch 7, 168 npz
            files
AU          41.3 % (stdev 0.4 over 5 epochs), target 90 %; strict 41.3 %, worst
            rank 40.1 %
throughput  17.9 samples/s, 2,626 MB/s of samples; DLIO counts 16.0 samples/s,
            2,237 MiB/s
ranks done  n/a: stopped before the end

where step time went, per rank
  compute    41.5 %  19.5 s  █████████████████████▏
  storage    53.2 %  25.0 s  ███████████████████████████▏
  decode      4.3 %  2.00 s  ██▏
  workers     1.1 %  500 ms  ▌
  peers       0.0 %     0 s

storage     6,720 reads of 123 GB in all, p50 12.1 ms, p99 87.4 ms; 840 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to
            258,048 bytes asked per read, median 4,096
page cache  held 0.0 % of what epoch 1 opened, 31.4 % of what epoch 5 opened

warnings    - `dataset.num_files_eval` is set, but nothing is evaluated
            - the data set (24.6 GB) fits in memory (33.0 GB): later epochs may
              not touch the storage
next        ask the storage for more at once: --set reader.read_threads=8
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
}

#[test]
fn data_generation_only() {
    check(
        &generation_only(),
        NARROW,
        "\
DATA READY: 72 files made, nothing trained

workload    default: 64 npz files, 8 for evaluation

generated   72 files, 313 kB in 250 ms: 1.25 MB/s

next        train on the data: leave --generate-only out
results     results/unet3d (log only: without training, no summary is written)
",
    );
}

#[test]
fn files_that_were_there_already() {
    let mut run = generation_only();
    let some = Generated { kept_files: 71, kept_bytes: 308_282, ..run.generated.unwrap() };
    run.generated = Some(Generated { files: 1, bytes: 4_342, ..some });
    let text = run.render(WIDE);
    let first = "DATA READY: 1 file made, 71 already existed, nothing trained\n";
    assert!(text.starts_with(first), "{text}");
    let line = "\
generated   1 file, 4.34 kB in 250 ms: 0.0174 MB/s; 71 of 72 files already existed (to make all of
            them again, remove feedline.manifest.json from the data folder)
";
    assert!(text.contains(line), "{text}");
    run.generated = Some(Generated { files: 0, bytes: 0, kept_files: 72, ..some });
    let text = run.render(WIDE);
    let first = "DATA READY: all files already existed, nothing trained\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("generated   nothing; 72 of 72 files already existed ("), "{text}");
    run.interrupted = true;
    run.generated = Some(Generated { files: 40, kept_files: 1, ..some });
    let first = "INTERRUPTED: 40 of 72 files made, 1 already existed, nothing trained\n";
    assert!(run.render(WIDE).starts_with(first));
}

#[test]
fn a_run_with_everything() {
    check(
        &full(),
        WIDE,
        "\
STARVED by storage: accelerators were busy 41.3 % of the time, target 90 %

workload    unet3d_h100: 2 accelerators, 5 epochs × 12 steps, batch 7, 168 npz files, 42 for
            evaluation
AU          41.3 % (stdev 0.4 over 5 epochs), target 90 %; strict 41.3 %, worst rank 40.1 %
throughput  17.9 samples/s, 2,626 MB/s of samples; DLIO counts 16.0 samples/s, 2,237 MiB/s
evaluation  AU 62.0 % (stdev 2.0 over 2 values), 21.0 samples/s, 2,936 MiB/s
ranks done  first after 46.8 s, last after 47.1 s

where step time went, per rank
  compute    41.5 %  19.5 s  █████████████████████████████▌
  storage    53.2 %  25.0 s  █████████████████████████████████████▊
  decode      4.3 %  2.00 s  ███
  workers     1.1 %  500 ms  ▊
  peers       0.0 %     0 s

storage     6,720 reads of 123 GB in all, p50 12.1 ms, p99 87.4 ms; 840 opens
reading     framework model (the calls of NumPy on CPython 3.9 to 3.13): 1 to 258,048 bytes asked
            per read, median 4,096
page cache  held 0.0 % of what epoch 1 opened, 31.4 % of what epoch 5 opened
generated   210 files, 30.8 GB in 64.0 s: 481 MB/s
saved       3 saves of 499 MB, 1.25 s each on average, 1.50 s at most, 0.399 GB/s; files p10 100,
            p90 400 MB/s; 12.5 % of their time until safe

warnings    - `dataset.num_files_eval` is set, but nothing is evaluated
            - the data set (24.6 GB) fits in memory (33.0 GB): later epochs may not touch the
              storage
next        ask the storage for more at once: --set reader.read_threads=8
results     results/unet3d/summary.json and the files of each rank next to it
",
    );
}

#[test]
fn a_run_stopped_before_training_says_how_far_it_came() {
    let mut run = generation_only();
    run.interrupted = true;
    run.generated =
        Some(Generated { files: 40, bytes: 173_680, wall_ns: 0, ..Generated::default() });
    let text = run.render(NARROW);
    let first = "INTERRUPTED: 40 of 72 files made, nothing trained\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("generated   40 files, 174 kB in 0 s: n/a MB/s\n"), "{text}");
    run.generated = None;
    assert!(run.render(NARROW).starts_with("INTERRUPTED before training\n"));
    run.worked = true;
    let text = run.render(NARROW);
    assert!(text.starts_with("INTERRUPTED before the first checkpoint was done\n"), "{text}");
    assert!(text.contains("results     results/unet3d/summary.json and the files"), "{text}");
}

#[test]
fn a_missed_target_reads_as_missed() {
    let mut run = starved();
    let (target_percent, by) = (90.0, Cause::Decode);
    run.assessment.verdict =
        Verdict::Starved { au_percent: 89.96, target_percent, by, share_percent: 8.0 };
    run.summary.train.as_mut().unwrap().au_percent = vec![Some(89.96)];
    let text = run.render(WIDE);
    let first = "STARVED by decode: accelerators were busy 89.96 % of the time, target 90 %\n";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("AU          89.96 % (stdev 0.0 over 1 epoch), target 90 %"), "{text}");
}

#[test]
fn nothing_is_ever_nan_or_infinite() {
    let mut run = full();
    let bad = [Some(f64::NAN), Some(f64::INFINITY)];
    run.summary.train = Some(Series { au_percent: bad.to_vec(), throughput: bad.to_vec() });
    run.summary.eval = run.summary.train.clone();
    run.summary.strict.au_percent = Some(f64::NAN);
    run.summary.strict.au_worst_rank_percent = None;
    run.summary.strict.samples_per_s = Some(f64::NEG_INFINITY);
    run.summary.strict.sample_bytes_per_s = None;
    run.summary.cached_share = bad.to_vec();
    run.summary.rank_done_s = Some((f64::NAN, f64::INFINITY));
    run.assessment.verdict = Verdict::Fed { au_percent: f64::NAN, target_percent: f64::NAN };
    let text = run.render(WIDE).to_lowercase();
    assert!(!text.contains("nan") && !text.contains("inf"), "{text}");
    assert!(text.contains("n/a samples/s, n/a mb/s"), "{text}");
}

#[test]
fn warnings_give_way_to_the_answer() {
    let mut run = full();
    run.warnings = (1..=20).map(|number| format!("warning {number}")).collect();
    let text = run.render(NARROW);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), MOST_LINES);
    assert!(lines.iter().all(|line| !line.is_empty()));
    assert_eq!(lines[MOST_LINES - 3], "            - 17 more in summary.json");
    assert!(lines[MOST_LINES - 2].starts_with("next        ask the storage for more"));
    assert!(lines[MOST_LINES - 1].starts_with("results     results/unet3d/summary.json"));
}

#[test]
fn color_is_around_the_verdict_and_the_bars_only() {
    for run in [fed(), starved(), unpaced(), too_short(), interrupted(), generation_only(), full()]
    {
        let colored = run.render(Style { color: true, ..WIDE });
        assert_eq!(strip(&colored), run.render(WIDE));
        let painted: Vec<_> = colored
            .split("\x1b[0m")
            .filter_map(|part| part.split_once("\x1b["))
            .filter_map(|(_, part)| part.split_once('m'))
            .map(|(_, text)| text)
            .collect();
        let words = ["FED", "STARVED", "UNPACED", "TOO SHORT", "INTERRUPTED", "DATA READY"];
        let bar = |text: &str| text.chars().all(|c| ('▁'..='▏').contains(&c));
        assert!(words.contains(&painted[0]), "{painted:?}");
        assert!(painted.iter().all(|text| words.contains(text) || bar(text)), "{painted:?}");
    }
    let colored = starved().render(Style { color: true, ..NARROW });
    assert!(colored.starts_with("\x1b[1;31mSTARVED\x1b[0m by storage: "), "{colored}");
    let colored = interrupted().render(Style { color: true, ..NARROW });
    let first = "\x1b[1;33mINTERRUPTED\x1b[0m, \x1b[1;31mSTARVED\x1b[0m by storage: ";
    assert!(colored.starts_with(first), "{colored}");
}

#[test]
fn an_outcome_is_shown_by_its_values() {
    let run = generation_only();
    let moment = Moment { ns: 0, text: String::new() };
    let outcome = Outcome {
        cache: feedline_bench::CachePolicy::Keep,
        plan: run.plan.clone(),
        data: "data".into(),
        capabilities: Location::parse("/data").capabilities(),
        geometry: Geometry::new(run.plan.ranks, vec![0]).unwrap(),
        hosts: vec![Host::default()],
        start: moment.clone(),
        end: moment,
        generated: run.generated,
        ranks: Vec::new(),
        seed: 123,
        warnings: Vec::new(),
        interrupted: false,
    };
    let summary = Summary::new(&outcome);
    let text = screen(&outcome, &summary, &run.assessment, "results/unet3d/", NARROW);
    assert_eq!(text, run.render(NARROW));
}

/// A run in which Python was the limit.
fn held_back_by_python() -> Made {
    let mut run = starved();
    run.summary.strict.split.framework_ns = 60 * S;
    run.plan.framework = FrameworkPlan::Burnt(Burnt {
        cost: std::sync::Arc::default(),
        per_sample_ns: 69_000_000,
        held_bytes: 73_400_320,
        file: "c.json".into(),
        source: "Python 3.11.7, torch 2.15.0, measured 2026-11-18".into(),
        caution: None,
    });
    run.assessment.per_sample = Some(PerSample { framework_s: 0.069, storage_s: 0.003 });
    let (au_percent, target_percent) = (41.34, 90.0);
    run.assessment.verdict =
        Verdict::Starved { au_percent, target_percent, by: Cause::Framework, share_percent: 39.0 };
    run
}

#[test]
fn python_is_named_where_it_is_the_limit() {
    let text = held_back_by_python().render(WIDE);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.starts_with(
            "STARVED by the framework: Python takes 69.0 ms per sample, storage 3.00 ms; \
             accelerators were busy 41.3 % of the time, target 90 %"
        ),
        "{text}"
    );
    assert!(text.contains("\n  framework  39.0 %"), "{text}");
    assert!(
        flat.contains(
            "framework 69.0 ms of CPU time per sample burnt in its place (Python 3.11.7, torch \
             2.15.0, measured 2026-11-18); batches hold up to 73.4 MB per rank"
        ),
        "{text}"
    );
}

#[test]
fn what_is_left_out_of_the_headline_is_said_in_one_line() {
    let mut run = fed();
    let why = "this machine has no calibration".to_owned();
    run.plan.framework = FrameworkPlan::LeftOut(LeftOut { why, forecast: None });
    run.assessment.forecast_au_percent = Some(30.4);
    let text = run.render(WIDE);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("FED: "), "{text}");
    assert!(
        flat.contains(
            "framework not in these numbers, this machine has no calibration; with PyTorch's reader \
             this client would reach about 30 %; measure it: feedline calibrate"
        ),
        "{text}"
    );
    run.assessment.forecast_au_percent = None;
    let flat = run.render(WIDE).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("no calibration; measure it: feedline calibrate"), "{flat}");
}
