//! The files that a reader keeps open between samples.

use std::collections::HashMap;
use std::sync::Arc;

use feedline_formats::{
    ByteRange, ByteSource, Companion, DecodeError, Format, Opened, ReadUnit, SampleRead,
    SampleSink, Scratch, StreamError,
};
use feedline_store::{BLOCK_BYTES, Metered, Object, Store, StoreError};

use crate::{CacheLook, DataSet};

/// Indexes, and maps, that are kept even when files are not: DLIO's readers get them once.
const INDEXES_MAX: usize = 64;

type Accounted = Metered<Arc<dyn Store>>;

/// Files by their number in the list.
pub(crate) struct Handles {
    format: Arc<dyn Format>,
    /// Open files; 0 closes a file after every sample.
    files_max: usize,
    look: Option<Arc<CacheLook>>,
    kept: HashMap<u64, Handle>,
    uses: u64,
}

/// What is kept of a file.
struct Handle {
    opened: Box<dyn Opened>,
    object: Option<Box<dyn Object>>,
    /// Of a format that is read whole: what reading it found. Further samples cost nothing.
    read: Option<SampleRead>,
    used: u64,
}

impl Handles {
    pub(crate) fn new(data: &DataSet) -> Self {
        Self {
            format: Arc::clone(&data.format),
            files_max: data.reading.kept_files,
            look: data.look.clone(),
            kept: HashMap::new(),
            uses: 0,
        }
    }

    /// Reads sample `index` of file `number`, which is called `key`.
    pub(crate) fn read(
        &mut self,
        store: &Accounted,
        (number, key): (u64, &str),
        index: u64,
        scratch: &mut Scratch,
    ) -> Result<SampleRead, DecodeError> {
        if let Some(read) = self.kept.get(&number).and_then(|handle| handle.read)
            && (read.samples == 0 || index < read.samples)
        {
            self.touch(number);
            return Ok(read);
        }
        let mut handle = self.handle(store, (number, key), scratch)?;
        let whole = self.format.facts().read_unit == ReadUnit::File;
        let mut file =
            File { store, key, whole, object: handle.object.take(), look: self.look(number) };
        let read = handle.opened.read(&mut file, index, scratch)?;
        handle.object = file.object;
        if self.format.facts().read_unit == ReadUnit::File {
            handle.read = Some(read);
            handle.object = None;
        }
        self.keep(number, handle);
        Ok(read)
    }

    /// Reads sample `index` of file `number`, which is called `key`, into `sink`.
    pub(crate) fn read_into(
        &mut self,
        store: &Accounted,
        (number, key): (u64, &str),
        index: u64,
        scratch: &mut Scratch,
        sink: &mut dyn SampleSink,
    ) -> Result<SampleRead, DecodeError> {
        let mut handle = self.handle(store, (number, key), scratch)?;
        let whole = self.format.facts().read_unit == ReadUnit::File;
        let mut file =
            File { store, key, whole, object: handle.object.take(), look: self.look(number) };
        let read = handle.opened.read_into(&mut file, index, scratch, sink)?;
        handle.object = file.object;
        self.keep(number, handle);
        Ok(read)
    }

    /// Adds the ranges of the file that hold sample `index`.
    pub(crate) fn locate(
        &mut self,
        store: &Accounted,
        (number, key): (u64, &str),
        index: u64,
        scratch: &mut Scratch,
        ranges: &mut Vec<ByteRange>,
    ) -> Result<(), DecodeError> {
        if self.format.facts().read_unit == ReadUnit::File {
            ranges.push(ByteRange::WHOLE);
            return Ok(());
        }
        let mut handle = self.handle(store, (number, key), scratch)?;
        let mut file = File {
            store,
            key,
            whole: false,
            object: handle.object.take(),
            look: self.look(number),
        };
        handle.opened.locate(&mut file, index, scratch, ranges)?;
        handle.object = file.object;
        self.keep(number, handle);
        Ok(())
    }

