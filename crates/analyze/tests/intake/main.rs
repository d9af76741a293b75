//! Traces that come in unusual ways: packed, kept from an earlier look, in many files, cut off by a kill,
//! with times that nobody can have meant.

#[path = "../files/mod.rs"]
mod files;

mod archives;
mod cache;
mod chrome;
mod segments;
mod times;
