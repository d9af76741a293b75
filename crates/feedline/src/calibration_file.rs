//! Where a machine's calibration lies.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use feedline_bench::Calibration;
use serde::{Deserialize, Serialize};

use crate::failure;

/// Names the file, before any other place is looked at.
const VARIABLE: &str = "FEEDLINE_CALIBRATION";

/// The text of a calibration, unread: a run that does not need it does not care what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) file: String,
    text: String,
}

impl Stored {
    /// The calibration in `named`, or in this machine's place for it, where it need not be.
    pub(crate) fn find(named: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let must_be = named.is_some() || from_environment().is_some();
        let Some(path) = place(named) else { return Ok(None) };
        let file = path.display().to_string();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Self { file, text })),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_be => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(failure::hinted(
                format!("{file}: no such calibration"),
                format!("`feedline calibrate --out {file}` makes it"),
            )),
            Err(error) => Err(error).with_context(|| format!("{file}: cannot be read")),
        }
    }

    /// What is in it.
    pub(crate) fn parse(&self) -> anyhow::Result<Calibration> {
        Calibration::parse(&self.text).map_err(|error| {
            let error = anyhow::Error::new(error);
            failure::hinted(
                format!("{}: {error:#}", self.file),
                "measure again with `feedline calibrate`, remove the file, or run with --set \
                 reader.interpreter=none",
            )
        })
    }
}

/// The file: as named, by the environment, or in the user's data folder; `None` without a home.
pub(crate) fn place(named: Option<&Path>) -> Option<PathBuf> {
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
