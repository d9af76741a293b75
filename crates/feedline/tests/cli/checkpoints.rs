//! Checkpoints as their user meets them: what is saved under which name, what is loaded by whom, what
//! is refused and with which words.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::bed::{Bed, SMALL};
use crate::tiny::{
    self, DESCRIPTION, FIRST, LOAD_ONLY, SECOND, bed, counts, description, entries, files, flip,
    refuses, results, runs, verifies_all,
};

const CONTAINERS: [(&str, &str); 4] =
    [("torch", "pt"), ("safetensors", "safetensors"), ("dcp", "distcp"), ("raw", "bin")];

/// A way to lay the model out.
struct Case {
    ranks: &'static str,
    sets: &'static [&'static str],
    /// Files without their ending, and the bytes of the tensors in them.
    files: Vec<(String, u64)>,
    /// Ranks that save anything.
    writers: u64,
}

/// A part of 1/n of the parameters three times, and three times 320 elements, all of four bytes.
fn optimizer_bytes(parts: u64) -> u64 {
    4 * (3 * 276_032 / parts + 960)
}

fn cases() -> Vec<Case> {
    let optimizer = |copies: u64, models: u64, parts: u64| {
        (0..copies).flat_map(move |copy| {
            (0..models).map(move |model| {
                let name = format!("zero_pp_rank_{copy}_mp_rank_{model}_optim_states");
                (name, optimizer_bytes(parts))
            })
        })
    };
    let whole = |name: &str, bytes: u64| (name.to_owned(), bytes);
    // Two bytes a parameter; half an embedding has 32,000 elements, half a layer 18,432 and two norms
    // of 64 that are not cut.
    let layer = |layer: u64, model: u64| {
        let bytes = match layer {
            0 | 5 => 64_000,
            6 => 128,
            _ => 37_120,
        };
        (format!("layer_{layer}-model_{model}_model_states"), bytes)
    };
    let first = (0..2).flat_map(|model| [0, 1, 2].map(|number| layer(number, model)));
    let last = (2..4).flat_map(|model| [3, 4, 5, 6].map(|number| layer(number, model)));
    vec![
        Case {
            ranks: "2",
            sets: &["model.parallelism.zero_stage=0"],
            files: [whole("zero_pp_rank_0_mp_rank_0_model_states", 552_064)]
                .into_iter()
                .chain(optimizer(1, 1, 1))
                .collect(),
            writers: 1,
        },
        Case {
            ranks: "2",
            sets: &[],
            files: [whole("model_0_model_states", 552_064)]
                .into_iter()
                .chain(optimizer(2, 1, 2))
                .collect(),
            writers: 2,
        },
        Case {
            ranks: "4",
            sets: &["model.parallelism.tensor=2", "model.parallelism.pipeline=2"],
            files: first.chain(last).chain(optimizer(1, 4, 4)).collect(),
            writers: 4,
        },
        Case {
            ranks: "4",
            sets: &["model.parallelism.tensor=2", "model.parallelism.zero_stage=2"],
            files: ["model_0_model_states", "model_1_model_states"]
                .map(|name| whole(name, 276_608))
                .into_iter()
                .chain(optimizer(2, 2, 4))
                .collect(),
            writers: 4,
        },
        Case {
            ranks: "4",
            sets: &["model.parallelism.zero_stage=3"],
            files: (0..4)
                .map(|copy| (format!("zero_pp_rank_{copy}_mp_rank_0_model_states"), 138_016))
                .chain(optimizer(4, 1, 4))
                .collect(),
            writers: 4,
        },
    ]
}

