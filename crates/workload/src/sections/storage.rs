//! Section `storage`: where data is stored.

use crate::keyword::keyword_enum;
use crate::node::{Map, Value};

/// Where data is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// Type of storage.
    pub storage_type: StorageType,
    /// The folder or URL that data paths are relative to; the bucket with [`StorageType::S3`].
    pub storage_root: String,
    /// Options of an object store, by name.
    pub storage_options: Map,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            storage_type: StorageType::LocalFs,
            storage_root: "./".to_owned(),
            storage_options: Map::new(),
        }
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
