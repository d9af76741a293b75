//! The shipped workloads against values copied by hand from the table of DLIO's own.

use crate::{
    BUILT_IN, CheckpointMode, DataLoader, Datatype, Framework, ShuffleMode, Source, StorageType,
    TimeSpec, Workload, compose, presets, resolve,
};

#[track_caller]
fn load(name: &str) -> Workload {
    let preset = presets::find(name).expect(name);
    let source = Source { name, origin: BUILT_IN, text: preset.yaml };
    let composed = compose(source, &[], &|_| String::new()).expect(name);
    let out = resolve(&composed).expect(name);
    assert_eq!(out.warnings, [], "{name}");
    out.workload
}

/// One row of the table of training workloads.
struct Row {
    name: &'static str,
    loader: DataLoader,
    format: &'static str,
    files: u64,
    samples: u64,
    record: [f64; 3],
    batch: u64,
    threads: [u32; 2],
    shuffle: [ShuffleMode; 2],
    epochs: u32,
    compute: f64,
    au: f64,
    /// generate, train, evaluate, checkpoint
    phases: [bool; 4],
}

const OFF: [ShuffleMode; 2] = [ShuffleMode::Off, ShuffleMode::Off];
const SEED: [ShuffleMode; 2] = [ShuffleMode::Seed, ShuffleMode::Seed];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("default", DataLoader::Pytorch, "npz", (64, 1), [4096.0, 0.0, 0.0], (4, [1, 1]), OFF, (10, 1.0, 0.9), "-TE-"),
    row("unet3d_a100", DataLoader::Pytorch, "npz", (168, 1), [146_600_628.0, 68_341_808.0, 2_097_152.0], (7, [4, 1]), SEED, (5, 0.636, 0.9), "-T-C"),
    row("unet3d_h100", DataLoader::Pytorch, "npz", (168, 1), [146_600_628.0, 68_341_808.0, 2_097_152.0], (7, [4, 1]), SEED, (5, 0.323, 0.9), "-T-C"),
    row("unet3d_b200", DataLoader::Pytorch, "npz", (7200, 1), [146_600_628.0, 68_341_808.0, 2_097_152.0], (7, [4, 1]), SEED, (5, 0.162, 0.9), "-T--"),
    row("unet3d_v100", DataLoader::Pytorch, "npz", (168, 1), [146_600_628.0, 68_341_808.0, 2_097_152.0], (4, [4, 1]), SEED, (5, 1.3604, 0.9), "-T-C"),
    row("unet3d_a100_s3", DataLoader::Pytorch, "npz", (168, 1), [146_600_628.0, 0.0, 2_097_152.0], (7, [4, 1]), SEED, (5, 0.636, 0.9), "GT--"),
    row("unet3d_h100_s3", DataLoader::Pytorch, "npz", (168, 1), [146_600_628.0, 0.0, 2_097_152.0], (7, [4, 1]), SEED, (7, 0.323, 0.9), "GT--"),
    row("unet3d_v100_s3", DataLoader::Pytorch, "npy", (168, 1), [146_600_628.0, 0.0, 2_097_152.0], (4, [4, 1]), SEED, (5, 1.3604, 0.9), "GT--"),
    row("resnet50_a100", DataLoader::Tensorflow, "tfrecord", (1024, 1251), [114_660.07, 0.0, 150_528.0], (400, [8, 8]), OFF, (5, 0.435, 0.9), "-T--"),
    row("resnet50_h100", DataLoader::Tensorflow, "tfrecord", (1024, 1251), [114_660.07, 0.0, 150_528.0], (400, [8, 8]), OFF, (5, 0.224, 0.9), "-T--"),
    row("resnet50_v100", DataLoader::Tensorflow, "tfrecord", (1024, 1251), [114_660.07, 0.0, 150_528.0], (64, [8, 8]), OFF, (5, 0.195, 0.9), "-T--"),
    row("resnet50_tf", DataLoader::Tensorflow, "tfrecord", (1024, 1251), [114_660.07, 0.0, 150_528.0], (64, [8, 8]), OFF, (1, 0.098, 0.9), "-T--"),
    row("retinanet_b200", DataLoader::Pytorch, "jpeg", (1_170_301, 1), [322_957.0, 0.0, 0.0], (24, [8, 1]), SEED, (8, 0.04755, 0.85), "-T--"),
    row("retinanet_mi355", DataLoader::Pytorch, "jpeg", (1_170_301, 1), [322_957.0, 0.0, 0.0], (32, [8, 1]), SEED, (8, 0.0634, 0.85), "-T--"),
    row("cosmoflow_a100", DataLoader::Tensorflow, "tfrecord", (524_288, 1), [2_828_486.0, 71_311.0, 0.0], (1, [4, 1]), SEED, (5, 0.00551, 0.7), "-T--"),
    row("cosmoflow_h100", DataLoader::Tensorflow, "tfrecord", (524_288, 1), [2_828_486.0, 71_311.0, 0.0], (1, [4, 1]), SEED, (5, 0.0035, 0.7), "-T--"),
    row("cosmoflow_v100", DataLoader::Tensorflow, "tfrecord", (524_288, 1), [2_828_486.0, 71_311.0, 0.0], (1, [4, 1]), OFF, (5, 0.00936, 0.9), "-T--"),
    row("bert_v100", DataLoader::Tensorflow, "tfrecord", (500, 313_532), [2500.0, 0.0, 0.0], (48, [1, 1]), SEED, (1, 0.968, 0.9), "-T-C"),
    row("dlrm", DataLoader::Pytorch, "indexed_binary", (1, 1024), [671_088_640.0, 0.0, 0.0], (1, [1, 1]), [ShuffleMode::Off, ShuffleMode::Random], (1, 0.064296, 0.9), "-T--"),
    row("megatron_deepspeed_LLNL", DataLoader::Pytorch, "mmap_indexed_binary", (1, 277_203_535), [2048.0, 0.0, 0.0], (16, [1, 1]), SEED, (3, 2.44, 0.9), "-T-C"),
];

