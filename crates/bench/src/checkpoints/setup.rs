//! What the processes of a job agree on before they save or load a checkpoint.

use feedline_checkpoint::{Draft, Layout};
use feedline_store::{EntryKind, Store};
use serde::{Deserialize, Serialize};

use crate::checkpoints::saver::CheckpointLabel;
use crate::error::{BenchError, Result};
use crate::plan::checkpoints::CheckpointPlan;
use crate::results::host::Host;
use crate::run::Run;
use crate::run::journal::Journal;
use crate::run::wire;

/// What is known before the first checkpoint.
pub(crate) struct CheckpointSetup {
    /// Which rank holds which tensors.
    pub(crate) layout: Layout,
    /// Whether files are dropped from the page cache before they are read.
    pub(crate) drop_cache: bool,
    /// What process 0 found.
    pub(crate) found: Found,
}

/// What process 0 finds out for all.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    /// Marks the hidden folders of this job.
    pub(crate) tag: String,
    /// Complete checkpoints in the folder, oldest first.
    pub(crate) earlier: Vec<String>,
    /// Unfinished ones that a killed run has left, and that were removed.
    removed: u64,
}

impl CheckpointSetup {
    /// Checks that checkpoints can be saved, and that those which are only read are there.
    pub(crate) fn new(run: &Run) -> Result<Self> {
        let store = &*run.checkpoints;
        let plan = CheckpointPlan::new(&run.workload, run.plan.ranks)?;
        check_memory(run, &plan)?;
        let layout = plan.into_layout();
        if store.kind("")? == Some(EntryKind::File) {
            return Err(BenchError::NoCheckpointFolder { folder: store.locate("") });
        }
        // Process 0 does that for its own machine, below.
        if run.team.leads_node() && !run.team.leads() {
            store.remove_stale("")?;
        }
        let found = wire::decide(&run.team, || look(run, layout.total().bytes.total()))?;
        Ok(Self { layout, drop_cache: run.drop_before_load, found })
    }

    /// Tells the log how large a checkpoint is, in DLIO's words.
    pub(crate) fn announce(&self, journal: &Journal) {
        if self.found.removed > 0 {
            let removed = self.found.removed;
            journal.output(&format!(
                "Removed {removed} unfinished checkpoint(s) of a run that was killed"
            ));
        }
        let total = self.layout.total().bytes;
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        journal.output(&format!("Model size: {:.6} GB", gib(total.blob + total.layers)));
        journal.output(&format!("Optimizer state size: {:.6} GB", gib(total.optimizer)));
        journal.output(&format!("Total checkpoint size: {:.6} GB", gib(total.total())));
    }
}

fn look(run: &Run, bytes: u64) -> Result<Found> {
    let (store, checkpoint) = (&*run.checkpoints, &run.workload.checkpoint);
    let removed = store.remove_stale("")?;
    let listing = feedline_checkpoint::list(store)?;
    let earlier: Vec<String> = listing.complete.into_iter().map(|(name, _)| name).collect();
    let only = run.workload.checkpoint_only();
    let writes = if only { checkpoint.num_checkpoints_write.unwrap_or(0) } else { 1 };
    // Who saves does not depend on it.
    if let Some(error) = listing.unreadable.into_iter().next().filter(|_| writes == 0) {
        return Err(error.into());
    }
    let names = (1..=writes).map(|step| CheckpointLabel { epoch: 1, step }.name());
    let new = names.filter(|name| !earlier.contains(name)).count() as u64;
    // A checkpoint that replaces another is next to it until it is complete.
    let together = checkpoint.keep_last.map_or(new, |keep| new.min(keep)) + 1;
    check_room(store, bytes.saturating_mul(together.min(writes)))?;
    let (expected, found) = (checkpoint.num_checkpoints_read.unwrap_or(0), earlier.len() as u64);
    if only && writes == 0 && found < expected {
        return Err(BenchError::FewCheckpoints { folder: store.locate(""), expected, found });
    }
    Ok(Found { tag: Draft::tag(), earlier, removed })
}

/// Refuses what does not fit this machine's memory, before the kernel kills a process for it.
fn check_memory(run: &Run, plan: &CheckpointPlan) -> Result<()> {
    let geometry = run.team.geometry();
    let here = geometry.ranks_on(geometry.node_of(run.team.process()));
    let all = plan.memory().all_bytes * u128::from(here) / u128::from(run.plan.ranks.max(1));
    let needed = u64::try_from(all).unwrap_or(u64::MAX);
    match Host::available_bytes() {
        Some(available) if available < needed => Err(BenchError::NoMemory { needed, available }),
        _ => Ok(()),
    }
}

fn check_room(store: &dyn Store, needed: u64) -> Result<()> {
    match store.free_bytes("")? {
        Some(free) if free < needed => {
            Err(BenchError::NoRoomToSave { folder: store.locate(""), needed, free })
        }
        _ => Ok(()),
    }
}
