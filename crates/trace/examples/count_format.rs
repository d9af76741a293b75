//! A trace format of one's own: counts events by name. `count_format TRACE OUT.counts` reads any trace
//! that Feedline knows and writes the counts.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use feedline_trace::{
    Batch, EventSink, FORMATS, Output, Tables, TraceError, TraceFormat, WriteOptions, convert,
    recognize_among,
};

/// The row, which could stand in `FORMATS`.
const COUNTS: TraceFormat = TraceFormat {
    name: "counts",
    title: "Counts",
    about: "events by name: *.counts",
    suffixes: &[".counts"],
    create: Some(|path, _| {
        Ok(Box::new(CountSink { path: path.to_owned(), counts: BTreeMap::new() }))
    }),
    ..TraceFormat::BASE
};

struct CountSink {
    path: PathBuf,
    counts: BTreeMap<String, u64>,
}

impl EventSink for CountSink {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<(), TraceError> {
        for event in &batch.events {
            *self.counts.entry(tables.name(event.name).to_owned()).or_default() += event.count;
        }
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> Result<(), TraceError> {
        let lines = self.counts.iter().map(|(name, count)| format!("{count:>12} {name}\n"));
        fs::write(&self.path, lines.collect::<String>())
            .map_err(|source| TraceError::Write { path: self.path.clone(), source })
    }

    fn output(&self) -> Output {
        Output { paths: vec![self.path.clone()], slices: None }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = &args[..] else { return Err("usage: count_format TRACE OUT".into()) };
    let formats: Vec<TraceFormat> = FORMATS.iter().copied().chain([COUNTS]).collect();
    let found = recognize_among(&formats, Path::new(input))?;
    let writes = |format: &&TraceFormat| format.has_suffix(Path::new(output));
    let create = formats.iter().find(writes).and_then(|format| format.create);
    let mut sink = create.ok_or("unknown suffix")?(Path::new(output), &WriteOptions::default())?;
    convert(|| found.open(), &mut *sink)?;
    Ok(())
}
