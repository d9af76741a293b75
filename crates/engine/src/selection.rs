//! Which workload is run, and what is changed in it.

use std::fs;
use std::path::Path;

use feedline_workload::{
    BUILT_IN, Composed, Override, Source, Workload, WorkloadError, compose, presets, resolve,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// The text of a workload and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSource {
    /// What the user calls it.
    pub name: String,
    /// The file, or [`BUILT_IN`].
    pub origin: String,
    /// Its YAML.
    pub yaml: String,
}

impl WorkloadSource {
    /// Finds a workload by name among the shipped ones, then in `config_dir/workload/`, or by path.
    ///
    /// # Errors
    /// If there is no such workload, or its file cannot be read.
    pub fn find(name: &str, config_dir: Option<&Path>) -> Result<Self, EngineError> {
        if let Some(preset) = presets::find(name) {
            let origin = BUILT_IN.to_owned();
            return Ok(Self { name: name.to_owned(), origin, yaml: preset.yaml.to_owned() });
        }
        if let Some(folder) = config_dir {
            let path = folder.join("workload").join(format!("{name}.yaml"));
            if path.is_file() {
                return Self::read(&path);
            }
        }
        let path = Path::new(name);
        if path.is_file() {
            return Self::read(path);
        }
        let name = name.to_owned();
        if name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml") {
            return Err(EngineError::NoWorkloadFile { name });
        }
        let file = format!("{name}.yaml");
        let meant = match Path::new(&file).is_file() {
            true => vec![file],
            false => presets::nearest(&name).iter().map(ToString::to_string).collect(),
        };
        Err(EngineError::UnknownWorkload { name, meant })
    }

    fn read(path: &Path) -> Result<Self, EngineError> {
        let origin = path.display().to_string();
        let yaml = fs::read_to_string(path)
            .map_err(|source| EngineError::Unreadable { path: origin.clone(), source })?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Ok(Self { name: stem.unwrap_or_else(|| origin.clone()), origin, yaml })
    }
}

/// A workload as it was named, and what is to be changed in it. It travels as text: the machines of
/// other processes need not have the workload's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "SelectionText", into = "SelectionText")]
pub struct WorkloadSelection {
    /// The workload.
    pub source: WorkloadSource,
    /// What is changed in it; later ones win.
    pub overrides: Vec<Override>,
    /// The time of the run, in all places where a workload asks for it.
    pub now: Zoned,
}

#[derive(Serialize, Deserialize)]
struct SelectionText {
    source: WorkloadSource,
    overrides: Vec<String>,
    now: String,
}

impl WorkloadSelection {
    /// A workload that is run now.
    pub fn new(source: WorkloadSource, overrides: Vec<Override>) -> Self {
        Self { source, overrides, now: Zoned::now() }
    }

    /// The composed tree, without checks.
    ///
    /// # Errors
    /// The workload's text or an override is wrong.
    pub fn composed(&self) -> Result<Composed, WorkloadError> {
        let WorkloadSource { name, origin, yaml } = &self.source;
        let source = Source { name, origin, text: yaml };
        compose(source, &self.overrides, &|format| self.now.strftime(format).to_string())
    }

    /// The workload, without checks.
    pub(crate) fn workload(&self) -> Result<Workload, WorkloadError> {
        let composed = self.composed()?;
        let mut workload = resolve(&composed)?.workload;
        leave_out_training(&composed, &mut workload);
        Ok(workload)
    }

    /// The same with further overrides.
    pub(crate) fn with(mut self, words: &[impl AsRef<str>]) -> Result<Self, WorkloadError> {
        self.overrides.extend(parse_overrides(words)?);
        Ok(self)
    }
}

impl From<WorkloadSelection> for SelectionText {
    fn from(selection: WorkloadSelection) -> Self {
        let overrides = selection.overrides.into_iter().map(|item| item.text).collect();
        Self { source: selection.source, overrides, now: selection.now.to_string() }
    }
}

impl TryFrom<SelectionText> for WorkloadSelection {
    type Error = String;

    fn try_from(text: SelectionText) -> Result<Self, String> {
        let overrides = text.overrides.iter().map(|item| Override::parse(item));
        let overrides = overrides.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let now = text.now.parse().map_err(|error: jiff::Error| error.to_string())?;
        Ok(Self { source: text.source, overrides, now })
    }
}

/// Overrides as users write them: `reader.batch_size=4`, with or without `workload.` before it.
///
/// # Errors
/// If a word is not an override.
pub fn parse_overrides(words: &[impl AsRef<str>]) -> Result<Vec<Override>, WorkloadError> {
    words.iter().map(|word| Override::parse_friendly(word.as_ref())).collect()
}

/// Turns a transformer that has checkpoints and no data set into what it is, although its workflow says
/// that it generates and trains, as that of DLIO's `llama_1t` does; a remark if so.
pub(crate) fn leave_out_training(composed: &Composed, workload: &mut Workload) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_travels_as_text() {
        let source = WorkloadSource::find("unet3d_h100", None).unwrap();
        let overrides = parse_overrides(&["reader.batch_size=3", "train.epochs=2"]).unwrap();
        let selection = WorkloadSelection::new(source, overrides);
        let text = serde_json::to_string(&selection).unwrap();
        let back: WorkloadSelection = serde_json::from_str(&text).unwrap();
        assert_eq!((&back.source, &back.now), (&selection.source, &selection.now));
        assert_eq!(back.overrides, selection.overrides);
        assert_eq!(back.workload().unwrap().reader.batch_size, 3);
    }

    #[test]
    fn unknown_workloads_are_named_with_similar_ones() {
        let error = WorkloadSource::find("unet3d_h10", None).unwrap_err();
        assert_eq!(error.to_string(), "no workload is called `unet3d_h10`");
        let hint = error.hint(feedline_bench::Dialect::Feedline).unwrap();
        assert!(hint.starts_with("did you mean unet3d_h100"), "{hint}");
        let error = WorkloadSource::find("no/such.yaml", None).unwrap_err();
        assert_eq!(error.to_string(), "no/such.yaml: no such workload file");
    }
}
