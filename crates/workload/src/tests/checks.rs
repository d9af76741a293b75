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
            &format!(
                "format `{format}` supports at most 2 dimensions, found 3 in `dataset.record_dims`"
            ),
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
        Some("use `framework=tensorflow`, or another `dataset.format`"),
    );
    sound("dataset: {format: tfrecord}\nreader: {data_loader: native_dali}\n", 1);
    sound("workflow: {train: False, generate_data: True}\nframework: pytorch\n", 1);
}

#[test]
fn plugin_loaders_have_needs() {
    unsound(
        "framework: pytorch\ndataset: {format: npz}\nreader: {data_loader_classname: my.Loader}\n",
        1,
        "data loader class `my.Loader` requires `reader.data_loader_sampler`",
        Some("set `reader.data_loader_sampler` to `index` or `iterative`"),
    );
    sound(
        "framework: pytorch\ndataset: {format: npz}\n\
         reader: {data_loader_classname: my.Loader, data_loader_sampler: index}\n",
        1,
    );
}

/// A run with this format and these keys of `reader`.
fn reading(format: &str, reader: &str) -> String {
    let framework = if format == "tfrecord" { "tensorflow" } else { "pytorch" };
    format!(
        "framework: {framework}\ndataset: {{format: {format}, num_files_train: 8}}\n\
         reader: {{{reader}}}\n"
    )
}

#[test]
fn every_format_can_be_read_past_the_page_cache_unless_it_is_mapped() {
    for format in ["npz", "npy", "hdf5", "csv", "tfrecord", "parquet", "webdataset", "jpeg"] {
        sound(&reading(format, "odirect: True"), 1);
        sound(&reading(format, "odirect: True, io_engine: io_uring"), 1);
    }
    let (reason, hint) = (
        "a memory map goes through the page cache",
        Some("use `reader.io_engine=sync` or `reader.io_engine=io_uring`"),
    );
    for (format, reader, second) in [
        ("npy", "odirect: True, io_engine: mmap", "reader.io_engine: mmap"),
        ("mmap_indexed_binary", "odirect: True", "dataset.format: mmap_indexed_binary"),
        ("npy", "odirect: True, data_loader: native_dali", "reader.data_loader: native_dali"),
    ] {
        let message =
            format!("`reader.odirect: true` cannot be combined with `{second}`: {reason}");
        unsound(&reading(format, reader), 1, &message, hint);
    }
    sound(&reading("mmap_indexed_binary", "odirect: True, io_engine: sync"), 1);
    sound(&reading("npy", "odirect: True, data_loader: native_dali, dont_use_mmap: True"), 1);
}

#[test]
fn ways_of_reading_that_exclude_each_other_are_refused_in_words() {
    let check = |format: &str, reader: &str, pair: &str, reason: &str, hint: &str| {
        let message = format!("{pair}: {reason}");
        unsound(&reading(format, reader), 1, &message, Some(hint));
    };
    check(
        "tfrecord",
        "read_model: deep",
        "`reader.read_model: deep` cannot be combined with `dataset.format: tfrecord`",
        "records can only be found by reading the file from the start",
        "use `reader.read_model=framework`",
    );
    check(
        "npz",
        "read_model: deep, io_engine: mmap",
        "`reader.read_model: deep` cannot be combined with `reader.io_engine: mmap`",
        "pages of a memory map are read one at a time",
        "use `reader.io_engine=io_uring`",
    );
    check(
        "npz",
        "read_model: deep, read_type: memory",
        "`reader.read_model: deep` cannot be combined with `reader.read_type: memory`",
        "`memory` keeps decoded samples, but the deep model does not decode",
        "use `reader.read_type=on_demand`",
    );
    check(
        "npz",
        "read_model: deep, data_loader: synthetic",
        "`reader.read_model: deep` cannot be combined with `reader.data_loader: synthetic`",
        "the synthetic loader reads nothing",
        "use `reader.read_model=framework`",
    );
    check(
        "webdataset",
        "read_type: memory",
        "`reader.read_type: memory` cannot be combined with `dataset.format: webdataset`",
        "records are streamed and not kept",
        "use `reader.read_type=on_demand`",
    );
    check(
        "tfrecord",
        "sample_order: permuted",
        "`reader.sample_order: permuted` cannot be combined with `dataset.format: tfrecord`",
        "records are read in file order",
        "use `reader.file_shuffle=seed` and `reader.sample_shuffle=seed` (a shuffle buffer)",
    );
    check(
        "tfrecord",
        "data_loader: dali",
        "`reader.data_loader: dali` cannot be combined with `dataset.format: tfrecord`",
        "its callbacks read samples by index, but records can only be read in sequence",
        "use `reader.data_loader=native_dali`",
    );
    check(
        "npz",
        "data_loader: native_dali",
        "`reader.data_loader: native_dali` cannot be combined with `dataset.format: npz`",
        "DALI has no native reader for this format",
        "use `reader.data_loader=dali`",
    );
    check(
        "npz",
        "read_model: deep, data_loader: dali",
        "`reader.read_model: deep` cannot be combined with `reader.data_loader: dali`",
        "its readers read one sample at a time",
        "use `reader.read_model=framework`",
    );
    check(
        "webdataset",
        "read_threads: 0, sharding: records",
        "`reader.read_threads: 0` cannot be combined with `reader.sharding: records`",
        "sharding by record needs a reader thread ahead of the trainer",
        "use `reader.read_threads=1`",
    );
    sound(&reading("hdf5", "read_model: deep, io_engine: io_uring, odirect: True"), 1);
    unsound(
        &reading("npz", "read_model: deep, queue_depth: 1024, transfer_size: 8388608"),
        1,
        "`reader.queue_depth` of 1024 with reads of 8388608 bytes exceeds 4 GiB of memory per reader",
        None,
    );
}

