//! Compares what an analysis says of a job with what is true of it.

use std::collections::BTreeMap;
use std::path::Path;

use feedline_analyze::analysis::{Confidence, Finding, Phase, Prediction, Step};
use feedline_analyze::{Analysis, StallCause};
use feedline_trace::dftracer::TimeUnit;

use crate::course::Course;
use crate::draft::{Draft, analysis_of, apart};
use crate::job::Job;
use crate::truth::{Style, Truth};
use crate::{dlio, own};

/// A job that was simulated, written down and analyzed.
pub(crate) struct Trial {
    pub(crate) course: Course,
    pub(crate) truth: Truth,
    pub(crate) style: Style,
    pub(crate) analysis: Analysis,
}

impl Trial {
    /// Simulates a job, writes it down in a style, and analyzes that.
    pub(crate) fn of(job: &Job, style: Style) -> Self {
        let course = Course::of(job);
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("trace");
        write(&course, style, &path);
        Self { truth: Truth::of(&course, style), course, style, analysis: analysis_of(&path) }
    }

    /// Every step of every rank stalls as long as it did, in all styles.
    pub(crate) fn check_stalls(&self) -> &Self {
        let found = by_step(&self.analysis);
        assert_eq!(
            found.len(),
            self.truth.steps.len(),
            "steps, the surplus fetches not among them"
        );
        for truth in &self.truth.steps {
            let run = &truth.run;
            let step = found[&(run.rank as u32, run.phase, run.epoch, run.step as u32)];
            let place = format!("rank {} epoch {} step {}", run.rank, run.epoch, run.step);
            assert_eq!(step.start_ns.cast_signed(), run.fetch.0, "start of {place}");
            assert_eq!(step.duration_ns, truth.duration_ns(), "time of {place}");
            assert_eq!(step.fetch_ns, run.fetch.1.abs_diff(run.fetch.0), "fetch of {place}");
            assert_eq!(step.stall_ns, truth.stall_ns, "stall of {place}");
            assert_eq!(step.compute_ns, run.compute.1.abs_diff(run.compute.0), "{place}");
            assert_eq!(step.parts_ns.iter().sum::<u64>(), step.stall_ns, "sum of {place}");
        }
        let verdict = &self.analysis.verdict;
        assert_eq!(verdict.step_ns, self.truth.step_ns());
        assert_eq!(verdict.stall_ns, self.truth.stall_ns());
        assert!((verdict.stall_share - self.truth.share()).abs() < 0.01);
        let parts_ns: u64 = self.analysis.stall.iter().map(|part| part.ns).sum();
        assert_eq!(parts_ns, verdict.stall_ns, "causes add up");
        self
    }

    /// Where batches are named, every step's split is what it was, to the nanosecond.
    pub(crate) fn check_exact_parts(&self) -> &Self {
        let found = by_step(&self.analysis);
        for truth in &self.truth.steps {
            let run = &truth.run;
            let step = found[&(run.rank as u32, run.phase, run.epoch, run.step as u32)];
            let place = format!("rank {} epoch {} step {}", run.rank, run.epoch, run.step);
            assert_eq!(
                step.parts_ns,
                truth.parts_ns,
                "{:?} of {place}",
                StallCause::ALL.map(StallCause::name)
            );
            assert_eq!(step.service_parts_ns, truth.service_parts_ns, "service of {place}");
            let batch = &run.batch;
            assert_eq!(step.worker, Some(batch.worker as u32), "worker of {place}");
            assert_eq!(step.service_ns, batch.time.1.abs_diff(batch.time.0), "{place}");
            assert_eq!(step.service_start_ns, batch.time.0 - run.fetch.0, "{place}");
            assert_eq!(step.samples as usize, self.course.job.batch, "samples of {place}");
            assert_eq!(step.confidence, Confidence::High, "{place}");
        }
        assert_eq!(self.analysis.verdict.confidence, Confidence::High);
        self
    }

    /// Where they are not, the split of the whole job is right within 5 % of the stall.
    pub(crate) fn check_parts(&self) -> &Self {
        for cause in StallCause::ALL {
            let part = self.analysis.stall.iter().find(|part| part.cause == cause);
            let (found, truth) = (part.map_or(0, |part| part.ns), self.truth.part_ns(cause));
            let off = found.abs_diff(truth) as f64 / self.truth.stall_ns() as f64;
            assert!(off < 0.05, "{}: {found} ns, in truth {truth} ns", cause.name());
        }
        self
    }

