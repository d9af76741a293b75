//! What processes of a job tell one another, as JSON: they run the same build, or say so.

use feedline_ranks::Team;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{BenchError, Result};

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("numbers, texts and lists of them have a JSON form")
}

/// What `process` has encoded.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], process: u32) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|_| BenchError::OtherBuild { process })
}

/// Process 0 works something out for all.
pub(crate) fn decide<T: Serialize + DeserializeOwned>(
    team: &Team,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if team.geometry().processes() == 1 {
        return work();
    }
    let bytes = team.decide(|| work().map(|value| encode(&value)))?;
    decode(&bytes, 0)
}
