//! Perfetto's traces, written and not read.
//!
//! A trace is looked at twice: a scan finds out when it begins, who is in it and how long its
//! calls take; then the sink writes. If there are more calls than a browser can show, the
//! shortest are merged into one slice per run, and a third look at the trace finds the runs, so that
//! they lie within what they belong to. Counters cover every call all the same.
//!
//! Memory: the slices that are written (at most [`View::max_events`], about 100 bytes each), and what the
//! tables of the trace take.

mod counters;
mod export;
mod flows;
mod lanes;
mod proto;
mod scan;
mod sink;
mod slices;
mod view;

pub use export::PerfettoExport;
pub use view::{Ranks, View, Window};
