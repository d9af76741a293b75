//! A path or a URL.

use std::fmt;

use crate::{Capabilities, FILE, Scheme};

/// A folder of the file system, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A path, relative to the working folder unless it is absolute.
    Path(String),
    /// `s3://bucket/prefix` and its like.
    Url(String),
}

/// A path that was probably meant as a URL: `s3:/bucket`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSlash {
    /// The scheme that the path begins with.
    pub scheme: &'static str,
    /// The URL that was probably meant.
    pub url: String,
}

impl Location {
    /// Takes a text that begins with a scheme for a URL, and everything else for a path. `file://` is
    /// a path too.
    pub fn parse(text: &str) -> Self {
        match text.split_once("://") {
            Some((scheme, path)) if FILE.names.contains(&scheme) => Self::Path(path.to_owned()),
            Some((scheme, _)) if is_scheme(scheme) => Self::Url(text.to_owned()),
            _ => Self::Path(text.to_owned()),
        }
    }

    /// `text` below this location, unless it is an absolute path or a URL itself.
    pub fn join(&self, text: &str) -> Self {
        match (self, Self::parse(text)) {
            (_, url @ Self::Url(_)) => url,
            (Self::Path(_), Self::Path(path)) if path.starts_with('/') => Self::Path(path),
            (Self::Path(root), Self::Path(path)) => Self::Path(joined(root, &path)),
            (Self::Url(root), Self::Path(path)) => {
                let path = path.trim_start_matches("./").trim_start_matches('/');
                Self::Url(joined(root, path))
            }
        }
    }

    /// What kind of store it is in; `None` for a URL whose scheme is unknown.
    pub fn scheme(&self) -> Option<&'static Scheme> {
        match self {
            Self::Path(_) => Some(&FILE),
            Self::Url(url) => Scheme::named(url.split_once("://")?.0),
        }
    }

    /// The most that a store there can do; nothing for a URL whose scheme is unknown.
    pub fn capabilities(&self) -> Capabilities {
        self.scheme().map_or(Capabilities::NONE, |scheme| scheme.capabilities)
    }

    /// The text without a user, a password or a query, which may be secret; for messages.
    pub fn without_secrets(&self) -> String {
        let text = match self {
            Self::Path(path) => return path.clone(),
            Self::Url(url) => url.split(['?', '#']).next().unwrap_or_default(),
        };
        let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
        let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
        match (host.rsplit_once('@'), path) {
            (None, _) => text.to_owned(),
            (Some((_, host)), "") => format!("{scheme}://...@{host}"),
            (Some((_, host)), path) => format!("{scheme}://...@{host}/{path}"),
        }
    }

    /// What is wrong with a path that looks like a URL with a slash too few, also below `./`.
    pub fn missing_slash(&self) -> Option<MissingSlash> {
        let Self::Path(path) = self else { return None };
        let (scheme, rest) = path.split_once(":/")?;
        let scheme = scheme.trim_start_matches("./");
        let known = Scheme::named(scheme)?;
        let scheme = known.names.iter().find(|name| **name == scheme)?;
        let slashes = if known == &FILE { "/" } else { "" };
        let url = format!("{scheme}://{slashes}{}", rest.trim_start_matches('/'));
        Some(MissingSlash { scheme, url })
    }
}

fn joined(root: &str, path: &str) -> String {
    match (root, path) {
        (root, "" | ".") => root.to_owned(),
        ("", path) => path.to_owned(),
        (root, path) if root.ends_with('/') => format!("{root}{path}"),
        (root, path) => format!("{root}/{path}"),
    }
}

fn is_scheme(text: &str) -> bool {
    let mut chars = text.chars();
    let inside = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    chars.next().is_some_and(|first| first.is_ascii_alphabetic()) && chars.all(inside)
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(text) | Self::Url(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_makes_a_url() {
        for url in ["s3://b/p", "gs://b", "az://c/x", "https://h/p", "abfss://c@a/p", "s4://b"] {
            assert_eq!(Location::parse(url), Location::Url(url.into()));
        }
        for path in ["data", "/mnt/data", "./a", "://x", "1s3://b", "C:/x"] {
            assert_eq!(Location::parse(path), Location::Path(path.into()));
        }
        assert_eq!(Location::parse("a://"), Location::Url("a://".into()));
        assert_eq!(Location::parse("file:///mnt/x"), Location::Path("/mnt/x".into()));
    }

    #[test]
    fn a_location_can_do_what_its_scheme_can() {
        let network = |text| Location::parse(text).capabilities().network;
        assert_eq!(
            ["s3a://b", "https://h", "/mnt", "s4://b", "memory://"].map(network),
            [Some("HTTP"), Some("HTTP"), None, None, None]
        );
        assert!(Location::parse("/mnt").capabilities().direct);
        assert_eq!(Location::parse("s4://b").capabilities(), Capabilities::NONE);
    }

    #[test]
    fn a_missing_slash_is_noticed_after_known_schemes_only() {
        let meant = |text: &str| Location::parse(text).missing_slash().map(|found| found.url);
        assert_eq!(meant("s3:/bucket/x").as_deref(), Some("s3://bucket/x"));
        assert_eq!(meant("./abfss:/c@a/x").as_deref(), Some("abfss://c@a/x"));
        assert_eq!(meant("file:/mnt/x").as_deref(), Some("file:///mnt/x"));
        for text in ["s3://bucket", "C:/x", "/mnt/s3:/x", "data"] {
            assert_eq!(meant(text), None, "{text}");
        }
    }
}
