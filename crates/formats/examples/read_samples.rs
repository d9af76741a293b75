//! `read_samples FOLDER` reads every sample of the files of a folder, the format of each told by its
//! extension, and prints each part of a sample as a line of JSON.

#![allow(clippy::print_stdout, reason = "a program of tests")]

use std::error::Error;
use std::path::{Path, PathBuf};

use feedline_formats::{Collect, Compression, DecodeError, Options, SampleFormat, Scratch};

/// The most that a sample may take.
const LIMIT_BYTES: u64 = 1 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: read_samples FOLDER")?;
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    for path in paths {
        read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<(), Box<dyn Error>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (format, compression) = match name.split_once('.').unwrap_or_default().1 {
        "h5" => ("hdf5", Compression::None),
        "tar" => ("webdataset", Compression::None),
        "csv.gz" => ("csv", Compression::Gzip),
        other => (other, Compression::None),
    };
    let entry = SampleFormat::find(format).ok_or("no format has this extension")?;
    let format = entry.build(&Options { compression, ..Options::default() })?;
    // An image is every sample of its file.
    let most = if entry.is_image { 1 } else { u64::MAX };
    let (bytes, mut scratch) = (std::fs::read(path)?, Scratch::new(1 << 17));
    let mut opened = format.open(&mut &bytes[..], &mut scratch)?;
    for sample in 0..most {
        let mut sink = Collect::new(LIMIT_BYTES);
        match opened.read_into(&mut &bytes[..], sample, &mut scratch, &mut sink) {
            Err(DecodeError::SampleIndex { .. }) => break,
            read => read?,
        };
        for part in sink.take() {
            let (element, crc) = (part.element.map(|it| it.name()), crc32fast::hash(&part.bytes));
            let (part, shape) = (part.name, part.shape);
            let line = serde_json::json!({
                "file": name, "sample": sample, "part": part, "element": element,
                "shape": shape, "crc32": crc,
            });
            println!("{line}");
        }
    }
    Ok(())
}
