//! What can stop a run.

use feedline_checkpoint::{CheckpointError, ContainerError, LayoutError};
use feedline_dataset::DatasetError;
use feedline_formats::OptionError;
use feedline_loader::LoadError;
use feedline_ranks::Aborted;
use feedline_store::{RemoteFault, StoreError};

/// What a step of a run returns.
pub type Result<T, E = BenchError> = std::result::Result<T, E>;

/// Why a run did not finish. Every variant names the user's own object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum BenchError {
    /// The workload asks for something that Feedline does not do yet.
    #[error("{what} cannot be run yet; {instead}")]
    Unsupported { what: String, instead: String },
    /// DLIO itself would train on nothing here (Q0).
    #[error(
        "as DLIO, this run has no step: {files} files are trimmed to a multiple of {unit} \
         (samples per file x batch x ranks)"
    )]
    DlioTrimsAll { files: u64, unit: u64 },
    /// DLIO 2.0.0 itself would wait for ever here: the last rank has no sample where it looks for one.
    #[error(
        "DLIO 2.0.0 hangs where {units} samples or files cannot be dealt to {ranks} ranks evenly"
    )]
    DlioStuck { units: u64, ranks: u64 },
    /// The workload insists on a calibration, and there is none.
    #[error("`reader.interpreter: calibrated`: this machine has no calibration")]
    NotCalibrated,
    /// The workload insists on a calibration, and there is none for its format.
    #[error("`reader.interpreter: calibrated`: {file} does not cover this kind of {format}")]
    FormatNotCalibrated { format: String, file: String },
    /// The batches that workers have ready need more memory than there is.
    #[error(
        "batches that are read ahead need {needed} bytes of memory on {ranks} ranks, as in \
         PyTorch, and {available} are available"
    )]
    BatchesBeyondMemory { ranks: u32, needed: u64, available: u64 },
    /// The format cannot be laid out as the workload says.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The data set cannot be made, found or checked.
    #[error(transparent)]
    Dataset(DatasetError),
    /// The store refused something.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The storage is too full for the checkpoints that exist at a time.
    #[error("{folder}: checkpoints need {needed} bytes, {free} are free")]
    NoRoomToSave { folder: String, needed: u64, free: u64 },
    /// Buffers or tensors do not fit into memory.
    #[error("checkpoints need {needed} bytes of memory on this host, {available} are available")]
    NoMemory { needed: u64, available: u64 },
    /// There is a file where the checkpoint folder should be.
    #[error("{folder}: is a file, expected a folder")]
    NoCheckpointFolder { folder: String },
    /// There are fewer checkpoints than are to be read.
    #[error("{folder}: expected {expected} complete checkpoints, found {found}")]
    FewCheckpoints { folder: String, expected: u64, found: u64 },
    /// The model's state cannot be laid out on the ranks.
    #[error(transparent)]
    Model(#[from] LayoutError),
    /// A checkpoint could not be saved or loaded.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// A batch could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A result file could not be written.
    #[error("{file}: cannot be written")]
    Output { file: String, source: std::io::Error },
    /// Another run is writing into the output folder.
    #[error("{folder}: another run is writing its results here")]
    OutputBusy { folder: String },
    /// The output folder holds the results of an earlier run.
    #[error("{folder}: holds the results of an earlier run")]
    OutputTaken { folder: String },
    /// The system starts no further thread.
    #[error("{name}: cannot start its thread")]
    NoThread { name: String, source: std::io::Error },
    /// A rank ended in a fault of Feedline's own; its words are on stderr.
    #[error("rank {rank} panicked")]
    RankPanicked { rank: u32 },
    /// A machine of the job does not see the data set.
    #[error("{file}: missing on host {host}, but present on the host of rank 0")]
    NotOnHost { file: String, host: String },
    /// A message of another process makes no sense.
    #[error("process {process} of the job runs a different version of Feedline")]
    OtherBuild { process: u32 },
    /// It was asked to stop and has nothing to show for it.
    #[error("stopped")]
    Stopped,
    /// Another rank ended the job.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}

/// The command line that hints are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `feedline run`.
    Feedline,
    /// `dlio_benchmark`.
    Dlio,
}

impl Dialect {
    /// How a key of the workload is set.
    fn set(self, key: &str, value: &str) -> String {
        match self {
            Self::Feedline => format!("--set {key}={value}"),
            Self::Dlio => format!("++workload.{key}={value}"),
        }
    }

    fn generate(self) -> String {
        match self {
            Self::Feedline => "--generate".to_owned(),
            Self::Dlio => self.set("workflow.generate_data", "True"),
        }
    }

    fn data(self) -> String {
        match self {
            Self::Feedline => "--data DIR".to_owned(),
            Self::Dlio => self.set("dataset.data_folder", "DIR"),
        }
    }

