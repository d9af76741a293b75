//! How a workload is run: what one process decides for all processes of a job.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use feedline_bench::{CachePolicy, Semantics, StorageEmulation};
use feedline_workload::Sharding;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::stored_calibration::StoredCalibration;

/// How a workload is run. Serializes, since process 0 sends it to the other processes of its job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunOptions {
    /// Emulated accelerators, each of which is a rank.
    pub accelerators: u32,
    /// Whose rules decide about order, trimming and combinations of keys.
    pub semantics: Semantics,
    /// How samples go to ranks if the workload does not say.
    #[serde(with = "sharding_word")]
    pub sharding: Sharding,
    /// What happens to the page cache before each epoch.
    pub cache: CachePolicy,
    /// Whether checkpoints are dropped from the page cache before they are loaded.
    pub drop_before_load: bool,
    /// Seed of shuffles whose mode is `random` (Q38).
    pub seed: u64,
    /// What is made of the storage.
    pub storage: StorageEmulation,
    /// The calibration of this machine, if it has one.
    pub calibration: Option<StoredCalibration>,
    /// Where every process records a trace of its part.
    pub trace: Option<PathBuf>,
}

impl RunOptions {
    /// So many accelerators, nothing out of the ordinary, and a seed that differs from run to run.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(accelerators: u32) -> Result<Self, EngineError> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut bytes))
            .map_err(EngineError::NoSeed)?;
        Ok(Self {
            accelerators,
            semantics: Semantics::Feedline,
            sharding: Sharding::Auto,
            cache: CachePolicy::Keep,
            drop_before_load: true,
            seed: u64::from_le_bytes(bytes),
            storage: StorageEmulation::default(),
            calibration: None,
            trace: None,
        })
    }
}

/// A sharding travels as the word of workload files.
mod sharding_word {
    use feedline_workload::Sharding;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(value: &Sharding, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Sharding, D::Error> {
        let word = String::deserialize(from)?;
        Sharding::parse(&word).ok_or_else(|| D::Error::custom(format!("no sharding `{word}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_travel_between_processes() {
        let faults = ["read:100:EIO".to_owned()];
        let options = RunOptions {
            semantics: Semantics::Dlio,
            sharding: Sharding::Dlio200,
            cache: CachePolicy::Drop,
            seed: u64::MAX,
            storage: StorageEmulation::parse(Some("2GB/s,0.2ms"), &faults).unwrap(),
            trace: Some("/tmp/trace".into()),
            ..RunOptions::new(7).unwrap()
        };
        let text = serde_json::to_string(&options).unwrap();
        let back: RunOptions = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!((back.accelerators, back.sharding), (7, Sharding::Dlio200));
        assert_eq!((back.semantics, back.seed), (Semantics::Dlio, u64::MAX));
        assert_eq!(back.storage, options.storage);
        let damaged = text.replace("read:100:EIO", "read:never:EIO");
        let error = serde_json::from_str::<RunOptions>(&damaged).unwrap_err().to_string();
        assert!(error.starts_with("--store-fault read:never:EIO"), "{error}");
    }
}
