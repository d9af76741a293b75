//! From words on a command line to a checked workload.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use feedline_bench::{Found, FrameworkPlan, Machine, Plan, Semantics};
use feedline_workload::{
    BUILT_IN, Composed, Override, RunPaths, Sharding, Source, Workload, WorkloadError, compose,
    presets, resolve,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::calibration_file::Stored;
use crate::failure;

/// Shorter texts are no secrets, and may stand for something else as well.
const SECRET_MIN: usize = 4;

/// A workload that has passed every check that needs no file.
pub(crate) struct Request {
    pub(crate) composed: Composed,
    pub(crate) workload: Workload,
    pub(crate) plan: Plan,
    pub(crate) warnings: Vec<String>,
}

/// Where the text of a workload comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) origin: String,
    pub(crate) yaml: String,
}

/// Finds a workload by name among the shipped ones, then in `config_dir/workload/`, or by path.
pub(crate) fn find(name: &str, config_dir: Option<&Path>) -> anyhow::Result<Text> {
    if let Some(preset) = presets::find(name) {
        let origin = BUILT_IN.to_owned();
        return Ok(Text { name: name.to_owned(), origin, yaml: preset.yaml.to_owned() });
    }
    if let Some(folder) = config_dir {
        let path = folder.join("workload").join(format!("{name}.yaml"));
        if path.is_file() {
            return read(&path);
        }
    }
    let path = Path::new(name);
    if path.is_file() {
        return read(path);
    }
    let looks_like_path = name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml");
    if looks_like_path {
        return Err(failure::hinted(
            format!("{name}: no such workload file"),
            "`feedline workloads` lists the shipped workloads",
        ));
    }
    let near = presets::nearest(name);
    let file = format!("{name}.yaml");
    let hint = match near.as_slice() {
        _ if Path::new(&file).is_file() => format!("did you mean the file {file}?"),
        [] => "`feedline workloads` lists all".to_owned(),
        near => format!("did you mean {}? `feedline workloads` lists all", near.join(", ")),
    };
    Err(failure::hinted(format!("no workload is called `{name}`"), hint))
}

fn read(path: &Path) -> anyhow::Result<Text> {
    let origin = path.display().to_string();
    let yaml = fs::read_to_string(path).with_context(|| format!("{origin}: cannot be read"))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok(Text { name: stem.unwrap_or_else(|| origin.clone()), origin, yaml })
}

impl Request {
    /// Composes, types, checks and plans.
    /// `sharding` is for workloads that say nothing about it.
    pub(crate) fn new(
        wish: &Wish,
        ranks: u32,
        semantics: Semantics,
        sharding: Sharding,
    ) -> anyhow::Result<Self> {
        let composed = wish.composed()?;
        let resolved = resolve(&composed)?;
        let mut warnings: Vec<_> = resolved.warnings.iter().map(ToString::to_string).collect();
        let mut workload = resolved.workload;
        warnings.extend(leave_out_training(&composed, &mut workload));
        if workload.reader.sharding == Sharding::Auto {
            workload.reader.sharding = sharding;
        }
        let remarks = feedline_workload::check(&workload, ranks)?;
        warnings.extend(remarks.iter().map(ToString::to_string));
        let plan = Plan::new(&workload, ranks, semantics)?;
        plan.check_steps(&workload)?;
        Ok(Self { composed, workload, plan, warnings })
    }

    /// Decides what the run does about the framework's own cost.
    pub(crate) fn settle_framework(&mut self, stored: Option<&Stored>) -> anyhow::Result<()> {
        if !FrameworkPlan::is_wanted(&self.workload) {
            return Ok(());
        }
        let calibration = stored.map(Stored::parse).transpose()?;
        let machine = Machine::this();
        let found = stored.zip(calibration.as_ref()).map(|(stored, calibration)| Found {
            calibration,
            file: &stored.file,
            cpu: &machine.cpu,
        });
        self.plan.framework = FrameworkPlan::decide(&self.workload, &self.plan, found)?;
        Ok(())
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

/// Takes a transformer that has checkpoints and no data set for what it is, although its workflow says
/// that it generates and trains, as that of DLIO's `llama_1t` does; a remark if so.
fn leave_out_training(composed: &Composed, workload: &mut Workload) -> Option<String> {
    let workflow = &mut workload.workflow;
    let section = composed.tree.get("workload").and_then(|tree| tree.get("dataset"));
    let about_checkpoints = workflow.checkpoint && workload.model.is_transformer();
    if !about_checkpoints || section.is_some() || !(workflow.train || workflow.generate_data) {
        return None;
    }
    workflow.train = false;
    workflow.generate_data = false;
    workflow.evaluation = false;
    Some("the workload has no `dataset` section: it is run for its checkpoints alone".to_owned())
}

/// A workload as it was named, and what is to be changed in it.
#[derive(Clone)]
pub(crate) struct Wish {
    pub(crate) text: Text,
    pub(crate) overrides: Vec<Override>,
    /// The time of the run, in all places where a workload asks for it.
    pub(crate) now: Zoned,
}

impl Wish {
    pub(crate) fn new(text: Text, overrides: Vec<Override>) -> Self {
        Self { text, overrides, now: Zoned::now() }
    }

    /// The workload alone, without checks.
    pub(crate) fn workload(&self) -> Result<Workload, WorkloadError> {
        let composed = self.composed()?;
        let mut workload = resolve(&composed)?.workload;
        leave_out_training(&composed, &mut workload);
        Ok(workload)
    }

    /// The composed tree alone.
    pub(crate) fn composed(&self) -> Result<Composed, WorkloadError> {
        let Text { name, origin, yaml } = &self.text;
        let source = Source { name, origin, text: yaml };
        compose(source, &self.overrides, &|format| self.now.strftime(format).to_string())
    }

    /// The same with further overrides.
    pub(crate) fn with(mut self, overrides: Vec<Override>) -> Self {
        self.overrides.extend(overrides);
        self
    }
}
