//! The loaders against the rules of the frameworks they stand for, under simulated time.

mod bed;
mod cost;
mod dealing;
mod epoch;
mod opening;
mod reading;
mod stream;
mod torch;
mod unequal;
