//! From what all shards know to the analysis.

use crate::Settings;
use crate::analysis::{
    Analysis, Answer, Coverage, FORMAT, Health, Phase, Problem, Rank, Step, Timeline, VERSION,
};
use crate::layer::{CAUSES, StackLayer};
use crate::partial::{
    FORMAT as FORMAT_OF_PARTS, PartialAnalysis, RankPart, VERSION as VERSION_OF_PARTS,
};
use crate::saturating::{Total, grow};
use crate::steps::RankSteps;
use crate::summary::{per_second, ratio};
use crate::sweep::Group;
use crate::{clocks, findings, job, what_if};

impl PartialAnalysis {
    /// Whether it is of a version that can be read.
    pub fn is_known(&self) -> bool {
        let is_ours = self.format == FORMAT_OF_PARTS && self.version == VERSION_OF_PARTS;
        // What a timeline is made of must be there, or its parts could not be dealt out.
        is_ours && self.bucket_ns > 0 && self.buckets == self.moments.len()
    }

    /// The analysis of the whole trace; all shards have been joined.
    pub fn assemble(mut self, settings: &Settings) -> Analysis {
        let mut analysis = Analysis {
            format: FORMAT.to_owned(),
            version: VERSION,
            trace: self.facts.clone(),
            allocation: self.allocation.clone(),
            layers: self.layer_times(),
            overlaps: self.overlaps(),
            functions: self.function_table(),
            data: self.data_set(),
            access: self.access(),
            files: self.file_table(),
            folders: self.folder_table(),
            timeline: self.timeline(),
            ..Analysis::default()
        };
        analysis.health = self.health();
        self.fill_steps(&mut analysis, settings);
        analysis.ranks = self.units.values().map(rank).collect();
        self.fill_timeline(&mut analysis.timeline);
        analysis.steps = self.take_steps();
        analysis.verdict.text = sentence(&analysis);
        analysis.findings = findings::findings(&analysis, &settings.thresholds);
        analysis
    }

    fn coverage(&self) -> Coverage {
        let has_steps = self.units.values().any(|unit| !unit.steps.steps.is_empty());
        let has = |layers: &[StackLayer]| {
            self.functions.iter().any(|it| layers.contains(&it.layer) && it.counts.count > 0)
        };
        let work = [
            StackLayer::Batch,
            StackLayer::Sample,
            StackLayer::Decode,
            StackLayer::Transform,
            StackLayer::Collate,
        ];
        let has_io = has(&[StackLayer::Storage, StackLayer::ObjectStore]);
        match (has_steps, has(&work), has_io) {
            (false, ..) => Coverage::CallsOnly,
            (true, false, false) => Coverage::NoWorkers,
            (true, false, true) if !self.units.values().any(|unit| unit.workers > 0) => {
                Coverage::NoWorkers
            }
            (true, _, false) => Coverage::NoStorage,
            (true, _, true) => Coverage::Full,
        }
    }

    fn health(&self) -> Health {
        let mut problems = self.problems.clone();
        if self.crossing > 0 {
            problems.push(Problem {
                code: "overlap-on-thread".to_owned(),
                count: self.crossing,
                text: format!(
                    "{} events go on after the one around them on the same thread has ended: \
                     self times are approximate there",
                    self.crossing
                ),
                places: Vec::new(),
                limits_claims: false,
            });
        }
        let has =
            |layer| self.functions.iter().any(|part| part.layer == layer && part.counts.count > 0);
        if has(StackLayer::Compute) && !has(StackLayer::Fetch) {
            problems.push(Problem {
                code: "inferred-steps".to_owned(),
                count: 1,
                text:
                    "no fetch is in the trace: gaps between computations were taken for fetches, \
                       whatever the program did in them"
                        .to_owned(),
                places: Vec::new(),
                limits_claims: true,
            });
        }
        problems.sort_by_key(|problem| std::cmp::Reverse((problem.limits_claims, problem.count)));
        Health { coverage: self.coverage(), problems }
    }

    /// What is known of steps: moved onto one clock, then settled between ranks, then judged.
    fn fill_steps(&mut self, analysis: &mut Analysis, settings: &Settings) {
        let (start_ns, run_ns) = (self.facts.start_ns, self.facts.run_ns);
        let mut units: Vec<RankSteps> =
            self.units.values_mut().map(|unit| std::mem::take(&mut unit.steps)).collect();
        let offsets = clocks::offsets(&units.iter().collect::<Vec<_>>());
        clocks::align(units.iter_mut(), &offsets);
        if let Some(problem) = clocks::problem(&offsets) {
            let problems = &mut analysis.health.problems;
            problems.retain(|known| known.code != problem.code);
            problems.insert(0, problem);
        }
        let (mut stragglers, charges) = job::meeting::settle(&mut units);
        for one in &mut stragglers.ranks {
            let own = || charges.iter().filter(|charge| charge.rank == one.rank);
            one.charged_ns = own().map(|charge| charge.ns).total();
            let main = own().max_by_key(|charge| charge.ns);
            one.charged_for = main.map(|charge| charge.cause.name().to_owned()).unwrap_or_default();
        }
        analysis.stragglers = stragglers;
        analysis.epochs = job::epochs::epochs(&units, settings.excluded_steps, start_ns);
        analysis.verdict = job::verdict::verdict(&units, &analysis.epochs);
        let training = || analysis.epochs.iter().filter(|epoch| epoch.phase == Phase::Train);
        analysis.verdict.read_bytes_per_second = per_second(
            training().map(|epoch| epoch.bytes_read).total(),
            training().map(|epoch| epoch.duration_ns).total(),
        );
        analysis.stall = job::stall_by_cause(&units);
        analysis.checkpoints = job::checkpoints::checkpoints(&units, start_ns, run_ns);
        analysis.what_if = what_if::what_if(&units);
        for (unit, steps) in self.units.values_mut().zip(units) {
            unit.steps = steps;
        }
    }

