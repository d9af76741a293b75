//! The client of each kind of service, from options, environment and files.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::azure::{AzureAccessKey, AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider,
};
use tokio::runtime::Handle;
use url::Url;

use super::credentials::Shared;
use super::failure::{innermost, one_line};
use super::http::Connector;
use super::pool::Timeouts;
use super::profile::{self, Profile};
use super::root::{Root, Service};
use super::signature::Signer;
use super::socket::Dialer;
use super::uri_keys::{BucketIn, UriKeys};
use crate::{Op, RemoteOptions, StoreError};

/// Smallest part S3 takes, except for the last one.
const PART_BYTES_MIN: usize = 5 << 20;
/// First pause before a request is repeated, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// A body that breaks off is resumed however long the one request has taken until then; how often a
/// request is repeated has its own limit.
const RETRY_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// One client of the service, seen from its three sides.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// `None` where listings have no pages.
    pub(crate) pages: Option<Arc<dyn PaginatedListStore>>,
    /// `None` where an object is written by one request.
    pub(crate) parts: Option<Arc<dyn MultipartStore>>,
}

/// How to make clients. Holds secrets, so it shows nothing of itself.
pub(crate) struct Recipe {
    root: String,
    connector: Connector,
    builder: ServiceBuilder,
}

enum ServiceBuilder {
    S3(AmazonS3Builder),
    Google(GoogleCloudStorageBuilder),
    Azure(MicrosoftAzureBuilder),
    Http(HttpBuilder),
}

impl Recipe {
    /// Finds out what every client needs. `home` runs what is fetched for all of them.
    pub(crate) fn new(
        root: &Root,
        options: &RemoteOptions,
        home: &Handle,
    ) -> Result<Recipe, StoreError> {
        check(root, options)?;
        let connector = Connector {
            dialer: Arc::new(Dialer::new(Arc::clone(&options.stop))),
            timeouts: Timeouts { connect: options.connect_timeout, stall: options.stall_timeout },
            uri_keys: None,
            signer: None,
        };
        let setup = Setup { root, options, home, connector };
        let (connector, builder) = match root.service {
            Service::S3 => setup.s3()?,
            Service::Google => setup.google()?,
            Service::Azure => setup.azure()?,
            Service::Http => setup.http(),
        };
        let recipe = Recipe { root: root.text.clone(), connector, builder };
        recipe.client()?;
        Ok(recipe)
    }

    /// A client with connections of its own.
    pub(crate) fn client(&self) -> Result<Client, StoreError> {
        let connector = self.connector.clone();
        let refused = |error| unusable(&self.root, &error);
        Ok(match &self.builder {
            ServiceBuilder::S3(builder) => {
                whole(builder.clone().with_http_connector(connector).build().map_err(refused)?)
            }
            ServiceBuilder::Google(builder) => {
                whole(builder.clone().with_http_connector(connector).build().map_err(refused)?)
            }
            ServiceBuilder::Azure(builder) => {
                whole(builder.clone().with_http_connector(connector).build().map_err(refused)?)
            }
            ServiceBuilder::Http(builder) => {
                let store = builder.clone().with_http_connector(connector).build();
                Client { objects: Arc::new(store.map_err(refused)?), pages: None, parts: None }
            }
        })
    }

    /// The error of a system that gives us no lane.
    pub(crate) fn refused(&self, source: io::Error) -> StoreError {
        StoreError::Io { op: Op::Open, path: self.root.clone(), source }
    }
}

fn whole<S: ObjectStore + PaginatedListStore + MultipartStore>(store: S) -> Client {
    let store = Arc::new(store);
    Client {
        objects: Arc::clone(&store) as Arc<dyn ObjectStore>,
        pages: Some(Arc::clone(&store) as Arc<dyn PaginatedListStore>),
        parts: Some(store),
    }
}

/// A builder's error: it names what is missing, never a value.
fn unusable(root: &str, error: &object_store::Error) -> StoreError {
    let reason = one_line(&innermost(error));
    StoreError::RemoteOption { root: root.to_owned(), option: "settings".to_owned(), reason }
}

fn refuse(root: &Root, option: &str, reason: &str) -> StoreError {
    let (root, option, reason) = (root.text.clone(), option.to_owned(), reason.to_owned());
    StoreError::RemoteOption { root, option, reason }
}

