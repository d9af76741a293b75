//! From the keys of a workload to the options of its stores.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use feedline_bench::{BenchError, ReadPlan};
use feedline_store::{ConnectOptions, FileOptions, Mode, Posix, RemoteOptions, Store};
use feedline_workload::{DirectIo, IoEngine, Location, Storage, Workload};

use crate::error::EngineError;

/// What the shipped `_s3` workloads, like DLIO's, have in place of credentials.
const PLACEHOLDERS: [&str; 2] = ["access-key", "secret-key"];

/// The data set, read and written as the workload says.
pub(crate) fn data(
    workload: &Workload,
    reading: &ReadPlan,
    stop: &Arc<AtomicBool>,
) -> Result<Arc<dyn Store>, EngineError> {
    let mode = match (reading.engine, reading.direct) {
        (IoEngine::Mmap, _) => Mode::Mapped,
        (_, true) => Mode::Direct,
        (_, false) => Mode::Buffered,
    };
    let options = ConnectOptions {
        read_bytes: reading.transfer_bytes.map(|bytes| bytes as usize),
        files: FileOptions { mode, ring: reading.engine == IoEngine::IoUring },
        remote: remote_options(&workload.storage, stop),
    };
    open(&workload.data_root(), &options)
}

/// The checkpoints.
pub(crate) fn checkpoints(
    workload: &Workload,
    stop: &Arc<AtomicBool>,
) -> Result<Arc<dyn Store>, EngineError> {
    let root = workload.checkpoint_root();
    let mode = match (workload.checkpoint.odirect, &root) {
        (DirectIo::On, _) => Mode::Direct,
        (DirectIo::Auto, Location::Path(path)) if takes_direct(path)? => Mode::Direct,
        (DirectIo::Auto | DirectIo::Off, _) => Mode::Buffered,
    };
    let files = FileOptions { mode, ring: false };
    let remote = remote_options(&workload.storage, stop);
    open(&root, &ConnectOptions { files, remote, ..ConnectOptions::default() })
}

fn takes_direct(path: &str) -> Result<bool, BenchError> {
    Posix::new(path, Mode::Direct).takes_direct().map_err(BenchError::Store)
}

/// A place that no workload says anything about: a path or a URL, with the options of the environment.
///
/// # Errors
/// If it is not a valid location, or cannot be connected to.
pub fn connect(text: &str, stop: &Arc<AtomicBool>) -> Result<Arc<dyn Store>, EngineError> {
    let remote = RemoteOptions { stop: Arc::clone(stop), ..RemoteOptions::default() };
    open(&Location::parse(text), &ConnectOptions { remote, ..ConnectOptions::default() })
}

fn open(location: &Location, options: &ConnectOptions) -> Result<Arc<dyn Store>, EngineError> {
    Ok(feedline_store::connect(&location.to_string(), options).map_err(BenchError::Store)?)
}

/// What the workload says about an object store.
fn remote_options(storage: &Storage, stop: &Arc<AtomicBool>) -> RemoteOptions {
    let usual = RemoteOptions::default();
    let secret = |key| {
        let text = storage.option_text(key)?;
        (!PLACEHOLDERS.contains(&text.as_str())).then_some(text)
    };
    let endpoint_url = storage.option_text("endpoint_url");
    let seconds = storage.option_u64("stall_timeout").map(Duration::from_secs);
    let attempts = storage.option_u64("s3_max_attempts").and_then(|n| u32::try_from(n).ok());
    RemoteOptions {
        access_key_id: secret("access_key_id"),
        secret_access_key: secret("secret_access_key"),
        session_token: storage.option_text("session_token"),
        region: storage.option_text("region"),
        force_path_style: path_style(storage, endpoint_url.as_deref()),
        endpoint_url,
        max_attempts: attempts.unwrap_or(usual.max_attempts),
        unsigned: storage.option_bool("unsigned").unwrap_or(usual.unsigned),
        stall_timeout: seconds.unwrap_or(usual.stall_timeout),
        part_bytes: storage
            .option_u64("part_size")
            .map_or(usual.part_bytes, |bytes| bytes as usize),
        uri_keys: storage.option_bool("uri_keys").unwrap_or(usual.uri_keys),
        stop: Arc::clone(stop),
        ..usual
    }
}

/// Not to force the bucket into the path is not to forbid it: an address or `localhost` has no room
/// for it elsewhere, and the workloads that say `false` are used with such endpoints.
fn path_style(storage: &Storage, endpoint: Option<&str>) -> Option<bool> {
    let forced = storage.option_bool("s3_force_path_style")?;
    let host = endpoint.and_then(|url| url.split_once("://")).map_or("", |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let bare = host.trim_matches(['[', ']']);
    let no_room = bare.parse::<IpAddr>().is_ok() || bare == "localhost";
    (forced || !no_room).then_some(forced)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of a workload with these lines in its `storage_options`.
    fn of_yaml(lines: &str) -> RemoteOptions {
        let yaml = format!("storage: {{storage_options: {{{lines}}}}}\n");
        let source = feedline_workload::Source { name: "t", origin: "t.yaml", text: &yaml };
        let composed = feedline_workload::compose(source, &[], &|_| String::new()).unwrap();
        let workload = feedline_workload::resolve(&composed).unwrap().workload;
        remote_options(&workload.storage, &Arc::default())
    }

    #[test]
    fn options_are_those_of_the_workload() {
        let found = of_yaml(
            "access_key_id: me, secret_access_key: no one, region: eu-1, s3_max_attempts: '3', \
             stall_timeout: 7, part_size: 16777216, uri_keys: true, unsigned: 'False'",
        );
        assert_eq!(found.access_key_id.as_deref(), Some("me"));
        assert_eq!(found.secret_access_key.as_deref(), Some("no one"));
        assert_eq!(found.region.as_deref(), Some("eu-1"));
        assert_eq!((found.max_attempts, found.part_bytes), (3, 16 << 20));
        assert_eq!(found.stall_timeout, Duration::from_secs(7));
        assert!(found.uri_keys && !found.unsigned);
        let usual = of_yaml("access_key_id: access-key, secret_access_key: secret-key");
        assert_eq!((usual.access_key_id, usual.secret_access_key), (None, None));
        assert_eq!((usual.max_attempts, usual.uri_keys), (5, false));
    }

    #[test]
    fn q35_a_path_style_that_is_not_forced_is_taken_where_it_must_be() {
        let style = |lines: &str| of_yaml(lines).force_path_style;
        assert_eq!(style("region: x"), None);
        assert_eq!(style("s3_force_path_style: true"), Some(true));
        assert_eq!(style("s3_force_path_style: 'false'"), Some(false));
        for endpoint in ["http://127.0.0.1:9000", "http://localhost:9020", "https://[::1]:9/s3"] {
            let lines = format!("s3_force_path_style: False, endpoint_url: '{endpoint}'");
            assert_eq!(style(&lines), None, "{endpoint}");
            let lines = format!("s3_force_path_style: True, endpoint_url: '{endpoint}'");
            assert_eq!(style(&lines), Some(true), "{endpoint}");
        }
        let named = "s3_force_path_style: False, endpoint_url: 'https://s3.example.com'";
        assert_eq!(style(named), Some(false));
    }
}
