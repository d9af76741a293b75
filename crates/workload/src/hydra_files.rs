//! The three files that Hydra writes to a run directory.
//!
//! Tools around DLIO read them: MLPerf Storage takes the workload and the overrides from them.

use crate::compose::Composed;
use crate::emit::to_yaml;
use crate::node::{Map, Node, Value};

/// Folder of the three files when `hydra.output_subdir` is not set.
pub const DEFAULT_OUTPUT_SUBDIR: &str = ".hydra";

/// The version of Hydra whose files are reproduced.
const HYDRA_VERSION: &str = "1.3.2";

/// Paths that are known only when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPaths<'a> {
    /// Absolute path of the run directory.
    pub run_dir: &'a str,
    /// Working directory of the command.
    pub cwd: &'a str,
}

/// The run directory when `hydra.run.dir` is not set: by model and local time.
pub fn default_run_dir(model_name: &str, now: &dyn Fn(&str) -> String) -> String {
    format!("./hydra_log/{model_name}/{}-{}", now("%Y-%m-%d"), now("%H-%M-%S"))
}

impl Composed {
    /// `config.yaml`: the composed workload, references kept as written.
    pub fn config_yaml(&self) -> String {
        to_yaml(&self.unresolved)
    }

    /// `overrides.yaml`: the overrides as typed, without those for Hydra.
    pub fn overrides_yaml(&self) -> String {
        to_yaml(&texts(&self.task_overrides))
    }

    /// `hydra.yaml`: the run directory, the overrides and the choice of workload.
    pub fn hydra_yaml(&self, paths: RunPaths<'_>) -> String {
        let run_dir = self.hydra.run_dir.as_deref().unwrap_or(paths.run_dir);
        let output_subdir = match self.hydra.output_subdir.as_deref() {
            None => Node::from(DEFAULT_OUTPUT_SUBDIR),
            Some("") => null(),
            Some(name) => Node::from(name),
        };
        let overrides =
            map([("hydra", texts(&self.hydra.raw)), ("task", texts(&self.task_overrides))]);
        let job = map([
            ("name", Node::from("main")),
            ("chdir", null()),
            ("override_dirname", Node::from(self.override_dirname())),
        ]);
        let runtime = map([
            ("version", Node::from(HYDRA_VERSION)),
            ("cwd", Node::from(paths.cwd)),
            ("output_dir", Node::from(paths.run_dir)),
            ("choices", map([("workload", Node::from(self.name.as_str()))])),
        ]);
        let hydra = map([
            ("run", map([("dir", Node::from(run_dir))])),
            ("output_subdir", output_subdir),
            ("overrides", overrides),
            ("job", job),
            ("runtime", runtime),
        ]);
        to_yaml(&map([("hydra", hydra)]))
    }

    /// The overrides sorted and joined by commas, as Hydra names folders of sweeps.
    fn override_dirname(&self) -> String {
        let mut parts = self.task_overrides.clone();
        parts.sort();
        parts.join(",")
    }
}

fn null() -> Node {
    Node::new(Value::Null)
}

fn texts(items: &[String]) -> Node {
    Node::from(items.iter().map(|item| Node::from(item.as_str())).collect::<Vec<_>>())
}

fn map<const N: usize>(entries: [(&str, Node); N]) -> Node {
    Node::from(entries.into_iter().map(|(key, node)| (key.to_owned(), node)).collect::<Map>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::{Source, compose};
    use crate::overrides::Override;

    #[test]
    fn the_three_files_say_what_was_run() {
        let source = Source { name: "w", origin: "w.yaml", text: "workflow: {train: True}\n" };
        let overrides: Vec<Override> =
            ["workload=w", "++workload.train.epochs=2", "++hydra.run.dir=out"]
                .iter()
                .map(|text| Override::parse(text).expect("the override is valid"))
                .collect();
        let composed = compose(source, &overrides, &|_| String::new()).expect("it is valid");
        assert_eq!(
            composed.config_yaml(),
            "workload:\n  workflow:\n    train: true\n  train:\n    epochs: 2\n"
        );
        assert_eq!(composed.overrides_yaml(), "- workload=w\n- ++workload.train.epochs=2\n");
        assert_eq!(
            composed.hydra_yaml(RunPaths { run_dir: "/home/u/out", cwd: "/home/u" }),
            "hydra:\n  run:\n    dir: out\n  output_subdir: .hydra\n  overrides:\n    hydra:\n    \
             - ++hydra.run.dir=out\n    task:\n    - workload=w\n    - ++workload.train.epochs=2\n  \
             job:\n    name: main\n    chdir: null\n    override_dirname: \
             ++workload.train.epochs=2,workload=w\n  runtime:\n    version: 1.3.2\n    cwd: /home/u\n    \
             output_dir: /home/u/out\n    choices:\n      workload: w\n"
        );
    }

    #[test]
    fn the_default_run_directory_is_that_of_dlio() {
        let now = |format: &str| match format {
            "%Y-%m-%d" => "2031-05-06".to_owned(),
            _ => "07-08-09".to_owned(),
        };
        assert_eq!(default_run_dir("unet3d", &now), "./hydra_log/unet3d/2031-05-06-07-08-09");
    }

    #[test]
    fn no_overrides_are_an_empty_list() {
        let source = Source { name: "w", origin: "w.yaml", text: "a: 1\n" };
        let composed = compose(source, &[], &|_| String::new()).expect("it is valid");
        assert_eq!(composed.overrides_yaml(), "[]\n");
    }
}
