//! The command as its user meets it: what it prints, how it ends, what it leaves behind.
//!
//! Every test runs the built binary in an empty folder of its own, with an empty environment. Texts
//! are compared in full; only times, rates, shares and sizes that the machine decides are blurred.
//! The group `disk` needs a Linux on which `unshare` may make a user namespace.

mod bad_input;
mod bed;
mod disk;
mod dlio;
mod good_runs;
mod manifest;
mod modes;
mod results;
mod signals;
mod verify;