/// Refuses settings that make no sense, and those that would do nothing.
fn check(root: &Root, options: &RemoteOptions) -> Result<(), StoreError> {
    let is = |service| root.service == service;
    let not = |named: &str, found: bool, allowed: bool| match found && !allowed {
        true => Err(refuse(root, named, "not known for this kind of store")),
        false => Ok(()),
    };
    let key = options.access_key_id.is_some() || options.secret_access_key.is_some();
    not("access key", key, is(Service::S3) || is(Service::Azure))?;
    not("session token", options.session_token.is_some(), is(Service::S3))?;
    not("region", options.region.is_some(), is(Service::S3))?;
    not("path style", options.force_path_style.is_some(), is(Service::S3))?;
    not("endpoint", options.endpoint_url.is_some(), !is(Service::Http))?;
    not("unsigned requests", options.unsigned, !is(Service::Http))?;
    not("URI keys", options.uri_keys, is(Service::S3))?;
    if options.access_key_id.is_some() != options.secret_access_key.is_some() {
        return Err(refuse(root, "access key", "expected it together with its secret"));
    }
    if options.max_attempts == 0 {
        return Err(refuse(root, "attempts", "expected at least 1, found 0"));
    }
    if options.part_bytes < PART_BYTES_MIN {
        return Err(refuse(root, "part size", "expected at least 5 MiB"));
    }
    if options.read_bytes == 0 {
        return Err(refuse(root, "transfer size", "expected at least 1 byte"));
    }
    Ok(())
}

