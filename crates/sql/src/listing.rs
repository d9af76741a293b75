//! What there is to ask about: tables, their rows and columns.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};

use crate::error::SqlError;
use crate::session::Session;
use crate::tables::{ANALYSIS_TABLES, TRACE_TABLES, type_name};
use crate::trouble::explain;
use crate::views::VIEWS;

/// A row for every column of every table: those of the trace first, then views, then the analysis.
pub(crate) async fn columns(session: &mut Session) -> Result<RecordBatch, SqlError> {
    let mut names = session.registered();
    names.sort_by_key(|name| (rank(name), name.clone()));
    let (mut tables, mut rows, mut columns, mut types) = (vec![], vec![], vec![], vec![]);
    for name in names {
        let number = session.rows(&name).await?;
        let quoted = name.replace('"', "\"\"");
        let frame = session.query(&format!("SELECT * FROM \"{quoted}\"")).await?;
        for field in frame.schema().fields() {
            tables.push(name.clone());
            rows.push(number);
            columns.push(field.name().clone());
            types.push(type_name(field.data_type()));
        }
    }
    let text = |column| -> ArrayRef { Arc::new(StringArray::from(column)) };
    let counts: ArrayRef = Arc::new(UInt64Array::from(rows));
    RecordBatch::try_from_iter([
        ("table", text(tables)),
        ("rows", counts),
        ("column", text(columns)),
        ("type", text(types)),
    ])
    .map_err(|error| explain(&error.into()))
}

fn rank(name: &str) -> usize {
    let views = VIEWS.map(|(view, _)| view);
    let order = TRACE_TABLES.iter().chain(&views).chain(&ANALYSIS_TABLES);
    order.clone().position(|known| *known == name).unwrap_or_else(|| order.count())
}
