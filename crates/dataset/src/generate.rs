//! Makes the data set: DLIO's names, folders and sizes, contents that neither compress nor repeat.
//!
//! A pool of writers takes files off one list; a file is generated piece by piece straight into the
//! writer's buffer and appears under its name only when it is complete, after the files that go with
//! it. What was asked to stop or ran out of room leaves complete files and a manifest that says that
//! some are missing; the next generation of the same recipe goes on from there.
//!
//! In a job of several processes each makes every so-manieth file, and process 0 writes the manifest.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_formats::{
    ByteSink, CompanionPlace, Content, EncodeError, FileSize, FileSpec, StreamError,
};
use feedline_ranks::Team;
use feedline_store::{AlignedBuf, Durability, RequestCount, Store, StoreError, Writer};

use crate::checksum::{ChecksumSink, crc32_of};
use crate::entry_log::EntryLog;
use crate::error::DatasetError;
use crate::existing_files::ExistingFiles;
use crate::manifest::{FileSum, Head, ManifestWriter, Totals};
use crate::manifest_reader::ManifestReader;
use crate::progress::GenerationProgress;
use crate::sizes::SampleSizes;
use crate::spec::DatasetSpec;

#[cfg(test)]
mod tests;

/// Writers at a time: enough to keep a device busy, few enough to keep their files sequential.
const WRITERS: u64 = 4;
/// What a writer collects before it calls the store.
const BUFFER_BYTES: usize = 1 << 20;

/// A finished (or stopped) generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Data files written by this run, without those that were kept.
    pub files: u64,
    /// Bytes written, those of files that go with the data files included.
    pub bytes: u64,
    /// Wall-clock time of the generation, in nanoseconds.
    pub wall_ns: u64,
    /// Data files that already existed.
    pub kept_files: u64,
    /// Bytes of the kept data files.
    pub kept_bytes: u64,
    /// Requests that writing them sent over a network.
    pub requests: u64,
    /// Requests that repeated a failed one.
    pub retries: u64,
}

/// Makes a data set, or what is missing of it.
pub struct Generator<'a> {
    /// The processes that make it together.
    pub team: &'a Team,
    /// The clock that times the generation; simulated in tests.
    pub clock: &'a Clock,
    /// Where it goes; the root is the data folder.
    pub store: &'a dyn Store,
    /// What it consists of.
    pub spec: &'a DatasetSpec,
    /// Name of the workload that it is made for, as the manifest says it.
    pub workload: &'a str,
    /// Set to end it early.
    pub stop: &'a AtomicBool,
    /// Told how far it is, from the writers' threads.
    pub progress: &'a (dyn Fn(GenerationProgress) + Sync),
}

/// What the writers share.
struct Work<'a> {
    earlier: &'a ExistingFiles,
    /// How far it was at the beginning.
    begun: GenerationProgress,
    /// The next file and the sizes from there on.
    list: Mutex<(u64, SampleSizes)>,
    done: Mutex<GenerationProgress>,
    log: Mutex<EntryLog>,
    failure: Mutex<Option<DatasetError>>,
    /// Whether files are left because it was stopped.
    cut: AtomicBool,
}

/// What was done for one file of the data set.
#[derive(Clone, Copy)]
enum Made {
    /// Written with what goes with it.
    Written { bytes: u64 },
    /// It was there; what goes with it was written.
    Kept { file_bytes: u64, bytes: u64 },
}

