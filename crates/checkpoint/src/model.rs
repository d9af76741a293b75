//! What a model consists of and how it is spread over ranks, in the terms of DLIO's checkpoints.

use crate::DType;

/// A model, as far as its checkpoint is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Bytes of an opaque tensor that every writing rank has.
    pub blob_bytes: Option<u64>,
    /// Its layers.
    pub layers: Layers,
    /// The state of its optimizer.
    pub optimizer: Optimizer,
    /// Element type of layers that follow from a shape.
    pub model_dtype: DType,
    /// Element type of optimizer tensors that follow from a shape.
    pub optimizer_dtype: DType,
    /// How it is spread over the ranks.
    pub parallelism: Parallelism,
}

/// The layers of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layers {
    /// The checkpoint has no tensors of layers.
    None,
    /// Layers 1 to `count`, all with the same tensors of bytes.
    Explicit {
        /// How many layers.
        count: u64,
        /// Bytes of each tensor before it is cut.
        lengths: Vec<u64>,
    },
    /// Embedding, transformer layers, head and the last norm.
    Transformer(Transformer),
}

impl Layers {
    /// Layers that are dealt to pipeline stages.
    pub fn count(&self) -> Option<u64> {
        match self {
            Layers::None => None,
            Layers::Explicit { count, .. } => Some(*count),
            Layers::Transformer(shape) => Some(shape.layers),
        }
    }
}

/// The state of an optimizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Optimizer {
    /// No optimizer state is saved.
    None,
    /// Every writing rank has two tensors of each of these lengths in bytes, and one of their sum.
    Groups(Vec<u64>),
    /// Three tensors over all parameters of a transformer, and three small ones.
    Derived(Transformer),
}

/// How a model is spread over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Ranks that share one layer.
    pub tensor: u32,
    /// Stages that the layers are cut into.
    pub pipeline: u32,
    /// Copies of the model in a world of which the ranks are the first few. None: the ranks are the
    /// world, and the copies follow from their number.
    pub data: Option<u32>,
    /// ZeRO stage, 0 to 3.
    pub zero_stage: u8,
}

impl Parallelism {
    /// Ranks that hold one copy of the model.
    pub fn model_ranks(&self) -> u64 {
        u64::from(self.tensor) * u64::from(self.pipeline)
    }
}

/// The shape of a transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transformer {
    /// Transformer layers.
    pub layers: u64,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// Width of the model.
    pub hidden: u64,
    /// Width of the feed-forward block.
    pub ffn: u64,
    /// Attention heads.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
}

impl Transformer {
    /// Parameters of the model: embedding and head, the last norm, and all layers.
    pub fn parameters(&self) -> u128 {
        let hidden = u128::from(self.hidden);
        let layer = 2 * hidden + self.attention() + self.dense() + self.ffn_in() + self.ffn_out();
        2 * self.embedding() + hidden + u128::from(self.layers) * layer
    }

    /// Elements of the embedding, and of the head.
    pub(crate) fn embedding(&self) -> u128 {
        u128::from(self.vocab) * u128::from(self.hidden)
    }

    /// Elements of the query, key and value matrices of a layer. Heads that do not divide the width
    /// are rounded down, as in DLIO.
    pub(crate) fn attention(&self) -> u128 {
        let hidden = u128::from(self.hidden);
        let of_keys = u128::from(self.hidden / self.heads) * u128::from(self.kv_heads);
        hidden * (hidden + 2 * of_keys)
    }

    /// Elements of the matrix after the attention.
    pub(crate) fn dense(&self) -> u128 {
        u128::from(self.hidden) * u128::from(self.hidden)
    }

    /// Elements of the gated matrix into the feed-forward block, which is two.
    pub(crate) fn ffn_in(&self) -> u128 {
        2 * self.ffn_out()
    }

    /// Elements of the matrix out of the feed-forward block.
    pub(crate) fn ffn_out(&self) -> u128 {
        u128::from(self.hidden) * u128::from(self.ffn)
    }
}
