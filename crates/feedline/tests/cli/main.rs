//! The command as its user meets it: what it prints, how it ends, what it leaves behind.
//!
//! Every test runs the built binary in an empty folder of its own, with an empty environment. Texts
//! are compared in full; only times, rates, shares and sizes that the machine decides are blurred.
//! The groups `disk` and `checkpoint*` need a Linux on which `unshare` may make a user namespace; so do
//! `mpi`, `checkpoint_mpi` and `hosts`, which also need Open MPI and are there only in a build with MPI.

mod analyze;
mod bad_input;
mod bed;
mod calibration;
mod checkpoint_crashes;
mod checkpoint_damage;
#[cfg(feature = "mpi")]
mod checkpoint_mpi;
mod checkpoint_objects;
mod checkpoints;
mod convert;
mod disk;
mod dlio;
mod good_runs;
#[cfg(feature = "mpi")]
mod hosts;
mod limits;
mod manifest;
mod modes;
#[cfg(feature = "mpi")]
mod mpi;
mod object_stores;
mod plan_checkpoint;
mod results;
mod signals;
mod tiny;
mod trace;
#[cfg(feature = "mpi")]
mod trace_mpi;
mod traced;
mod traces;
mod verify;
