//! What a run would do, for `--dry-run`.

use feedline_bench::{
    CheckpointPlan, DLIO_MAIN, FrameworkPlan, PhasePlan, Plan, ReadPlan, Semantics, sample_sizes,
};
use feedline_dataset::NameRule;
use feedline_numbers::units;
use feedline_workload::{IoEngine, ReadType, SaveMode, Workload};

use crate::samples;
use crate::screen::held;
use crate::style::{Ink, Style};
use crate::wrap::{self, all_labeled, joined};

#[cfg(test)]
mod tests;

/// The plan in words and numbers.
pub fn plan(plan: &Plan, workload: &Workload, style: Style) -> String {
    let sizes = SetSizes::new(workload);
    let generates = workload.workflow.generate_data;
    let label = if generates { "generate" } else { "data" };
    let mut rows = Vec::new();
    if workload.checkpoint_only() {
        rows.push(("checkpoints", checkpoints_alone(plan, workload)));
    } else {
        rows.push((label, data(&plan.train_files, sizes.train_bytes, workload)));
    }
    if plan.eval.is_some() || (generates && plan.eval_files.total > 0) {
        rows.push(("", data(&plan.eval_files, sizes.eval_bytes, workload)));
    }
    if let Some(phase) = &plan.train {
        let course = Course::new(phase, workload);
        rows.push(("train", training(plan, phase, workload, &course)));
        rows.push(("reading", reading(plan, workload)));
        rows.extend(framework(plan).map(|text| ("framework", text)));
        rows.push(("each epoch", epoch(plan, phase, &sizes)));
        if let Some(phase) = &plan.eval {
            rows.push(("evaluate", evaluation(phase, &sizes, course.evaluations(workload))));
        }
        if workload.workflow.checkpoint {
            rows.push(("checkpoints", checkpoints(plan, workload, &course)));
        }
        rows.push(("time", least_time(plan, workload, &course)));
    }
    let mut lines = wrap::headline(&headline(workload), ("DRY RUN", Ink::Bold), style);
    lines.push(String::new());
    lines.extend(all_labeled(&rows, style.columns()));
    joined(&lines)
}

/// Sample bytes of the training and the evaluation set, containers not counted.
struct SetSizes {
    train_bytes: f64,
    eval_bytes: f64,
    /// Files times samples of both sets.
    train_samples: u64,
    eval_samples: u64,
}

impl SetSizes {
    fn new(workload: &Workload) -> Self {
        let dataset = &workload.dataset;
        let element_bytes = dataset.record_element_type.size_bytes() as f64;
        let per_file = dataset.num_samples_per_file;
        let mut sizes = sample_sizes(dataset);
        let mut next_bytes = || {
            let elements: f64 = sizes.next_dims().iter().map(|dim| *dim as f64).product();
            elements * element_bytes * per_file as f64
        };
        let drawn = dataset.record_dims.is_empty() && dataset.record_length_bytes_stdev > 0.0;
        let mut set_bytes = |files: u64| {
            if drawn { (0..files).map(|_| next_bytes()).sum() } else { files as f64 * next_bytes() }
        };
        Self {
            train_bytes: set_bytes(dataset.num_files_train),
            eval_bytes: set_bytes(dataset.num_files_eval),
            train_samples: dataset.num_files_train.saturating_mul(per_file),
            eval_samples: dataset.num_files_eval.saturating_mul(per_file),
        }
    }
}

/// How the epochs go, `train.max_steps` taken into account.
struct Course {
    epochs: u64,
    steps_per_epoch: u64,
    /// Steps of one rank in all epochs.
    steps: u64,
}

impl Course {
    fn new(phase: &PhasePlan, workload: &Workload) -> Self {
        let all = phase.steps.saturating_mul(u64::from(workload.train.epochs));
        let steps = workload.train.max_steps.map_or(all, |most| most.min(all));
        let epochs = steps.div_ceil(phase.steps.max(1));
        Self { epochs, steps_per_epoch: phase.steps, steps }
    }

    fn evaluations(&self, workload: &Workload) -> u64 {
        let evaluation = &workload.evaluation;
        self.due(evaluation.eval_after_epoch, evaluation.epochs_between_evals)
    }

