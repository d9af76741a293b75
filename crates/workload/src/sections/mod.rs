//! The typed sections of a workload, one file each.
//!
//! A field is named exactly as its YAML key and holds what the user said after checks of type and
//! range; `Default` is the value of a key that is left out. What follows from several keys together
//! is computed by methods or by the plan of a run, never stored here.

pub(crate) mod checkpoint;
pub(crate) mod dataset;
pub(crate) mod model;
pub(crate) mod reader;
pub(crate) mod storage;
pub(crate) mod time;
pub(crate) mod train;
pub(crate) mod workload;
