//! Where bytes live, as text: paths and URLs, the schemes that URLs may have, and what a store of
//! each scheme can do.
//!
//! Pure and without dependencies: opens nothing and sends nothing. Workload files are checked against
//! these facts without a store, and stores use them to connect.
//!
//! ```
//! use feedline_location::Location;
//!
//! let data = Location::parse("s3://bucket/data");
//! let capabilities = data.capabilities();
//! assert!(capabilities.queue && !capabilities.direct);
//! assert_eq!(data.join("train").to_string(), "s3://bucket/data/train");
//! assert_eq!(Location::parse("file:///mnt/data"), Location::Path("/mnt/data".to_owned()));
//! ```
#![forbid(unsafe_code)]

mod capabilities;
mod location;
mod scheme;

pub use capabilities::Capabilities;
pub use location::{Location, MissingSlash};
pub use scheme::{AZURE, FILE, GOOGLE, HTTP, MEMORY, S3, SCHEMES, Scheme};
