//! Rows for people: columns aligned, numbers to the right. Widths are those of the first rows; what comes
//! later and is wider moves the rest of its line. Nothing is cut, and memory does not grow with the rows.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// Rows that widths are measured of.
const MEASURED: usize = 4096;
const GAP: &str = "  ";

/// A table that is being printed.
pub(crate) struct TextTable {
    columns: Vec<Column>,
    held: Vec<Vec<String>>,
    is_open: bool,
}

struct Column {
    name: String,
    width: usize,
    is_number: bool,
}

impl TextTable {
    pub(crate) fn new(schema: &SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|field| Column {
            name: shown(field.name()),
            width: shown(field.name()).chars().count(),
            is_number: field.data_type().is_numeric(),
        });
        Self { columns: columns.collect(), held: Vec::new(), is_open: false }
    }

    pub(crate) fn push(
        &mut self,
        batch: &RecordBatch,
        sink: &mut dyn Write,
    ) -> Result<(), ArrowError> {
        let options = FormatOptions::default().with_null("NULL");
        let formatters =
            batch.columns().iter().map(|array| ArrayFormatter::try_new(array, &options));
        let formatters = formatters.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(formatters.len());
            for formatter in &formatters {
                cells.push(shown(&formatter.value(row).try_to_string()?));
            }
            if self.is_open {
                self.line(&cells, sink)?;
                continue;
            }
            self.held.push(cells);
            if self.held.len() == MEASURED {
                self.open(sink)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        if self.is_open { Ok(()) } else { self.open(sink) }
    }

    /// Prints what was held back.
    fn open(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        self.is_open = true;
        for (index, column) in self.columns.iter_mut().enumerate() {
            let widths = self.held.iter().map(|cells| cells[index].chars().count());
            column.width = widths.max().unwrap_or(0).max(column.width);
        }
        let names: Vec<_> = self.columns.iter().map(|column| column.name.clone()).collect();
        self.line(&names, sink)?;
        let rules: Vec<_> = self.columns.iter().map(|column| "-".repeat(column.width)).collect();
        self.line(&rules, sink)?;
        for cells in std::mem::take(&mut self.held) {
            self.line(&cells, sink)?;
        }
        Ok(())
    }

    fn line(&self, cells: &[String], sink: &mut dyn Write) -> io::Result<()> {
        let padded = self.columns.iter().zip(cells).map(|(column, cell)| {
            let width = column.width;
            if column.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = padded.collect::<Vec<_>>().join(GAP);
        writeln!(sink, "{}", line.trim_end())
    }
}

/// Line feeds and escape sequences of file names do not reach the terminal.
fn shown(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let letters = text.chars().map(|letter| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(names: Vec<Option<&str>>, numbers: Vec<i64>) -> RecordBatch {
        let names: ArrayRef = Arc::new(StringArray::from(names));
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        RecordBatch::try_from_iter([("name", names), ("n", numbers)]).unwrap()
    }

    fn printed(batches: &[RecordBatch]) -> String {
        let mut table = TextTable::new(&batches[0].schema());
        let mut sink = Vec::new();
        for batch in batches {
            table.push(batch, &mut sink).unwrap();
        }
        table.finish(&mut sink).unwrap();
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn numbers_stand_to_the_right_and_nothing_escapes() {
        let rows = batch(vec![Some("a\n\u{1b}[31m"), None, Some("é")], vec![7, -1200, 0]);
        let expected = "\
name               n
-------------  -----
a\\n\\u{1b}[31m      7
NULL           -1200
é                  0
";
        assert_eq!(printed(&[rows]), expected);
    }

    #[test]
    fn more_rows_than_are_measured_are_all_printed() {
        let rows = 2 * MEASURED + 10;
        let numbers: Vec<i64> = (0..rows as i64).collect();
        let batches: Vec<_> = numbers
            .chunks(100)
            .map(|part| batch(vec![Some("x"); part.len()], part.to_vec()))
            .collect();
        let text = printed(&batches);
        assert_eq!(text.lines().count(), rows + 2);
        assert_eq!(text.lines().last(), Some("x     8201"));
    }
}