#[allow(clippy::too_many_arguments, reason = "a row of a table")]
const fn row(
    name: &'static str,
    loader: DataLoader,
    format: &'static str,
    (files, samples): (u64, u64),
    record: [f64; 3],
    (batch, threads): (u64, [u32; 2]),
    shuffle: [ShuffleMode; 2],
    (epochs, compute, au): (u32, f64, f64),
    phases: &str,
) -> Row {
    let marks = phases.as_bytes();
    let phases = [marks[0] == b'G', marks[1] == b'T', marks[2] == b'E', marks[3] == b'C'];
    Row {
        name,
        loader,
        format,
        files,
        samples,
        record,
        batch,
        threads,
        shuffle,
        epochs,
        compute,
        au,
        phases,
    }
}

#[test]
fn every_training_preset_has_the_values_of_the_table() {
    for row in ROWS {
        let w = load(row.name);
        let name = row.name;
        assert_eq!(w.reader.data_loader, row.loader, "{name}");
        assert_eq!(DataLoader::of_framework(w.framework), row.loader, "{name}");
        assert_eq!(w.dataset.format.name, row.format, "{name}");
        assert_eq!(w.dataset.num_files_train, row.files, "{name}");
        assert_eq!(w.dataset.num_samples_per_file, row.samples, "{name}");
        let d = &w.dataset;
        let record =
            [d.record_length_bytes, d.record_length_bytes_stdev, d.record_length_bytes_resize];
        assert_eq!(record, row.record, "{name}");
        assert_eq!(w.reader.batch_size, row.batch, "{name}");
        assert_eq!([w.reader.read_threads, w.reader.computation_threads], row.threads, "{name}");
        assert_eq!([w.reader.file_shuffle, w.reader.sample_shuffle], row.shuffle, "{name}");
        assert_eq!(w.train.epochs, row.epochs, "{name}");
        assert_eq!(w.train.computation_time, TimeSpec::Constant { mean: row.compute }, "{name}");
        assert_eq!(w.metric.au, row.au, "{name}");
        let f = &w.workflow;
        assert_eq!([f.generate_data, f.train, f.evaluation, f.checkpoint], row.phases, "{name}");
    }
}

