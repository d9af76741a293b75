//! `feedline plan-checkpoint`: what it prints, and what it refuses.

use serde_json::json;

use crate::bed::{Bed, Ran, ran};

fn planned(bed: &Bed, args: &[&str]) -> Ran {
    ran(bed.feedline(&["plan-checkpoint"]).args(args))
}

#[track_caller]
fn prints(args: &[&str], stdout: &str) {
    let bed = Bed::new();
    let ran = planned(&bed, args);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
    assert_eq!(ran.stdout, stdout);
    assert_eq!(bed.tree(), Vec::<String>::new(), "something was written");
}

#[track_caller]
fn refused(args: &[&str], stderr: &str) {
    let bed = Bed::new();
    let ran = planned(&bed, args);
    assert_eq!(ran.stderr, stderr);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
}

#[test]
fn a_model_of_405_billion_parameters_on_one_screen() {
    prints(
        &["llama_405b"],
        "\
A checkpoint of llama_405b is 5292.25 GiB (5.68 TB) in 1,544 files, saved by 512 ranks

model       405,853,388,800 parameters, layers 756.01 GiB (812 GB), optimizer 4536.23 GiB (4.87 TB);
            bytes of tensors, without what a container adds
ranks       512: tensor 8 x pipeline 32 x data 2, ZeRO stage 1
a rank      saves 12.32 GiB (13.2 GB) at most (rank 0 and 7 others), 8.86 GiB (9.51 GB) at least
            (rank 256 and 255 others)
files       layer_0-model_0_model_states, layer_1-model_0_model_states, layer_2-model_0_model_states
            and 3 more of rank 0, as torch files in checkpoints/llama_405b
memory      up to 33.6 MB of buffers a rank, 17.2 GB in all (`checkpoint.save_mode: sync`,
            `checkpoint.state: generated`)
time        88 min 12 s at 1 GiB/s, 8 min 49 s at 10 GiB/s, 52.9 s at 100 GiB/s of all ranks
            together

RANKS         FILES  BLOB   LAYERS  OPTIMIZER   A RANK
8 like 0          6     -  3.71 GB    9.51 GB  13.2 GB
232 like 8        5     -  3.19 GB    9.51 GB  12.7 GB
8 like 240        4     -  2.39 GB    9.51 GB  11.9 GB
8 like 248        6     -  2.92 GB    9.51 GB  12.4 GB
256 like 256      1     -        -    9.51 GB  9.51 GB
",
    );
}

const SUBSET: [&str; 7] = [
    "llama_8b_zero3",
    "-n",
    "2",
    "--set",
    "checkpoint.mode=subset",
    "++workload.model.parallelism.data=1024",
    "++workload.checkpoint.state=resident",
];

#[test]
fn a_subset_is_the_first_ranks_of_a_larger_world() {
    prints(
        &SUBSET,
        "\
A checkpoint of llama_8b_zero3 is 0.20 GiB (220 MB) in 4 files, saved by 2 ranks

model       8,030,261,248 parameters, layers 0.03 GiB (31.4 MB), optimizer 0.18 GiB (189 MB); bytes
            of tensors, without what a container adds
ranks       2, the first of 1,024: tensor 1 x pipeline 1 x data 1,024, ZeRO stage 3
a rank      saves 0.10 GiB (110 MB)
files       zero_pp_rank_0_mp_rank_0_model_states, zero_pp_rank_0_mp_rank_0_optim_states of rank 0,
            as torch files in checkpoints/llama_8b_zero3
memory      up to 33.6 MB of buffers and 110 MB of tensors a rank, 287 MB in all
            (`checkpoint.save_mode: sync`, `checkpoint.state: resident`)
time        205 ms at 1 GiB/s, 20.5 ms at 10 GiB/s, 2.05 ms at 100 GiB/s of all ranks together

RANKS     FILES  BLOB   LAYERS  OPTIMIZER  A RANK
2 like 0      2     -  15.7 MB    94.4 MB  110 MB
",
    );
}

