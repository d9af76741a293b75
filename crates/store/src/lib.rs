//! Where bytes live: stores, the objects in them, and wrappers that count, throttle and fail calls.
//!
//! [`connect`] opens the store at a path or a URL. Everything in a [`Store`] has a key, a relative path
//! with `/`. Objects are read through [`Object`], or many at a time through a [`ReadQueue`]; they are
//! written through a [`Writer`], which buffers, or a bare [`Upload`]. A short read is an error, an
//! object appears only when it is complete, and all bytes, calls and times are counted here.
//!
//! ```
//! use feedline_store::{AlignedBuf, ConnectOptions, Durability, Store, Writer, connect};
//!
//! let store = connect("memory://", &ConnectOptions::default())?;
//! store.make_folder("train")?;
//! let mut writer = Writer::create(&*store, "train/1", AlignedBuf::new(1 << 20))?;
//! writer.write_all(b"0123456789")?;
//! writer.publish(Durability::None)?;
//!
//! let mut bytes = [0; 4];
//! store.open("train/1")?.read_exact_at(3, &mut bytes)?;
//! assert_eq!(&bytes, b"3456");
//! # Ok::<(), feedline_store::StoreError>(())
//! ```
//!
//! Object stores and web servers need the feature `remote`, which is on by default.
#![deny(unsafe_code)]

mod batch_timer;
mod buffer;
mod connect;
mod direct;
mod error;
mod fault;
mod fault_injecting;
mod key;
mod latency;
mod limit;
mod lock;
mod looped;
mod mapped;
mod memory;
mod meter;
mod metered;
mod op;
mod open_file;
mod os;
mod partial;
mod pieces;
mod posix;
mod queue;
mod rate_limiter;
#[cfg(feature = "remote")]
mod remote;
mod remote_fault;
mod remote_options;
mod request_count;
mod ring;
mod ring_queue;
mod scan;
mod sequential_queue;
mod spec;
mod store;
mod throttled;
mod throttled_queue;
mod trace_sites;
mod wrapper;
mod writer;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

#[cfg(test)]
mod tests;

pub use feedline_location::{Capabilities, Location, SCHEMES, Scheme};

pub use batch_timer::{BatchTimer, BatchTimes};
pub use buffer::AlignedBuf;
pub use connect::{CONNECTORS, ConnectOptions, Connector, FileOptions, connect};
pub use error::{Result, StoreError};
pub use fault::{FaultSpec, Faults, When};
pub use fault_injecting::FaultInjecting;
pub use latency::{Latency, Percentile};
pub use limit::Limit;
pub use looped::Looped;
pub use memory::Memory;
pub use meter::{AskedSizes, CallOutcome, Meter, OpMeter};
pub use metered::Metered;
pub use op::Op;
pub use os::allow_open_files;
pub use partial::{partial_name, remove_stale, write_file};
pub use posix::{Mode, Posix};
pub use queue::{Call, Destination, ObjectRange, ReadBuffer, ReadQueue};
pub use rate_limiter::RateLimiter;
#[cfg(feature = "remote")]
pub use remote::Remote;
pub use remote_fault::RemoteFault;
pub use remote_options::RemoteOptions;
pub use request_count::RequestCount;
pub use scan::{Scan, ScanOptions, Scanned, scan};
pub use sequential_queue::SequentialQueue;
pub use spec::SpecError;
pub use store::{
    BLOCK_BYTES, BUFFERED_READ_BYTES, DIRECT_READ_BYTES, Durability, EntryKind, FolderEntry,
    Object, Resident, Store, Upload,
};
pub use throttled::Throttled;
pub use trace_sites::TraceSites;
pub use wrapper::Wrapper;
pub use writer::{Writer, Written};
