//! Turns the composed tree into the typed workload.

use feedline_formats::Element;

use crate::compose::Composed;
use crate::error::{Place, Result};
use crate::node::{Map, Node, Value};
use crate::read::{Read, Sections, one_of};
use crate::schema::{Kind, find_key, has_keys_below};
use crate::sections::checkpoint::Ksm;
use crate::sections::reader::DataLoader;
use crate::sections::storage::{Storage, StorageType};
use crate::sections::workload::{Workflow, Workload};
use crate::warning::{Warning, WarningKind};

/// A typed workload, and the warnings about its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Every key, with defaults filled in.
    pub workload: Workload,
    /// Warnings in the order of the file, those about the command line first.
    pub warnings: Vec<Warning>,
}

/// Reads every key as its type and fills in defaults.
///
/// # Errors
/// A value of the wrong type or out of range; names the key, the place, what was expected and found.
pub fn resolve(composed: &Composed) -> Result<Resolved> {
    let mut warnings = composed.warnings.clone();
    let sections = Sections::modernize(composed.sections(), composed.label(), &mut warnings);
    root_remarks(composed, &mut warnings);
    check_mappings(&sections, &sections.root, "")?;
    let mut workload = Workload::default();
    workload.read(&sections, &mut warnings)?;
    Ok(Resolved { workload, warnings })
}

/// Warns about keys next to `workload`, which only an override can add.
fn root_remarks(composed: &Composed, warnings: &mut Vec<Warning>) {
    for (key, node) in composed.tree.as_map().into_iter().flat_map(|map| map.iter()) {
        if key != "workload" {
            let place = Place { origin: composed.label(), line: node.line };
            let kind = WarningKind::UnknownKey { key: key.to_owned(), nearest: None };
            warnings.push(Warning::at(place, kind));
        }
    }
}

/// Checks that every section is a mapping or null.
fn check_mappings(sections: &Sections, node: &Node, path: &str) -> Result<()> {
    for (name, child) in node.as_map().into_iter().flat_map(|map| map.iter()) {
        let key = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let is_time = find_key(&key).is_some_and(|key| matches!(key.kind, Kind::Time));
        if is_time || !has_keys_below(&key) || child.value == Value::Null {
            continue;
        }
        if child.as_map().is_none() {
            return Err(sections.wrong(&key, child, "a mapping of keys"));
        }
        check_mappings(sections, child, &key)?;
    }
    Ok(())
}

/// Sizes of an upload part: S3 sets the minimum, memory the maximum.
const PART_BYTES: std::ops::RangeInclusive<u64> = 5 << 20..=1 << 30;

/// Most bytes of one write or read of a checkpoint.
const MOST_CHUNK_BYTES: u64 = 1 << 30;

