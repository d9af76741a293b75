//! Input that cannot work: one line that names it, exit code 2, nothing left behind.

use crate::bed::{Bed, ran};

/// Runs the small workload with `args` in a bed without data.
#[track_caller]
fn refused(args: &[&str], stderr: &str) {
    let args: Vec<_> = ["small.yaml"].iter().chain(args).copied().collect();
    Bed::new().refuses(&args, stderr);
}

#[test]
fn an_unknown_workload_gets_the_nearest_names() {
    Bed::new().refuses(
        &["unet3d_h10"],
        "error: no workload is called `unet3d_h10`\n\
         hint: did you mean unet3d_h100, unet3d_h100_s3? `feedline workloads` lists all\n",
    );
}

#[test]
fn a_workload_unlike_any_other_gets_the_list() {
    Bed::new().refuses(
        &["xyzzy"],
        "error: no workload is called `xyzzy`\nhint: `feedline workloads` lists all\n",
    );
}

#[test]
fn a_missing_workload_file_is_named() {
    Bed::new().refuses(
        &["nothere.yaml"],
        "error: nothere.yaml: no such workload file\n\
         hint: `feedline workloads` lists the built-in workloads\n",
    );
}

#[test]
fn an_unknown_key_is_a_warning() {
    let ran = Bed::with_data().runs(&["small.yaml", "--set", "reader.read_thread=3"]);
    let warning = "warning: command line: unknown key `reader.read_thread`, did you mean `reader.read_threads`?";
    assert_eq!(ran.stderr.lines().next(), Some(warning));
}

#[test]
fn an_unknown_key_in_the_file_has_its_line() {
    let bed = Bed::new();
    bed.write("typo.yaml", "dataset:\n  num_file_train: 8\n");
    bed.refuses(
        &["typo.yaml", "--strict", "--generate"],
        "warning: typo.yaml:2: unknown key `dataset.num_file_train`, did you mean \
         `dataset.num_files_train`?\n\
         error: 1 warning about the workload, which --strict treats as errors\n\
         hint: fix the keys named above, or omit --strict\n",
    );
}

#[test]
fn an_unknown_key_is_an_error_with_strict() {
    refused(
        &["--set", "reader.read_thread=3", "--strict", "--generate"],
        "warning: command line: unknown key `reader.read_thread`, did you mean `reader.read_threads`?\n\
         error: 1 warning about the workload, which --strict treats as errors\n\
         hint: fix the keys named above, or omit --strict\n",
    );
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    refused(
        &["--generate", "--set", "reader.batch_size=two"],
        "error: command line: `reader.batch_size` expects a whole number > 0, found \"two\"\n",
    );
}

#[test]
fn a_wrong_value_in_the_file_has_its_line() {
    let bed = Bed::new();
    bed.write("wrong.yaml", "train:\n  epochs: 1\n  computation_time: -1\n");
    bed.refuses(
        &["wrong.yaml", "--generate"],
        "error: wrong.yaml:3: `train.computation_time` expects a number >= 0, found -1\n",
    );
}

#[test]
fn zero_and_negative_counts_are_refused() {
    for key in [
        "reader.batch_size",
        "dataset.num_files_train",
        "dataset.num_samples_per_file",
        "train.epochs",
    ] {
        for value in ["0", "-1"] {
            let message =
                format!("error: command line: `{key}` expects a whole number > 0, found {value}\n");
            refused(&["--generate", "--set", &format!("{key}={value}")], &message);
        }
    }
    refused(
        &["--generate", "--set", "dataset.record_length_bytes=0"],
        "error: command line: `dataset.record_length_bytes` expects a number > 0, found 0\n",
    );
}

#[test]
fn flags_take_no_zero() {
    refused(
        &["--generate", "--accelerators", "0"],
        "error: invalid value '0' for '--accelerators <N>': 0 is not in 1..=4294967295\n\n\
         For more information, try '--help'.\n",
    );
    refused(
        &["--generate", "--epochs", "0"],
        "error: invalid value '0' for '--epochs <N>': 0 is not in 1..=4294967295\n\n\
         For more information, try '--help'.\n",
    );
}

