//! The trace folder: claimed before the program starts, restored if it does not start.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::TracerError;
use crate::options::Existing;

/// The file that says which parallel job a trace belongs to.
const JOB: &str = "job";
/// Variables that together tell one parallel job from another.
const JOB_VARIABLES: [&str; 5] =
    ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_STEP_ID", "SLURM_JOB_ID"];
/// What draining creates in a folder.
const CREATED: [&str; 6] = ["trace.json", "writers", "segments", "events", "files", "processes"];

/// Whether the folder belongs to one launcher or to all launchers of a parallel job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Alone,
    Job,
}

/// A folder that is ready for a trace, and what was there before.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) folder: PathBuf,
    sharing: Sharing,
    is_created: bool,
    /// Where an older trace waits until the program has started.
    replaced: Option<PathBuf>,
}

impl Claim {
    pub(crate) fn new(
        out: &Path,
        existing: Existing,
        sharing: Sharing,
    ) -> Result<Self, TracerError> {
        let folder = || out.to_owned();
        if existing == Existing::Replace && sharing == Sharing::Job {
            return Err(TracerError::SharedReplace { folder: folder() });
        }
        let exists = out.exists();
        let mut replaced = None;
        if exists && !is_empty(out) {
            // Another launcher of the job may have come no further than its job file.
            let is_joined = sharing == Sharing::Job && out.join(JOB).is_file();
            if !is_joined && !out.join("trace.json").is_file() {
                return Err(TracerError::NotATrace { folder: folder() });
            }
            match (sharing, existing) {
                (Sharing::Job, _) => {}
                (Sharing::Alone, Existing::Refuse) => {
                    return Err(TracerError::Exists { folder: folder() });
                }
                (Sharing::Alone, Existing::Replace) => replaced = Some(set_aside(out)?),
            }
        }
        fs::create_dir_all(out).map_err(TracerError::io("create the trace folder", out))?;
        let folder = out.canonicalize().map_err(TracerError::io("find", out))?;
        if sharing == Sharing::Job {
            join(&folder)?;
        }
        let is_created = !exists || replaced.is_some();
        Ok(Self { folder, sharing, is_created, replaced })
    }

    /// The program did not start: everything becomes as it was.
    pub(crate) fn roll_back(self) {
        // What the other launchers of a job wrote stays.
        if self.sharing == Sharing::Job {
            return;
        }
        if self.is_created {
            let _ = fs::remove_dir_all(&self.folder);
        } else {
            // The user's own empty folder.
            for name in CREATED {
                let path = self.folder.join(name);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        if let Some(old) = &self.replaced {
            let _ = fs::rename(old, &self.folder);
        }
    }

    /// The program has started: the older trace is gone for good.
    pub(crate) fn keep(self) -> PathBuf {
        if let Some(old) = &self.replaced {
            let _ = fs::remove_dir_all(old);
        }
        self.folder
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Renames an older trace; its new, hidden name.
fn set_aside(out: &Path) -> Result<PathBuf, TracerError> {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let aside = out.with_file_name(format!(".{name}.{}.old", std::process::id()));
    fs::rename(out, &aside).map_err(TracerError::io("replace", out))?;
    Ok(aside)
}

/// A parallel job must not add to the trace of an earlier one.
fn join(folder: &Path) -> Result<(), TracerError> {
    let job: String = JOB_VARIABLES
        .iter()
        .filter_map(|name| Some(format!("{name}={}\n", std::env::var(name).ok()?)))
        .collect();
    let path = folder.join(JOB);
    let wrong = TracerError::io("write", &path);
    match fs::File::options().write(true).create_new(true).open(&path) {
        Ok(mut file) => file.write_all(job.as_bytes()).map_err(wrong),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::read_to_string(&path).unwrap_or_default();
            // Another launcher may be about to write it.
            if found == job || found.is_empty() {
                return Ok(());
            }
            Err(TracerError::OtherJob { folder: folder.to_owned() })
        }
        Err(error) => Err(wrong(error)),
    }
}
