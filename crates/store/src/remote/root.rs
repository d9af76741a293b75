//! Where a remote store is: `s3://bucket/prefix` and its relatives.

use feedline_location::{Location, Scheme};
use object_store::path::Path;
use url::Url;

use crate::{StoreError, TraceSites};

/// Whose protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    S3,
    Google,
    Azure,
    /// Plain HTTP, and WebDAV for what that cannot do.
    Http,
}

static S3_SITES: TraceSites = TraceSites::of_objects("S3");
static GOOGLE_SITES: TraceSites = TraceSites::of_objects("GCS");
static AZURE_SITES: TraceSites = TraceSites::of_objects("AZURE");
static HTTP_SITES: TraceSites = TraceSites::of_objects("HTTP");

/// The protocol of every scheme that has one.
const SERVICES: [(&Scheme, Service); 4] = [
    (&feedline_location::S3, Service::S3),
    (&feedline_location::GOOGLE, Service::Google),
    (&feedline_location::AZURE, Service::Azure),
    (&feedline_location::HTTP, Service::Http),
];

impl Service {
    /// The schemes that speak it, and what its stores can do.
    pub(crate) fn scheme(self) -> &'static Scheme {
        let (scheme, _) = SERVICES.iter().find(|(_, of)| *of == self).expect("a line per service");
        scheme
    }

    /// What its calls are called in a trace.
    pub(crate) fn trace_sites(self) -> &'static TraceSites {
        match self {
            Service::S3 => &S3_SITES,
            Service::Google => &GOOGLE_SITES,
            Service::Azure => &AZURE_SITES,
            Service::Http => &HTTP_SITES,
        }
    }

    fn of(scheme: &str) -> Option<Service> {
        let scheme = Scheme::named(scheme)?;
        SERVICES.iter().find(|(of, _)| *of == scheme).map(|(_, service)| *service)
    }
}

/// A root that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// As the user wrote it, without slashes at the end.
    pub(crate) text: String,
    pub(crate) service: Service,
    /// Bucket or container; empty for HTTP.
    pub(crate) bucket: String,
    /// Scheme, host and port of HTTP; empty for others.
    pub(crate) origin: String,
    /// What every key begins with, without slashes around it. For HTTP that is the path of the URL, so
    /// that folders of a WebDAV server are made from the top.
    pub(crate) prefix: String,
}

impl Root {
    pub(crate) fn parse(text: &str) -> Result<Root, StoreError> {
        let refused = |reason| {
            let root = Location::parse(text).without_secrets();
            Err(StoreError::RemoteRoot { root, reason })
        };
        let Ok(url) = Url::parse(text) else {
            return refused("expected a URL such as s3://bucket/folder");
        };
        let Some(service) = Service::of(url.scheme()) else {
            return refused("expected the URL of an object store or a web server");
        };
        // `abfss://container@account.dfs.core.windows.net` has a name there that is not a user.
        let is_container = matches!(url.scheme(), "az" | "abfs" | "abfss");
        if url.password().is_some() || (!url.username().is_empty() && !is_container) {
            return refused(match service {
                Service::Http => "expected no user and no password, which are not sent there",
                _ => "expected no user and no password, which are options",
            });
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refused("expected nothing after ? or #");
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return refused("expected a bucket after ://");
        };
        if url.port().is_some() && service != Service::Http {
            return refused("expected a bucket without a port, which the endpoint has");
        }
        // Not from the URL, whose parser writes spaces and the like as escapes.
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let path = rest.split_once('/').map_or("", |(_, path)| path);
        let (bucket, prefix) = match service {
            Service::Http => match Path::from_url_path(clean(url.path())) {
                Ok(path) => (String::new(), path.as_ref().to_owned()),
                Err(_) => return refused("expected a path of plain names"),
            },
            Service::Azure if is_container && !url.username().is_empty() => {
                (url.username().to_owned(), clean(path))
            }
            _ => (host.to_owned(), clean(path)),
        };
        if prefix.split('/').any(|part| matches!(part, "." | "..")) {
            return refused("expected a path without . and ..");
        }
        let text = text.trim_end_matches('/').to_owned();
        let origin = match service {
            Service::Http => url.origin().ascii_serialization(),
            _ => String::new(),
        };
        Ok(Root { text, service, bucket, origin, prefix })
    }

    /// The key of an object of the store, as the server knows it.
    pub(crate) fn full(&self, clean: &str) -> String {
        match (self.prefix.as_str(), clean) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}/{key}"),
        }
    }

    /// The name a user knows an object by.
    pub(crate) fn locate(&self, key: &str) -> String {
        match key {
            "" => self.text.clone(),
            key => format!("{}/{key}", self.text),
        }
    }
}

/// A path without empty parts.
fn clean(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, service: Service, bucket: &str, prefix: &str) {
        let root = Root::parse(text).unwrap();
        let found = (root.service, root.bucket.as_str(), root.prefix.as_str());
        assert_eq!(found, (service, bucket, prefix), "{text}");
    }

    #[test]
    fn roots_name_a_service_a_bucket_and_a_prefix() {
        check("s3://b", Service::S3, "b", "");
        check("s3://my_bucket.x/", Service::S3, "my_bucket.x", "");
        check("s3a://b/a//b c/", Service::S3, "b", "a/b c");
        check("gs://b/x", Service::Google, "b", "x");
        check("az://c/x", Service::Azure, "c", "x");
        check("abfss://c@acc.dfs.core.windows.net/x/y", Service::Azure, "c", "x/y");
        check("http://h:8080/a/b", Service::Http, "", "a/b");
        check("http://h/a%20b//c d/", Service::Http, "", "a b/c d");
        check("https://h", Service::Http, "", "");
        let origin = |text| Root::parse(text).unwrap().origin;
        assert_eq!(origin("http://h:8080/a/b"), "http://h:8080");
        assert_eq!((origin("https://h/"), origin("s3://b/x")), ("https://h".into(), "".into()));
    }

    #[test]
    fn objects_are_named_as_the_user_wrote() {
        let root = Root::parse("s3://b/p//").unwrap();
        assert_eq!(root.locate("x/y"), "s3://b/p/x/y");
        assert_eq!(root.locate(""), "s3://b/p");
        assert_eq!((root.full("x").as_str(), root.full("").as_str()), ("p/x", "p"));
        assert_eq!(Root::parse("s3://b").unwrap().full("x"), "x");
    }

    #[test]
    fn what_is_no_root_is_refused_without_its_secrets() {
        for (text, shown, reason) in [
            ("s3://", "s3://", "expected a bucket after ://"),
            ("s3:///x", "s3:///x", "expected a bucket after ://"),
            ("s4://b", "s4://b", "expected the URL of an object store or a web server"),
            ("/data", "/data", "expected a URL such as s3://bucket/folder"),
            ("s3://b/x?versionId=hush", "s3://b/x", "expected nothing after ? or #"),
            ("s3://b/x#y", "s3://b/x", "expected nothing after ? or #"),
            (
                "https://u:hush@h/x",
                "https://...@h/x",
                "expected no user and no password, which are not sent there",
            ),
            (
                "s3://hush:hush@b",
                "s3://...@b",
                "expected no user and no password, which are options",
            ),
            ("s3://b/a/../c", "s3://b/a/../c", "expected a path without . and .."),
            (
                "s3://b:9000/x",
                "s3://b:9000/x",
                "expected a bucket without a port, which the endpoint has",
            ),
        ] {
            let error = Root::parse(text).unwrap_err();
            let expected = format!("{shown:?} is not the URL of a remote store: {reason}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
