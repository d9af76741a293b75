//! `summary.json` read back as a type, from runs of every kind.

use std::path::Path;
use std::sync::Arc;

use feedline_bench::{FrameworkSummary, Semantics, Silent, SummaryFile};
use feedline_engine::{
    PlannedRun, QuickData, RunOptions, RunOutput, WorkloadSelection, WorkloadSource,
    parse_overrides, quoted, run,
};
use feedline_ranks::Alone;
use feedline_s3_server::{Keys, Server};

const YAML: &str = "\
framework: pytorch
model: {name: tiny}
workflow: {generate_data: true, train: true, evaluation: true}
dataset: {format: npz, num_files_train: 8, num_files_eval: 4, record_length_bytes: 4096}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 1}
train: {epochs: 2, computation_time: 0.001}
";

fn selection(data: &str, overrides: &[&str]) -> WorkloadSelection {
    let data = format!("dataset.data_folder={}", quoted(data));
    let words: Vec<&str> = [data.as_str()].into_iter().chain(overrides.iter().copied()).collect();
    let (name, origin) = ("tiny".to_owned(), "tiny.yaml".to_owned());
    let source = WorkloadSource { name, origin, yaml: YAML.to_owned() };
    WorkloadSelection::new(source, parse_overrides(&words).unwrap())
}

/// Runs it, and checks that its summary says the same after it was read and written again.
fn read_back(planned: PlannedRun, results: &Path) -> SummaryFile {
    let done = run(planned, &RunOutput::new(results), Arc::new(Alone), Arc::new(Silent)).unwrap();
    let path = results.join("summary.json");
    let file = SummaryFile::read(&path).unwrap();
    assert_eq!(file, done.results.file);
    let text = std::fs::read_to_string(&path).unwrap();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut again = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut again, format);
    serde::Serialize::serialize(&file, &mut serializer).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text.trim_end());
    file
}

fn plan(data: &str, overrides: &[&str], options: RunOptions) -> PlannedRun {
    PlannedRun::new(selection(data, overrides), options, &Arc::default()).unwrap()
}

#[test]
fn of_a_training() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let planned = plan(&data, &[], RunOptions::new(2).unwrap());
    let file = read_back(planned, &folder.path().join("out"));
    assert_eq!((file.num_accelerators, file.epochs), (2, 2));
    assert_eq!(file.metric.train.unwrap().au_percentage.len(), 2);
    assert_eq!(file.metric.eval.unwrap().au_percentage.len(), 2);
    assert_eq!(file.feedline.generation.unwrap().files, 12);
    assert!(file.feedline.storage["read"].calls > 0 && file.feedline.comparable);
    assert!(matches!(file.feedline.framework, FrameworkSummary::LeftOut { .. }));
}

#[test]
fn of_a_run_as_dlio() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let options = RunOptions { semantics: Semantics::Dlio, ..RunOptions::new(2).unwrap() };
    let file = read_back(plan(&data, &[], options), &folder.path().join("out"));
    assert_eq!(file.feedline.semantics, "dlio");
}

#[test]
fn of_a_quick_run_without_computation() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let selection = selection(&data, &["train.computation_time=0", "reader.interpreter=none"]);
    let options = RunOptions::new(1).unwrap();
    let planned = PlannedRun::quick(selection, options, QuickData::Own, &Arc::default()).unwrap();
    let file = read_back(planned, &folder.path().join("out"));
    assert_eq!(file.feedline.verdict.result, "unpaced");
    assert_eq!(file.feedline.verdict.au_percentage, None);
    assert_eq!(file.feedline.framework, FrameworkSummary::Ignored);
}

#[test]
fn of_checkpoints_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("checkpoints").display().to_string();
    let place = format!("checkpoint.checkpoint_folder={}", quoted(&place));
    let overrides = [
        place.as_str(),
        "workflow.generate_data=False",
        "workflow.train=False",
        "workflow.evaluation=False",
        "workflow.checkpoint=True",
        "model.model_size_bytes=100000",
        "checkpoint.num_checkpoints_write=2",
        "checkpoint.num_checkpoints_read=1",
    ];
    let planned = plan("unused", &overrides, RunOptions::new(1).unwrap());
    let file = read_back(planned, &folder.path().join("out"));
    let checkpoints = file.feedline.checkpoints.unwrap();
    assert_eq!((checkpoints.saves, checkpoints.loads), (2, 1));
    assert!(file.metric.save.is_some() && file.metric.load.is_some());
    assert_eq!(file.metric.train, None);
}

#[test]
fn of_a_run_on_an_object_store() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Keys::TEST).unwrap();
    server.memory().add_bucket("bucket");
    let option =
        |key: &str, value: &str| format!("+storage.storage_options.{key}={}", quoted(value));
    let options = [
        option("endpoint_url", &server.url()),
        option("access_key_id", Keys::TEST.id),
        option("secret_access_key", Keys::TEST.secret),
    ];
    let overrides: Vec<&str> = options.iter().map(String::as_str).collect();
    let planned = plan("s3://bucket/set", &overrides, RunOptions::new(1).unwrap());
    let file = read_back(planned, &folder.path().join("out"));
    assert_eq!(
        (file.feedline.io_engine.as_str(), file.feedline.data.as_str()),
        ("http", "s3://bucket/set")
    );
    assert!(file.feedline.storage.iter().any(|(_, op)| op.requests > 0));
}