/// How the keys with rules of their own are read.
impl Sections {
    /// A storage type, or the word `parallel_fs`.
    pub(crate) fn storage_type(&self, path: &str, slot: &mut StorageType) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        *slot = match node.as_str().unwrap_or_default() {
            "parallel_fs" => StorageType::LocalFs,
            word => StorageType::parse(word).ok_or_else(|| {
                self.wrong(path, node, &one_of(&["local_fs", "parallel_fs", "s3", "aistore"]))
            })?,
        };
        Ok(())
    }

    /// Storage options of the right types; text may also hold a number or a boolean.
    pub(crate) fn storage_options(&self, path: &str, slot: &mut Map) -> Read {
        let Some(options) = self.get(path).and_then(Node::as_map) else { return Ok(()) };
        let storage = Storage { storage_options: options.clone(), ..Storage::default() };
        for (name, node) in options.iter() {
            let (fits, expected) = match name {
                "s3_force_path_style" | "unsigned" | "uri_keys" => {
                    (storage.option_bool(name).is_some(), "true or false")
                }
                "s3_max_attempts" | "stall_timeout" => (
                    storage.option_u64(name).is_some_and(|value| (1..=86_400).contains(&value)),
                    "a whole number > 0",
                ),
                "part_size" => (
                    storage.option_u64(name).is_some_and(|bytes| PART_BYTES.contains(&bytes)),
                    "a whole number of bytes from 5 MiB to 1 GiB",
                ),
                _ => (storage.option_text(name).is_some(), "text"),
            };
            if !fits && node.value != Value::Null {
                return Err(self.wrong(&format!("{path}.{name}"), node, expected));
            }
        }
        *slot = storage.storage_options;
        Ok(())
    }

    /// A number of files that is zero only if the run neither generates nor reads them.
    pub(crate) fn training_files(&self, path: &str, slot: &mut u64) -> Read {
        let mut workflow = Workflow::default();
        workflow.read(self, &mut Vec::new())?;
        match workflow.train || workflow.generate_data {
            true => self.positive(path, slot),
            false => self.count(path, slot),
        }
    }

    /// Seconds to wait; a negative number means that none are set.
    pub(crate) fn wait_seconds(&self, path: &str, slot: &mut Option<f64>) -> Read {
        let mut wait = -1.0;
        self.bounded(path, f64::MIN..=f64::MAX, "a number", &mut wait)?;
        *slot = (wait >= 0.0).then_some(wait);
        Ok(())
    }

    /// A fraction of time, neither none nor all of it.
    pub(crate) fn budget(&self, path: &str, slot: &mut Option<f64>) -> Read {
        if self.get(path).is_some() {
            let between = f64::MIN_POSITIVE..=1f64.next_down();
            self.bounded(path, between, "a fraction between 0 and 1", slot.insert(0.0))?;
        }
        Ok(())
    }

    pub(crate) fn percent(&self, path: &str, slot: &mut f64) -> Read {
        self.bounded(path, 0.0..=100.0, "a percentage from 0 to 100", slot)
    }

    /// The size of one write or read of a checkpoint.
    pub(crate) fn chunk_size(&self, path: &str, slot: &mut u64) -> Read {
        let Some(node) = self.get(path) else { return Ok(()) };
        self.positive(path, slot)?;
        if !slot.is_multiple_of(4096) || *slot > MOST_CHUNK_BYTES {
            let expected = "a multiple of 4096 from 4096 to 1073741824";
            return Err(self.wrong(path, node, expected));
        }
        Ok(())
    }

    /// Settings that are on if their section is present, even if it is empty.
    pub(crate) fn ksm(&self, path: &str, slot: &mut Option<Ksm>) -> Read {
        match self.get(path) {
            None => Ok(()),
            Some(_) => slot.insert(Ksm::default()).read(self, &mut Vec::new()),
        }
    }
}

impl Workload {
    fn read(&mut self, sections: &Sections, warnings: &mut Vec<Warning>) -> Read {
        sections.keyword("framework", &mut self.framework)?;
        self.workflow.read(sections, warnings)?;
        self.skip_evaluation_without_training(sections, warnings);
        self.model.read(sections, warnings)?;
        self.storage.read(sections, warnings)?;
        self.dataset.read(sections, warnings)?;
        self.force_image_bytes(sections, warnings);
        self.reader.data_loader = DataLoader::of_framework(self.framework);
        self.reader.read(sections, warnings)?;
        self.train.read(sections, warnings)?;
        self.evaluation.read(sections, warnings)?;
        self.checkpoint.read(sections, warnings)?;
        self.output.read(sections, warnings)?;
        self.metric.read(sections, warnings)?;
        self.profiling.read(sections, warnings)
    }

    fn skip_evaluation_without_training(
        &mut self,
        sections: &Sections,
        warnings: &mut Vec<Warning>,
    ) {
        if self.workflow.evaluation && !self.workflow.train {
            self.workflow.evaluation = false;
            let place = sections.get("workflow.evaluation").map(|node| sections.place(node));
            warnings.push(Warning { place, kind: WarningKind::EvaluationWithoutTraining });
        }
    }

    /// Makes images hold bytes, whatever the file says.
    fn force_image_bytes(&mut self, sections: &Sections, warnings: &mut Vec<Warning>) {
        let dataset = &mut self.dataset;
        if dataset.format.is_image && dataset.record_element_type != Element::UInt8 {
            let given = std::mem::replace(&mut dataset.record_element_type, Element::UInt8);
            let kind = WarningKind::ImageElementType { format: dataset.format, given };
            let node = sections.get("dataset.record_element_type");
            warnings.push(Warning { place: node.map(|node| sections.place(node)), kind });
        }
    }
}
