//! The locations of a data set and its checkpoints.

use feedline_location::Location;

use crate::sections::storage::StorageType;
use crate::sections::workload::Workload;

impl Workload {
    /// Location of the data set: `dataset.data_folder` below `storage.storage_root`, which is the name
    /// of a bucket with `storage_type: s3`. A `data_folder` that is a URL or an absolute path is used
    /// as it is.
    pub fn data_root(&self) -> Location {
        let storage = &self.storage;
        let root = match (storage.storage_type, Location::parse(&storage.storage_root)) {
            (StorageType::S3, Location::Path(bucket)) => {
                let bucket = bucket.trim_start_matches("./").trim_matches('/');
                Location::Url(format!("s3://{bucket}"))
            }
            (_, root) => root,
        };
        root.join(&self.dataset.data_folder)
    }

    /// Location of the checkpoints; as in DLIO, `storage.storage_root` does not apply to it.
    pub fn checkpoint_root(&self) -> Location {
        Location::parse(&self.checkpoint.checkpoint_folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: StorageType, root: &str, folder: &str, expected: &str) {
        let mut workload = Workload::default();
        workload.storage.storage_type = kind;
        workload.storage.storage_root = root.into();
        workload.dataset.data_folder = folder.into();
        assert_eq!(workload.data_root(), Location::parse(expected), "{root} {folder}");
    }

    #[test]
    fn the_data_folder_is_below_the_root_unless_it_is_one() {
        check(StorageType::LocalFs, "./", "data", "./data");
        check(StorageType::LocalFs, "/mnt", "data/x", "/mnt/data/x");
        check(StorageType::LocalFs, "/mnt/", "/data", "/data");
        check(StorageType::LocalFs, "./", "gs://b/p", "gs://b/p");
        check(StorageType::LocalFs, "s3://b", "p", "s3://b/p");
        check(StorageType::S3, "bucket", "s3://bucket/p", "s3://bucket/p");
        check(StorageType::S3, "bucket", "data/unet3d", "s3://bucket/data/unet3d");
        check(StorageType::S3, "bucket", "./data", "s3://bucket/data");
        check(StorageType::S3, "bucket/", "/data/", "s3://bucket/data/");
        check(StorageType::S3, "s3://bucket/p", "data", "s3://bucket/p/data");
    }
}
