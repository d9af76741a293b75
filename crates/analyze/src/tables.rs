//! An analysis as tables: what `--export` writes and `feedline sql` reads.

use crate::analysis::{Analysis, FileUse, Phase};
use crate::layer::StallCause;

/// Values of a column, one per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers, with gaps where a value is not known.
    Integers(Vec<Option<i64>>),
    /// Real numbers.
    Real(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<String>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, all of one length.
    pub columns: Vec<Column>,
}

impl Table {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

/// Makes a table of rows, a column at a time.
struct Maker<'a, R> {
    name: &'static str,
    rows: &'a [R],
    columns: Vec<Column>,
}

impl<'a, R> Maker<'a, R> {
    fn new(name: &'static str, rows: &'a [R]) -> Self {
        Self { name, rows, columns: Vec::new() }
    }

    fn column(mut self, name: &str, values: Values) -> Self {
        self.columns.push(Column { name: name.to_owned(), values });
        self
    }

    fn whole(self, name: &str, of: impl Fn(&R) -> u64) -> Self {
        self.maybe_whole(name, |row| Some(of(row)))
    }

    fn maybe_whole(self, name: &str, of: impl Fn(&R) -> Option<u64>) -> Self {
        let value = |row: &R| of(row).map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        let values = self.rows.iter().map(value).collect();
        self.column(name, Values::Integers(values))
    }

    fn signed(self, name: &str, of: impl Fn(&R) -> i64) -> Self {
        let values = self.rows.iter().map(|row| Some(of(row))).collect();
        self.column(name, Values::Integers(values))
    }

    fn real(self, name: &str, of: impl Fn(&R) -> Option<f64>) -> Self {
        let values = self.rows.iter().map(of).collect();
        self.column(name, Values::Real(values))
    }

    fn text(self, name: &str, of: impl Fn(&R) -> String) -> Self {
        let values = self.rows.iter().map(of).collect();
        self.column(name, Values::Text(values))
    }

    /// A column a cause.
    fn causes(mut self, suffix: &str, of: impl Fn(&R) -> &Vec<u64>) -> Self {
        for cause in StallCause::ALL {
            let name = format!("{}{suffix}", cause.name().replace('-', "_"));
            self = self.whole(&name, |row| of(row).get(cause as usize).copied().unwrap_or(0));
        }
        self
    }

    fn done(self) -> Table {
        Table { name: self.name, columns: self.columns }
    }
}

fn phase(phase: Phase) -> String {
    match phase {
        Phase::Train => "train".to_owned(),
        Phase::Evaluate => "evaluate".to_owned(),
    }
}

fn word<T: serde::Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// All tables, in the order in which people look at them.
pub fn tables(analysis: &Analysis) -> Vec<Table> {
    vec![
        steps(analysis),
        epochs(analysis),
        stalls(analysis),
        findings(analysis),
        ranks(analysis),
        layers(analysis),
        overlaps(analysis),
        functions(analysis),
        uses("file_use", &analysis.files),
        uses("folder_use", &analysis.folders),
        stragglers(analysis),
        checkpoints(analysis),
        what_if(analysis),
        timeline(analysis),
        health(analysis),
    ]
}

fn steps(analysis: &Analysis) -> Table {
    Maker::new("steps", &analysis.steps)
        .whole("rank", |step| u64::from(step.rank))
        .text("phase", |step| phase(step.phase))
        .whole("epoch", |step| u64::from(step.epoch))
        .whole("block", |step| u64::from(step.block))
        .whole("step", |step| u64::from(step.step))
        .whole("start_ns", |step| step.start_ns)
        .whole("duration_ns", |step| step.duration_ns)
        .whole("fetch_ns", |step| step.fetch_ns)
        .whole("stall_ns", |step| step.stall_ns)
        .whole("compute_ns", |step| step.compute_ns)
        .whole("communication_ns", |step| step.communication_ns)
        .maybe_whole("worker", |step| step.worker.map(u64::from))
        .whole("service_ns", |step| step.service_ns)
        .signed("service_start_ns", |step| step.service_start_ns)
        .whole("samples", |step| u64::from(step.samples))
        .text("confidence", |step| word(step.confidence))
        .causes("_ns", |step| &step.parts_ns)
        .done()
}

fn epochs(analysis: &Analysis) -> Table {
    Maker::new("epochs", &analysis.epochs)
        .text("phase", |epoch| phase(epoch.phase))
        .whole("epoch", |epoch| u64::from(epoch.epoch))
        .whole("start_ns", |epoch| epoch.start_ns)
        .whole("duration_ns", |epoch| epoch.duration_ns)
        .whole("steps", |epoch| epoch.steps)
        .whole("step_ns", |epoch| epoch.step_ns)
        .whole("stall_ns", |epoch| epoch.stall_ns)
        .whole("compute_ns", |epoch| epoch.compute_ns)
        .whole("first_batch_ns", |epoch| epoch.first_batch_ns)
        .real("au_percent", |epoch| epoch.au_percent)
        .real("samples_per_second", |epoch| epoch.samples_per_second)
        .whole("bytes_read", |epoch| epoch.bytes_read)
        .whole("samples", |epoch| epoch.samples)
        .causes("_ns", |epoch| &epoch.parts_ns)
        .done()
}