    fn out(self) -> &'static str {
        match self {
            Self::Feedline => "--out DIR",
            Self::Dlio => "hydra.run.dir=DIR",
        }
    }
}

/// Storage errors pass through unchanged, except refused direct I/O: its remedy differs between
/// checkpoints and data.
impl From<CheckpointError> for BenchError {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Store(error) if !matches!(error, StoreError::DirectRefused { .. }) => {
                Self::Store(error)
            }
            other => Self::Checkpoint(other),
        }
    }
}

/// What is not about the data set itself is the run's own error.
impl From<DatasetError> for BenchError {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Store(error) => Self::Store(error),
            DatasetError::Output { file, source } => Self::Output { file, source },
            DatasetError::NoThread { name, source } => Self::NoThread { name, source },
            DatasetError::OtherBuild { process } => Self::OtherBuild { process },
            DatasetError::Options(error) => Self::Options(error),
            DatasetError::Aborted(aborted) => Self::Aborted(aborted),
            other => Self::Dataset(other),
        }
    }
}

impl BenchError {
    /// What the user can type next, if there is something.
    pub fn hint(&self, dialect: Dialect) -> Option<String> {
        match self {
            Self::Dataset(error) => dataset_hint(error, dialect),
            Self::Checkpoint(error) => checkpoint_hint(error, dialect),
            Self::Load(_) | Self::Store(_) => self.storage_hint(dialect),
            _ => self.resource_hint(dialect).or_else(|| self.job_hint(dialect)),
        }
    }

    /// If reading or the store itself went wrong.
    fn storage_hint(&self, dialect: Dialect) -> Option<String> {
        if let Some(fault) = self.remote_fault() {
            return remote_hint(fault, dialect);
        }
        match self {
            Self::Load(LoadError::Sample(error)) => dataset_hint(error, dialect),
            _ if self.is_direct_refused() => Some(format!(
                "read through the page cache: {}",
                dialect.set("reader.odirect", "false")
            )),
            Self::Store(StoreError::RingRefused { .. }) => {
                Some(format!("read with plain calls: {}", dialect.set("reader.io_engine", "sync")))
            }
            Self::Store(error) => error.hint(),
            _ => None,
        }
    }

    /// If a calibration, memory, room or a checkpoint is missing.
    fn resource_hint(&self, dialect: Dialect) -> Option<String> {
        let set = |key, value| dialect.set(key, value);
        Some(match self {
            Self::NotCalibrated => "measure it with `feedline calibrate`, in a few minutes".into(),
            Self::FormatNotCalibrated { format, .. } => format!(
                "`feedline calibrate --formats {format}` measures uncompressed files, or leave the \
                 framework out with {}",
                set("reader.interpreter", "none")
            ),
            Self::BatchesBeyondMemory { .. } => format!(
                "read fewer batches ahead with {}, or leave the framework out with {}",
                set("reader.prefetch_size", "1"),
                set("reader.interpreter", "none")
            ),
            Self::NoRoomToSave { .. } => format!(
                "choose another place with {}, or keep fewer with {}",
                set("checkpoint.checkpoint_folder", "DIR"),
                set("checkpoint.keep_last", "1")
            ),
            Self::NoMemory { .. } => format!(
                "use a smaller pool with {}, or {}",
                set("checkpoint.pool_size", "BYTES"),
                set("checkpoint.state", "generated")
            ),
            Self::NoCheckpointFolder { .. } => {
                format!("choose another place with {}", set("checkpoint.checkpoint_folder", "DIR"))
            }
            Self::FewCheckpoints { .. } => {
                format!("write them first: {}", set("checkpoint.num_checkpoints_write", "N"))
            }
            _ => return None,
        })
    }

    /// If the job is not set up as it should be: its threads, hosts, semantics or results.
    fn job_hint(&self, dialect: Dialect) -> Option<String> {
        Some(match self {
            Self::NoThread { .. } => {
                "start fewer accelerators or reader threads, or raise `ulimit -u`".into()
            }
            Self::NotOnHost { .. } => {
                "all hosts of a job must see the same data folder: name a shared one".into()
            }
            Self::OtherBuild { .. } => "install the same build on every host".into(),
            Self::DlioTrimsAll { .. } => "leave --as-dlio out".into(),
            Self::DlioStuck { units, ranks } => format!(
                "use {} of them, or {} for DLIO's main branch",
                (units / ranks).max(1) * ranks,
                dialect.set("reader.sharding", "dlio")
            ),
            Self::OutputBusy { .. } => format!("choose another folder with {}", dialect.out()),
            Self::OutputTaken { .. } => {
                "choose another folder with --out DIR, or replace them with --overwrite".into()
            }
            _ => return None,
        })
    }

    fn is_direct_refused(&self) -> bool {
        self.of_store(|error| matches!(error, StoreError::DirectRefused { .. }).then_some(()))
            .is_some()
    }