/// One row of the table of checkpoint workloads.
struct Llama {
    name: &'static str,
    /// layers, hidden, ffn, heads, kv heads, vocabulary
    shape: [u64; 6],
    /// tensor, pipeline, ZeRO
    parallel: [u32; 3],
    folder: &'static str,
    trains: bool,
}

#[rustfmt::skip]
const LLAMAS: &[Llama] = &[
    Llama { name: "llama_7b", shape: [32, 4096, 11008, 32, 32, 32000], parallel: [1, 1, 1], folder: "checkpoints/llama_7b", trains: false },
    Llama { name: "llama_7b_zero3", shape: [32, 4096, 11008, 32, 32, 32000], parallel: [1, 1, 3], folder: "checkpoints/llama_7b_zero3", trains: false },
    Llama { name: "llama_8b_zero3", shape: [32, 4096, 14336, 32, 8, 128_256], parallel: [1, 1, 3], folder: "checkpoints/llama_8b_zero3", trains: false },
    Llama { name: "llama_70b", shape: [80, 8192, 28672, 128, 8, 128_256], parallel: [8, 4, 1], folder: "checkpoints/llama_70b", trains: false },
    Llama { name: "llama_70b_zero3", shape: [80, 8192, 28672, 128, 8, 128_256], parallel: [8, 1, 3], folder: "checkpoints/llama_70b", trains: false },
    Llama { name: "llama_405b", shape: [126, 16384, 53248, 128, 8, 128_256], parallel: [8, 32, 1], folder: "checkpoints/llama_405b", trains: false },
    Llama { name: "llama_1t", shape: [128, 25872, 98304, 192, 32, 128_256], parallel: [8, 64, 1], folder: "checkpoints/llama_1t", trains: true },
];

#[test]
fn every_checkpoint_preset_has_the_values_of_the_table() {
    for row in LLAMAS {
        let (w, name) = (load(row.name), row.name);
        let t = &w.model.transformer;
        let shape = [
            w.model.num_layers.expect("a transformer has layers"),
            t.hidden_size,
            t.ffn_hidden_size,
            t.num_attention_heads,
            t.num_kv_heads,
            t.vocab_size,
        ];
        assert_eq!(shape, row.shape, "{name}");
        let p = &w.model.parallelism;
        assert_eq!([p.tensor, p.pipeline, u32::from(p.zero_stage)], row.parallel, "{name}");
        assert!(w.model.is_transformer(), "{name}");
        assert_eq!(w.model.model_datatype, Datatype::Fp16, "{name}");
        assert_eq!(w.model.optimizer_datatype, Datatype::Fp32, "{name}");
        let c = &w.checkpoint;
        assert_eq!(c.checkpoint_folder, row.folder, "{name}");
        assert_eq!(c.time_between_checkpoints, Some(5.0), "{name}");
        assert_eq!(
            (c.num_checkpoints_write, c.num_checkpoints_read),
            (Some(10), Some(10)),
            "{name}"
        );
        assert!(c.fsync, "{name}");
        assert_eq!(c.mode, CheckpointMode::Default, "{name}");
        assert_eq!(w.framework, Framework::Pytorch, "{name}");
        let f = &w.workflow;
        assert_eq!(
            (f.generate_data, f.train, f.checkpoint),
            (row.trains, row.trains, true),
            "{name}"
        );
        assert_eq!(w.checkpoint_only(), !row.trains, "{name}");
    }
    assert_eq!(load("llama_1t").model.name, "llama_405b");
    assert_eq!(load("llama_70b_zero3").model.name, "llama_70b");
}

#[test]
fn every_preset_is_in_one_of_the_tables() {
    let mut expected: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    expected.extend(LLAMAS.iter().map(|row| row.name));
    let mut names: Vec<&str> = presets::presets().iter().map(|preset| preset.name).collect();
    expected.sort_unstable();
    names.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(names.len(), 27);
}

