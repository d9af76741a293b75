//! CPU time of this process and of its children.

use rustix::time::{ClockId, clock_gettime};

/// The unit of times in /proc, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of CPU time of this process.
pub(crate) fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds of CPU time of all children that have ended and were waited for.
pub(crate) fn children_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in parentheses, may contain anything. Counted after it, the times of children are the
    // 14th and 15th field.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}
