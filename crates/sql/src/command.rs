//! The command line of `feedline-sql`.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::Statement;
use futures_util::StreamExt as _;

use crate::companion::Companion;
use crate::engine::Engine;
use crate::error::SqlError;
use crate::listing;
use crate::outlet::Outlet;
use crate::output::{Encoder, Format};
use crate::session::{Request, Session};
use crate::statement::parse;
use crate::tables::ANALYSIS_TABLES;

const NOTES: &str = "\
Examples:
  feedline-sql DIR
  feedline-sql DIR 'select path, sum(bytes) from calls group by path order by 2 desc limit 10'
  feedline-sql DIR 'select cause, sum(ns) / 1e9 as seconds from stalls group by cause'
  feedline-sql DIR -f report.sql --format csv --out report.csv
  feedline-sql DIR 'select …' --engine ballista://node7:50050

Tables: events, files, processes of the trace; calls, spans are views of them with paths and ranks;
steps, epochs, stalls, findings, functions, ranks, layers, file_use and others come from `feedline analyze`,
which is run when a query names one of them. Functions beside DataFusion's: busy_ns(start, end),
time_bucket(width, moment).

Exit code 0, or 2 after an error.";

/// Arguments of `feedline-sql`.
#[derive(Debug, clap::Parser)]
#[command(name = "feedline-sql", version, about = "Ask a trace in SQL", after_help = NOTES)]
pub struct Args {
    /// The trace: a folder, or a file that `feedline convert` reads
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Statements, with `;` between them; without any, the tables are listed
    #[arg(value_name = "QUERY", conflicts_with = "file")]
    query: Option<String>,
    /// Read the statements from a file, or from stdin (-)
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How results are written
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace that file if it is there
    #[arg(long, requires = "out")]
    overwrite: bool,
    /// Rows of each result at most [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Folder that `feedline analyze --export parquet --export-dir` wrote
    #[arg(long, value_name = "DIR")]
    analysis: Option<PathBuf>,
    /// Memory for sorting, grouping and joining; sorts and groups that need more go to disk [default: no cap]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    memory: Option<u32>,
    /// Where queries run: embedded, or ballista://HOST:PORT
    #[arg(long, value_name = "ENGINE", default_value_t)]
    engine: Engine,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), SqlError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| SqlError::Read { path: "this machine's threads".into(), source })?;
    runtime.block_on(answer(args))
}

async fn answer(args: &Args) -> Result<(), SqlError> {
    let statements = text(args)?.as_deref().map(parse).transpose()?;
    if statements.as_ref().is_some_and(VecDeque::is_empty) {
        let place = args.file.as_ref().map(|file| file.display().to_string());
        return Err(SqlError::NoStatement { place: place.unwrap_or_else(|| "the query".into()) });
    }
    check_output(args)?;
    let request = Request {
        trace: &args.trace,
        analysis: args.analysis.as_deref(),
        engine: args.engine.clone(),
        memory_bytes: args.memory.map(|mib| mib as usize * 1024 * 1024),
        companion: Companion::beside_this_program(),
        say,
    };
    let mut session = Session::open(request).await?;
    let mut outlet = match &args.out {
        Some(path) => Outlet::file(path)?,
        None => Outlet::stdout(),
    };
    let told = match statements {
        None => list(args, &mut session, &mut outlet).await,
        Some(statements) => show_all(args, &mut session, statements, &mut outlet).await,
    };
    if outlet.is_deserted() {
        return Ok(());
    }
    if let Some(error) = outlet.trouble() {
        return Err(error);
    }
    told?;
    outlet.finish()
}

/// The statements, if there are any.
fn text(args: &Args) -> Result<Option<String>, SqlError> {
    let Some(file) = &args.file else { return Ok(args.query.clone()) };
    let error = |source| SqlError::Read { path: file.clone(), source };
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(error)?;
        return Ok(Some(text));
    }
    fs::read_to_string(file).map(Some).map_err(error)
}

/// What can be refused before anything is read.
fn check_output(args: &Args) -> Result<(), SqlError> {
    match &args.out {
        Some(path) if path.exists() && !args.overwrite => {
            Err(SqlError::Exists { path: path.clone() })
        }
        None if args.format == Format::Parquet && io::stdout().is_terminal() => {
            Err(SqlError::Terminal)
        }
        _ => Ok(()),
    }
}

async fn show_all(
    args: &Args,
    session: &mut Session,
    statements: VecDeque<Statement>,
    outlet: &mut Outlet,
) -> Result<(), SqlError> {
    let mut results = 0_usize;
    for statement in statements {
        let frame = session.prepare(statement).await?;
        // What defines something has nothing to show.
        if frame.schema().fields().is_empty() {
            continue;
        }
        results += 1;
        if results > 1 {
            separate(args.format, outlet)?;
        }
        show(args, session, frame, outlet).await?;
    }
    Ok(())
}

/// Between two results.
fn separate(format: Format, outlet: &mut Outlet) -> Result<(), SqlError> {
    match format {
        Format::Parquet => return Err(SqlError::ManyResults),
        // If it cannot be written, neither can what follows.
        Format::Table | Format::Csv => drop(writeln!(outlet)),
        Format::Json | Format::Ndjson => {}
    }
    Ok(())
}

/// Writes a result while it comes.
async fn show(
    args: &Args,
    session: &mut Session,
    frame: DataFrame,
    outlet: &mut Outlet,
) -> Result<(), SqlError> {
    let frame = match args.limit {
        Some(rows) => frame.limit(0, Some(rows)).map_err(|error| session.told(&error))?,
        None => frame,
    };
    let frame = session.routed(frame).await?;
    let told = |error: DataFusionError| session.told(&error);
    let mut stream = frame.execute_stream().await.map_err(told)?;
    let mut encoder = Encoder::new(args.format, &stream.schema(), outlet).map_err(told)?;
    while let Some(batch) = stream.next().await {
        encoder.write(&batch.map_err(told)?).map_err(told)?;
    }
    encoder.finish().map_err(told)
}

/// Shows which tables there are.
async fn list(args: &Args, session: &mut Session, outlet: &mut Outlet) -> Result<(), SqlError> {
    let batch = listing::columns(session).await?;
    let told = |error: DataFusionError| session.told(&error);
    let batch = batch.slice(0, args.limit.unwrap_or(usize::MAX).min(batch.num_rows()));
    let mut encoder = Encoder::new(args.format, &batch.schema(), outlet).map_err(told)?;
    encoder.write(&batch).map_err(told)?;
    encoder.finish().map_err(told)?;
    if args.analysis.is_none() {
        let tables = ANALYSIS_TABLES.join(", ");
        say(&format!("{tables}: written by `feedline analyze` when a query names one of them"));
    }
    Ok(())
}

/// A line on stderr. If nobody reads it the answer is still on stdout.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
