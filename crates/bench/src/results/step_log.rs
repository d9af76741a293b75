//! The times of every step of one rank, kept in an unnamed file beside the results.
//!
//! DLIO's `<rank>_output.json` lists three numbers a step and `<rank>_steps.csv` all of them. They
//! are spooled to disk as they come and read back when those files are written, so memory does not
//! grow with the number of steps.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::results::metrics::Step;

/// Names of the numbers of a step, in the order in which they are kept.
pub(crate) const COLUMNS: [&str; 9] = [
    "load",
    "proc",
    "compute",
    "storage",
    "decode",
    "framework",
    "workers",
    "peers",
    "asked_compute",
];
const RECORD_BYTES: u64 = 8 * COLUMNS.len() as u64;

/// Records that go to another process at a time.
const RAW_RECORDS: usize = 4096;

/// One of DLIO's three lists; its number is its place in [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Load,
    Proc,
    Compute,
}

/// Where steps are written while the run goes on.
pub(crate) struct StepLog {
    file: BufWriter<File>,
    steps: u64,
}

impl StepLog {
    /// A log in `folder` that vanishes with the process.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Self { file: BufWriter::with_capacity(32 << 10, file), steps: 0 })
    }

    /// Steps so far: the place of the next one.
    pub(crate) fn len(&self) -> u64 {
        self.steps
    }

    pub(crate) fn add(&mut self, step: &Step) -> io::Result<()> {
        let record: [u64; COLUMNS.len()] = [
            step.wait.total_ns(),
            step.proc_ns,
            step.compute_ns,
            step.wait.storage_ns,
            step.wait.decode_ns,
            step.wait.framework_ns,
            step.wait.worker_ns,
            step.peers_ns,
            step.asked_ns,
        ];
        for ns in record {
            self.file.write_all(&ns.to_le_bytes())?;
        }
        self.steps += 1;
        Ok(())
    }

    /// Goes on with records that another process has written; a last one that is cut off is dropped.
    pub(crate) fn add_raw(&mut self, records: &[u8]) -> io::Result<()> {
        let whole = records.chunks_exact(RECORD_BYTES as usize);
        self.steps += whole.len() as u64;
        self.file.write_all(&records[..whole.len() * RECORD_BYTES as usize])
    }

    /// Ends writing; the lists can be read from here on.
    pub(crate) fn finish(self) -> io::Result<StepFile> {
        self.file.into_inner().map(StepFile).map_err(|error| error.into_error())
    }
}

/// A finished step log.
#[derive(Debug)]
pub(crate) struct StepFile(File);

impl StepFile {
    /// Calls `visit` with all records as they are, some thousands at a time.
    pub(crate) fn each_raw(
        &self,
        mut visit: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(0))?;
        let mut piece = vec![0; RAW_RECORDS * RECORD_BYTES as usize];
        loop {
            let filled = read_up_to(file, &mut piece)?;
            if filled == 0 {
                return Ok(());
            }
            visit(&piece[..filled])?;
        }
    }

    /// Calls `visit` with the seconds of each step of a range, in the order of [`COLUMNS`].
    pub(crate) fn each(
        &self,
        steps: Range<u64>,
        mut visit: impl FnMut([f64; COLUMNS.len()]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(steps.start * RECORD_BYTES))?;
        let mut reader = BufReader::with_capacity(32 << 10, file);
        for _ in steps {
            let mut record = [0.0; COLUMNS.len()];
            for seconds in &mut record {
                let mut word = [0; 8];
                reader.read_exact(&mut word)?;
                *seconds = u64::from_le_bytes(word) as f64 / 1e9;
            }
            visit(record)?;
        }
        Ok(())
    }
}

/// Fills `buffer` as far as the file reaches; how far that is.
fn read_up_to(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// A list of seconds that is read from the log while it is serialized.
pub(crate) struct StepList<'a> {
    pub(crate) file: &'a StepFile,
    pub(crate) steps: Range<u64>,
    pub(crate) column: Column,
}

impl Serialize for StepList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let len = self.steps.end - self.steps.start;
        let mut list = serializer.serialize_seq(Some(len as usize))?;
        let mut refused = None;
        let read = self.file.each(self.steps.clone(), |record| {
            list.serialize_element(&record[self.column as usize]).map_err(|error| {
                refused = Some(error);
                io::Error::other("the list was refused")
            })
        });
        match (refused, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(S::Error::custom(error)),
            (None, Ok(())) => list.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_as_they_went_in() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = StepLog::create(folder.path()).unwrap();
        for number in 1..=3u64 {
            let mut step = Step { proc_ns: number * 3_000_000_000, ..Step::default() };
            step.wait.storage_ns = number * 1_000_000_000;
            step.compute_ns = number * 2_000_000_000;
            step.wait.framework_ns = 125_000_000;
            step.peers_ns = 500_000_000;
            step.asked_ns = 250_000_000;
            log.add(&step).unwrap();
        }
        assert_eq!(log.len(), 3);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing to clean up");
        let file = log.finish().unwrap();
        let list = |steps, column| {
            serde_json::to_string(&StepList { file: &file, steps, column }).unwrap()
        };
        assert_eq!(list(0..3, Column::Load), "[1.125,2.125,3.125]");
        assert_eq!(list(1..3, Column::Proc), "[6.0,9.0]");
        assert_eq!(list(0..1, Column::Compute), "[2.0]");
        assert_eq!(list(3..3, Column::Compute), "[]");
        let mut records = Vec::new();
        file.each(2..3, |record| {
            records.push(record);
            Ok(())
        })
        .unwrap();
        assert_eq!(records, [[3.125, 9.0, 6.0, 3.0, 0.0, 0.125, 0.0, 0.5, 0.25]]);
    }
}
