//! Whole screens of analyses that were made up.

use feedline_analyze::analysis::{
    AccessPatterns, Allocation, CauseTime, CheckpointTransfer, Checkpoints, Confidence, DataVolume,
    Distribution, Epoch, Finding, Function, Health, LayerTime, Overlap, Prediction, Problem,
    RoleCount, StallVerdict, Straggler, Stragglers, TraceFacts, WhatIf,
};
use feedline_analyze::{StackLayer, StallCause};

use super::*;
use crate::style::strip;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const NARROW: Style = Style { width: 80, color: false };
const WIDE: Style = Style { width: 100, color: false };

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.into()).collect()
}

/// Two ranks, 40 steps of 100 ms, a quarter of them stalled.
fn starved() -> Analysis {
    Analysis {
        trace: TraceFacts { events: 12_345, run_ns: 3 * S, ..TraceFacts::default() },
        health: Health { coverage: Coverage::Full, problems: Vec::new() },
        allocation: Allocation {
            hosts: texts(&["a"]),
            ranks: 2,
            processes: vec![
                RoleCount { role: "rank".into(), count: 2 },
                RoleCount { role: "worker".into(), count: 8 },
            ],
            compute_threads: 2,
            io_threads: 8,
            ..Allocation::default()
        },
        verdict: StallVerdict {
            answer: Answer::InputBound,
            text: "accelerators stalled for 25.0 % of step time".into(),
            steps: 40,
            step_ns: 4 * S,
            stall_ns: S,
            stall_share: 0.25,
            stall_share_interval: Some([0.221, 0.283]),
            stalled_steps_share: 0.5,
            stall_p95_ns: 60 * MS,
            confidence: Confidence::High,
            au_percent: Some(75.0),
            samples_per_second: Some(80.0),
            read_bytes_per_second: None,
        },
        stall: vec![
            CauseTime { cause: StallCause::Read, ns: 750 * MS, share: 0.75 },
            CauseTime { cause: StallCause::Decode, ns: 250 * MS, share: 0.25 },
        ],
        findings: vec![Finding {
            title: "reads are slow".into(),
            explains_ns: 750 * MS,
            severity: 0.1875,
            confidence: Confidence::High,
            evidence: vec![
                ["p50".into(), "4.00 ms".into()],
                ["bytes per read".into(), "1.00 kB".into()],
            ],
            actions: texts(&["read larger pieces", "pack samples into shards"]),
            ..Finding::default()
        }],
        what_if: WhatIf {
            refused: None,
            workers: 4,
            outstanding: 8,
            observed_step_ns: 100 * MS,
            modelled_step_ns: 98 * MS,
            saved_by_workers_ns: 0,
            saved_by_prefetch_ns: 0,
            cases: vec![Prediction {
                change: "workers 8".into(),
                step_ns: 80 * MS,
                step_interval_ns: [78 * MS, 83 * MS],
                stall_share: 0.05,
            }],
        },
        layers: vec![LayerTime {
            layer: StackLayer::Storage,
            events: 12_000,
            bytes: 5_000_000,
            mean_ns: S,
            least_ns: 900 * MS,
            most_ns: 1_100 * MS,
            self_ns: 2 * S,
            summed_ns: 2 * S,
            exposed_mean_ns: 400 * MS,
        }],
        overlaps: vec![Overlap {
            what: "io".into(),
            total_ns: S,
            overlapped_ns: 600 * MS,
            exposed_ns: 400 * MS,
            compute_ns: 1_500 * MS,
            compute_alone_ns: 900 * MS,
        }],
        ..starved_tables()
    }
}