    fn saves(&self, workload: &Workload) -> u64 {
        let checkpoint = &workload.checkpoint;
        match checkpoint.steps_between_checkpoints {
            Some(0) => 0,
            Some(every) => {
                let full = self.steps / self.steps_per_epoch.max(1);
                let rest = self.steps % self.steps_per_epoch.max(1);
                full * (self.steps_per_epoch / every) + rest / every
            }
            None => {
                self.due(checkpoint.checkpoint_after_epoch, checkpoint.epochs_between_checkpoints)
            }
        }
    }

    /// How many of the epochs are `first` or a multiple of `every` after it.
    fn due(&self, first: u32, every: u32) -> u64 {
        let first = u64::from(first.max(1));
        if first > self.epochs { 0 } else { (self.epochs - first) / u64::from(every.max(1)) + 1 }
    }
}

fn headline(workload: &Workload) -> String {
    let workflow = &workload.workflow;
    let phases = [
        (workflow.generate_data, "generate data"),
        (workflow.train, "train"),
        (workflow.train && workflow.evaluation, "evaluate"),
        (workflow.checkpoint, "checkpoint"),
    ];
    let phases: Vec<_> = phases.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    let phases = match phases.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => "do nothing".to_owned(),
    };
    format!("DRY RUN: nothing was written or read; a run would {phases}")
}

/// The files of one set and where they lie.
fn data(files: &NameRule, bytes: f64, workload: &Workload) -> String {
    let subfolders = match files.subfolders {
        0 | 1 => String::new(),
        many => format!(" (in {} sub-folders)", units::count(many)),
    };
    let size = match workload.dataset.format.name {
        "synthetic" => "made in memory, not read".to_owned(),
        _ => format!("{} of samples", units::bytes(bytes)),
    };
    format!(
        "{} in {}/{}{subfolders}, {size}",
        units::counted(files.total, &format!("{} file", files.extension)),
        workload.dataset.data_folder,
        files.folder,
    )
}

fn training(plan: &Plan, phase: &PhasePlan, workload: &Workload, course: &Course) -> String {
    let epochs = units::counted(course.epochs, "epoch");
    let steps = if course.epochs * course.steps_per_epoch == course.steps {
        format!("{epochs} × {}", units::counted(course.steps_per_epoch, "step"))
    } else {
        format!("{} in {epochs}", units::counted(course.steps, "step"))
    };
    let semantics = match plan.semantics {
        Semantics::Feedline => String::new(),
        Semantics::Dlio => format!(", semantics of DLIO {DLIO_MAIN}"),
    };
    format!(
        "{}, {steps}, batch {}, {} each{semantics}",
        units::counted(u64::from(plan.ranks), "accelerator"),
        units::count(phase.dealing.batch),
        units::counted(u64::from(workload.reader.read_threads), "reader thread"),
    )
}

/// Whose loader, which read model, which calls.
fn reading(plan: &Plan, workload: &Workload) -> String {
    let read = &plan.reading;
    let calls = match read.engine {
        IoEngine::Mmap => "memory maps",
        IoEngine::IoUring => "io_uring",
        IoEngine::Sync | IoEngine::Auto => "pread",
    };
    let model = read_model(read);
    let way = match (workload.data_root().capabilities().network, read.direct) {
        (Some(protocol), _) => format!("requests over {protocol}"),
        (None, true) => format!("{calls} past the page cache"),
        (None, false) => format!("{calls} through the page cache"),
    };
    let kept = match workload.reader.read_type {
        ReadType::Memory => ", files kept open",
        ReadType::OnDemand => "",
    };
    format!("{} loader, {model}{kept}, {way}", read.loader)
}

/// The read model in words, with what tells it from others.
pub(crate) fn read_model(read: &ReadPlan) -> String {
    if let Some(depth) = read.queue_depth() {
        let depth = units::count(depth as u64);
        return format!("deep model ({depth} in flight per reader, nothing decoded)");
    }
    match read.calls {
        Some(calls) => {
            let python = calls.python().map_or(String::new(), |python| format!(" on {python}"));
            format!("framework model (the calls of {}{python})", calls.library)
        }
        None => format!("{} model", read.model()),
    }
}

