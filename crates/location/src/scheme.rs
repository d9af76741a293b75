//! The one table of URL schemes.

use crate::Capabilities;

/// A kind of store and the schemes of its URLs.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Every spelling, the preferred one first.
    pub names: &'static [&'static str],
    /// What it is, for people.
    pub title: &'static str,
    /// The most that a store of this kind can do.
    pub capabilities: Capabilities,
}

/// Every kind of store; a new one is a line here and a line in `feedline_store::CONNECTORS`.
pub const SCHEMES: [&Scheme; 6] = [&FILE, &S3, &GOOGLE, &AZURE, &HTTP, &MEMORY];

/// Files of this machine; a plain path means the same.
pub const FILE: Scheme = Scheme {
    names: &["file"],
    title: "local files",
    capabilities: Capabilities {
        page_cache: true,
        direct: true,
        mapped: true,
        ring: true,
        queue: true,
        folder_renames: true,
        network: None,
    },
};

/// Amazon's object store and everything that speaks its protocol.
pub const S3: Scheme =
    Scheme { names: &["s3", "s3a"], title: "S3 buckets", capabilities: OVER_HTTP };

/// Google Cloud Storage.
pub const GOOGLE: Scheme =
    Scheme { names: &["gs"], title: "Google Cloud Storage buckets", capabilities: OVER_HTTP };

/// Azure Blob Storage and Data Lake Storage.
pub const AZURE: Scheme = Scheme {
    names: &["az", "abfs", "abfss", "azure", "adl"],
    title: "Azure Blob Storage containers",
    capabilities: OVER_HTTP,
};

/// Web servers, with WebDAV for what plain HTTP cannot do.
pub const HTTP: Scheme = Scheme {
    names: &["http", "https"],
    title: "web servers (HTTP, WebDAV)",
    capabilities: OVER_HTTP,
};

/// A store in the memory of this process, empty at first.
pub const MEMORY: Scheme = Scheme {
    names: &["memory"],
    title: "memory of this process",
    capabilities: Capabilities { folder_renames: true, ..Capabilities::NONE },
};

const OVER_HTTP: Capabilities =
    Capabilities { queue: true, network: Some("HTTP"), ..Capabilities::NONE };

impl Scheme {
    /// The kind of store that a scheme belongs to, in lower case as in all URLs here.
    pub fn named(name: &str) -> Option<&'static Scheme> {
        SCHEMES.into_iter().find(|scheme| scheme.names.contains(&name))
    }

    /// The preferred name, as used in output.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_belongs_to_one_kind_of_store() {
        let names: Vec<_> = SCHEMES.iter().flat_map(|scheme| scheme.names).collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| other == &name).count(), 1, "{name}");
        }
        let titles: Vec<_> = ["s3a", "abfss", "https", "file", "s4", "S3"]
            .map(|name| Scheme::named(name).map(Scheme::name))
            .into();
        let expected = [Some("s3"), Some("az"), Some("http"), Some("file"), None, None];
        assert_eq!(titles, expected);
    }

    #[test]
    fn only_files_have_a_page_cache_and_only_remote_stores_a_protocol() {
        let facts = SCHEMES.map(|scheme| {
            let can = scheme.capabilities;
            (scheme.name(), can.page_cache, can.network)
        });
        let expected = [
            ("file", true, None),
            ("s3", false, Some("HTTP")),
            ("gs", false, Some("HTTP")),
            ("az", false, Some("HTTP")),
            ("http", false, Some("HTTP")),
            ("memory", false, None),
        ];
        assert_eq!(facts, expected);
    }
}
