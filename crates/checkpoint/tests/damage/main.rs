//! Checkpoints that someone has damaged: every reader, fed with files that were cut off, changed in
//! every byte and put together anew. The answer must be an index or an error: no panic, no place beyond
//! the file, and no more memory than [`MEMORY_FACTOR`] times the file plus [`MEMORY_EXTRA`].
//!
//! Beside them, because the allocator that counts is here: what images of many tensors cost.

#[path = "../../../formats/tests/damage/memory.rs"]
mod memory;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use feedline_checkpoint::{
    Body, Container, DType, DcpFile, FileSpec, Found, Image, Share, StateKind, Tensor,
    dcp_metadata, find, find_dcp_chunk, read_dcp_metadata,
};
use feedline_store::{Object, StoreError};

/// An opcode of one byte can make a list, which takes its entry in three tables.
const MEMORY_FACTOR: usize = 160;
const MEMORY_EXTRA: usize = 256 << 10;
/// Files that are put together anew, of each kind.
const INPUTS: u64 = 3000;

/// The allocator counts for the whole process, so tests take turns.
static ALONE: Mutex<()> = Mutex::new(());

const NESTED: &[u8] = include_bytes!("../golden/nested.pt");
const FLAT: &[u8] = include_bytes!("../golden/flat.safetensors");
const RANK: &[u8] = include_bytes!("../golden/dcp/__1_0.distcp");
const METADATA: &[u8] = include_bytes!("../golden/dcp/.metadata");

/// Something that reads; says how many tensors it found.
struct Subject {
    name: &'static str,
    bytes: Vec<u8>,
    read: fn(&[u8]) -> Result<usize, String>,
}

fn subjects() -> Vec<Subject> {
    let spec = small();
    let ours = |container: &str| zeros(&find(container).unwrap().image(&spec));
    let metadata = dcp_metadata(&[DcpFile { relative_path: "__0_0.distcp", spec: &spec }]);
    vec![
        Subject { name: "torch by torch", bytes: NESTED.to_vec(), read: |it| index("torch", it) },
        Subject { name: "torch", bytes: ours("torch"), read: |it| index("torch", it) },
        Subject { name: "safetensors", bytes: FLAT.to_vec(), read: |it| index("safetensors", it) },
        Subject { name: "raw", bytes: ours("raw"), read: |it| index("raw", it) },
        Subject { name: "dcp by torch", bytes: RANK.to_vec(), read: |it| index("dcp", it) },
        Subject { name: "dcp metadata by torch", bytes: METADATA.to_vec(), read: read_metadata },
        Subject { name: "dcp metadata", bytes: metadata, read: read_metadata },
    ]
}

fn small() -> FileSpec {
    let tensor = |(number, dtype): (u64, DType)| Tensor {
        path: vec!["layer".to_owned(), number.to_string()],
        dtype,
        len: 3 * number,
        share: Share { name: number.to_string(), total: 3 * number, first: 0 },
    };
    let tensors = (0..).zip(DType::ALL).map(tensor).collect();
    FileSpec { stem: "small".to_owned(), state: StateKind::Layers, tensors }
}

/// The file of an image with zeros in its tensors.
fn zeros(image: &Image) -> Vec<u8> {
    let bytes = image.parts.iter().flat_map(|part| match &part.body {
        Body::Bytes { bytes, .. } => bytes.to_vec(),
        Body::Tensor { bytes, .. } => vec![0; *bytes as usize],
    });
    bytes.collect()
}

fn index(container: &str, bytes: &[u8]) -> Result<usize, String> {
    let container: &dyn Container = find(container).unwrap();
    let found = container.index(&mut Bytes(bytes)).map_err(|error| error.to_string())?;
    found.iter().for_each(|found| check_place(found, bytes.len() as u64));
    Ok(found.len())
}

fn check_place(found: &Found, len: u64) {
    let bytes = found.shape.iter().product::<u64>() * found.dtype.size_bytes();
    assert!(found.at + bytes <= len, "{found:?} in {len} bytes");
}

fn read_metadata(bytes: &[u8]) -> Result<usize, String> {
    let index = read_dcp_metadata(bytes).map_err(|error| error.to_string())?;
    let chunks = index.tensors.iter().flat_map(|tensor| &tensor.chunks);
    // Whatever place it names, the file that is there decides.
    chunks.for_each(|chunk| {
        if let Ok(found) = find_dcp_chunk(&mut Bytes(RANK), chunk) {
            check_place(&found, RANK.len() as u64);
        }
    });
    Ok(index.tensors.len())
}

/// A file in memory.
struct Bytes<'a>(&'a [u8]);

impl Object for Bytes<'_> {
    fn len(&mut self) -> Result<u64, StoreError> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StoreError> {
        let found = self.0.get(offset as usize..).and_then(|rest| rest.get(..buf.len()));
        let short = StoreError::Short {
            path: "file".to_owned(),
            offset,
            needed: buf.len() as u64,
            found: 0,
        };
        buf.copy_from_slice(found.ok_or(short)?);
        Ok(())
    }
}

/// How many tensors were found, if any answer was given; `how` names the input.
fn read(subject: &Subject, bytes: &[u8], how: &str) -> Result<usize, String> {
    let before = memory::start();
    let answer = catch_unwind(AssertUnwindSafe(|| (subject.read)(bytes)));
    let used = memory::peak_since(before);
    let limit = MEMORY_FACTOR * bytes.len() + MEMORY_EXTRA;
    assert!(used <= limit, "{}, {how}: {used} bytes of memory, limit {limit}", subject.name);
    answer.unwrap_or_else(|_| panic!("{}, {how}: the reader panics", subject.name))
}

