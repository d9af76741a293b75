//! What process 0 tells the other processes of its job to do, and how they do it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use feedline_bench::{CachePolicy, Level, Semantics, Silent};
use feedline_workload::{Override, Sharding};
use serde::{Deserialize, Serialize};

use crate::calibration_file::Stored;
use crate::failure;
use crate::faults::Wanted;
use crate::job::Job;
use crate::request::{Request, Text, Wish};
use crate::{run, tracing};

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What process 0 has decided for all processes of the job, beside the workload.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    /// The build that gives it.
    pub(crate) version: String,
    pub(crate) accelerators: u32,
    pub(crate) as_dlio: bool,
    /// Whether it was started by DLIO's name: then it deals as DLIO does unless the workload says.
    pub(crate) named_dlio: bool,
    pub(crate) cache: CachePolicy,
    /// Whether checkpoints are dropped from the page cache before they are loaded.
    pub(crate) drop_before_load: bool,
    /// Seed of shuffles whose mode is `random` (Q38).
    pub(crate) seed: u64,
    /// As the user wrote them.
    pub(crate) store_limit: Option<String>,
    pub(crate) store_faults: Vec<String>,
    /// The calibration that was found, whatever is in it.
    pub(crate) calibration: Option<Stored>,
    /// Where every process records a trace of its part.
    pub(crate) trace: Option<PathBuf>,
}

impl Order {
    /// What is made of the storage.
    pub(crate) fn wanted(&self) -> anyhow::Result<Wanted> {
        Wanted::parse(self.store_limit.as_deref(), &self.store_faults)
    }

    /// The workload, checked for this job.
    pub(crate) fn request(&self, wish: &Wish) -> anyhow::Result<Request> {
        let semantics = if self.as_dlio { Semantics::Dlio } else { Semantics::Feedline };
        let sharding = if self.named_dlio { Sharding::Dlio } else { Sharding::Auto };
        let mut request = Request::new(wish, self.accelerators, semantics, sharding)?;
        request.settle_framework(self.calibration.as_ref())?;
        Ok(request)
    }
}

/// What is told to processes that have nothing to do.
pub(crate) const NOTHING: Option<(Order, Letter)> = None;

/// A wish on its way to another process, whose machine need not have the workload's file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Letter {
    text: Text,
    overrides: Vec<String>,
    now: String,
}

impl From<&Wish> for Letter {
    fn from(wish: &Wish) -> Self {
        let overrides = wish.overrides.iter().map(|item| item.text.clone()).collect();
        Self { text: wish.text.clone(), overrides, now: wish.now.to_string() }
    }
}

impl Letter {
    fn wish(self) -> anyhow::Result<Wish> {
        let overrides = self.overrides.iter().map(|text| Override::parse(text));
        let overrides = overrides.collect::<Result<_, _>>()?;
        let now = self.now.parse().context("process 0 sent no time")?;
        Ok(Wish { text: self.text, overrides, now })
    }
}

/// Does what process 0 says.
pub(crate) fn assist(job: &Job) -> anyhow::Result<u8> {
    let Some((order, letter)) = job.hear::<Option<(Order, Letter)>>()? else { return Ok(0) };
    if order.version != VERSION {
        return Err(failure::hinted(
            format!("this is Feedline {VERSION}, and process 0 runs Feedline {}", order.version),
            "install the same build on every host",
        ));
    }
    let request = order.request(&letter.wish()?)?;
    let run = run::build(&request, &order, Arc::new(Silent), Level::Error, job)?.prepare()?;
    let ranks = job.ranks(order.accelerators)?;
    tracing::traced(order.trace.as_deref(), ranks, || Ok(run.assist()?))?;
    Ok(0)
}
