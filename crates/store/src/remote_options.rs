//! What a user may say about a remote store.
//!
//! Here in builds without the feature `remote` too, so that programs read their configuration alike.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Settings of a remote store. What is not set comes from the environment and from the files that
/// the providers' own tools read; the documentation of `Remote::connect` says which.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Who asks: an S3 access key, or the account of an Azure container.
    pub access_key_id: Option<String>,
    /// The secret that belongs to it.
    pub secret_access_key: Option<String>,
    /// The token of temporary S3 credentials.
    pub session_token: Option<String>,
    /// Where the service is, if it is not the provider's own; `http://` is allowed.
    pub endpoint_url: Option<String>,
    /// The region of an S3 bucket.
    pub region: Option<String>,
    /// Whether the bucket is named in the path (`true`) or in the host's name; unset, in the path with
    /// an endpoint of its own, as MinIO and Ceph want it, and as AWS takes it too.
    pub force_path_style: Option<bool>,
    /// How often a request is sent before its failure counts, at least 1.
    pub max_attempts: u32,
    /// Sends requests without a signature, for public data.
    pub unsigned: bool,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long nothing may move on a connection that something is expected of.
    pub stall_timeout: Duration,
    /// Set to give up what is under way, within a tenth of a second or two for each attempt.
    pub stop: Arc<AtomicBool>,
    /// How large the parts of an upload are at first, at least 5 MiB.
    pub part_bytes: usize,
    /// The largest piece asked for at a time.
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

/// Without what is secret: who asks, with what, and an endpoint that may carry a password.
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

/// Says that a value is there.
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
