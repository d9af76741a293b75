//! The one loop that drains a recording while it grows.

use std::time::Duration;

use feedline_trace::{Drainer, TraceError};

/// Drains in rounds until `wait`, which gets the pause between two rounds, returns something. What is
/// recorded matters more than its trace: after an error it is still waited for.
pub(crate) fn drain_until<T>(
    drainer: &mut Drainer,
    mut wait: impl FnMut(Duration) -> Option<T>,
) -> (T, Result<(), TraceError>) {
    let mut drained = Ok(());
    loop {
        let ended = wait(drainer.pause());
        if drained.is_ok() {
            drained = drainer.round();
        }
        if let Some(ended) = ended {
            return (ended, drained);
        }
    }
}
