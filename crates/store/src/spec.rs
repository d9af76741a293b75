//! Errors in limits and faults as the user wrote them.

use crate::fault;

/// Why a text is not a limit or a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A part that cannot be parsed.
    #[error("expected {expected}, found `{found}`")]
    Expected {
        /// What was expected in its place.
        expected: &'static str,
        /// The part as it was written.
        found: String,
    },
    /// A limit that is given more than once.
    #[error("{what} is limited twice, found `{found}` as well")]
    Twice {
        /// The limit that was given twice, such as the bandwidth.
        what: &'static str,
        /// The second value.
        found: String,
    },
    /// An unknown operation.
    #[error("no operation is called `{found}`")]
    UnknownOp {
        /// The word as it was written.
        found: String,
    },
    /// An unknown error, or one that storage never returns.
    #[error("no error of the system is called `{found}`")]
    UnknownErrno {
        /// The word as it was written.
        found: String,
    },
}

impl SpecError {
    pub(crate) fn expected(expected: &'static str, found: &str) -> SpecError {
        SpecError::Expected { expected, found: found.to_owned() }
    }

    /// The valid words, if they can be listed.
    pub fn hint(&self) -> Option<String> {
        match self {
            SpecError::Expected { .. } | SpecError::Twice { .. } => None,
            SpecError::UnknownOp { .. } => Some(format!("use {}", fault::op_words())),
            SpecError::UnknownErrno { .. } => Some(format!("use {}", fault::errno_names())),
        }
    }
}
