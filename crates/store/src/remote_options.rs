//! Settings of a remote store.
//!
//! Builds without the feature `remote` have them too, so that programs read the same configuration.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Settings of a remote store. Unset ones come from the environment and from the files that the
/// providers' own tools read; the documentation of `Remote::connect` says which.
#[derive(Clone)]
pub struct RemoteOptions {
    /// The id of an S3 access key, or the account of an Azure container.
    pub access_key_id: Option<String>,
    /// The secret of the access key or account.
    pub secret_access_key: Option<String>,
    /// The token of temporary S3 credentials.
    pub session_token: Option<String>,
    /// The URL of the service, if it is not the provider's own; `http://` is allowed.
    pub endpoint_url: Option<String>,
    /// The region of an S3 bucket.
    pub region: Option<String>,
    /// Whether the bucket is in the path (`true`) or in the host name. Unset, it is in the path, as
    /// MinIO and Ceph expect it and AWS accepts it, unless the endpoint is the provider's own.
    pub force_path_style: Option<bool>,
    /// How often a request is sent before its failure counts, at least 1.
    pub max_attempts: u32,
    /// Sends requests without a signature, for public data.
    pub unsigned: bool,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a connection may be silent while an answer is expected.
    pub stall_timeout: Duration,
    /// Set it to give up all requests in flight, within one or two tenths of a second per attempt.
    pub stop: Arc<AtomicBool>,
    /// Size of an upload's first parts, at least 5 MiB.
    pub part_bytes: usize,
    /// The largest read of a single request, in bytes.
    pub read_bytes: usize,
    /// DLIO's layout with s3torchconnector: the key of an object is its whole URI, `s3://bucket/` and
    /// all, within the bucket. For reading only.
    pub uri_keys: bool,
}

impl Default for RemoteOptions {
    fn default() -> RemoteOptions {
        RemoteOptions {
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            endpoint_url: None,
            region: None,
            force_path_style: None,
            // As DLIO's `s3_max_attempts`.
            max_attempts: 5,
            unsigned: false,
            connect_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(30),
            stop: Arc::default(),
            part_bytes: 8 << 20,
            read_bytes: 8 << 20,
            uri_keys: false,
        }
    }
}

/// Hides secrets: keys, tokens, and endpoints, which may contain a password.
impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |value: &Option<String>| value.as_ref().map(|_| Set);
        f.debug_struct("RemoteOptions")
            .field("access_key_id", &set(&self.access_key_id))
            .field("secret_access_key", &set(&self.secret_access_key))
            .field("session_token", &set(&self.session_token))
            .field("endpoint_url", &set(&self.endpoint_url))
            .field("region", &self.region)
            .field("force_path_style", &self.force_path_style)
            .field("max_attempts", &self.max_attempts)
            .field("unsigned", &self.unsigned)
            .field("connect_timeout", &self.connect_timeout)
            .field("stall_timeout", &self.stall_timeout)
            .field("part_bytes", &self.part_bytes)
            .field("read_bytes", &self.read_bytes)
            .field("uri_keys", &self.uri_keys)
            .finish()
    }
}

/// Shown in place of a secret.
struct Set;

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("set")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show() {
        let options = RemoteOptions {
            access_key_id: Some("AKIAID".to_owned()),
            secret_access_key: Some("hush1".to_owned()),
            session_token: Some("hush2".to_owned()),
            endpoint_url: Some("http://u:hush3@h".to_owned()),
            ..RemoteOptions::default()
        };
        let shown = format!("{options:?}");
        assert!(!shown.contains("hush") && !shown.contains("AKIAID"), "{shown}");
        assert!(shown.contains("secret_access_key: Some(set)"), "{shown}");
    }
}
