//! The loaders against the rules of the frameworks they stand for, under simulated time.

mod bed;
mod reading;
mod stream;
mod torch;