#[test]
fn a_transfer_size_must_fit_a_buffer_and_direct_reads() {
    for found in [511, (256 << 20) + 1] {
        let message = format!(
            "`reader.transfer_size` must be between 512 and 268435456 bytes, found {found}"
        );
        unsound(&reading("npz", &format!("transfer_size: {found}")), 1, &message, None);
    }
    unsound(
        &reading("npz", "transfer_size: 5000, odirect: True"),
        1,
        "`reader.transfer_size` must be a multiple of 4096 with `reader.odirect`, found 5000",
        None,
    );
    sound(&reading("npz", "transfer_size: 5000"), 1);
    sound(&reading("npz", "transfer_size: 8192, odirect: True"), 1);
}

#[test]
fn keys_that_need_another_are_named() {
    let check_remarks = |yaml: &str, expected: &[&str]| {
        let remarks = check(&workload(yaml), 1).unwrap();
        let found: Vec<_> = remarks.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{yaml}");
    };
    check_remarks(&reading("npz", ""), &[]);
    check_remarks(
        &reading("npz", "queue_depth: 8, kept_files: 3, shuffle_size: 5, computation_threads: 2"),
        &[
            "`reader.queue_depth` has no effect without `reader.read_model: deep`",
            "`reader.kept_files` has no effect without `reader.read_type: memory`",
            "`reader.shuffle_size` has no effect without a streamed format such as tfrecord \
             or the loader native_dali",
            "`reader.computation_threads` has no effect without a streamed format such as \
             tfrecord and the loader tensorflow",
        ],
    );
    check_remarks(
        &reading("npz", "data_loader: dali, interpreter: calibrated"),
        &[
            "`reader.interpreter` has no effect without `reader.read_model: framework` and the loader \
           pytorch or tensorflow",
        ],
    );
    check_remarks(&reading("npz", "data_loader: pytorch, interpreter: calibrated"), &[]);
    check_remarks(
        &reading("tfrecord", "shuffle_size: 5"),
        &["`reader.shuffle_size` has no effect without `reader.sample_shuffle`"],
    );
    check_remarks(&reading("tfrecord", "shuffle_size: 5, sample_shuffle: seed"), &[]);
    check_remarks(
        &npz("compression_level: 9, hdf5: {chunk_dims: [1], max_shape: [2]}"),
        &[
            "`dataset.hdf5.chunk_dims` has no effect without `dataset.format: hdf5`",
            "`dataset.hdf5.max_shape` has no effect without `dataset.format: hdf5`",
            "`dataset.compression_level` has no effect without `dataset.compression: gzip` or `zip`",
        ],
    );
    check_remarks(
        "framework: pytorch\ndataset: {format: png, num_samples_per_file: 4}\n",
        &[
            "a png file holds one image, so its 4 samples (`dataset.num_samples_per_file`) are identical",
        ],
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
        "ZeRO stage 3 cannot be combined with pipeline parallelism, found 2 stages",
        None,
    );
    unsound(
        &llm("model: {num_layers: 8, parallelism: {data: 2}}"),
        2,
        "`model.parallelism.data` is 2, but checkpoint mode `default` derives it from the number of ranks",
        Some("remove the key, or set `checkpoint.mode=subset`"),
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
        "checkpoint mode `subset` requires `model.parallelism.data`",
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
        "`checkpoint.ksm` requires `checkpoint.randomize_tensor: false`, found true",
        None,
    );
    sound(&llm("checkpoint: {ksm: {}, randomize_tensor: False}"), 1);
}

#[test]
fn a_run_must_have_something_to_do() {
    unsound(
        "workflow: {train: False}\n",
        1,
        "nothing to do: every phase of `workflow` is off",
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
fn sharding_goes_with_how_the_format_is_read() {
    unsound(
        "framework: pytorch\ndataset: {format: npz}\nreader: {sharding: files}\n",
        1,
        "`reader.sharding: files` cannot be combined with `dataset.format: npz`: this format is sharded by sample",
        Some("use `reader.sharding=auto`"),
    );
    unsound(
        "dataset: {format: tfrecord}\nreader: {sharding: strided}\n",
        1,
        "`reader.sharding: strided` cannot be combined with `dataset.format: tfrecord`: records are read in file order",
        Some("use `reader.sharding=auto`"),
    );
    for sharding in ["strided", "blocked", "dlio", "dlio_2.0.0"] {
        let reader = format!("reader: {{sharding: {sharding}, sampler_drop_last: true}}\n");
        sound(&format!("framework: pytorch\ndataset: {{format: npz}}\n{reader}"), 1);
    }
    for sharding in ["files", "records", "dlio", "dlio_2.0.0"] {
        sound(&format!("reader: {{sharding: {sharding}, drop_last: true}}\n"), 1);
    }
}

#[test]
fn a_name_that_is_not_there_lists_up_to_three() {
    let err = WorkloadError::UnknownWorkload {
        name: "unet3d".to_owned(),
        nearest: crate::presets::nearest("unet3d"),
    };
    assert_eq!(err.to_string(), "unknown workload `unet3d`");
    assert_eq!(
        err.hint().as_deref(),
        Some("did you mean `unet3d_a100`, `unet3d_h100` or `unet3d_b200`?")
    );
}
