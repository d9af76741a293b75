//! Errors in workload files and overrides, with the place they come from.

use feedline_formats::SampleFormat;

use crate::sections::reader::DataLoader;
use crate::sections::workload::Framework;

/// A position in the user's input, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of a built-in workload.
    pub origin: String,
    /// Line counted from 1; 0 means the command line.
    pub line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str("command line"),
            line => write!(f, "{}:{line}", self.origin),
        }
    }
}

/// The two phases that step through a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Training, on `num_files_train` with `batch_size`.
    Train,
    /// Evaluation, on `num_files_eval` with `batch_size_eval`.
    Evaluation,
}

impl Phase {
    /// The key that holds the number of files of this phase.
    pub const fn files_key(self) -> &'static str {
        match self {
            Self::Train => "dataset.num_files_train",
            Self::Evaluation => "dataset.num_files_eval",
        }
    }

    /// The key that holds the batch size of this phase.
    pub const fn batch_key(self) -> &'static str {
        match self {
            Self::Train => "reader.batch_size",
            Self::Evaluation => "reader.batch_size_eval",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Train => "training",
            Self::Evaluation => "evaluation",
        })
    }
}

/// What reading a workload returns.
pub type Result<T, E = WorkloadError> = std::result::Result<T, E>;

/// Every error of this crate. [`WorkloadError::hint`] suggests what to type.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum WorkloadError {
    /// The text is not YAML.
    #[error("{place}: not valid YAML: {reason}")]
    YamlSyntax { place: Place, reason: String },
    /// A mapping has the same key twice.
    #[error("{place}: duplicate key `{key}`, first used on line {first_line}")]
    DuplicateKey { place: Place, key: String, first_line: u32 },
    /// A key is a list or a mapping.
    #[error("{place}: a key must be plain text, found {found}")]
    KeyNotScalar { place: Place, found: &'static str },
    /// A merge key (`<<`) whose value is not a mapping.
    #[error("{place}: `<<` expects a mapping or a list of mappings, found {found}")]
    MergeNotMap { place: Place, found: String },
    /// An alias inside the value that it refers to.
    #[error("{place}: alias refers to a value that contains it")]
    AliasCycle { place: Place },
    /// Nesting or alias expansion that no workload needs; bounds memory.
    #[error("{place}: more than {limit} {what}")]
    YamlTooLarge { place: Place, limit: usize, what: &'static str },
    /// A file with more than one YAML document.
    #[error("{place}: expected one YAML document, found a second")]
    ManyDocuments { place: Place },
    /// A file whose top level is not a mapping.
    #[error("{place}: expected a mapping of sections, found {found}")]
    RootNotMap { place: Place, found: String },

    /// A `${…}` that refers to a key which does not exist.
    #[error("{place}: `{key}` refers to `${{{expression}}}`, which does not exist")]
    UnresolvedReference { place: Place, key: String, expression: String },
    /// A `${…}` that leads back to its own key.
    #[error("{place}: `{key}` refers to itself through `${{{expression}}}`")]
    CircularReference { place: Place, key: String, expression: String },
    /// A `${…}` that is neither a key nor a time.
    #[error("{place}: invalid reference `{expression}` in `{key}`: {reason}")]
    BadReference { place: Place, key: String, expression: String, reason: &'static str },

    /// An override that is not in Hydra's grammar; `column` counts characters from 1.
    #[error("override `{text}`, character {column}: {reason}")]
    OverrideSyntax { text: String, column: usize, reason: String },
    /// `key=value` for a key that the workload does not have.
    #[error("override `{text}`: the workload has no key `{key}`")]
    OverrideAbsent { text: String, key: String, nearest: Option<String> },
    /// `+key=value` for a key that the workload already has.
    #[error("override `{text}`: the workload already has key `{key}`")]
    OverrideExists { text: String, key: String },
    /// `~key` for a key that the workload does not have.
    #[error("override `{text}`: cannot delete `{key}`, the workload does not have it")]
    DeleteAbsent { text: String, key: String, nearest: Option<String> },
    /// `~key=value` for a key that has another value.
    #[error("override `{text}`: cannot delete `{key}`, its value is {found}")]
    DeleteMismatch { text: String, key: String, found: String },
    /// A key below a list.
    #[error("override `{text}`: `{key}` is a list and has no keys")]
    OverrideThroughList { text: String, key: String },

    /// A flag that neither Hydra nor DLIO has.
    #[error("unknown flag `{flag}`")]
    UnknownFlag { flag: String, nearest: Option<&'static str> },
    /// A flag with a missing, unexpected or unknown value.
    #[error("flag `{flag}` expects {expected}")]
    FlagValue { flag: String, expected: &'static str },
    /// A flag of Hydra that Feedline cannot honor.
    #[error("flag `{flag}` is not supported")]
    UnsupportedFlag { flag: String, hint: &'static str },

    /// A name that no built-in workload has.
    #[error("unknown workload `{name}`")]
    UnknownWorkload { name: String, nearest: Vec<&'static str> },

    /// A value of the wrong type or out of range.
    #[error("{place}: `{key}` expects {expected}, found {found}")]
    WrongValue { place: Place, key: String, expected: String, found: String },
    /// A distribution without one of its parameters.
    #[error("{place}: `{key}` has type `{kind}`, which requires `{parameter}`")]
    TimeParameter { place: Place, key: String, kind: String, parameter: &'static str },

    /// A `record_dims[0]` that cannot be split evenly over the HDF5 datasets.
    #[error(
        "`dataset.record_dims[0]` must be a multiple of `dataset.hdf5.num_dset_per_record`, \
         found {first_dim} and {num_dset_per_record}"
    )]
    DimsNotDivisible { first_dim: u64, num_dset_per_record: u64 },
    /// An image with more than two dimensions.
    #[error(
        "format `{format}` supports at most 2 dimensions, found {dims} in `dataset.record_dims`"
    )]
    ImageDims { format: &'static SampleFormat, dims: usize },
    /// An explicit shape together with a standard deviation of sizes.
    #[error(
        "`dataset.record_dims` fixes the size of a sample, but \
         `dataset.record_length_bytes_stdev` is {stdev}"
    )]
    DimsWithStdev { stdev: f64 },
    /// PyTorch with TensorFlow's loader, or the other way round.
    #[error("framework `{framework}` cannot use data loader `{loader}`")]
    FrameworkLoader { framework: Framework, loader: DataLoader },
    /// TFRecord files with PyTorch's loader, which cannot read them in DLIO either.
    #[error("data loader `pytorch` cannot read format `tfrecord`")]
    TfrecordWithTorch,
    /// Two settings that exclude each other.
    #[error("`{first}` cannot be combined with `{second}`: {reason}")]
    Combination { first: String, second: String, reason: &'static str, hint: &'static str },
    /// A read size outside the range of the readers' buffers.
    #[error("`reader.transfer_size` must be between 512 and 268435456 bytes, found {found}")]
    TransferSize { found: u64 },
    /// Read buffers beyond what one reader may use.
    #[error(
        "`reader.queue_depth` of {depth} with reads of {piece} bytes exceeds 4 GiB of memory per reader"
    )]
    InFlightBytes { depth: u32, piece: u64 },
    /// A read size that `O_DIRECT` would refuse.
    #[error(
        "`reader.transfer_size` must be a multiple of 4096 with `reader.odirect`, found {found}"
    )]
    TransferNotAligned { found: u64 },
    /// A plugin loader without a sampler.
    #[error("data loader class `{classname}` requires `reader.data_loader_sampler`")]
    SamplerMissing { classname: String },

    /// Fewer layers than pipeline stages.
    #[error(
        "`model.num_layers` must be at least `model.parallelism.pipeline`, \
         found {layers} layers for {pipeline} stages"
    )]
    LayersFewerThanStages { layers: u64, pipeline: u32 },
    /// ZeRO 3 with pipeline stages.
    #[error("ZeRO stage 3 cannot be combined with pipeline parallelism, found {pipeline} stages")]
    ZeroWithPipeline { pipeline: u32 },
    /// Data parallelism set where it follows from the ranks.
    #[error(
        "`model.parallelism.data` is {data}, but checkpoint mode `default` derives it from the number \
         of ranks"
    )]
    DataParallelismGiven { data: u32 },
    /// Subset mode without the number of copies of the whole model.
    #[error("checkpoint mode `subset` requires `model.parallelism.data`")]
    SubsetWithoutData,
    /// More ranks than the whole model has.
    #[error(
        "checkpoint mode `subset` runs the first ranks of data x tensor x pipeline = {world}, \
         found {ranks} ranks"
    )]
    SubsetTooSmall { ranks: u32, world: u64 },
    /// A number of ranks that is not a whole number of copies of the model.
    #[error(
        "the number of ranks must be a multiple of tensor x pipeline = {model_ranks}, found {ranks}"
    )]
    RanksNotMultiple { ranks: u32, model_ranks: u64 },
    /// More checkpoints to read than are written.
    #[error(
        "`checkpoint.num_checkpoints_read` must not exceed `checkpoint.num_checkpoints_write`, \
         found {read} and {write}"
    )]
    ReadsExceedWrites { read: u64, write: u64 },
    /// More checkpoints to read than are kept.
    #[error(
        "`checkpoint.num_checkpoints_read` must not exceed `checkpoint.keep_last`, found {read} and \
         {kept}"
    )]
    ReadsExceedKept { read: u64, kept: u64 },
    /// Checkpoint buffers beyond what one rank may use.
    #[error(
        "`checkpoint.streams` of {streams} with a `checkpoint.chunk_size` of {chunk} bytes exceeds 4 GiB \
         of memory per rank"
    )]
    ChunkBytes { streams: u32, chunk: u64 },
    /// A pool with fewer buffers than streams.
    #[error(
        "`checkpoint.pool_size` must hold one chunk of {chunk} bytes for each of {streams} streams: \
         expected at least {needed}, found {found}"
    )]
    PoolTooSmall { found: u64, needed: u64, streams: u32, chunk: u64 },
    /// Page merging with random tensors, which have no equal pages.
    #[error("`checkpoint.ksm` requires `checkpoint.randomize_tensor: false`, found true")]
    KsmNeedsOnes,

    /// A workflow without any phase.
    #[error("nothing to do: every phase of `workflow` is off")]
    NothingToDo,
    /// Generation or training without files.
    #[error("`dataset.num_files_train` must be greater than 0 to generate or train, found 0")]
    NoTrainingFiles,
    /// More samples than an exact index can number.
    #[error("{files} training files with {samples} samples each exceed the limit of 2^53 samples")]
    TooManySamples { files: u64, samples: u64 },
    /// A sample or a data set beyond the sizes that metrics can add up.
    #[error(
        "{samples} samples of {sample_bytes:.3e} bytes exceed the limit of 10^15 bytes per sample and \
         10^18 bytes per data set"
    )]
    TooManyBytes { sample_bytes: f64, samples: u64 },
    /// A log outside the output folder.
    #[error("`output.log_file` expects a file name without folders, found \"{found}\"")]
    LogFileName { found: String },
    /// An emulated time longer than any run.
    #[error("`{key}` expects at most {most} s, found {seconds:e} s")]
    TimeTooLong { key: &'static str, seconds: f64, most: f64 },
    /// More steps than an epoch has.
    #[error("`train.total_training_steps` is {requested}, but an epoch has {available} steps")]
    StepsBeyondData { requested: u64, available: u64 },
    /// A batch that is larger than the data set.
    #[error("{phase} has {samples} samples, but `{key}` is {batch}", key = phase.batch_key())]
    BatchBeyondData { phase: Phase, samples: u64, batch: u64 },
    /// A step of all ranks that needs more samples than the data set has.
    #[error(
        "{phase} has {samples} samples, but one step of {ranks} ranks with a `{key}` of {batch} needs \
         {needed}",
        key = phase.batch_key()
    )]
    RanksBeyondData { phase: Phase, samples: u64, batch: u64, ranks: u32, needed: u64 },
    /// Fewer files than ranks where each rank reads files of its own.
    #[error(
        "{phase} has {files} files, but `reader.sharding: files` needs one for each of {ranks} ranks"
    )]
    RanksBeyondFiles { phase: Phase, files: u64, ranks: u32 },
}