/// Looks at everything that a run of two saves and two loads has left.
fn check(bed: &Bed, case: &Case, (container, extension): (&str, &str)) {
    let bytes: u64 = case.files.iter().map(|(_, bytes)| bytes).sum();
    let mut names: Vec<_> = match container {
        "dcp" => (0..case.writers).map(|rank| format!("__{rank}_0.distcp")).collect(),
        _ => case.files.iter().map(|(stem, _)| format!("{stem}.{extension}")).collect(),
    };
    names.sort();
    assert_eq!(entries(bed), [FIRST, SECOND]);
    let (mut sizes, mut described) = (0, 0);
    for (step, name) in [(1, FIRST), (2, SECOND)] {
        let found = files(bed, name);
        assert_eq!(found.iter().map(|(name, _)| name).collect::<Vec<_>>(), Vec::from_iter(&names));
        let said = description(bed, name);
        let mut listed: Vec<(String, u64)> = serde_json::from_value(said["files"].clone()).unwrap();
        listed.sort();
        assert_eq!(listed, found);
        assert_eq!((&said["container"], &said["step"]), (&json!(container), &json!(step)));
        assert_eq!(said["tensor_bytes"], bytes);
        assert_eq!(bed.path(format!("saved/{name}/.metadata")).exists(), container == "dcp");
        sizes += found.iter().map(|(_, size)| size).sum::<u64>();
        described += described_bytes(bed, name);
    }
    if container == "raw" {
        // A table of contents stands behind the tensors.
        let more = sizes - 2 * bytes;
        assert!(more > 0 && more < 4096 * names.len() as u64, "{more} bytes beside the tensors");
    }
    let own = results(bed);
    assert_eq!(
        (&own["saves"], &own["loads"], &own["bytes"]),
        (&2.into(), &2.into(), &(4 * bytes).into())
    );
    assert_eq!(
        (&own["save"]["moved_bytes"], &own["save"]["files"]),
        (&(sizes + described).into(), &(2 * names.len()).into())
    );
    assert_eq!(own["load"]["files"], 2 * names.len());
    assert!(own["load"]["moved_bytes"].as_u64() >= Some(2 * bytes), "{own}");
    let metric = &bed.json("out/summary.json")["metric"];
    let keys: BTreeSet<_> = metric.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(METRICS));
    assert_eq!(metric["checkpoint_size_GB"], bytes as f64 / f64::from(1 << 30));
    for rank in 0..case.ranks.parse::<u32>().unwrap() {
        let stats = bed.json(&format!("out/{rank}_per_epoch_stats.json"));
        let keys: BTreeSet<_> =
            stats["1"].as_object().unwrap().keys().map(String::as_str).collect();
        let expected =
            ["start", "save_ckpt1", "save_ckpt2", "load_ckpt1", "load_ckpt2", "end", "duration"];
        assert_eq!(keys, BTreeSet::from(expected), "rank {rank}");
    }
}

/// Bytes of the files that describe a checkpoint.
fn described_bytes(bed: &Bed, name: &str) -> u64 {
    let size = |file: &str| fs::metadata(bed.path(format!("saved/{name}/{file}")));
    [DESCRIPTION, ".metadata"].iter().filter_map(|file| Some(size(file).ok()?.len())).sum()
}

const METRICS: [&str; 9] = [
    "checkpoint_size_GB",
    "load_checkpoint_duration_mean_seconds",
    "load_checkpoint_duration_stdev_seconds",
    "load_checkpoint_io_mean_GB_per_second",
    "load_checkpoint_io_stdev_GB_per_second",
    "save_checkpoint_duration_mean_seconds",
    "save_checkpoint_duration_stdev_seconds",
    "save_checkpoint_io_mean_GB_per_second",
    "save_checkpoint_io_stdev_GB_per_second",
];

#[test]
fn every_layout_is_saved_and_loaded_in_every_container() {
    for case in cases() {
        for (container, extension) in CONTAINERS {
            let bed = bed();
            let container_is = format!("checkpoint.container={container}");
            runs(&bed, case.ranks, &[case.sets, &[&container_is]].concat());
            check(&bed, &case, (container, extension));
        }
    }
}

#[test]
fn every_container_is_saved_in_every_way() {
    let case = cases().swap_remove(2);
    for (container, extension) in CONTAINERS {
        for way in [
            &["checkpoint.save_mode=async"][..],
            &["checkpoint.save_mode=async", "checkpoint.saves_in_flight=2"],
            &["checkpoint.state=resident"],
            &["checkpoint.state=resident", "checkpoint.save_mode=async"],
            // A pool of four chunks, of which there are fourteen.
            &["checkpoint.save_mode=async", "checkpoint.pool_size=262144"],
            &["checkpoint.streams=1", "checkpoint.odirect=false", "checkpoint.chunk_size=4096"],
            &["checkpoint.fsync=true", "checkpoint.rank_sync=true"],
            &["checkpoint.randomize_tensor=false"],
        ] {
            let bed = bed();
            let container_is = format!("checkpoint.container={container}");
            runs(&bed, case.ranks, &[case.sets, way, &[&container_is]].concat());
            check(&bed, &case, (container, extension));
            let states: Vec<_> = [FIRST, SECOND]
                .iter()
                .map(|name| description(&bed, name)["version"].clone())
                .collect();
            // What is held in memory is the same state twice.
            assert_eq!(
                states[0] == states[1],
                way.contains(&"checkpoint.state=resident"),
                "{way:?}"
            );
        }
    }
}