    /// The steps of all ranks, as they are shown. They are many: what they are made of goes, rank by rank.
    fn take_steps(&mut self) -> Vec<Step> {
        let start_ns = self.facts.start_ns;
        let count = self.units.values().map(|unit| unit.steps.steps.len()).sum();
        let mut shown = Vec::with_capacity(count);
        for unit in self.units.values_mut() {
            let steps = std::mem::take(&mut unit.steps.steps);
            shown.extend(steps.iter().map(|step| step.shown(unit.steps.rank, start_ns)));
        }
        shown
    }

    /// Stalls by bucket, of all ranks and of each.
    fn fill_timeline(&self, timeline: &mut Timeline) {
        let start_ns = self.facts.start_ns;
        let (bucket_ns, buckets) = (self.bucket_ns, self.buckets);
        let deal = |intervals: &[(i64, i64)], sums: &mut Vec<u64>| {
            sums.resize(buckets, 0);
            for (from, to) in intervals {
                let from = from.saturating_sub(start_ns).max(0).cast_unsigned();
                let to = to.saturating_sub(start_ns).max(0).cast_unsigned();
                let mut at = from;
                while at < to {
                    let bucket = at / bucket_ns;
                    let until = ((bucket + 1) * bucket_ns).min(to);
                    if let Some(sum) = sums.get_mut(bucket as usize) {
                        grow(sum, until - at);
                    }
                    at = until;
                }
            }
        };
        let mut ready = vec![0; buckets];
        timeline.stall_ns = vec![0; buckets];
        for unit in self.units.values() {
            let mut own = Vec::new();
            deal(&unit.steps.stalls_ns, &mut own);
            deal(&unit.steps.peer_stalls_ns, &mut own);
            for (sum, ns) in timeline.stall_ns.iter_mut().zip(&own) {
                grow(sum, *ns);
            }
            timeline.rank_stall_ns.push(own);
            deal(&unit.steps.ready_ns, &mut ready);
        }
        timeline.ready_batches =
            ready.iter().map(|ns| *ns as f64 / bucket_ns.max(1) as f64).collect();
    }
}

fn rank(unit: &RankPart) -> Rank {
    let mut parts_ns = vec![0; CAUSES];
    let training = || unit.steps.training();
    for step in training() {
        for (sum, ns) in parts_ns.iter_mut().zip(step.parts_ns) {
            grow(sum, ns);
        }
    }
    let seen_ns = unit.groups[Group::Any as usize].ns;
    Rank {
        rank: unit.rank,
        title: unit.title.clone(),
        host: unit.host.clone(),
        workers: unit.steps.phases.iter().map(|phase| phase.workers).max().unwrap_or(unit.workers),
        steps: training().count() as u64,
        step_ns: training().map(|step| step.duration_ns()).total(),
        stall_ns: training().map(|step| step.stall_ns).total(),
        parts_ns,
        compute_ns: training().map(|step| step.compute_ns).total(),
        communication_ns: training().map(|step| step.communication_ns).total(),
        io_ns: unit.groups[Group::Io as usize].ns,
        bytes_read: unit.counts.bytes_read,
        bytes_written: unit.counts.bytes_written,
        calls: unit.counts.calls,
        samples: unit.counts.samples,
        workers_busy_share: ratio(unit.workers_busy_ns, unit.workers_life_ns).unwrap_or(0.0),
        unseen_ns: unit.life_ns.saturating_sub(seen_ns),
    }
}

fn sentence(analysis: &Analysis) -> String {
    let verdict = &analysis.verdict;
    let percent = format!("{:.1} %", verdict.stall_share * 100.0);
    let main = analysis.stall.first().map_or("nothing", |time| time.cause.name());
    match verdict.answer {
        Answer::NotInputBound => format!("{percent} of step time is stalled"),
        Answer::ModeratelyInputBound | Answer::InputBound => {
            format!("{percent} of step time is stalled, most of it for {main}")
        }
        Answer::TooFewSteps => format!(
            "{} are too few ({percent} of their time is stalled)",
            match verdict.steps {
                1 => "1 step".to_owned(),
                steps => format!("{steps} steps"),
            }
        ),
        Answer::NoSteps => "the trace has no steps".to_owned(),
    }
}