#[test]
fn a_missing_data_folder_can_be_generated() {
    refused(
        &[],
        "error: ./data/train: no such data folder\n\
         hint: add --generate to make the data set, or --data DIR to name its place\n",
    );
}

#[test]
fn fewer_files_than_asked_for_are_counted() {
    Bed::with_data().refuses(
        &["small.yaml", "--set", "dataset.num_files_train=9"],
        "error: ./data/train: 8 npz files found, expected 9\n\
         hint: add --generate to make the data set, or --set dataset.num_files_train=8\n",
    );
}

#[test]
fn a_folder_without_a_file_of_the_format_gets_no_hint_that_would_be_refused() {
    Bed::with_data().refuses(
        &["small.yaml", "--set", "dataset.format=npy"],
        "error: ./data/train: 0 npy files found, expected 8\n\
         hint: add --generate to make the data set, or --data DIR to name its place\n",
    );
}

#[test]
fn subfolders_that_were_not_mentioned_are_counted() {
    let bed = Bed::new();
    let sub = ["small.yaml", "--generate-only", "--set", "dataset.num_subfolders_train=2"];
    bed.runs(&sub);
    bed.refuses(
        &["small.yaml"],
        "error: ./data/train: holds 2 folders and no npz file, but \
         `dataset.num_subfolders_train` is 0\n\
         hint: --set dataset.num_subfolders_train=2\n",
    );
}

/// Replaces the fourth file and trains; the run is ended by it, without results.
#[track_caller]
fn bad_file(content: &[u8], accelerators: &str, reason: &str) {
    let bed = Bed::with_data();
    bed.write("data/train/img_3_of_8.npz", content);
    let ran = bed.run(&["small.yaml", "--out", "out", "--accelerators", accelerators]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stdout, "");
    let error = ran.stderr.lines().skip_while(|line| line.starts_with("epoch 1/1:"));
    assert_eq!(
        error.collect::<Vec<_>>(),
        [
            &*format!("error: ./data/train/img_3_of_8.npz: sample 0 cannot be read: {reason}"),
            "hint: name another set with --data DIR; --generate makes one in an empty folder",
        ]
    );
    let results: Vec<_> = bed.tree().into_iter().filter(|path| path.ends_with(".json")).collect();
    assert_eq!(results, ["data/feedline.manifest.json"]);
}

#[test]
fn a_truncated_npz_is_named_with_the_byte() {
    let whole = std::fs::read(Bed::with_data().path("data/train/img_3_of_8.npz")).unwrap();
    let reason = "truncated: no zip directory from byte 0 to the end at 2000";
    bad_file(&whole[..2000], "1", reason);
    bad_file(&whole[..2000], "2", reason);
}

#[test]
fn a_foreign_file_is_named_with_its_first_bytes() {
    bad_file(b"hello\n", "1", "not an npz: begins with [68, 65, 6c, 6c]");
    bad_file(b"", "1", "not an npz: begins with []");
}

#[test]
fn a_batch_larger_than_the_data_set_is_refused() {
    refused(
        &["--generate", "--set", "reader.batch_size=9", "--set", "reader.drop_last=true"],
        "error: training has 8 samples, but `reader.batch_size` is 9\n\
         hint: raise `dataset.num_files_train` or lower `reader.batch_size` from 9\n",
    );
}

#[test]
fn more_ranks_than_samples_are_refused() {
    refused(
        &[
            "--generate",
            "--set",
            "reader.batch_size=1",
            "--set",
            "reader.sampler_drop_last=true",
            "-n",
            "9",
        ],
        "error: training has 8 samples, but one step of 9 ranks with a `reader.batch_size` of 1 needs 9\n\
         hint: use at most 8 ranks, or raise `dataset.num_files_train`\n",
    );
}

#[test]
fn more_steps_than_the_data_has_are_refused() {
    refused(
        &["--generate", "--set", "train.total_training_steps=5"],
        "error: `train.total_training_steps` is 5, but an epoch has 4 steps\n\
         hint: use at most `train.total_training_steps=4`\n",
    );
}

