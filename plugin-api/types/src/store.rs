//! The services `store.*`: values of a plugin's own that survive sessions and updates of its file.
//!
//! Keys are texts, values are bytes beside the request or the answer. What a plugin keeps for the
//! person is the same in all workspaces; what it keeps for a workspace is that of the process's.
//! No other plugin reaches it.

use serde::{Deserialize, Serialize};

use crate::service::FolderAnswer;

crate::operations::service_operations! { $ store_operations, None, answered;
    /// Reads a value.
    [reads] get GET "store.get": StoreGet => StoreValue + bytes;
    /// Writes the bytes as a value, whole or not at all.
    set SET "store.set": StoreSet + bytes => StoreStored;
    /// Deletes a value.
    delete DELETE "store.delete": StoreDelete => StoreDeleted;
    /// Lists keys, sorted.
    [reads] list LIST "store.list": StoreList => StoreKeys;
    /// Finds a folder for files of the plugin's own.
    folder FOLDER "store.folder": StoreFolder => FolderAnswer;
}

/// Most bytes of a key.
pub const KEY_BYTES_MAX: usize = 200;
/// Most bytes of a value: with its key it fits into a frame. What is larger belongs in a file of
/// [`FOLDER`].
pub const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most values of a plugin, for the person and for each workspace.
pub const KEYS_MAX: usize = 4096;
/// Most bytes of all values of a plugin, for the person and for each workspace.
pub const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What stands in place of a digest where nothing is to be there: [`StoreSet::expected`].
pub const ABSENT: &str = "absent";

/// Whose values are meant. A word that is not known is refused: a value must not be kept where
/// nobody looks for it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum StoreOf {
    /// The person's, wherever they work.
    #[default]
    Person,
    /// Those of the workspace that the host was started in.
    Workspace,
}

/// Asks for a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreGet {
    /// The key.
    pub key: String,
    /// Whose.
    pub of: StoreOf,
}

/// A value, or that there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreValue {
    /// Whether there is a value.
    pub found: bool,
    /// The SHA-256 of the value in lower-case hex, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl StoreValue {
    /// Makes the answer for a value with this digest; the host does.
    pub fn found(digest: impl Into<String>) -> Self {
        Self { found: true, digest: Some(digest.into()) }
    }
}

/// Keeps a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreSet {
    /// The key: 1 to [`KEY_BYTES_MAX`] bytes of any text.
    pub key: String,
    /// Whose.
    pub of: StoreOf,
    /// The digest of the value that is replaced, or [`ABSENT`]. Where the store has another,
    /// nothing is written and the answer is `conflict`. Without it whatever is there is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// What was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreStored {
    /// The SHA-256 of the value in lower-case hex.
    pub digest: String,
}

crate::operations::made_by_host!(StoreStored(digest: impl Into<String>));

/// Takes a value away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreDelete {
    /// The key.
    pub key: String,
    /// Whose.
    pub of: StoreOf,
    /// As in [`StoreSet`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

/// What was taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreDeleted {
    /// Whether there was a value.
    pub deleted: bool,
}

crate::operations::made_by_host!(StoreDeleted(deleted: bool));

/// Lists keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreList {
    /// What the keys begin with; all of them where it is empty.
    pub prefix: String,
    /// Whose.
    pub of: StoreOf,
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

/// A key and how large its value is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoredKey {
    /// The key.
    pub key: String,
    /// Bytes of the value.
    pub bytes: u64,
}

crate::operations::made_by_host!(StoredKey(key: impl Into<String>, bytes: u64));

/// Asks for a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreFolder {
    /// Whose.
    pub of: StoreOf,
}
