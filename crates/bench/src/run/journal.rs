//! The run's log: `dlio.log` with DLIO's line format, passed on to the observer.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::observer::{Level, Observer};

/// Writes each line to the log file and passes it on. Lines below the level are dropped.
pub(crate) struct Journal {
    /// `None` in a process that writes no results.
    file: Option<Mutex<File>>,
    least: Level,
    observer: Arc<dyn Observer>,
}

impl Journal {
    /// Starts a new log; an old one of that name is replaced.
    pub(crate) fn create(
        path: &Path,
        least: Level,
        observer: Arc<dyn Observer>,
    ) -> io::Result<Self> {
        Ok(Self { file: Some(Mutex::new(File::create(path)?)), least, observer })
    }

    /// A log without a file, for a process that writes no results.
    pub(crate) fn silent(observer: Arc<dyn Observer>) -> Self {
        Self { file: None, least: Level::Error, observer }
    }

    /// Whether lines of that level are written.
    pub(crate) fn hears(&self, level: Level) -> bool {
        level >= self.least
    }

    /// A line without a date.
    pub(crate) fn plain(&self, level: Level, text: &str) {
        if !self.hears(level) {
            return;
        }
        if let Some(file) = &self.file {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // A log that cannot be written (full disk) must not end the measurement it reports on.
            let _ = writeln!(file, "[{}] {text}", level.as_str());
        }
        self.observer.line(level, text);
    }

    /// A line that begins with the date and time.
    pub(crate) fn dated(&self, level: Level, text: &str) {
        if self.hears(level) {
            let now = jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S.%6f");
            self.plain(level, &format!("{now} {text}"));
        }
    }

    pub(crate) fn output(&self, text: &str) {
        self.dated(Level::Output, text);
    }
}
