//! An S3 server for tests, and a proxy that breaks connections on purpose.
//!
//! Protocol and signatures are those of the crate `s3s`; objects are in memory ([`Memory`]) and follow
//! S3's rules for keys, pages, ranges and parts. The [`Proxy`] stands between a client and the server
//! and does to chosen requests what networks do. Both run on threads of their own until they are
//! dropped; the binary of this crate runs them as a process.
//!
//! Nothing that is shipped depends on this crate.

mod memory;
mod proxy;
mod server;

pub use memory::Memory;
pub use proxy::{Fault, Proxy, Seen};
pub use server::{Keys, Server};
