//! Progress of a run on stderr: one updating line on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use feedline_bench::{Level, Observer, Pass, Stepping};
use feedline_dataset::{GenerationProgress, VerificationProgress};
use feedline_numbers::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure;

/// Shortest time between two plain lines within a phase.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between a plain line and the last line of a phase.
const PLAIN_END_INTERVAL: Duration = Duration::from_secs(1);

/// Reports progress to stderr.
pub(crate) struct Progress {
    state: Mutex<State>,
    terminal: bool,
    /// Print log lines of at least this level and no progress, as DLIO does.
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

    /// As DLIO does: log lines of at least `level`, and no progress.
    pub(crate) fn log_only(level: Level) -> Self {
        Self { state: Mutex::default(), terminal: false, log: Some(level) }
    }

    /// Runs `work`, which may write to the terminal, with the bar hidden.
    pub(crate) fn beside<R>(&self, work: impl FnOnce() -> R) -> R {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
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
        // The end of a phase gets a line of its own, unless phases follow each other quickly.
        let least = if done == total { PLAIN_END_INTERVAL } else { PLAIN_INTERVAL };
        if state.last_line.is_none_or(|last| now - last >= least) {
            state.last_line = Some(now);
            failure::say(&text(now - begin));
        }
    }
}

impl Observer for Progress {
    fn line(&self, level: Level, text: &str) {
        if self.log.is_some_and(|least| level >= least) {
            failure::say(&format!("[{}] {text}", level.as_str()));
        }
    }

    fn generating(&self, progress: GenerationProgress) {
        let GenerationProgress {
            files,
            files_total,
            bytes,
            bytes_total,
            kept_files,
            kept_bytes,
            ..
        } = progress;
        self.show(bytes, bytes_total, |elapsed| {
            let seconds = elapsed.as_secs_f64();
            let kept = match kept_files {
                0 => String::new(),
                files => format!(" ({} already existed)", units::count(files)),
            };
            let so_far = format!(
                "generate: {}/{} files{kept}, {} of {}",
                units::count(files),
                units::count(files_total),
                units::bytes(bytes as f64),
                units::bytes(bytes_total as f64),
            );
            let written = bytes.saturating_sub(kept_bytes);
            if seconds <= 0.0 || written == 0 {
                return so_far;
            }
            let rate = written as f64 / seconds;
            let left = units::duration(bytes_total.saturating_sub(bytes) as f64 / rate);
            format!("{so_far}, {}/s, {left} left", units::bytes(rate))
        });
    }

    fn verifying(&self, progress: VerificationProgress) {
        let VerificationProgress { files, files_total, bytes, bytes_total, bad_files } = progress;
        self.show(bytes, bytes_total, |elapsed| {
            let seconds = elapsed.as_secs_f64();
            let so_far = format!(
                "verify: {}/{} files, {} of {}, {} bad",
                units::count(files),
                units::count(files_total),
                units::bytes(bytes as f64),
                units::bytes(bytes_total as f64),
                units::count(bad_files),
            );
            if seconds <= 0.0 || bytes == 0 {
                return so_far;
            }
            let rate = bytes as f64 / seconds;
            let left = units::duration((bytes_total - bytes) as f64 / rate);
            format!("{so_far}, {}/s, {left} left", units::bytes(rate))
        });
    }

    fn stepping(&self, progress: Stepping) {
        let Stepping { pass, epoch, epochs, step, steps, rates } = progress;
        let pass = match pass {
            Pass::Training => "epoch",
            Pass::Evaluation => "evaluation",
        };
        self.show(step, steps, |_| {
            let (step, steps) = (units::count(step), units::count(steps));
            let Some(rates) = rates else {
                return format!("{pass} {epoch}/{epochs}: step {step}/{steps}, waiting for data");
            };
            format!(
                "{pass} {epoch}/{epochs}: step {step}/{steps}, AU {}, {:.1} samples/s, {}/s, {} left",
                units::percent(rates.busy_percent),
                rates.samples_per_s,
                units::bytes(rates.bytes_per_s),
                units::duration(rates.seconds_left),
            )
        });
    }

    fn phase_ends(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        state.begin = None;
    }
}

fn bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:12} {wide_msg}").expect("a valid template");
    let target = ProgressDrawTarget::stderr_with_hz(8);
    ProgressBar::with_draw_target(Some(total), target).with_style(style)
}
