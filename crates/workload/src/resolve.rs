//! Turns the composed tree into the typed workload.

use crate::compose::Composed;
use crate::error::{Place, WorkloadError};
use crate::node::{Node, Value};
use crate::read::{Sections, one_of};
use crate::schema::{Kind, find_key, has_keys_below};
use crate::sections::checkpoint::{Checkpoint, Ksm};
use crate::sections::dataset::Dataset;
use crate::sections::model::Model;
use crate::sections::reader::{DataLoader, Reader, Sampler};
use crate::sections::storage::{Storage, StorageType};
use crate::sections::train::{Evaluation, Train};
use crate::sections::workload::{Output, Profiling, Workflow, Workload};
use crate::warning::{Warning, WarningKind};
use feedline_formats::Element;

/// Range of seeds that NumPy's generator accepts.
const MOST_SEED: i64 = u32::MAX as i64;

/// Most reader threads per rank: more than any machine has cores.
const MOST_THREADS: i64 = 4096;

/// Most batches that one rank reads ahead.
const MOST_PREFETCH: i64 = 1 << 20;
/// Most reads in flight per reader; each has a buffer.
const MOST_IN_FLIGHT: i64 = 1024;
/// Most open files per reader.
const MOST_KEPT_FILES: i64 = 1 << 20;

