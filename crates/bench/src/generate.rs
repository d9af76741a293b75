//! Makes the data set: DLIO's names, folders and sizes, contents that neither compress nor repeat.
//!
//! A pool of writers takes files off one list; a file is generated piece by piece straight into the
//! writer's buffer and appears under its name only when it is complete. What was asked to stop or
//! ran out of room leaves complete files and nothing else.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use feedline_clock::Clock;
use feedline_formats::{Content, Element, FileSpec, Format, Sink, StreamError};
use feedline_loader::FileNames;
use feedline_store::{AlignedBuf, Durability, Kind, Store, Writer};
use feedline_workload::Dataset;

use crate::error::BenchError;
use crate::names::NameRule;
use crate::observer::{Generating, Observer};
use crate::plan::Plan;
use crate::sizes::SampleSizes;

/// Writers at a time: enough to keep a device busy, few enough to keep their files sequential.
const WRITERS: u64 = 4;
/// What a writer collects before it calls the store.
const BUFFER_BYTES: usize = 1 << 20;

/// A finished (or stopped) generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Files written.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Time that took.
    pub wall_ns: u64,
}

/// What the writers need.
pub(crate) struct Generator<'a> {
    pub(crate) clock: &'a Clock,
    pub(crate) store: &'a dyn Store,
    pub(crate) plan: &'a Plan,
    pub(crate) dataset: &'a Dataset,
    pub(crate) format: &'a dyn Format,
    pub(crate) element: Element,
    pub(crate) seed: u64,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) observer: &'a dyn Observer,
}

impl Generator<'_> {
    /// Writes the training files, then the evaluation files.
    pub(crate) fn run(&self) -> Result<Generated, BenchError> {
        let begin = self.clock.now();
        let files_total = self.files_total();
        let bytes_total = self.check_room()?;
        for rule in [&self.plan.train_files, &self.plan.eval_files] {
            for number in 0..rule.subfolders.max(1) {
                let mut folder = String::new();
                rule.write_folder(number, &mut folder);
                self.store.make_folder(&folder)?;
            }
        }
        let list = Mutex::new((0, SampleSizes::new(self.dataset)));
        let done = Mutex::new(Generating { files_total, bytes_total, ..Generating::default() });
        self.observer.generating(*lock(&done));
        let failure = Mutex::new(None);
        self.clock.scope(|scope| {
            for writer in 0..WRITERS.min(files_total) {
                let (list, done, failure) = (&list, &done, &failure);
                let started = scope.spawn(format!("writer-{writer}"), move || {
                    let mut buffer = AlignedBuf::new(BUFFER_BYTES);
                    while let Some(file) = self.next_file(list, files_total, failure) {
                        match self.write(&file, &mut buffer) {
                            Ok(Some(size)) => {
                                let mut done = lock(done);
                                done.files += 1;
                                done.bytes += size;
                                self.observer.generating(*done);
                            }
                            Ok(None) => return,
                            Err(error) => {
                                lock(failure).get_or_insert(error);
                            }
                        }
                    }
                });
                if let Err(source) = started {
                    let name = format!("writer {writer}");
                    lock(failure).get_or_insert(BenchError::NoThread { name, source });
                    break;
                }
            }
        });
        self.observer.phase_ends();
        match lock(&failure).take() {
            Some(error) => Err(error),
            None => {
                let Generating { files, bytes, .. } = *lock(&done);
                Ok(Generated { files, bytes, wall_ns: self.clock.now() - begin })
            }
        }
    }

    fn files_total(&self) -> u64 {
        self.plan.train_files.total + self.plan.eval_files.total
    }

    /// Bytes that the set takes, or an error if they cannot fit.
    pub(crate) fn check_room(&self) -> Result<u64, BenchError> {
        let folder = self.store.locate("");
        if self.store.kind("")? == Some(Kind::File) {
            return Err(BenchError::NotAFolder { folder });
        }
        let free = self.store.free_bytes("")?.unwrap_or(u64::MAX);
        let needed = self.bytes_up_to(free);
        // Files of an earlier generation make room one by one as they are replaced.
        if needed > free && needed > free.saturating_add(self.bytes_to_replace(needed - free)?) {
            return Err(BenchError::NoSpace { folder, needed, free });
        }
        Ok(needed)
    }

    /// Bytes of the files that are there already, counted only until `enough`.
    fn bytes_to_replace(&self, enough: u64) -> Result<u64, BenchError> {
        let mut sum = 0u64;
        for index in 0..self.files_total() {
            let key = self.key(index);
            if sum >= enough || self.store.kind(&key)? != Some(Kind::File) {
                break;
            }
            sum = sum.saturating_add(self.store.open(&key)?.len()?);
        }
        Ok(sum)
    }

    /// Bytes of all files; with files of different size, only until they exceed `limit`.
    fn bytes_up_to(&self, limit: u64) -> u64 {
        let mut sizes = SampleSizes::new(self.dataset);
        let files = self.files_total();
        let mut size = |index| self.format.size(&self.spec(index, sizes.next_dims())).bytes();
        let first = size(0);
        if SampleSizes::new(self.dataset).is_uniform() {
            // A synthetic file holds its own number, so the last one is the longest.
            return first.max(size(files - 1)).saturating_mul(files);
        }
        let mut sum = first;
        for index in 1..files {
            if sum > limit || self.stop.load(Ordering::Relaxed) {
                break;
            }
            sum = sum.saturating_add(size(index));
        }
        sum
    }

    fn next_file(
        &self,
        list: &Mutex<(u64, SampleSizes)>,
        files_total: u64,
        failure: &Mutex<Option<BenchError>>,
    ) -> Option<FileSpec> {
        if self.stop.load(Ordering::Relaxed) || lock(failure).is_some() {
            return None;
        }
        let (next, sizes) = &mut *lock(list);
        if *next == files_total {
            return None;
        }
        let file = self.spec(*next, sizes.next_dims());
        *next += 1;
        Some(file)
    }

    fn spec(&self, index: u64, dims: Vec<u64>) -> FileSpec {
        FileSpec { dims, samples: self.plan.samples_per_file, element: self.element, index }
    }

    /// Writes one file; `None` if it was stopped in the middle, which leaves nothing.
    fn write(&self, file: &FileSpec, buffer: &mut AlignedBuf) -> Result<Option<u64>, BenchError> {
        let key = self.key(file.index);
        let writer = Writer::create(self.store, &key, buffer)?;
        let mut sink = Stoppable { writer, stop: self.stop };
        let content = Content::new(self.seed, file.index);
        match self.format.encode(file, &content, &mut sink) {
            Ok(()) => {
                let written = sink.writer.written();
                sink.writer.publish(Durability::None)?;
                Ok(Some(written))
            }
            Err(_) if self.stop.load(Ordering::Relaxed) => Ok(None),
            Err(source) => Err(BenchError::Generate { file: self.store.locate(&key), source }),
        }
    }

    fn key(&self, index: u64) -> String {
        let train = self.plan.train_files.total;
        let (rule, number): (&NameRule, u64) = if index < train {
            (&self.plan.train_files, index)
        } else {
            (&self.plan.eval_files, index - train)
        };
        let mut key = String::new();
        rule.write_key(number, &mut key);
        key
    }
}

/// A writer as the sink that formats write to; a stop request ends it between two pieces.
struct Stoppable<'a> {
    writer: Writer<'a>,
    stop: &'a AtomicBool,
}

impl Sink for Stoppable<'_> {
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
