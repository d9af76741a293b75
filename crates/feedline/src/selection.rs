//! Parses the words of a command line into a workload and its overrides.

use std::path::Path;

use feedline_engine::{WorkloadSelection, WorkloadSource, parse_overrides};
use feedline_workload::Override;

use crate::failure;

/// The workload that `words` name, with the overrides among them, then those of `--set`.
pub(crate) fn named(
    words: &[String],
    config_dir: Option<&Path>,
    set: &[String],
) -> anyhow::Result<WorkloadSelection> {
    let is_override = |word: &&String| word.contains('=') || word.starts_with(['~', '+']);
    let (words, names): (Vec<_>, Vec<_>) = words.iter().partition(is_override);
    let mut overrides = parse_overrides(&words)?;
    let chosen = overrides.iter().filter_map(Override::workload_choice).next_back();
    let name = match (names.as_slice(), chosen) {
        ([name], None) => (*name).clone(),
        ([], Some(name)) => name.to_owned(),
        ([], None) => {
            return Err(failure::hinted(
                "no workload given",
                "feedline run NAME; `feedline workloads` lists the names",
            ));
        }
        ([first, ..], _) => {
            let second = names.get(1).map(|name| name.as_str());
            let also = second.or(chosen).unwrap_or_default();
            return Err(failure::hinted(
                format!("two workloads given: {first} and {also}"),
                "give one; overrides have the form KEY=VALUE",
            ));
        }
    };
    if let Some(folder) = config_dir.filter(|folder| !folder.is_dir()) {
        let message = format!("--config-dir {}: no such folder", folder.display());
        return Err(failure::hinted(message, "pass a folder that contains workload/NAME.yaml"));
    }
    let source = WorkloadSource::find(&name, config_dir)?;
    overrides.extend(parse_overrides(set)?);
    Ok(WorkloadSelection::new(source, overrides))
}