    /// What went wrong at the other end of a network, if that is the cause.
    fn remote_fault(&self) -> Option<RemoteFault> {
        self.of_store(|error| match error {
            StoreError::Remote { fault, .. } => Some(*fault),
            _ => None,
        })
    }

    /// What `look` finds in the first error of a store among the causes for which it finds something.
    fn of_store<T>(&self, look: impl Fn(&StoreError) -> Option<T>) -> Option<T> {
        let first: &dyn std::error::Error = match self {
            // Transparent: as a cause it would be passed over.
            Self::Store(error) => error,
            _ => self,
        };
        std::iter::successors(Some(first), |&cause| cause.source())
            .find_map(|cause| look(cause.downcast_ref()?))
    }
}

/// What the user can type if a data set is not what it should be.
fn dataset_hint(error: &DatasetError, dialect: Dialect) -> Option<String> {
    let (generate, data) = (dialect.generate(), dialect.data());
    match error {
        DatasetError::NoDataFolder { .. } | DatasetError::TooFewFiles { found: 0, .. } => {
            Some(format!("add {generate} to make the data set, or {data} to name its place"))
        }
        DatasetError::TooFewFiles { found, .. } => {
            let fewer = dialect.set("dataset.num_files_train", &found.to_string());
            Some(format!("add {generate} to make the data set, or {fewer}"))
        }
        DatasetError::Subfolders { key, found, .. } => Some(dialect.set(key, &found.to_string())),
        DatasetError::NoSpace { .. } => {
            let fewer = dialect.set("dataset.num_files_train", "N");
            Some(format!("choose another place with {data}, or fewer files with {fewer}"))
        }
        DatasetError::NotAFolder { .. } => Some(format!("choose another place with {data}")),
        DatasetError::NoFolder { .. } => Some("name the folder of a data set".into()),
        DatasetError::NoManifest { folder } => {
            Some(format!("`feedline run … --data {folder} --generate-only` writes one"))
        }
        DatasetError::ManifestIncomplete { folder, .. } => {
            Some(format!("`feedline run … --data {folder} --generate-only` makes what is missing"))
        }
        DatasetError::ManifestBroken { .. }
        | DatasetError::ManifestForeign { .. }
        | DatasetError::ManifestVersion { .. } => {
            Some(format!("remove it and make the data set again with {generate}"))
        }
        // The file is the user's, and generating would keep a file of the right size.
        DatasetError::Sample { .. } => {
            Some(format!("name another set with {data}; {generate} makes one in an empty folder"))
        }
        _ => None,
    }
}

/// What the user can type if a checkpoint is not what it should be.
fn checkpoint_hint(error: &CheckpointError, dialect: Dialect) -> Option<String> {
    Some(match error {
        CheckpointError::Ranks { saved, .. } => format!(
            "load it with {saved} ranks, or save with {}, which any number of ranks can load",
            dialect.set("checkpoint.container", "dcp")
        ),
        CheckpointError::Store(StoreError::DirectRefused { .. }) => {
            format!("write through the page cache: {}", dialect.set("checkpoint.odirect", "auto"))
        }
        CheckpointError::Tensor { .. } => {
            "load it with the `model` of the workload that it was saved with".to_owned()
        }
        CheckpointError::Container { source: ContainerError::Store(_), .. } => return None,
        CheckpointError::Differs { .. }
        | CheckpointError::Size { .. }
        | CheckpointError::Container { .. }
        | CheckpointError::Incomplete { .. }
        | CheckpointError::Description { .. } => format!(
            "remove that checkpoint and save it again with {}",
            dialect.set("checkpoint.num_checkpoints_write", "N")
        ),
        _ => return None,
    })
}

/// What the user can type against a fault of an object store.
fn remote_hint(fault: RemoteFault, dialect: Dialect) -> Option<String> {
    let option =
        |name: &str, value: &str| dialect.set(&format!("storage.storage_options.{name}"), value);
    Some(match fault {
        RemoteFault::Denied
        | RemoteFault::Signature
        | RemoteFault::Credentials
        | RemoteFault::NoCredentials => format!(
            "give the right AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (GOOGLE_*, AZURE_*), or {} \
             for public data",
            option("unsigned", "true")
        ),
        RemoteFault::NoBucket | RemoteFault::Unreachable => {
            format!("is the server right? name another one with {}", option("endpoint_url", "URL"))
        }
        RemoteFault::Region => option("region", "NAME"),
        RemoteFault::Stalled => {
            format!("wait longer with {}", option("stall_timeout", "SECONDS"))
        }
        RemoteFault::Server(501) | RemoteFault::Status(405) => format!(
            "a web server without WebDAV can only be read, with {}",
            dialect.set("dataset.skip_listing", "true")
        ),
        RemoteFault::Throttled | RemoteFault::Server(_) | RemoteFault::Broken => {
            format!("try more often with {}", option("s3_max_attempts", "N"))
        }
        _ => return None,
    })
}
