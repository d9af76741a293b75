//! Where bytes live, as text: paths and URLs, the schemes that URLs may have, and what a store of
//! each scheme can do.
//!
//! Pure, and without dependencies: workload files are checked against these facts without a store,
//! and stores connect by them. Opens nothing and sends nothing.
#![forbid(unsafe_code)]

mod capabilities;
mod location;
mod scheme;

pub use capabilities::Capabilities;
pub use location::{Location, MissingSlash};
pub use scheme::{AZURE, FILE, GOOGLE, HTTP, MEMORY, S3, SCHEMES, Scheme};
