//! A synthetic store that answers every key with one of a few objects in memory.
//!
//! For measuring the client alone: no device, no system call, no lock and no emulated latency, only
//! the copy. It is read-only and cannot be listed.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{
    Capabilities, EntryKind, FolderEntry, Object, Op, ReadQueue, Result, SequentialQueue, Store,
    StoreError, Upload, key, memory,
};

/// A store in which every key that ends with a known suffix is an object. Clones share the bytes.
#[derive(Debug, Clone)]
pub struct Looped {
    templates: Arc<[Template]>,
}

/// The objects of one suffix.
#[derive(Debug)]
struct Template {
    suffix: String,
    /// At least one; the hash of a key picks among them.
    objects: Vec<Arc<[u8]>>,
}

impl Looped {
    /// Gives every key that ends with one of the suffixes the bytes next to it. The longest matching
    /// suffix counts; among several entries with the same suffix, a key always gets the same one.
    pub fn new(objects: impl IntoIterator<Item = (String, Arc<[u8]>)>) -> Looped {
        let mut templates: Vec<Template> = Vec::new();
        for (suffix, bytes) in objects {
            match templates.iter_mut().find(|template| template.suffix == suffix) {
                Some(template) => template.objects.push(bytes),
                None => templates.push(Template { suffix, objects: vec![bytes] }),
            }
        }
        templates.sort_by_key(|template| std::cmp::Reverse(template.suffix.len()));
        Looped { templates: templates.into() }
    }

    fn find(&self, clean: &str) -> Option<&Arc<[u8]>> {
        let fits = |template: &&Template| clean.ends_with(&template.suffix);
        let objects = &self.templates.iter().find(fits)?.objects;
        let pick = match objects.len() {
            1 => 0,
            count => hash(clean) % count as u64,
        };
        Some(&objects[pick as usize])
    }

    fn get(&self, key: &str) -> Result<Arc<[u8]>> {
        let missing = || {
            let source = io::ErrorKind::NotFound.into();
            StoreError::Io { op: Op::Open, path: self.locate(key), source }
        };
        self.find(&key::object(key)?).cloned().ok_or_else(missing)
    }

    fn refused<T>(&self, op: Op, key: &str) -> Result<T> {
        Err(StoreError::ReadOnly { op, path: self.locate(key) })
    }
}

/// FNV-1a: the standard library's hash may change from release to release.
fn hash(key: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    // The low bits are weak, and names often differ in one digit only.
    hash ^ (hash >> 32)
}

impl Store for Looped {
    fn open(&self, key: &str) -> Result<Box<dyn Object>> {
        Ok(Box::new(LoopedObject { path: self.locate(key), bytes: self.get(key)? }))
    }

    fn create(&self, key: &str) -> Result<Box<dyn Upload>> {
        self.refused(Op::Create, key)
    }

    fn list(
        &self,
        folder: &str,
        _visit: &mut dyn FnMut(FolderEntry<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.refused(Op::List, folder)
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        self.refused(Op::MakeFolder, folder)
    }

    fn remove(&self, key: &str) -> Result<()> {
        self.refused(Op::Remove, key)
    }

    fn kind(&self, key: &str) -> Result<Option<EntryKind>> {
        Ok(self.find(&key::folder(key)?).map(|_| EntryKind::File))
    }

    fn free_bytes(&self, _folder: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { queue: true, ..Capabilities::NONE }
    }

    fn locate(&self, key: &str) -> String {
        format!("looped:{key}")
    }

    /// Memory has no latency to hide, so reads are sequential at every depth.
    fn queue(&self, _depth: usize) -> Result<Option<Box<dyn ReadQueue>>> {
        Ok(Some(Box::new(SequentialQueue::new(self.clone()))))
    }
}

struct LoopedObject {
    path: String,
    bytes: Arc<[u8]>,
}

impl Object for LoopedObject {
    fn len(&mut self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        memory::read_exact(&self.bytes, offset, buf, || self.path.clone())
    }

    fn read_up_to(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        Ok(memory::read_up_to(&self.bytes, offset, buf))
    }
}
