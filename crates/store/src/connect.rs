//! Opens the store that a path or a URL names.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_location::{self as location, Location, MissingSlash, Scheme};

#[cfg(feature = "remote")]
use crate::Remote;
use crate::{Memory, Mode, Posix, RemoteOptions, Result, Store, StoreError};

/// Settings for [`connect`]. Each section applies to its own kind of store only.
#[derive(Debug, Clone, Default)]
pub struct ConnectOptions {
    /// Bytes per read of an object; unset, what suits the store.
    pub read_bytes: Option<usize>,
    /// Settings of local files.
    pub files: FileOptions,
    /// Settings of object stores and web servers.
    pub remote: RemoteOptions,
}

/// How local files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileOptions {
    /// Through the page cache, past it, or mapped.
    pub mode: Mode,
    /// Reads through io_uring, which also gives the store a queue.
    pub ring: bool,
}

/// One kind of store and how to connect to it.
pub struct Connector {
    /// The schemes of its URLs, and what it can do.
    pub scheme: &'static Scheme,
    connect: Connect,
}

type Connect = fn(&str, &ConnectOptions) -> Result<Arc<dyn Store>>;

/// Every kind of store; a new one is a line here and its facts in `feedline_location::SCHEMES`.
pub const CONNECTORS: &[Connector] = &[
    Connector { scheme: &location::FILE, connect: files },
    Connector { scheme: &location::S3, connect: remote },
    Connector { scheme: &location::GOOGLE, connect: remote },
    Connector { scheme: &location::AZURE, connect: remote },
    Connector { scheme: &location::HTTP, connect: remote },
    Connector { scheme: &location::MEMORY, connect: memory },
];

/// Opens the store at a path or a URL: a plain path or `file:///folder`, `s3://bucket/prefix`,
/// `gs://bucket/prefix`, `az://container/prefix` (`abfs` and `abfss` too), `http://host/path`,
/// `https://host/path`, or `memory://`, which is empty every time. Sends no request and reads no
/// file; the documentation of `Remote::connect` says where credentials come from.
///
/// ```
/// use feedline_store::{ConnectOptions, Store, connect};
///
/// let store = connect("memory://", &ConnectOptions::default())?;
/// assert!(!store.exists("a")?);
/// # Ok::<(), feedline_store::StoreError>(())
/// ```
pub fn connect(url_or_path: &str, options: &ConnectOptions) -> Result<Arc<dyn Store>> {
    let location = Location::parse(url_or_path);
    if let Some(MissingSlash { scheme, url }) = location.missing_slash() {
        return Err(StoreError::MissingSlash { path: location.to_string(), scheme, url });
    }
    let (Location::Path(text) | Location::Url(text)) = &location;
    let connector = location
        .scheme()
        .and_then(|scheme| CONNECTORS.iter().find(|connector| connector.scheme == scheme));
    match connector {
        Some(connector) => (connector.connect)(text, options),
        None => {
            let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme).to_owned();
            Err(StoreError::UnknownScheme { url: location.without_secrets(), scheme })
        }
    }
}

fn files(path: &str, options: &ConnectOptions) -> Result<Arc<dyn Store>> {
    let FileOptions { mode, ring } = options.files;
    let mut store = Posix::new(path, mode);
    if let Some(bytes) = options.read_bytes {
        store = store.with_read_bytes(bytes);
    }
    Ok(Arc::new(if ring { store.with_ring()? } else { store }))
}

#[cfg(feature = "remote")]
fn remote(url: &str, options: &ConnectOptions) -> Result<Arc<dyn Store>> {
    let mut remote = options.remote.clone();
    if let Some(bytes) = options.read_bytes {
        remote.read_bytes = bytes;
    }
    Ok(Arc::new(Remote::connect(url, &remote)?))
}

#[cfg(not(feature = "remote"))]
fn remote(url: &str, _options: &ConnectOptions) -> Result<Arc<dyn Store>> {
    Err(StoreError::RemoteLeftOut { url: Location::parse(url).without_secrets() })
}

