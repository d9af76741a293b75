//! `feedline.manifest.json`: what a data set was made from, and size and checksum of every file.
//!
//! Written and read entry by entry, since a set of millions of files is normal: one line of the file
//! is one entry. It appears only when it is complete. While a set is being made, a short manifest
//! without files is in its place and says so.

use feedline_store::{AlignedBuf, Durability, Store, StoreError, Writer};
use serde_json::Value;

use crate::recipe::Recipe;

/// Its name in the data folder.
pub const MANIFEST_NAME: &str = "feedline.manifest.json";
/// The version of the manifests that are written, and the last one that is read.
pub(crate) const MANIFEST_VERSION: u64 = 1;
/// What is collected before the store is called.
const BUFFER_BYTES: usize = 64 << 10;

/// Size and checksum of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct FileSum {
    pub(crate) bytes: u64,
    /// CRC-32 with zlib's polynomial.
    pub(crate) crc32: u32,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its key in the data folder.
    pub(crate) name: String,
    pub(crate) sum: FileSum,
}

/// Everything in a manifest before the list of files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    /// Whether all files have been made.
    pub(crate) complete: bool,
    /// Whether files of another set had the names of this one when it was begun. Until it is
    /// complete, a file of the right name and size may then still be one of theirs.
    pub(crate) replaces: bool,
    /// The workload that it was made for.
    pub(crate) workload: String,
    /// `None` if it cannot be a recipe of this version of Feedline.
    pub(crate) recipe: Option<Recipe>,
}

/// Files and bytes in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Totals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A manifest that is being written; dropped, it leaves nothing.
pub(crate) struct ManifestWriter {
    writer: Writer,
    totals: Totals,
}

impl ManifestWriter {
    pub(crate) fn begin(store: &dyn Store, head: &Head) -> Result<Self, StoreError> {
        let buffer = AlignedBuf::new(BUFFER_BYTES);
        let mut writer = Writer::create(store, MANIFEST_NAME, buffer)?;
        let replaces = if head.replaces { "  \"replaces\": true,\n" } else { "" };
        let recipe = serde_json::to_string(&head.recipe).unwrap_or_default();
        writer.write_all(
            format!(
                "{{\n  \"feedline_manifest\": {MANIFEST_VERSION},\n  \"complete\": {},\n{replaces}  \
                 \"workload\": {},\n  \"made_by\": \"feedline {}\",\n  \"recipe\": {recipe},\n  \
                 \"files\": [",
                head.complete,
                quoted(&head.workload),
                env!("CARGO_PKG_VERSION"),
            )
            .as_bytes(),
        )?;
        Ok(Self { writer, totals: Totals::default() })
    }

    pub(crate) fn add(&mut self, name: &str, sum: FileSum) -> Result<(), StoreError> {
        let comma = if self.totals.files == 0 { "" } else { "," };
        let (name, FileSum { bytes, crc32 }) = (quoted(name), sum);
        self.totals.add(bytes);
        self.writer.write_all(
            format!(
                "{comma}\n    {{\"name\": {name}, \"bytes\": {bytes}, \"crc32\": \"{crc32:08x}\"}}"
            )
            .as_bytes(),
        )
    }

    pub(crate) fn publish(mut self) -> Result<(), StoreError> {
        let Totals { files, bytes } = self.totals;
        let end = if files == 0 { "" } else { "\n  " };
        let end =
            format!("{end}],\n  \"totals\": {{\"files\": {files}, \"bytes\": {bytes}}}\n}}\n");
        self.writer.write_all(end.as_bytes())?;
        self.writer.publish(Durability::None).map(|_| ())
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
