//! Section `storage`: where the bytes live.

use crate::keyword::keyword_enum;
use crate::node::{Map, Value};

/// Where the bytes live.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// Kind of store.
    pub storage_type: StorageType,
    /// Local: the folder before every data path. Object store: the bucket.
    pub storage_root: String,
    /// Options of an object store; empty when not given.
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
    /// An option as text; numbers and truth values are spelt out, null and absent are none.
    pub fn option_text(&self, key: &str) -> Option<String> {
        match &self.storage_options.get(key)?.value {
            Value::Null | Value::List(_) | Value::Map(_) => None,
            Value::Bool(value) => Some(value.to_string()),
            Value::Int(value) => Some(value.to_string()),
            Value::Float(value) => Some(crate::emit::float_text(*value)),
            Value::Str(text) => Some(text.clone()),
        }
    }

    /// An option as a truth value: `true` and `"true"`, in any case, mean the same.
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
    /// Kind of store. `parallel_fs` is read as `local_fs`: both are paths to the benchmark.
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
