//! A Perfetto trace with what the analysis found beside what the program did: a row a rank with its stalls,
//! each named by its largest cause.

use std::path::{Path, PathBuf};

use feedline_analyze::Analysis;
use feedline_analyze::analysis::Step;
use feedline_analyze::layer::StallCause;
use feedline_trace::perfetto::{PerfettoExport, View};
use feedline_trace::{
    Batch, Event, EventKind, EventSource, Process, ReadStats, RecognizedTrace, Tables, TraceError,
    convert, recognize,
};

use crate::failure;

/// What the rows are called.
const HOST: &str = "feedline";

/// Says, before anything is read, whether a Perfetto trace can be made of it.
pub(crate) fn check(inputs: &[PathBuf]) -> anyhow::Result<RecognizedTrace<'static>> {
    let found = match inputs {
        [input] => recognize(input).ok(),
        _ => None,
    };
    found.ok_or_else(|| {
        failure::hinted(
            "--perfetto needs exactly one trace: a folder, a file, or a folder of files",
            "name one trace, unpacked and without a glob pattern, or drop --perfetto",
        )
    })
}

/// Writes the trace.
pub(crate) fn export(inputs: &[PathBuf], analysis: &Analysis, path: &Path) -> anyhow::Result<()> {
    let found = check(inputs)?;
    crate::analyze::make_folder(path)?;
    let open = || -> Result<Box<dyn EventSource + '_>, TraceError> {
        Ok(Box::new(Lanes { input: found.open()?, analysis, is_done: false }))
    };
    convert(open, &mut PerfettoExport::new(path, View::default()))?;
    Ok(())
}

/// The events of a trace, and after them what the analysis found.
struct Lanes<'a> {
    input: Box<dyn EventSource>,
    analysis: &'a Analysis,
    is_done: bool,
}

impl EventSource for Lanes<'_> {
    fn next_batch(&mut self, tables: &mut Tables, batch: &mut Batch) -> Result<bool, TraceError> {
        if self.input.next_batch(tables, batch)? {
            return Ok(true);
        }
        batch.clear();
        if std::mem::replace(&mut self.is_done, true) {
            return Ok(false);
        }
        self.stalls(tables, batch);
        Ok(!batch.events.is_empty())
    }

    fn read_stats(&self) -> &ReadStats {
        self.input.read_stats()
    }
}

impl Lanes<'_> {
    fn stalls(&self, tables: &mut Tables, batch: &mut Batch) {
        let start_ns = self.analysis.trace.start_ns;
        let process = tables.add_process(Process {
            host: HOST.to_owned(),
            name: Some("analysis: stalls by rank".to_owned()),
            start_ns,
            is_traced: true,
            ..Process::default()
        });
        let category = tables.name_row("stall");
        let threads = tables.name_row("thread");
        for rank in &self.analysis.ranks {
            batch.events.push(Event {
                process,
                thread: rank.rank + 1,
                start_ns,
                kind: EventKind::Span,
                category: threads,
                name: tables.name_row(&format!("rank {}", rank.rank)),
                count: 1,
                ..Event::default()
            });
        }
        for step in &self.analysis.steps {
            let peer_ns = step.parts_ns.get(StallCause::Peer as usize).copied().unwrap_or(0);
            let own_ns = step.stall_ns.saturating_sub(peer_ns);
            // A stall ends with the fetch, a wait for others begins with the collective.
            let fetched_ns = step.start_ns + step.fetch_ns;
            let parts = [
                (fetched_ns.saturating_sub(own_ns), own_ns, main_cause(step)),
                (step.meets_at_ns.unwrap_or(fetched_ns), peer_ns, StallCause::Peer),
            ];
            for (at_ns, duration_ns, cause) in parts.into_iter().filter(|(_, ns, _)| *ns > 0) {
                batch.events.push(Event {
                    process,
                    thread: step.rank + 1,
                    start_ns: start_ns.saturating_add_unsigned(at_ns),
                    duration_ns,
                    kind: EventKind::Span,
                    category,
                    name: tables.name_row(&format!("input stall: {}", cause.name())),
                    epoch: Some(i64::from(step.epoch)),
                    step: Some(i64::from(step.step)),
                    count: 1,
                    ..Event::default()
                });
            }
        }
    }
}

/// What most of a step's own stall was for.
fn main_cause(step: &Step) -> StallCause {
    let own =
        StallCause::ALL.into_iter().zip(&step.parts_ns).filter(|(it, _)| *it != StallCause::Peer);
    own.max_by_key(|(_, ns)| **ns).map_or(StallCause::Unknown, |(cause, _)| cause)
}
