//! Parquet files as tables.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::datasource::ViewTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use datafusion::prelude::SessionContext;
use feedline_trace::{ColumnFacts, columns_of};

use crate::error::SqlError;
use crate::trouble::explain;

/// The tables of a trace folder, each a folder in it.
pub(crate) const TRACE_TABLES: [&str; 3] = ["events", "files", "processes"];
/// The tables of an analysis, each a file.
pub(crate) const ANALYSIS_TABLES: [&str; 15] = [
    "steps",
    "epochs",
    "stalls",
    "findings",
    "functions",
    "ranks",
    "layers",
    "overlaps",
    "file_use",
    "folder_use",
    "stragglers",
    "checkpoints",
    "what_if",
    "timeline",
    "health",
];
const SUFFIX: &str = "parquet";

/// Makes the tables of a trace folder known.
pub(crate) async fn register_trace(
    context: &SessionContext,
    folder: &Path,
) -> std::result::Result<(), SqlError> {
    for table in TRACE_TABLES {
        let files = parquet_files(&folder.join(table))?;
        add(context, table, &files, &columns_of(table)).await.map_err(|error| explain(&error))?;
    }
    Ok(())
}

/// Makes every file of an exported analysis known, except what would hide a table of the trace.
pub(crate) async fn register_analysis(
    context: &SessionContext,
    folder: &Path,
) -> std::result::Result<(), SqlError> {
    let files = parquet_files(folder)?;
    if files.is_empty() {
        return Err(SqlError::NoAnalysis { path: folder.to_owned() });
    }
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !context.table_exist(name.as_str()).map_err(|error| explain(&error))? {
            add(context, &name, &[file], &[]).await.map_err(|error| explain(&error))?;
        }
    }
    Ok(())
}

/// Files that are complete, in the order of their names; those that begin with a dot are not.
fn parquet_files(folder: &Path) -> std::result::Result<Vec<PathBuf>, SqlError> {
    let error = |source| SqlError::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|suffix| suffix == SUFFIX) && !name.starts_with('.') {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

async fn add(
    context: &SessionContext,
    name: &str,
    files: &[PathBuf],
    expected: &[ColumnFacts],
) -> Result<()> {
    if files.is_empty() {
        context.register_table(name, Arc::new(without_rows(expected)?))?;
        return Ok(());
    }
    let state = context.state();
    let format = ParquetFormat::default().with_options(state.default_table_options().parquet);
    let options = ListingOptions::new(Arc::new(format)).with_file_extension(SUFFIX);
    let mut urls = Vec::with_capacity(files.len());
    let mut schemas = Vec::with_capacity(files.len());
    // Each by its name: patterns would take files that are not complete, and are lost on the way to a
    // cluster.
    for file in files {
        let url = ListingTableUrl::try_new(url_of(file)?, None)?;
        schemas.push(Arc::unwrap_or_clone(options.infer_schema(&state, &url).await?));
        urls.push(url);
    }
    let schema = with_missing(Schema::try_merge(schemas)?, expected);
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::new(schema));
    let cache = context.runtime_env().cache_manager.get_file_statistic_cache();
    context.register_table(name, Arc::new(ListingTable::try_new(config)?.with_cache(cache)))?;
    Ok(())
}

fn url_of(file: &Path) -> Result<url::Url> {
    url::Url::from_file_path(file).map_err(|()| {
        datafusion::common::exec_datafusion_err!("{} is not an absolute path", file.display())
    })
}

/// Columns that a file of another version of the format does not have are null.
fn with_missing(schema: Schema, expected: &[ColumnFacts]) -> Schema {
    let missing = expected.iter().filter(|column| schema.field_with_name(column.name).is_err());
    let missing = missing.map(|column| Arc::new(Field::new(column.name, type_of(column), true)));
    Schema::new(schema.fields().iter().cloned().chain(missing).collect::<Vec<_>>())
}

/// A table that has its columns and no file: a view, because a cluster takes those.
fn without_rows(columns: &[ColumnFacts]) -> Result<ViewTable> {
    let nulls = columns.iter().map(|column| {
        Ok(Expr::Literal(ScalarValue::try_from(&type_of(column))?, None).alias(column.name))
    });
    let plan = LogicalPlanBuilder::empty(true)
        .project(nulls.collect::<Result<Vec<_>>>()?)?
        .filter(lit(false))?
        .build()?;
    Ok(ViewTable::new(plan, None))
}

/// The type of a column by the name that the format's documentation gives it.
fn type_of(column: &ColumnFacts) -> DataType {
    match column.type_name {
        "int64" => DataType::Int64,
        "int32" => DataType::Int32,
        "uint32" => DataType::UInt32,
        "timestamp[ns, UTC]" => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

/// A type as the documentation of the trace's format calls it.
pub(crate) fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "string".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) => format!("timestamp[ns, {zone}]"),
        other => other.to_string().to_lowercase(),
    }
}
