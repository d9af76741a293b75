//! One test for each fault of DLIO that this crate does not repeat, named by its number.

use super::{composed, refused, resolved, warnings, workload};
use crate::{DataLoader, Framework, Sampler, ShuffleMode, StorageType, TimeSpec, check, resolve};

#[test]
fn q1_fsync_is_read() {
    let out = workload("checkpoint: {fsync: True}\n");
    assert!(out.checkpoint.fsync);
    assert_eq!(warnings("checkpoint: {fsync: True}\n"), Vec::<String>::new());
}

#[test]
fn q2_model_size_is_read_as_model_size_bytes() {
    let yaml = "model:\n  name: unet3d\n  model_size: 499153191\n";
    assert_eq!(workload(yaml).model.model_size_bytes, 499_153_191);
    assert_eq!(
        warnings(yaml),
        ["w.yaml:3: `model.model_size` is read as `model.model_size_bytes`"]
    );
    let yaml = "checkpoint:\n  model_size: 5\n";
    assert_eq!(workload(yaml).model.model_size_bytes, 5);
    assert_eq!(
        warnings(yaml),
        ["w.yaml:2: `checkpoint.model_size` is read as `model.model_size_bytes`"]
    );
}

#[test]
fn q2_the_real_key_wins_over_the_alias() {
    let yaml = "model:\n  model_size: 1\n  model_size_bytes: 2\n";
    assert_eq!(workload(yaml).model.model_size_bytes, 2);
    assert_eq!(
        warnings(yaml),
        ["w.yaml:2: `model.model_size` is ignored because `model.model_size_bytes` is also set"]
    );
}

#[test]
fn q3_unknown_key_warns_with_nearest_name() {
    #[track_caller]
    fn check(yaml: &str, expected: &str) {
        assert_eq!(warnings(yaml), [expected]);
    }
    check(
        "reader:\n  batch_size: 2\n  read_thread: 4\n",
        "w.yaml:3: unknown key `reader.read_thread`, did you mean `reader.read_threads`?",
    );
    check("datset:\n  format: npz\n", "w.yaml:1: unknown key `datset`, did you mean `dataset`?");
    check(
        "train:\n  batch_size: 4\n",
        "w.yaml:2: unknown key `train.batch_size`, did you mean `reader.batch_size`?",
    );
    check(
        "model: {parallelism: {tensors: 2}}\n",
        "w.yaml:1: unknown key `model.parallelism.tensors`, did you mean `model.parallelism.tensor`?",
    );
    check(
        "train: {computation_time: {mean: 1, sdev: 2}}\n",
        "w.yaml:1: unknown key `train.computation_time.sdev`, did you mean `train.computation_time.stdev`?",
    );
    check("xyzzy: 1\n", "w.yaml:1: unknown key `xyzzy`");
}

#[test]
fn q3_an_override_of_an_unknown_key_names_the_command_line() {
    let out = composed("train: {epochs: 1}\n", &["++workload.train.epoch=2", "+foo=1"]);
    let warnings = resolve(&out.expect("the overrides fit")).expect("it is valid").warnings;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "command line: unknown key `train.epoch`, did you mean `train.epochs`?",
            "command line: unknown key `foo`",
        ]
    );
}

#[test]
fn q3_tensors_that_nobody_makes_are_named() {
    assert_eq!(
        warnings("reader: {transformed_record_dims: [7]}\n"),
        [
            "w.yaml:1: `reader.transformed_record_dims` has no effect: samples are checked and dropped, not turned into tensors",
        ]
    );
}

#[test]
fn q3_a_key_without_effect_may_say_its_default() {
    let yaml =
        "workflow: {profiling: False}\nreader: {pin_memory: True, multiprocessing_context: fork}\n";
    assert_eq!(warnings(yaml), Vec::<String>::new());
}

