//! Runs by library call: what the caller gets back, and what is on disk afterwards.

use std::path::Path;
use std::sync::Arc;

use feedline_bench::{Dialect, Silent, StorageEmulation, SummaryFile, Verdict};
use feedline_engine::{
    EngineError, FinishedRun, PlannedRun, QuickData, RunOptions, RunOutput, WorkloadSelection,
    WorkloadSource, quoted, run,
};
use feedline_ranks::Alone;

/// Eight files of one 4 KiB sample, batches of two, two epochs.
const YAML: &str = "\
framework: pytorch
model: {name: tiny}
workflow: {generate_data: true, train: true}
dataset: {format: npz, num_files_train: 8, record_length_bytes: 4096}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}
train: {epochs: 2, computation_time: 0.001}
";

fn selection(data: &Path) -> WorkloadSelection {
    let folder = format!("dataset.data_folder={}", quoted(&data.display().to_string()));
    let overrides = feedline_engine::parse_overrides(&[folder]).unwrap();
    let (name, origin) = ("tiny".to_owned(), "tiny.yaml".to_owned());
    let source = WorkloadSource { name, origin, yaml: YAML.to_owned() };
    WorkloadSelection::new(source, overrides)
}

fn finish(planned: PlannedRun, results: &Path) -> Result<FinishedRun, EngineError> {
    run(planned, &RunOutput::new(results), Arc::new(Alone), Arc::new(Silent))
}

#[test]
fn a_run_gives_its_results_back_and_leaves_them_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let options = RunOptions::new(2).unwrap();
    let planned = PlannedRun::new(selection(&data), options, &Arc::default()).unwrap();
    let results = folder.path().join("results");
    let done = finish(planned, &results).unwrap();
    // 8 samples / (2 per batch x 2 ranks) = 2 steps per epoch, 2 epochs.
    assert_eq!(done.results.summary.strict.steps, 4);
    assert_eq!(done.results.outcome.ranks.len(), 2);
    assert_eq!(done.results.outcome.generated.unwrap().files, 8);
    assert!(matches!(
        done.results.assessment.verdict,
        Verdict::Fed { .. } | Verdict::Starved { .. }
    ));
    assert_eq!(SummaryFile::read(&results.join("summary.json")).unwrap(), done.results.file);
    let again = PlannedRun::new(selection(&data), RunOptions::new(2).unwrap(), &Arc::default());
    let error = finish(again.unwrap(), &results).err().unwrap();
    let hint = error.hint(Dialect::Feedline).unwrap();
    assert!(hint.contains("--overwrite"), "{error}: {hint}");
}

#[test]
fn emulated_storage_is_named_in_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let storage = StorageEmulation::parse(None, &["read:3:EIO".to_owned()]).unwrap();
    let options = RunOptions { storage, ..RunOptions::new(1).unwrap() };
    let caution = options.storage.caution().unwrap();
    assert!(caution.ends_with("the numbers are not those of the storage as it is"), "{caution}");
    let data = folder.path().join("data");
    let planned = PlannedRun::new(selection(&data), options, &Arc::default()).unwrap();
    let error = finish(planned, &folder.path().join("results")).err().unwrap();
    assert!(error.bench().is_some(), "{error}");
    let error = StorageEmulation::parse(Some("fast"), &[]).unwrap_err();
    assert!(error.to_string().starts_with("--store-limit fast"), "{error}");
}

#[test]
fn a_quick_run_reads_what_is_there_and_makes_the_rest_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let quick = |data_from| {
        let options = RunOptions::new(1).unwrap();
        PlannedRun::quick(selection(&data), options, data_from, &Arc::default()).unwrap()
    };
    // The workload itself says that it generates; a quick look makes a set of its own.
    let planned = quick(QuickData::Any);
    assert_eq!(planned.workload.data_root().to_string(), data.join("quick").display().to_string());
    assert!(planned.workload.workflow.generate_data);
    assert_eq!(planned.workload.dataset.num_files_train, 8);
    finish(planned, &folder.path().join("first")).unwrap();
    assert!(data.join("quick/train").is_dir() && !data.join("train").exists());
}

#[test]
fn a_flag_that_is_set_ends_a_run_early() {
    let folder = tempfile::tempdir().unwrap();
    let stop = Arc::default();
    let options = RunOptions::new(1).unwrap();
    let planned = PlannedRun::new(selection(&folder.path().join("data")), options, &stop).unwrap();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let done = finish(planned, &folder.path().join("results")).unwrap();
    assert!(done.results.outcome.interrupted);
    assert_eq!(done.results.summary.strict.steps, 0);
}
