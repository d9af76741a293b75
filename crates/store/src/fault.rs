//! Injected faults: which operations fail, as the user writes it.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Op, Result, SpecError, StoreError};

/// Errors that storage can return, by their names in the system's manual.
const ERRNOS: &[(&str, i32)] = &[
    ("EACCES", libc::EACCES),
    ("EBUSY", libc::EBUSY),
    ("EDQUOT", libc::EDQUOT),
    ("EEXIST", libc::EEXIST),
    ("EFBIG", libc::EFBIG),
    ("EHOSTDOWN", libc::EHOSTDOWN),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("EISDIR", libc::EISDIR),
    ("EMFILE", libc::EMFILE),
    ("ENFILE", libc::ENFILE),
    ("ENODEV", libc::ENODEV),
    ("ENOENT", libc::ENOENT),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSPC", libc::ENOSPC),
    ("ENOTCONN", libc::ENOTCONN),
    ("ENOTDIR", libc::ENOTDIR),
    ("ENXIO", libc::ENXIO),
    ("EPERM", libc::EPERM),
    ("EREMOTEIO", libc::EREMOTEIO),
    ("EROFS", libc::EROFS),
    ("ESTALE", libc::ESTALE),
    ("ETIMEDOUT", libc::ETIMEDOUT),
];

/// A rule for operations that fail, such as `read:100:EIO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultSpec {
    /// The kind of operation that fails.
    pub op: Op,
    /// Which operations of that kind fail.
    pub when: When,
    /// The system's error number.
    pub errno: i32,
}

/// Which operations of a kind, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Only the operation with this number.
    Nth(u64),
    /// Every multiple of this number, which is not 0.
    Every(u64),
}

impl When {
    fn holds(self, number: u64) -> bool {
        match self {
            When::Nth(nth) => number == nth,
            When::Every(step) => number.is_multiple_of(step),
        }
    }
}

impl FaultSpec {
    /// Parses `OP:N:ERRNO` or `OP:everyN:ERRNO`, e.g. `read:100:EIO`.
    pub fn parse(text: &str) -> Result<FaultSpec, SpecError> {
        let parts: Vec<_> = text.split(':').map(str::trim).collect();
        let [op, when, errno] = parts[..] else {
            return Err(SpecError::expected("OP:N:ERRNO such as read:100:EIO", text));
        };
        let known = Op::ALL.into_iter().find(|known| word(*known) == op);
        let op = known.ok_or_else(|| SpecError::UnknownOp { found: op.to_owned() })?;
        let (digits, every) = match when.strip_prefix("every") {
            Some(digits) => (digits, true),
            None => (when, false),
        };
        let number = digits.parse().ok().filter(|&number: &u64| number > 0);
        let number = number.ok_or_else(|| {
            SpecError::expected("a number from 1 on such as 100 or every100", when)
        })?;
        let when = if every { When::Every(number) } else { When::Nth(number) };
        let known = ERRNOS.iter().find(|(name, _)| *name == errno);
        let (_, errno) =
            *known.ok_or_else(|| SpecError::UnknownErrno { found: errno.to_owned() })?;
        Ok(FaultSpec { op, when, errno })
    }
}

/// The canonical form, which [`FaultSpec::parse`] accepts if it knows the error by name.
impl fmt::Display for FaultSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", word(self.op))?;
        match self.when {
            When::Nth(nth) => write!(f, "{nth}:")?,
            When::Every(step) => write!(f, "every{step}:")?,
        }
        match ERRNOS.iter().find(|(_, errno)| *errno == self.errno) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.errno),
        }
    }
}

/// The name of an operation in a fault: one word.
fn word(op: Op) -> String {
    op.name().replace(' ', "-")
}

/// All words that [`FaultSpec::parse`] knows for operations.
pub(crate) fn op_words() -> String {
    Op::ALL.map(word).join(", ")
}

/// All names that [`FaultSpec::parse`] knows for errors.
pub(crate) fn errno_names() -> String {
    let names: Vec<_> = ERRNOS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Fault rules and the operations counted so far. Stores that share it count together.
#[derive(Debug)]
pub struct Faults {
    specs: Vec<FaultSpec>,
    seen: [AtomicU64; Op::ALL.len()],
}

impl Faults {
    /// Starts counting from zero.
    pub fn new(specs: Vec<FaultSpec>) -> Faults {
        Faults { specs, seen: Default::default() }
    }

    /// Counts an operation; the first rule that matches makes it fail.
    pub(crate) fn strike(&self, op: Op, path: impl FnOnce() -> String) -> Result<()> {
        let number = self.seen[op as usize].fetch_add(1, Ordering::Relaxed) + 1;
        match self.specs.iter().find(|spec| spec.op == op && spec.when.holds(number)) {
            None => Ok(()),
            Some(spec) => {
                let source = io::Error::from_raw_os_error(spec.errno);
                Err(StoreError::Io { op, path: path(), source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_and_shown() {
        let check = |text: &str, op, when, errno| {
            let spec = FaultSpec::parse(text).unwrap();
            assert_eq!(spec, FaultSpec { op, when, errno });
            assert_eq!(spec.to_string(), text);
        };
        check("read:100:EIO", Op::Read, When::Nth(100), libc::EIO);
        check("open:5:ENOENT", Op::Open, When::Nth(5), libc::ENOENT);
        check("read:every1000:EIO", Op::Read, When::Every(1000), libc::EIO);
        check("write:3:ENOSPC", Op::Write, When::Nth(3), libc::ENOSPC);
        check("make-folder:1:EROFS", Op::MakeFolder, When::Nth(1), libc::EROFS);
        for (name, errno) in ERRNOS {
            check(&format!("stat:1:{name}"), Op::Stat, When::Nth(1), *errno);
        }
        for op in Op::ALL {
            check(&format!("{}:1:EIO", word(op)), op, When::Nth(1), libc::EIO);
        }
    }

    #[test]
    fn what_is_no_fault_is_refused_in_words() {
        for (text, expected) in [
            ("read", "expected OP:N:ERRNO such as read:100:EIO, found `read`"),
            ("read:1:EIO:2", "expected OP:N:ERRNO such as read:100:EIO, found `read:1:EIO:2`"),
            ("raed:1:EIO", "no operation is called `raed`"),
            ("read:0:EIO", "expected a number from 1 on such as 100 or every100, found `0`"),
            (
                "read:every0:EIO",
                "expected a number from 1 on such as 100 or every100, found `every0`",
            ),
            ("read:-1:EIO", "expected a number from 1 on such as 100 or every100, found `-1`"),
            ("read:1:EWHAT", "no error of the system is called `EWHAT`"),
            ("read:1:5", "no error of the system is called `5`"),
        ] {
            assert_eq!(FaultSpec::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn hints_list_the_words() {
        let hint = |text| FaultSpec::parse(text).unwrap_err().hint();
        assert_eq!(
            hint("raed:1:EIO"),
            Some(
                "use open, stat, read, create, write, publish, list, make-folder, remove, inspect"
                    .to_owned()
            )
        );
        assert!(hint("read:1:E").is_some_and(|hint| hint.starts_with("use EACCES, EBUSY, ")));
        assert_eq!(hint("read"), None);
    }
}
