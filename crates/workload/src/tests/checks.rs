//! The rules that hold keys against each other and against the number of ranks.

use super::workload;
use crate::{WorkloadError, check};

/// A sound run that each case spoils in one place.
const BASE: &str = "framework: pytorch\n";

#[track_caller]
fn sound(yaml: &str, ranks: u32) {
    if let Err(err) = check(&workload(yaml), ranks) {
        panic!("{yaml}: {err}");
    }
}

#[track_caller]
fn unsound(yaml: &str, ranks: u32, message: &str, hint: Option<&str>) -> WorkloadError {
    match check(&workload(yaml), ranks) {
        Ok(_) => panic!("accepted, expected: {message}"),
        Err(err) => {
            assert_eq!(err.to_string(), message);
            assert_eq!(err.hint().as_deref(), hint);
            err
        }
    }
}

fn npz(rest: &str) -> String {
    format!("{BASE}dataset: {{format: npz, num_files_train: 8, {rest}}}\n")
}

#[test]
fn dimensions_must_fit_the_format() {
    sound(&npz("record_dims: [4, 6], hdf5: {num_dset_per_record: 2}"), 1);
    unsound(
        &npz("record_dims: [5, 6], hdf5: {num_dset_per_record: 2}"),
        1,
        "`dataset.record_dims[0]` must be a multiple of `dataset.hdf5.num_dset_per_record`, found \
         5 and 2",
        None,
    );
    for format in ["jpeg", "png"] {
        unsound(
            &format!("{BASE}dataset: {{format: {format}, record_dims: [2, 3, 4]}}\n"),
            1,
            &format!("{format} does not support more than 2 dimensions, but got 3 dimensions"),
            None,
        );
        sound(&format!("{BASE}dataset: {{format: {format}, record_dims: [2, 3]}}\n"), 1);
    }
    unsound(
        &npz("record_dims: [4], record_length_bytes_stdev: 1.5"),
        1,
        "`dataset.record_dims` fixes the size of a sample, but \
         `dataset.record_length_bytes_stdev` is 1.5",
        None,
    );
}

#[test]
fn framework_loader_and_format_must_go_together() {
    unsound(
        "framework: tensorflow\ndataset: {format: npz}\nreader: {data_loader: pytorch}\n",
        1,
        "framework `tensorflow` cannot use data loader `pytorch`",
        Some("use `reader.data_loader=tensorflow`, or change `framework`"),
    );
    unsound(
        "framework: pytorch\nreader: {data_loader: tensorflow}\n",
        1,
        "framework `pytorch` cannot use data loader `tensorflow`",
        Some("use `reader.data_loader=pytorch`, or change `framework`"),
    );
    unsound(
        "framework: pytorch\ndataset: {format: tfrecord}\n",
        1,
        "data loader `pytorch` cannot read format `tfrecord`",
        Some("use `reader.data_loader=dali`, or another `dataset.format`"),
    );
    sound("framework: pytorch\ndataset: {format: tfrecord}\nreader: {data_loader: dali}\n", 1);
    unsound(
        "dataset: {format: hdf5_opt}\n",
        1,
        "format `hdf5_opt` can be neither written nor read",
        Some("use `dataset.format=hdf5`"),
    );
    sound("workflow: {train: False, generate_data: True}\nframework: pytorch\n", 1);
}

#[test]
fn direct_reads_and_plugin_loaders_have_needs() {
    unsound(
        "reader: {odirect: True}\n",
        1,
        "`reader.odirect` works with npy and npz, found format tfrecord",
        None,
    );
    sound("framework: pytorch\ndataset: {format: npy}\nreader: {odirect: True}\n", 1);
    unsound(
        "framework: pytorch\ndataset: {format: npz}\nreader: {data_loader_classname: my.Loader}\n",
        1,
        "data loader class `my.Loader` needs `reader.data_loader_sampler`",
        Some("set `reader.data_loader_sampler` to `index` or `iterative`"),
    );
    sound(
        "framework: pytorch\ndataset: {format: npz}\n\
         reader: {data_loader_classname: my.Loader, data_loader_sampler: index}\n",
        1,
    );
}

fn llm(rest: &str) -> String {
    format!("workflow: {{train: False, checkpoint: True}}\n{rest}\n")
}

#[test]
fn the_ranks_must_fit_the_model() {
    unsound(
        &llm("model: {num_layers: 4, parallelism: {pipeline: 8}}"),
        8,
        "`model.num_layers` must be at least `model.parallelism.pipeline`, found 4 layers for 8 \
         stages",
        None,
    );
    unsound(
        &llm("model: {num_layers: 8, parallelism: {pipeline: 2, zero_stage: 3}}"),
        2,
        "ZeRO stage 3 excludes pipeline parallelism, found 2 stages",
        None,
    );
    unsound(
        &llm("model: {num_layers: 8, parallelism: {data: 2}}"),
        2,
        "`model.parallelism.data` is 2, but in checkpoint mode `default` it follows from the number \
         of ranks",
        Some("delete the key or set `checkpoint.mode=subset`"),
    );
    unsound(
        &llm("model: {num_layers: 8, parallelism: {tensor: 4, pipeline: 2}}"),
        12,
        "the number of ranks must be a multiple of tensor x pipeline = 8, found 12",
        Some("run with 8 ranks, or set `checkpoint.mode=subset`"),
    );
    sound(&llm("model: {num_layers: 8, parallelism: {tensor: 4, pipeline: 2}}"), 16);
}

