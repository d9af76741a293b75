//! Why every step of a job stalled: the simulation knows.

use feedline_analyze::StallCause;
use feedline_analyze::analysis::Phase;
use feedline_analyze::layer::CAUSES;

use crate::course::{BatchRun, Course, Doing, StepRun};
use crate::draft::brute::cut_ns;
use crate::job::Store;

/// How traces tell the code of a worker from decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A program without an interpreter: what is nothing else is decoding. Calls stand alone.
    Own,
    /// Python: decoding is marked, and the rest of a sample is the interpreter's.
    Dlio,
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) struct StepTruth {
    pub(crate) run: StepRun,
    pub(crate) stall_ns: u64,
    pub(crate) parts_ns: [u64; CAUSES],
    /// The worker's whole work on the batch.
    pub(crate) service_parts_ns: [u64; CAUSES],
}

impl StepTruth {
    /// How long it took.
    pub(crate) fn duration_ns(&self) -> u64 {
        self.run.end_ns.abs_diff(self.run.fetch.0)
    }
}

/// All steps.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) steps: Vec<StepTruth>,
}

impl Truth {
    /// What is true of a job, in the words of a style.
    pub(crate) fn of(course: &Course, style: Style) -> Self {
        let steps = course.steps.iter().map(|run| {
            let parts_ns = parts(course, run, style);
            let mut service_parts_ns = [0; CAUSES];
            work(course, &run.batch, style, run.batch.time, &mut service_parts_ns);
            let stall_ns = run.fetch.1.abs_diff(run.fetch.0);
            StepTruth { run: run.clone(), stall_ns, parts_ns, service_parts_ns }
        });
        let mut truth = Self { steps: steps.collect() };
        truth.charge_peers(course.job.ranks);
        truth
    }

    /// Who waited in a meeting for a rank that had stalled has stalled too.
    fn charge_peers(&mut self, ranks: usize) {
        for group in self.steps.chunks_mut(ranks) {
            let last = group.iter().max_by_key(|step| step.run.compute.1).expect("a rank");
            if last.run.meeting.is_none() {
                continue;
            }
            let (latest_ns, stalled_ns) = (last.run.compute.1, last.stall_ns);
            for step in group {
                let wait_ns = latest_ns.abs_diff(step.run.compute.1).min(stalled_ns);
                step.stall_ns += wait_ns;
                step.parts_ns[StallCause::Peer as usize] += wait_ns;
            }
        }
    }

    fn training(&self) -> impl Iterator<Item = &StepTruth> {
        self.steps.iter().filter(|step| step.run.phase == Phase::Train)
    }

    /// Stalled time of training.
    pub(crate) fn stall_ns(&self) -> u64 {
        self.training().map(|step| step.stall_ns).sum()
    }

    /// Time of training steps.
    pub(crate) fn step_ns(&self) -> u64 {
        self.training().map(StepTruth::duration_ns).sum()
    }

    /// Mean time of a training step.
    pub(crate) fn mean_step_ns(&self) -> u64 {
        self.step_ns() / self.training().count().max(1) as u64
    }

    /// The stalled share of training.
    pub(crate) fn share(&self) -> f64 {
        self.stall_ns() as f64 / self.step_ns() as f64
    }

    /// Stalled time of training that has this cause.
    pub(crate) fn part_ns(&self, cause: StallCause) -> u64 {
        self.training().map(|step| step.parts_ns[cause as usize]).sum()
    }
}

fn parts(course: &Course, run: &StepRun, style: Style) -> [u64; CAUSES] {
    let mut parts_ns = [0; CAUSES];
    let (batch, fetch) = (&run.batch, run.fetch);
    work(course, batch, style, fetch, &mut parts_ns);
    let mut add = |cause: StallCause, time| parts_ns[cause as usize] += cut_ns(time, fetch);
    add(StallCause::HandOff, (batch.time.1, fetch.1));
    let alive_ns = course.crews[batch.crew].alive_ns;
    add(StallCause::StartUp, (fetch.0, alive_ns));
    add(StallCause::Workers, (alive_ns, batch.free_ns));
    add(StallCause::Prefetch, (batch.free_ns.max(alive_ns), batch.time.0));
    parts_ns
}

/// What of a batch was done in an interval.
fn work(
    course: &Course,
    batch: &BatchRun,
    style: Style,
    within: (i64, i64),
    parts_ns: &mut [u64; CAUSES],
) {
    let pieces = batch.samples.iter().flat_map(|sample| &sample.pieces);
    for piece in pieces.chain([&batch.collate]) {
        let is_files = course.job.store == Store::Files;
        let cause = match piece.doing {
            Doing::Open | Doing::Close if is_files => StallCause::Open,
            Doing::Read(_) if is_files => StallCause::Read,
            Doing::Open | Doing::Close | Doing::Read(_) => StallCause::ObjectStore,
            Doing::Python if style == Style::Dlio => StallCause::Python,
            Doing::Python | Doing::Decode => StallCause::Decode,
            Doing::Transform => StallCause::Transform,
            Doing::Collate => StallCause::Collate,
        };
        parts_ns[cause as usize] += cut_ns(piece.time, within);
    }
}
