//! Any folder of sample files: found by their extensions, their samples counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use feedline_clock::Clock;
use feedline_formats::{FORMATS, Format, Options};
use feedline_store::{ScanOptions, Store, scan};

use crate::data_set::{DataSet, Reading};
use crate::discover::has_extension;
use crate::error::{DatasetError, Result};
use crate::names::NameList;
use crate::order::{EpochOrder, SampleIndex};
use crate::reader::SampleReader;
use crate::samples::{ReadOptions, Samples};

/// Files whose samples are counted at the same time.
const FILES_AT_A_TIME: usize = 16;

/// The files of one format in a folder, and how many samples each of them has.
#[derive(Clone)]
pub struct SampleFolder {
    /// The files, in the order of their keys.
    pub data: DataSet,
    /// Their samples. A file that cannot be counted has one, so that reading it gives its error.
    pub index: SampleIndex,
}

impl SampleFolder {
    /// Opens `folder` and all folders in it, whose files are of one format.
    ///
    /// # Errors
    /// When no file, or files of several formats are found; see [`SampleFolder::open_all`].
    pub fn open(clock: &Clock, store: &Arc<dyn Store>, folder: &str) -> Result<Self> {
        let mut found = Self::open_all(clock, store, folder)?;
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(DatasetError::NoSampleFiles { folder: store.locate(folder) }),
            _ => {
                let extensions = found.iter().map(|one| one.data.format.extension()).collect();
                Err(DatasetError::MixedFormats { folder: store.locate(folder), extensions })
            }
        }
    }

    /// Opens the files of every format that is found in `folder` and the folders in it, one data set
    /// per format. Files without a known extension, and hidden ones, are passed over.
    pub fn open_all(clock: &Clock, store: &Arc<dyn Store>, folder: &str) -> Result<Vec<Self>> {
        let known = known_formats()?;
        let mut keys: Vec<Vec<String>> = vec![Vec::new(); known.len()];
        let options = ScanOptions { clock: clock.clone(), ..ScanOptions::default() };
        for object in scan(&**store, folder, options) {
            let key = object?.key;
            let name = key.rsplit('/').next().unwrap_or_default();
            if let Some(number) = known.iter().position(|(ending, _)| has_extension(name, ending)) {
                keys[number].push(key);
            }
        }
        let found = known.into_iter().zip(keys).filter(|(_, keys)| !keys.is_empty());
        Ok(found.map(|((_, format), keys)| Self::counted(clock, store, format, &keys)).collect())
    }

    /// Reads the samples in `order`, which is one of [`index`](SampleFolder::index).
    pub fn samples(
        &self,
        clock: &Clock,
        order: EpochOrder,
        options: ReadOptions,
    ) -> Result<Samples> {
        Samples::start(clock, &self.data, order, options)
    }

    fn counted(
        clock: &Clock,
        store: &Arc<dyn Store>,
        format: Arc<dyn Format>,
        keys: &[String],
    ) -> Self {
        let data = DataSet {
            store: Arc::clone(store),
            names: Arc::new(NameList::from_sorted(keys.iter().map(String::as_str))),
            format,
            reading: Reading::default(),
            stop: Arc::default(),
            look: None,
        };
        let index = SampleIndex::from_counts(sample_counts(clock, &data, keys.len()));
        Self { data, index }
    }
}

/// The samples of each of the `files` files, counted many files at a time: a remote store answers each
/// request after its latency. A file that cannot be counted has one sample.
fn sample_counts(clock: &Clock, data: &DataSet, files: usize) -> Vec<u64> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(vec![1; files]));
    let count = || {
        let mut reader = SampleReader::new(clock, data.clone());
        loop {
            let file = next.fetch_add(1, Ordering::Relaxed);
            if file >= files {
                return;
            }
            let samples = reader.samples_of(file as u64).unwrap_or(1);
            counts.lock().unwrap_or_else(PoisonError::into_inner)[file] = samples;
        }
    };
    clock.scope(|scope| {
        for number in 1..files.min(FILES_AT_A_TIME) {
            // Fewer threads are slower, not wrong.
            if scope.spawn(format!("sample counter {number}"), count).is_err() {
                break;
            }
        }
        count();
    });
    counts.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// An extension and the format of the files that have it.
type KnownFormat = (&'static str, Arc<dyn Format>);

/// Every format by its extensions, the longest first: `csv.gz` files end with `gz` too.
fn known_formats() -> Result<Vec<KnownFormat>> {
    let mut known: Vec<KnownFormat> = Vec::new();
    for entry in FORMATS.iter().filter(|entry| entry.name != "synthetic") {
        let format: Arc<dyn Format> = entry.build(&Options::default())?.into();
        known.extend(entry.other_extensions.iter().map(|other| (*other, Arc::clone(&format))));
        for &compression in entry.compressions {
            let options = Options { compression, ..Options::default() };
            let packed: Arc<dyn Format> = entry.build(&options)?.into();
            if packed.extension() != format.extension() {
                known.push((packed.extension(), packed));
            }
        }
        known.push((format.extension(), format));
    }
    Ok(known)
}