#[test]
fn files_that_were_cut_off_are_refused() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for subject in subjects() {
        assert!(read(&subject, &subject.bytes, "whole").unwrap() > 0, "{}", subject.name);
        // A data file of dcp that ends where one of its archives does is a whole file.
        let whole: &[usize] =
            if subject.name == "dcp by torch" { &[0, 1261, 2838, 4415] } else { &[] };
        for len in (0..subject.bytes.len()).filter(|len| !whole.contains(len)) {
            let how = format!("first {len} bytes");
            let answer = read(&subject, &subject.bytes[..len], &how);
            assert!(answer.is_err(), "{}, {how}: {answer:?}", subject.name);
        }
    }
}

#[test]
fn files_with_a_changed_byte_are_read_or_refused() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for subject in subjects() {
        let mut refused = 0;
        for at in 0..subject.bytes.len() {
            for change in [1, 0x80, 0xFF] {
                let mut bytes = subject.bytes.clone();
                bytes[at] ^= change;
                refused += usize::from(read(&subject, &bytes, &format!("byte {at}")).is_err());
            }
        }
        assert!(refused > 100, "{}: {refused} of all changes were noticed", subject.name);
    }
}

#[test]
fn files_that_were_put_together_anew_are_read_or_refused() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for subject in subjects() {
        let mut refused = 0;
        let mut state = 1;
        for input in 0..INPUTS {
            let bytes = mutated(&subject.bytes, &mut state);
            refused += u64::from(read(&subject, &bytes, &format!("input {input}")).is_err());
        }
        assert!(refused > INPUTS / 10, "{}: {refused} inputs were refused", subject.name);
    }
}

/// The file with up to four changes: pieces doubled, taken out, and overwritten with numbers and
/// opcodes that break arithmetic and stacks.
fn mutated(bytes: &[u8], state: &mut u64) -> Vec<u8> {
    const PIECES: [&[u8]; 12] = [
        &[0xFF; 4],
        &[0xFF; 8],
        &[0, 0, 0, 0x80],
        &[0, 0, 0, 0, 0, 0, 0, 0x80],
        &[0xFE; 2],
        &[0; 8],
        b"2222",
        b"((tt",
        b"]]]]",
        b"}}}}",
        b"h\x00h\x01",
        b"))R",
    ];
    let mut below = |bound: usize| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) as usize % bound
    };
    let mut bytes = bytes.to_vec();
    for _ in 0..=below(4) {
        let at = below(bytes.len());
        let len = below(40).min(bytes.len() - at);
        match below(4) {
            0 => bytes.extend_from_within(at..at + len),
            1 if len < bytes.len() => drop(bytes.drain(at..at + len)),
            2 => {
                let piece = bytes[at..at + len].to_vec();
                let to = below(bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            _ => {
                let piece = PIECES[below(PIECES.len())];
                let len = piece.len().min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&piece[..len]);
            }
        }
    }
    bytes
}

/// A pickle of Python's `(a, a)` thirty times over, which would be a billion entries walked through.
#[test]
fn dictionaries_that_contain_one_another_come_to_an_end() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut pickle = vec![0x80, 2, b')'];
    (0..30).for_each(|_| pickle.extend([b'2', 0x86]));
    pickle.push(b'.');
    let spec = FileSpec { stem: String::new(), state: StateKind::Blob, tensors: Vec::new() };
    let mut bytes = zeros(&find("torch").unwrap().image(&spec));
    let error = index("torch", &with_pickle(&mut bytes, &pickle)).unwrap_err();
    assert_eq!(error, "unsupported torch file: dictionaries that contain each other");
}

/// An archive of an empty dictionary, whose pickle has six bytes, with another pickle: sizes in the
/// directory are changed, and where members begin.
fn with_pickle(bytes: &mut Vec<u8>, pickle: &[u8]) -> Vec<u8> {
    let more = (pickle.len() - 6) as u32;
    let _ = bytes.splice(64..70, pickle.iter().copied());
    let entries: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(b"PK\x01\x02")).collect();
    let mut add = |at: usize| {
        let old = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&(old + more).to_le_bytes());
    };
    add(entries[0] + 20);
    add(entries[0] + 24);
    entries[1..].iter().for_each(|&entry| add(entry + 42));
    let end = bytes.len();
    let mut add = |at: usize| {
        let old = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&(old + more).to_le_bytes());
    };
    add(end - 22 - 20 - 8);
    bytes.clone()
}

#[test]
fn images_of_many_tensors_are_small() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tensors = (0..100_000).map(|number| Tensor {
        path: vec![format!("model.layers.{}.weight", number / 8), format!("{}", number % 8)],
        dtype: DType::Float32,
        len: 1000 + number % 100,
        share: Share { name: number.to_string(), total: 1000, first: 0 },
    });
    let spec =
        FileSpec { stem: String::new(), state: StateKind::Layers, tensors: tensors.collect() };
    for (name, limit) in [("torch", 60), ("safetensors", 25), ("dcp", 30), ("raw", 40)] {
        let before = memory::start();
        let image = find(name).unwrap().image(&spec);
        let kept = memory::now() - before;
        image.check().unwrap();
        assert!(kept < limit * 1_000_000, "{name}: {kept} bytes");
    }
}
