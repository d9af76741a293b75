//! A workload that has passed every check that needs no file, and what follows from it.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use feedline_bench::{Found, FrameworkPlan, Machine, Plan};
use feedline_dataset::{NameRule, discover};
use feedline_store::Store;
use feedline_workload::{Composed, Location, RunPaths, Sharding, Workload, resolve};

use crate::error::EngineError;
use crate::options::RunOptions;
use crate::selection::{WorkloadSelection, leave_out_training, parse_overrides};
use crate::{place, quick};

/// Shorter texts are not secrets, and may occur for other reasons.
const SECRET_MIN: usize = 4;

/// Below the data folder: what a quick run makes for itself.
const QUICK_FOLDER: &str = "quick";

/// A run that can begin.
pub struct PlannedRun {
    /// What was asked for.
    pub selection: WorkloadSelection,
    /// How it is run.
    pub options: RunOptions,
    /// The workload's tree, overrides included.
    pub composed: Composed,
    /// The workload.
    pub workload: Workload,
    /// Files, order, steps.
    pub plan: Plan,
    /// What the user should know about the workload.
    pub warnings: Vec<String>,
    data: OnceLock<Arc<dyn Store>>,
    pub(crate) stop: Arc<AtomicBool>,
}

/// Where the data of a quick run comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuickData {
    /// The workload's data folder if it has enough, else a small set of its own.
    Any,
    /// A small set of its own, made if it is not there.
    Own,
    /// A small set of its own, made now.
    New,
}

impl PlannedRun {
    /// Composes, types, checks and plans. Setting `stop` later ends the run early.
    ///
    /// # Errors
    /// The workload is wrong, or cannot be run with these options.
    pub fn new(
        selection: WorkloadSelection,
        options: RunOptions,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        let composed = selection.composed()?;
        let resolved = resolve(&composed)?;
        let mut warnings: Vec<_> = resolved.warnings.iter().map(ToString::to_string).collect();
        let mut workload = resolved.workload;
        warnings.extend(leave_out_training(&composed, &mut workload));
        if workload.reader.sharding == Sharding::Auto {
            workload.reader.sharding = options.sharding;
        }
        let remarks = feedline_workload::check(&workload, options.accelerators)?;
        warnings.extend(remarks.iter().map(ToString::to_string));
        let mut plan = Plan::new(&workload, options.accelerators, options.semantics)?;
        plan.check_steps(&workload)?;
        plan.framework = framework(&workload, &plan, &options)?;
        let (data, stop) = (OnceLock::new(), Arc::clone(stop));
        Ok(Self { selection, options, composed, workload, plan, warnings, data, stop })
    }

    /// The same cut down to about 2 GiB and well under a minute. Whatever the selection overrides
    /// stays as the user says.
    ///
    /// # Errors
    /// As [`PlannedRun::new`], or the data folder cannot be looked at.
    pub fn quick(
        mut selection: WorkloadSelection,
        options: RunOptions,
        data: QuickData,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, EngineError> {
        let full = selection.workload()?;
        let cuts = parse_overrides(&quick::overrides(&full, options.accelerators))?;
        selection.overrides.splice(..0, cuts);
        let planned = Self::new(selection, options, stop)?;
        if full.checkpoint_only() || (data == QuickData::Any && planned.has_data()?) {
            return Ok(planned);
        }
        // Data of its own, beside whatever is in the data folder, made unless an earlier run did.
        let folder = Location::parse(&full.dataset.data_folder).join(QUICK_FOLDER).to_string();
        let folder = format!("dataset.data_folder={}", quoted(&folder));
        let planned = planned.again_with(&[folder])?;
        match data != QuickData::New && planned.has_data()? {
            true => Ok(planned),
            false => planned.again_with(&["workflow.generate_data=True"]),
        }
    }

    fn again_with(self, words: &[impl AsRef<str>]) -> Result<Self, EngineError> {
        Self::new(self.selection.with(words)?, self.options, &self.stop)
    }

    /// The store that holds the data set, connected once.
    ///
    /// # Errors
    /// The workload names no place, or one that cannot be connected to.
    pub fn data(&self) -> Result<Arc<dyn Store>, EngineError> {
        if let Some(data) = self.data.get() {
            return Ok(Arc::clone(data));
        }
        let data = place::data(&self.workload, &self.plan.reading, &self.stop)?;
        Ok(Arc::clone(self.data.get_or_init(|| data)))
    }

    /// True if every file that the run reads is there already, be it in a larger set.
    fn has_data(&self) -> Result<bool, EngineError> {
        let store = self.data()?;
        let complete =
            |rule: &NameRule, key| rule.total == 0 || discover(&*store, rule, key).is_ok();
        Ok(complete(&self.plan.train_files, "dataset.num_subfolders_train")
            && complete(&self.plan.eval_files, "dataset.num_subfolders_eval"))
    }

    /// The text without what must not lie around in results.
    fn without_secrets(&self, text: String) -> String {
        let storage = &self.workload.storage;
        let secrets = ["secret_access_key", "session_token"].map(|key| storage.option_text(key));
        let secrets = secrets.into_iter().flatten().filter(|secret| secret.len() >= SECRET_MIN);
        secrets.fold(text, |text, secret| text.replace(&secret, "REDACTED"))
    }

    /// The three files that Hydra leaves, as names below `run_dir` and their text.
    pub(crate) fn hydra_files(&self, run_dir: &Path) -> Vec<(String, String)> {
        let folder = match self.composed.hydra.output_subdir.as_deref() {
            None => feedline_workload::DEFAULT_OUTPUT_SUBDIR,
            Some("") => return Vec::new(),
            Some(name) => name,
        };
        let cwd = std::env::current_dir().unwrap_or_default();
        let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
        let paths = RunPaths { run_dir: &run_dir.to_string_lossy(), cwd: &cwd.to_string_lossy() };
        [
            ("config.yaml", self.composed.config_yaml()),
            ("overrides.yaml", self.composed.overrides_yaml()),
            ("hydra.yaml", self.composed.hydra_yaml(paths)),
        ]
        .into_iter()
        .map(|(name, text)| (format!("{folder}/{name}"), self.without_secrets(text)))
        .collect()
    }
}

/// What the run does about the framework's own cost.
fn framework(
    workload: &Workload,
    plan: &Plan,
    options: &RunOptions,
) -> Result<FrameworkPlan, EngineError> {
    if !FrameworkPlan::is_wanted(workload) {
        return Ok(FrameworkPlan::default());
    }
    let stored = options.calibration.as_ref();
    let calibration = stored.map(|stored| stored.parse()).transpose()?;
    let machine = Machine::this();
    let found = stored.zip(calibration.as_ref()).map(|(stored, calibration)| Found {
        calibration,
        file: &stored.file,
        cpu: &machine.cpu,
    });
    Ok(FrameworkPlan::decide(workload, plan, found)?)
}

/// A value that the override grammar takes as this very text.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