#[test]
fn q3_a_key_without_effect_says_why() {
    assert_eq!(
        warnings(
            "workflow: {debug: True}\nreader: {file_access: shared}\n\
             dataset: {enable_chunking: True, chunk_size: 5, record_element_bytes: 8, \
             generation_buffer_size: 9, listing_validation_interval: 9, num_files_generated: 7}\n\
             checkpoint: {type: all_ranks, model_datatype: fp16}\n"
        ),
        [
            "w.yaml:1: `workflow.debug` has no effect: DLIO does not read it",
            "w.yaml:2: `reader.file_access` has no effect: DLIO parses it and never uses it",
            "w.yaml:3: `dataset.enable_chunking` has no effect: DLIO parses it and never uses it",
            "w.yaml:3: `dataset.chunk_size` has no effect: DLIO parses it and never uses it",
            "w.yaml:3: `dataset.record_element_bytes` has no effect: it follows from \
             `dataset.record_element_type`",
            "w.yaml:3: `dataset.generation_buffer_size` has no effect: files of any size are written in small pieces",
            "w.yaml:3: `dataset.listing_validation_interval` has no effect: Feedline lists the folder and counts the files",
            "w.yaml:3: `dataset.num_files_generated` has no effect: Feedline lists the folder and counts the files",
            "w.yaml:4: `checkpoint.type` has no effect: `model.parallelism` determines the writers",
            "w.yaml:4: `checkpoint.model_datatype` has no effect: use `model.model_datatype`",
        ]
    );
}

#[test]
fn q3_legacy_spellings_are_read_with_a_remark() {
    #[track_caller]
    fn check(yaml: &str, expected: &str, holds: impl Fn(&crate::Workload) -> bool) {
        assert_eq!(warnings(yaml), [expected]);
        assert!(holds(&workload(yaml)), "{yaml}");
    }
    check(
        "dataset: {record_length: 7}\n",
        "w.yaml:1: `dataset.record_length` is read as `dataset.record_length_bytes`",
        |w| w.dataset.record_length_bytes == 7.0,
    );
    check(
        "dataset: {record_length_stdev: 7}\n",
        "w.yaml:1: `dataset.record_length_stdev` is read as `dataset.record_length_bytes_stdev`",
        |w| w.dataset.record_length_bytes_stdev == 7.0,
    );
    check(
        "dataset: {num_dset_per_record: 3}\n",
        "w.yaml:1: `dataset.num_dset_per_record` is read as `dataset.hdf5.num_dset_per_record`",
        |w| w.dataset.hdf5.num_dset_per_record == 3,
    );
    check(
        "dataset: {chunk_dims: [1, 2]}\n",
        "w.yaml:1: `dataset.chunk_dims` is read as `dataset.hdf5.chunk_dims`",
        |w| w.dataset.hdf5.chunk_dims == [1, 2],
    );
    check(
        "dataset: {max_shape: [4], hdf5: {num_dset_per_record: 1}}\n",
        "w.yaml:1: `dataset.max_shape` is read as `dataset.hdf5.max_shape`",
        |w| w.dataset.hdf5.max_shape == [4],
    );
    check("model: unet3d\n", "w.yaml:1: `model` is read as `model.name`", |w| {
        w.model.name == "unet3d"
    });
    check(
        "workflow: {evaluate: True}\n",
        "w.yaml:1: `workflow.evaluate` is read as `workflow.evaluation`",
        |w| w.workflow.evaluation,
    );
}

#[test]
fn q4_data_reader_is_merged_over_reader() {
    let yaml = "reader: {batch_size: 2, read_threads: 3}\ndata_reader:\n  batch_size: 5\n";
    let out = workload(yaml);
    assert_eq!((out.reader.batch_size, out.reader.read_threads), (5, 3));
    assert_eq!(
        warnings(yaml),
        [
            "w.yaml:2: `data_reader` is read as `reader`",
            "w.yaml:3: `data_reader.batch_size` overrides `reader.batch_size`",
        ]
    );
    assert_eq!(workload("data_reader: {batch_size: 5}\n").reader.batch_size, 5);
}

