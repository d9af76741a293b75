//! What can go wrong.

use feedline_store::StoreError;

/// Why a file is not a checkpoint that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The file ends too early, or says something that cannot be.
    #[error("not a {container} file: {what} at byte {offset}")]
    Damaged {
        /// The format it was taken for.
        container: &'static str,
        /// What was found.
        what: &'static str,
        /// Where.
        offset: u64,
    },
    /// It is valid, but of a kind that is not read here.
    #[error("{container} file with {what}, which is not read here")]
    Unsupported {
        /// The format.
        container: &'static str,
        /// What of it.
        what: String,
    },
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
