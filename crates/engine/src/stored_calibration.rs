//! Where a machine's calibration is kept.

use std::io;
use std::path::{Path, PathBuf};

use feedline_bench::Calibration;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

/// Names the file, before any other place is looked at.
const VARIABLE: &str = "FEEDLINE_CALIBRATION";

/// The text of a calibration, unread: a run that does not need it does not care what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCalibration {
    /// Its file.
    pub file: String,
    text: String,
}

impl StoredCalibration {
    /// The calibration in `named`, or in this machine's place for it, where it need not be.
    ///
    /// # Errors
    /// The user named a file that is not there, or a file cannot be read.
    pub fn find(named: Option<&Path>) -> Result<Option<Self>, EngineError> {
        let must_be = named.is_some() || from_environment().is_some();
        let Some(path) = calibration_path(named) else { return Ok(None) };
        let file = path.display().to_string();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Self { file, text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(EngineError::NoCalibration { file })
            }
            Err(source) => Err(EngineError::Unreadable { path: file, source }),
        }
    }

    pub(crate) fn parse(&self) -> Result<Calibration, EngineError> {
        Calibration::parse(&self.text)
            .map_err(|source| EngineError::BadCalibration { file: self.file.clone(), source })
    }
}

/// The file: as named, by the environment, or in the user's data folder; `None` without a home.
pub fn calibration_path(named: Option<&Path>) -> Option<PathBuf> {
    let folder = |variable: &str| {
        let folder = std::env::var_os(variable).map(PathBuf::from)?;
        folder.is_absolute().then_some(folder)
    };
    let data = || folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")));
    named
        .map(Path::to_owned)
        .or_else(from_environment)
        .or_else(|| Some(data()?.join("feedline/calibration.json")))
}

fn from_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|text| !text.is_empty()).map(PathBuf::from)
}