/// Sizes of torch's files are those that torch itself finds whole.
#[test]
fn a_file_of_torch_is_as_large_as_its_archive() {
    let bed = bed();
    runs(&bed, "4", &["model.parallelism.tensor=2", "model.parallelism.pipeline=2"]);
    let sizes: BTreeSet<u64> = files(&bed, FIRST).into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes, BTreeSet::from([1_705, 39_637, 65_577, 834_453]));
}

#[test]
fn dcp_is_loaded_by_any_number_of_ranks() {
    for zero in ["1", "2", "3"] {
        let bed = bed();
        let stage = format!("model.parallelism.zero_stage={zero}");
        for saved in ["4", "3"] {
            runs(&bed, saved, &["checkpoint.container=dcp", &stage]);
            for ranks in ["4", "2", "1", "8", "3"] {
                runs(&bed, ranks, &[LOAD_ONLY, &stage]);
                assert_eq!(
                    counts(&bed),
                    (0, 2),
                    "ZeRO {zero}, saved by {saved}, loaded by {ranks}"
                );
            }
        }
    }
    // Cut along the layers and across them, and the other way round.
    let bed = bed();
    let split = ["model.parallelism.tensor=2", "model.parallelism.pipeline=2"];
    runs(&bed, "4", &[&split[..], &["checkpoint.container=dcp"]].concat());
    runs(&bed, "8", &[&split[..], &[LOAD_ONLY]].concat());
}

#[test]
fn a_blob_is_loaded_by_any_number_of_ranks() {
    let bed = bed();
    let blob = ["model.type=null", "model.num_layers=-1", "model.model_size_bytes=300000"];
    runs(&bed, "4", &[&blob[..], &["checkpoint.container=dcp"]].concat());
    for ranks in ["1", "2", "8"] {
        runs(&bed, ranks, &[&blob[..], &[LOAD_ONLY]].concat());
        let bytes = 600_000 * ranks.parse::<u64>().unwrap();
        assert_eq!(results(&bed)["bytes"], bytes, "{ranks} ranks");
    }
}

#[test]
fn other_containers_are_loaded_by_those_who_saved_them() {
    for container in ["torch", "safetensors", "raw"] {
        let bed = bed();
        let container_is = format!("checkpoint.container={container}");
        runs(&bed, "4", &[&container_is]);
        refuses(
            &bed,
            "2",
            &[LOAD_ONLY],
            &format!(
                "error: saved/{FIRST} was saved by 4 ranks as {container} and cannot be loaded by 2 ranks\n\
                 hint: load it with 4 ranks, or save with --set checkpoint.container=dcp, which any \
                 number of ranks can load\n"
            ),
        );
    }
}

#[test]
fn a_checkpoint_is_loaded_as_what_it_says_it_is() {
    for (saved, _) in CONTAINERS {
        let bed = bed();
        let container_is = format!("checkpoint.container={saved}");
        runs(&bed, "2", &[&container_is, "train.seed=7"]);
        for (now, _) in CONTAINERS {
            // Neither is the seed that of the workload, nor the container.
            let container_is = format!("checkpoint.container={now}");
            runs(&bed, "2", &[LOAD_ONLY, &container_is]);
            assert_eq!(counts(&bed), (0, 2), "{saved} as {now}");
        }
    }
}

/// A rank that takes another's place needs memory for what that one had: the first has the model, the
/// others have not.
#[test]
fn what_is_loaded_into_memory_has_room_there() {
    let way = ["checkpoint.state=resident", "checkpoint.verify=false"];
    for (saved, _) in CONTAINERS {
        let bed = bed();
        let container_is = format!("checkpoint.container={saved}");
        for shift in ["true", "false"] {
            let shift = format!("checkpoint.recovery_rank_shift={shift}");
            runs(&bed, "3", &[&way[..], &[&container_is, &shift]].concat());
            assert_eq!(counts(&bed), (2, 2), "{saved}, {shift}");
            for (now, _) in CONTAINERS {
                let container_is = format!("checkpoint.container={now}");
                runs(&bed, "3", &[&way[..], &[LOAD_ONLY, &container_is, &shift]].concat());
                assert_eq!(counts(&bed), (0, 2), "{saved} as {now}, {shift}");
            }
            runs(&bed, "3", &[LOAD_ONLY, &shift]);
        }
        if saved == "dcp" {
            runs(&bed, "2", &[&way[..], &[LOAD_ONLY]].concat());
        }
    }
}

