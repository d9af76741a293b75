//! An analysis as tables: what `--export` writes and `feedline sql` reads.

use crate::analysis::{Analysis, Confidence, Distribution, FileUse, Phase, Step};
use crate::layer::{StackLayer, StallCause};

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
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Text(values) => values.len(),
        }
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

/// A value that a column can hold. Counts beyond the largest signed number become that.
trait Cell: Sized {
    fn values(cells: impl Iterator<Item = Self>) -> Values;
}

macro_rules! cells {
    ($($cell:ty => $values:ident(|$it:ident| $value:expr);)*) => {$(
        impl Cell for $cell {
            fn values(cells: impl Iterator<Item = Self>) -> Values {
                Values::$values(cells.map(|$it| $value).collect())
            }
        }
    )*};
}

cells! {
    i64 => Integers(|it| Some(it));
    u32 => Integers(|it| Some(i64::from(it)));
    u64 => Integers(|it| Some(i64::try_from(it).unwrap_or(i64::MAX)));
    bool => Integers(|it| Some(i64::from(it)));
    Option<u32> => Integers(|it| it.map(i64::from));
    Option<u64> => Integers(|it| it.map(|it| i64::try_from(it).unwrap_or(i64::MAX)));
    f64 => Real(|it| Some(it));
    Option<f64> => Real(|it| it);
    String => Text(|it| it);
    Phase => Text(|it| it.name().to_owned());
    Confidence => Text(|it| it.name().to_owned());
    StackLayer => Text(|it| it.name().to_owned());
    StallCause => Text(|it| it.name().to_owned());
}

fn column<R, T: Cell>(name: &str, rows: &[R], cell: impl Fn(&R) -> T) -> Column {
    Column { name: name.to_owned(), values: T::values(rows.iter().map(cell)) }
}

/// One column per cause.
fn causes<R>(rows: &[R], parts_ns: impl Fn(&R) -> &Vec<u64>) -> Vec<Column> {
    let part = |row: &R, cause: StallCause| parts_ns(row).get(cause as usize).copied().unwrap_or(0);
    let name = |cause: StallCause| format!("{}_ns", cause.name().replace('-', "_"));
    StallCause::ALL.map(|cause| column(&name(cause), rows, |row| part(row, cause))).into()
}

/// A table of rows. A column without an expression holds the field of its name.
macro_rules! table {
    (@cell $row:ident $field:ident) => { $row.$field.to_owned() };
    (@cell $row:ident $field:ident $cell:expr) => { $cell };
    ($name:expr, $rows:expr, |$row:ident| $($column:ident $(: $cell:expr)?),* $(,)?) => {
        Table {
            name: $name,
            columns: vec![$(
                column(stringify!($column), $rows, |$row| table!(@cell $row $column $($cell)?)),
            )*],
        }
    };
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
    let rows = &analysis.steps[..];
    let mut table = table! { "steps", rows, |step|
        rank, phase, epoch, block, step, start_ns, duration_ns, fetch_ns, stall_ns, compute_ns,
        communication_ns, worker, service_ns, service_start_ns, samples, confidence,
    };
    table.columns.extend(causes(rows, |step| &step.parts_ns));
    table
}

fn epochs(analysis: &Analysis) -> Table {
    let rows = &analysis.epochs[..];
    let mut table = table! { "epochs", rows, |epoch|
        phase, epoch, start_ns, duration_ns, steps, step_ns, stall_ns, compute_ns, first_batch_ns,
        au_percent, samples_per_second, bytes_read, samples,
    };
    table.columns.extend(causes(rows, |epoch| &epoch.parts_ns));
    table
}

/// One row per step and cause.
fn stalls(analysis: &Analysis) -> Table {
    let stalls = analysis.steps.iter().flat_map(|step| {
        let parts = StallCause::ALL.into_iter().zip(step.parts_ns.iter().copied());
        parts.filter(|(_, ns)| *ns > 0).map(move |(cause, ns)| (step, cause, ns))
    });
    let rows: Vec<(&Step, StallCause, u64)> = stalls.collect();
    table! { "stalls", &rows, |row|
        rank: row.0.rank, phase: row.0.phase, epoch: row.0.epoch, step: row.0.step, cause: row.1,
        ns: row.2,
    }
}

