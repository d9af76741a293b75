//! What can go wrong.

use feedline_formats::DecodeError;
use feedline_store::StoreError;

/// What reading or writing a checkpoint file returns.
pub type Result<T, E = ContainerError> = std::result::Result<T, E>;

/// Why a file is not a checkpoint that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum ContainerError {
    /// The file ends too early, or says something that cannot be.
    #[error("not a {container} file: {what} at byte {offset}")]
    Damaged { container: &'static str, what: &'static str, offset: u64 },
    /// It is valid, but of a kind that is not read here.
    #[error("unsupported {container} file: {what}")]
    Unsupported { container: &'static str, what: String },
    /// What describes the tensors would take more memory than it may.
    #[error("{container} file: {what} of {needed} bytes, the limit is {limit}")]
    TooMuch { container: &'static str, what: &'static str, needed: u64, limit: u64 },
    /// The header of a safetensors file is wrong.
    #[error(transparent)]
    Header(#[from] DecodeError),
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a checkpoint could not be saved or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file is not what its name says.
    #[error("cannot read {file}")]
    Container {
        /// The file.
        file: String,
        /// What is wrong with it.
        source: ContainerError,
    },
    /// A tensor is not in its file, or is not as the model says.
    #[error("{file}: tensor {tensor}: expected {expected}, found {found}")]
    Tensor {
        /// The file.
        file: String,
        /// Name of the tensor.
        tensor: String,
        /// What the model says.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A byte is not the one that was saved.
    #[error("{file}: tensor {tensor} differs from what was saved, somewhere after byte {at}")]
    Differs {
        /// The file.
        file: String,
        /// Name of the tensor.
        tensor: String,
        /// Where the stretch with the difference begins.
        at: u64,
    },
    /// A file of a checkpoint has another size than when it was saved, or is gone.
    #[error("{file}: expected {expected} bytes, found {}", found_bytes(*.found))]
    Size {
        /// The file.
        file: String,
        /// Bytes that the checkpoint's description gives it.
        expected: u64,
        /// Bytes that it has, if it is there.
        found: Option<u64>,
    },
    /// A folder holds no checkpoint that was completed.
    #[error("no complete checkpoint in {folder}")]
    Incomplete {
        /// The folder.
        folder: String,
    },
    /// A checkpoint's own description cannot be read.
    #[error("{file} does not describe a checkpoint: {why}")]
    Description {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The checkpoint was made for other ranks, in a container whose files cannot be split differently.
    #[error(
        "{folder} was saved by {saved} ranks as {container} and cannot be loaded by {ranks} ranks"
    )]
    Ranks {
        /// The folder.
        folder: String,
        /// Ranks that saved it.
        saved: u32,
        /// Ranks that want it.
        ranks: u32,
        /// Container of the checkpoint.
        container: String,
    },
    /// The system gave no thread.
    #[error("cannot start a thread")]
    Thread {
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
}

fn found_bytes(found: Option<u64>) -> String {
    found.map_or_else(|| "no file".to_owned(), |bytes| bytes.to_string())
}
