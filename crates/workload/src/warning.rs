//! Warnings: mistakes that do not keep a workload from running.

use feedline_formats::{Element, SampleFormat};

use crate::error::Place;

/// A warning, and the place in the user's input that causes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// The key or value; none for a warning about several keys together.
    pub place: Option<Place>,
    /// The problem.
    pub kind: WarningKind,
}

/// The problem that a [`Warning`] reports.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum WarningKind {
    /// A key that neither DLIO nor Feedline knows.
    #[error("unknown key `{key}`{}", nearest_clause(.nearest.as_deref()))]
    UnknownKey { key: String, nearest: Option<String> },
    /// An alternative spelling.
    #[error("`{key}` is read as `{target}`")]
    Alias { key: String, target: String },
    /// An alternative spelling next to the current one.
    #[error("`{key}` is ignored because `{target}` is also set")]
    AliasShadowed { key: String, target: String },
    /// A key set in both `data_reader` and `reader`.
    #[error("`data_reader.{key}` overrides `reader.{key}`")]
    ReaderReplaced { key: String },
    /// A key that Feedline accepts and does not use.
    #[error("`{key}` has no effect: {reason}")]
    NoEffect { key: String, reason: &'static str },
    /// A setting of Hydra other than the run directory.
    #[error("override `{text}` has no effect: Feedline does not use Hydra")]
    HydraNoEffect { text: String },
    /// An element type other than bytes for images.
    #[error("`dataset.record_element_type` is always uint8 for format {format}, ignoring {given}")]
    ImageElementType { format: &'static SampleFormat, given: Element },
    /// Evaluation, which only runs between epochs of training, without training.
    #[error("`workflow.evaluation` has no effect while `workflow.train` is off")]
    EvaluationWithoutTraining,
    /// A key that only has an effect while training.
    #[error("`{key}` has no effect while `workflow.train` is off")]
    NeedsTraining { key: &'static str },
    /// A key that only has an effect in a run that does nothing but checkpoint.
    #[error("`{key}` has no effect while `workflow.train` is on")]
    NeedsCheckpointOnly { key: &'static str },
    /// A key that only has an effect together with another.
    #[error("`{key}` has no effect without {needs}")]
    Needs { key: &'static str, needs: &'static str },
    /// Several samples in a file that holds one image.
    #[error(
        "a {format} file holds one image, so its {samples} samples (`dataset.num_samples_per_file`) \
         are identical"
    )]
    OneImage { format: &'static SampleFormat, samples: u64 },
    /// Evaluation without files.
    #[error("`workflow.evaluation` is on, but `dataset.num_files_eval` is 0")]
    EvaluationWithoutFiles,
}

/// The end of a message that suggests a similar name.
fn nearest_clause(nearest: Option<&str>) -> String {
    nearest.map(|key| format!(", did you mean `{key}`?")).unwrap_or_default()
}

impl Warning {
    /// A warning about one place.
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
