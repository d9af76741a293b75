//! Copies an object from one store to another, wherever they are.
//!
//! ```text
//! cargo run -p feedline-store --example copy -- file:///mnt/data s3://bucket/data train/1.npz
//! ```
//!
//! Keys and endpoints of object stores come from the environment, e.g. `AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_ENDPOINT_URL`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the result of the example")]

use std::process::ExitCode;

use feedline_store::{AlignedBuf, ConnectOptions, Durability, Store, StoreError, Writer, connect};

const BUFFER_BYTES: usize = 1 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, key] = args.as_slice() else {
        eprintln!("usage: copy FROM TO KEY");
        return ExitCode::from(2);
    };
    match run(from, to, key) {
        Ok(bytes) => {
            println!("{bytes} bytes copied to {to}/{key}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(from: &str, to: &str, key: &str) -> Result<u64, StoreError> {
    let options = ConnectOptions::default();
    copy(&*connect(from, &options)?, &*connect(to, &options)?, key)
}

fn copy(from: &dyn Store, to: &dyn Store, key: &str) -> Result<u64, StoreError> {
    let mut object = from.open_whole(key)?;
    let len = object.len()?;
    to.make_folder(key.rsplit_once('/').map_or("", |(folder, _)| folder))?;
    let mut writer = Writer::create(to, key, AlignedBuf::new(BUFFER_BYTES))?;
    while writer.written() < len {
        let offset = writer.written();
        let left = usize::try_from(len - offset).unwrap_or(usize::MAX);
        object.read_exact_at(offset, writer.space(left.min(BUFFER_BYTES))?)?;
    }
    Ok(writer.publish(Durability::Fsync)?.bytes)
}
