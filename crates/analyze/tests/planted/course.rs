//! The course of a job: when everything in it happens, to the nanosecond.
//!
//! Batch k of a phase is worker k mod W's. It may begin when batch k - `outstanding` has been taken, and the
//! consumer takes batches in their order. So the times of a step follow from those of the steps before it,
//! and nothing has to be tried.

use feedline_analyze::analysis::Phase;

use crate::draft::US;
use crate::draft::brute::Interval;
use crate::job::{Job, Life, Place};

/// What the consumer does between two steps.
const LOOP_NS: i64 = 2 * US;
/// What a rank does before its first epoch.
const BEGIN_NS: i64 = 500 * US;

/// What a worker does for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Open,
    /// The n-th read of the sample.
    Read(usize),
    Close,
    Decode,
    Transform,
    Python,
    Collate,
}

/// A part of a worker's work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) doing: Doing,
    pub(crate) time: Interval,
}

/// The work on a sample.
#[derive(Clone, Debug)]
pub(crate) struct SampleRun {
    /// Its number in the epoch, all ranks together.
    pub(crate) number: usize,
    pub(crate) time: Interval,
    pub(crate) pieces: Vec<Piece>,
}

/// The work on a batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchRun {
    /// Row of [`Course::crews`].
    pub(crate) crew: usize,
    pub(crate) worker: usize,
    /// When the worker was done with what it did before, or alive.
    pub(crate) free_ns: i64,
    pub(crate) time: Interval,
    pub(crate) samples: Vec<SampleRun>,
    pub(crate) collate: Piece,
}

/// A step of a rank.
#[derive(Clone, Debug)]
pub(crate) struct StepRun {
    pub(crate) rank: usize,
    pub(crate) phase: Phase,
    pub(crate) epoch: u32,
    pub(crate) block: u32,
    /// Counted from 1.
    pub(crate) step: usize,
    pub(crate) fetch: Interval,
    pub(crate) compute: Interval,
    pub(crate) meeting: Option<Interval>,
    pub(crate) end_ns: i64,
    pub(crate) batch: BatchRun,
}

/// Workers of a rank that were started together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    pub(crate) rank: usize,
    pub(crate) alive_ns: i64,
}

/// An epoch's training, or an evaluation.
#[derive(Clone, Debug)]
pub(crate) struct PhaseRun {
    pub(crate) rank: usize,
    pub(crate) phase: Phase,
    pub(crate) epoch: u32,
    pub(crate) time: Interval,
    pub(crate) blocks: Vec<Interval>,
    pub(crate) surplus: Option<Interval>,
}

/// A save.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) rank: usize,
    pub(crate) epoch: u32,
    pub(crate) step: usize,
    pub(crate) time: Interval,
    pub(crate) writes: Vec<Interval>,
    pub(crate) sync: Interval,
}

/// Everything that happens in a job.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) job: Job,
    pub(crate) crews: Vec<Crew>,
    pub(crate) phases: Vec<PhaseRun>,
    pub(crate) steps: Vec<StepRun>,
    pub(crate) captures: Vec<Capture>,
    /// By rank: where it is; in the end, when it was done.
    pub(crate) now_ns: Vec<i64>,
    /// By rank: workers that live as long as the run, of training and of evaluations.
    staying: Vec<[Option<Staff>; 2]>,
}

/// Workers, and when each is free.
#[derive(Clone, Debug)]
struct Staff {
    crew: usize,
    free_ns: Vec<i64>,
}

/// A rank in a phase.
struct Line {
    staff: Staff,
    begin_ns: i64,
    /// When batches were taken.
    taken_ns: Vec<i64>,
    blocks: Vec<Interval>,
    block_ns: i64,
}

