//! Composes the text of a workload and the overrides into one tree.

use crate::error::{Place, Result, WorkloadError};
use crate::interpolate::interpolate;
use crate::node::{Map, Node, Value};
use crate::overrides::{Action, Override};
use crate::warning::{Warning, WarningKind};
use crate::yaml::parse_yaml;

/// The origin of a built-in workload.
pub const BUILT_IN: &str = "built in";
/// The suffix of the label of a built-in workload.
pub(crate) const BUILT_IN_MARK: &str = " (built in)";

/// The text of a workload file and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// Name of the workload: the file's name without extension.
    pub name: &'a str,
    /// The file, as messages name it, or [`BUILT_IN`].
    pub origin: &'a str,
    /// The YAML text: the sections of a workload, or the same under one key `workload`.
    pub text: &'a str,
}

/// The composed tree, and the overrides that went into it.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// Name of the workload.
    pub name: String,
    /// The file or [`BUILT_IN`].
    pub origin: String,
    /// `{workload: {…}}` with overrides applied, before references are replaced.
    pub unresolved: Node,
    /// `{workload: {…}}` with overrides applied and references replaced.
    pub tree: Node,
    /// The overrides as typed, without those for Hydra.
    pub task_overrides: Vec<String>,
    /// Settings of Hydra itself.
    pub hydra: HydraSettings,
    /// Warnings about overrides that have no effect.
    pub warnings: Vec<Warning>,
}

/// The settings of Hydra that Feedline follows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HydraSettings {
    /// `hydra.run.dir`, references replaced.
    pub run_dir: Option<String>,
    /// `hydra.output_subdir`; empty when it was set to null, which writes no folder.
    pub output_subdir: Option<String>,
    /// Every override for Hydra as typed.
    pub raw: Vec<String>,
}

impl Composed {
    /// The source, as messages name it.
    pub fn label(&self) -> String {
        label(&self.name, &self.origin)
    }

    /// The sections of the workload; empty when an override replaced them by something else.
    pub(crate) fn sections(&self) -> Map {
        self.tree.get("workload").and_then(Node::as_map).cloned().unwrap_or_default()
    }
}

/// Reads the text, applies the overrides in order and replaces references.
///
/// `now` turns a `strftime` format into the time of the run.
///
/// # Errors
/// Text that is not a workload, an override that does not apply, a reference to a missing key.
pub fn compose(
    source: Source<'_>,
    overrides: &[Override],
    now: &dyn Fn(&str) -> String,
) -> Result<Composed> {
    let label = label(source.name, source.origin);
    let mut tree = rooted(parse_yaml(&label, source.text)?);
    let mut hydra_tree = Node::from(Map::new());
    let mut hydra = HydraSettings::default();
    let mut task_overrides = Vec::new();
    let mut warnings = Vec::new();
    for item in overrides {
        if item.is_hydra() {
            hydra.raw.push(item.text.clone());
            if matches!(item.key.as_str(), "hydra.run.dir" | "hydra.output_subdir") {
                set_hydra(&mut hydra_tree, item)?;
            } else {
                let kind = WarningKind::HydraNoEffect { text: item.text.clone() };
                warnings.push(Warning::from(kind));
            }
            continue;
        }
        task_overrides.push(item.text.clone());
        if item.workload_choice().is_none() {
            item.apply(&mut tree)?;
        }
    }
    let resolved = interpolate(&tree, &label, now)?;
    read_hydra(&mut hydra, &hydra_tree, &resolved, &label, now)?;
    Ok(Composed {
        name: source.name.to_owned(),
        origin: source.origin.to_owned(),
        unresolved: tree,
        tree: resolved,
        task_overrides,
        hydra,
        warnings,
    })
}

/// The name of a source in messages.
fn label(name: &str, origin: &str) -> String {
    match origin {
        BUILT_IN => format!("{name}{BUILT_IN_MARK}"),
        origin => origin.to_owned(),
    }
}

/// The tree under one key `workload`. A file that was itself written by a run has that key already.
fn rooted(tree: Node) -> Node {
    match tree.as_map() {
        Some(map)
            if map.len() == 1 && map.get("workload").is_some_and(|w| w.as_map().is_some()) =>
        {
            tree
        }
        _ => Node::from(Map::from_iter([("workload".to_owned(), tree)])),
    }
}

/// Hydra has the two keys already, so every form but deletion sets them.
fn set_hydra(tree: &mut Node, item: &Override) -> Result<()> {
    let forced = match &item.action {
        Action::Change(value) | Action::Add(value) | Action::ForceAdd(value) => {
            Action::ForceAdd(value.clone())
        }
        Action::Delete(_) => {
            return Err(WorkloadError::OverrideSyntax {
                text: item.text.clone(),
                column: 1,
                reason: "settings of Hydra cannot be deleted".to_owned(),
            });
        }
    };
    Override { action: forced, ..item.clone() }.apply(tree)
}

