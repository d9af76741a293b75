//! Where bytes live: stores, the objects in them, and wrappers that count, slow down, and fail on
//! purpose.
//!
//! [`connect`] opens the store at a path or a URL. A [`Store`] has a root; everything in it has a key, a relative path with `/`. Reading goes
//! through [`Object`], or through a [`ReadQueue`] that keeps many reads under way; writing goes
//! through [`Upload`], usually with a [`Writer`] in front that brings the buffer. A short read is an error, a file appears only when it is complete, and bytes, calls
//! and times are counted here and nowhere else.
#![deny(unsafe_code)]

mod buffer;
mod connect;
mod direct;
mod error;
mod fail;
mod fault;
mod key;
mod latency;
mod layer;
mod limit;
mod limited;
mod limited_queue;
mod mapped;
mod memory;
mod meter;
mod metered;
mod op;
mod os;
mod pace;
mod partial;
mod piece;
mod posix;
mod progress;
mod quantity;
mod queue;
#[cfg(feature = "remote")]
mod remote;
mod remote_fault;
mod remote_options;
mod repeated;
mod ring;
mod ring_queue;
mod scan;
mod sequential_queue;
mod source;
mod spec;
mod store;
mod tally;
mod wrapper;
mod writer;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

#[cfg(test)]
mod tests;

pub use feedline_location::{Capabilities, Location, SCHEMES, Scheme};

pub use buffer::AlignedBuf;
pub use connect::{CONNECTORS, ConnectOptions, Connector, FileOptions, connect};
pub use error::StoreError;
pub use fail::Failing;
pub use fault::{FaultSpec, Faults, When};
pub use latency::{Latency, Percentile};
pub use layer::Layer;
pub use limit::Limit;
pub use limited::Limited;
pub use memory::Memory;
pub use meter::{AskedSizes, Ended, Meter, OpMeter};
pub use metered::Metered;
pub use op::Op;
pub use os::allow_open_files;
pub use pace::Pace;
pub use partial::partial_name;
pub use posix::{Mode, Posix};
pub use progress::{Progress, Spent};
pub use queue::{Call, Destination, ObjectRange, ReadBuffer, ReadQueue};
#[cfg(feature = "remote")]
pub use remote::Remote;
pub use remote_fault::RemoteFault;
pub use remote_options::RemoteOptions;
pub use repeated::Repeated;
pub use scan::{Scan, ScanOptions, Scanned, scan};
pub use sequential_queue::SequentialQueue;
pub use spec::SpecError;
pub use store::{
    BLOCK_BYTES, BUFFERED_READ_BYTES, DIRECT_READ_BYTES, Durability, Entry, Kind, Object, Resident,
    Store, Upload,
};
pub use tally::Tally;
pub use wrapper::Wrapper;
pub use writer::{Writer, Written};