/// The second half of [`starved`].
fn starved_tables() -> Analysis {
    Analysis {
        functions: vec![Function {
            layer: StackLayer::Storage,
            category: "POSIX".into(),
            name: "read".into(),
            count: 5_000,
            errors: 0,
            total_ns: 20 * S,
            self_ns: 20 * S,
            bytes: 5_000_000,
            bytes_per_second: Some(250_000.0),
            latency: Distribution { p50: 4 * MS, p99: 9 * MS, ..Distribution::default() },
            size: Some(Distribution {
                min: 100,
                p25: 900,
                p50: 1_000,
                mean: 1_000.0,
                p75: 1_100,
                max: 4_096,
                ..Distribution::default()
            }),
        }],
        data: DataVolume {
            files: 100,
            calls: 12_000,
            errors: 3,
            bytes_read: 5_000_000,
            reread_factor: Some(2.0),
            ..DataVolume::default()
        },
        access: AccessPatterns {
            reads_consecutive: 3,
            reads_first: 1,
            ..AccessPatterns::default()
        },
        epochs: vec![Epoch {
            epoch: 1,
            steps: 40,
            step_ns: 4 * S,
            stall_ns: S,
            first_batch_ns: 300 * MS,
            au_percent: Some(75.0),
            samples_per_second: Some(80.0),
            duration_ns: 2 * S,
            ..Epoch::default()
        }],
        stragglers: Stragglers {
            lost_ns: 120 * MS,
            median_ns: S,
            ranks: vec![Straggler {
                rank: 1,
                host: "a".into(),
                slowest_steps: 15,
                slowest_share: 0.75,
                lost_ns: 100 * MS,
                because: "read".into(),
                ..Straggler::default()
            }],
        },
        checkpoints: Checkpoints {
            transfers: vec![CheckpointTransfer {
                direction: "save".into(),
                duration_ns: 500 * MS,
                bytes: 1_000_000_000,
                slowest_rank: 1,
                ..CheckpointTransfer::default()
            }],
            stall_ns: S,
            stall_share: 0.1,
            interval_ns: None,
        },
        ..Analysis::default()
    }
}

#[test]
fn a_starved_training() {
    let expected = "\
INPUT-BOUND: accelerators stalled for 25.0 % of step time

evidence    stalled 25.0 % of step time (95 % interval 22.1 to 28.3 %),
            40 steps, split by cause with high confidence; 50.0 % of steps
            stalled for more than a tenth, p95 60.0 ms
rates       AU 75.0 %, 80.0 samples/s

stalled     1.00 s over all ranks, by cause
  read           75.0 %  750 ms  ███████████████████████████████████▎
  decode         25.0 %  250 ms  ███████████▊

findings
  1. reads are slow: 750 ms, 18.8 % of step time, high confidence
     seen: p50 4.00 ms; bytes per read 1.00 kB
     do:   read larger pieces; pack samples into shards

what if     100 ms per step observed, 98.0 ms modeled, with 4 workers and 8
            batches in flight per rank
  change        step  of observed  stalled       90 % interval
  workers 8  80.0 ms       80.0 %    5.0 %  78.0 ms to 83.0 ms

traced      1 host, 2 ranks; processes: 2 rank, 8 worker; threads: 2 computing,
            8 doing I/O; 12,345 events in 3.00 s
data        100 files, 12,000 calls (3 with errors); read 5.00 MB, each byte
            2.00 times; wrote 0 B

layers     per rank  exposed   least    most    self  events    bytes
  storage    1.00 s   400 ms  900 ms  1.10 s  2.00 s  12,000  5.00 MB

overlap  per rank  overlapped  exposed  compute  compute alone
  io       1.00 s      600 ms   400 ms   1.50 s         900 ms

functions  count   total  size min    p25     mean      p50      p75      max
  read     5,000  20.0 s     100 B  900 B  1.00 kB  1.00 kB  1.10 kB  4.10 kB

access      reads 75.0 % consecutive, 25.0 % first in a file

epochs     steps      AU  stalled  first batch  samples/s  duration
  train 1     40  75.0 %   25.0 %       300 ms       80.0    2.00 s

stragglers  waiting for the slowest rank cost 120 ms, the median rank took
            1.00 s: rank 1 on a 100 ms in 75.0 % of steps because of read

checkpoints 1 save, 1.00 GB in total, slowest 500 ms (rank 1); ranks waited for
            1.00 s, 10.0 % of their time

health      the trace has steps, loader workers and storage calls; no problems
            found
";
    let text = analysis_screen(&starved(), NARROW);
    assert_eq!(text, expected, "{text}");
}

#[test]
fn color_adds_nothing_but_color() {
    let plain = analysis_screen(&starved(), WIDE);
    let colored = analysis_screen(&starved(), Style { width: 100, color: true });
    assert!(colored.starts_with("\x1b[1;31mINPUT-BOUND\x1b[0m: "), "{colored}");
    assert_eq!(strip(&colored), plain);
}

