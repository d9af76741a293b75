//! The files that are damaged: every format, with its options, as Feedline and as others write it.

use feedline_formats::{
    Companion, Compression, Content, Element, FORMATS, FileSpec, Format, Options, SampleFormat,
};

/// Files of other writers, by format.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden");

/// A sound file of a format.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) format: Box<dyn Format>,
    pub(crate) data: Vec<u8>,
    pub(crate) companions: Vec<(Companion, Vec<u8>)>,
}

impl Subject {
    /// Whether a file of the format can be recognized: raw bytes and text cannot.
    pub(crate) fn has_a_mark(&self) -> bool {
        let name = self.format.facts().name;
        !matches!(name, "synthetic" | "indexed_binary" | "mmap_indexed_binary")
    }
}

/// Files of all formats that have something to read.
pub(crate) fn all() -> Vec<Subject> {
    let plain = Options::default();
    let mut subjects: Vec<Subject> = FORMATS
        .iter()
        .filter(|entry| entry.name != "synthetic")
        .map(|entry| made(entry.name, &plain, &[6, 7], Element::UInt8, ""))
        .collect();
    let compressed = |compression| Options { compression, ..Options::default() };
    for (name, compression) in [
        ("npz", Compression::Zip),
        ("csv", Compression::Gzip),
        ("hdf5", Compression::Gzip),
        ("hdf5", Compression::Lzf),
        ("parquet", Compression::Gzip),
    ] {
        let how = format!(" {}", compression.name());
        subjects.push(made(name, &compressed(compression), &[6, 7], Element::Float32, &how));
    }
    let chunked = Options { chunk_dims: vec![1, 2, 3], datasets: 1, ..Options::default() };
    subjects.push(made("hdf5", &chunked, &[6, 7], Element::Int16, " chunked"));
    let several = Options { datasets: 2, explicit_dims: true, ..Options::default() };
    subjects.push(made("hdf5", &several, &[4, 3, 2], Element::Float64, " two datasets"));
    subjects.extend(foreign());
    subjects
}

fn made(name: &str, options: &Options, dims: &[u64], element: Element, how: &str) -> Subject {
    let entry = SampleFormat::find(name).expect("a format of this name");
    let format = entry.build(options).expect("options that the format takes");
    let file = FileSpec { dims: dims.to_vec(), samples: 3, element, index: 0 };
    let mut data = Vec::new();
    format.encode(&file, &Content::new(1, 2), &mut data).expect("memory takes every byte");
    let companions = format
        .companions()
        .iter()
        .map(|companion| {
            let mut bytes = Vec::new();
            let encoded = format.encode_companion(companion, &file, &mut bytes);
            encoded.expect("memory takes every byte");
            (*companion, bytes)
        })
        .collect();
    Subject { name: format!("{name}{how}"), format, data, companions }
}

/// The golden files of other writers that our readers take.
fn foreign() -> Vec<Subject> {
    let entries = std::fs::read_dir(GOLDEN).expect("the folder of golden files");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut subjects = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let format = match extension {
            "h5" => "hdf5",
            "tar" => "webdataset",
            "jpg" => "jpeg",
            other => other,
        };
        let Some(entry) = SampleFormat::find(format) else { continue };
        let format = entry.build(&Options::default()).expect("options that every format takes");
        let data = std::fs::read(&path).expect("a golden file");
        subjects.push(Subject { name, format, data, companions: Vec::new() });
    }
    subjects
}
