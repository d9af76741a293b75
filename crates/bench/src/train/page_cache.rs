//! The page cache: how much of a data set lies in it, and what to do about it.

use std::sync::atomic::Ordering;

use feedline_dataset::DataSet;
use feedline_store::StoreError;
use serde::{Deserialize, Serialize};

/// What happens to the page cache before an epoch. The time it takes is not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CachePolicy {
    /// Nothing, as in real training: what earlier reads left is used.
    #[default]
    Keep,
    /// The data set's own pages are dropped before every epoch, so that it is read from the storage.
    Drop,
    /// The data set is read once before the first epoch.
    Warm,
}

impl CachePolicy {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
            Self::Warm => "warm",
        }
    }
}

/// The files that one rank takes care of.
pub(crate) struct Share {
    pub(crate) rank: u64,
    pub(crate) ranks: u64,
    pub(crate) files: u64,
}

/// Applies `policy` to a rank's share of the files before `epoch`.
pub(crate) fn apply(
    policy: CachePolicy,
    data: &DataSet,
    share: &Share,
    epoch: u32,
) -> Result<(), StoreError> {
    let due = match policy {
        CachePolicy::Keep => false,
        CachePolicy::Drop => true,
        CachePolicy::Warm => epoch == 1,
    };
    let mut key = String::new();
    let mut buffer = vec![0; if policy == CachePolicy::Warm { data.store.read_bytes() } else { 0 }];
    let files = if due { share.files } else { 0 };
    for number in (share.rank..files).step_by(share.ranks as usize) {
        if data.stop.load(Ordering::Relaxed) {
            break;
        }
        key.clear();
        data.names.write_key(number, &mut key);
        match policy {
            CachePolicy::Warm => read_through(data, &key, &mut buffer)?,
            _ => {
                data.store.evict(&key)?;
                for companion in data.format.companions() {
                    let key = companion.key(&key);
                    // Not every reader needs them, so that they may be missing.
                    if data.store.exists(&key)? {
                        data.store.evict(&key)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn read_through(data: &DataSet, key: &str, buffer: &mut [u8]) -> Result<(), StoreError> {
    let mut object = data.store.open(key)?;
    let len = object.len()?;
    let mut offset = 0;
    while offset < len {
        let piece = (len - offset).min(buffer.len() as u64) as usize;
        object.read_exact_at(offset, &mut buffer[..piece])?;
        offset += piece as u64;
    }
    Ok(())
}
