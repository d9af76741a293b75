//! What this version can run, said before anything is written.

use std::sync::Arc;

use feedline_dataset::{DatasetSpec, SampleShape, SampleSizes};
use feedline_formats::{Format, Options};
use feedline_workload::{DataLoader, Dataset, Sharding, StorageType, Workload};

use crate::error::{BenchError, Result};
use crate::plan::reading::ReadPlan;
use crate::plan::{Plan, Semantics};

/// The format, if everything that the workload asks for can be done.
pub(crate) fn format(workload: &Workload, semantics: Semantics) -> Result<Arc<dyn Format>> {
    let reader = &workload.reader;
    let storage = workload.storage.storage_type;
    let refused = [
        (
            storage == StorageType::Aistore,
            format!("`storage.storage_type: {}`", storage.as_str()),
            "AIStore speaks S3: use `storage.storage_type: s3` and its address with `/s3` as \
             `storage.storage_options.endpoint_url`",
        ),
        (
            workload.workflow.train
                && matches!(reader.data_loader, DataLoader::Custom | DataLoader::None),
            format!("`reader.data_loader: {}`", reader.data_loader.as_str()),
            "the loaders pytorch, tensorflow, dali, native_dali and synthetic are emulated",
        ),
        (
            workload.workflow.train && semantics == Semantics::Dlio && !order_is_dlios(workload),
            format!("`reader.data_loader: {}` as DLIO", reader.data_loader.as_str()),
            "DLIO's order is reproduced for pytorch, dali, and tensorflow with tfrecord; leave \
             --as-dlio out",
        ),
        (
            workload.workflow.train
                && semantics == Semantics::Dlio
                && !matches!(reader.sharding, Sharding::Auto | Sharding::Dlio | Sharding::Dlio200),
            format!("`reader.sharding: {}` as DLIO", reader.sharding),
            "DLIO deals as `dlio` or `dlio_2.0.0`; leave --as-dlio out",
        ),
        (
            reader.reader_classname.is_some()
                || reader.data_loader_classname.is_some()
                || workload.checkpoint.checkpoint_mechanism_classname.is_some(),
            "a Python plug-in class".to_owned(),
            "remove the `*_classname` keys",
        ),
    ];
    match refused.into_iter().find(|(asked, ..)| *asked) {
        Some((_, what, instead)) => Err(unsupported(what, instead)),
        None => known_format(workload).map(Arc::from),
    }
}

/// The data set that the workload describes, in the format that [`format`] gave.
pub(crate) fn dataset_spec(
    workload: &Workload,
    plan: &Plan,
    format: Arc<dyn Format>,
) -> DatasetSpec {
    DatasetSpec {
        train: plan.train_files.clone(),
        eval: plan.eval_files.clone(),
        samples_per_file: plan.samples_per_file,
        shape: sample_shape(&workload.dataset),
        element: workload.dataset.record_element_type,
        format,
        options: options(workload),
        seed: u64::from(workload.train.seed),
    }
}

/// The sizes of the samples that `dataset` describes, file by file.
pub fn sample_sizes(dataset: &Dataset) -> SampleSizes {
    SampleSizes::new(&sample_shape(dataset))
}

fn sample_shape(dataset: &Dataset) -> SampleShape {
    SampleShape {
        dims: dataset.record_dims.clone(),
        length_bytes: dataset.record_length_bytes,
        length_bytes_stdev: dataset.record_length_bytes_stdev,
    }
}

/// The format as the run reads it: with the framework's calls, if those are played.
pub(crate) fn read_format(workload: &Workload, reading: &ReadPlan) -> Result<Arc<dyn Format>> {
    let format = known_format(workload)?;
    Ok(Arc::from(match reading.calls {
        Some(calls) => feedline_formats::as_framework(format, calls.libraries),
        None => format,
    }))
}

/// Whether the loader reads in the order in which DLIO would.
fn order_is_dlios(workload: &Workload) -> bool {
    match workload.reader.data_loader {
        DataLoader::Pytorch | DataLoader::Dali => true,
        DataLoader::Tensorflow => workload.dataset.format.name == "tfrecord",
        _ => false,
    }
}

/// What the names of the data set's files end with.
pub(crate) fn extension(workload: &Workload) -> &'static str {
    let format = known_format(workload);
    format.map_or(workload.dataset.format.name, |format| format.extension())
}

fn known_format(workload: &Workload) -> Result<Box<dyn Format>> {
    Ok(workload.dataset.format.build(&options(workload))?)
}

/// What the workload says about the layout of its files.
fn options(workload: &Workload) -> Options {
    let dataset = &workload.dataset;
    Options {
        compression: dataset.compression,
        level: dataset.compression_level,
        datasets: dataset.hdf5.num_dset_per_record,
        chunk_dims: dataset.hdf5.chunk_dims.clone(),
        max_shape: dataset.hdf5.max_shape.clone(),
        explicit_dims: !dataset.record_dims.is_empty(),
    }
}

fn unsupported(what: String, instead: impl Into<String>) -> BenchError {
    BenchError::Unsupported { what, instead: instead.into() }
}