#[test]
fn the_other_settings_are_those_of_dlio() {
    let default = load("default");
    assert_eq!(default.dataset.num_files_eval, 8);
    assert_eq!((default.dataset.num_subfolders_train, default.dataset.num_subfolders_eval), (2, 2));
    assert_eq!(default.reader.batch_size_eval, 1);
    assert_eq!(default.evaluation.eval_time, TimeSpec::Constant { mean: 0.5 });
    assert!(!default.workflow.profiling);

    for name in ["unet3d_a100", "unet3d_h100", "unet3d_v100", "unet3d_b200"] {
        let unet = load(name);
        assert_eq!(unet.dataset.data_folder, "data/unet3d", "{name}");
        assert_eq!(unet.model.model_size_bytes, 499_153_191, "{name}");
        let c = &unet.checkpoint;
        assert_eq!((c.checkpoint_after_epoch, c.epochs_between_checkpoints), (5, 2), "{name}");
        assert_eq!(c.checkpoint_folder, "checkpoints/unet3d", "{name}");
    }

    let s3 = load("unet3d_h100_s3").storage;
    assert_eq!(
        (s3.storage_type, s3.storage_root.as_str()),
        (StorageType::S3, "s3pytorchconnector")
    );
    assert_eq!(s3.option_text("endpoint_url").as_deref(), Some("http://localhost:9020"));
    assert_eq!(s3.option_bool("s3_force_path_style"), Some(false));
    assert_eq!(s3.option_u64("s3_max_attempts"), Some(5));

    let bert = load("bert_v100");
    assert_eq!(bert.model.model_size_bytes, 4_034_713_312);
    assert_eq!(bert.checkpoint.steps_between_checkpoints, Some(250));
    assert_eq!(bert.train.total_training_steps, Some(1000));
    assert!(!bert.train.seed_change_epoch);
    assert_eq!(bert.reader.transfer_size, Some(262_144));
    assert_eq!(bert.dataset.file_prefix, "part");

    assert_eq!(load("cosmoflow_a100").reader.shuffle_size, 2);
    assert_eq!(load("dlrm").dataset.num_files_eval, 1);
    assert!(load("resnet50_a100").reader.dont_use_mmap);
    assert_eq!(load("resnet50_v100").reader.batch_size_eval, 128);

    let megatron = load("megatron_deepspeed_LLNL");
    assert_eq!(megatron.model.optimization_groups, [1_009_254_400, 865_075_200, 793_600]);
    assert_eq!(megatron.model.layer_parameters, [52_583_936, 209_715_200]);
    assert_eq!(megatron.model.num_layers, Some(40));
    let p = &megatron.model.parallelism;
    assert_eq!((p.pipeline, p.tensor, p.zero_stage), (8, 4, 1));
    assert_eq!(megatron.model.model_size_bytes, 30_102);
    assert_eq!(megatron.checkpoint.steps_between_checkpoints, Some(1000));
    assert_eq!(megatron.dataset.data_folder, "dataset/megatron-deepspeed");
}

#[test]
fn a_plain_name_of_the_documents_leads_to_its_variants() {
    #[track_caller]
    fn check(name: &str, expected: &[&str]) {
        assert_eq!(presets::nearest(name), expected, "{name}");
    }
    check("unet3d", &["unet3d_a100", "unet3d_h100", "unet3d_b200"]);
    check("resnet50", &["resnet50_a100", "resnet50_h100", "resnet50_v100"]);
    check("bert", &["bert_v100"]);
    check("cosmoflow", &["cosmoflow_a100", "cosmoflow_h100", "cosmoflow_v100"]);
    check("megatron", &["megatron_deepspeed_LLNL"]);
    check("unet3d_h10", &["unet3d_h100", "unet3d_h100_s3"]);
    check("llama70b", &["llama_70b", "llama_7b", "llama_405b"]);
    check("zzzzzz", &[]);
}

#[test]
fn every_preset_but_one_passes_its_checks_on_enough_ranks() {
    for preset in presets::presets() {
        let w = load(preset.name);
        let p = &w.model.parallelism;
        let result = crate::check(&w, p.tensor * p.pipeline);
        match preset.name {
            // DLIO ships it with training on and without a data set that torch could read.
            "llama_1t" => assert_eq!(result, Err(crate::WorkloadError::TfrecordWithTorch)),
            name => assert_eq!(result, Ok(Vec::new()), "{name}"),
        }
    }
}
