//! How far an analysis is, on stderr, if it takes longer than a second.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use feedline_analyze::load::LoadProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure;

/// What is over before this is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two lines where there is no terminal.
const INTERVAL: Duration = Duration::from_secs(5);

/// Draws on stderr.
pub(crate) struct LoadProgressBar {
    begin: Instant,
    is_terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
}

impl LoadProgressBar {
    pub(crate) fn new() -> Self {
        Self {
            begin: Instant::now(),
            is_terminal: std::io::stderr().is_terminal(),
            state: Mutex::default(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn done(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl LoadProgress for LoadProgressBar {
    fn update(&self, stage: &'static str, done: u64, all: u64) {
        let elapsed = self.begin.elapsed();
        if elapsed < PATIENCE {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_terminal {
            let bar = state.bar.get_or_insert_with(|| {
                let style =
                    ProgressStyle::with_template("{bar:12} {wide_msg}").expect("a valid template");
                let bar = ProgressBar::with_draw_target(
                    Some(all.max(1)),
                    ProgressDrawTarget::stderr_with_hz(8),
                );
                bar.with_style(style)
            });
            bar.set_length(all.max(1));
            bar.set_position(done);
            bar.set_message(format!("{stage}: {}", share(done, all)));
        } else if state.last_line.is_none_or(|last| last.elapsed() >= INTERVAL) {
            state.last_line = Some(Instant::now());
            failure::say(&format!("{stage}: {}", share(done, all)));
        }
    }
}

fn share(done: u64, all: u64) -> String {
    match (u128::from(done) * 100).checked_div(u128::from(all)) {
        Some(percent) => format!("{percent} %"),
        None => done.to_string(),
    }
}