#[test]
fn subset_mode_needs_the_size_of_the_whole() {
    unsound(
        &llm("model: {num_layers: 8}\ncheckpoint: {mode: subset}"),
        2,
        "checkpoint mode `subset` needs `model.parallelism.data`",
        None,
    );
    unsound(
        &llm(
            "model: {num_layers: 8, parallelism: {tensor: 2, data: 2}}\ncheckpoint: {mode: subset}",
        ),
        5,
        "checkpoint mode `subset` runs the first ranks of data x tensor x pipeline = 4, found 5 \
         ranks",
        None,
    );
    sound(&llm("model: {num_layers: 8, parallelism: {data: 1024}}\ncheckpoint: {mode: subset}"), 2);
}

#[test]
fn geometry_is_checked_only_when_layers_are_checkpointed() {
    sound("model: {num_layers: 4, parallelism: {pipeline: 8}}\n", 3);
    sound("workflow: {checkpoint: True}\nmodel: {parallelism: {tensor: 4}}\n", 3);
}

#[test]
fn checkpoint_counts_and_page_merging() {
    unsound(
        &llm("checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 3}"),
        1,
        "`checkpoint.num_checkpoints_read` must not exceed `checkpoint.num_checkpoints_write`, \
         found 3 and 2",
        None,
    );
    sound(&llm("checkpoint: {num_checkpoints_write: 0, num_checkpoints_read: 3}"), 1);
    sound(&llm("checkpoint: {num_checkpoints_read: 3}"), 1);
    unsound(
        &llm("checkpoint: {ksm: {}}"),
        1,
        "`checkpoint.ksm` needs `checkpoint.randomize_tensor: false`, found true",
        None,
    );
    sound(&llm("checkpoint: {ksm: {}, randomize_tensor: False}"), 1);
}

#[test]
fn a_run_must_have_something_to_do() {
    unsound(
        "workflow: {train: False}\n",
        1,
        "every phase of `workflow` is off",
        Some("set `workflow.generate_data=true` or `workflow.train=true`"),
    );
    let mut by_hand = crate::Workload::default();
    by_hand.dataset.num_files_train = 0;
    assert_eq!(
        check(&by_hand, 1).map_err(|err| err.to_string()),
        Err("`dataset.num_files_train` must be greater than 0 to generate or train, found 0"
            .to_owned())
    );
}

#[test]
fn an_epoch_must_have_a_step() {
    unsound(
        "dataset: {num_files_train: 4, num_samples_per_file: 2}\nreader: {batch_size: 9}\n",
        1,
        "training has 8 samples, but `reader.batch_size` is 9",
        Some("raise `dataset.num_files_train` or lower `reader.batch_size` from 9"),
    );
    unsound(
        "dataset: {num_files_train: 4, num_samples_per_file: 2}\nreader: {batch_size: 2}\n",
        5,
        "training has 8 samples, but one step of 5 ranks with `reader.batch_size` 2 takes 10",
        Some("use at most 4 ranks, or raise `dataset.num_files_train`"),
    );
    sound("dataset: {num_files_train: 4, num_samples_per_file: 2}\nreader: {batch_size: 2}\n", 4);
    unsound(
        "workflow: {evaluation: True}\ndataset: {num_files_eval: 2}\nreader: {batch_size_eval: 3}\n",
        1,
        "evaluation has 2 samples, but `reader.batch_size_eval` is 3",
        Some("raise `dataset.num_files_eval` or lower `reader.batch_size_eval` from 3"),
    );
    unsound(
        "workflow: {evaluation: True}\ndataset: {num_files_eval: 2}\n",
        4,
        "evaluation has 2 samples, but one step of 4 ranks with `reader.batch_size_eval` 1 takes 4",
        Some("use at most 2 ranks, or raise `dataset.num_files_eval`"),
    );
    sound("dataset: {num_files_eval: 2}\n", 4);
}

#[test]
fn no_more_steps_than_an_epoch_has() {
    unsound(
        "dataset: {num_files_train: 8}\ntrain: {total_training_steps: 5}\n",
        2,
        "`train.total_training_steps` is 5, but an epoch has 4 steps",
        Some("use at most `train.total_training_steps=4`"),
    );
    sound("dataset: {num_files_train: 8}\ntrain: {total_training_steps: 4}\n", 2);
}

#[test]
fn a_name_that_is_not_there_lists_up_to_three() {
    let err = WorkloadError::UnknownWorkload {
        name: "unet3d".to_owned(),
        nearest: crate::presets::nearest("unet3d"),
    };
    assert_eq!(err.to_string(), "no workload is named `unet3d`");
    assert_eq!(
        err.hint().as_deref(),
        Some("did you mean `unet3d_a100`, `unet3d_h100` or `unet3d_b200`?")
    );
}
