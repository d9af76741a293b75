//! The loaders against the rules of the frameworks they stand for, under simulated time.

mod bed;
mod opening;
mod reading;
mod stream;
mod torch;
