//! Numbers in sentences, as the screens show them.

use feedline_numbers::units;

pub(crate) use feedline_numbers::units::bytes;

/// A duration in nanoseconds.
pub(crate) fn seconds(ns: u64) -> String {
    units::duration(ns as f64 / 1e9)
}

/// Bytes per second.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", bytes(bytes_per_second))
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    units::percent(100.0 * share)
}
