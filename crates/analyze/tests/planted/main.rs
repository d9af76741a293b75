//! Jobs whose bottleneck is known, because it was planted: does the analysis find it, and its seconds?
//!
//! A simulator of training jobs ([`job`], [`course`]) computes exactly when everything happens, and with it
//! how long every step stalls and why ([`truth`]). What happened is written as a trace ([`own`], [`dlio`]).
//! Nothing here knows how the analysis works.

#[path = "../draft/mod.rs"]
mod draft;

mod course;
mod dlio;
mod job;
mod judge;
mod own;
mod truth;

mod causes;
mod damage;
mod loader;
mod ranks;
mod whole;
