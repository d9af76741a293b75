//! Traces of other tools, read and written.

mod bed;
mod chrome;
mod custom;
mod damage;
mod dialects;
mod perfetto;
mod round_trips;
