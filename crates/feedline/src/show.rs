//! What goes to stdout.

use std::io::{self, IsTerminal as _, Write as _};

use clap::CommandFactory as _;
use feedline_analyze::Analysis;
use feedline_bench::RunResults;
use feedline_engine::{FinishedRun, PlannedRun, WorkloadSource};
use feedline_report::{Style, explain, metrics, screen};
use feedline_workload::presets;
use serde_json::json;

use crate::args::{Args, Page};
use crate::{failure, launcher};

/// Width of a page that does not go to a terminal.
const PAGE_WIDTH: usize = 100;

/// The shipped workloads, or one of them.
pub(crate) fn workloads(name: Option<&str>) -> anyhow::Result<u8> {
    let text = match name {
        Some(name) => WorkloadSource::find(name, None)?.yaml,
        None => feedline_report::workloads::table(presets::presets(), style()),
    };
    print(&text)
}

/// One metric, or the list of all.
pub(crate) fn explain(metric: Option<&str>) -> anyhow::Result<u8> {
    let text = match metric {
        None => explain::index(style()),
        Some(name) => {
            let found = metrics::find(metrics::all(), name).ok_or_else(|| {
                let hint = metric_hint(&metrics::similar(metrics::all(), name));
                failure::hinted(format!("unknown metric `{name}`"), hint)
            })?;
            explain::metric(found, style())
        }
    };
    print(&text)
}

/// What may have been meant by the name of a metric that does not exist, given similar names.
pub(crate) fn metric_hint(similar: &[&str]) -> String {
    match similar {
        [] => "`feedline explain` lists all names".to_owned(),
        near => format!("did you mean {}? `feedline explain` lists all names", near.join(", ")),
    }
}

/// A generated reference page.
pub(crate) fn reference(page: Page) -> anyhow::Result<u8> {
    print(&match page {
        Page::Cli => cli_markdown(),
        Page::WorkloadKeys => feedline_workload::keys_markdown(),
        Page::Metrics => explain::markdown(),
    })
}

/// What a run would do.
pub(crate) fn plan(planned: &PlannedRun) -> anyhow::Result<u8> {
    print(&feedline_report::plan::plan(&planned.plan, &planned.workload, style()))
}

/// The end of a run: one screen, or one JSON object.
pub(crate) fn result(done: &FinishedRun, as_json: bool) -> anyhow::Result<u8> {
    let folder = done.folder.display().to_string();
    if as_json {
        let object = json!({
            "feedline_schema": feedline_bench::SCHEMA_VERSION,
            "results": folder,
            "summary": done.results.file,
        });
        return print(&serde_json::to_string_pretty(&object)?);
    }
    let RunResults { outcome, summary, assessment, .. } = &done.results;
    print(&screen::screen(outcome, summary, assessment, &folder, style()))
}

/// The command line as a page: every command's own help.
fn cli_markdown() -> String {
    let mut page = String::from(
        "# Command line\n\nThe help of every command, as `feedline COMMAND --help` prints it.\n",
    );
    let mut root = Args::command().term_width(PAGE_WIDTH);
    root.build();
    for command in std::iter::once(root.clone()).chain(root.get_subcommands().cloned()) {
        if command.is_hide_set() || command.get_name() == "help" {
            continue;
        }
        let mut command = command.term_width(PAGE_WIDTH);
        let name = command.get_bin_name().unwrap_or("feedline").to_owned();
        page.push_str(&format!("\n## {name}\n\n```text\n{}```\n", command.render_long_help()));
    }
    page
}

/// Writes to stdout; a reader that has gone away is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(0),
    }
}

/// Writes an object to stdout, piece by piece: it may be larger than there is room for twice.
pub(crate) fn print_json(object: &Analysis) -> anyhow::Result<u8> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = serde_json::to_writer(&mut out, object)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(0),
    }
}

pub(crate) fn style() -> Style {
    // mpirun lends a terminal to programs whatever its own output goes to.
    let terminal = io::stdout().is_terminal() && launcher::started().is_none();
    let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = match terminal_size::terminal_size() {
        Some((terminal_size::Width(columns), _)) if terminal => usize::from(columns),
        _ => PAGE_WIDTH,
    };
    Style { width, color }
}