    /// The first finding has this code and explains this time within 5 %.
    pub(crate) fn check_top(&self, code: &str, explains_ns: u64) -> &Finding {
        let codes: Vec<_> = self
            .analysis
            .findings
            .iter()
            .map(|finding| (finding.code.as_str(), finding.explains_ns))
            .collect();
        let top = self.analysis.findings.first().expect("a finding");
        assert_eq!(top.code, code, "of {codes:?}, expected {explains_ns} ns");
        let off = apart(top.explains_ns, explains_ns);
        assert!(off < 0.05, "{code} explains {} ns, in truth {explains_ns} ns", top.explains_ns);
        check_finding(top);
        top
    }

    /// The first finding is about a cause, and explains as much as that cause made the job stall.
    pub(crate) fn check_cause(&self, code: &str, cause: StallCause) -> &Finding {
        let truth_ns = self.truth.part_ns(cause);
        assert!(truth_ns * 2 > self.truth.stall_ns(), "the cause was not planted");
        self.check_stalls().check_parts();
        if self.style == Style::Own {
            self.check_exact_parts();
        }
        self.check_top(code, truth_ns)
    }

    /// What would be if is what is when the changed job is simulated, within 10 %.
    pub(crate) fn check_prediction(&self, change: &str, changed: &Job) -> &Self {
        let what_if = &self.analysis.what_if;
        assert_eq!(what_if.refused, None);
        assert_eq!(what_if.observed_step_ns, self.truth.mean_step_ns());
        assert!(apart(what_if.modelled_step_ns, what_if.observed_step_ns) < 0.10);
        let case = self.case(change);
        let truth = Truth::of(&Course::of(changed), self.style);
        let off = apart(case.step_ns, truth.mean_step_ns());
        let asked = format!("{change}: {} ns, in truth {}", case.step_ns, truth.mean_step_ns());
        assert!(off < 0.10, "{asked}");
        let [least, most] = case.step_interval_ns;
        assert!(least <= case.step_ns && case.step_ns <= most, "{asked} in {least}..{most}");
        assert!((case.stall_share - truth.share()).abs() < 0.10, "{asked}: {}", case.stall_share);
        self
    }

    /// The case whose text begins so.
    pub(crate) fn case(&self, change: &str) -> &Prediction {
        let cases = &self.analysis.what_if.cases;
        let known: Vec<_> = cases.iter().map(|case| case.change.as_str()).collect();
        let found = cases.iter().find(|case| case.change.starts_with(change));
        found.unwrap_or_else(|| panic!("no case `{change}` in {known:?}"))
    }

    /// The predictions for other numbers of something, such as `workers 8`, by that number.
    pub(crate) fn counted_cases(&self, what: &str) -> BTreeMap<usize, &Prediction> {
        let cases = self.analysis.what_if.cases.iter();
        let counted = cases.filter_map(|case| {
            let rest = case.change.strip_prefix(what)?.trim_start();
            let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
            Some((digits.parse().ok()?, case))
        });
        counted.collect()
    }
}

/// Every finding says what it must.
pub(crate) fn check_finding(finding: &Finding) {
    assert!(!finding.title.is_empty() && !finding.threshold.is_empty(), "{finding:?}");
    assert!(!finding.evidence.is_empty() && !finding.actions.is_empty(), "{finding:?}");
    assert!(finding.actions.len() <= 2, "{finding:?}");
    let sql = finding.sql.to_ascii_lowercase();
    assert!(sql.contains("select") && sql.contains("from"), "{finding:?}");
}

/// Writes a job to a path: a trace folder, or a folder of DFTracer's files.
pub(crate) fn write(course: &Course, style: Style, path: &Path) {
    match style {
        Style::Own => own::draft(course).write_folder(path),
        Style::Dlio => write_dlio(&dlio::draft(course), path),
    }
}

/// DFTracer's files in a folder, in microseconds and compressed as usual.
pub(crate) fn write_dlio(draft: &Draft, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    draft.write_dftracer(&folder.join("trace.pfw.gz"), TimeUnit::Microseconds);
}

fn by_step(analysis: &Analysis) -> BTreeMap<(u32, Phase, u32, u32), &Step> {
    let steps = analysis.steps.iter();
    let found: BTreeMap<_, _> =
        steps.map(|step| ((step.rank, step.phase, step.epoch, step.step), step)).collect();
    assert_eq!(found.len(), analysis.steps.len(), "no step twice");
    found
}
