//! One rank's checkpoints: saved synchronously or in the background, found and loaded again.
//!
//! All ranks go through this together. The first rank opens a draft before anybody writes and gives it
//! its name when everybody has written; a checkpoint that some rank could not write never gets one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedline_checkpoint::{
    Background, CheckpointError, Container, Contents, DCP_METADATA_NAME, DESCRIPTION_NAME, DcpFile,
    Description, Discard, Draft, Engine, FileSpec, Held, LoadPlan, RankFile, Saved, Sink, Source,
    Ticket, Values, dcp_metadata, rank_files,
};
use feedline_ranks::Ranks;
use feedline_store::{Op, Store, StoreError};
use feedline_workload::{CheckpointContainer, StateSource, Workload};

use crate::checkpoints::job::SaveJob;
use crate::error::Result;
use crate::results::moment::Moment;
use crate::results::outcome::{CheckpointOutcome, Direction, SavingTally};
use crate::spans::{self, StepPosition};

/// Which state of the model a checkpoint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointLabel {
    pub(crate) epoch: u32,
    pub(crate) step: u64,
}

impl CheckpointLabel {
    pub(crate) fn name(self) -> String {
        format!("global_epoch{}_step{}", self.epoch, self.step)
    }

    fn here(self) -> StepPosition {
        StepPosition { epoch: self.epoch, step: self.step }
    }
}

/// A save that goes on while training does.
struct Pending {
    draft: Draft,
    ticket: Ticket,
    label: CheckpointLabel,
    version: u64,
    start: Moment,
    /// How long training paused for it,
    pause_ns: u64,
    /// and when it went on.
    resumed_ns: u64,
    /// Training steps before it, in the whole run.
    steps: u64,
}

/// How much work a kill would have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Risk {
    /// Steps and time at the last published checkpoint.
    safe_steps: u64,
    safe_ns: Option<u64>,
    /// The most that was ever unsaved.
    pub(crate) steps: u64,
    pub(crate) ns: u64,
}

impl Risk {
    /// So many steps were done at that time.
    fn look(&mut self, steps: u64, now_ns: u64) {
        self.steps = self.steps.max(steps - self.safe_steps);
        let safe_ns = *self.safe_ns.get_or_insert(now_ns);
        self.ns = self.ns.max(now_ns - safe_ns);
    }

    fn save(&mut self, steps: u64, then_ns: u64) {
        self.safe_steps = steps;
        self.safe_ns = Some(then_ns);
    }
}

/// One rank's checkpoints.
pub(crate) struct Saver<'a> {
    job: &'a SaveJob<'a>,
    ranks: &'a dyn Ranks,
    engine: &'a Engine,
    background: Option<&'a Background<'a>>,
    files: &'a [Arc<RankFile>],
    held: Option<Held>,
    /// Memory for loads, if they do not fit there.
    room: Option<Held>,
    pending: VecDeque<Pending>,
    /// Names in the order of their publication.
    published: Vec<String>,
    /// Those of them that this run has published.
    own: Vec<String>,
    risk: Risk,
    /// What a description says of all ranks' files; made when it is first needed.
    described: Option<(Vec<(String, u64)>, u64)>,
    /// PyTorch's description, likewise.
    index: Option<Arc<RankFile>>,
}

impl<'a> Saver<'a> {
    pub(crate) fn new(
        job: &'a SaveJob<'a>,
        ranks: &'a dyn Ranks,
        engine: &'a Engine,
        background: Option<&'a Background<'a>>,
        files: &'a [Arc<RankFile>],
    ) -> Self {
        let resident = job.workload.checkpoint.state == StateSource::Resident;
        let specs: Vec<_> = files.iter().map(|file| file.spec.clone()).collect();
        let contents = Contents::new(job.seed, 0, values(job.workload));
        Self {
            job,
            ranks,
            engine,
            background,
            files,
            held: resident.then(|| Held::new(&specs, &contents)),
            room: None,
            pending: VecDeque::new(),
            published: job.setup.found.earlier.clone(),
            own: Vec::new(),
            risk: Risk::default(),
            described: None,
            index: None,
        }
    }

