//! Checkpoints of jobs of several processes, under a real mpirun.

use std::fs;
use std::process::Command;

use crate::bed::Bed;
use crate::hosts::{Hosts, single};
use crate::mpi::{ends_well, kill_rank, launch, own_lines, start};
use crate::tiny::{
    self, FIRST, LOAD_ONLY, SECOND, bed, counts, description, entries, files, flip, runs,
    verifies_all,
};

/// A job of four ranks with these keys set.
fn job(bed: &Bed, mpirun: Command, sets: &[&str]) -> Command {
    launch(bed, mpirun, &[&["run"], &tiny::args("4", sets)[..]].concat())
}

#[test]
fn processes_save_and_load_together() {
    let bed = bed();
    let split = ["model.parallelism.tensor=2", "model.parallelism.pipeline=2"];
    for container in ["torch", "safetensors", "dcp", "raw"] {
        let container = format!("checkpoint.container={container}");
        for mode in ["checkpoint.save_mode=sync", "checkpoint.save_mode=async"] {
            let sets = [&split[..], &[&container, mode]].concat();
            runs(&bed, "4", &sets);
            let alone = files(&bed, FIRST);
            fs::remove_dir_all(bed.path("saved")).unwrap();
            ends_well(&mut job(&bed, single::mpirun(2), &sets));
            assert_eq!(counts(&bed), (2, 2), "{sets:?}");
            assert_eq!(entries(&bed), [FIRST, SECOND], "{sets:?}");
            assert_eq!(files(&bed, FIRST), alone, "{sets:?}");
            // One process finds the bytes of two.
            runs(&bed, "4", &[&split[..], &[LOAD_ONLY]].concat());
        }
    }
}

/// Two ranks a host: each loads what the one two places on has saved, so that nothing comes out of the
/// page cache of its own host. What is wrong with the file of rank 3 is told by rank 1.
#[test]
fn q22_a_rank_loads_what_another_host_saved() {
    let bed = bed();
    let hosts = Hosts::new(&["alpha", "beta"]);
    let mpirun = || hosts.mpirun(&["alpha:1", "beta:1"]);
    let zero = "model.parallelism.zero_stage=3";
    let shift = "checkpoint.recovery_rank_shift=true";
    ends_well(&mut job(&bed, mpirun(), &[zero, shift]));
    assert_eq!(counts(&bed), (2, 2));
    let path = format!("saved/{FIRST}/zero_pp_rank_3_mp_rank_0_optim_states.pt");
    flip(&bed, &path);
    for (shift, who) in [(shift, "rank 1 on alpha"), (zero, "rank 3 on beta")] {
        let ran = crate::bed::ran(&mut job(&bed, mpirun(), &[zero, shift, LOAD_ONLY]));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let errors = own_lines(&ran, "error: ");
        assert_eq!(errors.len(), 1, "{ran:?}");
        let begin = format!("error: {who}: {path}: tensor 2 differs from what was saved");
        assert!(errors[0].starts_with(&begin), "{ran:?}");
    }
}

/// One of two processes is killed while a save is under way that would take an hour.
#[test]
fn a_rank_that_is_killed_while_saving_leaves_what_was_there() {
    for mode in ["checkpoint.save_mode=sync", "checkpoint.save_mode=async"] {
        let bed = bed();
        let one = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"];
        runs(&bed, "4", &[&one[..], &["train.seed=1"]].concat());
        fs::remove_dir_all(bed.path("out")).unwrap();
        let args = tiny::args("4", &[mode, "train.seed=2"]);
        let args = [&["run"], &args[..], &["--store-limit", "1kB/s"]].concat();
        let saving = start(&bed, single::mpirun(2), &args);
        bed.wait_until("the last rank writes", |bed| {
            let paths = bed.tree();
            paths.iter().any(|path| path.contains("zero_pp_rank_3") && path.contains("partial"))
        });
        let killed = kill_rank(&bed, saving, 1);
        assert_eq!(killed.code, Some(137), "{mode}: {killed:?}");
        let named: Vec<_> =
            entries(&bed).into_iter().filter(|name| !name.starts_with('.')).collect();
        assert_eq!(named, [FIRST], "{mode}");
        assert_eq!(description(&bed, FIRST)["seed"], 1, "{mode}");
        ends_well(&mut job(&bed, single::mpirun(2), &[mode, "train.seed=3"]));
        assert_eq!(entries(&bed), [FIRST, SECOND], "{mode}");
        assert_eq!(verifies_all(&bed, "4"), 2, "{mode}");
    }
}
