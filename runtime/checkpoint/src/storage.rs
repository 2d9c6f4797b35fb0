//! Where checkpoints are kept: named objects that are there whole or not at all. It may not know what is in them.

mod local;
mod s3;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, RealDisk};
use crate::error::StorageError;

pub use local::LocalStorage;
pub(crate) use local::TEMPORARY;

/// A folder or an object store. Names have parts with `/` between them: `shop/manifests/0000000012.json`.
pub trait Storage: Send + Sync {
    /// Writes a new object, whole and durable; `false`: there is one of this name already, which stays.
    ///
    /// # Errors
    /// After an error the object may be there; asking again gives `false` then.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StorageError>;

    /// Writes an object, whole and durable, in place of one that may be there.
    ///
    /// # Errors
    /// After an error the old or the new one is there.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError>;

    /// Reads an object.
    ///
    /// # Errors
    /// `Missing`; `TooLarge`: it has more than `limit` bytes.
    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, StorageError>;

    /// The objects below a name, sorted; none if there is no such name.
    ///
    /// # Errors
    /// When that can't be listed.
    fn list(&self, below: &str) -> Result<Vec<Object>, StorageError>;

    /// Removes objects, durably; one that isn't there is removed already.
    ///
    /// # Errors
    /// When one can't be removed; some may have been.
    fn delete(&self, names: &[String]) -> Result<(), StorageError>;

    /// Whether it keeps its promises, tried below this name; what stands there already is durable then.
    ///
    /// # Errors
    /// `NoCreate`, or what keeps it from being used at all.
    fn probe(&self, below: &str) -> Result<(), StorageError>;

    /// The path of an object, if it is a file of this machine.
    fn local_path(&self, name: &str) -> Option<PathBuf>;

    /// An object's place as people know it.
    fn place(&self, name: &str) -> String;
}

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its whole name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

impl Object {
    /// The last part of its name.
    pub fn file_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }
}

/// Opens a storage: a folder, or `s3://bucket/prefix` with region, endpoint and keys from the usual `AWS_…` variables. A relative folder is one of `base`, the pipeline's folder. Nothing is created yet.
///
/// # Errors
/// `Location`: it is neither.
pub fn open_storage(location: &str, base: &Path) -> Result<Arc<dyn Storage>, StorageError> {
    if let Some((scheme, rest)) = location.split_once("://") {
        if let "s3" | "s3+http" = scheme {
            return Ok(Arc::new(s3::S3Storage::open(location, rest, scheme == "s3+http")?));
        }
        return Err(StorageError::Location {
            place: location.to_owned(),
            why: format!("this dfc doesn't know `{scheme}` as a storage"),
            help: "name a folder, as in `storage: \"./state\"`, or a bucket, as in `storage: \"s3://bucket/prefix\"`"
                .into(),
        });
    }
    if location.is_empty() || location.contains('\0') {
        return Err(StorageError::Location {
            place: location.escape_debug().to_string(),
            why: "no folder can have this name".into(),
            help: "name a folder, as in `storage: \"./state\"`".into(),
        });
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    Ok(Arc::new(LocalStorage::new(disk, base.join(location))))
}