fn findings(analysis: &Analysis) -> Table {
    let evidence = |[name, value]: &[String; 2]| format!("{name}: {value}");
    table! { "findings", &analysis.findings, |finding|
        code, title, explains_ns, severity, confidence,
        evidence: finding.evidence.iter().map(evidence).collect::<Vec<_>>().join("; "),
        objects: finding.objects.join("; "),
        actions: finding.actions.join("; "),
        threshold, sql,
    }
}

fn ranks(analysis: &Analysis) -> Table {
    let rows = &analysis.ranks[..];
    let mut table = table! { "ranks", rows, |rank|
        rank, title, host, workers, steps, step_ns, stall_ns, compute_ns, communication_ns, io_ns,
        bytes_read, bytes_written, calls, samples, workers_busy_share, unseen_ns,
    };
    table.columns.extend(causes(rows, |rank| &rank.parts_ns));
    table
}

fn layers(analysis: &Analysis) -> Table {
    table! { "layers", &analysis.layers, |time|
        layer, events, bytes, mean_ns, least_ns, most_ns, self_ns, summed_ns, exposed_mean_ns,
    }
}

fn overlaps(analysis: &Analysis) -> Table {
    table! { "overlaps", &analysis.overlaps, |overlap|
        what, total_ns, overlapped_ns, exposed_ns, compute_ns, compute_alone_ns,
    }
}

fn functions(analysis: &Analysis) -> Table {
    let rows = &analysis.functions[..];
    let mut table = table! { "functions", rows, |function|
        layer, category, name, count, errors, total_ns, self_ns, bytes, bytes_per_second,
    };
    type Pick = fn(&Distribution) -> u64;
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
    let latency = |(name, pick): (&str, Pick)| {
        column(&format!("latency_{name}_ns"), rows, |function| pick(&function.latency))
    };
    let size = |(name, pick): (&str, Pick)| {
        column(&format!("size_{name}"), rows, |function| function.size.as_ref().map(pick))
    };
    table.columns.extend(picks.map(latency));
    table.columns.push(column("latency_mean_ns", rows, |function| function.latency.mean));
    table.columns.extend(picks.map(size));
    table.columns.push(column("size_mean", rows, |function| function.size.map(|size| size.mean)));
    table
}

fn uses(name: &'static str, rows: &[FileUse]) -> Table {
    table! { name, rows, |file|
        path, files, opens, reads, writes, others, bytes_read, bytes_written, extent_read,
        reread_factor, ns, metadata_ns, ranks, errors,
    }
}

fn stragglers(analysis: &Analysis) -> Table {
    table! { "stragglers", &analysis.stragglers.ranks, |one|
        rank, host, slowest_steps, slowest_share, lost_ns, because,
    }
}

fn checkpoints(analysis: &Analysis) -> Table {
    table! { "checkpoints", &analysis.checkpoints.transfers, |one|
        direction, start_ns, duration_ns, stall_ns, bytes, sync_ns, slowest_rank, slowest_ns, ranks,
    }
}

fn what_if(analysis: &Analysis) -> Table {
    table! { "what_if", &analysis.what_if.cases, |case|
        change, step_ns, step_least_ns: case.step_interval_ns[0],
        step_most_ns: case.step_interval_ns[1], stall_share,
    }
}

fn timeline(analysis: &Analysis) -> Table {
    let timeline = &analysis.timeline;
    let rows: Vec<usize> = (0..timeline.bytes_read.len()).collect();
    let at = |values: &[u64], row: &usize| values.get(*row).copied();
    table! { "timeline", &rows, |row|
        start_ns: *row as u64 * timeline.bucket_ns,
        bytes_read: at(&timeline.bytes_read, row),
        bytes_written: at(&timeline.bytes_written, row),
        calls: at(&timeline.calls, row),
        io_ns: at(&timeline.io_ns, row),
        read_p50_ns: at(&timeline.read_p50_ns, row),
        read_p99_ns: at(&timeline.read_p99_ns, row),
        compute_ns: at(&timeline.compute_ns, row),
        stall_ns: at(&timeline.stall_ns, row),
        ready_batches: timeline.ready_batches.get(*row).copied(),
    }
}

fn health(analysis: &Analysis) -> Table {
    table! { "health", &analysis.health.problems, |problem|
        code, count, text, places: problem.places.join("; "), limits_claims,
    }
}
