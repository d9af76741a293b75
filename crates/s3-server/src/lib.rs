//! An S3 server for tests, and a proxy that breaks connections on purpose.
//!
//! The crate `s3s` implements protocol and signatures; objects are in memory ([`Memory`]) and follow
//! S3's rules for keys, pages, ranges and parts. A [`Proxy`] sits between a client and the server and
//! does to chosen requests what networks do. Both run on threads of their own until they are dropped;
//! the binary of this crate runs them as a process. Nothing that is shipped depends on this crate.
//!
//! ```
//! use feedline_s3_server::{Fault, Keys, Proxy, Server};
//!
//! let server = Server::start(Keys::TEST)?;
//! server.memory().add_bucket("bucket");
//! server.memory().put("bucket", "train/1", "0123456789");
//! let proxy = Proxy::start(server.address())?;
//! // The first request of a client of `proxy.url()` goes through, the second one is answered by 503.
//! proxy.arm([None, Some(Fault::Status(503))]);
//! assert_eq!(server.memory().keys("bucket"), ["train/1"]);
//! # Ok::<(), std::io::Error>(())
//! ```

mod memory;
mod proxy;
mod server;

pub use memory::Memory;
pub use proxy::{Fault, Proxy, Seen};
pub use server::{Keys, Server};