#[test]
fn only_the_last_ones_are_kept() {
    let bed = bed();
    let keep = |keep: u32, write: u32| {
        let keep = format!("checkpoint.keep_last={keep}");
        let write = format!("checkpoint.num_checkpoints_write={write}");
        runs(&bed, "2", &[&keep, &write, "checkpoint.num_checkpoints_read=1"]);
        let loads = bed.read("out/dlio.log").matches("Finished loading").count();
        (entries(&bed), loads)
    };
    let names = |steps: &[u32]| -> Vec<String> {
        steps.iter().map(|step| format!("global_epoch1_step{step}")).collect()
    };
    assert_eq!(keep(2, 5), (names(&[4, 5]), 1));
    // What was there before counts too, and is the oldest.
    assert_eq!(keep(3, 1), (names(&[1, 4, 5]), 1));
    assert_eq!(keep(2, 1), (names(&[1, 5]), 1));
    assert_eq!(keep(1, 2), (names(&[2]), 1));
    assert_eq!(verifies_all(&bed, "2"), 1);
}

/// What a run saves is what it loads, though some of the names were there before.
#[test]
fn names_that_were_there_before_are_loaded_too() {
    let bed = bed();
    runs(&bed, "2", &["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=1"]);
    runs(&bed, "2", &["train.seed=5"]);
    assert_eq!(counts(&bed), (2, 2));
    // Three are there, and the two that are saved anew are the ones that are loaded.
    runs(&bed, "2", &["checkpoint.num_checkpoints_write=3", "train.seed=6"]);
    flip(&bed, "saved/global_epoch1_step3/model_0_model_states.pt");
    runs(&bed, "2", &["train.seed=7"]);
    assert_eq!(counts(&bed), (2, 2));
    let seeds =
        [FIRST, SECOND, "global_epoch1_step3"].map(|name| description(&bed, name)["seed"].clone());
    assert_eq!(seeds, [7, 7, 6]);
}

#[test]
fn a_smaller_checkpoint_leaves_nothing_of_the_larger_one_in_its_place() {
    let bed = bed();
    runs(&bed, "4", &["model.parallelism.tensor=2", "model.parallelism.pipeline=2"]);
    runs(&bed, "2", &["checkpoint.container=dcp"]);
    let names: Vec<_> = files(&bed, FIRST).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["__0_0.distcp", "__1_0.distcp"]);
}

#[test]
fn too_few_checkpoints_are_too_few() {
    let bed = bed();
    let error = "error: saved: expected 2 complete checkpoints, found 0\n\
                 hint: write them first: --set checkpoint.num_checkpoints_write=N\n";
    refuses(&bed, "2", &[LOAD_ONLY], error);
    assert!(!bed.path("saved").exists() && !bed.path("out").exists());
}

#[test]
fn direct_io_is_used_where_it_can_be() {
    for (kind, odirect, expected) in [
        ("tmpfs", "auto", Ok(())),
        ("tmpfs", "false", Ok(())),
        ("ramfs", "auto", Ok(())),
        ("ramfs", "true", Err(())),
    ] {
        let bed = bed();
        let args = tiny::args("2", &[]).join(" ");
        let ran = bed.unshared(&format!(
            "mkdir saved && mount -t {kind} none saved && \
             \"$FEEDLINE\" run {args} --set checkpoint.odirect={odirect}"
        ));
        if expected.is_ok() {
            assert_eq!(ran.code, Some(0), "{kind}, {odirect}: {ran:?}");
            assert_eq!(counts(&bed), (2, 2));
            continue;
        }
        assert_eq!(ran.code, Some(2), "{kind}, {odirect}: {ran:?}");
        let lines: Vec<_> = ran.stderr.lines().collect();
        let file = format!("error: the file system of saved/{FIRST}/");
        assert!(lines[0].starts_with(&file), "{ran:?}");
        assert_eq!(
            lines[1..],
            ["hint: write through the page cache: --set checkpoint.odirect=auto"]
        );
    }
}

