//! Section `model`: the state that a checkpoint holds.

use crate::keyword::keyword_enum;
use crate::schema::alias;
use crate::section::section;

section! {
    /// The model whose state is checkpointed.
    #[derive(Eq)]
    pub struct Model in "model" {
        /// Name of the model; part of the default run directory.
        name: String = "default".to_owned(), text() "default";
        /// Type of the model; checkpoints of a `transformer` have no opaque blob.
        r#type("type"): Option<String> = None, optional_text() "null";
        /// Size in bytes of the opaque blob in checkpoints of a model that is not a transformer.
        model_size_bytes: u64 = 10_240, count() "10240";
        /// Element type of the model's tensors.
        model_datatype: Datatype = Datatype::Fp16, keyword() "fp16";
        /// Element type of the optimizer's tensors.
        optimizer_datatype: Datatype = Datatype::Fp32, keyword() "fp32";
        /// Sizes in bytes of explicit optimizer tensors.
        optimization_groups: Vec<u64> = Vec::new(), whole_list(0) "[]";
        /// Number of layers; without any (0 or less), checkpoints have no layer state.
        num_layers: Option<u64> = None, optional(1) "-1";
        /// Sizes in bytes of the explicit tensors of one layer.
        layer_parameters: Vec<u64> = Vec::new(), whole_list(0) "[]";
        /// How the model is distributed over the ranks.
        parallelism: Parallelism = Parallelism::default(), section;
        /// Shape of a transformer.
        transformer: Transformer = Transformer::default(), section, then [
            alias(
                "model.model_size", "model.model_size_bytes",
                "Spelling of DLIO's documentation, which DLIO itself ignores.",
            ),
        ];
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

section! {
    /// How the model is distributed over the ranks.
    #[derive(Eq)]
    pub struct Parallelism in "model.parallelism" {
        /// Tensor parallelism: ranks that share one layer.
        tensor: u32 = 1, positive() "1";
        /// Pipeline parallelism: stages that the layers are split into.
        pipeline: u32 = 1, positive() "1";
        /// Data parallelism: copies of the model. Only for checkpoint mode `subset`.
        data: Option<u32> = None, optional(1) "-1";
        /// ZeRO stage, 0 to 3.
        zero_stage: u8 = 0, whole(0..=3) "0";
    }
}

section! {
    /// Shape of a transformer.
    #[derive(Eq)]
    pub struct Transformer in "model.transformer" {
        /// Size of the vocabulary.
        vocab_size: u64 = 32_000, positive() "32000";
        /// Hidden size of the model.
        hidden_size: u64 = 2_048, positive() "2048";
        /// Hidden size of the feed-forward block.
        ffn_hidden_size: u64 = 8_192, positive() "8192";
        /// Number of attention heads.
        num_attention_heads: u64 = 32, positive() "32";
        /// Number of key and value heads.
        num_kv_heads: u64 = 8, positive() "8";
    }
}
