//! What a rank keeps in its files.

use crate::DType;

/// One file of a rank's part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// Its name without folder and extension, as DLIO spells it.
    pub stem: String,
    /// What kind of state it holds.
    pub state: StateKind,
    /// The tensors in it, in the order in which they are written.
    pub tensors: Vec<Tensor>,
}

impl FileSpec {
    /// Bytes of all its tensors.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.iter().map(Tensor::bytes).sum()
    }
}

/// The kinds of state a checkpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// One opaque tensor.
    Blob,
    /// Layers of the model.
    Layers,
    /// The optimizer's tensors.
    Optimizer,
}

/// A tensor of one axis, as a rank holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The keys that lead to it through the dictionaries of the file, outermost first.
    pub path: Vec<String>,
    /// Type of its elements.
    pub dtype: DType,
    /// How many elements this rank holds.
    pub len: u64,
    /// Where they belong.
    pub share: Share,
}

impl Tensor {
    /// Bytes of its elements.
    pub fn bytes(&self) -> u64 {
        self.len * self.dtype.size_bytes()
    }
}

/// The place of a rank's tensor in the tensor that all ranks together hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The name of the whole tensor, unique in the checkpoint.
    pub name: String,
    /// Elements of the whole.
    pub total: u64,
    /// Elements before this rank's.
    pub first: u64,
}
