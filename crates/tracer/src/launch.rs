//! A program that runs under the preload library while its recording is drained.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use feedline_recorder::{environment, is_counter_trusted};
use feedline_trace::{Drainer, TraceError};

use crate::claim::{Claim, Sharing};
use crate::error::TracerError;
use crate::options::TraceOptions;
use crate::program::{Program, file_of};
use crate::report::TraceReport;
use crate::rounds::drain_until;
use crate::{filters, library, segment_folder};

/// Starts a program, given with its arguments, and records what it and its children do with files.
/// Signals that end or steer programs are passed on to it from now on.
///
/// # Errors
/// An option is wrong, the folder cannot be used, or the program does not start. Then no files
/// are left over, and an older trace is untouched.
pub fn launch(command: &[OsString], options: &TraceOptions) -> Result<Launched, TracerError> {
    let (name, arguments) = command.split_first().ok_or(TracerError::NoProgram)?;
    if let Some(list) = &options.calls {
        filters::check_calls(list)?;
    }
    let library = library::find(options.library.as_deref())?;
    let include = filters::patterns(&options.include, &options.data)?;
    let exclude = filters::patterns(&options.exclude, &[])?;
    let sharing = if options.rank.is_some() { Sharing::Job } else { Sharing::Alone };
    let claim = Claim::new(&options.folder_for(name), options.existing, sharing)?;
    let memory = segment_folder::create(&claim.folder)?;
    let mut drainer = Drainer::start(&claim.folder, &memory)?;
    let mut variables = variables(options, &library, &drainer, &memory);
    variables.extend([(environment::INCLUDE, include), (environment::EXCLUDE, exclude)]);
    let start = Instant::now();
    let program = match Program::start(name, arguments, &variables) {
        Ok(program) => program,
        Err(error) => {
            let _ = drainer.finish();
            let _ = fs::remove_dir_all(&memory);
            claim.roll_back();
            return Err(error);
        }
    };
    drainer.expect(program.pid(), &file_of(name));
    let folder = claim.keep();
    Ok(Launched { folder, memory, rank: options.rank, drainer, program, start, drained: Ok(()) })
}

/// What the preload library is told, but for patterns of files.
fn variables(
    options: &TraceOptions,
    library: &Path,
    drainer: &Drainer,
    memory: &Path,
) -> Vec<(&'static str, OsString)> {
    let mut preload = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let clock = if is_counter_trusted() { "counter" } else { "monotonic" };
    let number = |number: Option<u32>| number.map_or_else(OsString::new, |n| n.to_string().into());
    vec![
        ("LD_PRELOAD", preload),
        (environment::FOLDER, drainer.dir().as_os_str().to_owned()),
        (environment::OVERFLOW, drainer.overflow().as_os_str().to_owned()),
        (environment::MEMORY, memory.as_os_str().to_owned()),
        (environment::MEMORY_BYTES, options.memory_bytes.to_string().into()),
        (environment::DRAINED, "1".into()),
        (environment::CLOCK, clock.into()),
        (environment::CALLS, options.calls.clone().unwrap_or_default().into()),
        (environment::SAMPLE, number(options.sample)),
        (environment::SUMMARY_MS, number(options.summary_ms)),
    ]
}

/// A program that was started by [`launch`].
#[derive(Debug)]
pub struct Launched {
    folder: PathBuf,
    memory: PathBuf,
    rank: Option<u32>,
    drainer: Drainer,
    program: Program,
    start: Instant,
    /// An error ends the draining; the program runs on.
    drained: Result<(), TraceError>,
}

impl Launched {
    /// The trace folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Drains until the program has ended. A trace that cannot be written does not end it:
    /// [`finish`](Self::finish) returns that error.
    ///
    /// # Errors
    /// The program cannot be waited for.
    pub fn wait(&mut self) -> Result<ExitStatus, TracerError> {
        let program = &mut self.program;
        let (status, drained) =
            drain_until(&mut self.drainer, |pause| program.wait(pause).transpose());
        self.drained = drained;
        status.map_err(TracerError::Wait)
    }

    /// Children of the program that still run.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn running(&mut self) -> Result<usize, TracerError> {
        if self.drained.is_err() { Ok(0) } else { Ok(self.drainer.running()?) }
    }

    /// Drains until all children that outlive the program have ended, or a signal asks to end.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub fn wait_for_children(&mut self) -> Result<(), TracerError> {
        while self.running()? > 0 && !self.program.is_interrupted() {
            std::thread::sleep(self.drainer.pause());
            self.drainer.round()?;
        }
        Ok(())
    }

    /// Writes the rest of the trace, and its report.
    ///
    /// # Errors
    /// The trace cannot be written; what is missing stays where `feedline_trace::recover` finds it.
    pub fn finish(self) -> Result<TraceReport, TracerError> {
        self.drained?;
        let seconds = self.start.elapsed().as_secs_f64();
        let report = TraceReport::new(&self.folder, self.drainer.finish()?, seconds);
        report.write(self.rank)?;
        // Not empty if processes still run.
        let _ = fs::remove_dir(&self.memory);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_variable_of_the_preload_library_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let memory = folder.path().join("memory");
        let drainer = Drainer::start(&folder.path().join("trace"), &memory).unwrap();
        let library = Path::new("/lib/libfeedline_preload.so");
        let options = TraceOptions { sample: Some(4), ..TraceOptions::default() };
        let set = variables(&options, library, &drainer, &memory);
        let value = |name: &str| {
            let (_, value) = set.iter().find(|(key, _)| *key == name).unwrap();
            value.to_str().unwrap().to_owned()
        };
        assert_eq!(value(environment::SAMPLE), "4");
        assert_eq!(value(environment::SUMMARY_MS), "");
        assert_eq!(value(environment::MEMORY_BYTES), (256 << 20).to_string());
        assert!(value("LD_PRELOAD").starts_with("/lib/libfeedline_preload.so"));
        let names = set.iter().map(|(name, _)| *name);
        let names = names.chain([environment::INCLUDE, environment::EXCLUDE]);
        let expected = environment::ALL.into_iter().chain(["LD_PRELOAD"]);
        assert_eq!(names.collect::<BTreeSet<_>>(), expected.collect());
    }
}
