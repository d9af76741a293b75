//! Why a model has no layout.

/// Why a model cannot be spread over a number of ranks. Names the keys of the workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of a variant says what its fields hold")]
pub enum LayoutError {
    /// A number beyond any model.
    #[error("{key} must be from {least} to {most}, found {found}")]
    OutOfRange { key: &'static str, least: u64, most: u64, found: u64 },
    /// Fewer layers than pipeline stages.
    #[error(
        "`model.num_layers` must be at least `model.parallelism.pipeline`, \
         found {layers} layers for {pipeline} stages"
    )]
    LayersFewerThanStages { layers: u64, pipeline: u32 },
    /// ZeRO 3 with pipeline stages.
    #[error(
        "`model.parallelism.zero_stage` 3 excludes `model.parallelism.pipeline`, \
         found {pipeline} stages"
    )]
    ZeroWithPipeline { pipeline: u32 },
    /// The ranks do not fill whole copies of the model.
    #[error(
        "the number of ranks must be a multiple of tensor x pipeline = {model_ranks}, found {ranks}"
    )]
    RanksNotMultiple { ranks: u32, model_ranks: u64 },
    /// More ranks than the world has.
    #[error(
        "checkpoint mode `subset` runs the first ranks of data x tensor x pipeline = {world}, \
         found {ranks} ranks"
    )]
    SubsetTooSmall { ranks: u32, world: u64 },
    /// More tensors than a rank can keep an account of.
    #[error(
        "{layers} layers of {tensors} tensors (`model.num_layers`, `model.layer_parameters`) are more \
         than {most} tensors"
    )]
    TooManyTensors { layers: u64, tensors: u64, most: u64 },
    /// More bytes than can be counted.
    #[error(
        "the checkpoint of {ranks} ranks has {bytes} bytes, more than Feedline can count (2^62)"
    )]
    TooManyBytes { ranks: u64, bytes: u128 },
    /// A checkpoint without a tensor.
    #[error(
        "the model has nothing to save: a transformer needs `model.num_layers`, any other model also \
         has `model.model_size_bytes` and `model.optimization_groups`"
    )]
    NothingToSave,
}