/// Most concurrent checkpoint writers or readers per rank.
const MOST_STREAMS: i64 = 1024;
/// Most saves that a rank may have in flight while it trains.
const MOST_SAVES_IN_FLIGHT: i64 = 1024;
/// Sizes of one write or read of a checkpoint, in bytes.
const MOST_CHUNK_BYTES: u64 = 1 << 30;

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
pub fn resolve(composed: &Composed) -> Result<Resolved, WorkloadError> {
    let mut warnings = composed.warnings.clone();
    let sections = Sections::modernize(composed.sections(), composed.label(), &mut warnings);
    root_remarks(composed, &mut warnings);
    check_mappings(&sections, &sections.root, "")?;
    let mut workload = Workload::default();
    sections.keyword("framework", &mut workload.framework)?;
    workload.workflow = workflow(&sections, &mut warnings)?;
    workload.model = model(&sections)?;
    workload.storage = storage(&sections)?;
    workload.dataset = dataset(&sections, &workload.workflow, &mut warnings)?;
    workload.reader =
        reader(&sections, DataLoader::of_framework(workload.framework), &mut warnings)?;
    workload.train = train(&sections, &mut warnings)?;
    workload.evaluation = evaluation(&sections, &mut warnings)?;
    workload.checkpoint = checkpoint(&sections)?;
    workload.output = output(&sections)?;
    sections.bounded("metric.au", 0.0..=1.0, "a fraction from 0 to 1", &mut workload.metric.au)?;
    workload.profiling = profiling(&sections)?;
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
fn check_mappings(sections: &Sections, node: &Node, path: &str) -> Result<(), WorkloadError> {
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

fn workflow(sections: &Sections, warnings: &mut Vec<Warning>) -> Result<Workflow, WorkloadError> {
    let mut out = Workflow::default();
    sections.bool("workflow.generate_data", &mut out.generate_data)?;
    sections.bool("workflow.train", &mut out.train)?;
    sections.bool("workflow.evaluation", &mut out.evaluation)?;
    sections.bool("workflow.checkpoint", &mut out.checkpoint)?;
    sections.bool("workflow.profiling", &mut out.profiling)?;
    sections.optional_text("workflow.query", &mut out.query)?;
    if out.evaluation && !out.train {
        out.evaluation = false;
        let place = sections.get("workflow.evaluation").map(|node| sections.place(node));
        warnings.push(Warning { place, kind: WarningKind::EvaluationWithoutTraining });
    }
    Ok(out)
}

fn model(sections: &Sections) -> Result<Model, WorkloadError> {
    let mut out = Model::default();
    sections.text("model.name", &mut out.name)?;
    sections.optional_text("model.type", &mut out.r#type)?;
    sections.count("model.model_size_bytes", &mut out.model_size_bytes)?;
    sections.keyword("model.model_datatype", &mut out.model_datatype)?;
    sections.keyword("model.optimizer_datatype", &mut out.optimizer_datatype)?;
    sections.whole_list("model.optimization_groups", 0, &mut out.optimization_groups)?;
    sections.optional("model.num_layers", 1, &mut out.num_layers)?;
    sections.whole_list("model.layer_parameters", 0, &mut out.layer_parameters)?;
    let parallelism = &mut out.parallelism;
    sections.positive("model.parallelism.tensor", &mut parallelism.tensor)?;
    sections.positive("model.parallelism.pipeline", &mut parallelism.pipeline)?;
    sections.optional("model.parallelism.data", 1, &mut parallelism.data)?;
    sections.whole("model.parallelism.zero_stage", 0..=3, &mut parallelism.zero_stage)?;
    let shape = &mut out.transformer;
    sections.positive("model.transformer.vocab_size", &mut shape.vocab_size)?;
    sections.positive("model.transformer.hidden_size", &mut shape.hidden_size)?;
    sections.positive("model.transformer.ffn_hidden_size", &mut shape.ffn_hidden_size)?;
    sections.positive("model.transformer.num_attention_heads", &mut shape.num_attention_heads)?;
    sections.positive("model.transformer.num_kv_heads", &mut shape.num_kv_heads)?;
    Ok(out)
}

fn storage(sections: &Sections) -> Result<Storage, WorkloadError> {
    let mut out = Storage::default();
    if let Some(node) = sections.get("storage.storage_type") {
        let word = node.as_str().unwrap_or_default();
        out.storage_type = match word {
            "parallel_fs" => StorageType::LocalFs,
            word => StorageType::parse(word).ok_or_else(|| {
                let words = ["local_fs", "parallel_fs", "s3", "aistore"];
                sections.wrong("storage.storage_type", node, &one_of(&words))
            })?,
        };
    }
    sections.text("storage.storage_root", &mut out.storage_root)?;
    if let Some(options) = sections.get("storage.storage_options").and_then(Node::as_map) {
        out.storage_options = options.clone();
    }
    check_options(sections, &out)?;
    Ok(out)
}

/// Sizes of an upload part: S3 sets the minimum, memory the maximum.
const PART_BYTES: std::ops::RangeInclusive<u64> = 5 << 20..=1 << 30;

/// Checks the types of storage options; text may also hold a number or a boolean.
fn check_options(sections: &Sections, storage: &Storage) -> Result<(), WorkloadError> {
    for (name, node) in storage.storage_options.iter() {
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
            let path = format!("storage.storage_options.{name}");
            return Err(sections.wrong(&path, node, expected));
        }
    }
    Ok(())
}

fn dataset(
    sections: &Sections,
    workflow: &Workflow,
    warnings: &mut Vec<Warning>,
) -> Result<Dataset, WorkloadError> {
    let mut out = Dataset::default();
    sections.keyword("dataset.format", &mut out.format)?;
    sections.folder("dataset.data_folder", &mut out.data_folder)?;
    if workflow.train || workflow.generate_data {
        sections.positive("dataset.num_files_train", &mut out.num_files_train)?;
    } else {
        sections.count("dataset.num_files_train", &mut out.num_files_train)?;
    }
    sections.count("dataset.num_files_eval", &mut out.num_files_eval)?;
    sections.positive("dataset.num_samples_per_file", &mut out.num_samples_per_file)?;
    let above_zero = f64::MIN_POSITIVE..=f64::MAX;
    let length = &mut out.record_length_bytes;
    sections.bounded("dataset.record_length_bytes", above_zero, "a number > 0", length)?;
    sections.number("dataset.record_length_bytes_stdev", &mut out.record_length_bytes_stdev)?;
    sections.number("dataset.record_length_bytes_resize", &mut out.record_length_bytes_resize)?;
    sections.whole_list("dataset.record_dims", 1, &mut out.record_dims)?;
    sections.element_type("dataset.record_element_type", &mut out.record_element_type)?;
    sections.count("dataset.num_subfolders_train", &mut out.num_subfolders_train)?;
    sections.count("dataset.num_subfolders_eval", &mut out.num_subfolders_eval)?;
    sections.text("dataset.file_prefix", &mut out.file_prefix)?;
    sections.keyword("dataset.compression", &mut out.compression)?;
    sections.whole("dataset.compression_level", 0..=9, &mut out.compression_level)?;
    sections.bool("dataset.keep_files", &mut out.keep_files)?;
    sections.bool("dataset.skip_listing", &mut out.skip_listing)?;
    sections.positive("dataset.generation_buffer_size", &mut out.generation_buffer_size)?;
    sections.positive("dataset.hdf5.num_dset_per_record", &mut out.hdf5.num_dset_per_record)?;
    sections.whole_list("dataset.hdf5.chunk_dims", 1, &mut out.hdf5.chunk_dims)?;
    sections.whole_list("dataset.hdf5.max_shape", 1, &mut out.hdf5.max_shape)?;
    force_image_bytes(sections, &mut out, warnings);
    Ok(out)
}

/// Images hold bytes, whatever the file says.
fn force_image_bytes(sections: &Sections, dataset: &mut Dataset, warnings: &mut Vec<Warning>) {
    if dataset.format.is_image && dataset.record_element_type != Element::UInt8 {
        let given = std::mem::replace(&mut dataset.record_element_type, Element::UInt8);
        let kind = WarningKind::ImageElementType { format: dataset.format, given };
        let place = sections.get("dataset.record_element_type").map(|node| sections.place(node));
        warnings.push(Warning { place, kind });
    }
}

fn reader(
    sections: &Sections,
    loader: DataLoader,
    warnings: &mut Vec<Warning>,
) -> Result<Reader, WorkloadError> {
    let mut out = Reader { data_loader: loader, ..Reader::default() };
    sections.keyword("reader.data_loader", &mut out.data_loader)?;
    sections.optional_text("reader.data_loader_classname", &mut out.data_loader_classname)?;
    sections.optional_text("reader.reader_classname", &mut out.reader_classname)?;
    if sections.get("reader.data_loader_sampler").is_some() {
        let sampler = out.data_loader_sampler.insert(Sampler::None);
        sections.keyword("reader.data_loader_sampler", sampler)?;
    }
    sections.positive("reader.batch_size", &mut out.batch_size)?;
    sections.positive("reader.batch_size_eval", &mut out.batch_size_eval)?;
    sections.whole("reader.read_threads", 0..=MOST_THREADS, &mut out.read_threads)?;
    sections.whole("reader.computation_threads", 0..=MOST_THREADS, &mut out.computation_threads)?;
    sections.whole("reader.prefetch_size", 0..=MOST_PREFETCH, &mut out.prefetch_size)?;
    sections.keyword("reader.file_shuffle", &mut out.file_shuffle)?;
    sections.keyword("reader.sample_shuffle", &mut out.sample_shuffle)?;
    sections.count("reader.shuffle_size", &mut out.shuffle_size)?;
    sections.keyword("reader.read_type", &mut out.read_type)?;
    sections.optional("reader.transfer_size", 1, &mut out.transfer_size)?;
    sections.time("reader.preprocess_time", &mut out.preprocess_time, warnings)?;
    sections.bool("reader.pin_memory", &mut out.pin_memory)?;
    sections.keyword("reader.multiprocessing_context", &mut out.multiprocessing_context)?;
    if sections.get("reader.persistent_workers").is_some() {
        let persistent = out.persistent_workers.insert(false);
        sections.bool("reader.persistent_workers", persistent)?;
    }
    sections.bool("reader.odirect", &mut out.odirect)?;
    sections.bool("reader.dont_use_mmap", &mut out.dont_use_mmap)?;
    sections.whole_list("reader.transformed_record_dims", 1, &mut out.transformed_record_dims)?;
    let element = &mut out.transformed_record_element_type;
    sections.element_type("reader.transformed_record_element_type", element)?;
    sections.keyword("reader.sample_order", &mut out.sample_order)?;
    sections.keyword("reader.sharding", &mut out.sharding)?;
    sections.optional_bool("reader.drop_last", &mut out.drop_last)?;
    sections.optional_bool("reader.sampler_drop_last", &mut out.sampler_drop_last)?;
    sections.keyword("reader.read_model", &mut out.read_model)?;
    sections.keyword("reader.python", &mut out.python)?;
    sections.keyword("reader.interpreter", &mut out.interpreter)?;
    sections.whole("reader.queue_depth", 1..=MOST_IN_FLIGHT, &mut out.queue_depth)?;
    sections.keyword("reader.io_engine", &mut out.io_engine)?;
    sections.whole("reader.kept_files", 1..=MOST_KEPT_FILES, &mut out.kept_files)?;
    Ok(out)
}

fn train(sections: &Sections, warnings: &mut Vec<Warning>) -> Result<Train, WorkloadError> {
    let mut out = Train::default();
    sections.positive("train.epochs", &mut out.epochs)?;
    sections.optional("train.total_training_steps", 1, &mut out.total_training_steps)?;
    sections.optional("train.max_steps", 1, &mut out.max_steps)?;
    sections.whole("train.seed", 0..=MOST_SEED, &mut out.seed)?;
    sections.bool("train.seed_change_epoch", &mut out.seed_change_epoch)?;
    sections.time("train.computation_time", &mut out.computation_time, warnings)?;
    Ok(out)
}

fn evaluation(
    sections: &Sections,
    warnings: &mut Vec<Warning>,
) -> Result<Evaluation, WorkloadError> {
    let mut out = Evaluation::default();
    sections.time("evaluation.eval_time", &mut out.eval_time, warnings)?;
    sections.count("evaluation.eval_after_epoch", &mut out.eval_after_epoch)?;
    sections.positive("evaluation.epochs_between_evals", &mut out.epochs_between_evals)?;
    Ok(out)
}

fn checkpoint(sections: &Sections) -> Result<Checkpoint, WorkloadError> {
    let mut out = Checkpoint::default();
    sections.folder("checkpoint.checkpoint_folder", &mut out.checkpoint_folder)?;
    sections.count("checkpoint.checkpoint_after_epoch", &mut out.checkpoint_after_epoch)?;
    let between = &mut out.epochs_between_checkpoints;
    sections.positive("checkpoint.epochs_between_checkpoints", between)?;
    let between = &mut out.steps_between_checkpoints;
    sections.optional("checkpoint.steps_between_checkpoints", 0, between)?;
    sections.keyword("checkpoint.mode", &mut out.mode)?;
    let classname = &mut out.checkpoint_mechanism_classname;
    sections.optional_text("checkpoint.checkpoint_mechanism_classname", classname)?;
    sections.bool("checkpoint.fsync", &mut out.fsync)?;
    sections.bool("checkpoint.recovery_rank_shift", &mut out.recovery_rank_shift)?;
    sections.bool("checkpoint.rank_sync", &mut out.rank_sync)?;
    let mut wait = -1.0;
    let any = f64::MIN..=f64::MAX;
    sections.bounded("checkpoint.time_between_checkpoints", any, "a number", &mut wait)?;
    out.time_between_checkpoints = (wait >= 0.0).then_some(wait);
    sections.optional("checkpoint.num_checkpoints_write", 0, &mut out.num_checkpoints_write)?;
    sections.optional("checkpoint.num_checkpoints_read", 0, &mut out.num_checkpoints_read)?;
    sections.bool("checkpoint.randomize_tensor", &mut out.randomize_tensor)?;
    if sections.get("checkpoint.ksm").is_some() {
        out.ksm = Some(ksm(sections)?);
    }
    saving(sections, &mut out)?;
    Ok(out)
}

/// The keys that only Feedline has.
fn saving(sections: &Sections, out: &mut Checkpoint) -> Result<(), WorkloadError> {
    sections.keyword("checkpoint.container", &mut out.container)?;
    sections.bool("checkpoint.verify", &mut out.verify)?;
    if sections.get("checkpoint.keep_last").is_some() {
        sections.positive("checkpoint.keep_last", out.keep_last.insert(1))?;
    }
    sections.keyword("checkpoint.save_mode", &mut out.save_mode)?;
    let most = 1..=MOST_SAVES_IN_FLIGHT;
    sections.whole("checkpoint.saves_in_flight", most, &mut out.saves_in_flight)?;
    if sections.get("checkpoint.overhead_budget").is_some() {
        let (path, between) = ("checkpoint.overhead_budget", f64::MIN_POSITIVE..=1f64.next_down());
        let budget = out.overhead_budget.insert(0.0);
        sections.bounded(path, between, "a fraction between 0 and 1", budget)?;
    }
    sections.whole("checkpoint.streams", 1..=MOST_STREAMS, &mut out.streams)?;
    let expected = "a multiple of 4096 from 4096 to 1073741824";
    if let Some(node) = sections.get("checkpoint.chunk_size") {
        sections.positive("checkpoint.chunk_size", &mut out.chunk_size)?;
        if !out.chunk_size.is_multiple_of(4096) || out.chunk_size > MOST_CHUNK_BYTES {
            return Err(sections.wrong("checkpoint.chunk_size", node, expected));
        }
    }
    if sections.get("checkpoint.pool_size").is_some() {
        sections.positive("checkpoint.pool_size", out.pool_size.insert(1))?;
    }
    sections.keyword("checkpoint.state", &mut out.state)?;
    sections.keyword("checkpoint.odirect", &mut out.odirect)
}

fn ksm(sections: &Sections) -> Result<Ksm, WorkloadError> {
    let mut out = Ksm::default();
    let percent = || 0.0..=100.0;
    let expected = "a percentage from 0 to 100";
    sections.count("checkpoint.ksm.madv_mergeable_id", &mut out.madv_mergeable_id)?;
    let trigger = &mut out.high_ram_trigger;
    sections.bounded("checkpoint.ksm.high_ram_trigger", percent(), expected, trigger)?;
    sections.bounded("checkpoint.ksm.low_ram_exit", percent(), expected, &mut out.low_ram_exit)?;
    sections.number("checkpoint.ksm.await_time", &mut out.await_time)?;
    Ok(out)
}

fn output(sections: &Sections) -> Result<Output, WorkloadError> {
    let mut out = Output::default();
    sections.optional_text("output.folder", &mut out.folder)?;
    sections.text("output.log_file", &mut out.log_file)?;
    sections.count("output.metric.exclude_start_steps", &mut out.metric.exclude_start_steps)?;
    sections.count("output.metric.exclude_end_steps", &mut out.metric.exclude_end_steps)?;
    Ok(out)
}

fn profiling(sections: &Sections) -> Result<Profiling, WorkloadError> {
    let mut out = Profiling::default();
    sections.keyword("profiling.profiler", &mut out.profiler)?;
    sections.text_list("profiling.iostat_devices", &mut out.iostat_devices)?;
    Ok(out)
}
