//! From the tensors of a rank to its files in a container.

use std::sync::Arc;

use crate::{Container, FileSpec, RankFile, StateKind};

/// The name of the container whose files are cut by rank and not by state.
pub(crate) const DCP: &str = "dcp";

/// The files of `rank`, whose tensors are given in DLIO's files.
pub fn rank_files(
    (name, container): (&str, &dyn Container),
    specs: Vec<FileSpec>,
    rank: u32,
) -> Vec<Arc<RankFile>> {
    let specs = match name {
        DCP if !specs.is_empty() => vec![FileSpec {
            stem: format!("__{rank}_0"),
            state: specs.first().map_or(StateKind::Blob, |spec| spec.state),
            tensors: specs.into_iter().flat_map(|spec| spec.tensors).collect(),
        }],
        _ => specs,
    };
    let file = |spec: FileSpec| {
        let name = format!("{}.{}", spec.stem, container.extension());
        Arc::new(RankFile { name, image: container.image(&spec), spec })
    };
    specs.into_iter().map(file).collect()
}
