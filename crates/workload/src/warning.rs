//! What is worth saying about a workload that nevertheless runs.

use crate::error::Place;
use crate::sections::dataset::Format;

/// One remark with its place in the user's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// Where it stands; none for a remark about several keys together.
    pub place: Option<Place>,
    /// What it says.
    pub kind: WarningKind,
}

/// What a remark says.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum WarningKind {
    /// A key that neither DLIO nor Feedline knows.
    #[error("unknown key `{key}`{}", nearest_clause(.nearest.as_deref()))]
    UnknownKey { key: String, nearest: Option<String> },
    /// An older spelling, read as the newer one.
    #[error("`{key}` is read as `{target}`")]
    Alias { key: String, target: String },
    /// An older spelling beside the newer one.
    #[error("`{key}` is ignored: `{target}` is given too")]
    AliasShadowed { key: String, target: String },
    /// `data_reader` and `reader` in one file.
    #[error("`data_reader.{key}` replaces `reader.{key}`")]
    ReaderReplaced { key: String },
    /// A key that changes nothing.
    #[error("`{key}` has no effect: {reason}")]
    NoEffect { key: String, reason: &'static str },
    /// A Hydra setting that changes nothing.
    #[error("override `{text}` has no effect: Feedline has no Hydra inside")]
    HydraNoEffect { text: String },
    /// Images hold bytes.
    #[error("`dataset.record_element_type` is uint8 for format {format}, found {given}")]
    ImageElementType { format: Format, given: String },
    /// Evaluation without training.
    #[error("`workflow.evaluation` has no effect while `workflow.train` is off")]
    EvaluationWithoutTraining,
    /// A key that matters only while training.
    #[error("`{key}` has no effect while `workflow.train` is off")]
    NeedsTraining { key: &'static str },
    /// A key that matters only when checkpoints are the whole run.
    #[error("`{key}` has no effect while `workflow.train` is on")]
    NeedsCheckpointOnly { key: &'static str },
    /// A key that matters only together with another.
    #[error("`{key}` has no effect without {needs}")]
    Needs { key: &'static str, needs: &'static str },
    /// An image file holds one image.
    #[error(
        "a {format} file holds one image: its {samples} samples (`dataset.num_samples_per_file`) \
         are the same"
    )]
    OneImage { format: Format, samples: u64 },
    /// Evaluation of nothing.
    #[error("`workflow.evaluation` is on, but `dataset.num_files_eval` is 0")]
    EvaluationWithoutFiles,
}

/// The end of a sentence that offers a nearer name.
fn nearest_clause(nearest: Option<&str>) -> String {
    nearest.map(|key| format!(", did you mean `{key}`?")).unwrap_or_default()
}

impl Warning {
    /// A remark at a place.
    pub(crate) fn at(place: Place, kind: WarningKind) -> Self {
        Self { place: Some(place), kind }
    }
}

impl From<WarningKind> for Warning {
    fn from(kind: WarningKind) -> Self {
        Self { place: None, kind }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.kind),
            None => write!(f, "{}", self.kind),
        }
    }
}
