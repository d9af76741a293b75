//! What can be wrong with a workload, and where.

use crate::sections::dataset::Format;
use crate::sections::reader::DataLoader;
use crate::sections::workload::Framework;

/// Where in the user's input something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, or the name of a shipped workload.
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
    /// The key with the number of files.
    pub const fn files_key(self) -> &'static str {
        match self {
            Self::Train => "dataset.num_files_train",
            Self::Evaluation => "dataset.num_files_eval",
        }
    }

    /// The key with the batch size.
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

/// Every error of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum WorkloadError {
    /// The text is not YAML.
    #[error("{place}: not valid YAML: {reason}")]
    YamlSyntax { place: Place, reason: String },
    /// A key stands twice in one mapping.
    #[error("{place}: key `{key}` stands twice in one mapping, first at line {first_line}")]
    DuplicateKey { place: Place, key: String, first_line: u32 },
    /// A key is a list or a mapping.
    #[error("{place}: a key must be plain text, found {found}")]
    KeyNotScalar { place: Place, found: &'static str },
    /// A merge key holds no mapping.
    #[error("{place}: `<<` expects a mapping or a list of mappings, found {found}")]
    MergeNotMap { place: Place, found: String },
    /// An alias stands inside what it names.
    #[error("{place}: an alias stands inside its own anchor")]
    AliasCycle { place: Place },
    /// Nesting or alias expansion beyond what any workload needs.
    #[error("{place}: more than {limit} {what}")]
    YamlTooLarge { place: Place, limit: usize, what: &'static str },
    /// A second document in the file.
    #[error("{place}: expected one YAML document, found a second")]
    ManyDocuments { place: Place },
    /// The file holds no mapping.
    #[error("{place}: a workload is a mapping of sections, found {found}")]
    RootNotMap { place: Place, found: String },

    /// `${…}` that names nothing.
    #[error("{place}: `{key}` refers to `${{{expression}}}`, which does not exist")]
    UnresolvedReference { place: Place, key: String, expression: String },
    /// `${…}` that comes back to itself.
    #[error("{place}: `{key}` refers to itself through `${{{expression}}}`")]
    CircularReference { place: Place, key: String, expression: String },
    /// `${…}` that is not of a known form.
    #[error("{place}: `{key}` holds `{expression}`: {reason}")]
    BadReference { place: Place, key: String, expression: String, reason: &'static str },

    /// An override that the grammar does not know.
    #[error("override `{text}`, character {column}: {reason}")]
    OverrideSyntax { text: String, column: usize, reason: String },
    /// `key=value` on a key that the workload does not have.
    #[error("override `{text}`: the workload has no key `{key}`")]
    OverrideAbsent { text: String, key: String, nearest: Option<String> },
    /// `+key=value` on a key that the workload has.
    #[error("override `{text}`: the workload already has key `{key}`")]
    OverrideExists { text: String, key: String },
    /// `~key` on a key that the workload does not have.
    #[error("override `{text}`: there is no key `{key}` to delete")]
    DeleteAbsent { text: String, key: String, nearest: Option<String> },
    /// `~key=value` on a key with another value.
    #[error("override `{text}`: `{key}` is {found}, so it is not deleted")]
    DeleteMismatch { text: String, key: String, found: String },
    /// A list stands where an override wants a mapping.
    #[error("override `{text}`: `{key}` is a list and has no keys")]
    OverrideThroughList { text: String, key: String },

    /// A flag that the command line does not have.
    #[error("unknown flag `{flag}`")]
    UnknownFlag { flag: String, nearest: Option<&'static str> },
    /// A flag without its value.
    #[error("flag `{flag}` expects {expected}")]
    FlagValue { flag: String, expected: &'static str },
    /// A flag of Hydra's that has no meaning here.
    #[error("flag `{flag}` is not supported")]
    UnsupportedFlag { flag: String, hint: &'static str },

    /// No shipped workload and no file of this name.
    #[error("no workload is named `{name}`")]
    UnknownWorkload { name: String, nearest: Vec<&'static str> },

    /// A value of the wrong type or out of range.
    #[error("{place}: `{key}` expects {expected}, found {found}")]
    WrongValue { place: Place, key: String, expected: String, found: String },
    /// A time with a parameter left out.
    #[error("{place}: `{key}` of type `{kind}` needs `{parameter}`")]
    TimeParameter { place: Place, key: String, kind: String, parameter: &'static str },

    /// `record_dims[0]` cannot be split over the HDF5 datasets.
    #[error(
        "`dataset.record_dims[0]` must be a multiple of `dataset.hdf5.num_dset_per_record`, \
         found {first_dim} and {num_dset_per_record}"
    )]
    DimsNotDivisible { first_dim: u64, num_dset_per_record: u64 },
    /// An image with more than two dimensions.
    #[error("{format} does not support more than 2 dimensions, but got {dims} dimensions")]
    ImageDims { format: Format, dims: usize },
    /// An explicit shape together with a spread of sizes.
    #[error(
        "`dataset.record_dims` fixes the size of a sample, but \
         `dataset.record_length_bytes_stdev` is {stdev}"
    )]
    DimsWithStdev { stdev: f64 },
    /// A format that nothing writes or reads.
    #[error("format `{format}` can be neither written nor read")]
    UnusableFormat { format: Format },
    /// The loader of the other framework.
    #[error("framework `{framework}` cannot use data loader `{loader}`")]
    FrameworkLoader { framework: Framework, loader: DataLoader },
    /// TFRecords with torch's loader.
    #[error("data loader `pytorch` cannot read format `tfrecord`")]
    TfrecordWithTorch,
    /// Two settings that exclude each other.
    #[error("`{first}` cannot go with `{second}`: {reason}")]
    Combination { first: String, second: String, reason: &'static str, hint: &'static str },
    /// A read call of a size that no reader has a buffer for.
    #[error("`reader.transfer_size` must be from 512 to 268435456, found {found}")]
    TransferSize { found: u64 },
    /// Buffers that no machine should be asked for.
    #[error(
        "`reader.queue_depth` {depth} reads of {piece} bytes are more than 4 GiB of memory a reader"
    )]
    InFlightBytes { depth: u32, piece: u64 },
    /// Direct reads want whole blocks.
    #[error(
        "`reader.transfer_size` must be a multiple of 4096 with `reader.odirect`, found {found}"
    )]
    TransferNotAligned { found: u64 },
    /// A plugin loader without a sampler.
    #[error("data loader class `{classname}` needs `reader.data_loader_sampler`")]
    SamplerMissing { classname: String },

    /// Fewer layers than pipeline stages.
    #[error(
        "`model.num_layers` must be at least `model.parallelism.pipeline`, \
         found {layers} layers for {pipeline} stages"
    )]
    LayersFewerThanStages { layers: u64, pipeline: u32 },
    /// ZeRO 3 with pipeline stages.
    #[error("ZeRO stage 3 excludes pipeline parallelism, found {pipeline} stages")]
    ZeroWithPipeline { pipeline: u32 },
    /// Data parallelism given where it follows from the ranks.
    #[error(
        "`model.parallelism.data` is {data}, but in checkpoint mode `default` it follows from the \
         number of ranks"
    )]
    DataParallelismGiven { data: u32 },
    /// Subset mode without the size of the whole.
    #[error("checkpoint mode `subset` needs `model.parallelism.data`")]
    SubsetWithoutData,
    /// More ranks than the model has.
    #[error(
        "checkpoint mode `subset` runs the first ranks of data x tensor x pipeline = {world}, \
         found {ranks} ranks"
    )]
    SubsetTooSmall { ranks: u32, world: u64 },
    /// The ranks do not fill whole copies of the model.
    #[error(
        "the number of ranks must be a multiple of tensor x pipeline = {model_ranks}, found {ranks}"
    )]
    RanksNotMultiple { ranks: u32, model_ranks: u64 },
    /// More checkpoints read than written.
    #[error(
        "`checkpoint.num_checkpoints_read` must not exceed `checkpoint.num_checkpoints_write`, \
         found {read} and {write}"
    )]
    ReadsExceedWrites { read: u64, write: u64 },
    /// Checkpoints that are gone before they are read.
    #[error(
        "`checkpoint.num_checkpoints_read` must not exceed `checkpoint.keep_last`, found {read} and \
         {kept}"
    )]
    ReadsExceedKept { read: u64, kept: u64 },
    /// Pieces that no machine should be asked for.
    #[error(
        "`checkpoint.streams` {streams} of {chunk} bytes (`checkpoint.chunk_size`) are more than \
         4 GiB of memory a rank"
    )]
    ChunkBytes { streams: u32, chunk: u64 },
    /// Buffers that not every stream finds one in.
    #[error(
        "`checkpoint.pool_size` must hold {streams} chunks of {chunk} bytes, one a stream: at least \
         {needed}, found {found}"
    )]
    PoolTooSmall { found: u64, needed: u64, streams: u32, chunk: u64 },
    /// Page merging on random tensors.
    #[error("`checkpoint.ksm` needs `checkpoint.randomize_tensor: false`, found true")]
    KsmNeedsOnes,

    /// Nothing to do.
    #[error("every phase of `workflow` is off")]
    NothingToDo,
    /// Generation or training without files.
    #[error("`dataset.num_files_train` must be greater than 0 to generate or train, found 0")]
    NoTrainingFiles,
    /// More samples than can be numbered.
    #[error(
        "{files} training files of {samples} samples are more samples than Feedline can number (2^53)"
    )]
    TooManySamples { files: u64, samples: u64 },
    /// More bytes than can be counted.
    #[error(
        "samples of {sample_bytes:.3e} bytes, {samples} in all, exceed what Feedline can count \
         (10^15 bytes a sample, 10^18 in all)"
    )]
    TooManyBytes { sample_bytes: f64, samples: u64 },
    /// A log that would not stand beside the results.
    #[error("`output.log_file` expects the name of a file in the output folder, found \"{found}\"")]
    LogFileName { found: String },
    /// A time beyond any run.
    #[error("`{key}` is {seconds:e} s, expected at most {most} s")]
    TimeTooLong { key: &'static str, seconds: f64, most: f64 },
    /// More steps asked for than an epoch has.
    #[error("`train.total_training_steps` is {requested}, but an epoch has {available} steps")]
    StepsBeyondData { requested: u64, available: u64 },
    /// One batch is larger than the data set.
    #[error("{phase} has {samples} samples, but `{key}` is {batch}", key = phase.batch_key())]
    BatchBeyondData { phase: Phase, samples: u64, batch: u64 },
    /// The ranks together want more than the data set in one step.
    #[error(
        "{phase} has {samples} samples, but one step of {ranks} ranks with `{key}` {batch} takes \
         {needed}",
        key = phase.batch_key()
    )]
    RanksBeyondData { phase: Phase, samples: u64, batch: u64, ranks: u32, needed: u64 },
    /// Some rank has no file.
    #[error(
        "{phase} has {files} files, but `reader.sharding: files` gives each of {ranks} ranks its own"
    )]
    RanksBeyondFiles { phase: Phase, files: u64, ranks: u32 },
}