/// An endpoint, with the bucket in its host's name if it belongs there.
fn endpoint_url(root: &Root, text: &str, bucket_in: BucketIn) -> Result<Url, StoreError> {
    let refused = |reason| refuse(root, "endpoint", reason);
    let mut url = Url::parse(text).map_err(|_| refused("expected a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("expected http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(refused("expected no user, no password and no query in it"));
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    if bucket_in == BucketIn::Host && !host.starts_with(&format!("{}.", root.bucket)) {
        let host = format!("{}.{host}", root.bucket);
        url.set_host(Some(&host)).map_err(|_| refused("expected a host's name"))?;
    }
    Ok(url)
}

/// Whether `object_store` takes a value of its environment variables for a yes.
fn means_yes(value: &str) -> bool {
    let words = ["1", "true", "on", "yes", "y", "requester"];
    words.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// What goes into a recipe.
struct Setup<'a> {
    root: &'a Root,
    options: &'a RemoteOptions,
    home: &'a Handle,
    connector: Connector,
}

/// Where the credentials of an S3 bucket come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Credentials {
    /// The options, the environment or a profile name a key.
    Given,
    /// A service of the provider must be asked for them.
    Fetched,
}

impl Setup<'_> {
    fn retry(&self) -> RetryConfig {
        let (init_backoff, max_backoff) = BACKOFF;
        RetryConfig {
            backoff: BackoffConfig { init_backoff, max_backoff, base: 2. },
            max_retries: self.options.max_attempts as usize - 1,
            retry_timeout: RETRY_TIME_MAX,
        }
    }

    fn s3(mut self) -> Result<(Connector, ServiceBuilder), StoreError> {
        let options = self.options;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.root.bucket)
            .with_retry(self.retry())
            // One object at a time is removed here, and not all servers know the other way.
            .with_disable_bulk_delete(true);
        let set = |builder: &AmazonS3Builder, key| builder.get_config_value(&key);
        let has_key = options.access_key_id.is_some()
            || set(&builder, AmazonS3ConfigKey::AccessKeyId).is_some();
        let mut credentials = if has_key { Credentials::Given } else { Credentials::Fetched };
        let profile = self.profile(credentials)?;
        let endpoint = options.endpoint_url.clone();
        let endpoint = endpoint
            .or_else(|| set(&builder, AmazonS3ConfigKey::S3Endpoint))
            .or_else(|| set(&builder, AmazonS3ConfigKey::Endpoint))
            .or(profile.endpoint_url);
        let region = options.region.clone();
        let region = region
            .or_else(|| set(&builder, AmazonS3ConfigKey::Region))
            .or_else(|| set(&builder, AmazonS3ConfigKey::DefaultRegion))
            .or(profile.region)
            .unwrap_or_else(|| "us-east-1".to_owned());
        builder = builder.with_region(&region);

        let asked = set(&builder, AmazonS3ConfigKey::VirtualHostedStyleRequest);
        let bucket_in = match options.force_path_style.unwrap_or(asked.as_deref() != Some("true")) {
            true => BucketIn::Path,
            false => BucketIn::Host,
        };
        builder = builder.with_virtual_hosted_style_request(bucket_in == BucketIn::Host);
        if let Some(endpoint) = endpoint {
            let url = endpoint_url(self.root, &endpoint, bucket_in)?;
            builder = builder
                .with_allow_http(url.scheme() == "http")
                .with_config(AmazonS3ConfigKey::S3Endpoint, url.as_str().trim_end_matches('/'));
        }
        let keys = match (&options.access_key_id, &options.secret_access_key) {
            (Some(id), Some(secret)) => {
                Some((id.clone(), secret.clone(), options.session_token.clone()))
            }
            _ if has_key => None,
            _ => match (profile.access_key_id, profile.secret_access_key) {
                (Some(id), Some(secret)) => Some((id, secret, profile.session_token)),
                _ => None,
            },
        };
        if keys.is_some() {
            credentials = Credentials::Given;
        }
        if let Some((key_id, secret_key, token)) = keys {
            let credential = AwsCredential { key_id, secret_key, token };
            let provider = StaticCredentialProvider::new(credential);
            builder = builder.with_credentials(Arc::new(provider));
        }
        self.finish_s3(builder, &region, bucket_in, credentials)
    }

    /// Shares what must be fetched, and takes signatures over. Those of directory buckets are left
    /// to `object_store`, which fetches credentials for their sessions, unless keys are URIs.
    fn finish_s3(
        &mut self,
        mut builder: AmazonS3Builder,
        region: &str,
        bucket_in: BucketIn,
        given: Credentials,
    ) -> Result<(Connector, ServiceBuilder), StoreError> {
        let is_set = |key| builder.get_config_value(&key).is_some_and(|value| means_yes(&value));
        let unsigned = self.options.unsigned || is_set(AmazonS3ConfigKey::SkipSignature);
        let has_sessions = is_set(AmazonS3ConfigKey::S3Express);
        let payer = is_set(AmazonS3ConfigKey::RequestPayer);
        let plain_bodies = is_set(AmazonS3ConfigKey::UnsignedPayload);
        let mut connector = self.connector.clone();
        let store = builder.clone().with_http_connector(connector.clone()).build();
        let store = store.map_err(|error| unusable(&self.root.text, &error))?;
        let credentials = match given == Credentials::Given || unsigned {
            true => Arc::clone(store.credentials()),
            false => Shared::new(Arc::clone(store.credentials()), self.home.clone()) as _,
        };
        builder = builder.with_credentials(Arc::clone(&credentials)).with_skip_signature(unsigned);
        if !unsigned && (!has_sessions || self.options.uri_keys) {
            let mut signer = Signer::new(region, credentials);
            (signer.payer, signer.plain_bodies) = (payer, plain_bodies);
            connector.signer = Some(Arc::new(signer));
            builder = builder.with_skip_signature(true);
        }
        if self.options.uri_keys {
            connector.uri_keys = Some(UriKeys::new(&self.root.bucket, bucket_in));
        }
        Ok((connector, ServiceBuilder::S3(builder)))
    }

    fn profile(&self, credentials: Credentials) -> Result<Profile, StoreError> {
        match profile::load(&|name| std::env::var(name).ok()) {
            Ok(profile) => Ok(profile),
            // The profile is not needed.
            Err(_) if credentials == Credentials::Given || self.options.unsigned => {
                Ok(Profile::default())
            }
            Err(error) => Err(refuse(self.root, "AWS profile", &error.to_string())),
        }
    }

    fn google(self) -> Result<(Connector, ServiceBuilder), StoreError> {
        let mut builder = GoogleCloudStorageBuilder::from_env()
            .with_bucket_name(&self.root.bucket)
            .with_retry(self.retry());
        if let Some(endpoint) = &self.options.endpoint_url {
            let url = endpoint_url(self.root, endpoint, BucketIn::Path)?;
            let client = ClientOptions::new().with_allow_http(url.scheme() == "http");
            builder = builder
                .with_base_url(url.as_str().trim_end_matches('/'))
                .with_client_options(client);
        }
        if self.options.unsigned {
            return Ok((self.connector, ServiceBuilder::Google(builder.with_skip_signature(true))));
        }
        let store = builder.clone().with_http_connector(self.connector.clone()).build();
        let store = store.map_err(|error| unusable(&self.root.text, &error))?;
        let shared = Shared::new(Arc::clone(store.credentials()), self.home.clone());
        Ok((self.connector, ServiceBuilder::Google(builder.with_credentials(shared))))
    }

    fn azure(self) -> Result<(Connector, ServiceBuilder), StoreError> {
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_url(&self.root.text)
            .with_retry(self.retry())
            .with_config(AzureConfigKey::ContainerName, &self.root.bucket);
        if let (Some(account), Some(key)) =
            (&self.options.access_key_id, &self.options.secret_access_key)
        {
            builder = builder
                .with_account(account)
                .with_access_key(key)
                // Otherwise a token of the environment would go before the key.
                .with_config(AzureConfigKey::CredentialType, "access_key");
        }
        if let Some(endpoint) = &self.options.endpoint_url {
            let url = endpoint_url(self.root, endpoint, BucketIn::Path)?;
            builder = builder
                .with_allow_http(url.scheme() == "http")
                .with_endpoint(url.as_str().trim_end_matches('/').to_owned())
                // Otherwise AZURE_STORAGE_USE_EMULATOR would decide about the endpoint.
                .with_use_emulator(false);
        }
        self.check_azure(&builder)?;
        if self.options.unsigned {
            return Ok((self.connector, ServiceBuilder::Azure(builder.with_skip_signature(true))));
        }
        let store = builder.clone().with_http_connector(self.connector.clone()).build();
        let store = store.map_err(|error| unusable(&self.root.text, &error))?;
        let shared = Shared::new(Arc::clone(store.credentials()), self.home.clone());
        Ok((self.connector, ServiceBuilder::Azure(builder.with_credentials(shared))))
    }

    /// What the builder would refuse without saying where it looked, or with a part of the key.
    fn check_azure(&self, builder: &MicrosoftAzureBuilder) -> Result<(), StoreError> {
        let set = |key| builder.get_config_value(&key);
        let is_emulator = set(AzureConfigKey::UseEmulator).is_some_and(|text| text != "false");
        // `abfss://container@account.dfs.core.windows.net` names the account.
        let named = self.root.text.split('/').nth(2).is_some_and(|host| host.contains('@'));
        if !is_emulator && !named && set(AzureConfigKey::AccountName).is_none() {
            let reason = "expected AZURE_STORAGE_ACCOUNT_NAME, or an access key and its secret";
            return Err(refuse(self.root, "account", reason));
        }
        match set(AzureConfigKey::AccessKey).map(|key| AzureAccessKey::try_new(&key)) {
            Some(Err(_)) => Err(refuse(self.root, "account key", "expected Base64")),
            _ => Ok(()),
        }
    }

    fn http(self) -> (Connector, ServiceBuilder) {
        let client = ClientOptions::new().with_allow_http(true);
        let builder = HttpBuilder::new()
            .with_url(&self.root.origin)
            .with_client_options(client)
            .with_retry(self.retry());
        (self.connector, ServiceBuilder::Http(builder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_has_many_spellings() {
        for yes in ["1", "true", "True", "on", "YES", "y", "requester"] {
            assert!(means_yes(yes), "{yes}");
        }
        for no in ["0", "false", "off", "no", "n", "", "truee"] {
            assert!(!means_yes(no), "{no}");
        }
    }

    /// What is said about `az://c/x` with these settings beside the account `me`.
    fn azure(key: &str, endpoint: Option<&str>) -> Result<(), String> {
        let root = Root::parse("az://c/x").unwrap();
        let options = RemoteOptions {
            access_key_id: Some("me".to_owned()),
            secret_access_key: Some(key.to_owned()),
            endpoint_url: endpoint.map(str::to_owned),
            ..RemoteOptions::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let recipe = Recipe::new(&root, &options, runtime.handle());
        recipe.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn an_account_key_is_refused_without_a_part_of_it() {
        assert_eq!(azure("aHVzaA==", None), Ok(()));
        assert_eq!(azure("aHVzaA==", Some("http://127.0.0.1:10000/me")), Ok(()));
        for key in ["hush!", "aHVzaB==", "aHVzaA"] {
            assert_eq!(azure(key, None), Err("account key of az://c/x: expected Base64".into()));
        }
    }

    #[test]
    fn endpoints_name_the_bucket_where_it_belongs() {
        let root = Root::parse("s3://bucket/x").unwrap();
        let found = |text, bucket_in| endpoint_url(&root, text, bucket_in);
        for (text, bucket_in, expected) in [
            ("http://h:9000", BucketIn::Path, "http://h:9000/"),
            ("http://h:9000/", BucketIn::Host, "http://bucket.h:9000/"),
            ("https://bucket.h", BucketIn::Host, "https://bucket.h/"),
            ("https://h/at", BucketIn::Path, "https://h/at"),
        ] {
            assert_eq!(found(text, bucket_in).unwrap().as_str(), expected);
        }
        for (text, reason) in [
            ("h:9000", "expected http:// or https://"),
            ("h", "expected a URL"),
            ("http://u:hush@h", "expected no user, no password and no query in it"),
            ("http://h?sig=hush", "expected no user, no password and no query in it"),
        ] {
            let said = found(text, BucketIn::Path).unwrap_err().to_string();
            assert_eq!(said, format!("endpoint of s3://bucket/x: {reason}"));
        }
        assert!(found("http://127.0.0.1", BucketIn::Path).is_ok());
    }
}
