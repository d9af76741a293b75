//! The library that `LD_PRELOAD` puts between a program and the C library.
//!
//! Every hook calls the function that the program meant, with the program's arguments, and gives back
//! its result and its `errno`. What it adds is one record, written without a lock, an allocation or a
//! system call. Names of files are recorded when a descriptor is made, not when it is used.
//!
//! Nothing here panics, and nothing here is called by the C library itself, which does not go through
//! these symbols: a call of `fread` is one event, whatever it reads underneath.

mod api;
mod fds;
mod filter;
mod hook;
mod hooks;
mod mappings;
mod names;
mod real;
mod scratch;
mod start;
mod vfork;
