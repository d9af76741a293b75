//! What a data set consists of: the one description that it is generated from.

use std::sync::Arc;

use feedline_formats::{Element, FileSpec, Format, Options};

use crate::names::NameRule;

/// Everything that decides about the files of a generated data set.
#[derive(Clone)]
pub struct DatasetSpec {
    /// The training files.
    pub train: NameRule,
    /// The evaluation files.
    pub eval: NameRule,
    /// Samples in every file.
    pub samples_per_file: u64,
    /// How large a sample is.
    pub shape: SampleShape,
    /// The type of a sample's elements.
    pub element: Element,
    /// The files' format.
    pub format: Arc<dyn Format>,
    /// The options that `format` was built with.
    pub options: Options,
    /// Seed of the files' contents.
    pub seed: u64,
}

/// The size of a sample: exact dimensions, or a mean and a spread that DLIO's rule turns into
/// dimensions file by file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleShape {
    /// Dimensions of every sample; empty if the length decides.
    pub dims: Vec<u64>,
    /// Mean bytes of a sample.
    pub length_bytes: f64,
    /// Standard deviation of those bytes from file to file.
    pub length_bytes_stdev: f64,
}

impl DatasetSpec {
    /// Files of both sets.
    pub fn files(&self) -> u64 {
        self.train.total + self.eval.total
    }

    /// File `index` of both sets, whose samples have these dimensions.
    pub fn file(&self, index: u64, dims: Vec<u64>) -> FileSpec {
        FileSpec { dims, samples: self.samples_per_file, element: self.element, index }
    }
}
