//! Ranks that wait for each other, and checkpoints that all wait for.

use feedline_analyze::StallCause;
use feedline_analyze::analysis::Answer;

use crate::draft::apart;
use crate::job::{Checkpoint, Job};
use crate::judge::Trial;
use crate::truth::Style;

#[test]
fn one_slow_rank() {
    let job = Job { ranks: 3, slow_rank: Some((1, 12)), ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    let finding = trial.check_cause("straggler-rank", StallCause::Peer);
    assert!(finding.objects[0].contains('1'), "{:?}", finding.objects);
    let (mut lost_ns, mut slowest) = (0, 0);
    for group in trial.truth.steps.chunks(3) {
        let mut times: Vec<(u64, usize)> = group
            .iter()
            .map(|step| (step.run.compute.1.abs_diff(step.run.fetch.0), step.run.rank))
            .collect();
        times.sort_unstable();
        lost_ns += times[2].0 - times[1].0;
        slowest += u64::from(times[2].1 == 1);
    }
    let stragglers = &trial.analysis.stragglers;
    assert!(apart(stragglers.lost_ns, lost_ns) < 0.05, "{} of {lost_ns}", stragglers.lost_ns);
    let worst = &stragglers.ranks[0];
    assert_eq!((worst.rank, worst.slowest_steps), (1, slowest));
    assert_eq!(worst.because, "read");
}

/// The slow rank's machine is the only one that is slow, so its neighbors are not to blame.
#[test]
fn a_slow_rank_on_a_machine_of_its_own() {
    let job = Job { ranks: 3, hosts: 3, slow_rank: Some((2, 12)), ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_cause("straggler-rank", StallCause::Peer);
    let worst = &trial.analysis.stragglers.ranks[0];
    assert_eq!((worst.rank, worst.host.as_str()), (2, "node2"));
    assert_eq!(trial.analysis.allocation.hosts, ["node0", "node1", "node2"]);
}

#[test]
fn equal_ranks_have_no_straggler() {
    let job = Job { ranks: 3, sample: slow_reads(), ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls().check_exact_parts();
    let top = &trial.analysis.findings[0];
    assert_eq!(top.code, "slow-read", "all ranks are slow");
}

fn slow_reads() -> crate::job::Sample {
    crate::job::Sample { read_us: 8_000, ..Job::default().sample }
}

#[test]
fn checkpoint_stall() {
    let checkpoint = Checkpoint {
        every: 10,
        writes: 8,
        write_us: 10_000,
        write_bytes: 4 << 20,
        sync_us: 40_000,
    };
    let job = Job { ranks: 2, checkpoint: Some(checkpoint), ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls().check_exact_parts();
    assert_eq!(trial.analysis.verdict.answer, Answer::NotInputBound);
    // Five saves of 120 ms by two ranks.
    trial.check_top("checkpoint-stall", 1_200_000_000);
    let checkpoints = &trial.analysis.checkpoints;
    assert_eq!(checkpoints.stall_ns, 1_200_000_000);
    assert_eq!(checkpoints.transfers.len(), 5);
    for (transfer, captures) in checkpoints.transfers.iter().zip(trial.course.captures.chunks(2)) {
        assert_eq!(transfer.direction, "save");
        assert_eq!(transfer.start_ns.cast_signed(), captures[0].time.0);
        assert_eq!((transfer.duration_ns, transfer.slowest_ns), (120_000_000, 120_000_000));
        assert_eq!((transfer.stall_ns, transfer.sync_ns), (240_000_000, 80_000_000));
        assert_eq!((transfer.bytes, transfer.ranks), (2 * 8 * (4 << 20), 2));
    }
    let starts: Vec<i64> =
        trial.course.captures.iter().step_by(2).map(|save| save.time.0).collect();
    let between_ns = starts[4].abs_diff(starts[0]) / 4;
    assert!(checkpoints.interval_ns.unwrap().abs_diff(between_ns) <= 1);
}
