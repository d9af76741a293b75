//! Everything that decides about the bytes of a data set: equal recipes make equal files.

use feedline_formats::{Companion, Compression, Format, Options, SampleFormat};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::NameRule;
use crate::spec::DatasetSpec;

/// Raised whenever a format or the content in its files changes, so that
/// files of both kinds are not mixed.
const CONTENT_VERSION: u32 = 2;

/// What a data set is made from, as written in the manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    content_version: u32,
    format: String,
    options: Layout,
    seed: u64,
    element_type: String,
    record_length_bytes: f64,
    record_length_bytes_stdev: f64,
    record_dims: Vec<u64>,
    samples_per_file: u64,
    train_files: u64,
    train_subfolders: u64,
    eval_files: u64,
    eval_subfolders: u64,
    file_prefix: String,
}

/// The format's options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layout {
    compression: String,
    level: u32,
    datasets: u64,
    chunk_dims: Vec<u64>,
    max_shape: Vec<u64>,
    explicit_dims: bool,
}

impl DatasetSpec {
    /// The recipe as it is written into the manifest.
    pub(crate) fn recipe(&self) -> Recipe {
        // One sub-folder is the same as none (Q33), so the two must not look different.
        let subfolders = |rule: &NameRule| if rule.subfolders > 1 { rule.subfolders } else { 0 };
        let recipe = Recipe {
            content_version: CONTENT_VERSION,
            format: self.format.facts().name.to_owned(),
            options: Layout::from(self.options.clone()),
            seed: self.seed,
            element_type: self.element.name().to_owned(),
            record_length_bytes: self.shape.length_bytes,
            record_length_bytes_stdev: self.shape.length_bytes_stdev,
            record_dims: self.shape.dims.clone(),
            samples_per_file: self.samples_per_file,
            train_files: self.train.total,
            train_subfolders: subfolders(&self.train),
            eval_files: self.eval.total,
            eval_subfolders: subfolders(&self.eval),
            file_prefix: self.train.prefix.clone(),
        };
        // Once through JSON, which may move the last bit of a number: then a recipe equals itself
        // after it was written and read.
        let text = serde_json::to_string(&recipe).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        Recipe::parse(value).unwrap_or(recipe)
    }
}

impl Recipe {
    /// The recipe that this is, unless it is one of another version of Feedline.
    pub(crate) fn parse(value: Value) -> Option<Self> {
        serde_json::from_value(value).ok()
    }

    /// The names of the files that it makes, and what goes with each; `None` if its format is not
    /// known here.
    pub(crate) fn names(&self) -> Option<([NameRule; 2], &'static [Companion])> {
        let format = self.format()?;
        let rule = |folder, total, subfolders| NameRule {
            folder,
            prefix: self.file_prefix.clone(),
            total,
            subfolders,
            extension: format.extension(),
        };
        let train = rule("train", self.train_files, self.train_subfolders);
        let eval = rule("valid", self.eval_files, self.eval_subfolders);
        Some(([train, eval], format.companions()))
    }

    fn format(&self) -> Option<Box<dyn Format>> {
        SampleFormat::find(&self.format)?.build(&self.options.options()?).ok()
    }
}

impl From<Options> for Layout {
    fn from(options: Options) -> Self {
        // Without `..`: an option that is added must be added here too.
        let Options { compression, level, datasets, chunk_dims, max_shape, explicit_dims } =
            options;
        let compression = compression.name().to_owned();
        Self { compression, level, datasets, chunk_dims, max_shape, explicit_dims }
    }
}

impl Layout {
    fn options(&self) -> Option<Options> {
        let Self { compression, level, datasets, chunk_dims, max_shape, explicit_dims } = self;
        Some(Options {
            compression: Compression::parse(compression)?,
            level: *level,
            datasets: *datasets,
            chunk_dims: chunk_dims.clone(),
            max_shape: max_shape.clone(),
            explicit_dims: *explicit_dims,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use feedline_formats::Element;

    use super::*;
    use crate::spec::SampleShape;

    /// A set of one npz file, changed.
    pub(crate) fn spec(change: impl FnOnce(&mut DatasetSpec)) -> DatasetSpec {
        let rule = |folder, total| NameRule {
            folder,
            prefix: "img".into(),
            total,
            subfolders: 0,
            extension: "npz",
        };
        let mut spec = DatasetSpec {
            train: rule("train", 1),
            eval: rule("valid", 0),
            samples_per_file: 1,
            shape: SampleShape { length_bytes: 64.0, ..SampleShape::default() },
            element: Element::UInt8,
            format: format("npz"),
            options: Options::default(),
            seed: 123,
        };
        change(&mut spec);
        spec
    }

    pub(crate) fn format(name: &str) -> Arc<dyn Format> {
        let entry = SampleFormat::find(name).unwrap();
        entry.build(&Options::default()).unwrap().into()
    }

    pub(crate) fn recipe(change: impl FnOnce(&mut DatasetSpec)) -> Recipe {
        spec(change).recipe()
    }

    #[test]
    fn a_recipe_equals_itself_after_it_was_written() {
        // The last digits of these numbers are lost to a reader in a hurry.
        for length in [114_660.07, 0.1 + 0.2, 1e300 / 3.0, 2048.0] {
            let made = recipe(|spec| spec.shape.length_bytes = length);
            let text = serde_json::to_string(&made).unwrap();
            assert_eq!(Recipe::parse(serde_json::from_str(&text).unwrap()), Some(made));
        }
    }

    #[test]
    fn what_changes_the_bytes_changes_the_recipe() {
        type Change = fn(&mut DatasetSpec);
        let changes: [Change; 8] = [
            |spec| spec.seed += 1,
            |spec| spec.train.total += 1,
            |spec| spec.eval.total += 1,
            |spec| spec.samples_per_file += 1,
            |spec| spec.shape.length_bytes += 0.5,
            |spec| spec.shape.length_bytes_stdev += 0.5,
            |spec| spec.train.subfolders = 2,
            |spec| spec.format = format("npy"),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert_ne!(recipe(change), recipe(|_| ()), "change {number}");
        }
        assert_eq!(recipe(|spec| spec.eval.subfolders = 1), recipe(|_| ()), "Q33");
    }

    #[test]
    fn a_recipe_with_an_unknown_key_is_another() {
        let mut value = serde_json::to_value(recipe(|_| ())).unwrap();
        value["from_the_future"] = 1.into();
        assert_eq!(Recipe::parse(value), None);
    }
}
