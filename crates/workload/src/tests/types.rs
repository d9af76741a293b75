//! Types, ranges and times.

use super::{refused, warnings, workload};
use crate::{Element, FORMATS, Ksm, ReadType, TimeSpec, Workload};

#[test]
fn an_empty_section_leaves_every_default() {
    let yaml = "framework:\nworkflow:\nmodel:\nstorage:\ndataset:\nreader:\ntrain:\nevaluation:\n\
                checkpoint:\noutput:\nmetric:\nprofiling:\n";
    assert_eq!(workload(yaml), Workload::default());
    assert_eq!(warnings(yaml), Vec::<String>::new());
}

#[test]
fn a_wrong_type_names_place_key_expectation_and_finding() {
    #[track_caller]
    fn check(yaml: &str, rest: &str) {
        refused(yaml, &format!("w.yaml:1: {rest}"));
    }
    check(
        "reader: {batch_size: abc}",
        "`reader.batch_size` expects a whole number > 0, found \"abc\"",
    );
    check("reader: {batch_size: 0}", "`reader.batch_size` expects a whole number > 0, found 0");
    check("reader: {batch_size: 1.5}", "`reader.batch_size` expects a whole number > 0, found 1.5");
    check("train: {epochs: 0}", "`train.epochs` expects a whole number > 0, found 0");
    check(
        "dataset: {num_samples_per_file: -1}",
        "`dataset.num_samples_per_file` expects a whole number > 0, found -1",
    );
    check(
        "dataset: {record_length_bytes: 0}",
        "`dataset.record_length_bytes` expects a number > 0, found 0",
    );
    check(
        "dataset: {record_length_bytes: .nan}",
        "`dataset.record_length_bytes` expects a number > 0, found .nan",
    );
    check(
        "dataset: {num_files_train: 0}",
        "`dataset.num_files_train` expects a whole number > 0, found 0",
    );
    check(
        "reader: {read_threads: -1}",
        "`reader.read_threads` expects a whole number from 0 to 4096, found -1",
    );
    check(
        "reader: {read_threads: 5000000000}",
        "`reader.read_threads` expects a whole number from 0 to 4096, found 5000000000",
    );
    check(
        "model: {parallelism: {zero_stage: 4}}",
        "`model.parallelism.zero_stage` expects a whole number from 0 to 3, found 4",
    );
    check("workflow: {train: maybe}", "`workflow.train` expects true or false, found \"maybe\"");
    check("model: {name: [a]}", "`model.name` expects text, found a list");
    check("metric: {au: 90}", "`metric.au` expects a fraction from 0 to 1, found 90");
    check("reader: 5", "`reader` expects a mapping of keys, found 5");
    check(
        "dataset: {record_dims: 4}",
        "`dataset.record_dims` expects a list of whole numbers > 0, found 4",
    );
    check(
        "dataset: {record_dims: [4, 0]}",
        "`dataset.record_dims` expects a list of whole numbers > 0, found 0",
    );
    check("framework: jax", "`framework` expects one of `tensorflow`, `pytorch`, found \"jax\"");
    check(
        "dataset: {record_element_type: float8}",
        "`dataset.record_element_type` expects a NumPy type, one of bool, int8, int16, int32, \
         int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128, \
         found \"float8\"",
    );
    check(
        "profiling: {iostat_devices: [1]}",
        "`profiling.iostat_devices` expects text or a list of texts, found 1",
    );
}

#[test]
fn an_error_names_the_line_of_its_key() {
    refused(
        "reader:\n  read_threads: 2\n\n  batch_size: abc\n",
        "w.yaml:4: `reader.batch_size` expects a whole number > 0, found \"abc\"",
    );
}

#[test]
fn no_files_are_needed_when_nothing_reads_them() {
    let yaml = "workflow: {train: False, checkpoint: True}\ndataset: {num_files_train: 0}\n";
    assert_eq!(workload(yaml).dataset.num_files_train, 0);
}

#[test]
fn numbers_below_the_range_mean_not_given() {
    let out = workload(
        "model: {num_layers: -1, parallelism: {data: 0}}\ntrain: {total_training_steps: 0}\n\
         checkpoint: {steps_between_checkpoints: 0, num_checkpoints_write: -1, \
         time_between_checkpoints: -1}\n",
    );
    assert_eq!(out.model.num_layers, None);
    assert_eq!(out.model.parallelism.data, None);
    assert_eq!(out.train.total_training_steps, None);
    assert_eq!(out.checkpoint.steps_between_checkpoints, Some(0));
    assert_eq!(out.checkpoint.num_checkpoints_write, None);
    assert_eq!(out.checkpoint.time_between_checkpoints, None);
    let out =
        workload("checkpoint: {steps_between_checkpoints: -1, time_between_checkpoints: 5}\n");
    assert_eq!(out.checkpoint.steps_between_checkpoints, None);
    assert_eq!(out.checkpoint.time_between_checkpoints, Some(5.0));
}

