//! Results as bytes, batch by batch, so that a large one takes no more memory than a small one.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json;
use datafusion::arrow::json::writer::{JsonArray, LineDelimited};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use crate::text_table::TextTable;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns for people
    #[default]
    Table,
    /// Comma separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// An object a line
    Ndjson,
    /// A Parquet file
    Parquet,
}

/// A result that is being written.
pub(crate) enum Encoder<W: Write + Send> {
    Table(TextTable, W),
    Csv(Box<csv::Writer<W>>, SchemaRef),
    Json(json::Writer<W, JsonArray>),
    Ndjson(json::Writer<W, LineDelimited>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> Encoder<W> {
    pub(crate) fn new(format: Format, schema: &SchemaRef, sink: W) -> Result<Self> {
        let json = || json::WriterBuilder::new().with_explicit_nulls(true);
        Ok(match format {
            Format::Table => Self::Table(TextTable::new(schema), sink),
            Format::Csv => Self::csv(schema, sink)?,
            Format::Json => Self::Json(json().build(sink)),
            Format::Ndjson => Self::Ndjson(json().build(sink)),
            Format::Parquet => {
                let zstd = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(zstd).build();
                let writer = ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties))?;
                Self::Parquet(Box::new(writer))
            }
        })
    }

    /// The header comes with the first batch, so a result without rows needs an empty one.
    fn csv(schema: &SchemaRef, sink: W) -> Result<Self> {
        let mut writer = csv::WriterBuilder::new().with_header(true).build(sink);
        let flat = flat_schema(schema);
        writer.write(&RecordBatch::new_empty(Arc::clone(&flat)))?;
        Ok(Self::Csv(Box::new(writer), flat))
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Table(table, sink) => table.push(batch, sink)?,
            Self::Csv(writer, schema) => writer.write(&flattened(batch, schema)?)?,
            Self::Json(writer) => writer.write(batch)?,
            Self::Ndjson(writer) => writer.write(batch)?,
            Self::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self {
            Self::Table(mut table, mut sink) => table.finish(&mut sink)?,
            Self::Csv(..) => {}
            Self::Json(mut writer) => {
                writer.finish()?;
                writeln!(writer.into_inner())?;
            }
            Self::Ndjson(mut writer) => writer.finish()?,
            Self::Parquet(writer) => {
                writer.close().map_err(DataFusionError::from)?;
            }
        }
        Ok(())
    }
}

/// CSV knows no lists or structures: they become text.
fn flat_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let is_nested = field.data_type().is_nested();
        let kind = if is_nested { DataType::Utf8 } else { field.data_type().clone() };
        Field::new(field.name(), kind, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn flattened(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| {
        if !column.data_type().is_nested() {
            return Ok(Arc::clone(column));
        }
        let formatter = ArrayFormatter::try_new(column, &FormatOptions::default())?;
        let texts = (0..column.len()).map(|row| {
            let is_there = column.is_valid(row);
            is_there.then(|| formatter.value(row).try_to_string()).transpose()
        });
        Ok(Arc::new(texts.collect::<Result<StringArray, ArrowError>>()?) as ArrayRef)
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<Vec<_>, ArrowError>>()?)
}
