//! Section `storage`: where data is stored.

use crate::keyword::keyword_enum;
use crate::node::{Map, Value};
use crate::schema::Kind::{Bool, Text, Whole};
use crate::schema::used;
use crate::section::section;

section! {
    /// Where data is stored.
    pub struct Storage in "storage" {
        /// Type of storage; `parallel_fs` means `local_fs`.
        storage_type: StorageType = StorageType::LocalFs, storage_type() "local_fs";
        /// Folder or URL that data paths are relative to; the bucket with `storage_type: s3`.
        storage_root: String = "./".to_owned(), text() "./";
        /// Options of an object store; the environment supplies those that are not set.
        storage_options: Map = Map::new(), storage_options() "null", then [
            used(
                "storage.storage_options.access_key_id", Text, "",
                "Access key ID of the credentials.",
            ),
            used(
                "storage.storage_options.secret_access_key", Text, "",
                "Secret access key of the credentials.",
            ),
            used(
                "storage.storage_options.session_token", Text, "",
                "Session token of temporary S3 credentials.",
            ),
            used(
                "storage.storage_options.unsigned", Bool, "false",
                "Send unsigned requests, for public data.",
            ),
            used(
                "storage.storage_options.endpoint_url", Text, "",
                "URL of the object store's endpoint.",
            ),
            used("storage.storage_options.region", Text, "us-east-1", "Region of the bucket."),
            used(
                "storage.storage_options.s3_force_path_style", Bool, "true",
                "Put the bucket into the path of the URL; `false` puts it into the host name, unless \
                 the host is an IP address or `localhost`.",
            ),
            used("storage.storage_options.s3_max_attempts", Whole, "5", "Attempts per request."),
            used(
                "storage.storage_options.stall_timeout", Whole, "30",
                "Seconds without progress on a connection before the request is retried.",
            ),
            used(
                "storage.storage_options.part_size", Whole, "8388608",
                "Size in bytes of the first parts of an upload, at least 5 MiB.",
            ),
            used(
                "storage.storage_options.uri_keys", Bool, "false",
                "Read a data set that DLIO wrote to S3, whose object keys are complete URIs \
                 (`s3://bucket/…`).",
            ),
        ];
    }
}

impl Storage {
    /// An option as text; numbers and booleans are converted, null is `None` like an absent key.
    pub fn option_text(&self, key: &str) -> Option<String> {
        match &self.storage_options.get(key)?.value {
            Value::Null | Value::List(_) | Value::Map(_) => None,
            Value::Bool(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Float(value) => Some(crate::emit::float_text(*value)),
            Value::Str(text) => Some(text.clone()),
        }
    }

    /// An option as a boolean; accepts `true` and the text `"true"`, ignoring case.
    pub fn option_bool(&self, key: &str) -> Option<bool> {
        match self.option_text(key)?.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// An option as a whole number.
    pub fn option_u64(&self, key: &str) -> Option<u64> {
        self.option_text(key)?.parse().ok()
    }
}

keyword_enum! {
    /// Type of storage. `parallel_fs` means `local_fs`: both are paths.
    #[derive(Default)]
    pub enum StorageType {
        /// A mounted file system, parallel or not.
        #[default]
        LocalFs = "local_fs",
        /// An S3 bucket.
        S3 = "s3",
        /// An AIStore bucket.
        Aistore = "aistore",
    }
}
