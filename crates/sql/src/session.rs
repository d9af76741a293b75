//! The tables of one trace, and statements on them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::error::DataFusionError;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use tempfile::TempDir;

use crate::companion::Companion;
use crate::engine::Engine;
use crate::error::SqlError;
use crate::place::{Place, absolute, scratch};
use crate::statement::tables_of;
use crate::tables::{ANALYSIS_TABLES, register_analysis, register_trace};
use crate::trouble::{explain, one_line};
use crate::views;

/// A cluster that takes longer for the first answer may have no executors, and waits for some.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a session is made of.
#[derive(Clone, Debug)]
pub(crate) struct Request<'a> {
    /// The trace: a folder of Feedline's, or what `feedline convert` reads.
    pub(crate) trace: &'a Path,
    /// The folder of an exported analysis.
    pub(crate) analysis: Option<&'a Path>,
    /// Where statements run.
    pub(crate) engine: Engine,
    /// What sorting, grouping and joining may take in this process; sorts and groups beyond go to disk.
    pub(crate) memory_bytes: Option<usize>,
    /// What converts and analyzes.
    pub(crate) companion: Companion,
    /// Takes lines for people who wait.
    pub(crate) say: fn(&str),
}

/// A session.
pub(crate) struct Session {
    context: SessionContext,
    engine: Engine,
    place: Place,
    /// What the user calls it.
    trace: PathBuf,
    companion: Companion,
    say: fn(&str),
    has_analysis: bool,
    /// Tables of which it is known that the cluster sees them.
    seen: BTreeSet<String>,
    /// The analysis that was made for this session.
    _scratch: Option<TempDir>,
}

impl Session {
    /// Finds the tables of a trace.
    pub(crate) async fn open(request: Request<'_>) -> Result<Self, SqlError> {
        let place = Place::find(request.trace, &request.companion, request.say)?;
        let context = request.engine.context(request.memory_bytes)?;
        register_trace(&context, &place.folder).await?;
        views::register(&context).await?;
        if let Some(folder) = request.analysis {
            register_analysis(&context, &absolute(folder)?).await?;
        }
        Ok(Self {
            context,
            engine: request.engine,
            place,
            trace: request.trace.to_owned(),
            companion: request.companion,
            say: request.say,
            has_analysis: request.analysis.is_some(),
            seen: BTreeSet::new(),
            _scratch: None,
        })
    }

    /// A statement that is ready to run. Statements that define something have run then.
    pub(crate) async fn prepare(&mut self, statement: Statement) -> Result<DataFrame, SqlError> {
        self.bring_analysis(&tables_of(&statement)?).await?;
        let plan = self.context.state().statement_to_plan(statement).await;
        let plan = plan.map_err(|error| self.told(&error))?;
        SQLOptions::new().with_allow_dml(false).verify_plan(&plan).map_err(|error| {
            let what = one_line(&error.strip_backtrace());
            SqlError::ReadOnly { what: what.replace("DML not supported: ", "no ") }
        })?;
        let frame = self.context.execute_logical_plan(plan).await;
        frame.map_err(|error| self.told(&error))
    }

    /// A query of a known text.
    pub(crate) async fn query(&self, text: &str) -> Result<DataFrame, SqlError> {
        self.context.sql(text).await.map_err(|error| self.told(&error))
    }

    /// Sends a query to where it runs. What reads no table runs here in any case: a cluster gives such
    /// results no columns.
    pub(crate) async fn routed(&mut self, frame: DataFrame) -> Result<DataFrame, SqlError> {
        if self.engine == Engine::Embedded {
            return Ok(frame);
        }
        let plan = frame.clone().into_optimized_plan().map_err(|error| self.told(&error))?;
        let scanned = scanned(&plan).map_err(|error| self.told(&error))?;
        if scanned.is_empty() {
            return here(plan);
        }
        for table in scanned {
            if !self.seen.contains(&table) {
                self.check_sight(&table).await?;
                self.seen.insert(table);
            }
        }
        Ok(frame)
    }

