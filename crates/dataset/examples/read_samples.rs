//! `read_samples FOLDER` reads every sample of a folder, the format of each file told by its extension,
//! and prints each array of a sample as a line of JSON. FOLDER may be a URL such as `s3://bucket/train`.

#![allow(clippy::print_stdout, reason = "a program of tests")]

use std::error::Error;

use feedline_clock::Clock;
use feedline_dataset::{EpochOrder, ReadOptions, SampleFolder, Shuffle};
use feedline_store::{ConnectOptions, connect};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: read_samples FOLDER")?;
    let (clock, store) = (Clock::real(), connect(&folder, &ConnectOptions::default())?);
    let options = ReadOptions { readers: 2, read_ahead: 4, ..ReadOptions::default() };
    for files in SampleFolder::open_all(&clock, &store, "")? {
        let order = EpochOrder::new(files.index.clone(), Shuffle::None, 0);
        for sample in files.samples(&clock, order, options)? {
            let sample = sample?;
            for part in &sample.parts {
                let element = part.element.map(|element| element.name());
                let line = serde_json::json!({
                    "file": sample.key, "sample": sample.id.index, "part": part.name,
                    "element": element, "shape": part.shape, "crc32": crc32fast::hash(&part.bytes),
                });
                println!("{line}");
            }
        }
    }
    Ok(())
}
