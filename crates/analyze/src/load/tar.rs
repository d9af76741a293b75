//! Traces in tar archives, compressed or not.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use feedline_formats::DecodeError;
use feedline_formats::tar::{BLOCK_BYTES, Headers, Next, padding};
use flate2::read::MultiGzDecoder;

/// How the names of folders begin in which archives are unpacked.
pub(crate) const UNPACKED: &str = ".feedline-unpacked-";

const BLOCK: usize = BLOCK_BYTES as usize;
/// Names and extended headers are shorter.
const HEADER_LIMIT: u64 = 1 << 20;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: PathBuf,
    /// Where its bytes begin, in the archive before compression.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// Whether a file is an archive: by its name, or by what it says of itself.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if [".tar", ".tar.gz", ".tgz"].iter().any(|end| name.ends_with(end)) {
        return true;
    }
    let mut block = [0; BLOCK];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut block));
    read.is_ok() && block[257..262] == *b"ustar"
}

pub(crate) fn is_compressed(path: &Path) -> io::Result<bool> {
    let mut begin = [0; 2];
    let mut file = File::open(path)?;
    Ok(file.read_exact(&mut begin).is_ok() && begin == [0x1f, 0x8b])
}

/// The files of an archive. What cannot be read ends the list with an error.
pub(crate) fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    walk(path, &mut |entry, _| {
        found.push(entry);
        Ok(())
    })?;
    Ok(found)
}

/// Unpacks the files of an archive for which `is_selected` holds.
pub(crate) fn unpack(
    path: &Path,
    scratch: &Path,
    is_selected: &dyn Fn(&Path) -> bool,
) -> io::Result<Unpacked> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = scratch.join(format!("{UNPACKED}{}-{number}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let unpacked = Unpacked { of: path.to_owned(), folder };
    walk(path, &mut |entry, bytes| {
        if is_selected(&entry.name) {
            let to = unpacked.folder.join(&entry.name);
            fs::create_dir_all(to.parent().unwrap_or(&unpacked.folder))?;
            let copied = io::copy(bytes, &mut File::create(&to)?)?;
            if copied < entry.bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    })?;
    Ok(unpacked)
}

/// A folder of unpacked files, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) of: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

enum Archive {
    Plain(BufReader<File>),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
}

impl Archive {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        match self {
            Self::Plain(file) => {
                let by = i64::try_from(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
                file.seek_relative(by)
            }
            Self::Gzip(_) => io::copy(&mut self.take(bytes), &mut io::sink()).map(drop),
        }
    }
}

impl Read for Archive {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

/// Goes through an archive.
fn walk(
    path: &Path,
    take: &mut dyn FnMut(Entry, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let file = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut archive = if is_compressed(path)? {
        Archive::Gzip(Box::new(MultiGzDecoder::new(file)))
    } else {
        Archive::Plain(file)
    };
    let mut at = 0_u64;
    let mut headers = Headers::default();
    let mut block = [0; BLOCK];
    loop {
        match archive.read_exact(&mut block) {
            // Some writers leave out the empty blocks at the end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && at > 0 => return Ok(()),
            read => read?,
        }
        let next = headers.read(&block, at).map_err(damaged)?;
        at += BLOCK_BYTES;
        let size = next.size();
        let padded = size.checked_add(padding(size)).ok_or(io::ErrorKind::InvalidData)?;
        let mut read = 0;
        match next {
            Next::End => return Ok(()),
            Next::Extension { size, .. } if size > HEADER_LIMIT => {
                return Err(io::ErrorKind::InvalidData.into());
            }
            Next::Extension { kind, size } => {
                let mut data = Vec::new();
                Read::take(&mut archive, size).read_to_end(&mut data)?;
                read = data.len() as u64;
                headers.extend(kind, &data, at).map_err(damaged)?;
            }
            Next::Member { name, size, regular: true } => {
                let name = safe(&name);
                if !name.as_os_str().is_empty() {
                    let mut data = Read::take(&mut archive, size);
                    take(Entry { name, start: at, bytes: size }, &mut data)?;
                    read = size - data.limit();
                }
            }
            Next::Ignored { .. } | Next::Member { .. } => {}
        }
        archive.skip(padded - read)?;
        at = at.checked_add(padded).ok_or(io::ErrorKind::InvalidData)?;
    }
}

fn damaged(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A path that leads nowhere but down.
fn safe(name: &[u8]) -> PathBuf {
    let parts = Path::new(OsStr::from_bytes(name)).components();
    parts.filter(|part| matches!(part, Component::Normal(_))).collect()
}
