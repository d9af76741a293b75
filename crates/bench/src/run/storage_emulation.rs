//! Storage that is slower than it really is, or that fails.
//!
//! The data set and the checkpoints are the job's storage together: they share one limit, and
//! operations on both count toward a fault, from the first look at the data folder on. In a job of
//! several processes each has an equal part of the limit and counts its own operations. Result files
//! are neither limited nor failing.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use feedline_clock::Clock;
use feedline_ranks::Team;
use feedline_store::{
    FaultInjecting, FaultSpec, Faults, Limit, RateLimiter, SpecError, Store, Throttled,
};
use serde::{Deserialize, Serialize};

/// What is emulated on top of the storage: a limit, faults, both or nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "EmulationText", into = "EmulationText")]
pub struct StorageEmulation {
    /// The rates and latencies that all stores of the run share.
    pub limit: Option<Limit>,
    /// The operations that fail.
    pub faults: Vec<FaultSpec>,
}

/// A limit or a fault that is not in the form of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulationError {
    /// As in `--store-limit`.
    #[error("--store-limit {text}")]
    Limit {
        /// As the user wrote it.
        text: String,
        /// What is wrong with it.
        source: SpecError,
    },
    /// As in `--store-fault`.
    #[error("--store-fault {text}")]
    Fault {
        /// As the user wrote it.
        text: String,
        /// What is wrong with it.
        source: SpecError,
    },
}

impl EmulationError {
    /// Something to type that is right.
    pub fn hint(&self) -> String {
        match self {
            Self::Limit { source, .. } => source.hint().unwrap_or_else(|| {
                "--store-limit 2GB/s,10kiops,0.2ms, or some of these".to_owned()
            }),
            Self::Fault { source, .. } => source.hint().unwrap_or_else(|| {
                "--store-fault read:100:EIO, or --store-fault read:every1000:EIO".to_owned()
            }),
        }
    }
}

/// The same as it travels between processes and is written into results.
#[derive(Serialize, Deserialize)]
struct EmulationText {
    limit: Option<String>,
    faults: Vec<String>,
}

impl From<StorageEmulation> for EmulationText {
    fn from(emulation: StorageEmulation) -> Self {
        Self {
            limit: emulation.limit.map(|limit| limit.to_string()),
            faults: emulation.faults.iter().map(ToString::to_string).collect(),
        }
    }
}

impl TryFrom<EmulationText> for StorageEmulation {
    type Error = EmulationError;

    fn try_from(text: EmulationText) -> Result<Self, EmulationError> {
        Self::parse(text.limit.as_deref(), &text.faults)
    }
}

impl StorageEmulation {
    /// Reads a limit such as `2GB/s,10kiops,0.2ms` and faults such as `read:100:EIO`.
    ///
    /// # Errors
    /// One of them is not in that form.
    pub fn parse(limit: Option<&str>, faults: &[String]) -> Result<Self, EmulationError> {
        let limit = limit.map(|text| {
            Limit::parse(text)
                .map_err(|source| EmulationError::Limit { text: text.to_owned(), source })
        });
        let fault = |text: &String| {
            FaultSpec::parse(text)
                .map_err(|source| EmulationError::Fault { text: text.clone(), source })
        };
        let faults = faults.iter().map(fault).collect::<Result<_, _>>()?;
        Ok(Self { limit: limit.transpose()?, faults })
    }

    /// True if the storage is left as it is.
    pub fn is_none(&self) -> bool {
        self.limit.is_none() && self.faults.is_empty()
    }

    /// What is done, as the end of a sentence that begins with the storage: `limited to 2GB/s`.
    pub fn described(&self) -> String {
        let limit = self.limit.iter().map(|limit| format!("limited to {limit}"));
        let faults: Vec<_> = self.faults.iter().map(ToString::to_string).collect();
        let faults = (!faults.is_empty()).then(|| format!("failing {}", faults.join(" ")));
        limit.chain(faults).collect::<Vec<_>>().join(", ")
    }

    /// What to know before believing the numbers, if there is anything.
    pub fn caution(&self) -> Option<String> {
        (!self.is_none()).then(|| {
            let what = self.described();
            format!("the storage is {what}: the numbers are not those of the storage as it is")
        })
    }

    /// Gets ready for a run on `clock` that ends when `stop` is set. Each process of the job has an
    /// equal part of the limit.
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