#[test]
fn the_same_as_one_object() {
    let bed = Bed::new();
    let ran = planned(&bed, &[&SUBSET[..], &["--json"]].concat());
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
    let each =
        json!({"blob": 0, "layers": 15_684_104, "optimizer": 94_350_384, "total": 110_034_488});
    let expected = json!({
        "workload": "llama_8b_zero3",
        "ranks": 2,
        "world_ranks": 1024,
        "writers": 2,
        "parallelism": {"tensor": 1, "pipeline": 1, "data": 1024, "zero_stage": 3},
        "parameters": 8_030_261_248u64,
        "files": 4,
        "bytes": {
            "blob": 0,
            "layers": 31_368_208,
            "optimizer": 188_700_768,
            "total": 220_068_976,
        },
        "groups": [{"first_rank": 0, "ranks": 2, "files_per_rank": 2, "bytes_per_rank": each}],
        "rank_0_files": [
            "zero_pp_rank_0_mp_rank_0_model_states",
            "zero_pp_rank_0_mp_rank_0_optim_states",
        ],
        "memory": {
            "buffer_bytes_per_rank": 33_554_432,
            "state_bytes_per_rank": 110_034_488,
            "bytes": 287_177_840,
        },
    });
    let found = ran.json();
    assert_eq!(found["feedline_schema"], feedline_bench::SCHEMA_VERSION);
    assert_eq!(found["checkpoint_plan"], expected);
}

#[test]
fn shipped_workloads_come_with_the_ranks_that_they_are_known_for() {
    let bed = Bed::new();
    let ranks = |args: &[&str]| {
        let found = planned(&bed, &[args, &["--json"]].concat()).json();
        found["checkpoint_plan"]["ranks"].as_u64()
    };
    let rows = [
        ("llama_7b", 8),
        ("llama_7b_zero3", 8),
        ("llama_8b_zero3", 8),
        ("llama_70b", 64),
        ("llama_70b_zero3", 64),
        ("llama_405b", 512),
        ("llama_1t", 1024),
        ("megatron_deepspeed_LLNL", 32),
        ("unet3d_h100", 1),
    ];
    for (name, expected) in rows {
        assert_eq!(ranks(&[name]), Some(expected), "{name}");
    }
    // Ranks that no longer fit give way to one copy of the model.
    assert_eq!(ranks(&["llama_70b", "--set", "model.parallelism.tensor=5"]), Some(20));
    bed.write("llama_7b.yaml", "model: {num_layers: 4, parallelism: {tensor: 2, pipeline: 2}}\n");
    assert_eq!(ranks(&["./llama_7b.yaml"]), Some(4));
}

#[test]
fn what_does_not_fit_is_named() {
    refused(
        &["llama_405b", "-n", "100"],
        "error: the number of ranks must be a multiple of tensor x pipeline = 256, found 100\n\
         hint: run with 256 ranks, or set `checkpoint.mode=subset`\n",
    );
    refused(
        &["llama_8b_zero3", "--set", "model.parallelism.pipeline=2"],
        "error: ZeRO stage 3 cannot be combined with pipeline parallelism, found 2 stages\n",
    );
    refused(
        &["llama_8b_zero3", "--set", "checkpoint.mode=subset"],
        "error: checkpoint mode `subset` requires `model.parallelism.data`\n",
    );
    refused(
        &["llama_7b", "--set", "model.num_layers=-1"],
        "error: the model has nothing to save: a transformer needs `model.num_layers`, any other model \
         also has `model.model_size_bytes` and `model.optimization_groups`\n",
    );
    refused(
        &["llama_7b", "--set", "model.transformer.hidden_size=1e12"],
        "error: `model.transformer.hidden_size` must be from 1 to 16777216, found 1000000000000\n",
    );
    refused(
        &["llama_7b", "--set", "checkpoint.chunk_size=1000"],
        "error: command line: `checkpoint.chunk_size` expects a multiple of 4096 from 4096 to \
         1073741824, found 1000\n",
    );
    refused(
        &["llama_9b"],
        "error: no workload is called `llama_9b`\n\
         hint: did you mean llama_7b, llama_70b, llama_1t? `feedline workloads` lists all\n",
    );
    refused(
        &["llama_7b", "-n", "0"],
        "error: invalid value '0' for '--ranks <N>': 0 is not in 1..=4294967295\n\n\
         For more information, try '--help'.\n",
    );
}

#[test]
fn a_key_without_effect_is_a_warning() {
    let bed = Bed::new();
    let ran = planned(&bed, &["llama_7b", "--set", "checkpoint.type=all_ranks"]);
    assert_eq!(
        ran.stderr,
        "warning: command line: `checkpoint.type` has no effect: `model.parallelism` determines the writers\n"
    );
    assert_eq!(ran.code, Some(0));
}