#[test]
fn q5_the_loader_follows_from_the_framework() {
    #[track_caller]
    fn check(yaml: &str, framework: Framework, loader: DataLoader) {
        let out = workload(yaml);
        assert_eq!((out.framework, out.reader.data_loader), (framework, loader));
    }
    check("framework: pytorch\n", Framework::Pytorch, DataLoader::Pytorch);
    check("framework: tensorflow\n", Framework::Tensorflow, DataLoader::Tensorflow);
    check("train: {epochs: 1}\n", Framework::Tensorflow, DataLoader::Tensorflow);
    check(
        "framework: pytorch\nreader: {data_loader: dali}\n",
        Framework::Pytorch,
        DataLoader::Dali,
    );
}

#[test]
fn q6_every_loader_has_a_sampler() {
    #[track_caller]
    fn check(loader: &str, given: &str, expected: Sampler) {
        let yaml = format!("framework: pytorch\nreader: {{data_loader: {loader}{given}}}\n");
        assert_eq!(workload(&yaml).reader.sampler(), expected, "{yaml}");
    }
    check("tensorflow", "", Sampler::Iterative);
    for loader in ["pytorch", "dali", "native_dali", "synthetic"] {
        check(loader, "", Sampler::Index);
    }
    check("native_dali", ", data_loader_sampler: iterative", Sampler::Iterative);
}

#[test]
fn q11_explicit_off_stays_off() {
    let out = workload("reader: {file_shuffle: 'off', sample_shuffle: seed}\n");
    assert_eq!(
        (out.reader.file_shuffle, out.reader.sample_shuffle),
        (ShuffleMode::Off, ShuffleMode::Seed)
    );
}

#[test]
fn q12_unquoted_off_is_off() {
    let out = workload("reader: {file_shuffle: off, sample_shuffle: Off}\n");
    assert_eq!(
        (out.reader.file_shuffle, out.reader.sample_shuffle),
        (ShuffleMode::Off, ShuffleMode::Off)
    );
    refused(
        "reader: {file_shuffle: on}\n",
        "w.yaml:1: `reader.file_shuffle` expects one of `off`, `seed`, `random`, found true",
    );
}

#[test]
fn q25_the_whole_run_has_a_cap_of_its_own() {
    let out = workload("train: {total_training_steps: 10, max_steps: 15}\n");
    assert_eq!((out.train.total_training_steps, out.train.max_steps), (Some(10), Some(15)));
    let out = workload("train: {total_training_steps: -1}\n");
    assert_eq!((out.train.total_training_steps, out.train.max_steps), (None, None));
}

#[test]
fn q30_evaluation_is_off_without_training() {
    let yaml = "workflow:\n  train: False\n  generate_data: True\n  evaluation: True\n";
    assert!(!workload(yaml).workflow.evaluation);
    assert_eq!(
        warnings(yaml),
        ["w.yaml:4: `workflow.evaluation` has no effect while `workflow.train` is off"]
    );
}