#[test]
fn values_are_normalized() {
    let out = workload(
        "dataset: {data_folder: data/x//, record_element_type: float, num_files_train: 1e3}\n\
         reader: {read_type: memory, transformed_record_element_type: half, read_threads: 0}\n\
         checkpoint: {checkpoint_folder: /, ksm: {await_time: 3}}\n\
         profiling: {iostat_devices: sda}\n",
    );
    assert_eq!(out.dataset.data_folder, "data/x");
    assert_eq!(out.dataset.record_element_type, Element::Float64);
    assert_eq!(out.dataset.record_element_type.size_bytes(), 8);
    assert_eq!(out.dataset.num_files_train, 1000);
    assert_eq!(out.reader.read_type, ReadType::Memory);
    assert_eq!(out.reader.transformed_record_element_type, Element::Float16);
    assert_eq!(out.reader.read_threads, 0);
    assert_eq!(out.checkpoint.checkpoint_folder, "/");
    assert_eq!(out.checkpoint.ksm, Some(Ksm { await_time: 3.0, ..Ksm::default() }));
    assert_eq!(out.profiling.iostat_devices, ["sda"]);
    assert_eq!(workload("checkpoint: {ksm: {}}\n").checkpoint.ksm, Some(Ksm::default()));
}

#[test]
fn images_hold_bytes() {
    let yaml = "dataset: {format: png, record_element_type: float32}\n";
    let out = workload(yaml);
    assert_eq!((out.dataset.format.name, out.dataset.record_element_type), ("png", Element::UInt8));
    assert_eq!(
        warnings(yaml),
        [
            "w.yaml:1: `dataset.record_element_type` is always uint8 for format png, ignoring float32"
        ]
    );
}

#[test]
fn a_time_is_a_number_or_a_distribution() {
    #[track_caller]
    fn check(time: &str, expected: TimeSpec) {
        let yaml = format!("train: {{computation_time: {time}}}\n");
        assert_eq!(workload(&yaml).train.computation_time, expected, "{time}");
        assert_eq!(warnings(&yaml), Vec::<String>::new());
    }
    check("0.5", TimeSpec::Constant { mean: 0.5 });
    check("2", TimeSpec::Constant { mean: 2.0 });
    check("null", TimeSpec::Constant { mean: 0.0 });
    check("{}", TimeSpec::Constant { mean: 0.0 });
    check("{mean: 1}", TimeSpec::Constant { mean: 1.0 });
    check("{mean: 1, stdev: 2}", TimeSpec::Normal { mean: 1.0, stdev: 2.0 });
    check("{type: normal, mean: 1, stdev: 2}", TimeSpec::Normal { mean: 1.0, stdev: 2.0 });
    check("{type: uniform, min: 1, max: 2}", TimeSpec::Uniform { min: 1.0, max: 2.0 });
    check("{type: gamma, shape: 1, scale: 2}", TimeSpec::Gamma { shape: 1.0, scale: 2.0 });
    check("{type: exponential, scale: 2}", TimeSpec::Exponential { scale: 2.0 });
    check("{type: poisson, lam: 2}", TimeSpec::Poisson { lam: 2.0 });
}

#[test]
fn the_deviation_key_goes_with_a_mean_only() {
    let time = |yaml: &str| workload(yaml).evaluation.eval_time;
    let normal = TimeSpec::Normal { mean: 2.0, stdev: 0.5 };
    assert_eq!(time("evaluation: {eval_time: 2, eval_time_stdev: 0.5}\n"), normal);
    assert_eq!(time("evaluation: {eval_time: {mean: 2}, eval_time_stdev: 0.5}\n"), normal);
    assert_eq!(
        time("evaluation: {eval_time: {mean: 2, stdev: 9}, eval_time_stdev: 0.5}\n"),
        normal
    );
    assert_eq!(
        time("evaluation: {eval_time: 2, eval_time_stdev: 0}\n"),
        TimeSpec::Constant { mean: 2.0 }
    );
    let yaml = "evaluation:\n  eval_time: {type: poisson, lam: 1}\n  eval_time_stdev: 2\n";
    assert_eq!(time(yaml), TimeSpec::Poisson { lam: 1.0 });
    assert_eq!(
        warnings(yaml),
        ["w.yaml:3: `evaluation.eval_time_stdev` has no effect: the distribution has no standard \
          deviation"]
    );
    refused(
        "evaluation: {eval_time_stdev: 2}\n",
        "w.yaml:1: `evaluation.eval_time` has type `normal`, which requires `mean`",
    );
}

#[test]
fn what_is_no_time_is_refused() {
    #[track_caller]
    fn check(time: &str, rest: &str) {
        refused(&format!("train: {{computation_time: {time}}}"), &format!("w.yaml:1: {rest}"));
    }
    check(
        "fast",
        "`train.computation_time` expects a number of seconds or a distribution, found \"fast\"",
    );
    check("-1", "`train.computation_time` expects a number >= 0, found -1");
    check("{mean: x}", "`train.computation_time.mean` expects a number >= 0, found \"x\"");
    check("{stdev: 1}", "`train.computation_time` has type `normal`, which requires `mean`");
    check(
        "{min: 1, max: 2}",
        "`train.computation_time` has type `constant`, which requires `mean`",
    );
    check(
        "{type: normal, mean: 1}",
        "`train.computation_time` has type `normal`, which requires `stdev`",
    );
    check(
        "{type: uniform, min: 2, max: 1}",
        "`train.computation_time.max` expects a number >= `min`, found 1",
    );
    check(
        "{type: exponential}",
        "`train.computation_time` has type `exponential`, which requires `scale`",
    );
}

#[test]
fn every_format_is_a_word_of_workload_files() {
    for format in FORMATS {
        let found = workload(&format!("dataset: {{format: {format}}}\n")).dataset.format;
        assert_eq!(found, *format);
    }
    assert_eq!(Workload::default().dataset.format.name, "tfrecord", "DLIO's default");
}