/// One row a step and cause.
fn stalls(analysis: &Analysis) -> Table {
    let rows: Vec<_> = analysis
        .steps
        .iter()
        .flat_map(|step| {
            let parts = StallCause::ALL.into_iter().zip(step.parts_ns.iter().copied());
            parts.filter(|(_, ns)| *ns > 0).map(move |(cause, ns)| (step, cause, ns))
        })
        .collect();
    Maker::new("stalls", &rows)
        .whole("rank", |row| u64::from(row.0.rank))
        .text("phase", |row| phase(row.0.phase))
        .whole("epoch", |row| u64::from(row.0.epoch))
        .whole("step", |row| u64::from(row.0.step))
        .text("cause", |row| row.1.name().to_owned())
        .whole("ns", |row| row.2)
        .done()
}

fn findings(analysis: &Analysis) -> Table {
    Maker::new("findings", &analysis.findings)
        .text("code", |finding| finding.code.clone())
        .text("title", |finding| finding.title.clone())
        .whole("explains_ns", |finding| finding.explains_ns)
        .real("severity", |finding| Some(finding.severity))
        .text("confidence", |finding| word(finding.confidence))
        .text("evidence", |finding| {
            let rows = finding.evidence.iter().map(|[name, value]| format!("{name}: {value}"));
            rows.collect::<Vec<_>>().join("; ")
        })
        .text("objects", |finding| finding.objects.join("; "))
        .text("actions", |finding| finding.actions.join("; "))
        .text("threshold", |finding| finding.threshold.clone())
        .text("sql", |finding| finding.sql.clone())
        .done()
}

fn ranks(analysis: &Analysis) -> Table {
    Maker::new("ranks", &analysis.ranks)
        .whole("rank", |rank| u64::from(rank.rank))
        .text("title", |rank| rank.title.clone())
        .text("host", |rank| rank.host.clone())
        .whole("workers", |rank| u64::from(rank.workers))
        .whole("steps", |rank| rank.steps)
        .whole("step_ns", |rank| rank.step_ns)
        .whole("stall_ns", |rank| rank.stall_ns)
        .whole("compute_ns", |rank| rank.compute_ns)
        .whole("communication_ns", |rank| rank.communication_ns)
        .whole("io_ns", |rank| rank.io_ns)
        .whole("bytes_read", |rank| rank.bytes_read)
        .whole("bytes_written", |rank| rank.bytes_written)
        .whole("calls", |rank| rank.calls)
        .whole("samples", |rank| rank.samples)
        .real("workers_busy_share", |rank| Some(rank.workers_busy_share))
        .whole("unseen_ns", |rank| rank.unseen_ns)
        .causes("_ns", |rank| &rank.parts_ns)
        .done()
}

fn layers(analysis: &Analysis) -> Table {
    Maker::new("layers", &analysis.layers)
        .text("layer", |time| time.layer.name().to_owned())
        .whole("events", |time| time.events)
        .whole("bytes", |time| time.bytes)
        .whole("mean_ns", |time| time.mean_ns)
        .whole("least_ns", |time| time.least_ns)
        .whole("most_ns", |time| time.most_ns)
        .whole("self_ns", |time| time.self_ns)
        .whole("summed_ns", |time| time.summed_ns)
        .whole("exposed_mean_ns", |time| time.exposed_mean_ns)
        .done()
}

fn overlaps(analysis: &Analysis) -> Table {
    Maker::new("overlaps", &analysis.overlaps)
        .text("what", |overlap| overlap.what.clone())
        .whole("total_ns", |overlap| overlap.total_ns)
        .whole("overlapped_ns", |overlap| overlap.overlapped_ns)
        .whole("exposed_ns", |overlap| overlap.exposed_ns)
        .whole("compute_ns", |overlap| overlap.compute_ns)
        .whole("compute_alone_ns", |overlap| overlap.compute_alone_ns)
        .done()
}