impl Course {
    /// Lets a job run.
    pub(crate) fn of(job: &Job) -> Self {
        let mut course = Self {
            job: job.clone(),
            crews: Vec::new(),
            phases: Vec::new(),
            steps: Vec::new(),
            captures: Vec::new(),
            now_ns: vec![BEGIN_NS; job.ranks],
            staying: vec![[None, None]; job.ranks],
        };
        for epoch in 1..=job.epochs {
            // All begin an epoch together.
            let latest_ns = course.now_ns.iter().copied().max().unwrap_or(0);
            course.now_ns.fill(latest_ns);
            course.phase(Phase::Train, epoch, job.steps);
            if let Some(steps) = job.evaluation {
                course.phase(Phase::Evaluate, epoch, steps);
            }
        }
        course
    }

    fn phase(&mut self, phase: Phase, epoch: u32, steps: usize) {
        let mut lines: Vec<Line> =
            (0..self.job.ranks).map(|rank| self.begin(phase, rank)).collect();
        for step in 0..steps {
            let first = self.steps.len();
            for (rank, line) in lines.iter_mut().enumerate() {
                let run = self.step(phase, epoch, (rank, step), line);
                self.steps.push(run);
            }
            if phase == Phase::Train {
                self.meet(first);
                let is_due = |every: usize| (step + 1).is_multiple_of(every) && step + 1 < steps;
                if self.job.checkpoint.is_some_and(|checkpoint| is_due(checkpoint.every)) {
                    self.save(epoch, step + 1, &mut lines);
                }
            }
        }
        for (rank, line) in lines.into_iter().enumerate() {
            self.end(phase, epoch, rank, line);
        }
    }

    fn begin(&mut self, phase: Phase, rank: usize) -> Line {
        let begin_ns = self.now_ns[rank];
        let stays = self.staying[rank][phase as usize].take();
        let staff = stays.unwrap_or_else(|| {
            let alive_ns = begin_ns + self.job.start_up_us * US;
            self.crews.push(Crew { rank, alive_ns });
            Staff { crew: self.crews.len() - 1, free_ns: vec![alive_ns; self.job.workers] }
        });
        Line { staff, begin_ns, taken_ns: Vec::new(), blocks: Vec::new(), block_ns: begin_ns }
    }

    fn step(
        &mut self,
        phase: Phase,
        epoch: u32,
        (rank, step): (usize, usize),
        line: &mut Line,
    ) -> StepRun {
        let number = u64::from(epoch) * 2 + phase as u64;
        let place = |piece| Place { rank, phase: number, step, sample: 0, piece };
        let batch = self.batch(number, (rank, step), line);
        let asked_ns = self.now_ns[rank];
        let hand_off_ns = self.job.takes_ns(self.job.hand_off_us, place(100));
        let got_ns = asked_ns.max(batch.time.1) + hand_off_ns;
        let done_ns = got_ns + self.job.takes_ns(self.job.compute_us, place(101));
        line.taken_ns.push(got_ns);
        self.now_ns[rank] = done_ns + LOOP_NS;
        StepRun {
            rank,
            phase,
            epoch,
            block: line.blocks.len() as u32 + 1,
            step: step + 1,
            fetch: (asked_ns, got_ns),
            compute: (got_ns, done_ns),
            meeting: None,
            end_ns: done_ns + LOOP_NS,
            batch,
        }
    }

    fn batch(&self, phase: u64, (rank, step): (usize, usize), line: &mut Line) -> BatchRun {
        let job = &self.job;
        let worker = step % job.workers;
        let free_ns = line.staff.free_ns[worker];
        let before = step.checked_sub(job.outstanding);
        let allowed_ns = before.map_or(line.begin_ns, |before| line.taken_ns[before]);
        let begin_ns = free_ns.max(allowed_ns);
        let mut at_ns = begin_ns;
        let mut samples = Vec::new();
        for sample in 0..job.batch {
            let number = (step * job.batch + sample) * job.ranks + rank;
            let place = Place { rank, phase, step, sample, piece: 0 };
            let run = self.sample(number, place, at_ns);
            at_ns = run.time.1;
            samples.push(run);
        }
        let collate_ns =
            job.takes_ns(job.collate_us, Place { rank, phase, step, sample: 0, piece: 102 });
        let end_ns = at_ns + collate_ns;
        line.staff.free_ns[worker] = end_ns;
        BatchRun {
            crew: line.staff.crew,
            worker,
            free_ns,
            time: (begin_ns, end_ns),
            samples,
            collate: Piece { doing: Doing::Collate, time: (at_ns, end_ns) },
        }
    }