    /// Training begins: what is done from now on could be lost.
    pub(crate) fn begin(&mut self) {
        self.risk.save(0, self.job.clock.now());
    }

    /// Saves, in the way the workload says. Returns what has ended by then: a save that continues in
    /// the background comes from [`Saver::poll`] or [`Saver::drain`].
    pub(crate) fn save(
        &mut self,
        label: CheckpointLabel,
        steps: u64,
    ) -> Result<Vec<CheckpointOutcome>> {
        self.risk.look(steps, self.job.clock.now());
        let mut span = label.here().begin(&spans::CAPTURE);
        if span.is_recorded() {
            span.tags.size = Some(self.files.iter().map(|file| file.spec.tensor_bytes()).sum());
        }
        let Some(background) = self.background else {
            return Ok(self.save_now(label, steps)?.into_iter().collect());
        };
        let asked_ns = self.job.clock.now();
        let mut ended = Vec::new();
        while self.pending.len() >= self.job.workload.checkpoint.saves_in_flight as usize {
            ended.extend(self.finish_oldest(steps)?);
        }
        let start = Moment::now(self.job.clock);
        let Some(draft) = self.open(label)? else { return Ok(ended) };
        let version = self.version(label);
        let files = self.files_to_write(&draft, label, version);
        let ticket = {
            let contents = self.contents(version);
            let source: &dyn Source = self.held.as_ref().map_or(&contents, |held| held);
            background.save(&draft.folder, &files, source)?
        };
        let resumed_ns = self.job.clock.now();
        let pause_ns = resumed_ns - asked_ns;
        self.pending.push_back(Pending {
            draft,
            ticket,
            label,
            version,
            start,
            pause_ns,
            resumed_ns,
            steps,
        });
        Ok(ended)
    }

    /// Between two steps: completes a save that every rank has written.
    pub(crate) fn poll(&mut self, steps: u64) -> Result<Option<CheckpointOutcome>> {
        let Some(oldest) = self.pending.front() else { return Ok(None) };
        self.risk.look(steps, self.job.clock.now());
        let busy = u64::from(!oldest.ticket.is_done());
        if self.ranks.max(busy)? > 0 {
            return Ok(None);
        }
        let begin_ns = self.job.clock.now();
        let ended = self.finish_oldest(steps)?;
        // Giving it its name holds training up as well.
        let more_ns = self.job.clock.now() - begin_ns;
        Ok(ended.map(|ended| CheckpointOutcome { pause_ns: ended.pause_ns + more_ns, ..ended }))
    }

