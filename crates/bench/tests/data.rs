//! Making and finding data sets, on stores in memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use feedline_bench::{BenchError, Existing, Level, OutputFolder, Plan, Run, Semantics};
use feedline_clock::Clock;
use feedline_dataset::{NameRule, discover};
use feedline_store::{
    Durability, FaultInjecting, FolderEntry, Memory, Op, Store, StoreError, Upload, Wrapper,
};
use feedline_workload::{Compression, DataLoader, Framework, SampleFormat, Workload};

const ENOSPC: i32 = 28;

fn workload(files: u64) -> Workload {
    let mut workload = Workload { framework: Framework::Pytorch, ..Workload::default() };
    workload.dataset.format = SampleFormat::find("npz").unwrap();
    workload.dataset.num_files_train = files;
    workload.dataset.record_length_bytes = 4096.0;
    workload.workflow.generate_data = true;
    workload.reader.data_loader = DataLoader::Pytorch;
    workload
}

fn run_on(workload: &Workload, data: Arc<dyn Store>, semantics: Semantics) -> Run {
    let plan = Plan::new(workload, 1, semantics).unwrap();
    let checkpoints = Arc::new(Memory::new(Clock::real()));
    let run = Run::new(workload.clone(), plan, data, checkpoints);
    Run { name: "test".into(), log_level: Level::Output, ..run }
}

/// Every object below `train` and `valid`.
fn files(store: &dyn Store) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["train", "valid"] {
        if !store.exists(folder).unwrap() {
            continue;
        }
        let visit = &mut |entry: FolderEntry<'_>| {
            found.insert(format!("{folder}/{}", entry.name));
            ControlFlow::Continue(())
        };
        store.list(folder, visit).unwrap();
    }
    found
}

fn rule(total: u64, subfolders: u64) -> NameRule {
    NameRule { folder: "train", prefix: "img".into(), total, subfolders, extension: "npz" }
}

/// A store with these (empty) files.
fn store_with(keys: &[&str]) -> Memory {
    let store = Memory::new(Clock::real());
    keys.iter().for_each(|key| store.put(key, &b""[..]));
    store
}

#[track_caller]
fn check_found(keys: &[&str], rule: NameRule, expected: &[&str], notice: Option<&str>) {
    let total = rule.total;
    let found = discover(&store_with(keys), &rule, "dataset.num_subfolders_train").unwrap();
    let names: Vec<String> = (0..total)
        .map(|number| {
            let mut key = String::new();
            found.names(&rule).write_key(number, &mut key);
            key
        })
        .collect();
    assert_eq!(names, expected);
    assert_eq!(found.notice.as_deref(), notice);
}

