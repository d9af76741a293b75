//! Checks a workload before the first byte is written.
//!
//! Only checks that need no file: the run checks whether the data set exists, and its plan whether an
//! epoch has a step. Sections that the workflow does not use are not checked, so a checkpoint geometry
//! never stops a training run.

use crate::combination;
use crate::error::{Result, WorkloadError};
use crate::saving;
use crate::sections::dataset::Dataset;
use crate::sections::reader::DataLoader;
use crate::sections::workload::{Framework, Workload};
use crate::warning::{Warning, WarningKind};

/// Most samples of a data set: files times samples per file.
const MOST_SAMPLES: u64 = 1 << 53;
/// Most bytes of one sample: a petabyte.
const MOST_SAMPLE_BYTES: f64 = 1e15;
/// Most bytes of a data set: an exabyte.
const MOST_BYTES: f64 = 1e18;
/// Longest emulated computation, in seconds: eleven days.
pub(crate) const MOST_SECONDS: f64 = 1e6;

/// Checks a workload for a number of ranks and returns warnings.
///
/// # Errors
/// The first rule that is violated.
pub fn check(workload: &Workload, ranks: u32) -> Result<Vec<Warning>> {
    let workflow = &workload.workflow;
    if !workflow.generate_data && !workflow.train && !workflow.checkpoint {
        return Err(WorkloadError::NothingToDo);
    }
    if workflow.generate_data || workflow.train {
        check_dataset(workload)?;
    }
    check_times(workload)?;
    let log_file = &workload.output.log_file;
    if log_file.is_empty() || log_file.contains('/') {
        return Err(WorkloadError::LogFileName { found: log_file.clone() });
    }
    if workflow.train {
        check_reader(workload)?;
    }
    if workflow.checkpoint {
        saving::check(workload, ranks)?;
    }
    Ok(warnings(workload))
}

fn check_dataset(workload: &Workload) -> Result<()> {
    let dataset = &workload.dataset;
    if dataset.num_files_train == 0 {
        return Err(WorkloadError::NoTrainingFiles);
    }
    let num_dset_per_record = dataset.hdf5.num_dset_per_record;
    if let Some(&first_dim) = dataset.record_dims.first()
        && first_dim % num_dset_per_record.max(1) != 0
    {
        return Err(WorkloadError::DimsNotDivisible { first_dim, num_dset_per_record });
    }
    let dims = dataset.record_dims.len();
    if dataset.format.is_image && dims > 2 {
        return Err(WorkloadError::ImageDims { format: dataset.format, dims });
    }
    check_size(dataset)?;
    let stdev = dataset.record_length_bytes_stdev;
    if dims > 0 && stdev > 0.0 {
        return Err(WorkloadError::DimsWithStdev { stdev });
    }
    Ok(())
}

/// Checks that sample indices and byte counts stay exact.
fn check_size(dataset: &Dataset) -> Result<()> {
    let files = dataset.num_files_train.checked_add(dataset.num_files_eval);
    let samples = files.and_then(|files| files.checked_mul(dataset.num_samples_per_file));
    let samples = samples.filter(|&samples| samples <= MOST_SAMPLES);
    let Some(samples) = samples else {
        return Err(WorkloadError::TooManySamples {
            files: dataset.num_files_train,
            samples: dataset.num_samples_per_file,
        });
    };
    let element = dataset.record_element_type.size_bytes() as f64;
    let sample_bytes = match dataset.record_dims.as_slice() {
        [] => dataset.record_length_bytes * element,
        dims => dims.iter().map(|&dim| dim as f64).product::<f64>() * element,
    };
    if sample_bytes > MOST_SAMPLE_BYTES || sample_bytes * samples as f64 > MOST_BYTES {
        return Err(WorkloadError::TooManyBytes { sample_bytes, samples });
    }
    Ok(())
}

/// Checks that emulated times stay within what a clock can add up.
fn check_times(workload: &Workload) -> Result<()> {
    let times = [
        ("train.computation_time", &workload.train.computation_time),
        ("evaluation.eval_time", &workload.evaluation.eval_time),
        ("reader.preprocess_time", &workload.reader.preprocess_time),
    ];
    match times.into_iter().find(|(_, time)| time.largest_parameter() > MOST_SECONDS) {
        Some((key, time)) => {
            let seconds = time.largest_parameter();
            Err(WorkloadError::TimeTooLong { key, seconds, most: MOST_SECONDS })
        }
        None => Ok(()),
    }
}

fn check_reader(workload: &Workload) -> Result<()> {
    let (reader, format) = (&workload.reader, workload.dataset.format);
    let loader = reader.data_loader;
    if format.name == "tfrecord" && loader == DataLoader::Pytorch {
        return Err(WorkloadError::TfrecordWithTorch);
    }
    let framework = workload.framework;
    let mixed = matches!(
        (framework, loader),
        (Framework::Tensorflow, DataLoader::Pytorch) | (Framework::Pytorch, DataLoader::Tensorflow)
    );
    if mixed {
        return Err(WorkloadError::FrameworkLoader { framework, loader });
    }
    if let Some(classname) = &reader.data_loader_classname
        && reader.data_loader_sampler.is_none()
    {
        return Err(WorkloadError::SamplerMissing { classname: classname.clone() });
    }
    combination::check(workload)
}

/// Warns about settings that the workflow does not use.
fn warnings(workload: &Workload) -> Vec<Warning> {
    let workflow = &workload.workflow;
    let mut kinds = Vec::new();
    if workflow.evaluation && !workflow.train {
        kinds.push(WarningKind::EvaluationWithoutTraining);
    }
    if workflow.evaluation && workflow.train && workload.dataset.num_files_eval == 0 {
        kinds.push(WarningKind::EvaluationWithoutFiles);
    }
    kinds.extend(saving::warnings(workload));
    if !workflow.train && workload.train.total_training_steps.is_some() {
        kinds.push(WarningKind::NeedsTraining { key: "train.total_training_steps" });
    }
    kinds.extend(combination::warnings(workload));
    kinds.into_iter().map(Warning::from).collect()
}
