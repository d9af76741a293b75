//! The S3 server as a process: prints where it listens, and runs until its standard input ends.
//!
//! ```text
//! feedline-s3-server [--key ID] [--secret SECRET] [--bucket NAME]... [--fault N=FAULT]...
//!                    [--every N=FAULT] [--only LINE]
//! ```
//!
//! Prints one line of JSON: `server` is the URL of the server, `proxy` that of the proxy before it,
//! where the faults happen. A fault is a status from 400 to 599, `reset`, `reset-after-head`,
//! `reset-in-body`, `truncate`, `stall`, `stall-in-body` or `lose-answer`; N counts requests from 1.

use std::error::Error;
use std::io::{Read, Write};

use feedline_s3_server::{Fault, Keys, Proxy, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let mut keys = Keys::TEST;
    let (mut buckets, mut faults, mut every, mut only) = (Vec::new(), Vec::new(), None, None);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments = arguments.iter();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag}: expected a value"))?;
        match flag.as_str() {
            "--key" => keys.id = value,
            "--secret" => keys.secret = value,
            "--bucket" => buckets.push(value),
            "--fault" => faults.push(numbered(value)?),
            "--every" => every = Some(numbered(value)?),
            "--only" => only = Some(value),
            _ => return Err(format!("unknown option {flag}").into()),
        }
    }
    let server = Server::start(keys)?;
    buckets.into_iter().for_each(|bucket| server.memory().add_bucket(bucket));
    let proxy = Proxy::start(server.address())?;
    let last = faults.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let at = |number| faults.iter().find(|(n, _)| *n == number).map(|(_, fault)| *fault);
    proxy.arm((1..=last).map(at));
    if let Some((number, fault)) = every {
        proxy.arm_every(number, fault);
    }
    if let Some(only) = only {
        proxy.only(only);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{{\"server\":\"{}\",\"proxy\":\"{}\"}}", server.url(), proxy.url())?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn numbered(text: &str) -> Result<(u64, Fault), Box<dyn Error>> {
    let parsed = text
        .split_once('=')
        .and_then(|(number, fault)| Some((number.parse().ok()?, Fault::named(fault)?)));
    parsed.ok_or_else(|| format!("{text}: expected NUMBER=FAULT").into())
}
