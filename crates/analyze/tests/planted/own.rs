//! A job as one of Feedline's own runs records it: ranks and readers are threads, all spans are there.

use feedline_analyze::analysis::Phase;

use crate::course::{BatchRun, Capture, Course, Doing, PhaseRun, StepRun};
use crate::draft::{At, Draft};
use crate::job::Store;

/// The number of the process on every machine: numbers are no names.
const PID: u32 = 4242;

/// Writes a job down.
pub(crate) fn draft(course: &Course) -> Draft {
    let mut draft = Draft::default();
    let hosts = course.job.hosts;
    for host in 0..hosts {
        let process = draft.native(&format!("node{host}"), PID);
        if course.job.ranks == hosts {
            draft.of(process).rank = Some(host as u32);
        }
    }
    let mut scribe = Scribe { draft, course };
    for rank in 0..course.job.ranks {
        let at = scribe.rank(rank);
        scribe.draft.name(at, &format!("rank {rank}"), 0);
        scribe.draft.span(at, ("ai_root", "ai_root"), (0, course.now_ns[rank]));
    }
    for (crew, facts) in course.crews.iter().enumerate() {
        for worker in 0..course.job.workers {
            let name = format!("rank {} reader {worker}", facts.rank);
            let at = scribe.reader(crew, worker);
            scribe.draft.name(at, &name, facts.alive_ns);
        }
    }
    course.phases.iter().for_each(|phase| scribe.phase(phase));
    course.steps.iter().for_each(|step| scribe.step(step));
    course.captures.iter().for_each(|capture| scribe.capture(capture));
    scribe.draft
}

struct Scribe<'a> {
    draft: Draft,
    course: &'a Course,
}

impl Scribe<'_> {
    fn rank(&self, rank: usize) -> At {
        At { process: (rank % self.course.job.hosts) as u32, thread: 1_000 + rank as u32 }
    }

    fn reader(&self, crew: usize, worker: usize) -> At {
        let process = self.rank(self.course.crews[crew].rank).process;
        At { process, thread: 10_000 + (crew * 100 + worker) as u32 }
    }

    fn phase(&mut self, run: &PhaseRun) {
        let (at, epoch) = (self.rank(run.rank), Some(i64::from(run.epoch)));
        match run.phase {
            Phase::Train => {
                self.draft.span(at, ("pipeline", "train"), run.time).epoch = epoch;
                for block in &run.blocks {
                    self.draft.span(at, ("pipeline", "epoch.block"), *block).epoch = epoch;
                }
            }
            Phase::Evaluate => {
                self.draft.span(at, ("pipeline", "evaluate"), run.time).epoch = epoch;
            }
        }
        if let Some(surplus) = run.surplus {
            let event = self.draft.span(at, ("dataloader", "fetch.iter"), surplus);
            (event.epoch, event.step) = (epoch, Some(self.course.job.steps as i64 + 1));
        }
    }

    fn step(&mut self, run: &StepRun) {
        let at = self.rank(run.rank);
        let (epoch, step) = (Some(i64::from(run.epoch)), Some(run.step as i64));
        let job = &self.course.job;
        let bytes = job.batch as i64 * job.sample.reads as i64 * job.sample.read_bytes;
        let fetch = self.draft.span(at, ("dataloader", "fetch.iter"), run.fetch);
        (fetch.epoch, fetch.step, fetch.size) = (epoch, step, Some(bytes));
        let compute = self.draft.span(at, ("compute", "compute"), run.compute);
        (compute.epoch, compute.step) = (epoch, step);
        if let Some(meeting) = run.meeting {
            let meeting = self.draft.span(at, ("comm", "all_reduce"), meeting);
            (meeting.epoch, meeting.step) = (epoch, step);
        }
        self.batch(&run.batch, epoch, step);
    }

    fn batch(&mut self, run: &BatchRun, epoch: Option<i64>, step: Option<i64>) {
        let (at, job) = (self.reader(run.crew, run.worker), &self.course.job);
        let bytes = job.sample.reads as i64 * job.sample.read_bytes;
        let batch = self.draft.span(at, ("dataloader", "batch"), run.time);
        (batch.epoch, batch.step) = (epoch, step);
        batch.size = Some(bytes * job.batch as i64);
        for sample in &run.samples {
            let item = self.draft.span(at, ("data", "item"), sample.time);
            (item.epoch, item.step, item.size) = (epoch, step, Some(bytes));
            item.sample = Some(sample.number as i64);
            let file = job.file(sample.number);
            for piece in &sample.pieces {
                if piece.doing == Doing::Transform {
                    let event = self.draft.span(at, ("data", "preprocess"), piece.time);
                    (event.epoch, event.step) = (epoch, step);
                } else {
                    storage(&mut self.draft, at, self.course, piece, &file);
                }
            }
        }
        let collate = self.draft.span(at, ("dataloader", "collate"), run.collate.time);
        (collate.epoch, collate.step) = (epoch, step);
    }

    fn capture(&mut self, run: &Capture) {
        let at = self.rank(run.rank);
        let bytes = self.course.job.checkpoint.map_or(0, |checkpoint| checkpoint.write_bytes);
        let event = self.draft.span(at, ("checkpoint", "capture"), run.time);
        (event.epoch, event.step) = (Some(i64::from(run.epoch)), Some(run.step as i64));
        event.size = Some(bytes * run.writes.len() as i64);
        let file = format!("/save/{}-{}/rank{}.pt", run.epoch, run.step, run.rank);
        for (time, number) in run.writes.iter().zip(0..) {
            self.draft.moved(at, ("POSIX", "write"), *time, &file, (number * bytes, bytes));
        }
        self.draft.call(at, ("POSIX", "fsync"), run.sync, &file);
    }
}

/// Writes down a call on a file or an object; nothing for what is none.
pub(crate) fn storage(
    draft: &mut Draft,
    at: At,
    course: &Course,
    piece: &crate::course::Piece,
    file: &str,
) {
    let bytes = course.job.sample.read_bytes;
    let category = if course.job.store == Store::Files { "POSIX" } else { "S3" };
    match piece.doing {
        Doing::Open => _ = draft.call(at, (category, "open"), piece.time, file),
        Doing::Close => _ = draft.call(at, (category, "close"), piece.time, file),
        Doing::Read(number) => {
            let place = (number as i64 * bytes, bytes);
            draft.moved(at, (category, "read"), piece.time, file, place);
        }
        Doing::Decode | Doing::Transform | Doing::Python | Doing::Collate => {}
    }
}
