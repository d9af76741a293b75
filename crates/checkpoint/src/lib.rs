//! Checkpoints: which tensors every rank of a model holds, the containers they are kept in, and an
//! engine that saves and loads them.
//!
//! Layout and containers are pure: a model and a rank give [`FileSpec`]s, a [`Container`] turns each
//! into an [`Image`], byte for byte, without holding the tensors. The engine fills images chunk by
//! chunk, so memory does not grow with the model.
#![forbid(unsafe_code)]

mod dtype;
mod error;
mod tensor;

mod container;

pub use container::{Body, Container, Found, Hole, Image, Part};
pub use dtype::DType;
pub use error::ContainerError;
pub use tensor::{FileSpec, Share, StateKind, Tensor};
