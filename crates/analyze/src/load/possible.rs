//! Times that events can have. What lies outside is damage, and would not fit where times are added up.

use feedline_trace::TraceError;

use crate::layer::StackLayer;
use crate::row::Row;

use super::folder::{self, Groups, Known};
use super::numbering::{LONGEST_NS, TimeSpan};
use super::ordered::{Workforce, ordered};
use super::{AnalyzeError, LoadOptions, LoadProgress};

/// Clocks that count from the start of something may be a little below 0.
const FIRST_NS: i64 = -LONGEST_NS.cast_signed();
/// In the year 2116. Any two times are less than `i64::MAX` apart.
const LAST_NS: i64 = 1 << 62;

/// Whether an event can have begun then.
pub(crate) fn is_moment(at_ns: i64) -> bool {
    (FIRST_NS..=LAST_NS).contains(&at_ns)
}

/// Whether a row's times can be.
pub(crate) fn is_possible(row: &Row) -> bool {
    is_moment(row.start_ns) && row.duration_ns() <= LONGEST_NS
}

/// Whether a trace from here to there may have rows whose times cannot be.
pub(crate) fn is_odd(extent: TimeSpan) -> bool {
    !extent.is_empty()
        && (!is_moment(extent.start_ns) || extent.end_ns.abs_diff(extent.start_ns) > LONGEST_NS)
}

/// Reads all rows of an odd folder: how many cannot be, and from when to when the others go.
pub(crate) fn scan(
    groups: &Groups,
    known: &Known,
    layers: &[StackLayer],
    options: &LoadOptions,
    progress: &dyn LoadProgress,
) -> Result<(u64, TimeSpan), AnalyzeError> {
    let (mut impossible, mut extent, mut done) = (0, TimeSpan::default(), 0);
    let threads = options.threads;
    ordered(
        Workforce { threads, ahead: threads.get() },
        &|| (),
        |give| {
            let _ = (0..groups.len()).all(give);
        },
        &|(), index| {
            let rows = folder::rows(groups, index, known, layers, &|_| true)?;
            let mut found = (0_u64, TimeSpan::default());
            for row in rows {
                if !is_possible(&row) {
                    found.0 += 1;
                } else if layers[row.event_type as usize] != StackLayer::Meta {
                    found.1.add(TimeSpan { start_ns: row.start_ns, end_ns: row.end_ns });
                }
            }
            Ok(found)
        },
        &mut |found: Result<(u64, TimeSpan), TraceError>| {
            let (count, of_group) = found?;
            impossible += count;
            extent.add(of_group);
            done += 1;
            progress.update("looking again", done, groups.len() as u64);
            Ok::<(), AnalyzeError>(())
        },
    )?;
    Ok((impossible, extent))
}
