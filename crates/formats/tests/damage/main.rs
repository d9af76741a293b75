//! Files that someone has damaged: every parser, fed with mutated files.
//!
//! For each format a few small files are made, with all its options; then bytes are flipped,
//! overwritten with numbers that break arithmetic, moved, cut off and added, and every way of
//! reading is tried. The answer must be a sample or an error: no panic, and no more memory than
//! [`MEMORY_FACTOR`] times the file plus [`MEMORY_EXTRA`] at any time (of a JPEG, whose pixels may be
//! all alike, [`JPEG_PIXEL_BYTES`] for each pixel that it may announce).
//!
//! `make test` tries a few thousand inputs a format, `make fuzz` a million (`FEEDLINE_FUZZ` is the
//! number). The inputs are the same in every run; a failure names the one that it needs.

mod memory;
mod mutation;
mod subjects;

use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use feedline_formats::{
    ByteSource, Collect, Companion, DecodeError, Format, Opened, SampleSink as _, Scratch,
    StreamError,
};

use mutation::Mutator;
use subjects::Subject;

/// Pieces in which files are read here: small, so that small files have several.
const PIECE_BYTES: usize = 4096;
/// What the parsers promise, see their modules.
const MEMORY_FACTOR: usize = 16;
/// A JPEG may announce 512 pixels for each of its bytes; decoders take so much for one at most.
const JPEG_PIXELS: usize = 512;
const JPEG_PIXEL_BYTES: usize = 12;
const MEMORY_EXTRA: usize = 1 << 20;
/// What samples may take that are collected, and what decoders may take beside it to put one in order.
const COLLECT_BYTES: u64 = 64 << 10;
const COLLECT_FACTOR: usize = 6;
/// Inputs of each format unless more are asked for.
const INPUTS: u64 = 4000;

/// The allocator counts for the whole process, so tests take turns.
static ALONE: Mutex<()> = Mutex::new(());

/// A file and its companions in memory.
struct Files<'a> {
    data: &'a [u8],
    companions: &'a [(Companion, Vec<u8>)],
}

impl ByteSource for Files<'_> {
    fn len(&mut self) -> Result<u64, StreamError> {
        Ok(self.data.len() as u64)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), StreamError> {
        (&mut self.data).read_exact_at(offset, buf)
    }

    fn companion(&mut self, which: &Companion) -> Result<Box<dyn ByteSource + '_>, StreamError> {
        let found = self.companions.iter().find(|(companion, _)| companion == which);
        let (_, bytes) = found.ok_or("no such companion")?;
        Ok(Box::new(bytes.as_slice()))
    }
}

/// Reads into a sink with a limit, which holds whatever the file announces. A sample that was read is
/// whole: every part has the bytes of its shape.
fn collect(opened: &mut dyn Opened, files: &mut Files<'_>, index: u64, scratch: &mut Scratch) {
    let mut sink = Collect::new(COLLECT_BYTES);
    match opened.read_into(files, index, scratch, &mut sink) {
        Ok(_) => {
            for part in sink.parts() {
                let element = part.element.map_or(1, |element| element.size_bytes());
                let announced = part.shape.iter().product::<u64>() * element;
                assert_eq!(part.bytes.len() as u64, announced, "part {:?}", part.name);
            }
        }
        Err(DecodeError::SampleLimit { needed, limit, .. }) => assert!(needed > limit),
        Err(_) => {}
    }
    let held: usize = sink.parts().iter().map(|part| part.bytes.len()).sum();
    assert!(held as u64 <= COLLECT_BYTES - sink.room_bytes());
}

/// Reads in every way; gives how many answers were samples.
fn read_all(format: &dyn Format, files: &mut Files<'_>, scratch: &mut Scratch) -> u64 {
    let mut samples = 0;
    let Ok(mut opened) = format.open(files, scratch) else { return 0 };
    for index in [0, 1, 0, u64::MAX] {
        samples += u64::from(opened.read(files, index, scratch).is_ok());
        collect(&mut *opened, files, index, scratch);
        let _ = opened.locate(files, index, scratch, &mut Vec::new());
    }
    samples
}

/// Damages the subject's files `inputs` times.
fn check(subject: &Subject, inputs: u64) {
    let format = &*subject.format;
    let mut mutator = Mutator::new(subject.name.len() as u64);
    let (mut whole, mut refused) = (0, 0);
    // What decoders keep between samples is not counted again and again.
    let mut scratch = Scratch::new(PIECE_BYTES);
    let limit_of = |size: usize| match format.facts().name {
        "jpeg" => JPEG_PIXEL_BYTES * (JPEG_PIXELS * size + MEMORY_EXTRA),
        _ => MEMORY_FACTOR * size + MEMORY_EXTRA,
    };
    for input in 0..inputs {
        let (data, companions) = mutator.damaged(subject);
        let size = data.len() + companions.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        scratch.whole = Vec::new();
        scratch.decoded = Vec::new();
        let before = memory::start();
        let mut files = Files { data: &data, companions: &companions };
        let read = catch_unwind(AssertUnwindSafe(|| read_all(format, &mut files, &mut scratch)));
        let used = memory::peak_since(before);
        match read {
            Ok(0) => refused += 1,
            Ok(_) => whole += 1,
            Err(_) => panic!("{}: input {input} made the parser panic", subject.name),
        }
        let limit = limit_of(size) + COLLECT_FACTOR * COLLECT_BYTES as usize;
        assert!(
            used <= limit,
            "{}: input {input} of {size} bytes took {used} bytes of memory, the limit is {limit}",
            subject.name
        );
    }
    let line = format!("{}: {inputs} inputs, {refused} refused, {whole} read", subject.name);
    writeln!(io::stderr(), "{line}").expect("a test has someone to tell");
    assert!(refused > 0, "{}: no input was damaged enough to be refused", subject.name);
}

fn inputs() -> u64 {
    match std::env::var("FEEDLINE_FUZZ") {
        Ok(number) => number.parse().expect("FEEDLINE_FUZZ is a number of inputs"),
        Err(_) => INPUTS,
    }
}

#[test]
fn damaged_files_are_read_or_refused_and_cost_no_more_memory_than_promised() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for subject in subjects::all() {
        check(&subject, inputs());
    }
}

#[test]
fn files_of_other_formats_are_refused_with_a_place() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let subjects = subjects::all();
    let mut scratch = Scratch::new(PIECE_BYTES);
    for reader in subjects.iter().filter(|subject| subject.has_a_mark()) {
        for other in &subjects {
            if other.format.facts().name == reader.format.facts().name {
                continue;
            }
            let mut files = Files { data: &other.data, companions: &[] };
            let opened = reader.format.open(&mut files, &mut scratch);
            let read = opened.and_then(|mut it| it.read(&mut files, 0, &mut scratch));
            let error = read.expect_err("a file of another format").to_string();
            let placed = error.contains("byte") || error.contains("begins with");
            assert!(placed, "{} of {}: {error}", reader.name, other.name);
        }
    }
}
