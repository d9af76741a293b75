//! `--store-limit` and `--store-fault`: a storage that is slower than it is, or breaks.
//!
//! The data set and the checkpoints are the job's storage together: they share one limit, and
//! operations on both count towards a fault, from the first look at the data folder on. In a job of
//! several processes each has an equal part of the limit, and counts its own operations. What this
//! command writes for itself, the results, is neither limited nor failing.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_bench::{Altered, Team};
use feedline_clock::Clock;
use feedline_store::{Failing, FaultSpec, Faults, Limit, Limited, Pace, SpecError, Store};

use crate::failure;

/// What the user wants made of the storage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    limit: Option<Limit>,
    faults: Vec<FaultSpec>,
}

impl Wanted {
    pub(crate) fn parse(limit: Option<&str>, faults: &[String]) -> anyhow::Result<Self> {
        let limit = limit.map(|text| {
            let hint = "--store-limit 2GB/s,10kiops,0.2ms, or some of these";
            Limit::parse(text).map_err(|error| refused("--store-limit", text, &error, hint))
        });
        let fault = |text: &String| {
            let hint = "--store-fault read:100:EIO, or --store-fault read:every1000:EIO";
            FaultSpec::parse(text).map_err(|error| refused("--store-fault", text, &error, hint))
        };
        let faults = faults.iter().map(fault).collect::<anyhow::Result<_>>()?;
        Ok(Self { limit: limit.transpose()?, faults })
    }

    /// The same in words, for the results.
    pub(crate) fn altered(&self) -> Altered {
        let limit = self.limit.map(|limit| limit.to_string());
        Altered { limit, faults: self.faults.iter().map(ToString::to_string).collect() }
    }

    /// What to know before believing the numbers, if there is anything.
    pub(crate) fn caution(&self) -> Option<String> {
        let altered = self.altered();
        let text = || {
            let what = altered.described();
            format!("the storage is {what}: the numbers are not those of the storage as it is")
        };
        (!altered.is_nothing()).then(text)
    }

    /// Gets ready for a run on `clock` that ends when `stop` is set. Of a limit every process of the
    /// job has its part.
    pub(crate) fn begin(
        &self,
        clock: &Clock,
        seed: u32,
        stop: &Arc<AtomicBool>,
        team: &Team,
    ) -> Alteration {
        let seed = u64::from(seed) ^ (u64::from(team.process()) << 32);
        let pace = |limit| {
            let pace = Pace::new(limit, clock.clone()).with_seed(seed);
            let processes = NonZeroU32::new(team.geometry().processes());
            let share = pace.with_share(NonZeroU32::MIN, processes.unwrap_or(NonZeroU32::MIN));
            Arc::new(share.with_stop(Arc::clone(stop)))
        };
        let faults = (!self.faults.is_empty()).then(|| Arc::new(Faults::new(self.faults.clone())));
        Alteration { pace: self.limit.map(pace), faults }
    }
}

/// A limit and faults at work, in all stores of a run.
pub(crate) struct Alteration {
    pace: Option<Arc<Pace>>,
    faults: Option<Arc<Faults>>,
}

impl Alteration {
    /// The store as the user wants it. What fails has taken its time before.
    pub(crate) fn wrap(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = match &self.faults {
            Some(faults) => Arc::new(Failing::sharing(store, Arc::clone(faults))),
            None => store,
        };
        match &self.pace {
            Some(pace) => Arc::new(Limited::new(store, Arc::clone(pace))),
            None => store,
        }
    }
}

fn refused(flag: &str, text: &str, error: &SpecError, hint: &str) -> anyhow::Error {
    let hint = error.hint().unwrap_or_else(|| hint.to_owned());
    failure::hinted(format!("{flag} {text}: {error}"), hint)
}
