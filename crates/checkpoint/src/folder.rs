//! How a checkpoint appears, is found, and goes: as a whole or not at all.
//!
//! Where folders can be renamed, all ranks write into a hidden folder, and the first rank gives it its
//! name when all are done. An object store has no such step: files go to their places, and what makes
//! them a checkpoint is its description, which is written last and removed first.

use std::ops::ControlFlow;

use feedline_store::{Durability, EntryKind, Store, StoreError, partial_name};
use serde::{Deserialize, Serialize};

use crate::CheckpointError;

/// The name of the description in a checkpoint's folder. Other tools pass over hidden files.
pub const DESCRIPTION_NAME: &str = ".feedline-checkpoint.json";
/// What this version of the program writes there.
const FORMAT: u32 = 1;
/// Longest description that is read; one of a thousand ranks takes a few hundred KiB.
const DESCRIPTION_BYTES_MAX: u64 = 256 << 20;

/// What a checkpoint says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Version of this description.
    pub format: u32,
    /// The container of its files.
    pub container: String,
    /// Ranks that saved it.
    pub ranks: u32,
    /// When: the epoch,
    pub epoch: u32,
    /// and the step.
    pub step: u64,
    /// What its contents follow from.
    pub seed: u64,
    /// Which state of the model it is.
    pub version: u64,
    /// Whether tensors hold random values; ones if not.
    pub random: bool,
    /// Bytes of its tensors.
    pub tensor_bytes: u64,
    /// Files and their sizes in bytes.
    pub files: Vec<(String, u64)>,
}

impl Description {
    /// One in today's format, with nothing in it.
    pub fn new(container: &str, ranks: u32) -> Description {
        Description {
            format: FORMAT,
            container: container.to_owned(),
            ranks,
            epoch: 0,
            step: 0,
            seed: 0,
            version: 0,
            random: true,
            tensor_bytes: 0,
            files: Vec::new(),
        }
    }

    /// Reads that of the checkpoint in `folder`, if it is complete.
    pub fn read(store: &dyn Store, folder: &str) -> Result<Description, CheckpointError> {
        let key = format!("{folder}/{DESCRIPTION_NAME}");
        let file = || store.locate(&key);
        let Some(size) = store.size(&key)? else {
            return Err(CheckpointError::Incomplete { folder: store.locate(folder) });
        };
        if size > DESCRIPTION_BYTES_MAX {
            let why = format!("it has {size} bytes");
            return Err(CheckpointError::Description { file: file(), why });
        }
        let mut text = vec![0; size as usize];
        store.open(&key)?.read_exact_at(0, &mut text)?;
        let read: Description = serde_json::from_slice(&text).map_err(|error| {
            CheckpointError::Description { file: file(), why: error.to_string() }
        })?;
        if read.format != FORMAT {
            let why = format!("expected format {FORMAT}, found {}", read.format);
            return Err(CheckpointError::Description { file: file(), why });
        }
        Ok(read)
    }

    /// Makes sure that a file, of which it says that it has `expected` bytes, has them.
    pub fn check_file(
        store: &dyn Store,
        folder: &str,
        (file, expected): (&str, u64),
    ) -> Result<(), CheckpointError> {
        let key = format!("{folder}/{file}");
        match store.size(&key)? {
            Some(found) if found == expected => Ok(()),
            found => Err(CheckpointError::Size { file: store.locate(&key), expected, found }),
        }
    }

    /// Its text.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers")
    }
}

/// A checkpoint that is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What it will be called.
    pub name: String,
    /// The folder that files are written to: hidden, or already the final one.
    pub folder: String,
}

impl Draft {
    /// A checkpoint called `name`; `tag` is [`Draft::tag`] of the job, the same on all ranks.
    pub fn new(store: &dyn Store, name: &str, tag: &str) -> Draft {
        let folder = match store.capabilities().folder_renames {
            true => format!(".{name}{tag}"),
            false => name.to_owned(),
        };
        Draft { name: name.to_owned(), folder }
    }

    /// What the hidden folders of a job end with: tells whose they are, so that they can be removed
    /// when the job was killed.
    pub fn tag() -> String {
        // Without the dot in front, which comes before the name that this is the end of.
        partial_name("")[1..].to_owned()
    }

    /// Makes room: to be called by one rank, before any rank writes.
    pub fn begin(&self, store: &dyn Store) -> Result<(), CheckpointError> {
        if !self.is_hidden() {
            store.remove(&format!("{}/{DESCRIPTION_NAME}", self.name))?;
        }
        store.remove_tree(&self.folder)?;
        store.make_folder(&self.folder)?;
        Ok(())
    }

    /// Whether it is written under another name than its own.
    pub fn is_hidden(&self) -> bool {
        self.folder != self.name
    }

    /// Gives a hidden one its name, in place of what had it: to be called by one rank, when all have
    /// written and its description is among what was written.
    pub fn publish(
        &self,
        store: &dyn Store,
        durability: Durability,
    ) -> Result<(), CheckpointError> {
        store.replace_folder(&self.folder, &self.name, durability)?;
        // Holds what had its name before, if anything had.
        store.remove_tree(&self.folder)?;
        Ok(())
    }

    /// Takes back what was written. What cannot be removed stays hidden; an error is on its way
    /// already.
    pub fn discard(&self, store: &dyn Store) {
        let _ = store.remove_tree(&self.folder);
    }
}

/// Removes a checkpoint; one that is cut short does not pass for whole.
pub fn remove(store: &dyn Store, name: &str, tag: &str) -> Result<(), StoreError> {
    if !store.capabilities().folder_renames {
        store.remove(&format!("{name}/{DESCRIPTION_NAME}"))?;
        return store.remove_tree(name);
    }
    // Not the name of a draft: one that shall be called the same may be under way.
    let aside = format!(".{name}.removed{tag}");
    store.remove_tree(&aside)?;
    store.replace_folder(name, &aside, Durability::None)?;
    store.remove_tree(&aside)
}

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Listing {
    /// The complete checkpoints, in the order of their epochs and steps.
    pub complete: Vec<(String, Description)>,
    /// Why others may be complete or not: what describes them cannot be read.
    pub unreadable: Vec<CheckpointError>,
}

/// Looks for checkpoints in a folder.
pub fn list(store: &dyn Store) -> Result<Listing, CheckpointError> {
    let mut names = Vec::new();
    if store.kind("")? == Some(EntryKind::Folder) {
        store.list("", &mut |entry| {
            if entry.kind == EntryKind::Folder {
                names.push(entry.name.to_owned());
            }
            ControlFlow::Continue(())
        })?;
    }
    let mut found = Listing::default();
    for name in names {
        match Description::read(store, &name) {
            Ok(description) => found.complete.push((name, description)),
            Err(CheckpointError::Incomplete { .. }) => {}
            Err(error @ CheckpointError::Description { .. }) => found.unreadable.push(error),
            Err(error) => return Err(error),
        }
    }
    found.complete.sort_by_key(|(_, description)| (description.epoch, description.step));
    Ok(found)
}