#[track_caller]
fn check_refused(keys: &[&str], rule: NameRule, expected: &str) {
    let error = discover(&store_with(keys), &rule, "dataset.num_subfolders_train");
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn a_generated_set_is_found_by_its_rule() {
    check_found(
        &["train/img_0_of_2.npz", "train/img_1_of_2.npz"],
        rule(2, 0),
        &["train/img_0_of_2.npz", "train/img_1_of_2.npz"],
        None,
    );
    check_found(
        &["train/0/img_0_of_3.npz", "train/1/img_1_of_3.npz", "train/0/img_2_of_3.npz"],
        rule(3, 2),
        &["train/0/img_0_of_3.npz", "train/1/img_1_of_3.npz", "train/0/img_2_of_3.npz"],
        None,
    );
}

#[test]
fn the_set_that_was_asked_for_wins_over_leftovers_of_another() {
    check_found(
        &["train/img_0_of_2.npz", "train/img_1_of_2.npz", "train/img_0_of_1.npz"],
        rule(2, 0),
        &["train/img_0_of_2.npz", "train/img_1_of_2.npz"],
        Some("memory:train: 1 further npz files are not read"),
    );
}

#[test]
fn the_first_files_of_a_larger_set_can_be_read() {
    check_found(
        &["train/img_0_of_3.npz", "train/img_1_of_3.npz", "train/img_2_of_3.npz"],
        rule(2, 0),
        &["train/img_0_of_3.npz", "train/img_1_of_3.npz"],
        Some("memory:train: reads the first 2 of a set of 3 files"),
    );
}

#[test]
fn files_without_a_rule_are_read_in_sorted_order() {
    check_found(
        &["train/b.npz", "train/a.NPZ", "train/c.npz", "train/notes.txt", "train/.d.npz.partial"],
        rule(2, 0),
        &["train/a.NPZ", "train/b.npz"],
        Some(
            "memory:train: file names do not follow img_<i>_of_<n>.npz; the first 2 of 3 in sorted order \
             are read",
        ),
    );
}

#[test]
fn missing_data_is_named() {
    check_refused(&["valid/x.npz"], rule(2, 0), "memory:train: no such data folder");
    check_refused(
        &["train/img_0_of_2.npz"],
        rule(2, 0),
        "memory:train: 1 npz files found, expected 2",
    );
    check_refused(
        &["train/0/img_0_of_2.npz", "train/1/img_1_of_2.npz"],
        rule(2, 0),
        "memory:train: holds 2 folders and no npz file, but `dataset.num_subfolders_train` is 0",
    );
    check_refused(&["train/0/img_0_of_2.npz"], rule(2, 2), "memory:train/1: no such data folder");
}

#[test]
fn a_full_disk_leaves_complete_files_only() {
    // The first write is that of the manifest that says that files are missing.
    for nth in 2..=9 {
        let memory = Memory::new(Clock::real());
        let store = Arc::new(FaultInjecting::new(memory.clone(), Op::Write, nth, ENOSPC));
        let mut workload = workload(8);
        workload.workflow.train = false;
        let out = tempfile::tempdir().unwrap();
        let folder = OutputFolder::claim(out.path(), Existing::Refuse).unwrap();
        let run = run_on(&workload, store, Semantics::Feedline);
        let error = run.prepare().unwrap().execute(&folder).err().expect("the disk is full");
        let text = chain(&error);
        assert!(text.contains("No space left on device"), "{text}");
        assert!(text.contains("train/img_"), "{text}");
        for key in files(&memory) {
            let bytes = memory.get(&key).unwrap();
            // Two members: 55 + 128 + 4096 and 55 + 128 + 8; directory 2 x 51; end 22.
            assert_eq!(bytes.len(), 4594, "{key} is complete");
        }
    }
}

/// An error and its sources in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn q31_what_cannot_be_run_is_refused_before_the_first_byte() {
    type Change = fn(&mut Workload);
    let cases: [(&str, Change); 4] = [
        ("format hdf5: `dataset.hdf5.chunk_dims`", |w| {
            w.dataset.format = SampleFormat::find("hdf5").unwrap();
            w.dataset.hdf5.chunk_dims = vec![1, 0, 3];
        }),
        ("`reader.data_loader: custom` cannot be run yet; ", |w| {
            w.reader.data_loader = DataLoader::Custom;
        }),
        ("format npz has no compression xz, only: none", |w| {
            w.dataset.compression = Compression::Xz;
        }),
        ("a Python plug-in class cannot be run yet; ", |w| {
            w.reader.reader_classname = Some("a.B".into());
        }),
    ];
    for (what, change) in cases {
        let mut workload = workload(4);
        change(&mut workload);
        let memory = Memory::new(Clock::real());
        let run = run_on(&workload, Arc::new(memory.clone()), Semantics::Feedline);
        let error = run.prepare().err().expect("refused");
        assert!(error.to_string().starts_with(what), "{error}");
        assert_eq!(files(&memory), BTreeSet::new());
    }
}