#[test]
fn what_cannot_be_run_yet_is_refused_before_anything_is_written() {
    refused(
        &["--generate", "--set", "storage.storage_type=aistore"],
        "error: `storage.storage_type: aistore` cannot be run yet; AIStore speaks S3: use \
         `storage.storage_type: s3` and its address with `/s3` as \
         `storage.storage_options.endpoint_url`\n",
    );
    refused(
        &["--generate", "--set", "reader.data_loader=custom"],
        "error: `reader.data_loader: custom` cannot be run yet; the loaders pytorch, tensorflow, \
         dali, native_dali and synthetic are emulated\n",
    );
}

#[test]
fn as_dlio_a_data_set_that_it_trims_to_nothing_is_refused() {
    refused(
        &["--generate", "--as-dlio", "--set", "dataset.num_samples_per_file=5"],
        "error: as DLIO, this run has no step: 8 files are trimmed to a multiple of 10 \
         (samples per file x batch x ranks)\n\
         hint: leave --as-dlio out\n",
    );
}

#[test]
fn an_output_folder_is_not_overwritten_unless_asked() {
    let bed = Bed::with_data();
    bed.runs(&["small.yaml", "--out", "out"]);
    let first = bed.json("out/summary.json")["start"].clone();
    bed.refuses(
        &["small.yaml", "--out", "out"],
        "error: out: holds the results of an earlier run\n\
         hint: choose another folder with --out DIR, or replace them with --overwrite\n",
    );
    let before = bed.tree();
    bed.runs(&["small.yaml", "--out", "out", "--overwrite"]);
    assert_ne!(bed.json("out/summary.json")["start"], first);
    assert_eq!(bed.tree(), before);
}

#[test]
fn two_runs_at_a_time_do_not_share_an_output_folder() {
    let bed = Bed::with_data();
    let first = bed.start(&["small.yaml", "-o", "out", "--set", "train.computation_time=1000"]);
    bed.wait_for_log("out/dlio.log", "Starting block 1");
    bed.refuses(
        &["small.yaml", "--out", "out", "--overwrite"],
        "error: out: another run is writing its results here\n\
         hint: choose another folder with --out DIR\n",
    );
    first.signal("INT");
    assert_eq!(first.wait().code, Some(130));
}

#[test]
fn an_output_folder_that_is_a_file_is_refused_before_data_is_made() {
    let bed = Bed::new();
    bed.write("file", "");
    bed.refuses(
        &["small.yaml", "--generate", "--out", "file"],
        "error: file: cannot be written: File exists (os error 17)\n",
    );
    bed.refuses(
        &["small.yaml", "--generate", "--out", "file/out"],
        "error: file/out: cannot be written: Not a directory (os error 20)\n",
    );
}

#[test]
fn a_data_folder_that_is_a_file_is_named() {
    let bed = Bed::new();
    bed.write("file", "");
    let error = "error: ./file: is a file, expected a folder\n\
                 hint: choose another place with --data DIR\n";
    bed.refuses(&["small.yaml", "--data", "file"], error);
    bed.refuses(&["small.yaml", "--data", "file", "--generate"], error);
    let ran = bed.run(&["small.yaml", "--data", "file/below", "--generate"]);
    let error = "error: cannot make folder ./file/below: Not a directory (os error 20)\n";
    assert_eq!((ran.code, ran.stderr.lines().next()), (Some(2), error.lines().next()));
    assert_eq!(bed.read("file"), "");
}

#[test]
fn two_workloads_are_one_too_many() {
    let hint = "hint: give one; overrides have the form KEY=VALUE\n";
    let error = "error: two workloads given: small.yaml and unet3d_h100\n";
    refused(&["unet3d_h100"], &format!("{error}{hint}"));
    refused(&["workload=unet3d_h100"], &format!("{error}{hint}"));
}

#[test]
fn overrides_alone_name_no_workload() {
    Bed::new().refuses(
        &["++workload.train.epochs=2"],
        "error: no workload given\nhint: feedline run NAME; `feedline workloads` lists the names\n",
    );
}

