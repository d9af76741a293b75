//! What can go wrong while batches are read.

use feedline_dataset::DatasetError;
use feedline_store::StoreError;

/// What loading samples returns.
pub type Result<T, E = LoadError> = std::result::Result<T, E>;

/// Why a batch could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A sample could not be read.
    #[error(transparent)]
    Sample(#[from] DatasetError),
    /// The bytes of a batch could not be moved.
    #[error("batch {batch} cannot be read")]
    Bytes {
        /// The batch's number in the epoch.
        batch: u64,
        /// What is wrong, and with which file.
        #[source]
        source: StoreError,
    },
    /// The reader ended in a fault of Feedline's own; its words are on stderr.
    #[error("the reader of batch {batch} panicked")]
    Panicked {
        /// The batch's number in the epoch.
        batch: u64,
    },
    /// The system starts no further thread.
    #[error("reader {reader} cannot be started")]
    NoThread {
        /// The number of the reader within its loader.
        reader: usize,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// An epoch was begun while another one of the same loader had its readers.
    #[error("the loader's last epoch has not ended")]
    EpochRunning,
    /// Reading was asked to stop.
    #[error("reading was stopped")]
    Stopped,
}
