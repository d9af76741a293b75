//! A Perfetto trace from the first look at the events to the file.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::event::Batch;
use crate::flow::{EventSink, Output};
use crate::perfetto::scan::TraceScan;
use crate::perfetto::sink::PerfettoSink;
use crate::perfetto::view::View;
use crate::tables::Tables;

/// Surveys a trace, then writes it. Needs all events two to four times.
#[derive(Debug)]
pub struct PerfettoExport {
    path: PathBuf,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    TraceScan(TraceScan),
    Write(Box<PerfettoSink>),
}

impl PerfettoExport {
    /// An export of what is shown in a view. No file is made before the scan is complete.
    pub fn new(path: &Path, view: View) -> Self {
        Self { path: path.to_owned(), stage: Stage::TraceScan(TraceScan::new(view)) }
    }

    fn sink(&mut self) -> &mut dyn EventSink {
        match &mut self.stage {
            Stage::TraceScan(scan) => scan,
            Stage::Write(sink) => &mut **sink,
        }
    }
}

impl EventSink for PerfettoExport {
    fn write(&mut self, tables: &Tables, batch: &Batch) -> Result<()> {
        self.sink().write(tables, batch)
    }

    fn finish(&mut self, tables: &Tables) -> Result<()> {
        self.sink().finish(tables)?;
        if let Stage::TraceScan(scan) = &mut self.stage
            && scan.is_complete()
        {
            let sink = PerfettoSink::new(&self.path, std::mem::take(scan))?;
            self.stage = Stage::Write(Box::new(sink));
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        matches!(&self.stage, Stage::Write(sink) if sink.is_complete())
    }

    fn output(&self) -> Output {
        match &self.stage {
            Stage::TraceScan(_) => Output::default(),
            Stage::Write(sink) => sink.output(),
        }
    }
}
