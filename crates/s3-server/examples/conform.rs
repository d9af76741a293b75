//! Runs the suite that every store must pass against a server that is running somewhere.
//!
//! ```text
//! cargo run -p feedline-s3-server --example conform -- s3://bucket/empty-folder
//! ```
//!
//! Endpoint and keys come from the environment (`AWS_ENDPOINT_URL` and so on). Panics where the server
//! and the store disagree.

#![allow(clippy::print_stdout, reason = "the result of the example")]

use feedline_store::{Remote, RemoteOptions, conformance};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args().nth(1).ok_or("expected a root such as s3://bucket/folder")?;
    let store = Remote::connect(&root, &RemoteOptions::default())?;
    conformance::check(&store);
    println!("{root} conforms");
    Ok(())
}
