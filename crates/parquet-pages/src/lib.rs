//! Parquet below its files: Thrift structures, page headers and the encodings of values.
//!
//! Shared by the Parquet sample format, which needs the sizes and places of values, and by traces, whose
//! columns go from numbers to pages and back. The `parquet` crate's column readers and writers would hand
//! out every name as a counted piece of memory and every number of a constant column one by one, and cost
//! 5 ns per value for columns that are empty or constant.
//!
//! Pure: bytes and numbers in, bytes and numbers out. Work and memory follow the bytes that are there or a
//! count that the caller has checked, never a number that damaged bytes announce.

#![forbid(unsafe_code)]

mod bits;
pub mod decode;
pub mod encode;
mod hybrid;
mod page;
pub mod thrift;

pub use hybrid::Hybrid;
pub use page::{Encoding, Levels, PageHeader, PageKind};
