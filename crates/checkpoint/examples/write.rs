//! Writes checkpoints without the engine, and says what is in them: what the judges of the containers
//! are given to look at.
//!
//! ```text
//! write CONTAINER OUT SPEC.json      a file, or with dcp a folder of files and `.metadata`
//! write --index CONTAINER PATH       the tensors in it as JSON, with the CRC-32 of their bytes
//! ```
//!
//! A specification is `{"seed":7,"files":[{"tensors":[{"path":["a","b"],"dtype":"float32","len":5}]}]}`;
//! tensors of dcp also have `name`, `total` and `first`. With `"zeros":true` all elements are zero and
//! the files have holes in place of the tensors, so that they may be larger than the disk.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::ExitCode;

use feedline_checkpoint::{
    Body, Container, DType, DcpFile, FileSpec, Hole, Image, Part, Share, StateKind, Tensor,
    dcp_metadata, find, find_dcp_chunk, read_dcp_metadata,
};
use feedline_formats::Content;
use feedline_store::{Mode, Object, Posix, Store};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// Bytes that are made or read at a time.
const PIECE_BYTES: u64 = 1 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do for someone who closed that, too.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let answer = match args.as_slice() {
        ["--index", "dcp", path] if Path::new(path).is_dir() => index_folder(path)?,
        ["--index", container, path] => index_file(container_named(container)?, path)?,
        [container, out, spec] => write(container, Path::new(out), Path::new(spec))?,
        _ => return Err("usage: write CONTAINER OUT SPEC.json | --index CONTAINER PATH".into()),
    };
    writeln!(io::stdout(), "{answer}")?;
    Ok(())
}

fn container_named(name: &str) -> Result<&'static dyn Container, Failure> {
    find(name).ok_or_else(|| format!("no container {name}").into())
}

fn dtype_name(dtype: DType) -> String {
    format!("{dtype:?}").to_lowercase()
}

/// What goes into tensors.
#[derive(Clone, Copy)]
enum Fill {
    Zeros,
    Seed(u64),
}

fn write(container: &str, out: &Path, spec: &Path) -> Result<Value, Failure> {
    let spec: Value = serde_json::from_slice(&fs::read(spec)?)?;
    let fill = match (&spec["zeros"], &spec["seed"]) {
        (Value::Bool(true), _) => Fill::Zeros,
        (_, seed) => Fill::Seed(seed.as_u64().ok_or("a specification has a seed")?),
    };
    let files = spec["files"].as_array().ok_or("a specification has files")?;
    let files: Vec<FileSpec> = files.iter().map(file_spec).collect::<Result<_, _>>()?;
    let writer = container_named(container)?;
    if container != "dcp" {
        let [file] = files.as_slice() else { return Err("one file at a time".into()) };
        return Ok(json!([write_file(&writer.image(file), file, fill, out)?]));
    }
    fs::create_dir_all(out)?;
    let names: Vec<String> = (0..files.len()).map(|rank| format!("__{rank}_0.distcp")).collect();
    let mut answer = Vec::new();
    for (file, name) in files.iter().zip(&names) {
        answer.push(write_file(&writer.image(file), file, fill, &out.join(name))?);
    }
    let listed: Vec<DcpFile<'_>> = files
        .iter()
        .zip(&names)
        .map(|(spec, relative_path)| DcpFile { relative_path, spec })
        .collect();
    fs::write(out.join(".metadata"), dcp_metadata(&listed))?;
    Ok(json!(answer))
}

fn file_spec(value: &Value) -> Result<FileSpec, Failure> {
    let tensors = value["tensors"].as_array().ok_or("a file has tensors")?;
    let tensors = tensors.iter().map(tensor).collect::<Result<_, _>>()?;
    Ok(FileSpec { stem: String::new(), state: StateKind::Layers, tensors })
}

fn tensor(value: &Value) -> Result<Tensor, Failure> {
    let keys = value["path"].as_array().ok_or("a tensor has a path")?;
    let path: Vec<String> = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let dtype =
        DType::ALL.into_iter().find(|it| Some(&*dtype_name(*it)) == value["dtype"].as_str());
    let dtype = dtype.ok_or("a tensor has a dtype")?;
    let len = value["len"].as_u64().ok_or("a tensor has a len")?;
    let share = Share {
        name: value["name"].as_str().map_or_else(|| path.join("."), str::to_owned),
        total: value["total"].as_u64().unwrap_or(len),
        first: value["first"].as_u64().unwrap_or(0),
    };
    Ok(Tensor { path, dtype, len, share })
}