impl WorkloadError {
    /// What to type to fix the error, if there is something.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::OverrideAbsent { text, nearest, .. } => absent_hint(text, nearest.as_deref()),
            Self::OverrideExists { text, .. } => {
                format!("change it with `++{}`", text.trim_start_matches('+'))
            }
            Self::DeleteAbsent { nearest: Some(key), .. } => format!("did you mean `~{key}`?"),
            Self::UnknownFlag { nearest: Some(flag), .. } => format!("did you mean `{flag}`?"),
            Self::UnknownWorkload { nearest, .. } if !nearest.is_empty() => {
                format!("did you mean {}?", list_of_names(nearest))
            }
            Self::BadReference { .. } => "use `${section.key}` or `${now:%Y-%m-%d}`".into(),
            Self::FrameworkLoader { framework, .. } => {
                format!("use `reader.data_loader={framework}`, or change `framework`")
            }
            Self::TfrecordWithTorch => {
                "use `framework=tensorflow`, or another `dataset.format`".into()
            }
            Self::UnsupportedFlag { hint, .. } | Self::Combination { hint, .. } => (*hint).into(),
            Self::SamplerMissing { .. } => {
                "set `reader.data_loader_sampler` to `index` or `iterative`".into()
            }
            Self::DataParallelismGiven { .. } => {
                "remove the key, or set `checkpoint.mode=subset`".into()
            }
            Self::RanksNotMultiple { model_ranks, .. } => {
                format!("run with {model_ranks} ranks, or set `checkpoint.mode=subset`")
            }
            Self::ReadsExceedKept { read, .. } => {
                format!("use `checkpoint.keep_last={read}`, or remove the key to keep all")
            }
            Self::ChunkBytes { .. } => {
                "lower `checkpoint.streams` or `checkpoint.chunk_size`".into()
            }
            Self::PoolTooSmall { needed, .. } => {
                format!("use `checkpoint.pool_size={needed}`, or lower `checkpoint.streams`")
            }
            Self::NothingToDo => {
                "set `workflow.generate_data=true` or `workflow.train=true`".into()
            }
            Self::StepsBeyondData { available, .. } => {
                format!("use at most `train.total_training_steps={available}`")
            }
            Self::BatchBeyondData { phase, batch, .. } => format!(
                "raise `{}` or lower `{}` from {batch}",
                phase.files_key(),
                phase.batch_key()
            ),
            Self::RanksBeyondFiles { files, .. } => format!(
                "use at most {files} ranks, or `reader.sharding=records` to read all files on all ranks"
            ),
            Self::RanksBeyondData { phase, samples, batch, .. } => format!(
                "use at most {} ranks, or raise `{}`",
                samples / batch.max(&1),
                phase.files_key()
            ),
            _ => return None,
        })
    }
}

/// The hint for an override of a key that does not exist.
fn absent_hint(text: &str, nearest: Option<&str>) -> String {
    let add = format!("add it with `+{text}` or `++{text}`");
    match nearest {
        Some(key) => format!("did you mean `{key}`? Otherwise, {add}"),
        None => add,
    }
}

/// Joins names as `a`, `b` or `c`.
fn list_of_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
