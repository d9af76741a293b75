//! Ctrl-C and its like.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

use crate::failure;

/// The first signal asks to stop, by setting what is returned; the second ends the process.
pub(crate) fn stop() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::default();
    set_on_signal(&stop)?;
    Ok(stop)
}

/// The first signal from now on sets `stop`; the second ends the process.
pub(crate) fn set_on_signal(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    // The one signal of the three that mpirun passes on as it is.
    for signal in [SIGINT, SIGTERM, SIGUSR1] {
        let code = i32::from(failure::INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .context("cannot listen for signals")?;
    }
    Ok(())
}