impl Generator<'_> {
    /// Writes the training files, then the evaluation files, except those that can stay.
    pub fn run(&self, earlier: &ExistingFiles) -> Result<Generated, DatasetError> {
        let begin = self.clock.now();
        // One process that was asked to stop speaks for all.
        if self.team.max(u64::from(self.stopped()))? > 0 {
            return Ok(Generated::default());
        }
        self.make_folders()?;
        // Files that are kept belong to no process, so process 0 counts them.
        let kept = if self.team.leads() { earlier.kept() } else { Totals::default() };
        let done = GenerationProgress {
            files: kept.files,
            files_total: self.spec.files(),
            bytes: kept.bytes,
            bytes_total: self.bytes_up_to(u64::MAX),
            kept_files: kept.files,
            kept_bytes: kept.bytes,
            ..GenerationProgress::default()
        };
        let all_there = earlier.kept().files == done.files_total;
        let made = if all_there { Ok(done) } else { self.make(earlier, done) };
        let GenerationProgress { files, bytes, kept_files, kept_bytes, requests, retries, .. } =
            made?;
        Ok(Generated {
            files: files - kept_files,
            bytes: bytes - kept_bytes,
            wall_ns: self.clock.now() - begin,
            kept_files,
            kept_bytes,
            requests,
            retries,
        })
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes the folders and removes what killed runs left unfinished in them.
    fn make_folders(&self) -> Result<(), StoreError> {
        self.each_folder(&mut |folder| {
            self.store.make_folder(folder)?;
            self.store.remove_stale(folder)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The data folder and every folder below it, until `visit` breaks off.
    fn each_folder(
        &self,
        visit: &mut dyn FnMut(&str) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let apart =
            self.spec.format.companions().iter().any(|c| c.place == CompanionPlace::IndexFolder);
        let mut folders = vec![String::new()];
        for rule in [&self.spec.train, &self.spec.eval] {
            if apart {
                folders.push(format!("index/{}", rule.folder));
            }
            folders.extend((0..rule.subfolders.max(1)).map(|number| {
                let mut folder = String::new();
                rule.write_folder(number, &mut folder);
                folder
            }));
        }
        for folder in folders {
            if visit(&folder)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Whether any name of a data file is taken.
    fn any_there(&self) -> Result<bool, StoreError> {
        let mut found = false;
        self.each_folder(&mut |folder| {
            self.store.list(folder, &mut |entry| {
                found = self.index_of(&format!("{folder}/{}", entry.name)).is_some();
                if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }

    fn head(&self, complete: bool, replaces: bool) -> Head {
        let (workload, recipe) = (self.workload.to_owned(), Some(self.spec.recipe()));
        Head { complete, replaces, workload, recipe }
    }

    /// Writes what is missing and the manifest; `done` is how far it is at the beginning.
    fn make(
        &self,
        earlier: &ExistingFiles,
        done: GenerationProgress,
    ) -> Result<GenerationProgress, DatasetError> {
        let log = match self.team.leads() {
            true => EntryLog::Manifest(self.begin_manifest(earlier)?),
            false => EntryLog::waiting()?,
        };
        // No file is made before the manifest says that the set is not complete.
        self.team.max(0)?;
        let work = Work {
            earlier,
            begun: done,
            list: Mutex::new((0, SampleSizes::new(&self.spec.shape))),
            done: Mutex::new(done),
            log: Mutex::new(log),
            failure: Mutex::default(),
            cut: AtomicBool::new(false),
        };
        (self.progress)(done);
        self.clock.scope(|scope| {
            for number in 0..WRITERS.min(done.files_total) {
                let work = &work;
                let name = format!("writer {number}");
                if let Err(source) = scope.spawn(name.clone(), move || self.write_files(work)) {
                    lock(&work.failure).get_or_insert(DatasetError::NoThread { name, source });
                    break;
                }
            }
        });
        if let Some(error) = lock(&work.failure).take() {
            return Err(error);
        }
        if self.team.max(u64::from(work.cut.into_inner()))? == 0 {
            into_inner(work.log).conclude(self.team)?;
        }
        self.add_up(into_inner(work.done))
    }

    /// Publishes a manifest that says that the set is being made, and begins the one to come.
    fn begin_manifest(&self, earlier: &ExistingFiles) -> Result<ManifestWriter, DatasetError> {
        let (replaces, previous) = match earlier {
            ExistingFiles::Unknown => (self.any_there()?, None),
            ExistingFiles::Unfinished { replaces } => (*replaces, None),
            // Opened before another manifest takes its place.
            ExistingFiles::Finished(_) => (false, ManifestReader::open(self.store)?),
        };
        let unfinished = self.head(false, replaces);
        ManifestWriter::begin(self.store, &unfinished)?.publish()?;
        let complete = self.head(true, false);
        let mut manifest = ManifestWriter::begin(self.store, &complete)?;
        if let Some(previous) = previous {
            self.carry_over(previous, earlier, &mut manifest)?;
        }
        Ok(manifest)
    }

    /// What all processes have made, on process 0.
    fn add_up(&self, own: GenerationProgress) -> Result<GenerationProgress, DatasetError> {
        if !self.team.leads() {
            self.team.send(serde_json::to_vec(&own).expect("numbers have a JSON form"))?;
            return Ok(own);
        }
        let mut sum = own;
        for process in 1..self.team.geometry().processes() {
            let part = serde_json::from_slice(&self.team.receive(process)?);
            let part: GenerationProgress =
                part.map_err(|_| DatasetError::OtherBuild { process })?;
            sum.files += part.files;
            sum.bytes += part.bytes;
            sum.kept_files += part.kept_files;
            sum.kept_bytes += part.kept_bytes;
            sum.requests += part.requests;
            sum.retries += part.retries;
        }
        Ok(sum)
    }

    /// Copies the entries of files that stay.
    fn carry_over(
        &self,
        previous: ManifestReader,
        earlier: &ExistingFiles,
        manifest: &mut ManifestWriter,
    ) -> Result<(), DatasetError> {
        previous.read(&mut |_, entry| {
            let index = self.index_of(&entry.name).or_else(|| self.companion_of(&entry.name));
            if index.is_some_and(|index| earlier.keeps(index)) {
                manifest.add(&entry.name, entry.sum)?;
            }
            Ok(if self.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(())
    }

    /// One writer: takes files off the list until there are none.
    fn write_files(&self, work: &Work<'_>) {
        let mut buffer = AlignedBuf::new(BUFFER_BYTES);
        while let Some(file) = self.next_file(work) {
            match self.make_file(&file, work, &mut buffer) {
                Ok(made) => {
                    let mut done = lock(&work.done);
                    made.count(&mut done);
                    let processes = u64::from(self.team.geometry().processes());
                    (self.progress)(done.times(&work.begun, processes));
                }
                // The format or the store was asked to stop in the middle.
                Err(_) if self.stopped() => work.cut.store(true, Ordering::Relaxed),
                Err(error) => {
                    lock(&work.failure).get_or_insert(error);
                }
            }
        }
        let asked = RequestCount::of_thread();
        let mut done = lock(&work.done);
        done.requests += asked.requests;
        done.retries += asked.retries;
    }

    fn next_file(&self, work: &Work<'_>) -> Option<FileSpec> {
        let (next, sizes) = &mut *lock(&work.list);
        while *next < self.spec.files() {
            if self.stopped() {
                work.cut.store(true, Ordering::Relaxed);
                return None;
            }
            if lock(&work.failure).is_some() {
                return None;
            }
            let file = self.spec.file(*next, sizes.next_dims());
            *next += 1;
            let processes = u64::from(self.team.geometry().processes());
            let own = file.index % processes == u64::from(self.team.process());
            if own && !work.earlier.keeps(file.index) {
                return Some(file);
            }
        }
        None
    }

    /// Makes one file after those that go with it, which are always written with it: they may be older
    /// than the file itself (Q19).
    fn make_file(
        &self,
        file: &FileSpec,
        work: &Work<'_>,
        buffer: &mut AlignedBuf,
    ) -> Result<Made, DatasetError> {
        let key = self.key(file.index);
        let mut bytes = 0;
        for companion in self.spec.format.companions() {
            let key = companion.key(&key);
            let sum = self.write(&key, buffer, |sink| {
                self.spec.format.encode_companion(companion, file, sink)
            })?;
            lock(&work.log).add(&key, sum)?;
            bytes += sum.bytes;
        }
        if let ExistingFiles::Unfinished { replaces } = *work.earlier
            && let Some(sum) = self.still_good(file, &key, replaces, buffer)?
        {
            lock(&work.log).add(&key, sum)?;
            return Ok(Made::Kept { file_bytes: sum.bytes, bytes: bytes + sum.bytes });
        }
        let content = Content::new(self.spec.seed, file.index);
        let sum = self.write(&key, buffer, |sink| self.spec.format.encode(file, &content, sink))?;
        lock(&work.log).add(&key, sum)?;
        Ok(Made::Written { bytes: bytes + sum.bytes })
    }

    /// Size and checksum of a file of an unfinished generation, if it exists. A file under
    /// its name was published whole, so its size tells whether it is the one; only if files of
    /// another set may be left must it be read.
    fn still_good(
        &self,
        file: &FileSpec,
        key: &str,
        replaces: bool,
        buffer: &mut AlignedBuf,
    ) -> Result<Option<FileSum>, DatasetError> {
        let Some(size) = self.store.size(key)? else { return Ok(None) };
        if matches!(self.spec.format.size(file), FileSize::Exact(expected) if expected != size) {
            return Ok(None);
        }
        let mut sink = ChecksumSink::new(buffer, self.stop);
        self.spec
            .format
            .encode(file, &Content::new(self.spec.seed, file.index), &mut sink)
            .map_err(|source| self.refused(key, source))?;
        let sum = sink.finish();
        if sum.bytes != size {
            return Ok(None);
        }
        if replaces {
            let mut object = self.store.open(key)?;
            let found = crc32_of(&mut *object, size, buffer, self.stop)?;
            return Ok((found == Some(sum.crc32)).then_some(sum));
        }
        Ok(Some(sum))
    }

    /// Writes one object.
    fn write(
        &self,
        key: &str,
        buffer: &mut AlignedBuf,
        encode: impl FnOnce(&mut dyn ByteSink) -> Result<(), EncodeError>,
    ) -> Result<FileSum, DatasetError> {
        let writer = Writer::create(self.store, key, buffer)?.with_checksum();
        let mut sink = Stoppable { writer, stop: self.stop };
        encode(&mut sink).map_err(|source| self.refused(key, source))?;
        let written = sink.writer.publish(Durability::None)?;
        let crc32 = written.crc32.expect("a checksum was asked for");
        Ok(FileSum { bytes: written.bytes, crc32 })
    }

    fn refused(&self, key: &str, source: EncodeError) -> DatasetError {
        DatasetError::Generate { file: self.store.locate(key), source }
    }
}

impl Made {
    fn count(self, done: &mut GenerationProgress) {
        let (files, bytes) = match self {
            Self::Written { bytes } => (1, bytes),
            Self::Kept { file_bytes, bytes } => {
                done.kept_files += 1;
                done.kept_bytes += file_bytes;
                (1, bytes)
            }
        };
        done.files += files;
        done.bytes += bytes;
    }
}

/// A writer as the sink that formats write to; a stop request ends it between two pieces.
struct Stoppable<'a> {
    writer: Writer<&'a mut AlignedBuf>,
    stop: &'a AtomicBool,
}

impl ByteSink for Stoppable<'_> {
    fn space(&mut self, want: usize) -> Result<&mut [u8], StreamError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("generation was stopped".into());
        }
        Ok(self.writer.space(want)?)
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StreamError> {
        Ok(self.writer.patch(offset, bytes)?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