fn functions(analysis: &Analysis) -> Table {
    let mut made = Maker::new("functions", &analysis.functions)
        .text("layer", |function| function.layer.name().to_owned())
        .text("category", |function| function.category.clone())
        .text("name", |function| function.name.clone())
        .whole("count", |function| function.count)
        .whole("errors", |function| function.errors)
        .whole("total_ns", |function| function.total_ns)
        .whole("self_ns", |function| function.self_ns)
        .whole("bytes", |function| function.bytes)
        .real("bytes_per_second", |function| function.bytes_per_second);
    type Pick = fn(&crate::analysis::Distribution) -> u64;
    let picks: [(&str, Pick); 8] = [
        ("min", |it| it.min),
        ("p5", |it| it.p5),
        ("p25", |it| it.p25),
        ("p50", |it| it.p50),
        ("p75", |it| it.p75),
        ("p95", |it| it.p95),
        ("p99", |it| it.p99),
        ("max", |it| it.max),
    ];
    for (name, pick) in picks {
        made = made.whole(&format!("latency_{name}_ns"), |function| pick(&function.latency));
    }
    made = made.real("latency_mean_ns", |function| Some(function.latency.mean));
    for (name, pick) in picks {
        let column = format!("size_{name}");
        made = made.maybe_whole(&column, |function| function.size.as_ref().map(pick));
    }
    made.real("size_mean", |function| function.size.map(|size| size.mean)).done()
}

fn uses(name: &'static str, rows: &[FileUse]) -> Table {
    Maker::new(name, rows)
        .text("path", |file| file.path.clone())
        .whole("files", |file| file.files)
        .whole("opens", |file| file.opens)
        .whole("reads", |file| file.reads)
        .whole("writes", |file| file.writes)
        .whole("others", |file| file.others)
        .whole("bytes_read", |file| file.bytes_read)
        .whole("bytes_written", |file| file.bytes_written)
        .whole("extent_read", |file| file.extent_read)
        .real("reread_factor", |file| file.reread_factor)
        .whole("ns", |file| file.ns)
        .whole("metadata_ns", |file| file.metadata_ns)
        .whole("ranks", |file| file.ranks)
        .whole("errors", |file| file.errors)
        .done()
}

fn stragglers(analysis: &Analysis) -> Table {
    Maker::new("stragglers", &analysis.stragglers.ranks)
        .whole("rank", |one| u64::from(one.rank))
        .text("host", |one| one.host.clone())
        .whole("slowest_steps", |one| one.slowest_steps)
        .real("slowest_share", |one| Some(one.slowest_share))
        .whole("lost_ns", |one| one.lost_ns)
        .text("because", |one| one.because.clone())
        .done()
}

fn checkpoints(analysis: &Analysis) -> Table {
    Maker::new("checkpoints", &analysis.checkpoints.transfers)
        .text("direction", |one| one.direction.clone())
        .whole("start_ns", |one| one.start_ns)
        .whole("duration_ns", |one| one.duration_ns)
        .whole("stall_ns", |one| one.stall_ns)
        .whole("bytes", |one| one.bytes)
        .whole("sync_ns", |one| one.sync_ns)
        .whole("slowest_rank", |one| u64::from(one.slowest_rank))
        .whole("slowest_ns", |one| one.slowest_ns)
        .whole("ranks", |one| one.ranks)
        .done()
}

fn what_if(analysis: &Analysis) -> Table {
    Maker::new("what_if", &analysis.what_if.cases)
        .text("change", |case| case.change.clone())
        .whole("step_ns", |case| case.step_ns)
        .whole("step_least_ns", |case| case.step_interval_ns[0])
        .whole("step_most_ns", |case| case.step_interval_ns[1])
        .real("stall_share", |case| Some(case.stall_share))
        .done()
}

fn timeline(analysis: &Analysis) -> Table {
    let timeline = &analysis.timeline;
    let rows: Vec<usize> = (0..timeline.bytes_read.len()).collect();
    let at = |values: &Vec<u64>, row: &usize| values.get(*row).copied();
    Maker::new("timeline", &rows)
        .whole("start_ns", |row| *row as u64 * timeline.bucket_ns)
        .maybe_whole("bytes_read", |row| at(&timeline.bytes_read, row))
        .maybe_whole("bytes_written", |row| at(&timeline.bytes_written, row))
        .maybe_whole("calls", |row| at(&timeline.calls, row))
        .maybe_whole("io_ns", |row| at(&timeline.io_ns, row))
        .maybe_whole("read_p50_ns", |row| at(&timeline.read_p50_ns, row))
        .maybe_whole("read_p99_ns", |row| at(&timeline.read_p99_ns, row))
        .maybe_whole("compute_ns", |row| at(&timeline.compute_ns, row))
        .maybe_whole("stall_ns", |row| at(&timeline.stall_ns, row))
        .real("ready_batches", |row| timeline.ready_batches.get(*row).copied())
        .done()
}

fn health(analysis: &Analysis) -> Table {
    Maker::new("health", &analysis.health.problems)
        .text("code", |problem| problem.code.clone())
        .whole("count", |problem| problem.count)
        .text("text", |problem| problem.text.clone())
        .text("places", |problem| problem.places.join("; "))
        .whole("limits_claims", |problem| u64::from(problem.limits_claims))
        .done()
}
