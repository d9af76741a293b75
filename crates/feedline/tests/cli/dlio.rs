//! The command under the name `dlio_benchmark`.

use std::path::Path;

use crate::bed::{Bed, Ran, SMALL, blurred, ran};

fn bed() -> Bed {
    let bed = Bed::new();
    bed.write("conf/workload/small.yaml", SMALL);
    let link = bed.path("dlio_benchmark");
    std::os::unix::fs::symlink(Path::new(env!("CARGO_BIN_EXE_feedline")), link).unwrap();
    bed
}

fn dlio(bed: &Bed, env: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = bed.command(bed.path("dlio_benchmark"));
    ran(command.envs(env.iter().copied()).args(["--config-dir=conf", "workload=small"]).args(args))
}

const GENERATE: &str = "++workload.workflow.generate_data=True";
/// Any utilization meets this target, whatever the machine is busy with.
const TARGET: &str = "++workload.metric.au=0";

#[test]
fn a_run_logs_and_leaves_what_dlio_does() {
    let bed = bed();
    let before = bed.tree();
    let args = [GENERATE, TARGET, "++hydra.run.dir=run", "++hydra.output_subdir=dlio_config"];
    let ran = dlio(&bed, &[], &args);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), ""), "{ran:?}");
    let lines = "\
[OUTPUT] [date] Running [Generating data & Training] with 1 process(es)
[OUTPUT] [date] Starting data generation
[OUTPUT] [date] Generation done: 8 files, 36752 bytes
[OUTPUT] [date] Max steps per epoch: 4 = 1 * 8 / 2 / 1 \
(samples per file * num files / batch size / comm size)
[OUTPUT] [date] Starting epoch 1: 4 steps expected
[OUTPUT] [date] Starting block 1
[OUTPUT] [date] Ending block 1 - 4 steps completed in [time]
[OUTPUT] [date] Epoch 1 - Block 1 [Training] Accelerator Utilization [AU] (%): [number]
[OUTPUT] [date] Epoch 1 - Block 1 [Training] Throughput (samples/second): [number]
[OUTPUT] [date] Epoch 1 - Block 1 [Training] Computation time per step (second): \
[number]+/-[number] (set value: 0.01)
[OUTPUT] [date] Ending epoch 1 - 4 steps completed in [time]
";
    let end = "\
[OUTPUT] [date] Saved outputs in run
[OUTPUT] Averaged metric over all steps/epochs
[METRIC] ==========================================================
[METRIC] Number of Simulated Accelerators: 1
[METRIC] Training Accelerator Utilization [AU] (%): [number] ([number])
[METRIC] Training Throughput (samples/second): [number] ([number])
[METRIC] Training I/O Throughput (MB/second): [number] ([number])
[METRIC] train_au_meet_expectation: success
[METRIC] ==========================================================
[OUTPUT] [date] outputs saved in RANKID_output.json
[OUTPUT] [date] Feedline: fed; compute [share], storage [share], decode [share], framework [share], workers [share], \
peers [share] of all step time
";
    // Which warnings there are is the machine's to say; that the run is short is certain.
    let log = blurred(&ran.stderr);
    let (warnings, said): (Vec<_>, Vec<_>) =
        log.lines().partition(|line| line.starts_with("[WARNING] "));
    assert!(warnings.iter().any(|line| line.contains("the run is short")), "{warnings:?}");
    assert_eq!(said.join("\n") + "\n", format!("{lines}{end}"));
    assert_eq!(bed.read("run/dlio.log"), ran.stderr);
    let made: Vec<_> =
        bed.tree().into_iter().filter(|p| !before.contains(p) && !p.starts_with("data")).collect();
    assert_eq!(
        made,
        [
            "run/",
            "run/0_output.json",
            "run/0_per_epoch_stats.json",
            "run/0_steps.csv",
            "run/dlio.log",
            "run/dlio_config/",
            "run/dlio_config/config.yaml",
            "run/dlio_config/hydra.yaml",
            "run/dlio_config/overrides.yaml",
            "run/summary.json",
        ]
    );
    assert_eq!(
        bed.read("run/dlio_config/overrides.yaml"),
        format!("- workload=small\n- {GENERATE}\n- {TARGET}\n")
    );
}

#[test]
fn every_phase_has_its_metric_lines() {
    let bed = bed();
    let ran = dlio(
        &bed,
        &[("FEEDLINE_ACCELERATORS", "2")],
        &[
            GENERATE,
            TARGET,
            "hydra.run.dir=run",
            "++workload.workflow.evaluation=True",
            "++workload.workflow.checkpoint=True",
            "++workload.dataset.num_files_eval=4",
        ],
    );
    let metrics: Vec<_> = ran
        .stderr
        .lines()
        .filter_map(|line| Some(line.strip_prefix("[METRIC] ")?.split_once(':')?.0))
        .collect();
    assert_eq!(
        metrics,
        [
            "Number of Simulated Accelerators",
            "Training Accelerator Utilization [AU] (%)",
            "Training Throughput (samples/second)",
            "Training I/O Throughput (MB/second)",
            "train_au_meet_expectation",
            "Checkpoint save duration (seconds)",
            "Checkpoint save I/O Throughput (GB/second)",
            "Eval Accelerator Utilization [AU] (%)",
            "Eval Throughput (samples/second)",
            "Eval Throughput (MB/second)",
            "eval_au_meet_expectation",
        ]
    );
    assert!(bed.path("run/1_output.json").exists());
}

