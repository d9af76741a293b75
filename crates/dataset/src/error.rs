//! What can go wrong with a data set.

use feedline_formats::{DecodeError, EncodeError, OptionError};
use feedline_ranks::Aborted;
use feedline_store::StoreError;

use crate::manifest::MANIFEST_NAME;

/// What an operation on a data set returns.
pub type Result<T, E = DatasetError> = std::result::Result<T, E>;

/// Why a data set cannot be made, found, checked or read. Every variant names the user's own object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// A folder of the data set does not exist.
    #[error("{folder}: no such data folder")]
    NoDataFolder {
        /// The folder as the user knows it.
        folder: String,
    },
    /// There is a file in place of a folder.
    #[error("{folder}: is a file, expected a folder")]
    NotAFolder {
        /// The path as the user knows it.
        folder: String,
    },
    /// The data set has fewer files than are to be read.
    #[error("{folder}: {found} {format} files found, expected {expected}")]
    TooFewFiles {
        /// The folder as the user knows it.
        folder: String,
        /// Files that are there.
        found: u64,
        /// Files that are to be read.
        expected: u64,
        /// Name of the format that was looked for.
        format: &'static str,
    },
    /// The data set has sub-folders that the workload does not mention.
    #[error("{folder}: holds {found} folders and no {format} file, but `{key}` is {configured}")]
    Subfolders {
        /// The folder as the user knows it.
        folder: String,
        /// Sub-folders that are there.
        found: u64,
        /// The extension of the files that were looked for.
        format: &'static str,
        /// The workload key that counts sub-folders.
        key: &'static str,
        /// The value of that key.
        configured: u64,
    },
    /// The file system has too little room for the data set.
    #[error("{folder}: the data set needs at least {needed} bytes, {free} are free")]
    NoSpace {
        /// The folder as the user knows it.
        folder: String,
        /// Bytes to be written; with files of different sizes, those of the first ones.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A data file could not be written.
    #[error("{file}: cannot be generated")]
    Generate {
        /// The file as the user knows it.
        file: String,
        /// What happened.
        source: EncodeError,
    },
    /// The samples do not fit into a file of the format.
    #[error(transparent)]
    Layout(EncodeError),
    /// A folder that was named does not exist.
    #[error("{folder}: no such folder")]
    NoFolder {
        /// The folder as the user knows it.
        folder: String,
    },
    /// The data set has no manifest.
    #[error("{folder}: has no {MANIFEST_NAME}")]
    NoManifest {
        /// The folder as the user knows it.
        folder: String,
    },
    /// The data set was not made to its end.
    #[error("{folder}: the data set of workload {workload} is incomplete")]
    ManifestIncomplete {
        /// The folder as the user knows it.
        folder: String,
        /// The workload that it is made for.
        workload: String,
    },
    /// The text of a manifest is wrong.
    #[error("{file}:{line}:{column}: {what}")]
    ManifestBroken {
        /// The manifest as the user knows it.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// The column, from 1; 0 before the first.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// Something else has the name of the manifest.
    #[error("{file}: is not a Feedline manifest: it has no `feedline_manifest`")]
    ManifestForeign {
        /// The file as the user knows it.
        file: String,
    },
    /// The manifest is one of another version of Feedline.
    #[error("{file}: manifest version {found}, expected {known}")]
    ManifestVersion {
        /// The manifest as the user knows it.
        file: String,
        /// Its version.
        found: u64,
        /// The version that can be read.
        known: u64,
    },
    /// The format cannot be laid out as the workload says.
    /// The store refused something.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The format cannot be built with these options.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// A sample's file could not be opened or read, or its content does not match its format.
    #[error("{file}: sample {index} cannot be read")]
    Sample {
        /// The file as the user knows it.
        file: String,
        /// The sample's number in the file.
        index: u64,
        /// What is wrong, and at which byte.
        #[source]
        source: DecodeError,
    },
    /// No file of the folder has the extension of a known format.
    #[error("{folder}: has no file of a known format")]
    NoSampleFiles {
        /// The folder as the user knows it.
        folder: String,
    },
    /// The files of the folder are of several formats.
    #[error("{folder}: expected files of one format, found {}", extensions.join(", "))]
    MixedFormats {
        /// The folder as the user knows it.
        folder: String,
        /// The extensions of its files.
        extensions: Vec<&'static str>,
    },
    /// A reader ended in a bug of Feedline's own; its words are on stderr.
    #[error("{file}: the reader of sample {index} panicked")]
    ReaderPanicked {
        /// The file as the user knows it.
        file: String,
        /// The sample's number in the file.
        index: u64,
    },
    /// A temporary file could not be written.
    #[error("{file}: cannot be written")]
    Output {
        /// The file.
        file: String,
        /// What happened.
        source: std::io::Error,
    },
    /// The system starts no further thread.
    #[error("{name}: cannot start its thread")]
    NoThread {
        /// What it was to do.
        name: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// A message of another process of the job cannot be understood.
    #[error("process {process} of the job runs a different version of Feedline")]
    OtherBuild {
        /// The process.
        process: u32,
    },
    /// Another rank ended the job.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}