impl WorkloadError {
    /// What the user can type to get further, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::OverrideAbsent { text, nearest, .. } => {
                Some(absent_hint(text, nearest.as_deref()))
            }
            Self::OverrideExists { text, .. } => {
                Some(format!("change it with `++{}`", text.trim_start_matches('+')))
            }
            Self::DeleteAbsent { nearest, .. } => {
                nearest.as_ref().map(|key| format!("did you mean `~{key}`?"))
            }
            Self::UnknownFlag { nearest, .. } => {
                nearest.map(|flag| format!("did you mean `{flag}`?"))
            }
            Self::UnsupportedFlag { hint, .. } => Some((*hint).to_owned()),
            Self::UnknownWorkload { nearest, .. } if !nearest.is_empty() => {
                Some(format!("did you mean {}?", list_of_names(nearest)))
            }
            Self::BadReference { .. } => {
                Some("use `${section.key}` or `${now:%Y-%m-%d}`".to_owned())
            }
            Self::UnusableFormat { .. } => Some("use `dataset.format=hdf5`".to_owned()),
            Self::FrameworkLoader { framework, .. } => {
                Some(format!("use `reader.data_loader={framework}`, or change `framework`"))
            }
            Self::TfrecordWithTorch => {
                Some("use `framework=tensorflow`, or another `dataset.format`".to_owned())
            }
            Self::Combination { hint, .. } => Some((*hint).to_owned()),
            Self::SamplerMissing { .. } => {
                Some("set `reader.data_loader_sampler` to `index` or `iterative`".to_owned())
            }
            Self::DataParallelismGiven { .. } => {
                Some("delete the key or set `checkpoint.mode=subset`".to_owned())
            }
            Self::RanksNotMultiple { model_ranks, .. } => {
                Some(format!("run with {model_ranks} ranks, or set `checkpoint.mode=subset`"))
            }
            Self::ReadsExceedKept { read, .. } => {
                Some(format!("use `checkpoint.keep_last={read}`, or leave the key out to keep all"))
            }
            Self::ChunkBytes { .. } => {
                Some("lower `checkpoint.streams` or `checkpoint.chunk_size`".to_owned())
            }
            Self::PoolTooSmall { needed, .. } => {
                Some(format!("use `checkpoint.pool_size={needed}`, or lower `checkpoint.streams`"))
            }
            Self::NothingToDo => {
                Some("set `workflow.generate_data=true` or `workflow.train=true`".to_owned())
            }
            Self::StepsBeyondData { available, .. } => {
                Some(format!("use at most `train.total_training_steps={available}`"))
            }
            Self::BatchBeyondData { phase, batch, .. } => Some(format!(
                "raise `{}` or lower `{}` from {batch}",
                phase.files_key(),
                phase.batch_key()
            )),
            Self::RanksBeyondFiles { files, .. } => Some(format!(
                "use at most {files} ranks, or `reader.sharding=records` to read all files on all ranks"
            )),
            Self::RanksBeyondData { phase, samples, batch, .. } => Some(format!(
                "use at most {} ranks, or raise `{}`",
                samples / batch.max(&1),
                phase.files_key()
            )),
            _ => None,
        }
    }
}

/// How to go on after an override of a key that is not there.
fn absent_hint(text: &str, nearest: Option<&str>) -> String {
    let add = format!("add it with `+{text}` or `++{text}`");
    match nearest {
        Some(key) => format!("did you mean `{key}`? otherwise {add}"),
        None => add,
    }
}

/// `a`, `b` or `c`.
fn list_of_names(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