#[test]
fn a_run_replaces_an_earlier_one() {
    let bed = bed();
    let args = [GENERATE, "hydra.run.dir=run"];
    assert_eq!(dlio(&bed, &[], &args).code, Some(0));
    let before = bed.tree();
    assert_eq!(dlio(&bed, &[], &args).code, Some(0));
    assert_eq!(bed.tree(), before);
}

#[test]
fn generation_alone_leaves_the_log() {
    let bed = bed();
    let args = [GENERATE, "++workload.workflow.train=False", "hydra.run.dir=run"];
    assert_eq!(dlio(&bed, &[], &args).code, Some(0));
    let run: Vec<_> = bed.tree().into_iter().filter(|path| path.starts_with("run/")).collect();
    let hydra = ["config", "hydra", "overrides"].map(|name| format!("run/.hydra/{name}.yaml"));
    let expected = [&["run/".to_owned(), "run/.hydra/".to_owned()], &hydra[..]].concat();
    assert_eq!(run, [expected, vec!["run/dlio.log".to_owned()]].concat());
}

#[test]
fn without_a_run_folder_the_model_and_the_time_name_it() {
    let bed = bed();
    assert_eq!(dlio(&bed, &[], &[GENERATE]).code, Some(0));
    let run = bed.tree().into_iter().find(|path| path.ends_with("summary.json")).unwrap();
    let date = run.strip_prefix("hydra_log/small/").and_then(|r| r.strip_suffix("/summary.json"));
    let shape: String = date.unwrap_or(&run).replace(|c: char| c.is_ascii_digit(), "0");
    assert_eq!(shape, "0000-00-00-00-00-00");
}

#[test]
fn errors_have_exit_code_1() {
    let bed = bed();
    let ran = dlio(&bed, &[], &["++workload.dataset.data_folder=none"]);
    assert!(ran.stderr.starts_with("error: ./none/train: no such data folder\n"), "{ran:?}");
    assert_eq!(ran.code, Some(1));
    assert_eq!(dlio(&bed, &[], &["workload=nope"]).code, Some(1));
}

/// `--generate` and `--data` are flags of `feedline run`; here they would be refused.
#[test]
fn hints_speak_the_language_of_the_command_line() {
    let ran = dlio(&bed(), &[], &[]);
    assert!(!ran.stderr.contains("--generate"), "{}", ran.stderr);
}

#[test]
fn more_steps_than_the_data_has_are_exit_code_255() {
    let ran = dlio(&bed(), &[], &["++workload.train.total_training_steps=99"]);
    assert_eq!(
        ran.stderr,
        "error: `train.total_training_steps` is 99, but an epoch has 4 steps\n\
         hint: use at most `train.total_training_steps=4`\n"
    );
    assert_eq!(ran.code, Some(255));
}

/// 8 files on 3 ranks, batches of 1: two whole steps of all, where PyTorch's sampler would make three.
#[test]
fn ranks_read_the_blocks_of_dlio_unless_the_workload_says() {
    let sharding = |sets: &[&str]| {
        let bed = bed();
        let args =
            [&[GENERATE, TARGET, "++hydra.run.dir=run", "++workload.reader.batch_size=1"], sets];
        let ran = dlio(&bed, &[("FEEDLINE_ACCELERATORS", "3")], &args.concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let found = &bed.json("run/summary.json")["feedline"];
        let (sharding, steps) = (&found["sharding"], found["steps"].as_u64().unwrap());
        let counts = ["samples_read", "samples_read_twice", "samples_left_out"];
        let counts = counts.map(|key| sharding[key].as_u64().unwrap());
        (sharding["name"].to_string(), found["dlio_version"].to_string(), steps, counts)
    };
    let dlio = ("\"dlio\"".to_owned(), "\"main (e1919d7)\"".to_owned(), 2, [6, 0, 2]);
    assert_eq!(sharding(&[]), dlio);
    let torch = ("\"strided\"".to_owned(), "null".to_owned(), 3, [9, 1, 0]);
    assert_eq!(sharding(&["++workload.reader.sharding=strided"]), torch);
}

#[test]
fn an_unknown_log_level_is_refused() {
    let bed = bed();
    let before = bed.tree();
    let ran = dlio(&bed, &[("DLIO_LOG_LEVEL", "loud")], &[GENERATE]);
    assert_eq!(
        ran.stderr,
        "error: DLIO_LOG_LEVEL=loud: no such level\n\
         hint: use debug, info, warning, error or critical\n"
    );
    assert_eq!((ran.code, bed.tree()), (Some(1), before));
}

#[test]
fn at_level_error_a_run_is_silent() {
    let bed = bed();
    let ran = dlio(&bed, &[("DLIO_LOG_LEVEL", "ERROR")], &[GENERATE, "hydra.run.dir=run"]);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(0), "", ""));
    assert_eq!(bed.read("run/dlio.log"), "");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_launcher_is_refused() {
    let bed = bed();
    let before = bed.tree();
    let ran = dlio(&bed, &[("OMPI_COMM_WORLD_SIZE", "8")], &[GENERATE]);
    assert_eq!(
        ran.stderr,
        "error: started 8 times by mpirun (Open MPI), but this build has no MPI\n\
         hint: start it once, with --accelerators 8 (or FEEDLINE_ACCELERATORS=8), or build it with \
         --features mpi\n"
    );
    assert_eq!((ran.code, bed.tree()), (Some(1), before));
}
