//! Rows that wait in a file because memory is short.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use feedline_trace::EventKind;

use crate::row::Row;

use super::AnalyzeError;

/// Bytes of a row in the file.
const ROW_BYTES: usize = 60;
/// Rows that are written at once.
const WRITE_ROWS: usize = 1024;

/// A file of rows. It has no name, so that nothing is left of it however the program ends.
#[derive(Debug)]
pub(crate) struct Spill {
    path: PathBuf,
    file: Arc<File>,
    rows: u64,
}

/// Rows in the file that are in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    first: u64,
    rows: u64,
}

impl Spill {
    pub(crate) fn create(folder: &Path) -> Result<Self, AnalyzeError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".feedline-rows-{}-{number}", std::process::id()));
        let made = || {
            fs::create_dir_all(folder)?;
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)?;
            fs::remove_file(&path)?;
            Ok(file)
        };
        let file = made().map_err(|source| AnalyzeError::Spill { path: path.clone(), source })?;
        Ok(Self { path, file: Arc::new(file), rows: 0 })
    }

    fn error(&self, source: io::Error) -> AnalyzeError {
        AnalyzeError::Spill { path: self.path.clone(), source }
    }

    /// Writes rows, which `next` gives in their order, some at a time.
    pub(crate) fn write(
        &mut self,
        mut each: impl FnMut(
            &mut dyn FnMut(&[Row]) -> Result<(), AnalyzeError>,
        ) -> Result<(), AnalyzeError>,
    ) -> Result<Run, AnalyzeError> {
        let first = self.rows;
        let mut bytes = Vec::with_capacity(WRITE_ROWS * ROW_BYTES);
        let mut written = first;
        each(&mut |rows| {
            for some in rows.chunks(WRITE_ROWS) {
                bytes.clear();
                some.iter().for_each(|row| encode(row, &mut bytes));
                let at = written * ROW_BYTES as u64;
                self.file.write_all_at(&bytes, at).map_err(|source| self.error(source))?;
                written += some.len() as u64;
            }
            Ok(())
        })?;
        self.rows = written;
        Ok(Run { first, rows: written - first })
    }

    /// Reads a run, `most` rows at a time.
    pub(crate) fn read(&self, run: Run, most: usize) -> RunReader {
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        RunReader { file, path, run, most: most.max(1), rows: Vec::new(), at: 0 }
    }
}

/// A run that is read.
#[derive(Debug)]
pub(crate) struct RunReader {
    file: Arc<File>,
    path: PathBuf,
    /// What was not read yet.
    run: Run,
    most: usize,
    rows: Vec<Row>,
    at: usize,
}

impl RunReader {
    /// The rows that are in memory.
    pub(crate) fn rest(&self) -> &[Row] {
        &self.rows[self.at..]
    }

    /// Goes on, and reads more if there is nothing left in memory.
    pub(crate) fn advance(&mut self, rows: usize) -> Result<(), AnalyzeError> {
        self.at += rows;
        if self.at < self.rows.len() || self.run.rows == 0 {
            return Ok(());
        }
        let count = usize::try_from(self.run.rows).unwrap_or(usize::MAX).min(self.most);
        let mut bytes = vec![0; count * ROW_BYTES];
        let at = self.run.first * ROW_BYTES as u64;
        self.file
            .read_exact_at(&mut bytes, at)
            .map_err(|source| AnalyzeError::Spill { path: self.path.clone(), source })?;
        self.rows.clear();
        self.rows.reserve_exact(count);
        self.rows.extend(bytes.chunks_exact(ROW_BYTES).map(decode));
        self.at = 0;
        self.run = Run { first: self.run.first + count as u64, rows: self.run.rows - count as u64 };
        Ok(())
    }

    /// Memory that it takes.
    pub(crate) fn held_bytes(&self) -> u64 {
        (self.most.min(self.rows.capacity().max(1)) * size_of::<Row>()) as u64
    }
}

fn encode(row: &Row, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&row.start_ns.to_le_bytes());
    out.extend_from_slice(&row.end_ns.to_le_bytes());
    out.extend_from_slice(&row.bytes.to_le_bytes());
    out.extend_from_slice(&row.offset.to_le_bytes());
    for number in [row.lane, row.event_type, row.file, row.epoch, row.step, row.count] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&row.errno.to_le_bytes());
    out.push(row.kind as u8);
    out.resize(begin + ROW_BYTES, 0);
}

fn decode(bytes: &[u8]) -> Row {
    let wide = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let narrow = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    Row {
        start_ns: wide(0).cast_signed(),
        end_ns: wide(8).cast_signed(),
        bytes: wide(16),
        offset: wide(24).cast_signed(),
        lane: narrow(32),
        event_type: narrow(36),
        file: narrow(40),
        epoch: narrow(44),
        step: narrow(48),
        count: narrow(52),
        errno: u16::from_le_bytes([bytes[56], bytes[57]]),
        kind: EventKind::ALL[usize::from(bytes[58]).min(EventKind::ALL.len() - 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let row = |n: u32| Row {
            start_ns: i64::MIN + i64::from(n),
            end_ns: i64::MAX - i64::from(n),
            bytes: u64::MAX - u64::from(n),
            offset: -i64::from(n),
            lane: n,
            event_type: n + 1,
            file: u32::MAX - n,
            epoch: n + 2,
            step: n + 3,
            count: n + 4,
            errno: 65_535,
            kind: EventKind::ALL[n as usize % 5],
        };
        let rows: Vec<Row> = (0..3000).map(row).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(folder.path()).unwrap();
        let first = spill.write(|put| put(&rows[..7])).unwrap();
        let second = spill.write(|put| rows[7..].chunks(100).try_for_each(&mut *put)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        for (run, expected) in [(first, &rows[..7]), (second, &rows[7..])] {
            let mut reader = spill.read(run, 64);
            let mut found = Vec::new();
            reader.advance(0).unwrap();
            while !reader.rest().is_empty() {
                let some = reader.rest().len().min(10);
                found.extend_from_slice(&reader.rest()[..some]);
                reader.advance(some).unwrap();
            }
            assert_eq!(found, expected);
        }
    }
}
