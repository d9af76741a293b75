//! Archives of tar, as far as traces need them: files, long names, and sizes of any length.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

/// How the names of folders begin in which archives are unpacked.
pub(crate) const UNPACKED: &str = ".feedline-unpacked-";

const BLOCK: usize = 512;
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

/// Whether it is compressed.
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

/// Unpacks the files of an archive for which `is_wanted` holds.
pub(crate) fn unpack(
    path: &Path,
    scratch: &Path,
    is_wanted: &dyn Fn(&Path) -> bool,
) -> io::Result<Unpacked> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = scratch.join(format!("{UNPACKED}{}-{number}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let unpacked = Unpacked { of: path.to_owned(), folder };
    walk(path, &mut |entry, bytes| {
        if is_wanted(&entry.name) {
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
    /// The archive.
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
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut archive = if is_compressed(path)? {
        Archive::Gzip(Box::new(MultiGzDecoder::new(file)))
    } else {
        file.seek(SeekFrom::Start(0))?;
        Archive::Plain(file)
    };
    let mut at = 0_u64;
    let mut said = Said::default();
    let mut block = [0; BLOCK];
    loop {
        match archive.read_exact(&mut block) {
            // Some writers leave out the empty blocks at the end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && at > 0 => return Ok(()),
            read => read?,
        }
        at += BLOCK as u64;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let header = Header::parse(&block).ok_or(io::ErrorKind::InvalidData)?;
        let bytes = said.bytes.take().filter(|_| header.is_file()).unwrap_or(header.bytes);
        let padded =
            bytes.checked_next_multiple_of(BLOCK as u64).ok_or(io::ErrorKind::InvalidData)?;
        if matches!(header.kind, b'x' | b'L') {
            if bytes > HEADER_LIMIT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut text = Vec::new();
            Read::take(&mut archive, padded).read_to_end(&mut text)?;
            text.truncate(usize::try_from(bytes).unwrap_or(0));
            said.learn(header.kind, &text);
        } else {
            let name = safe(said.name.take().as_ref().unwrap_or(&header.name));
            let mut rest = 0;
            if header.is_file() && !name.as_os_str().is_empty() {
                let entry = Entry { name, start: at, bytes };
                let mut part = Read::take(&mut archive, bytes);
                take(entry, &mut part)?;
                rest = bytes - part.limit();
            }
            archive.skip(padded - rest)?;
        }
        at += padded;
    }
}

/// What extended headers say about the next file.
#[derive(Debug, Default)]
struct Said {
    name: Option<String>,
    bytes: Option<u64>,
}

impl Said {
    fn learn(&mut self, kind: u8, text: &[u8]) {
        if kind == b'L' {
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            self.name = Some(String::from_utf8_lossy(&text[..end]).into_owned());
            return;
        }
        let mut rest = text;
        // A record is its length in digits, a blank, a key, an equals sign, a value and a line end.
        while let Some(blank) = rest.iter().position(|byte| *byte == b' ') {
            let length =
                std::str::from_utf8(&rest[..blank]).ok().and_then(|text| text.parse().ok());
            let Some(record) = length.and_then(|length: usize| rest.get(blank + 1..length)) else {
                return;
            };
            rest = &rest[blank + 1 + record.len()..];
            let record = String::from_utf8_lossy(record);
            match record.trim_end_matches('\n').split_once('=') {
                Some(("path", value)) => self.name = Some(value.to_owned()),
                Some(("size", value)) => self.bytes = value.parse().ok(),
                _ => {}
            }
        }
    }
}

struct Header {
    name: String,
    bytes: u64,
    kind: u8,
}

impl Header {
    /// None if the block is no header.
    fn parse(block: &[u8; BLOCK]) -> Option<Self> {
        let unsigned = |at: usize| if (148..156).contains(&at) { b' ' } else { block[at] };
        let sum: u64 = (0..BLOCK).map(|at| u64::from(unsigned(at))).sum();
        if octal(&block[148..156])? != sum {
            return None;
        }
        let text = |range: std::ops::Range<usize>| {
            let bytes = &block[range];
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let mut name = text(0..100);
        let prefix = text(345..500);
        if block[257..263] == *b"ustar\0" && !prefix.is_empty() {
            name = format!("{prefix}/{name}");
        }
        // A size that has no room in digits is written in bytes.
        let bytes = if block[124] & 0x80 == 0 {
            octal(&block[124..136])?
        } else {
            u64::from_be_bytes(block[128..136].try_into().ok()?)
        };
        Some(Self { name, bytes, kind: block[156] })
    }

    fn is_file(&self) -> bool {
        matches!(self.kind, b'0' | 0 | b'7')
    }
}

fn octal(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.trim_matches(|letter| letter == ' ' || letter == '\0');
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

/// A name that leads nowhere but down.
fn safe(name: &str) -> PathBuf {
    let parts = Path::new(name).components().filter(|part| matches!(part, Component::Normal(_)));
    parts.collect()
}
