//! Lanes: clients that their caller drives, so that no byte changes threads on its way.
//!
//! A lane is a runtime of one thread, whichever thread that is, with connections of its own. A call
//! takes one, drives its request to the end and gives it back; an object with an answer under way
//! keeps its lane until that has ended. This is the one place, with the shared runtime for uploads
//! and credentials, where time is not that of `feedline_clock`: sockets know no simulated time.

use std::sync::{Arc, Mutex};

use tokio::runtime::{Builder, Runtime};

use super::attempts::Attempts;
use super::service::{Client, Recipe};
use crate::StoreError;
use crate::lock::lock;

/// Idle lanes kept; more readers than that at once make their own each time.
const LANES_MAX: usize = 512;

/// A client and what drives it.
pub(crate) struct Lane {
    /// Before the runtime, which its connections belong to.
    pub(crate) client: Client,
    runtime: Runtime,
}

impl Lane {
    /// Drives an operation to its end on this thread, and charges its requests to this thread's call.
    pub(crate) fn run<F: Future>(&self, attempts: &Arc<Attempts>, operation: F) -> F::Output {
        let output = self.runtime.block_on(attempts.over(operation));
        attempts.charge();
        output
    }
}

/// Idle lanes, and how to make more.
pub(crate) struct Lanes {
    recipe: Recipe,
    idle: Mutex<Vec<Lane>>,
}

impl Lanes {
    pub(crate) fn new(recipe: Recipe) -> Arc<Lanes> {
        Arc::new(Lanes { recipe, idle: Mutex::default() })
    }

    pub(crate) fn take(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let idle = lock(&self.idle).pop();
        let lane = match idle {
            Some(lane) => lane,
            None => {
                let runtime = Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|source| self.recipe.refused(source))?;
                Lane { runtime, client: self.recipe.client()? }
            }
        };
        Ok(Lease { lane: Some(lane), home: Arc::clone(self) })
    }
}

/// A lane in use, which goes back when this is dropped.
pub(crate) struct Lease {
    lane: Option<Lane>,
    home: Arc<Lanes>,
}

impl std::ops::Deref for Lease {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        self.lane.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut idle = lock(&self.home.idle);
        if idle.len() < LANES_MAX {
            idle.extend(self.lane.take());
        }
    }
}
