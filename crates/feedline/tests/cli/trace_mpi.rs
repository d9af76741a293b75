//! Ranks of an MPI job under `feedline trace`, and a job of Feedline's own with `--trace`.

use std::collections::BTreeMap;
use std::path::Path;

use feedline_trace::{Batch, EventSource as _, Folder, Tables};

use crate::bed::{Bed, ran};
use crate::hosts::single;
use crate::mpi::launch;
use crate::trace::library;

/// Events of a name by the rank of their process.
fn by_rank(trace: &Path, name: &str) -> BTreeMap<Option<u32>, usize> {
    let mut folder = Folder::open(trace).expect("a trace");
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    let mut counts = BTreeMap::new();
    while folder.next_batch(&mut tables, &mut batch).expect("events") {
        for event in &batch.events {
            if tables.name(event.name) == name {
                let rank = tables.processes[event.process as usize].rank;
                *counts.entry(rank).or_default() += 1;
            }
        }
    }
    counts
}

#[test]
fn launchers_of_a_job_write_one_trace() {
    let bed = Bed::new();
    bed.write("data", vec![7; 40_960]);
    let library = library().to_str().expect("a path in UTF-8");
    let command = ["dd", "if=data", "of=/dev/null", "bs=4096", "status=none"];
    let args =
        [&["trace", "-o", "t", "--quiet", "--library", library, "--"][..], &command].concat();
    let first = ran(&mut launch(&bed, single::mpirun(3), &args));
    assert_eq!(first.code, Some(0), "{first:?}");
    // Ten blocks and the end.
    let written = by_rank(&bed.path("t"), "write");
    assert_eq!(written, BTreeMap::from([(Some(0), 10), (Some(1), 10), (Some(2), 10)]));
    let ranks: Vec<_> = (0..3).map(|rank| bed.json(&format!("t/report-{rank}.json"))).collect();
    assert!(ranks.iter().all(|report| report["dropped"] == 0 && report["processes"] == 1));
    // Another job does not add to it.
    let second = ran(&mut launch(&bed, single::mpirun(3), &args));
    assert_ne!(second.code, Some(0), "{second:?}");
    assert!(second.stderr.contains("holds the trace of another job"), "{second:?}");
    assert_eq!(by_rank(&bed.path("t"), "write"), written);
}

#[test]
fn processes_of_a_run_write_one_trace() {
    let bed = Bed::with_data();
    let args = ["run", "small.yaml", "--trace", "t", "--out", "out"];
    let ended = ran(&mut launch(&bed, single::mpirun(2), &args));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Eight samples of one file each, in steps of two of each rank.
    let samples = by_rank(&bed.path("t"), "item");
    assert_eq!(samples, BTreeMap::from([(Some(0), 4), (Some(1), 4)]));
    let steps = by_rank(&bed.path("t"), "compute");
    assert_eq!(steps, BTreeMap::from([(Some(0), 2), (Some(1), 2)]));
}