    /// Closes and forgets everything.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// The file's handle, opened if it is not kept.
    fn handle(
        &mut self,
        store: &Accounted,
        (number, key): (u64, &str),
        scratch: &mut Scratch,
    ) -> Result<Handle, DecodeError> {
        if let Some(handle) = self.kept.remove(&number) {
            return Ok(handle);
        }
        let whole = self.format.facts().read_unit == ReadUnit::File;
        let mut file = File { store, key, whole, object: None, look: self.look(number) };
        let opened = self.format.open(&mut file, scratch)?;
        Ok(Handle { opened, object: file.object, read: None, used: 0 })
    }

    fn look(&self, number: u64) -> Option<(&CacheLook, u64)> {
        self.look.as_deref().map(|look| (look, number))
    }

    fn keep(&mut self, number: u64, mut handle: Handle) {
        let most = match self.format.facts().read_unit {
            ReadUnit::IndexedSample | ReadUnit::IndexedSampleOfOpenFile => {
                self.files_max.max(INDEXES_MAX)
            }
            ReadUnit::File | ReadUnit::Sample | ReadUnit::Nothing => self.files_max,
        };
        if self.files_max == 0 && self.format.facts().read_unit == ReadUnit::IndexedSample {
            handle.object = None;
        }
        if most == 0 {
            return;
        }
        while self.kept.len() >= most {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let oldest = *oldest.expect("a full list has a first").0;
            self.kept.remove(&oldest);
        }
        self.kept.insert(number, handle);
        self.touch(number);
    }

    fn touch(&mut self, number: u64) {
        self.uses += 1;
        if let Some(handle) = self.kept.get_mut(&number) {
            handle.used = self.uses;
        }
    }
}

/// A file as the byte source that formats read from. It is opened by the first call, so a format
/// that needs no bytes does no I/O.
pub(crate) struct File<'a> {
    pub(crate) store: &'a Accounted,
    pub(crate) key: &'a str,
    /// It will be read from front to back, once.
    pub(crate) whole: bool,
    pub(crate) object: Option<Box<dyn Object>>,
    /// Who wants to know, when it is opened, how much of it is in the page cache; the file's number.
    look: Option<(&'a CacheLook, u64)>,
}

impl File<'_> {
    fn object(&mut self) -> Result<&mut dyn Object, StoreError> {
        if self.object.is_none() {
            let mut object = match self.whole {
                true => self.store.open_whole(self.key)?,
                false => self.store.open(self.key)?,
            };
            if let Some((look, number)) = &self.look {
                look.opened(*number, &mut *object);
            }
            self.object = Some(object);
        }
        Ok(self.object.as_deref_mut().expect("opened above"))
    }
}

impl ByteSource for File<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.object()?.len()?)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        Ok(self.object()?.read_exact_at(offset, buf)?)
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, StreamError> {
        Ok(self.object()?.read_up_to(offset, buf)?)
    }

    fn preferred_bytes(&self) -> usize {
        self.object.as_ref().map_or(BLOCK_BYTES, |object| object.preferred_bytes())
    }

    fn piece_bytes(&self) -> usize {
        self.store.read_bytes()
    }

    fn block_bytes(&self) -> usize {
        self.store.block_bytes()
    }

    fn companion(&mut self, which: &Companion) -> Result<Box<dyn ByteSource + '_>, StreamError> {
        let object = self.store.open(&which.key(self.key))?;
        Ok(Box::new(CompanionFile { store: self.store, object }))
    }
}

/// A companion of a data file.
struct CompanionFile<'a> {
    store: &'a Accounted,
    object: Box<dyn Object>,
}

impl ByteSource for CompanionFile<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.object.len()?)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        Ok(self.object.read_exact_at(offset, buf)?)
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, StreamError> {
        Ok(self.object.read_up_to(offset, buf)?)
    }

    fn preferred_bytes(&self) -> usize {
        self.object.preferred_bytes()
    }

    fn piece_bytes(&self) -> usize {
        self.store.read_bytes()
    }

    fn block_bytes(&self) -> usize {
        self.store.block_bytes()
    }
}
