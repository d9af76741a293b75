//! Workers are quick enough, but too few, held back, late, or the batch is long on its way.

use feedline_analyze::StallCause;
use feedline_analyze::analysis::Answer;

use crate::course::Course;
use crate::draft::apart;
use crate::job::{Job, Life};
use crate::judge::Trial;
use crate::truth::{Style, Truth};

/// Stalled time that a change of the job would save, all ranks together.
fn saved_ns(job: &Job, changed: &Job) -> u64 {
    let stall_ns = |job| Truth::of(&Course::of(job), Style::Own).stall_ns();
    stall_ns(job) - stall_ns(changed)
}

#[test]
fn few_workers() {
    // 9.6 ms of work on a batch, none of it most of it, for 2.7 ms of computation.
    let job = Job { workers: 1, outstanding: 2, compute_us: 2_700, steps: 240, ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls().check_exact_parts();
    trial.check_top("too-few-workers", saved_ns(&job, &job.with_workers(8)));
    let what_if = &trial.analysis.what_if;
    // The consumer takes every batch at once, so that never more than one is seen under way.
    assert_eq!((what_if.workers, what_if.outstanding), (1, 1));
    let cases = trial.counted_cases("workers");
    assert!(cases.contains_key(&2), "twice as many");
    for (workers, case) in &cases {
        trial.check_prediction(&case.change, &job.with_workers(*workers));
    }
    let fed = cases.iter().find(|(_, case)| case.stall_share < 0.05);
    assert_eq!(fed.map(|(workers, _)| *workers), Some(4), "the least number that feeds the job");
}

#[test]
fn small_prefetch() {
    // Of four workers one is at work at a time.
    let job = Job { outstanding: 1, compute_us: 2_700, steps: 240, ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls().check_exact_parts();
    let enough = Job { outstanding: 8, ..job.clone() };
    trial.check_top("small-prefetch", saved_ns(&job, &enough));
    let what_if = &trial.analysis.what_if;
    assert_eq!((what_if.workers, what_if.outstanding), (4, 1));
    check_deeper_queues(&trial, &job);
    let busy = trial.analysis.ranks[0].workers_busy_share;
    assert!((0.15..0.30).contains(&busy), "a quarter at most: {busy}");
}

/// The prediction for twice as many batches under way.
fn check_deeper_queues(trial: &Trial, job: &Job) {
    let cases = trial.counted_cases("prefetch");
    let outstanding = 2 * job.outstanding;
    let case = cases.get(&outstanding).expect("twice as many");
    trial.check_prediction(&case.change, &Job { outstanding, ..job.clone() });
}

#[test]
fn bursts_that_deeper_queues_would_hide() {
    let job = Job {
        outstanding: 4,
        compute_us: 4_500,
        burst: Some((9, 5)),
        steps: 180,
        ..Job::default()
    };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls().check_exact_parts();
    check_deeper_queues(&trial, &job);
}

#[test]
fn slow_hand_off() {
    let job = Job { hand_off_us: 6_000, ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_cause("hand-off", StallCause::HandOff);
    trial.check_prediction("storage 4x", &job.with_storage(4));
    trial.check_prediction("workers 8", &job.with_workers(8));
}

#[test]
fn slow_start_up() {
    for style in [Style::Own, Style::Dlio] {
        let mut job = Job { epochs: 6, steps: 10, start_up_us: 400_000, ..Job::default() };
        if style == Style::Dlio {
            job.meeting_us = None;
            job.surplus_us = Some(150);
        }
        let trial = Trial::of(&job, style);
        trial.check_cause("worker-start-up", StallCause::StartUp);
        assert_eq!(trial.truth.part_ns(StallCause::StartUp), 6 * 400_000_000);
        for epoch in &trial.analysis.epochs {
            let off = apart(epoch.first_batch_ns, 410_000_000);
            assert!(off < 0.05, "first batch after {} ns", epoch.first_batch_ns);
        }
    }
}

#[test]
fn workers_that_stay_start_once() {
    let job = Job { epochs: 6, steps: 10, start_up_us: 400_000, life: Life::Run, ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls().check_exact_parts();
    let part = trial.analysis.stall.iter().find(|part| part.cause == StallCause::StartUp);
    assert_eq!(part.map(|part| part.ns), Some(400_000_000));
}

#[test]
fn a_fed_job_is_left_in_peace() {
    for style in [Style::Own, Style::Dlio] {
        let mut job = Job { steps: 200, ..Job::default() };
        if style == Style::Dlio {
            job.meeting_us = None;
        }
        let trial = Trial::of(&job, style);
        trial.check_stalls();
        assert!(trial.truth.share() < 0.02);
        assert_eq!(trial.analysis.verdict.answer, Answer::NotInputBound);
        let top = &trial.analysis.findings[0];
        assert_eq!(top.code, "not-input-bound");
        for other in &trial.analysis.findings[1..] {
            assert!(other.severity < 0.05, "{} costs next to nothing here", other.code);
        }
    }
}

#[test]
fn a_short_job_has_no_verdict() {
    let job = Job { steps: 19, ..Job::default() };
    let trial = Trial::of(&job, Style::Own);
    trial.check_stalls();
    assert_eq!(trial.analysis.verdict.answer, Answer::TooFewSteps);
}