/// The two settings with references into the workload replaced.
fn read_hydra(
    settings: &mut HydraSettings,
    hydra_tree: &Node,
    workload: &Node,
    label: &str,
    now: &dyn Fn(&str) -> String,
) -> Result<()> {
    let mut joined = workload.as_map().cloned().unwrap_or_default();
    for (key, node) in hydra_tree.as_map().into_iter().flat_map(Map::iter) {
        joined.insert(key, node.clone());
    }
    let joined = interpolate(&Node::from(joined), label, now)?;
    settings.run_dir = hydra_text(&joined, "hydra.run.dir", label)?;
    settings.output_subdir = hydra_text(&joined, "hydra.output_subdir", label)?;
    Ok(())
}

fn hydra_text(tree: &Node, key: &str, label: &str) -> Result<Option<String>> {
    let Some(node) = tree.get(key) else { return Ok(None) };
    match &node.value {
        Value::Str(text) => Ok(Some(text.clone())),
        Value::Int(number) => Ok(Some(number.to_string())),
        Value::Null if key == "hydra.output_subdir" => Ok(Some(String::new())),
        _ => Err(WorkloadError::WrongValue {
            place: Place { origin: label.to_owned(), line: 0 },
            key: key.to_owned(),
            expected: "a path".to_owned(),
            found: node.describe(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::to_yaml;

    fn composed(text: &str, overrides: &[&str]) -> Result<Composed> {
        let source = Source { name: "w", origin: "dir/w.yaml", text };
        let overrides: Result<Vec<_>, _> =
            overrides.iter().map(|text| Override::parse(text)).collect();
        compose(source, &overrides?, &|format| format.replace("%Y", "2031"))
    }

    #[test]
    fn the_tree_has_one_root_and_the_overrides_are_kept_as_typed() {
        let out = composed(
            "model: {name: m}\n",
            &[
                "workload=w",
                "++workload.train.epochs=2",
                "++hydra.run.dir=out/${workload.model.name}/${now:%Y}",
                "hydra.output_subdir=dlio_config",
                "hydra.verbose=true",
                "hydra/job_logging=disabled",
            ],
        )
        .expect("everything is valid");
        assert_eq!(
            to_yaml(&out.tree),
            "workload:\n  model:\n    name: m\n  train:\n    epochs: 2\n"
        );
        assert_eq!(out.task_overrides, ["workload=w", "++workload.train.epochs=2"]);
        assert_eq!(out.hydra.run_dir.as_deref(), Some("out/m/2031"));
        assert_eq!(out.hydra.output_subdir.as_deref(), Some("dlio_config"));
        assert_eq!(out.hydra.raw.len(), 4);
        let warnings: Vec<String> = out.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "override `hydra.verbose=true` has no effect: Feedline does not use Hydra",
                "override `hydra/job_logging=disabled` has no effect: Feedline does not use Hydra",
            ]
        );
    }

    #[test]
    fn a_file_that_a_run_wrote_is_not_wrapped_twice() {
        let out = composed("workload:\n  model:\n    name: m\n", &[]).expect("it is valid");
        assert_eq!(to_yaml(&out.tree), "workload:\n  model:\n    name: m\n");
    }

    #[test]
    fn references_are_replaced_after_overrides() {
        let out = composed(
            "dataset: {data_folder: 'data/${workload.model.name}'}\nmodel: {name: a}\n",
            &["workload.model.name=b"],
        )
        .expect("it is valid");
        assert_eq!(out.tree.get("workload.dataset.data_folder"), Some(&Node::from("data/b")));
        assert_eq!(
            out.unresolved.get("workload.dataset.data_folder"),
            Some(&Node::from("data/${workload.model.name}"))
        );
    }

    #[test]
    fn a_wrong_hydra_setting_is_refused() {
        let message =
            |overrides: &[&str]| composed("a: 1\n", overrides).map_err(|err| err.to_string());
        assert_eq!(
            message(&["hydra.run.dir=[1]"]).err().as_deref(),
            Some("command line: `hydra.run.dir` expects a path, found a list")
        );
        assert_eq!(
            message(&["~hydra.run.dir"]).err().as_deref(),
            Some("override `~hydra.run.dir`, character 1: settings of Hydra cannot be deleted")
        );
    }

    #[test]
    fn a_preset_is_named_as_built_in() {
        let source = Source { name: "w", origin: BUILT_IN, text: "a: 1\na: 2\n" };
        let err = compose(source, &[], &|_| String::new()).expect_err("a key is there twice");
        assert_eq!(err.to_string(), "w (built in):2: duplicate key `a`, first used on line 1");
    }
}