fn memory(_url: &str, _options: &ConnectOptions) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(Memory::new(Clock::real())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (String, Option<String>) {
        let error = connect(text, &ConnectOptions::default()).map(drop).unwrap_err();
        (error.to_string(), error.hint())
    }

    #[test]
    fn every_scheme_has_a_connector() {
        let schemes: Vec<_> = CONNECTORS.iter().map(|connector| connector.scheme).collect();
        assert_eq!(schemes, location::SCHEMES);
    }

    #[cfg(not(feature = "remote"))]
    #[test]
    fn a_build_without_object_stores_says_so() {
        assert_eq!(
            refusal("s3://me:hush@bucket/x"),
            (
                "cannot connect to s3://...@bucket/x: this build has no support for object stores"
                    .to_owned(),
                Some("build `feedline-store` with the feature `remote`".to_owned())
            )
        );
        connect("memory://", &ConnectOptions::default()).unwrap();
    }

    #[cfg(feature = "remote")]
    #[test]
    fn paths_and_urls_of_every_scheme_connect() {
        let options = ConnectOptions {
            read_bytes: Some(12_345),
            remote: RemoteOptions {
                access_key_id: Some("account".to_owned()),
                secret_access_key: Some("a2V5".to_owned()),
                endpoint_url: Some("http://127.0.0.1:1".to_owned()),
                ..RemoteOptions::default()
            },
            ..ConnectOptions::default()
        };
        for (text, located) in [
            ("some/folder", "some/folder/x"),
            ("/some/folder", "/some/folder/x"),
            ("file:///some/folder", "/some/folder/x"),
            ("s3://bucket/p/", "s3://bucket/p/x"),
            ("az://container", "az://container/x"),
        ] {
            let store = connect(text, &options).unwrap();
            assert_eq!((store.locate("x").as_str(), store.read_bytes()), (located, 12_345));
        }
        let web = connect("http://127.0.0.1:1/a", &ConnectOptions::default()).unwrap();
        assert_eq!(web.locate("x"), "http://127.0.0.1:1/a/x");
        assert_eq!(connect("memory://", &options).unwrap().locate("x"), "memory:x");
    }

    #[test]
    fn files_are_read_as_the_options_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let blocks = |mode| {
            let files = FileOptions { mode, ring: false };
            let options = ConnectOptions { files, ..ConnectOptions::default() };
            connect(path, &options).unwrap().block_bytes()
        };
        let modes = [Mode::Buffered, Mode::Mapped, Mode::Direct].map(blocks);
        assert_eq!(modes, [1, 1, crate::BLOCK_BYTES]);
        let files = FileOptions { mode: Mode::Mapped, ring: true };
        let options = ConnectOptions { files, ..ConnectOptions::default() };
        let error = connect(path, &options).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::RingMapped { .. }), "{error}");
    }

    #[test]
    fn misspelled_locations_get_a_hint() {
        assert_eq!(
            refusal("s4://me:hush@b/x?hush"),
            (
                "cannot connect to s4://...@b/x: unknown scheme `s4`".to_owned(),
                Some(
                    "use a path, or a URL with one of file, s3, s3a, gs, az, abfs, abfss, azure, \
                     adl, http, https, memory"
                        .to_owned()
                )
            )
        );
        assert_eq!(
            refusal("./s3:/bucket/x"),
            (
                "./s3:/bucket/x is a path, expected a URL after `s3:`".to_owned(),
                Some("did you mean s3://bucket/x?".to_owned())
            )
        );
    }

    #[cfg(feature = "remote")]
    #[test]
    fn a_url_without_a_bucket_is_refused() {
        let message =
            "\"s3://\" is not the URL of a remote store: expected a bucket after ://".to_owned();
        assert_eq!(refusal("s3://"), (message, None));
    }
}
