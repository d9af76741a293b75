//! The keys of checkpoints that DLIO does not have, and those that it has and ignores.

use super::{refused, warnings, workload};
use crate::{Checkpoint, CheckpointContainer, DirectIo, SaveMode, StateSource, check};

fn checkpoint(keys: &str) -> Checkpoint {
    workload(&format!("checkpoint: {{{keys}}}\n")).checkpoint
}

#[test]
fn every_key_of_saving_is_read() {
    let found = checkpoint(
        "container: dcp, verify: True, keep_last: 3, save_mode: async, saves_in_flight: 2, \
         overhead_budget: 0.05, streams: 7, chunk_size: 4096, pool_size: 1e6, state: resident, \
         odirect: True",
    );
    let expected = Checkpoint {
        container: CheckpointContainer::Dcp,
        verify: true,
        keep_last: Some(3),
        save_mode: SaveMode::Async,
        saves_in_flight: 2,
        overhead_budget: Some(0.05),
        streams: 7,
        chunk_size: 4096,
        pool_size: Some(1_000_000),
        state: StateSource::Resident,
        odirect: DirectIo::On,
        ..Checkpoint::default()
    };
    assert_eq!(found, expected);
}

#[test]
fn direct_io_is_a_truth_value_or_left_to_the_file_system() {
    let read = |text: &str| checkpoint(&format!("odirect: {text}")).odirect;
    assert_eq!(read("auto"), DirectIo::Auto);
    assert_eq!([read("True"), read("'true'"), read("yes")], [DirectIo::On; 3]);
    assert_eq!([read("False"), read("'false'"), read("off")], [DirectIo::Off; 3]);
}

#[test]
fn a_bad_value_names_place_key_expectation_and_finding() {
    #[track_caller]
    fn check(key: &str, value: &str, expected: &str) {
        refused(
            &format!("checkpoint: {{{key}: {value}}}"),
            &format!("w.yaml:1: `checkpoint.{key}` expects {expected}, found {value}"),
        );
    }
    check("container", "\"tar\"", "one of `torch`, `safetensors`, `dcp`, `raw`");
    check("save_mode", "true", "one of `sync`, `async`");
    check("state", "\"disk\"", "one of `generated`, `resident`");
    check("odirect", "\"maybe\"", "one of `auto`, `true`, `false`");
    check("odirect", "1", "one of `auto`, `true`, `false`");
    check("verify", "\"all\"", "true or false");
    for bad in ["0", "-1", "1.5"] {
        check("keep_last", bad, "a whole number > 0");
        check("pool_size", bad, "a whole number > 0");
        check("saves_in_flight", bad, "a whole number from 1 to 1024");
        check("streams", bad, "a whole number from 1 to 1024");
    }
    check("streams", "1025", "a whole number from 1 to 1024");
    check("chunk_size", "0", "a whole number > 0");
    for bad in ["4095", "6144", "1073745920"] {
        check("chunk_size", bad, "a multiple of 4096 from 4096 to 1073741824");
    }
    for bad in ["0", "1", "-0.1", "1.5", "\"5%\""] {
        check("overhead_budget", bad, "a fraction between 0 and 1");
    }
}

/// A run that only checkpoints, with these keys.
fn alone(keys: &str) -> String {
    format!("workflow: {{train: False, checkpoint: True}}\ncheckpoint: {{{keys}}}\n")
}

/// A run that trains and checkpoints, with these keys.
fn trained(keys: &str) -> String {
    format!("workflow: {{checkpoint: True}}\ncheckpoint: {{{keys}}}\n")
}

#[track_caller]
fn unsound(yaml: &str, message: &str, hint: Option<&str>) {
    match check(&workload(yaml), 1) {
        Ok(_) => panic!("accepted, expected: {message}"),
        Err(err) => {
            assert_eq!(err.to_string(), message);
            assert_eq!(err.hint().as_deref(), hint);
        }
    }
}