    /// Whether a save is going on.
    pub(crate) fn is_saving(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Waits for all saves that are going on.
    pub(crate) fn drain(&mut self, steps: u64) -> Result<Vec<CheckpointOutcome>> {
        self.risk.look(steps, self.job.clock.now());
        let mut ended = Vec::new();
        while !self.pending.is_empty() {
            ended.extend(self.finish_oldest(steps)?);
        }
        Ok(ended)
    }

    /// How its checkpoints got along with training, as far as that is known here.
    pub(crate) fn tally(&self) -> SavingTally {
        SavingTally {
            unsaved_steps: self.risk.steps,
            unsaved_ns: self.risk.ns,
            pool_bytes: self.engine.pool.bytes(),
            ..SavingTally::default()
        }
    }

    fn save_now(
        &mut self,
        label: CheckpointLabel,
        steps: u64,
    ) -> Result<Option<CheckpointOutcome>> {
        let asked_ns = self.job.clock.now();
        let Some(draft) = self.open(label)? else { return Ok(None) };
        let version = self.version(label);
        let files = self.files_to_write(&draft, label, version);
        let start = Moment::now(self.job.clock);
        let saved = {
            let contents = self.contents(version);
            let source: &dyn Source = self.held.as_ref().map_or(&contents, |held| held);
            self.engine.save(&draft.folder, &files, source)
        };
        let end = Moment::now(self.job.clock);
        let Some(saved) = self.agree(under_its_name(saved, &draft))? else { return Ok(None) };
        let end = self.end(end);
        let Some(commit_ns) = self.commit(&draft, label, version)? else { return Ok(None) };
        self.risk.look(steps, self.job.clock.now());
        self.risk.save(steps, start.ns);
        let pause_ns = self.job.clock.now() - asked_ns;
        let outcome = outcome(self.job, Direction::Save, (start, end), &saved);
        Ok(Some(CheckpointOutcome { commit_ns, pause_ns, ..outcome }))
    }

    /// Waits for the oldest save under way and publishes it.
    fn finish_oldest(&mut self, steps: u64) -> Result<Option<CheckpointOutcome>> {
        let Some(pending) = self.pending.pop_front() else { return Ok(None) };
        let Pending { draft, ticket, label, version, start, pause_ns, resumed_ns, steps: saved_at } =
            pending;
        let saved = ticket.wait();
        let Some(saved) = self.agree(under_its_name(saved, &draft))? else { return Ok(None) };
        let Some(commit_ns) = self.commit(&draft, label, version)? else { return Ok(None) };
        self.risk.look(steps, self.job.clock.now());
        self.risk.save(saved_at, start.ns);
        let end = Moment::at(self.job.clock, saved.ended_ns.max(resumed_ns));
        let background_ns = end.ns - resumed_ns;
        let outcome = outcome(self.job, Direction::Save, (start, end), &saved);
        Ok(Some(CheckpointOutcome { commit_ns, pause_ns, background_ns, ..outcome }))
    }

    /// What can be loaded, oldest first: what this run has published, or if that is nothing, what was
    /// there before it.
    pub(crate) fn loadable(&self) -> Vec<String> {
        if self.own.is_empty() { self.published.clone() } else { self.own.clone() }
    }

    /// Loads a checkpoint.
    pub(crate) fn load(&mut self, name: &str) -> Result<Option<CheckpointOutcome>> {
        let store = &*self.job.store;
        let looked = self.look_up(name);
        if let Ok((_, selection)) = &looked {
            self.make_room(selection);
        }
        let Some((description, selection)) = self.agree(looked)? else { return Ok(None) };
        let mut span = spans::RESTART.begin();
        let start = Moment::now(self.job.clock);
        let loaded = selection.plan(store, name).and_then(|plan| {
            let contents = Contents::new(
                description.seed,
                description.version,
                if description.random { Values::Random } else { Values::Ones },
            );
            let sink: &dyn Sink = match (&self.room, &self.held) {
                _ if self.job.workload.checkpoint.verify => &contents,
                (Some(room), _) => room,
                (None, Some(held)) => held,
                (None, None) => &Discard,
            };
            self.engine.load(&plan, sink)
        });
        let end = Moment::now(self.job.clock);
        let Some(loaded) = self.agree(loaded.map_err(Into::into))? else { return Ok(None) };
        span.tags.size = Some(loaded.tensor_bytes);
        span.end();
        let end = self.end(end);
        let pause_ns = end.ns - start.ns;
        let outcome = outcome(self.job, Direction::Load, (start, end), &loaded);
        Ok(Some(CheckpointOutcome { pause_ns, ..outcome }))
    }

    /// What a checkpoint says of itself and this rank wants of it, whose files are as they were and no
    /// longer in the page cache, if they shall not be.
    fn look_up(&self, name: &str) -> Result<(Description, Selection)> {
        let store = &*self.job.store;
        let description = Description::read(store, name)?;
        let selection = self.selection(&description, name)?;
        for (number, (file, bytes)) in description.files.iter().enumerate() {
            if !selection.cares_for(file, number, self.ranks.on_node()) {
                continue;
            }
            Description::check_file(store, name, (file, *bytes))?;
            if self.job.setup.drop_cache {
                store.evict(&format!("{name}/{file}"))?;
            }
        }
        Ok((description, selection))
    }

    /// Sees to it that there is memory for what is loaded, where it goes to memory: another rank's part
    /// may be larger than this rank's own.
    fn make_room(&mut self, selection: &Selection) {
        let specs = selection.specs();
        let fits = |held: &Held| held.fits(&specs);
        if self.job.workload.checkpoint.verify || self.held.as_ref().is_none_or(fits) {
            self.room = None;
        } else if !self.room.as_ref().is_some_and(fits) {
            self.room = Some(Held::new(&specs, &self.contents(0)));
        }
    }

    /// What this rank wants of a checkpoint, and in which files it is.
    fn selection(&self, description: &Description, name: &str) -> Result<Selection> {
        let (rank, size) = (self.ranks.rank(), self.ranks.size());
        let shift = match (self.job.workload.checkpoint.recovery_rank_shift, self.ranks.on_node().1)
        {
            (false, _) => 0,
            // On one machine there is no other one whose ranks could have written it.
            (true, all) if all == size => 1,
            (true, on_node) => on_node,
        };
        let rank = (rank + shift) % size;
        let layout = &self.job.setup.layout;
        let container_name = description.container.clone();
        let Some(container) = feedline_checkpoint::find(&container_name) else {
            let file = self.job.store.locate(name);
            let why = format!("its container `{container_name}` is not known");
            return Err(CheckpointError::Description { file, why }.into());
        };
        if container_name == CheckpointContainer::Dcp.as_str() {
            let files = rank_files((&container_name, container), layout.files(rank), rank);
            let specs = files.iter().map(|file| file.spec.clone()).collect();
            return Ok(Selection::Anywhere { saved_ranks: description.ranks, specs });
        }
        if description.ranks != size {
            let (folder, ranks) = (self.job.store.locate(name), size);
            let (saved, container) = (description.ranks, container_name);
            return Err(CheckpointError::Ranks { folder, saved, ranks, container }.into());
        }
        let files = rank_files((&container_name, container), layout.files(rank), rank);
        Ok(Selection::Files(container, files))
    }

    /// Opens a draft before any rank writes to it; none if some rank was stopped at it.
    fn open(&self, label: CheckpointLabel) -> Result<Option<Draft>> {
        let store = &*self.job.store;
        let draft = Draft::new(store, &label.name(), &self.job.setup.found.tag);
        let mut begun = Ok(());
        if self.leads() {
            self.job.drafts().push(draft.clone());
            begun = under_its_name(draft.begin(store), &draft);
        }
        if self.agree(begun)?.is_none() {
            return Ok(None);
        }
        // Where every machine has storage of its own, its ranks need the folder too.
        if self.leads_node() && !self.leads() {
            store.make_folder(&draft.folder)?;
        }
        self.ranks.barrier()?;
        Ok(Some(draft))
    }

    /// Hears whether every rank has done its part; none if some rank was stopped at it, be it inside
    /// of a call. What was not completed then is taken back when all ranks have ended.
    fn agree<T>(&self, own: Result<T>) -> Result<Option<T>> {
        if own.is_err() && !self.job.stop.load(Ordering::Relaxed) {
            return own.map(Some);
        }
        match self.ranks.max(u64::from(own.is_err()))? {
            0 => own.map(Some),
            _ => Ok(None),
        }
    }

    /// The end of a rank's part: its own, or that of the slowest, if ranks wait for each other.
    fn end(&self, own: Moment) -> Moment {
        match self.job.workload.checkpoint.rank_sync {
            true => Moment::now(self.job.clock),
            false => own,
        }
    }

    /// This rank's files; the first rank writes what describes the checkpoint along with its own.
    fn files_to_write(
        &mut self,
        draft: &Draft,
        label: CheckpointLabel,
        version: u64,
    ) -> Vec<Arc<RankFile>> {
        let mut files = self.files.to_vec();
        if self.leads() && draft.is_hidden() {
            files.extend(self.descriptions(label, version));
        }
        files
    }

    /// What describes a checkpoint: PyTorch's own file for a distributed one, and ours, which is the
    /// last, because it makes the files a checkpoint where there is nothing to be renamed.
    fn descriptions(&mut self, label: CheckpointLabel, version: u64) -> Vec<Arc<RankFile>> {
        let mut files = Vec::new();
        if self.job.workload.checkpoint.container == CheckpointContainer::Dcp {
            let (job, ranks) = (self.job, self.ranks.size());
            files.push(Arc::clone(self.index.get_or_insert_with(|| Arc::new(index(job, ranks)))));
        }
        let own = self.describe(label, version).to_json();
        files.push(Arc::new(RankFile::of_bytes(DESCRIPTION_NAME, own)));
        files
    }

    /// Gives the draft its name, and removes checkpoints that need not stay; how long that took. None
    /// if the job was stopped at it.
    fn commit(
        &mut self,
        draft: &Draft,
        label: CheckpointLabel,
        version: u64,
    ) -> Result<Option<u64>> {
        let _span = label.here().begin(&spans::COMMIT);
        let begin = self.job.clock.now();
        let (store, durability) = (Arc::clone(&self.job.store), self.job.durability());
        let mut published = Ok(());
        if self.leads() {
            published = match draft.is_hidden() {
                true => under_its_name(draft.publish(&*store, durability), draft),
                false => self.write_descriptions(draft, label, version),
            };
            if published.is_ok() {
                self.job.drafts().retain(|open| open != draft);
            }
        }
        if self.agree(published)?.is_none() {
            return Ok(None);
        }
        // Where every machine has its own storage, rank 0 has not done that for this one.
        let leads_other_node = self.leads_node() && !self.leads();
        if draft.is_hidden() && leads_other_node && store.exists(&draft.folder)? {
            self.write_descriptions(draft, label, version)?;
            draft.publish(&*store, durability)?;
        }
        let took_ns = self.job.clock.now() - begin;
        self.prune(&draft.name)?;
        Ok(Some(took_ns))
    }

    fn write_descriptions(
        &mut self,
        draft: &Draft,
        label: CheckpointLabel,
        version: u64,
    ) -> Result<()> {
        for file in self.descriptions(label, version) {
            self.engine.save(&draft.folder, &[file], &self.contents(version))?;
        }
        Ok(())
    }

    /// Removes the oldest checkpoints beyond the number to keep.
    fn prune(&mut self, newest: &str) -> Result<()> {
        for names in [&mut self.published, &mut self.own] {
            names.retain(|name| name != newest);
            names.push(newest.to_owned());
        }
        let Some(keep) = self.job.workload.checkpoint.keep_last else { return Ok(()) };
        while self.published.len() as u64 > keep {
            let oldest = self.published.remove(0);
            self.own.retain(|name| *name != oldest);
            if !self.leads() {
                continue;
            }
            feedline_checkpoint::remove(&*self.job.store, &oldest, &self.job.setup.found.tag)?;
        }
        Ok(())
    }

    fn describe(&mut self, label: CheckpointLabel, version: u64) -> Description {
        let job = self.job;
        let (files, tensor_bytes) = self.described.get_or_insert_with(|| {
            let (mut files, mut tensor_bytes) = (Vec::new(), 0);
            for rank in 0..self.ranks.size() {
                for file in job.files(rank) {
                    files.push((file.name.clone(), file.image.len));
                    tensor_bytes += file.spec.tensor_bytes();
                }
            }
            (files, tensor_bytes)
        });
        Description {
            epoch: label.epoch,
            step: label.step,
            seed: job.seed,
            version,
            random: job.workload.checkpoint.randomize_tensor,
            tensor_bytes: *tensor_bytes,
            files: files.clone(),
            ..Description::new(job.container().0, self.ranks.size())
        }
    }

    /// Memory holds one state for the whole run; what is made on the way differs from save to save.
    fn version(&self, label: CheckpointLabel) -> u64 {
        match self.held {
            Some(_) => 0,
            None => u64::from(label.epoch) << 40 | label.step,
        }
    }

    fn contents(&self, version: u64) -> Contents {
        Contents::new(self.job.seed, version, values(self.job.workload))
    }

    fn leads(&self) -> bool {
        self.ranks.rank() == 0
    }

    fn leads_node(&self) -> bool {
        self.ranks.on_node().0 == 0
    }
}

/// PyTorch's own description of a distributed checkpoint, the same for every one of the run.
fn index(job: &SaveJob<'_>, ranks: u32) -> RankFile {
    let files: Vec<_> = (0..ranks).flat_map(|rank| job.files(rank)).collect();
    let files: Vec<_> =
        files.iter().map(|file| DcpFile { relative_path: &file.name, spec: &file.spec }).collect();
    RankFile::of_bytes(DCP_METADATA_NAME, dcp_metadata(&files))
}

/// What a rank loads from a checkpoint.
enum Selection {
    /// Its own files.
    Files(&'static dyn Container, Vec<Arc<RankFile>>),
    /// Its tensors, wherever the checkpoint's index says they are.
    Anywhere { saved_ranks: u32, specs: Vec<FileSpec> },
}

impl Selection {
    /// Whether this rank is the one of its machine that looks after a file before it is read: its own,
    /// or if any rank may read any of them, those that fall to its place.
    fn cares_for(&self, name: &str, number: usize, (place, ranks): (u32, u32)) -> bool {
        match self {
            Selection::Files(_, files) => files.iter().any(|file| file.name == name),
            Selection::Anywhere { .. } => number % ranks.max(1) as usize == place as usize,
        }
    }