#[test]
fn calls_alone_bear_no_claim_about_steps() {
    let mut calls = starved();
    calls.health.coverage = Coverage::CallsOnly;
    let text = analysis_screen(&calls, WIDE);
    assert_eq!(
        text.lines().next(),
        Some("CALLS ONLY: the trace has no steps: stalls cannot be measured")
    );
    assert!(text.contains("  1. reads are slow: 750 ms, high confidence\n"), "{text}");
    for claim in ["evidence", "stalled", "step time", "what if", "epochs", "stragglers"] {
        assert!(!text.contains(claim), "{claim} in\n{text}");
    }
    assert!(text.contains("functions"), "{text}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let problem = |code: &str, limits_claims| Problem {
        code: code.into(),
        count: 3,
        text: "3 lines could not be read".into(),
        places: texts(&["a.pfw:1", "a.pfw:2", "b.pfw:9"]),
        limits_claims,
    };
    let health = Health {
        coverage: Coverage::NoWorkers,
        problems: vec![problem("bad-lines", true), problem("odd-lines", false)],
    };
    assert_eq!(
        numbers::health(&health, 1, 200),
        [
            "health      the trace has steps but no loader workers: stalls are measured but not explained",
            "            - bad-lines: 3 lines could not be read (a.pfw:1, a.pfw:2, 1 more); \
             the numbers above may be wrong",
            "            - and 1 more",
        ]
    );
}

#[test]
fn predictions_that_were_refused_say_why() {
    let refused = WhatIf { refused: Some("the model is off by 31 %".into()), ..WhatIf::default() };
    assert_eq!(
        answer::what_if(&refused, 5, 80),
        ["what if     no predictions: the model is off by 31 %"]
    );
}

#[test]
fn causes_that_do_not_fit_are_one_line() {
    let mut many = starved();
    many.stall = [StallCause::Read, StallCause::Open, StallCause::Decode, StallCause::Peer]
        .into_iter()
        .zip([400, 300, 200, 100])
        .map(|(cause, ms)| CauseTime { cause, ns: ms * MS, share: ms as f64 / 1e3 })
        .collect();
    let lines = answer::stall(&many, 3, Style { width: 40, color: false });
    assert_eq!(
        lines[2..],
        [
            "  read           40.0 %  400 ms  ██▊",
            "  open           30.0 %  300 ms  ██▏",
            "  others         30.0 %  300 ms  ██▏",
        ]
    );
}

#[test]
fn terminals_obey_nothing_that_is_in_a_trace() {
    let mut hostile = starved();
    hostile.functions[0].name = "read\x1b[2J\r\n".into();
    hostile.findings[0].title = "slow \x1b]0;owned\x07 reads".into();
    hostile.verdict.text = "\x1b[8m".into();
    hostile.stragglers.ranks[0].host = "\x1b[8m".into();
    let text = analysis_screen(&hostile, WIDE);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(text.contains("read\u{fffd}[2J\u{fffd}\u{fffd}"), "{text}");
}

#[test]
fn long_lists_are_cut_and_no_line_is_wider_than_the_terminal() {
    let mut long = starved();
    long.layers = vec![long.layers[0].clone(); 17];
    long.functions = vec![long.functions[0].clone(); 300];
    long.epochs = vec![long.epochs[0].clone(); 300];
    long.findings = vec![long.findings[0].clone(); 20];
    long.what_if.cases = vec![long.what_if.cases[0].clone(); 20];
    for width in [40, 60, 80, 100] {
        let text = analysis_screen(&long, Style { width, color: false });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert_eq!(line.trim_end(), line);
        }
        assert!(width < 80 || text.lines().count() <= 60, "{text}");
        assert!(text.contains("  and 297 more\n"), "{text}");
        assert!(text.contains("     and 15 more\n"), "{text}");
    }
}

#[test]
fn an_empty_analysis_is_no_reason_to_panic() {
    let text = analysis_screen(&Analysis::default(), NARROW);
    assert!(text.starts_with("CALLS ONLY: "), "{text}");
    let steps = Health { coverage: Coverage::Full, problems: Vec::new() };
    let text = analysis_screen(&Analysis { health: steps, ..Analysis::default() }, NARROW);
    assert!(text.starts_with("NO STEPS\n"), "{text}");
}
