//! What can go wrong, in the user's words, and what to type instead.

use std::path::PathBuf;

use feedline_trace::{FORMATS, TraceError, readable};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages show what fields mean")]
#[non_exhaustive]
pub enum SqlError {
    /// The query names a table that is not there.
    #[error("no table `{table}`")]
    UnknownTable { table: String, tables: Vec<String> },
    /// The query names a column that is not there.
    #[error("no column `{column}`")]
    UnknownColumn {
        column: String,
        /// What there is, the nearest names first.
        columns: Vec<String>,
    },
    /// The query calls a function that is not there.
    #[error("no function `{function}`")]
    UnknownFunction { function: String, near: String },
    /// The query is no SQL.
    #[error("syntax error at {place}: {found}")]
    Syntax {
        /// Line and column, or which part of the text.
        place: String,
        /// What was expected and found.
        found: String,
        /// What may have been meant.
        hint: Option<&'static str>,
    },
    /// The query would change data.
    #[error("a trace is read-only: {what}")]
    ReadOnly {
        /// What the statement would do.
        what: String,
    },
    /// The query cannot be planned or run.
    #[error("{message}")]
    Query {
        /// One line of the engine.
        message: String,
    },
    /// The file of queries, or stdin, has nothing in it.
    #[error("no statement in {place}")]
    NoStatement {
        /// The file or the argument.
        place: String,
    },
    /// A Parquet file is one table.
    #[error("a Parquet file holds one result, but there are several")]
    ManyResults,
    /// Binary output for a terminal.
    #[error("cannot write Parquet to a terminal")]
    Terminal,
    /// The engine's address is none.
    #[error("no engine `{text}`")]
    UnknownEngine { text: String },
    /// Nobody answers there.
    #[error("no Ballista scheduler at {address}: {source}")]
    NoScheduler { address: String, source: std::io::Error },
    /// The cluster ended the query.
    #[error("the cluster at {address} reports: {message}")]
    Cluster {
        address: String,
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The cluster looks at other files than this process.
    #[error("table `{table}` has {rows_here} rows here and {rows_there} on the cluster")]
    Sight {
        table: String,
        /// Rows that this process counts.
        rows_here: u64,
        /// Rows that the cluster counts.
        rows_there: u64,
        folder: PathBuf,
    },
    /// A table of this session that a cluster cannot be told.
    #[error("the cluster does not know tables made by `create table`")]
    OnlyHere,
    /// A cap on this process's memory, for queries that run elsewhere.
    #[error("--memory applies to queries that run here, but these run on a cluster")]
    ClusterMemory,
    /// The folder of an analysis is none.
    #[error("no analysis in {path}: no file there ends with .parquet")]
    NoAnalysis { path: PathBuf },
    /// There is no `feedline`.
    #[error("cannot start {program}: {source}")]
    NoCompanion { program: PathBuf, source: std::io::Error },
    /// `feedline` ended with an error.
    #[error("feedline {task}: {message}")]
    Companion {
        /// Its subcommand.
        task: String,
        message: String,
        hint: Option<String>,
    },
    /// Something that was to be written is there.
    #[error("{path} exists")]
    Exists { path: PathBuf },
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    /// The trace cannot be read.
    #[error("{}", chain(.0))]
    Trace(#[from] TraceError),
}

impl SqlError {
    /// Something to type, if there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { hint, .. } => hint.map(str::to_owned),
            Self::UnknownTable { tables, .. } => Some(format!("tables: {}", tables.join(", "))),
            Self::UnknownColumn { columns, .. } if columns.is_empty() => None,
            Self::UnknownColumn { columns, .. } => Some(format!("columns: {}", columns.join(", "))),
            Self::UnknownFunction { near, .. } => Some(format!("did you mean `{near}`?")),
            Self::ReadOnly { .. } => Some(
                "to keep a result, add --out FILE and --format parquet, csv or json".to_owned(),
            ),
            Self::NoStatement { .. } => Some("omit the query to list the tables".to_owned()),
            Self::ManyResults => Some("pass one statement, or choose another --format".to_owned()),
            Self::Terminal => Some("add --out FILE".to_owned()),
            Self::UnknownEngine { .. } => {
                Some("expected `embedded` or `ballista://HOST:PORT`".to_owned())
            }
            Self::NoScheduler { .. } => {
                Some("start one, or omit --engine to run the query here".to_owned())
            }
            Self::Sight { folder, .. } => Some(format!(
                "scheduler and executors must see {} under the same path, on a shared file system",
                folder.display()
            )),
            Self::ClusterMemory => Some("omit it; executors have their own limit".to_owned()),
            Self::OnlyHere => Some("use `create view`".to_owned()),
            Self::NoAnalysis { path } => Some(format!(
                "write it with: feedline analyze TRACE --export parquet --export-dir {}",
                path.display()
            )),
            Self::NoCompanion { .. } => Some(
                "put `feedline` beside `feedline-sql` or into PATH; `make sql` does so".to_owned(),
            ),
            Self::Companion { hint, .. } | Self::Cluster { hint, .. } => hint.clone(),
            Self::Exists { .. } => Some("use --overwrite to replace it".to_owned()),
            Self::Trace(TraceError::Unknown { .. }) => {
                Some(format!("readable traces: {}", readable(FORMATS)))
            }
            _ => None,
        }
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
