//! Progress of generating or verifying a data set.

use serde::{Deserialize, Serialize};

/// Progress of a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationProgress {
    /// Data files finished, including kept ones.
    pub files: u64,
    /// Files in all.
    pub files_total: u64,
    /// Bytes of the finished files.
    pub bytes: u64,
    /// Bytes in all; an estimate where files are compressed, so there may be more in the end.
    pub bytes_total: u64,
    /// Files among the finished ones that existed before.
    pub kept_files: u64,
    /// Bytes of the kept files.
    pub kept_bytes: u64,
    /// Requests sent over a network.
    pub requests: u64,
    /// Requests that repeated a failed one.
    pub retries: u64,
}

impl GenerationProgress {
    /// How far all processes of a job are if every one is as far as this one, which was at `begun`
    /// when they began.
    pub(crate) fn times(&self, begun: &Self, processes: u64) -> Self {
        let grown = |now: u64, then: u64| then + (now - then).saturating_mul(processes);
        Self {
            files: grown(self.files, begun.files).min(self.files_total),
            bytes: grown(self.bytes, begun.bytes),
            kept_files: grown(self.kept_files, begun.kept_files).min(self.files_total),
            kept_bytes: grown(self.kept_bytes, begun.kept_bytes),
            ..*self
        }
    }
}

/// Progress of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerificationProgress {
    /// Files checked so far.
    pub files: u64,
    /// Files in all.
    pub files_total: u64,
    /// Bytes of the checked files.
    pub bytes: u64,
    /// Bytes in all.
    pub bytes_total: u64,
    /// Files that are missing or differ from the manifest.
    pub bad_files: u64,
}
