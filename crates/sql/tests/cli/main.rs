//! `feedline-sql` as its users see it: a trace whose every event is known, asked here and on a cluster.

mod bed;
mod cluster;
mod documented;
mod errors;
mod formats;
mod made;
mod queries;