    /// The tensors that are loaded.
    fn specs(&self) -> Vec<FileSpec> {
        match self {
            Selection::Files(_, files) => files.iter().map(|file| file.spec.clone()).collect(),
            Selection::Anywhere { specs, .. } => specs.clone(),
        }
    }

    fn plan(self, store: &dyn Store, folder: &str) -> Result<LoadPlan, CheckpointError> {
        match self {
            Selection::Files(container, files) => {
                LoadPlan::of_files(store, container, folder, &files)
            }
            Selection::Anywhere { saved_ranks, specs } => {
                LoadPlan::of_dcp(store, folder, saved_ranks, specs)
            }
        }
    }
}

/// Names files as they would be called, not as they are while their checkpoint is made: those names
/// are gone when the user reads of them.
fn under_its_name<T>(result: Result<T, CheckpointError>, draft: &Draft) -> Result<T> {
    let named = |path: String| path.replace(&draft.folder, &draft.name);
    result.map_err(|error| match error {
        CheckpointError::Store(StoreError::Io { op, path, source }) => {
            StoreError::Io { op, path: named(path), source }.into()
        }
        CheckpointError::Store(StoreError::DirectRefused { path, source }) => {
            let path = named(path);
            CheckpointError::Store(StoreError::DirectRefused { path, source }).into()
        }
        other => other.into(),
    })
}

fn values(workload: &Workload) -> Values {
    if workload.checkpoint.randomize_tensor { Values::Random } else { Values::Ones }
}

fn outcome(
    job: &SaveJob<'_>,
    direction: Direction,
    (start, end): (Moment, Moment),
    saved: &Saved,
) -> CheckpointOutcome {
    let moved = match direction {
        Direction::Save => Op::Write,
        Direction::Load => Op::Read,
    };
    CheckpointOutcome {
        direction,
        // Filled in by the caller that lists it.
        number: 0,
        start,
        end,
        bytes: saved.tensor_bytes,
        bytes_of_all: job.setup.layout.total().bytes.total(),
        moved_bytes: saved.meter.op(moved).bytes,
        files: saved.files.iter().map(|file| (file.bytes, file.duration_ns)).collect(),
        publish_ns: saved.publish_ns,
        requests: Op::ALL.iter().map(|&op| saved.meter.op(op).requests).sum(),
        retries: Op::ALL.iter().map(|&op| saved.meter.op(op).retries).sum(),
        commit_ns: 0,
        pause_ns: 0,
        background_ns: 0,
    }
}
