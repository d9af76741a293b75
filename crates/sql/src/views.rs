//! Views that save newcomers the joins.

use datafusion::prelude::SessionContext;

use crate::error::SqlError;
use crate::trouble::explain;

/// Views by name.
pub(crate) const VIEWS: [(&str, &str); 2] = [
    // Calls that move bytes say in `result` how many; a summary, all of its calls together. Others have
    // no bytes: with 0 for them, DataFusion 55 infers two nullabilities for one column and gives up.
    (
        "calls",
        "SELECT p.host, p.pid, p.rank, e.thread, e.start, CAST(e.start AS BIGINT) AS start_ns, \
         CAST(e.start AS BIGINT) + e.duration AS end_ns, e.duration AS duration_ns, e.kind, \
         e.category, e.name, e.class, f.path, e.offset, e.size, e.result, \
         CASE WHEN e.class IN ('read', 'write', 'copy') AND e.result >= 0 THEN e.result END AS bytes, \
         e.errno, e.epoch, e.step, e.sample, e.count, e.extra \
         FROM events e LEFT JOIN processes p ON e.process = p.id LEFT JOIN files f ON e.file = f.id \
         WHERE e.kind IN ('call', 'summary')",
    ),
    (
        "spans",
        "SELECT p.host, p.pid, p.rank, e.thread, e.start, CAST(e.start AS BIGINT) AS start_ns, \
         CAST(e.start AS BIGINT) + e.duration AS end_ns, e.duration AS duration_ns, \
         e.category, e.name, f.path, e.size, e.epoch, e.step, e.sample, e.extra \
         FROM events e LEFT JOIN processes p ON e.process = p.id LEFT JOIN files f ON e.file = f.id \
         WHERE e.kind = 'span'",
    ),
];

/// Makes them known; the tables of the trace are.
pub(crate) async fn register(context: &SessionContext) -> Result<(), SqlError> {
    for (name, query) in VIEWS {
        let statement = format!("CREATE VIEW {name} AS {query}");
        context.sql(&statement).await.map_err(|error| explain(&error))?;
    }
    Ok(())
}
