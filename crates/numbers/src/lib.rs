//! Numbers as people read and type them, and numbers that look random.
//!
//! Pure, and without dependencies, so that every crate shows and reads a quantity in the same way.

#![forbid(unsafe_code)]

pub mod quantity;
pub mod splitmix;
pub mod units;