#[track_caller]
fn remarked(yaml: &str, expected: &[&str]) {
    let remarks = match check(&workload(yaml), 1) {
        Ok(remarks) => remarks,
        Err(err) => panic!("{yaml}: {err}"),
    };
    assert_eq!(remarks.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{yaml}");
}

#[test]
fn a_budget_and_steps_exclude_each_other() {
    remarked(&trained("overhead_budget: 0.1"), &[]);
    unsound(
        &trained("overhead_budget: 0.1, steps_between_checkpoints: 5"),
        "`checkpoint.overhead_budget: 0.1` cannot be combined with `checkpoint.steps_between_checkpoints: 5`: the budget determines the steps",
        Some("remove one of them, e.g. with `checkpoint.steps_between_checkpoints=-1`"),
    );
    remarked(
        &alone("overhead_budget: 0.1"),
        &["`checkpoint.overhead_budget` has no effect while `workflow.train` is off"],
    );
}

#[test]
fn what_is_read_must_still_be_there() {
    remarked(&alone("num_checkpoints_write: 9, num_checkpoints_read: 3, keep_last: 3"), &[]);
    remarked(&alone("num_checkpoints_write: 0, num_checkpoints_read: 9, keep_last: 3"), &[]);
    unsound(
        &alone("num_checkpoints_write: 9, num_checkpoints_read: 4, keep_last: 3"),
        "`checkpoint.num_checkpoints_read` must not exceed `checkpoint.keep_last`, found 4 and 3",
        Some("use `checkpoint.keep_last=4`, or remove the key to keep all"),
    );
}

#[test]
fn buffers_hold_a_chunk_for_every_stream_and_no_more_than_a_machine_has() {
    remarked(&alone("streams: 2, chunk_size: 8192, pool_size: 16384"), &[]);
    unsound(
        &alone("streams: 2, chunk_size: 8192, pool_size: 16383"),
        "`checkpoint.pool_size` must hold one chunk of 8192 bytes for each of 2 streams: expected at least 16384, found 16383",
        Some("use `checkpoint.pool_size=16384`, or lower `checkpoint.streams`"),
    );
    remarked(&alone("streams: 4, chunk_size: 1073741824"), &[]);
    unsound(
        &alone("streams: 5, chunk_size: 1073741824"),
        "`checkpoint.streams` of 5 with a `checkpoint.chunk_size` of 1073741824 bytes exceeds 4 GiB of memory per rank",
        Some("lower `checkpoint.streams` or `checkpoint.chunk_size`"),
    );
}

#[test]
fn an_object_store_has_no_page_cache_to_go_past() {
    remarked(&alone("checkpoint_folder: 's3://bucket/x'"), &[]);
    unsound(
        &alone("checkpoint_folder: 's3://bucket/x', odirect: True"),
        "`checkpoint.odirect: true` cannot be combined with `checkpoints at s3://bucket/x`: an object store is accessed over the network, not through the file system",
        Some("use `checkpoint.odirect=auto`"),
    );
}

#[test]
fn a_wait_is_one_that_a_clock_can_add_up() {
    remarked(&alone("time_between_checkpoints: 1e6"), &[]);
    unsound(
        &alone("time_between_checkpoints: 1e300"),
        "`checkpoint.time_between_checkpoints` expects at most 1000000 s, found 1e300 s",
        None,
    );
}

#[test]
fn keys_that_nothing_reaches_are_named() {
    let both = [
        "`checkpoint.verify` has no effect without checkpoints that are read \
         (`checkpoint.num_checkpoints_read`)",
        "`checkpoint.recovery_rank_shift` has no effect without checkpoints that are read \
         (`checkpoint.num_checkpoints_read`)",
    ];
    remarked(&alone("verify: True, recovery_rank_shift: True"), &both);
    remarked(&trained("verify: True, recovery_rank_shift: True"), &both);
    remarked(&alone("verify: True, recovery_rank_shift: True, num_checkpoints_read: 1"), &[]);
    remarked(
        &trained("saves_in_flight: 2"),
        &["`checkpoint.saves_in_flight` has no effect without `checkpoint.save_mode: async`"],
    );
    remarked(&trained("saves_in_flight: 2, save_mode: async"), &[]);
    remarked("checkpoint: {verify: True, saves_in_flight: 2, overhead_budget: 0.5}\n", &[]);
}

#[test]
fn page_merging_is_the_only_wish_of_dlio_that_is_not_heard() {
    let heard = "checkpoint: {fsync: True, recovery_rank_shift: True, rank_sync: True, \
                 randomize_tensor: False, mode: subset, num_checkpoints_write: 1, \
                 num_checkpoints_read: 1, time_between_checkpoints: 1}\n";
    assert_eq!(warnings(heard), Vec::<String>::new());
    assert_eq!(
        warnings("checkpoint: {ksm: {}}\n"),
        [
            "w.yaml:1: `checkpoint.ksm` has no effect: Feedline does not merge pages, and only holds tensors in memory if `checkpoint.state` is `resident`"
        ]
    );
}
