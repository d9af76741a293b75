//! A job with everything in it, and what must be true of any simulated job.

use feedline_analyze::StallCause;
use feedline_analyze::analysis::{Phase, Rank};

use crate::course::Course;
use crate::draft::Draft;
use crate::draft::brute::{Interval, both_ns, exposed_ns, union_ns};
use crate::job::{Checkpoint, Job, Sample};
use crate::judge::Trial;
use crate::own;
use crate::truth::{Style, Truth};

fn everything() -> Job {
    Job {
        ranks: 2,
        workers: 3,
        outstanding: 6,
        steps: 50,
        epochs: 2,
        sample: Sample { read_us: 1_200, ..Job::default().sample },
        compute_us: 7_500,
        jitter_percent: 40,
        burst: Some((7, 3)),
        evaluation: Some(12),
        checkpoint: Some(Checkpoint {
            every: 20,
            writes: 3,
            write_us: 2_000,
            write_bytes: 1 << 20,
            sync_us: 9_000,
        }),
        surplus_us: Some(300),
        start_up_us: 15_000,
        ..Job::default()
    }
}

#[test]
fn a_simulated_job_keeps_its_rules() {
    let job = everything();
    let course = Course::of(&job);
    for style in [Style::Own, Style::Dlio] {
        for step in &Truth::of(&course, style).steps {
            assert_eq!(step.parts_ns.iter().sum::<u64>(), step.stall_ns, "parts add up");
            let batch = step.run.batch.time;
            assert_eq!(step.service_parts_ns.iter().sum::<u64>(), batch.1.abs_diff(batch.0));
        }
    }
    for rank in 0..job.ranks {
        let steps: Vec<_> = course.steps.iter().filter(|step| step.rank == rank).collect();
        assert_eq!(steps.len(), 2 * (50 + 12));
        for pair in steps.windows(2) {
            assert!(pair[0].fetch.1 <= pair[0].compute.0 && pair[0].end_ns <= pair[1].fetch.0);
        }
        // Never more batches under way or ready than allowed.
        for step in &steps {
            let at_ns = step.batch.time.0;
            let under_way =
                steps.iter().filter(|other| other.batch.time.0 <= at_ns && at_ns < other.fetch.1);
            assert!(under_way.count() <= job.outstanding);
        }
    }
    for crew in 0..course.crews.len() {
        for worker in 0..job.workers {
            let of = |step: &&crate::course::StepRun| {
                step.batch.crew == crew && step.batch.worker == worker
            };
            let work: Vec<Interval> =
                course.steps.iter().filter(of).map(|step| step.batch.time).collect();
            let sum: u64 = work.iter().map(|(from, to)| to.abs_diff(*from)).sum();
            assert_eq!(union_ns(&work), sum, "one batch at a time");
        }
    }
}

/// A consumer finds its batch begun, or no worker alive, whatever the job: batches begin in their order, and
/// all before it have been taken. So nobody ever waits because workers have not come to its batch yet.
#[test]
fn in_order_delivery_leaves_no_time_before_a_batch() {
    for (workers, outstanding) in [(1, 1), (1, 2), (4, 1), (4, 4), (4, 6), (8, 16)] {
        let truth =
            Truth::of(&Course::of(&Job { workers, outstanding, ..everything() }), Style::Own);
        for cause in [StallCause::Workers, StallCause::Prefetch] {
            assert_eq!(truth.part_ns(cause), 0, "{} of {workers} workers", cause.name());
        }
        assert!(truth.part_ns(StallCause::StartUp) > 0);
    }
}

#[test]
fn every_step_of_a_job_with_everything() {
    let trial = Trial::of(&everything(), Style::Own);
    let share = trial.truth.share();
    assert!((0.02..0.9).contains(&share), "some steps stall and some do not: {share}");
    trial.check_stalls().check_exact_parts();
    check_sums(&trial);
    check_epochs(&trial);
    check_overlap(&trial);
}

#[test]
fn every_step_of_a_job_of_dlio() {
    let job = Job { meeting_us: None, checkpoint: None, ..everything() };
    let trial = Trial::of(&job, Style::Dlio);
    trial.check_stalls().check_parts();
    check_sums(&trial);
    let roles: Vec<_> = trial
        .analysis
        .allocation
        .processes
        .iter()
        .filter(|role| role.count > 0)
        .map(|role| (role.role.as_str(), role.count))
        .collect();
    // Two epochs and two evaluations of three workers, for each of two ranks.
    assert_eq!(roles, [("rank", 2), ("worker", 24)]);
}