/// Writes an image from its beginning to its end; gives the tensors with their places and checksums.
fn write_file(image: &Image, spec: &FileSpec, fill: Fill, out: &Path) -> Result<Value, Failure> {
    image.check()?;
    let mut file = File::create(out)?;
    let mut crcs = vec![0; spec.tensors.len()];
    for part in &image.parts {
        write_part(part, spec, fill, &mut crcs, &mut file)?;
    }
    file.set_len(image.len)?;
    let tensors = spec.tensors.iter().enumerate().map(|(index, tensor)| {
        let at = image.tensor_at(index);
        let (dtype, crc32) = (dtype_name(tensor.dtype), crcs[index]);
        json!({"path": tensor.path, "dtype": dtype, "shape": [tensor.len], "at": at, "crc32": crc32})
    });
    Ok(tensors.collect())
}

fn write_part(
    part: &Part,
    spec: &FileSpec,
    fill: Fill,
    crcs: &mut [u32],
    file: &mut File,
) -> Result<(), Failure> {
    match (&part.body, fill) {
        (Body::Bytes { bytes, holes }, _) => {
            let mut bytes = bytes.to_vec();
            for hole in holes {
                let place = &mut bytes[hole.at..hole.at + Hole::BYTES];
                place.copy_from_slice(&crcs[hole.tensor].to_le_bytes());
            }
            file.write_all(&bytes)?;
        }
        (Body::Tensor { index, bytes }, Fill::Zeros) => {
            crcs[*index] = crc_of_zeros(*bytes);
            file.seek(SeekFrom::Current(i64::try_from(*bytes)?))?;
        }
        (Body::Tensor { index, bytes }, Fill::Seed(seed)) => {
            let content = Content::new(seed, *index as u64);
            let mut hasher = crc32fast::Hasher::new();
            for at in (0..*bytes).step_by(PIECE_BYTES as usize) {
                let mut piece = vec![0; (bytes - at).min(PIECE_BYTES) as usize];
                spec.tensors[*index].dtype.fill_random(&content, at, &mut piece);
                hasher.update(&piece);
                file.write_all(&piece)?;
            }
            crcs[*index] = hasher.finalize();
        }
    }
    Ok(())
}

/// By doubling, because nobody wants to wait for gigabytes of nothing.
fn crc_of_zeros(bytes: u64) -> u32 {
    let mut all = crc32fast::Hasher::new();
    let mut some = crc32fast::Hasher::new();
    some.update(&[0]);
    for bit in 0..u64::BITS - bytes.leading_zeros() {
        if bytes >> bit & 1 == 1 {
            all.combine(&some);
        }
        let again = some.clone();
        some.combine(&again);
    }
    all.finalize()
}

fn index_file(container: &dyn Container, path: &str) -> Result<Value, Failure> {
    let mut object = open(Path::new(path))?;
    let found = container.index(&mut *object)?;
    let tensors = found.into_iter().map(|found| {
        let crc32 = crc_at(&mut *object, found.at, &found.shape, found.dtype)?;
        let (dtype, shape) = (dtype_name(found.dtype), found.shape);
        Ok(json!({
            "path": found.path, "dtype": dtype, "shape": shape, "at": found.at, "crc32": crc32
        }))
    });
    tensors.collect()
}

fn index_folder(folder: &str) -> Result<Value, Failure> {
    let folder = Path::new(folder);
    let index = read_dcp_metadata(&fs::read(folder.join(".metadata"))?)?;
    let tensors = index.tensors.into_iter().map(|tensor| {
        let chunks = tensor.chunks.iter().map(|chunk| {
            let mut object = open(&folder.join(&*chunk.file))?;
            let found = find_dcp_chunk(&mut *object, chunk)?;
            let crc32 = crc_at(&mut *object, found.at, &found.shape, found.dtype)?;
            Ok(json!({
                "offsets": chunk.offsets, "sizes": chunk.sizes, "file": &*chunk.file,
                "at": found.at, "crc32": crc32
            }))
        });
        let chunks: Value = chunks.collect::<Result<_, Failure>>()?;
        let dtype = dtype_name(tensor.dtype);
        Ok(json!({
            "name": tensor.name, "dtype": dtype, "shape": tensor.shape, "chunks": chunks
        }))
    });
    tensors.collect()
}

fn open(path: &Path) -> Result<Box<dyn Object>, Failure> {
    let folder = path.parent().ok_or("a file is in a folder")?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?;
    Ok(Posix::new(folder, Mode::Buffered).open(name)?)
}

fn crc_at(object: &mut dyn Object, at: u64, shape: &[u64], dtype: DType) -> Result<u32, Failure> {
    let bytes = shape.iter().product::<u64>() * dtype.size_bytes();
    let mut hasher = crc32fast::Hasher::new();
    for from in (0..bytes).step_by(PIECE_BYTES as usize) {
        let mut piece = vec![0; (bytes - from).min(PIECE_BYTES) as usize];
        object.read_exact_at(at + from, &mut piece)?;
        hasher.update(&piece);
    }
    Ok(hasher.finalize())
}
