//! What all ranks of a job that saves or loads checkpoints share, and what each of them works with.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use feedline_checkpoint::{
    Background, Container, Dcp, Draft, Engine, Pool, RankFile, Raw, Safetensors, Torch, rank_files,
};
use feedline_clock::Clock;
use feedline_ranks::Ranks;
use feedline_store::{Durability, Store};
use feedline_workload::{CheckpointContainer, SaveMode, Workload};

use crate::checkpoints::saver::Saver;
use crate::checkpoints::setup::CheckpointSetup;
use crate::error::Result;
use crate::spans;

/// Files that describe a checkpoint, at most; the first rank writes them with its own.
const DESCRIPTIONS: u64 = 2;

/// What all ranks of a job that saves or loads share.
pub(crate) struct SaveJob<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workload: &'a Workload,
    pub(crate) setup: CheckpointSetup,
    pub(crate) seed: u64,
    pub(crate) stop: Arc<AtomicBool>,
    /// Begun, and neither published nor discarded.
    drafts: Mutex<Vec<Draft>>,
}

/// Works with a rank's saver, if there is a job for one, and with the threads that it needs.
pub(crate) fn with_saver<T>(
    job: Option<&SaveJob<'_>>,
    ranks: &dyn Ranks,
    work: impl FnOnce(Option<Saver<'_>>) -> Result<T>,
) -> Result<T> {
    let Some(job) = job else { return work(None) };
    let init = spans::CHECKPOINT_INIT.begin();
    let files = job.files(ranks.rank());
    let engine = job.engine(&files);
    let background = job.is_async().then(|| Background::new(&engine));
    job.clock.scope(|scope| {
        // Lets the threads go, whatever happens.
        let _closing = background.as_ref().map(Closing);
        if let Some(background) = &background {
            background.start(scope)?;
        }
        let saver = Saver::new(job, ranks, &engine, background.as_ref(), &files);
        init.end();
        work(Some(saver))
    })
}

struct Closing<'a>(&'a Background<'a>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<'a> SaveJob<'a> {
    pub(crate) fn new(
        clock: &'a Clock,
        store: Arc<dyn Store>,
        workload: &'a Workload,
        setup: CheckpointSetup,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let seed = u64::from(workload.train.seed);
        Self { clock, store, workload, setup, seed, stop, drafts: Mutex::default() }
    }

    pub(crate) fn drafts(&self) -> MutexGuard<'_, Vec<Draft>> {
        self.drafts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back what never became a checkpoint, once no rank writes any more.
    pub(crate) fn discard_drafts(&self) {
        self.drafts().drain(..).for_each(|draft| draft.discard(&*self.store));
    }

    pub(crate) fn container(&self) -> (&'static str, &'static dyn Container) {
        let container = self.workload.checkpoint.container;
        (
            container.as_str(),
            match container {
                CheckpointContainer::Torch => &Torch,
                CheckpointContainer::Safetensors => &Safetensors,
                CheckpointContainer::Dcp => &Dcp,
                CheckpointContainer::Raw => &Raw,
            },
        )
    }

    pub(crate) fn durability(&self) -> Durability {
        if self.workload.checkpoint.fsync { Durability::Fsync } else { Durability::None }
    }

    fn is_async(&self) -> bool {
        self.workload.checkpoint.save_mode == SaveMode::Async
    }

    /// The files of a rank.
    pub(crate) fn files(&self, rank: u32) -> Vec<Arc<RankFile>> {
        rank_files(self.container(), self.setup.layout.files(rank), rank)
    }

    /// What a rank saves and loads with. Its buffers are made here.
    pub(crate) fn engine(&self, files: &[Arc<RankFile>]) -> Engine {
        let checkpoint = &self.workload.checkpoint;
        let largest = files.iter().map(|file| file.image.len).max().unwrap_or(0);
        // A rank with small files needs no large buffers.
        let chunk_bytes = checkpoint.chunk_size.min(largest.next_multiple_of(4096)).max(4096);
        let chunks: u64 =
            files.iter().map(|file| file.image.len.div_ceil(chunk_bytes).max(1)).sum();
        let streams = u64::from(checkpoint.streams).min(chunks.max(1));
        let buffers = match self.is_async() {
            true => (chunks + DESCRIPTIONS) * u64::from(checkpoint.saves_in_flight),
            false => streams,
        };
        let pool_bytes = checkpoint.pool_size.unwrap_or(buffers * chunk_bytes);
        let streams = streams as usize;
        Engine {
            clock: self.clock.clone(),
            store: Arc::clone(&self.store),
            streams,
            pool: Pool::new(self.clock, chunk_bytes as usize, pool_bytes, streams),
            durability: self.durability(),
            stop: Arc::clone(&self.stop),
        }
    }
}
