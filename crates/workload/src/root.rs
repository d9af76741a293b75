//! Where a data set or its checkpoints live: a folder, or a place in an object store.

use std::fmt;

use crate::sections::storage::StorageType;
use crate::sections::workload::Workload;

/// A folder of the file system, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// A path, relative to the working folder unless it is absolute.
    Path(String),
    /// `s3://bucket/prefix` and its like.
    Url(String),
}

impl Root {
    /// Takes a text that begins with a scheme for a URL, and everything else for a path.
    pub fn parse(text: &str) -> Self {
        match text.split_once("://") {
            Some(("file", path)) => Self::Path(path.to_owned()),
            Some((scheme, _)) if is_scheme(scheme) => Self::Url(text.to_owned()),
            _ => Self::Path(text.to_owned()),
        }
    }

    /// `text` below this root, unless it is a root itself.
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

    /// Whether bytes come over a network protocol and not from a file system.
    pub fn is_url(&self) -> bool {
        matches!(self, Self::Url(_))
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

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(text) | Self::Url(text) => f.write_str(text),
        }
    }
}

impl Workload {
    /// Where the data set is: `dataset.data_folder` below `storage.storage_root`, which is the name
    /// of a bucket with `storage_type: s3`. A `data_folder` that is a URL stands for itself.
    pub fn data_root(&self) -> Root {
        let storage = &self.storage;
        let root = match storage.storage_type {
            StorageType::S3 if !Root::parse(&storage.storage_root).is_url() => {
                let bucket = storage.storage_root.trim_start_matches("./").trim_matches('/');
                Root::Url(format!("s3://{bucket}"))
            }
            _ => Root::parse(&storage.storage_root),
        };
        root.join(&self.dataset.data_folder)
    }

    /// Where checkpoints go; as in DLIO, `storage.storage_root` has no part in it.
    pub fn checkpoint_root(&self) -> Root {
        Root::parse(&self.checkpoint.checkpoint_folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_makes_a_url() {
        for url in ["s3://b/p", "gs://b", "az://c/x", "https://h/p", "abfss://c@a/p", "s4://b"] {
            assert_eq!(Root::parse(url), Root::Url(url.into()));
        }
        for path in ["data", "/mnt/data", "./a", "a://", "://x", "1s3://b", "C:/x"] {
            let expected = path == "a://";
            assert_eq!(Root::parse(path).is_url(), expected, "{path}");
        }
        assert_eq!(Root::parse("file:///mnt/x"), Root::Path("/mnt/x".into()));
    }

    fn check(kind: StorageType, root: &str, folder: &str, expected: &str) {
        let mut workload = Workload::default();
        workload.storage.storage_type = kind;
        workload.storage.storage_root = root.into();
        workload.dataset.data_folder = folder.into();
        assert_eq!(workload.data_root().to_string(), expected, "{root} {folder}");
        assert_eq!(workload.data_root().is_url(), expected.contains("://"));
    }

    #[test]
    fn the_data_folder_is_below_the_root_unless_it_is_one() {
        check(StorageType::LocalFs, "./", "data", "./data");
        check(StorageType::LocalFs, "/mnt", "data/x", "/mnt/data/x");
        check(StorageType::LocalFs, "/mnt/", "/data", "/data");
        check(StorageType::LocalFs, "./", "gs://b/p", "gs://b/p");
        check(StorageType::LocalFs, "s3://b", "p", "s3://b/p");
        check(StorageType::S3, "bucket", "s3://bucket/p", "s3://bucket/p");
        check(StorageType::S3, "bucket", "data/unet3d", "s3://bucket/data/unet3d");
        check(StorageType::S3, "bucket", "./data", "s3://bucket/data");
        check(StorageType::S3, "bucket/", "/data/", "s3://bucket/data/");
        check(StorageType::S3, "s3://bucket/p", "data", "s3://bucket/p/data");
    }
}
