//! What a run measured and what is made of it.
//!
//! Ranks fill the tallies of [`metrics`] and their [`step_log`]; together they are an [`outcome`]. From
//! it follow the [`summary`], the [`verdict`] and the [`assessment`], and from all of them the
//! [`files`] in the output [`folder`].

pub(crate) mod assessment;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod host;
pub(crate) mod metrics;
pub(crate) mod moment;
pub(crate) mod outcome;
pub(crate) mod step_log;
pub(crate) mod summary;
pub(crate) mod summary_file;
pub(crate) mod transfers;
pub(crate) mod verdict;