/// Counts and bytes, and that ranks, epochs and causes add up to the same.
fn check_sums(trial: &Trial) {
    let analysis = &trial.analysis;
    let samples = 2 * 2 * (50 + 12) * 4;
    let named = |name: &str| {
        let found = analysis.functions.iter().find(|function| function.name == name);
        found.map_or((0, 0), |function| (function.count, function.bytes))
    };
    assert_eq!(named("read"), (samples * 3, samples * 3 * 65_536));
    assert_eq!((named("open").0, named("close").0), (samples, samples));
    assert_eq!(analysis.data.bytes_read, samples * 3 * 65_536);
    let writes = trial.course.captures.len() as u64 * 3;
    assert_eq!(analysis.data.bytes_written, writes << 20);
    let of_ranks = |value: fn(&Rank) -> u64| analysis.ranks.iter().map(value).sum::<u64>();
    assert_eq!(of_ranks(|rank| rank.stall_ns), analysis.verdict.stall_ns);
    assert_eq!(of_ranks(|rank| rank.step_ns), analysis.verdict.step_ns);
    assert_eq!(of_ranks(|rank| rank.bytes_read), analysis.data.bytes_read);
    assert_eq!(of_ranks(|rank| rank.steps), 2 * 2 * 50);
    for rank in &analysis.ranks {
        assert_eq!(rank.parts_ns.iter().sum::<u64>(), rank.stall_ns);
        assert_eq!(rank.workers, 3);
    }
    let epochs = analysis.epochs.iter().filter(|epoch| epoch.phase == Phase::Train);
    assert_eq!(epochs.map(|epoch| epoch.stall_ns).sum::<u64>(), analysis.verdict.stall_ns);
    for epoch in &analysis.epochs {
        assert_eq!(epoch.parts_ns.iter().sum::<u64>(), epoch.stall_ns);
        let steps = if epoch.phase == Phase::Train { 50 } else { 12 };
        assert_eq!(epoch.steps, 2 * steps);
    }
    assert_eq!(analysis.epochs.len(), 4);
    assert_eq!(analysis.timeline.bytes_read.iter().sum::<u64>(), analysis.data.bytes_read);
}

/// Utilization by the benchmark's formula, from the simulation's own numbers.
fn check_epochs(trial: &Trial) {
    for epoch in trial.analysis.epochs.iter().filter(|epoch| epoch.phase == Phase::Train) {
        assert_eq!(epoch.excluded_steps, [1, 0]);
        let mut sum = 0.0;
        for rank in 0..2 {
            let of_epoch = |phase: &&crate::course::PhaseRun| {
                (phase.rank, phase.phase, phase.epoch) == (rank, Phase::Train, epoch.epoch)
            };
            let phase = trial.course.phases.iter().find(of_epoch).unwrap();
            let (mut weighted, mut steps) = (0.0, 0);
            for (block, number) in phase.blocks.iter().zip(1..) {
                let runs = trial.course.steps.iter().filter(|step| {
                    (step.rank, step.phase, step.epoch, step.block)
                        == (rank, Phase::Train, epoch.epoch, number)
                });
                let runs: Vec<_> = runs.collect();
                let compute_ns: i64 =
                    runs[1..].iter().map(|step| step.compute.1 - step.compute.0).sum();
                let first_ns = runs[0].compute.1 - runs[0].fetch.0;
                let au = 100.0 * compute_ns as f64 / (block.1 - block.0 - first_ns) as f64;
                weighted += au * runs.len() as f64;
                steps += runs.len();
            }
            assert_eq!(steps, 50);
            sum += weighted / 50.0;
        }
        let found = epoch.au_percent.expect("an epoch that trained");
        assert!((found - sum / 2.0).abs() < 0.01, "{found} %, in truth {} %", sum / 2.0);
    }
}

/// Input and output, and computation, of each rank, counted from the trace itself.
fn check_overlap(trial: &Trial) {
    let draft = own::draft(&trial.course);
    let io = |rank: usize| of_rank(&draft, &trial.course, rank, |category| category == "POSIX");
    let compute =
        |rank: usize| of_rank(&draft, &trial.course, rank, |category| category == "compute");
    let mean = |value: &dyn Fn(usize) -> u64| (value(0) + value(1)) / 2;
    let overlap = trial.analysis.overlaps.iter().find(|overlap| overlap.what == "io").unwrap();
    assert_eq!(overlap.total_ns, mean(&|rank| union_ns(&io(rank))));
    assert_eq!(overlap.overlapped_ns, mean(&|rank| both_ns(&io(rank), &compute(rank))));
    let exposed = mean(&|rank| exposed_ns(&io(rank), &compute(rank)));
    assert!(overlap.exposed_ns.abs_diff(exposed) <= 1, "{} of {exposed}", overlap.exposed_ns);
    assert_eq!(overlap.compute_ns, mean(&|rank| union_ns(&compute(rank))));
    let alone = mean(&|rank| exposed_ns(&compute(rank), &io(rank)));
    assert!(overlap.compute_alone_ns.abs_diff(alone) <= 1, "{}", overlap.compute_alone_ns);
}

fn of_rank(
    draft: &Draft,
    course: &Course,
    rank: usize,
    is_meant: impl Fn(&str) -> bool,
) -> Vec<Interval> {
    let is_its = |thread: u32| {
        let thread = thread as usize;
        if thread < 10_000 {
            thread - 1_000 == rank
        } else {
            course.crews[(thread - 10_000) / 100].rank == rank
        }
    };
    let events = draft.events.iter();
    let meant = events.filter(|event| is_its(event.thread) && is_meant(draft.what(event).0));
    meant
        .map(|event| (event.start_ns, event.start_ns.saturating_add_unsigned(event.duration_ns)))
        .collect()
}
