//! Keys: relative paths with `/` that cannot lead out of their store.

use crate::{Result, StoreError};

/// Cleans a key: removes empty and `.` parts. The empty key names the root.
pub(crate) fn folder(key: &str) -> Result<String> {
    let refused = || StoreError::Key { key: key.to_owned() };
    if key.starts_with('/') || key.contains('\0') {
        return Err(refused());
    }
    let parts = || key.split('/').filter(|part| !matches!(*part, "" | "."));
    if parts().any(|part| part == "..") {
        return Err(refused());
    }
    Ok(parts().collect::<Vec<_>>().join("/"))
}

/// Like [`folder`], but the root is not an object.
pub(crate) fn object(key: &str) -> Result<String> {
    let clean = folder(key)?;
    if clean.is_empty() || key.ends_with('/') {
        return Err(StoreError::Key { key: key.to_owned() });
    }
    Ok(clean)
}

/// Splits a clean key into the parent folder and the name in it.
pub(crate) fn split(clean: &str) -> (&str, &str) {
    clean.rsplit_once('/').unwrap_or(("", clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cleaned_and_cannot_leave_the_store() {
        let cleaned = |key| folder(key).ok();
        assert_eq!(cleaned("").as_deref(), Some(""));
        assert_eq!(cleaned("./a//b/").as_deref(), Some("a/b"));
        assert_eq!(cleaned("a..b").as_deref(), Some("a..b"));
        for bad in ["/etc", "..", "a/../b", "a/..", "a\0b"] {
            assert_eq!(cleaned(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_object_has_a_name() {
        assert_eq!(object("a/b").ok().as_deref(), Some("a/b"));
        for bad in ["", ".", "a/"] {
            assert!(object(bad).is_err(), "{bad:?}");
        }
        assert_eq!(split("a/b/c"), ("a/b", "c"));
        assert_eq!(split("c"), ("", "c"));
    }
}