/// Generates and trains in one run.
fn summary_of(workload: &Workload, semantics: Semantics) -> serde_json::Value {
    let out = tempfile::tempdir().unwrap();
    let folder = OutputFolder::claim(out.path(), Existing::Refuse).unwrap();
    let run = run_on(workload, Arc::new(Memory::new(Clock::real())), semantics);
    run.prepare().unwrap().execute(&folder).unwrap();
    let text = std::fs::read_to_string(out.path().join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn q7_a_run_that_also_generates_knows_its_record_length() {
    let ratio = |semantics| {
        let metric = &summary_of(&workload(8), semantics)["metric"];
        let rate = metric["train_throughput_mean_samples_per_second"].as_f64().unwrap();
        metric["train_io_mean_MB_per_second"].as_f64().unwrap() / rate * 1_048_576.0
    };
    assert!((ratio(Semantics::Feedline) - 4096.0).abs() < 1e-6);
    assert!((ratio(Semantics::Dlio) - 1.0).abs() < 1e-9, "DLIO thinks it is one byte");
}

#[test]
fn q29_what_does_not_exist_is_null() {
    // One step: nothing counts, DLIO's throughput would be negative.
    let metric = &summary_of(&workload(1), Semantics::Feedline)["metric"];
    assert!(metric["train_throughput_mean_samples_per_second"].is_null());
    assert!(metric["train_io_mean_MB_per_second"].is_null());
    assert_eq!(metric["train_throughput_samples_per_second"], serde_json::json!([null]));
}

#[test]
fn q24_the_size_of_a_checkpoint_is_what_was_written() {
    let mut workload = workload(4);
    workload.workflow.checkpoint = true;
    workload.model.model_size_bytes = 3 << 20;
    let metric = &summary_of(&workload, Semantics::Feedline)["metric"];
    assert_eq!(metric["checkpoint_size_GB"], 3.0 / 1024.0);
}

#[test]
fn q0_as_dlio_a_run_without_steps_is_refused() {
    let mut workload = workload(4);
    workload.dataset.num_samples_per_file = 10;
    let error = Plan::new(&workload, 1, Semantics::Dlio).err().expect("refused");
    assert!(matches!(error, BenchError::DlioTrimsAll { files: 4, unit: 10 }), "{error}");
    assert_eq!(Plan::new(&workload, 1, Semantics::Feedline).unwrap().train.unwrap().steps, 40);
}

#[test]
fn q39_a_rank_that_cannot_read_ends_the_run_with_its_own_error() {
    let mut workload = workload(8);
    workload.workflow.generate_data = false;
    workload.reader.read_threads = 2;
    let memory = Memory::new(Clock::real());
    for number in 0..8 {
        memory.put(&format!("train/img_{number}_of_8.npz"), &b"PK and nothing that follows"[..]);
    }
    let out = tempfile::tempdir().unwrap();
    let folder = OutputFolder::claim(out.path(), Existing::Refuse).unwrap();
    let mut run = run_on(&workload, Arc::new(memory), Semantics::Feedline);
    run.plan = Plan::new(&workload, 4, Semantics::Feedline).unwrap();
    let error = run.prepare().unwrap().execute(&folder).err().expect("no file can be read");
    let text = chain(&error);
    assert!(text.starts_with("memory:train/img_"), "{text}");
    assert!(text.contains(": sample 0 cannot be read: not an npz: begins with"), "{text}");
}

/// Notes how durable each published object is asked to be.
struct Noting {
    inner: Memory,
    asked: Arc<Mutex<Vec<Durability>>>,
}

struct NotingUpload {
    inner: Box<dyn Upload>,
    asked: Arc<Mutex<Vec<Durability>>>,
}

impl Upload for NotingUpload {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.write_at(offset, bytes)
    }

    fn publish(self: Box<Self>, durability: Durability) -> Result<(), StoreError> {
        self.asked.lock().unwrap().push(durability);
        self.inner.publish(durability)
    }
}

impl Wrapper for Noting {
    type Inner = Memory;

    fn inner(&self) -> &Memory {
        &self.inner
    }

    fn upload(&self, _key: &str, inner: Box<dyn Upload>) -> Box<dyn Upload> {
        Box::new(NotingUpload { inner, asked: Arc::clone(&self.asked) })
    }
}

#[test]
fn q1_a_checkpoint_with_fsync_is_published_durably() {
    for (fsync, expected) in [(true, Durability::Fsync), (false, Durability::None)] {
        let mut workload = workload(4);
        workload.workflow.checkpoint = true;
        workload.checkpoint.fsync = fsync;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let inner = Memory::new(Clock::real());
        let mut run = run_on(&workload, Arc::new(Memory::new(Clock::real())), Semantics::Feedline);
        run.checkpoints = Arc::new(Noting { inner, asked: Arc::clone(&asked) });
        let out = tempfile::tempdir().unwrap();
        let folder = OutputFolder::claim(out.path(), Existing::Refuse).unwrap();
        run.prepare().unwrap().execute(&folder).unwrap();
        assert_eq!(*asked.lock().unwrap(), [expected; 2]);
    }
}