    fn sample(&self, number: usize, place: Place, begin_ns: i64) -> SampleRun {
        let (job, usual) = (&self.job, &self.job.sample);
        let burst = job.burst.filter(|(every, _)| place.step % every == every - 1);
        let all_times = burst.map_or(1, |(_, times)| times);
        let slow = job.slow_rank.filter(|(rank, _)| *rank == place.rank);
        let folder = job.slow_folder.filter(|_| job.is_slow(number));
        let store_times = slow.map_or(1, |(_, times)| times) * folder.map_or(1, |(_, times)| times);
        let mut to_do = vec![(Doing::Python, usual.python_us)];
        to_do.push((Doing::Open, usual.open_us * store_times));
        to_do.extend((0..usual.reads).map(|read| (Doing::Read(read), usual.read_us * store_times)));
        to_do.push((Doing::Close, usual.close_us * store_times));
        to_do.push((Doing::Decode, usual.decode_us));
        to_do.push((Doing::Transform, usual.transform_us));
        let (mut at_ns, mut pieces) = (begin_ns, Vec::new());
        for ((doing, usual_us), piece) in to_do.into_iter().zip(0..) {
            let end_ns = at_ns + job.takes_ns(usual_us * all_times, Place { piece, ..place });
            pieces.push(Piece { doing, time: (at_ns, end_ns) });
            at_ns = end_ns;
        }
        SampleRun { number, time: (begin_ns, at_ns), pieces }
    }

    /// All ranks wait for each other at the end of the steps from `first` on.
    fn meet(&mut self, first: usize) {
        let Some(meeting_us) = self.job.meeting_us else { return };
        let last_ns = self.steps[first..].iter().map(|step| step.compute.1).max().unwrap_or(0);
        for step in &mut self.steps[first..] {
            let meeting = (step.compute.1, last_ns + meeting_us * US);
            step.meeting = Some(meeting);
            step.end_ns = meeting.1 + LOOP_NS;
            self.now_ns[step.rank] = step.end_ns;
        }
    }

    fn save(&mut self, epoch: u32, step: usize, lines: &mut [Line]) {
        let Some(checkpoint) = self.job.checkpoint else { return };
        for (rank, line) in lines.iter_mut().enumerate() {
            let begin_ns = self.now_ns[rank];
            line.blocks.push((line.block_ns, begin_ns));
            let mut at_ns = begin_ns;
            let mut writes = Vec::new();
            for _ in 0..checkpoint.writes {
                writes.push((at_ns, at_ns + checkpoint.write_us * US));
                at_ns += checkpoint.write_us * US;
            }
            let sync = (at_ns, at_ns + checkpoint.sync_us * US);
            let time = (begin_ns, sync.1);
            self.captures.push(Capture { rank, epoch, step, time, writes, sync });
            self.now_ns[rank] = sync.1;
            line.block_ns = sync.1;
        }
    }

    fn end(&mut self, phase: Phase, epoch: u32, rank: usize, mut line: Line) {
        let asked_ns = self.now_ns[rank];
        let surplus = self.job.surplus_us.filter(|_| phase == Phase::Train);
        let surplus = surplus.map(|us| (asked_ns, asked_ns + us * US));
        let end_ns = surplus.map_or(asked_ns, |(_, end_ns)| end_ns);
        line.blocks.push((line.block_ns, end_ns));
        let time = (line.begin_ns, end_ns);
        self.phases.push(PhaseRun { rank, phase, epoch, time, blocks: line.blocks, surplus });
        self.now_ns[rank] = end_ns + LOOP_NS;
        if self.job.life == Life::Run {
            self.staying[rank][phase as usize] = Some(line.staff);
        }
    }
}