    /// A scheduler takes files that it does not see for files that are not there, and says nothing: the
    /// results would be wrong. So both count the rows of a table before the first query reads it.
    async fn check_sight(&self, table: &str) -> Result<(), SqlError> {
        let frame = self.query(&counting(table)).await?;
        let rows_here = count(here(frame.logical_plan().clone())?).await;
        let mut answer = pin!(count(frame));
        let rows_there = match tokio::time::timeout(PATIENCE, &mut answer).await {
            Ok(rows) => rows,
            Err(_) => {
                (self.say)(&format!("waiting for {}: does it have executors?", self.engine));
                answer.await
            }
        };
        let rows_here = rows_here.map_err(|error| self.told(&error))?;
        let rows_there = rows_there.map_err(|error| self.told(&error))?;
        if rows_here == rows_there {
            return Ok(());
        }
        Err(SqlError::Sight {
            table: table.to_owned(),
            rows_here,
            rows_there,
            folder: self.place.folder.clone(),
        })
    }

    /// The rows of a table.
    pub(crate) async fn rows(&mut self, table: &str) -> Result<u64, SqlError> {
        let frame = self.query(&counting(table)).await?;
        let frame = self.routed(frame).await?;
        count(frame).await.map_err(|error| self.told(&error))
    }

    /// An error in the words of the user.
    pub(crate) fn told(&self, error: &DataFusionError) -> SqlError {
        let told = explain(error);
        let SqlError::Query { message } = &told else { return told };
        if message.contains("failed to serialize logical plan") {
            return SqlError::OnlyHere;
        }
        if let Some(table) = missing_table(message) {
            return SqlError::UnknownTable { table, tables: self.tables() };
        }
        match &self.engine {
            Engine::Embedded => told,
            Engine::Ballista { address } => SqlError::Cluster {
                address: address.clone(),
                hint: self.cluster_hint(message),
                message: message.clone(),
            },
        }
    }

    fn cluster_hint(&self, message: &str) -> Option<String> {
        let is_about = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if is_about(&["busy_ns"]) {
            return Some(
                "Ballista ships functions by name: register busy_ns in the scheduler and the \
                 executors, as crates/sql/examples/cluster.rs does"
                    .to_owned(),
            );
        }
        is_about(&["No such file", "not found", "NotFound", "os error"]).then(|| {
            format!(
                "the executors must see {} under the same path, on a shared file system",
                self.place.folder.display()
            )
        })
    }

    /// All names that a query can use.
    pub(crate) fn tables(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.registered().into_iter().collect();
        names.extend(ANALYSIS_TABLES.map(str::to_owned));
        names.into_iter().collect()
    }

    /// The names of all tables and views that are there.
    pub(crate) fn registered(&self) -> Vec<String> {
        let catalogs = self.context.catalog_names().into_iter();
        let catalogs = catalogs.filter_map(|name| self.context.catalog(&name));
        let schemas = catalogs.filter_map(|catalog| catalog.schema("public"));
        schemas.flat_map(|schema| schema.table_names()).collect()
    }

    /// Analyzes the trace, once, when a statement needs it.
    async fn bring_analysis(&mut self, names: &BTreeSet<String>) -> Result<(), SqlError> {
        let is_needed = ANALYSIS_TABLES.iter().any(|table| names.contains(*table));
        if self.has_analysis || !is_needed {
            return Ok(());
        }
        let scratch = scratch()?;
        let folder = scratch.path().join("analysis");
        (self.say)(&format!("analyzing {} into {}", self.trace.display(), folder.display()));
        self.companion.analyze(&self.place.folder, &folder)?;
        register_analysis(&self.context, &folder).await?;
        self.has_analysis = true;
        self._scratch = Some(scratch);
        Ok(())
    }
}

/// Runs a plan in this process.
fn here(plan: LogicalPlan) -> Result<DataFrame, SqlError> {
    Ok(DataFrame::new(Engine::Embedded.context(None)?.state(), plan))
}

/// The tables that a plan reads.
fn scanned(plan: &LogicalPlan) -> Result<BTreeSet<String>, DataFusionError> {
    let mut names = BTreeSet::new();
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.schema() != Some("information_schema")
        {
            names.insert(scan.table_name.table().to_owned());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

fn counting(table: &str) -> String {
    format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""))
}

async fn count(frame: DataFrame) -> Result<u64, DataFusionError> {
    let batches = frame.collect().await?;
    let row = batches.iter().find(|batch| batch.num_rows() == 1);
    Ok(row.map_or(0, |row| row.column(0).as_primitive::<Int64Type>().value(0).unsigned_abs()))
}

/// `table 'datafusion.public.x' not found`.
fn missing_table(message: &str) -> Option<String> {
    let name = message.strip_prefix("table '")?.strip_suffix("' not found")?;
    Some(name.strip_prefix("datafusion.public.").unwrap_or(name).to_owned())
}