#[test]
fn an_override_without_a_value_is_refused() {
    refused(
        &["--set", "reader.batch_size"],
        "error: override `reader.batch_size`, character 18: expected `=` and a value after the key\n",
    );
}

#[test]
fn an_unknown_metric_cannot_be_required() {
    refused(
        &["--require", "speed>=1"],
        "error: --require speed>=1: unknown metric `speed`\n\
         hint: `feedline explain` lists all names\n",
    );
    refused(
        &["--require", "fast"],
        "error: --require fast: not a requirement\n\
         hint: use `au`, METRIC>=NUMBER or METRIC<=NUMBER with a name from `feedline explain`\n",
    );
}

#[test]
fn an_unknown_metric_cannot_be_explained() {
    let ran = ran(&mut Bed::new().feedline(&["explain", "speed"]));
    assert_eq!(
        ran.stderr,
        "error: unknown metric `speed`\nhint: `feedline explain` lists all names\n"
    );
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
}

#[cfg(not(feature = "mpi"))]
#[test]
fn several_processes_of_a_launcher_are_refused() {
    for (variable, launcher) in [
        ("OMPI_COMM_WORLD_SIZE", "mpirun (Open MPI)"),
        ("PMI_SIZE", "an MPI launcher"),
        ("SLURM_STEP_NUM_TASKS", "srun"),
        ("FLUX_JOB_SIZE", "flux"),
    ] {
        let bed = Bed::new();
        let mut command = bed.feedline(&["run", "small.yaml", "--generate"]);
        let ran = ran(command.env(variable, "4"));
        assert_eq!(
            ran.stderr,
            format!(
                "error: started 4 times by {launcher}, but this build has no MPI\n\
                 hint: start it once, with --accelerators 4 (or FEEDLINE_ACCELERATORS=4), or build it \
                 with --features mpi\n"
            )
        );
        assert_eq!((ran.code, bed.tree()), (Some(2), Vec::new()));
    }
}

#[test]
fn files_that_are_no_workload_are_refused() {
    let bed = Bed::new();
    bed.write("tab.yaml", "model:\n\tname: x\n");
    bed.write("empty.yaml", "");
    bed.write("binary.yaml", b"\x7fELF\x02\x01\x01\xff\xfe");
    bed.write("text.yaml", "hello\n");
    let not_a_map = "expected a mapping of sections, found";
    for (file, message) in [
        (
            "tab.yaml",
            "tab.yaml:2: not valid YAML: tabs disallowed within this context (block indentation)",
        ),
        ("empty.yaml", &format!("empty.yaml:1: {not_a_map} null")),
        ("binary.yaml", "binary.yaml: cannot be read: stream did not contain valid UTF-8"),
        ("text.yaml", &format!("text.yaml:1: {not_a_map} \"hello\"")),
    ] {
        bed.refuses(&[file, "--generate"], &format!("error: {message}\n"));
    }
}

/// What overflows 64 bits or the memory is the user's input too.
#[test]
fn huge_numbers_are_refused_and_do_not_panic() {
    for set in [
        "dataset.num_samples_per_file=9223372036854775807",
        "dataset.record_dims=[4294967296,4294967296,4294967296]",
        "dataset.record_length_bytes=1e300",
        "train.computation_time=1e30",
        "reader.prefetch_size=4000000000",
    ] {
        let bed = Bed::new();
        let ran = bed.run(&["small.yaml", "--generate", "--set", set]);
        assert_eq!(ran.code, Some(2), "{set}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{set}: {}", ran.stderr);
        assert_eq!(bed.tree(), [""; 0], "{set}");
    }
}

#[test]
fn warming_the_cache_for_direct_reads_is_refused() {
    refused(
        &["--generate", "--cache", "warm", "--set", "reader.odirect=true"],
        "error: --cache warm cannot be combined with `reader.odirect: true`: direct reads bypass the page \
         cache\nhint: use --cache keep, or --set reader.odirect=false\n",
    );
}
