//! How much of a data set lies in the page cache.

use feedline_loader::DataSet;

/// Files that are looked at; the run waits for it.
const SAMPLE_FILES: u64 = 16;

/// The cached share of evenly chosen files of the first `files`, or `None` where it cannot be known.
pub(crate) fn share(data: &DataSet, files: u64) -> Option<f64> {
    let looked_at = files.min(SAMPLE_FILES);
    let (mut resident, mut total) = (0, 0);
    let mut key = String::new();
    for i in 0..looked_at {
        key.clear();
        data.names.write_key(i * files / looked_at, &mut key);
        let found = data.store.resident_bytes(&key).ok()??;
        resident += found.resident;
        total += found.total;
    }
    (total > 0).then(|| resident as f64 / total as f64)
}
