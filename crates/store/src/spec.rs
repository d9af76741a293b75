//! What is wrong with a limit or a fault as a user wrote it.

use crate::fault;

/// Why a text is no limit or no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// It says something else.
    #[error("expected {expected}, found `{found}`")]
    Expected {
        /// What it should say.
        expected: &'static str,
        /// The part in question.
        found: String,
    },
    /// One bound is given more than once.
    #[error("{what} is limited twice, found `{found}` as well")]
    Twice {
        /// Which.
        what: &'static str,
        /// The second one.
        found: String,
    },
    /// An operation that there is not.
    #[error("no operation is called `{found}`")]
    UnknownOp {
        /// The word.
        found: String,
    },
    /// An error that there is not, or that no storage gives.
    #[error("no error of the system is called `{found}`")]
    UnknownErrno {
        /// The word.
        found: String,
    },
}

impl SpecError {
    pub(crate) fn expected(expected: &'static str, found: &str) -> SpecError {
        SpecError::Expected { expected, found: found.to_owned() }
    }

    /// The words that would do, if they can be listed.
    pub fn hint(&self) -> Option<String> {
        match self {
            SpecError::Expected { .. } | SpecError::Twice { .. } => None,
            SpecError::UnknownOp { .. } => Some(format!("use {}", fault::op_words())),
            SpecError::UnknownErrno { .. } => Some(format!("use {}", fault::errno_names())),
        }
    }
}