#[test]
fn a_place_that_takes_no_checkpoints_is_named() {
    let bed = bed();
    bed.write("saved", "");
    let ran = bed.run(&tiny::args("2", &[]));
    assert_eq!(
        ran.stderr,
        "error: saved: is a file, expected a folder\n\
         hint: choose another place with --set checkpoint.checkpoint_folder=DIR\n"
    );
    assert_eq!(ran.code, Some(2));
    assert!(!bed.path("out").exists());
    fs::remove_file(bed.path("saved")).unwrap();

    let args = tiny::args("2", &[]).join(" ");
    let mounted = |options: &str| {
        bed.unshared(&format!(
            "mkdir -p saved && mount -t tmpfs -o {options} none saved && \
             \"$FEEDLINE\" run {args} && exit 1; code=$?; ls -A saved; exit $code"
        ))
    };
    let ran = mounted("size=1m");
    assert_eq!(
        ran.stderr,
        "error: saved: checkpoints need 7744256 bytes, 1048576 are free\n\
         hint: choose another place with --set checkpoint.checkpoint_folder=DIR, or keep fewer with \
         --set checkpoint.keep_last=1\n"
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    let ran = mounted("ro");
    let error = ran.stderr.lines().next().unwrap_or_default();
    assert!(error.starts_with("error: cannot make folder saved/global_epoch1_step1: "), "{ran:?}");
    assert!(error.ends_with(": Read-only file system (os error 30)"), "{ran:?}");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    let ran = bed.shell(&format!(
        "mkdir -p saved && chmod 555 saved; unshare -r setpriv \
         --bounding-set=-dac_override,-dac_read_search \"$FEEDLINE\" run {args}; \
         code=$?; chmod 755 saved; exit $code"
    ));
    assert!(ran.stderr.contains(": Permission denied (os error 13)\n"), "{ran:?}");
    assert_eq!((ran.code, ran.stdout.as_str(), entries(&bed)), (Some(2), "", Vec::new()));
}

/// Training that saves: four steps an epoch, on samples that are never read.
fn training(bed: &Bed, more: &[&str]) -> Value {
    bed.write("small.yaml", SMALL.replace("format: npz", "format: synthetic"));
    let sets = ["workflow.checkpoint=true", "checkpoint.checkpoint_folder=saved", "train.epochs=2"];
    let sets = sets.iter().flat_map(|set| ["--set", *set]).collect::<Vec<_>>();
    let args = ["small.yaml", "--generate", "--out", "out", "--overwrite"];
    let ran = bed.run(&[&args[..], &sets, more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    results(bed)
}

/// Half a megabyte at half a megabyte a second: the four steps of the second epoch, of 10 ms each, go
/// by while the first checkpoint is written.
#[test]
fn training_goes_on_while_a_checkpoint_is_saved() {
    let bed = Bed::new();
    let own = training(
        &bed,
        &[
            "--set",
            "model.model_size_bytes=500000",
            "--set",
            "checkpoint.save_mode=async",
            "--set",
            "checkpoint.steps_between_checkpoints=4",
            "--set",
            "checkpoint.chunk_size=4096",
            "--set",
            "checkpoint.streams=1",
            "--store-limit",
            "500kB/s",
        ],
    );
    assert_eq!((&own["saves"], &own["loads"]), (&2.into(), &0.into()));
    assert_eq!(entries(&bed), ["global_epoch1_step4", "global_epoch2_step4"]);
    // Nothing was safe before the eighth step; the first one of the epoch is not compared.
    assert_eq!((&own["unsaved_steps_max"], &own["steps_while_saving"]), (&8.into(), &3.into()));
    let number = |pointer: &str| own.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert!(number("/save/duration_seconds/min") >= 0.99, "{own}");
    // The second waits for the first.
    assert!(number("/save/pause_seconds/min") < number("/save/background_seconds/min"), "{own}");
    assert!(number("/drain_seconds") >= 0.99, "{own}");
    assert_eq!(own["pool_bytes_per_rank"].as_u64(), Some(512_000));
    runs_training_checkpoints(&bed);
}

/// What training has saved can be loaded by a run that does nothing else.
fn runs_training_checkpoints(bed: &Bed) {
    let sets = [
        "workflow.generate_data=false",
        "workflow.train=false",
        "workflow.checkpoint=true",
        "checkpoint.checkpoint_folder=saved",
        "checkpoint.num_checkpoints_write=0",
        "checkpoint.num_checkpoints_read=2",
        "checkpoint.verify=true",
        "model.model_size_bytes=500000",
    ];
    let sets = sets.iter().flat_map(|set| ["--set", *set]).collect::<Vec<_>>();
    bed.runs(&[&["small.yaml", "--out", "loaded"], &sets[..]].concat());
    let own = &bed.json("loaded/summary.json")["feedline"]["checkpoints"];
    assert_eq!((&own["loads"], &own["bytes"]), (&2.into(), &1_000_000.into()));
}

#[test]
fn a_budget_decides_how_often_is_saved() {
    let bed = Bed::new();
    let model = ["--set", "model.model_size_bytes=100000", "--set"];
    // Nearly everything may go into saving, so that every step of 10 ms is followed by one: it would
    // take a pause of ten seconds to skip a step.
    let often = training(&bed, &[&model[..], &["checkpoint.overhead_budget=0.999"]].concat());
    assert_eq!(often["saves"], 8);
    // A tenth of a second of saving, at least, is worth 1000 s of training.
    let limit = ["checkpoint.overhead_budget=0.0001", "--store-limit", "1MB/s"];
    let seldom = training(&bed, &[&model[..], &limit].concat());
    assert_eq!(seldom["saves"], 1);
}

#[test]
fn shipped_workloads_save_and_load_a_part_of_their_models() {
    type Row = (&'static str, &'static [&'static str], u64, [&'static str; 2]);
    let rows: [Row; 7] = [
        (
            "llama_7b",
            &["model.parallelism.tensor=4096"],
            8_753_624,
            ["model_0_model_states.pt", "zero_pp_rank_0_mp_rank_1_optim_states.pt"],
        ),
        ("llama_7b_zero3", &[], 3_370_464, ZERO3),
        ("llama_8b_zero3", &[], 3_922_400, ZERO3),
        (
            "llama_70b",
            &["model.parallelism.tensor=1024", "model.parallelism.pipeline=80"],
            8_782_232,
            LAYERS,
        ),
        (
            "llama_70b_zero3",
            &[],
            4_715_152,
            [
                "zero_pp_rank_0_mp_rank_0_model_states.pt",
                "zero_pp_rank_0_mp_rank_1_optim_states.pt",
            ],
        ),
        (
            "llama_405b",
            &["model.parallelism.tensor=4096", "model.parallelism.pipeline=126"],
            7_557_096,
            LAYERS,
        ),
        (
            "llama_1t",
            &["model.parallelism.tensor=4096", "model.parallelism.pipeline=128"],
            // DLIO's file says that it generates and trains, but has no data set.
            16_373_408,
            LAYERS,
        ),
    ];
    for (name, cut, bytes, some) in rows {
        let bed = Bed::new();
        let data = if cut.is_empty() { "65536" } else { "64" };
        let data = format!("model.parallelism.data={data}");
        let sets = [
            "checkpoint.mode=subset",
            "checkpoint.time_between_checkpoints=0",
            "checkpoint.num_checkpoints_write=1",
            "checkpoint.num_checkpoints_read=1",
            "checkpoint.verify=true",
            "checkpoint.checkpoint_folder=saved",
            &data,
        ];
        let sets = sets.iter().chain(cut).flat_map(|set| ["--set", *set]);
        bed.runs(&[&[name, "-n", "2", "--out", "out"], &sets.collect::<Vec<_>>()[..]].concat());
        let own = results(&bed);
        assert_eq!((&own["saves"], &own["loads"]), (&1.into(), &1.into()), "{name}");
        assert_eq!(own["bytes"], 2 * bytes, "{name}");
        let names: Vec<_> = files(&bed, FIRST).into_iter().map(|(name, _)| name).collect();
        assert!(
            some.iter().all(|name| names.iter().any(|found| found == name)),
            "{name}: {names:?}"
        );
    }
}

const ZERO3: [&str; 2] =
    ["zero_pp_rank_0_mp_rank_0_model_states.pt", "zero_pp_rank_1_mp_rank_0_optim_states.pt"];
const LAYERS: [&str; 2] = ["layer_0-model_0_model_states.pt", "layer_1-model_1_model_states.pt"];
