//! Files of Chrome's JSON as rows, on one axis of time.

use feedline_trace::chrome::{ChromeSource, Clock};
use feedline_trace::{EventSource as _, FileSlice, ReadStats, Tables};

use super::row_ingest::RowIngest;
use super::{AnalyzeError, LoadProgress};

/// Times before the year 2000 are no times of a wall clock: they count from a start of something.
const WALL_CLOCK_NS: i64 = 946_684_800_000_000_000;

/// What is known about the files after they were read.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) intake: ReadStats,
    /// Files, of several, that do not say when their time begins.
    pub(crate) unanchored: Vec<String>,
}

/// Reads files: once, unless one states its origin of time after its events.
pub(crate) fn read(
    slices: &[FileSlice],
    tables: &mut Tables,
    progress: &dyn LoadProgress,
    ingest: &mut RowIngest,
) -> Result<Findings, AnalyzeError> {
    let mut source = ChromeSource::of(slices.to_vec())?;
    ingest.read(&mut source, tables, progress)?;
    if let Some(again) = source.again()? {
        *tables = Tables::default();
        ingest.restart();
        source = again;
        ingest.read(&mut source, tables, progress)?;
    }
    let unanchored = unanchored(slices, source.clocks())?;
    Ok(Findings { intake: source.read_stats().clone(), unanchored })
}

/// Files whose clock is unknown: none, or all that have events. They are taken to share it, as programs of
/// one machine do.
fn unanchored(slices: &[FileSlice], clocks: &[Clock]) -> Result<Vec<String>, AnalyzeError> {
    let with_events = || slices.iter().zip(clocks).filter(|(_, clock)| clock.first_ns.is_some());
    let is_wall = |clock: &Clock| {
        clock.origin_ns.is_some() || clock.first_ns.is_some_and(|first| first >= WALL_CLOCK_NS)
    };
    let known = with_events().find(|(_, clock)| is_wall(clock));
    let unknown = with_events().find(|(_, clock)| !is_wall(clock));
    match (known, unknown) {
        (Some((known, _)), Some((unknown, _))) => {
            Err(AnalyzeError::Clocks { known: known.name.clone(), unknown: unknown.name.clone() })
        }
        (None, Some(_)) if with_events().count() > 1 => {
            Ok(with_events().map(|(slice, _)| slice.name.display().to_string()).collect())
        }
        _ => Ok(Vec::new()),
    }
}
