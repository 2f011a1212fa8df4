//! The services `store.*`: a plugin's own values, which persist across sessions and plugin updates.
//!
//! Keys are texts. Values are bytes in the frame of the request or answer. A value belongs either
//! to the user, and is the same in all workspaces, or to the workspace of the process. No other
//! plugin can access it.

use serde::{Deserialize, Serialize};

use crate::service::FolderAnswer;

crate::operations::service_operations! { $ store_operations, None, answered;
    /// Reads a value.
    [reads] get GET "store.get": StoreGet => StoreValue + bytes;
    /// Writes the bytes as a value, atomically.
    set SET "store.set": StoreSet + bytes => StoreSetAnswer;
    /// Deletes a value.
    delete DELETE "store.delete": StoreDelete => StoreDeleteAnswer;
    /// Lists keys, sorted.
    [reads] list LIST "store.list": StoreList => StoreKeys;
    /// Returns a folder for the plugin's own files.
    folder FOLDER "store.folder": StoreFolder => FolderAnswer;
}

/// The maximum length of a key, in bytes.
pub const KEY_BYTES_MAX: usize = 200;
/// The maximum size of a value, in bytes. It fits into a frame together with its key. Store larger
/// data in a file of [`FOLDER`].
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum number of a plugin's values, for the user and for each workspace.
pub const KEYS_MAX: usize = 4096;
/// The maximum total size of a plugin's values, for the user and for each workspace, in bytes.
pub const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The value of [`StoreSet::expected`] if the key must not exist.
pub const ABSENT: &str = "absent";

/// The owner of a value. Unknown words are refused, because a value must not be stored where no one
/// looks for it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum StoreOwner {
    /// The user, in all workspaces.
    #[default]
    Person,
    /// The workspace in which the host was started.
    Workspace,
}

/// A request to read a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreGet {
    /// The key.
    pub key: String,
    /// The owner.
    pub of: StoreOwner,
}

/// The result of reading a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreValue {
    /// Whether the value exists.
    pub found: bool,
    /// The SHA-256 of the value in lower-case hex, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl StoreValue {
    /// Creates the answer for a value with this digest. Only the host needs this.
    pub fn found(digest: impl Into<String>) -> Self {
        Self { found: true, digest: Some(digest.into()) }
    }
}

/// A request to write a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreSet {
    /// The key: 1 to [`KEY_BYTES_MAX`] bytes of any text.
    pub key: String,
    /// The owner.
    pub of: StoreOwner,
    /// The expected digest of the value to replace, or [`ABSENT`]. If the store has another value,
    /// nothing is written and the request fails with `conflict`. If absent, any value is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// The result of writing a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreSetAnswer {
    /// The SHA-256 of the value in lower-case hex.
    pub digest: String,
}

crate::operations::made_by_host!(StoreSetAnswer(digest: impl Into<String>));

/// A request to delete a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreDelete {
    /// The key.
    pub key: String,
    /// The owner.
    pub of: StoreOwner,
    /// The expected digest, as in [`StoreSet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// The result of deleting a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreDeleteAnswer {
    /// Whether the value existed.
    pub deleted: bool,
}

crate::operations::made_by_host!(StoreDeleteAnswer(deleted: bool));

/// A request to list keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreList {
    /// The prefix of the keys. If empty, all keys.
    pub prefix: String,
    /// The owner.
    pub of: StoreOwner,
}

/// Keys, sorted by their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreKeys {
    /// The keys.
    pub keys: Vec<StoredKey>,
}

crate::operations::made_by_host!(StoreKeys(keys: Vec<StoredKey>));

/// A key with the size of its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoredKey {
    /// The key.
    pub key: String,
    /// The size of the value, in bytes.
    pub bytes: u64,
}

crate::operations::made_by_host!(StoredKey(key: impl Into<String>, bytes: u64));

/// A request for a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreFolder {
    /// The owner.
    pub of: StoreOwner,
}