#[test]
fn q30_settings_that_the_workflow_does_not_reach_are_named() {
    #[track_caller]
    fn remarks(yaml: &str, expected: &[&str]) {
        let out = check(&workload(yaml), 1).expect("the workload is sound");
        let out: Vec<String> = out.iter().map(ToString::to_string).collect();
        assert_eq!(out, expected, "{yaml}");
    }
    remarks(
        "workflow: {train: False, checkpoint: True}\n\
         checkpoint: {steps_between_checkpoints: 5}\ntrain: {total_training_steps: 4}\n",
        &[
            "`checkpoint.steps_between_checkpoints` has no effect while `workflow.train` is off",
            "`train.total_training_steps` has no effect while `workflow.train` is off",
        ],
    );
    remarks(
        "workflow: {checkpoint: True}\n\
         checkpoint: {num_checkpoints_write: 5, num_checkpoints_read: 5}\n",
        &[
            "`checkpoint.num_checkpoints_write` has no effect while `workflow.train` is on",
            "`checkpoint.num_checkpoints_read` has no effect while `workflow.train` is on",
        ],
    );
    remarks(
        "workflow: {evaluation: True}\n",
        &["`workflow.evaluation` is on, but `dataset.num_files_eval` is 0"],
    );
    let mut by_hand = crate::Workload::default();
    by_hand.workflow.train = false;
    by_hand.workflow.generate_data = true;
    by_hand.workflow.evaluation = true;
    let out = check(&by_hand, 1).expect("the workload is sound");
    assert_eq!(out.len(), 1);
    assert_eq!(
        out[0].to_string(),
        "`workflow.evaluation` has no effect while `workflow.train` is off"
    );
}

#[test]
fn q31_a_time_is_checked_before_the_run() {
    refused(
        "train:\n  computation_time: {type: uniform, min: 1}\n",
        "w.yaml:2: `train.computation_time` has type `uniform`, which requires `max`",
    );
    refused(
        "train: {computation_time: {type: unifrom, min: 1, max: 2}}\n",
        "w.yaml:1: `train.computation_time.type` expects one of `normal`, `uniform`, `gamma`, \
         `exponential`, `poisson`, found \"unifrom\"",
    );
    refused(
        "reader: {preprocess_time: {type: gamma, shape: 1}}\n",
        "w.yaml:1: `reader.preprocess_time` has type `gamma`, which requires `scale`",
    );
    refused(
        "evaluation: {eval_time: {type: poisson}}\n",
        "w.yaml:1: `evaluation.eval_time` has type `poisson`, which requires `lam`",
    );
}

#[test]
fn q33_one_subfolder_is_accepted() {
    assert_eq!(workload("dataset: {num_subfolders_train: 1}\n").dataset.num_subfolders_train, 1);
}

#[test]
fn q34_parallel_fs_is_a_file_system() {
    let out = resolved("storage: {storage_type: parallel_fs}\n").expect("it is valid");
    assert_eq!(out.workload.storage.storage_type, StorageType::LocalFs);
    assert_eq!(out.warnings, []);
    refused(
        "storage: {storage_type: nfs}\n",
        "w.yaml:1: `storage.storage_type` expects one of `local_fs`, `parallel_fs`, `s3`, \
         `aistore`, found \"nfs\"",
    );
}

#[test]
fn q35_path_style_is_text_or_truth_value() {
    #[track_caller]
    fn check(value: &str, expected: Option<bool>) {
        let yaml = format!("storage: {{storage_options: {{s3_force_path_style: {value}}}}}\n");
        assert_eq!(workload(&yaml).storage.option_bool("s3_force_path_style"), expected, "{value}");
    }
    check("False", Some(false));
    check("True", Some(true));
    check("\"true\"", Some(true));
    check("'False'", Some(false));
    check("null", None);
    refused(
        "storage:\n  storage_options:\n    s3_force_path_style: maybe\n",
        "w.yaml:3: `storage.storage_options.s3_force_path_style` expects true or false, found \
         \"maybe\"",
    );
    let out =
        workload("storage: {storage_options: {s3_max_attempts: 5, endpoint_url: 'http://h'}}\n");
    assert_eq!(out.storage.option_u64("s3_max_attempts"), Some(5));
    assert_eq!(out.storage.option_text("endpoint_url").as_deref(), Some("http://h"));
}

#[test]
fn q31_the_deviation_key_folds_into_the_time() {
    let time = |yaml: &str| workload(yaml).train.computation_time;
    assert_eq!(
        time("train: {computation_time: 2, computation_time_stdev: 0.5}\n"),
        TimeSpec::Normal { mean: 2.0, stdev: 0.5 }
    );
}
