//! Prints what stands in the segments of a folder, one line an entry.

use std::io::Write as _;
use std::path::Path;

use feedline_recorder::{
    PROCESS_SUFFIX, ProcessFile, ReadError, SEGMENT_SUFFIX, SegmentEntry, SegmentFile,
};

fn main() -> Result<(), ReadError> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut paths = std::fs::read_dir(Path::new(&folder))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    let mut out = std::io::stdout().lock();
    for path in paths {
        let name = path.to_string_lossy().into_owned();
        if name.ends_with(PROCESS_SUFFIX) {
            writeln!(out, "{:?}", ProcessFile::open(&path)?.facts())?;
        } else if name.ends_with(SEGMENT_SUFFIX) {
            let segment = SegmentFile::open(&path)?;
            writeln!(out, "{name} {:?} holes {}", segment.process(), segment.has_holes())?;
            for entry in segment.entries() {
                match entry {
                    SegmentEntry::Call(op, record) => writeln!(
                        out,
                        "{} {} file {} size {} offset {} arg {} result {} errno {} ticks {}",
                        record.thread,
                        op.info().name,
                        record.file,
                        record.size,
                        record.offset,
                        record.arg,
                        record.result,
                        record.errno,
                        record.end - record.start
                    )?,
                    SegmentEntry::Text { number, base, text, .. } => {
                        writeln!(
                            out,
                            "text {number} on {base}: {}",
                            String::from_utf8_lossy(text)
                        )?;
                    }
                    SegmentEntry::Summary(op, record, summary) => {
                        writeln!(out, "{} {record:?} {summary:?}", op.info().name)?;
                    }
                }
            }
        }
    }
    Ok(())
}