/// What is done about the framework's own cost.
fn framework(plan: &Plan) -> Option<String> {
    match &plan.framework {
        FrameworkPlan::Ignored => None,
        FrameworkPlan::Burnt(burnt) => Some(format!(
            "{} of CPU time per sample are burnt in its place ({}){}",
            units::duration(burnt.per_sample_ns as f64 / 1e9),
            burnt.source,
            held(burnt.held_bytes)
        )),
        FrameworkPlan::LeftOut(left_out) => {
            Some(format!("left out, {}; measure it: feedline calibrate", left_out.why))
        }
    }
}

fn epoch(plan: &Plan, phase: &PhasePlan, sizes: &SetSizes) -> String {
    let mean_bytes = sizes.train_bytes / sizes.train_samples as f64;
    format!(
        "{}, {}, {} order, `{}` sharding",
        samples::read(phase),
        units::bytes(phase.tally().read as f64 * mean_bytes),
        plan.sample_order(),
        phase.sharding
    )
}

fn evaluation(phase: &PhasePlan, sizes: &SetSizes, times: u64) -> String {
    let mean_bytes = sizes.eval_bytes / sizes.eval_samples as f64;
    format!(
        "{}, each of {}, {}, {}",
        units::counted(times, "evaluation"),
        units::counted(phase.steps, "step"),
        samples::read(phase),
        units::bytes(phase.tally().read as f64 * mean_bytes)
    )
}

fn checkpoints(plan: &Plan, workload: &Workload, course: &Course) -> String {
    let checkpoint = &workload.checkpoint;
    let saves = match checkpoint.overhead_budget {
        Some(share) if checkpoint.steps_between_checkpoints.is_none() => {
            let share = units::round_percent(100.0 * share);
            format!("as many saves as take {share} of the time, each")
        }
        _ => units::counted(course.saves(workload), "save"),
    };
    let way = match checkpoint.save_mode {
        SaveMode::Sync => "",
        SaveMode::Async => ", written while training goes on",
    };
    let bytes = units::bytes(checkpoint_bytes(plan, workload));
    format!("{saves} of {bytes} in {}{way}", checkpoint.checkpoint_folder)
}

/// Bytes of a checkpoint, if the ranks fit the model.
fn checkpoint_bytes(plan: &Plan, workload: &Workload) -> Option<f64> {
    let planned = CheckpointPlan::new(workload, plan.ranks).ok()?;
    Some(planned.layout().total().bytes.total() as f64)
}

/// What a run does that neither generates nor trains.
fn checkpoints_alone(plan: &Plan, workload: &Workload) -> String {
    let checkpoint = &workload.checkpoint;
    let count = |number: Option<u64>, noun| units::counted(number.unwrap_or(0), noun);
    format!(
        "{}, {} of {} by {} in {} (`feedline plan-checkpoint` says who saves what)",
        count(checkpoint.num_checkpoints_write, "save"),
        count(checkpoint.num_checkpoints_read, "load"),
        units::bytes(checkpoint_bytes(plan, workload)),
        units::counted(u64::from(plan.ranks), "rank"),
        checkpoint.checkpoint_folder
    )
}

/// The time of the emulated computation alone, as if storage were infinitely fast.
fn least_time(plan: &Plan, workload: &Workload, course: &Course) -> String {
    let step_s = workload.train.computation_time.mean_seconds();
    let mut total_s = course.steps as f64 * step_s;
    let mut parts =
        format!("{} of {}", units::counted(course.steps, "step"), units::duration(step_s));
    let evaluations = course.evaluations(workload);
    if let Some(phase) = plan.eval.as_ref().filter(|_| evaluations > 0) {
        let (steps, step_s) =
            (evaluations * phase.steps, workload.evaluation.eval_time.mean_seconds());
        total_s += steps as f64 * step_s;
        parts += &format!(
            " and {} of {}",
            units::counted(steps, "evaluation step"),
            units::duration(step_s)
        );
    }
    format!("{} if storage were infinitely fast: {parts}", units::duration(total_s))
}
