//! A storage that is slower than it is, or breaks.
//!
//! The data set and the checkpoints are the job's storage together: they share one limit, and
//! operations on both count toward a fault, from the first look at the data folder on. In a job of
//! several processes each has an equal part of the limit, and counts its own operations. Result files
//! are neither limited nor failing.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_bench::{Altered, Team};
use feedline_clock::Clock;
use feedline_store::{FaultInjecting, FaultSpec, Faults, Limit, RateLimiter, Store, Throttled};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// What is made of the storage: a limit, faults, both or nothing. It travels as the user wrote it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "EmulationText", into = "EmulationText")]
pub struct StorageEmulation {
    limit: Option<Limit>,
    faults: Vec<FaultSpec>,
    text: EmulationText,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct EmulationText {
    limit: Option<String>,
    faults: Vec<String>,
}

impl From<StorageEmulation> for EmulationText {
    fn from(emulation: StorageEmulation) -> Self {
        emulation.text
    }
}

impl TryFrom<EmulationText> for StorageEmulation {
    type Error = EngineError;

    fn try_from(text: EmulationText) -> Result<Self, EngineError> {
        Self::parse(text.limit.as_deref(), &text.faults)
    }
}

impl StorageEmulation {
    /// Reads a limit such as `2GB/s,10kiops,0.2ms` and faults such as `read:100:EIO`.
    ///
    /// # Errors
    /// One of them is not in that form.
    pub fn parse(limit: Option<&str>, faults: &[String]) -> Result<Self, EngineError> {
        let text = EmulationText { limit: limit.map(str::to_owned), faults: faults.to_vec() };
        let limit = limit.map(|text| {
            Limit::parse(text)
                .map_err(|source| EngineError::StoreLimit { text: text.to_owned(), source })
        });
        let fault = |text: &String| {
            FaultSpec::parse(text)
                .map_err(|source| EngineError::StoreFault { text: text.clone(), source })
        };
        let faults = faults.iter().map(fault).collect::<Result<_, _>>()?;
        Ok(Self { limit: limit.transpose()?, faults, text })
    }

    /// The same in words, for the results.
    pub(crate) fn altered(&self) -> Altered {
        let limit = self.limit.map(|limit| limit.to_string());
        Altered { limit, faults: self.faults.iter().map(ToString::to_string).collect() }
    }

    /// What to know before believing the numbers, if there is anything.
    pub fn caution(&self) -> Option<String> {
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
    ) -> EmulatedStorage {
        let seed = u64::from(seed) ^ (u64::from(team.process()) << 32);
        let limiter = |limit| {
            let limiter = RateLimiter::new(limit, clock.clone()).with_seed(seed);
            let processes = NonZeroU32::new(team.geometry().processes());
            let share = limiter.with_share(NonZeroU32::MIN, processes.unwrap_or(NonZeroU32::MIN));
            Arc::new(share.with_stop(Arc::clone(stop)))
        };
        let faults = (!self.faults.is_empty()).then(|| Arc::new(Faults::new(self.faults.clone())));
        EmulatedStorage { limiter: self.limit.map(limiter), faults }
    }
}

/// A limit and faults at work, in all stores of a run.
pub(crate) struct EmulatedStorage {
    limiter: Option<Arc<RateLimiter>>,
    faults: Option<Arc<Faults>>,
}

impl EmulatedStorage {
    /// The store with the limit and the faults. What fails has taken its time before.
    pub(crate) fn wrap(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = match &self.faults {
            Some(faults) => Arc::new(FaultInjecting::sharing(store, Arc::clone(faults))),
            None => store,
        };
        match &self.limiter {
            Some(limiter) => Arc::new(Throttled::new(store, Arc::clone(limiter))),
            None => store,
        }
    }
}
