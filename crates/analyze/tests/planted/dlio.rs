//! A job as DFTracer records one of DLIO's: workers are processes, batches have no spans.

use feedline_analyze::analysis::Phase;

use crate::course::{BatchRun, Course, Doing, PhaseRun, SampleRun, StepRun};
use crate::draft::{At, BASE_NS, Draft};
use crate::own::storage;

/// Writes a job down. Ranks do not meet and save nothing: DLIO's traces do not say when they do.
pub(crate) fn draft(course: &Course) -> Draft {
    assert!(course.job.meeting_us.is_none() && course.job.checkpoint.is_none());
    let mut draft = Draft::default();
    for rank in 0..course.job.ranks {
        let host = format!("node{}", rank % course.job.hosts);
        let process = draft.python(&host, main_pid(rank));
        draft.of(process).rank = Some(rank as u32);
    }
    for (crew, facts) in course.crews.iter().enumerate() {
        let host = format!("node{}", facts.rank % course.job.hosts);
        for worker in 0..course.job.workers {
            let process = draft.python(&host, worker_pid(crew, worker));
            let of = draft.of(process);
            of.parent_pid = Some(main_pid(facts.rank));
            of.parent = Some(facts.rank as u32);
            of.start_ns = BASE_NS + facts.alive_ns;
        }
    }
    let mut scribe = Scribe { draft, course };
    for rank in 0..course.job.ranks {
        let time = (0, course.now_ns[rank]);
        scribe.draft.span(main(rank), ("ai_root", "ai_root"), time);
    }
    course.phases.iter().for_each(|phase| scribe.phase(phase));
    course.steps.iter().for_each(|step| scribe.step(step));
    scribe.draft
}

fn main_pid(rank: usize) -> u32 {
    100 + rank as u32
}

fn worker_pid(crew: usize, worker: usize) -> u32 {
    1_000 + (crew * 100 + worker) as u32
}

fn main(rank: usize) -> At {
    At { process: rank as u32, thread: main_pid(rank) }
}

struct Scribe<'a> {
    draft: Draft,
    course: &'a Course,
}

impl Scribe<'_> {
    fn worker(&self, run: &BatchRun) -> At {
        let job = &self.course.job;
        let process = (job.ranks + run.crew * job.workers + run.worker) as u32;
        At { process, thread: worker_pid(run.crew, run.worker) }
    }

    fn phase(&mut self, run: &PhaseRun) {
        let (at, epoch) = (main(run.rank), Some(i64::from(run.epoch)));
        let names: &[&str] = match run.phase {
            Phase::Train => &["train", "epoch.block"],
            Phase::Evaluate => &["evaluate"],
        };
        for name in names {
            self.draft.span(at, ("pipeline", name), run.time).epoch = epoch;
        }
        if let Some(surplus) = run.surplus {
            let event = self.draft.span(at, ("dataloader", "fetch.iter"), surplus);
            (event.epoch, event.step) = (epoch, Some(self.course.job.steps as i64 + 1));
        }
    }

    fn step(&mut self, run: &StepRun) {
        let at = main(run.rank);
        let (epoch, step) = (Some(i64::from(run.epoch)), Some(run.step as i64));
        for (what, time) in
            [(("dataloader", "fetch.iter"), run.fetch), (("compute", "compute"), run.compute)]
        {
            let event = self.draft.span(at, what, time);
            (event.epoch, event.step) = (epoch, step);
        }
        let at = self.worker(&run.batch);
        run.batch.samples.iter().for_each(|sample| self.sample(at, sample));
        self.draft.span(at, ("data_loader", "collate"), run.batch.collate.time);
    }

    fn sample(&mut self, at: At, run: &SampleRun) {
        let job = &self.course.job;
        let item = self.draft.span(at, ("data", "item"), run.time);
        item.sample = Some(run.number as i64);
        let of = |doing: Doing| run.pieces.iter().find(|piece| piece.doing == doing);
        if let (Some(first), Some(last)) = (of(Doing::Open), of(Doing::Decode)) {
            let time = (first.time.0, last.time.1);
            self.draft.span(at, ("reader", "NPZReader.get_sample"), time);
        }
        let file = job.file(run.number);
        for piece in &run.pieces {
            if piece.doing == Doing::Transform {
                self.draft.span(at, ("data", "preprocess"), piece.time);
            } else {
                storage(&mut self.draft, at, self.course, piece, &file);
            }
        }
    }
}
