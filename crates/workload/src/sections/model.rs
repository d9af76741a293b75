//! Section `model`: the state that a checkpoint holds.

use crate::keyword::keyword_enum;

/// The model whose state is checkpointed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Name of the model; part of the default run directory.
    pub name: String,
    /// Type of the model; only `transformer` has a meaning.
    pub r#type: Option<String>,
    /// Size in bytes of the opaque blob of a model that is not a transformer.
    pub model_size_bytes: u64,
    /// Element type of the model's tensors.
    pub model_datatype: Datatype,
    /// Element type of the optimizer's tensors.
    pub optimizer_datatype: Datatype,
    /// Sizes in bytes of explicit optimizer tensors.
    pub optimization_groups: Vec<u64>,
    /// Number of layers; none means that there is no layer state.
    pub num_layers: Option<u64>,
    /// Sizes in bytes of the explicit tensors of one layer.
    pub layer_parameters: Vec<u64>,
    /// How the model is distributed over the ranks.
    pub parallelism: Parallelism,
    /// Shape of a transformer.
    pub transformer: Transformer,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            r#type: None,
            model_size_bytes: 10_240,
            model_datatype: Datatype::Fp16,
            optimizer_datatype: Datatype::Fp32,
            optimization_groups: Vec::new(),
            num_layers: None,
            layer_parameters: Vec::new(),
            parallelism: Parallelism::default(),
            transformer: Transformer::default(),
        }
    }
}

impl Model {
    /// Whether the model is a transformer, whose checkpoint has no opaque blob.
    pub fn is_transformer(&self) -> bool {
        self.r#type.as_deref() == Some("transformer")
    }
}

keyword_enum! {
    /// Element type of checkpointed tensors.
    pub enum Datatype {
        /// Signed byte.
        Int8 = "int8",
        /// Unsigned byte.
        Uint8 = "uint8",
        /// IEEE half precision.
        Fp16 = "fp16",
        /// Brain floating point.
        Bf16 = "bf16",
        /// Single precision.
        Fp32 = "fp32",
        /// Double precision.
        Fp64 = "fp64",
    }
}

impl Datatype {
    /// Bytes of one element.
    pub const fn size_bytes(self) -> u64 {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Fp16 | Self::Bf16 => 2,
            Self::Fp32 => 4,
            Self::Fp64 => 8,
        }
    }
}

/// How the model is distributed over the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parallelism {
    /// Ranks that share one layer.
    pub tensor: u32,
    /// Pipeline stages that the layers are split into.
    pub pipeline: u32,
    /// Copies of the model; none means as many as the ranks allow.
    pub data: Option<u32>,
    /// ZeRO stage, 0 to 3.
    pub zero_stage: u8,
}

impl Default for Parallelism {
    fn default() -> Self {
        Self { tensor: 1, pipeline: 1, data: None, zero_stage: 0 }
    }
}

/// Shape of a transformer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transformer {
    /// Size of the vocabulary.
    pub vocab_size: u64,
    /// Hidden size of the model.
    pub hidden_size: u64,
    /// Hidden size of the feed-forward block.
    pub ffn_hidden_size: u64,
    /// Number of attention heads.
    pub num_attention_heads: u64,
    /// Number of key and value heads.
    pub num_kv_heads: u64,
}

impl Default for Transformer {
    fn default() -> Self {
        Self {
            vocab_size: 32_000,
            hidden_size: 2_048,
            ffn_hidden_size: 8_192,
            num_attention_heads: 32,
            num_kv_heads: 8,
        }
    }
}
