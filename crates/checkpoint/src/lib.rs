//! Checkpoints: which tensors every rank of a model holds, the containers they are kept in, and an
//! engine that saves and loads them.
//!
//! Layout and containers are pure: a model and a rank give [`FileSpec`]s, a [`Container`] turns each
//! into an [`Image`], byte for byte, without holding the tensors. The engine fills images chunk by
//! chunk, so memory does not grow with the model.
//!
//! ```
//! use feedline_checkpoint::{DType, Layers, Layout, Model, Optimizer, Parallelism, find, rank_files};
//!
//! // A model of two layers on two ranks, each rank with half of every tensor.
//! let model = Model {
//!     blob_bytes: None,
//!     layers: Layers::Explicit { count: 2, lengths: vec![4096] },
//!     optimizer: Optimizer::None,
//!     model_dtype: DType::Float32,
//!     optimizer_dtype: DType::Float32,
//!     parallelism: Parallelism { tensor: 2, pipeline: 1, data: None, zero_stage: 0 },
//! };
//! let layout = Layout::new(model, 2)?;
//! let torch = find("torch").expect("a container of this crate");
//! let files = rank_files(("torch", torch), layout.files(0), 0);
//! let tensor_bytes: u64 = files.iter().map(|file| file.spec.tensor_bytes()).sum();
//! assert_eq!(tensor_bytes, 2 * 4096 / 2);
//! # Ok::<(), feedline_checkpoint::LayoutError>(())
//! ```
#![forbid(unsafe_code)]

mod dtype;
mod error;
mod tensor;

mod model;

mod geometry;
mod layout_error;

mod layout;

mod container;

mod contents;
mod pool;
mod rank_files;
mod save;
mod writing;

mod load;
mod load_dcp;

mod folder;

pub use container::{
    Body, CONTAINERS, Container, Dcp, DcpChunk, DcpFile, DcpIndex, DcpTensor, Found, Hole, Image,
    Part, Raw, Safetensors, Torch, dcp_metadata, find, find_dcp_chunk, read_dcp_metadata,
};
pub use contents::{Contents, Discard, Held, Sink, Slot, Source, Values};
pub use dtype::DType;
pub use error::{CheckpointError, ContainerError, Result};
pub use folder::{DESCRIPTION_NAME, Description, Draft, Listing, list, remove};
pub use geometry::{Geometry, Place};
pub use layout::{Amount, Layout, RankGroup, StateBytes};
pub use layout_error::LayoutError;
pub use load::{LoadExtent, LoadFile, LoadPlan};
pub use load_dcp::DCP_METADATA_NAME;
pub use model::{Layers, Model, Optimizer, Parallelism, Transformer};
pub use pool::Pool;
pub use rank_files::rank_files;
pub use save::{Background, Engine, RankFile, Saved, SavedFile, Ticket};
pub use tensor::{FileSpec, Share, StateKind, Tensor};
