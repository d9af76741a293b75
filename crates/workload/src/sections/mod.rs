//! The typed sections of a workload, one file each.
//!
//! A field has the name of its YAML key and holds the user's value after checks of type and range;
//! `Default` is the value of a key that is not set. `section!` declares each field together with its row of
//! the schema. Values that depend on several keys are computed by
//! methods or by the plan of a run, never stored here.

pub(crate) mod checkpoint;
pub(crate) mod dataset;
pub(crate) mod model;
pub(crate) mod reader;
pub(crate) mod storage;
pub(crate) mod time;
pub(crate) mod train;
pub(crate) mod workload;
