//! Where the entries of made files go: into the manifest, or on their way to the process that
//! writes it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};

use feedline_ranks::Team;

use crate::error::{DatasetError, Result};
use crate::manifest::{FileSum, ManifestWriter};

/// Text that goes to process 0 at a time.
const MESSAGE_BYTES: usize = 128 << 10;

/// Takes entries, in any order.
pub(crate) enum EntryLog {
    /// This process writes the manifest.
    Manifest(ManifestWriter),
    /// Another one does; entries wait on disk until it asks for them.
    Waiting(BufWriter<File>),
}

impl EntryLog {
    /// A log of a process that does not write the manifest.
    pub(crate) fn waiting() -> Result<Self> {
        Ok(Self::Waiting(BufWriter::new(tempfile::tempfile().map_err(spooled)?)))
    }

    pub(crate) fn add(&mut self, name: &str, sum: FileSum) -> Result<()> {
        match self {
            Self::Manifest(manifest) => Ok(manifest.add(name, sum)?),
            Self::Waiting(file) => {
                let line = serde_json::to_string(&(name, sum)).unwrap_or_default();
                writeln!(file, "{line}").map_err(spooled)
            }
        }
    }

    /// Brings the entries of all processes together and publishes the manifest.
    pub(crate) fn conclude(self, team: &Team) -> Result<()> {
        match self {
            Self::Manifest(mut manifest) => {
                for process in 1..team.geometry().processes() {
                    receive(team, process, &mut manifest)?;
                }
                Ok(manifest.publish()?)
            }
            Self::Waiting(file) => {
                let file = file.into_inner().map_err(|error| spooled(error.into_error()))?;
                send(team, file)
            }
        }
    }
}

/// Lines of entries, then an empty message.
fn send(team: &Team, mut file: File) -> Result<()> {
    file.seek(SeekFrom::Start(0)).map_err(spooled)?;
    let mut lines = BufReader::new(file);
    let mut message = Vec::new();
    loop {
        let more = lines.read_until(b'\n', &mut message).map_err(spooled)?;
        if more == 0 || message.len() >= MESSAGE_BYTES {
            let last = message.is_empty();
            team.send(std::mem::take(&mut message))?;
            if last {
                return Ok(());
            }
        }
    }
}

fn receive(team: &Team, process: u32, manifest: &mut ManifestWriter) -> Result<()> {
    loop {
        let message = team.receive(process)?;
        if message.is_empty() {
            return Ok(());
        }
        for line in message.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let entry = serde_json::from_slice::<(String, FileSum)>(line);
            let (name, sum) = entry.map_err(|_| DatasetError::OtherBuild { process })?;
            manifest.add(&name, sum)?;
        }
    }
}

fn spooled(source: io::Error) -> DatasetError {
    let file = "list of generated files in the temporary folder".to_owned();
    DatasetError::Output { file, source }
}
