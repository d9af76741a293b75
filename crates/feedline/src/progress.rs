//! What a person sees while a run goes on: one line in place on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use feedline_bench::{Generating, Level, Observer, Stepping};
use feedline_report::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

/// Draws on stderr.
pub(crate) struct Progress {
    state: Mutex<State>,
    terminal: bool,
    /// Lines of the log from this level on are printed too, as DLIO does.
    log: Option<Level>,
}

#[derive(Default)]
struct State {
    bar: Option<ProgressBar>,
    begin: Option<Instant>,
    last_line: Option<Instant>,
}

impl Progress {
    /// Progress of a `feedline run`.
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { state: Mutex::default(), terminal, log: None }
    }

    /// DLIO prints its log and no progress.
    pub(crate) fn log_only(level: Level) -> Self {
        Self { state: Mutex::default(), terminal: false, log: Some(level) }
    }

    fn show(&self, done: u64, total: u64, text: impl FnOnce(Duration) -> String) {
        if self.log.is_some() {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let begin = *state.begin.get_or_insert(now);
        if self.terminal {
            let bar = state.bar.get_or_insert_with(|| bar(total));
            bar.set_position(done);
            bar.set_message(text(now - begin));
            return;
        }
        let due = state.last_line.is_none_or(|last| now - last >= PLAIN_INTERVAL);
        if due || done == total {
            state.last_line = Some(now);
            eprintln!("{}", text(now - begin));
        }
    }
}

impl Observer for Progress {
    fn line(&self, level: Level, text: &str) {
        if self.log.is_some_and(|least| level >= least) {
            eprintln!("[{}] {text}", level.as_str());
        }
    }

    fn generating(&self, progress: Generating) {
        let Generating { files, files_total, bytes, bytes_total } = progress;
        self.show(bytes, bytes_total, |elapsed| {
            let seconds = elapsed.as_secs_f64();
            let rate = (seconds > 0.0 && bytes > 0).then(|| bytes as f64 / seconds);
            let left = rate.map(|rate| (bytes_total - bytes) as f64 / rate);
            format!(
                "generate: {}/{} files, {} of {}, {}/s, {} left",
                units::count(files),
                units::count(files_total),
                units::bytes(bytes as f64),
                units::bytes(bytes_total as f64),
                units::bytes(rate),
                units::duration(left),
            )
        });
    }

    fn stepping(&self, progress: Stepping) {
        let Stepping { epoch, epochs, step, steps, .. } = progress;
        self.show(step, steps, |_| {
            format!(
                "epoch {epoch}/{epochs}: step {}/{}, AU so far {}, {:.1} samples/s, {}/s, {} left",
                units::count(step),
                units::count(steps),
                units::percent(progress.busy_percent),
                progress.samples_per_s,
                units::bytes(progress.bytes_per_s),
                units::duration(progress.seconds_left),
            )
        });
    }

    fn phase_ends(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        *state = State::default();
    }
}

fn bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20} {msg}").expect("a valid template");
    let target = ProgressDrawTarget::stderr_with_hz(8);
    ProgressBar::with_draw_target(Some(total), target).with_style(style)
}
