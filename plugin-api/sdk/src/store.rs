//! A plugin's own data across sessions and updates: values under keys, and a folder.

use jaato_types::service::FolderAnswer;
use jaato_types::store::{
    self, ABSENT, StoreDelete, StoreDeleteAnswer, StoreFolder, StoreGet, StoreKeys, StoreList,
    StoreOwner, StoreSet, StoreSetAnswer, StoreValue,
};
use jaato_types::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Reporter;

pub use jaato_types::store::StoredKey;

/// The maximum number of attempts of [`Store::update`] when other sessions change the value.
const UPDATES_MAX: usize = 32;

/// The plugin's own values, made by [`Reporter::store`]. They belong to the user, unless
/// [`Store::of_workspace`] is used, and survive sessions and updates of the plugin.
///
/// Any number of sessions and processes may use it at the same time. Writes are atomic. Limits: 200
/// bytes for a key, 4 MiB for a value, 4096 keys and 64 MiB in total.
#[derive(Clone)]
pub struct Store {
    host: Reporter,
    of: StoreOwner,
}

/// The expected current value for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedValue<'a> {
    /// Any value, or none.
    Anything,
    /// No value.
    Absent,
    /// The value with this digest.
    Digest(&'a str),
}

/// A value as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredBytes {
    /// The value.
    pub bytes: Vec<u8>,
    /// The SHA-256 of the value in lower-case hex. Use it in [`ExpectedValue::Digest`] to replace
    /// the value.
    pub digest: String,
}

impl Reporter {
    /// Returns access to the plugin's own values for the user.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn count(cx: &Cx) -> Result<Output> {
    /// let count = cx.store().update("count", |count: Option<u64>| count.unwrap_or(0) + 1).await?;
    /// Ok(Output::text(format!("called {count} times")))
    /// # }
    /// ```
    pub fn store(&self) -> Store {
        Store { host: self.clone(), of: StoreOwner::Person }
    }
}

impl Store {
    /// Returns access to the plugin's own values for the workspace in which the host was started.
    #[must_use]
    pub fn of_workspace(self) -> Self {
        Self { of: StoreOwner::Workspace, ..self }
    }

    /// Reads a JSON value. Returns `None` if the key does not exist.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `failed` if the stored value has another type.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(stored) = self.get_bytes(key).await? else { return Ok(None) };
        read_value(key, &stored.bytes).map(Some)
    }

    /// Writes a value as JSON and replaces the previous one.
    ///
    /// # Errors
    /// As [`Store::set_bytes`].
    pub async fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<()> {
        self.set_bytes(key, write_value(key, value)?, ExpectedValue::Anything).await?;
        Ok(())
    }

    /// Changes a value without losing changes by other sessions. If another session wrote the value
    /// after it was read, it is read and changed again, so `change` may run several times. Returns
    /// the written value.
    ///
    /// # Errors
    /// As [`Store::get`] and [`Store::set`]; `conflict` if other sessions changed it first each
    /// time.
    pub async fn update<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<T>) -> T + Send,
    ) -> Result<T> {
        for _ in 0..UPDATES_MAX {
            let stored = self.get_bytes(key).await?;
            let digest = stored.as_ref().map(|stored| stored.digest.clone());
            let before = stored.map(|stored| read_value(key, &stored.bytes)).transpose()?;
            let (after, bytes) = {
                let after = change(before);
                let bytes = write_value(key, &after)?;
                (after, bytes)
            };
            let expected = digest.as_deref().map_or(ExpectedValue::Absent, ExpectedValue::Digest);
            match self.set_bytes(key, bytes, expected).await {
                Ok(_) => return Ok(after),
                Err(error) if error.kind == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let text = format!("other sessions changed `{key}` during {UPDATES_MAX} attempts");
        Err(Error::new(ErrorKind::Conflict, text))
    }

    /// Reads a value and its digest. Returns `None` if the key does not exist.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `io` if the value is damaged.
    pub async fn get_bytes(&self, key: &str) -> Result<Option<StoredBytes>> {
        let request = StoreGet { key: key.to_owned(), of: self.of, ..StoreGet::default() };
        let (answer, bytes): (StoreValue, _) =
            self.host.service_for_bytes(store::GET, &request, &[]).await?;
        let digest = answer.digest.unwrap_or_default();
        Ok(answer.found.then_some(StoredBytes { bytes, digest }))
    }

    /// Writes bytes if the current value is the expected one, and returns their digest.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `conflict` if the current value is not the expected one;
    /// `limit_reached` if the value or the store would be too large; `io` if the disk is full. The
    /// previous value is then kept.
    pub async fn set_bytes(
        &self,
        key: &str,
        value: impl AsRef<[u8]> + Send,
        expected: ExpectedValue<'_>,
    ) -> Result<String> {
        let (key, expected) = (key.to_owned(), expected.to_wire());
        let request = StoreSet { key, of: self.of, expected, ..StoreSet::default() };
        let answer: StoreSetAnswer =
            self.host.service_with_bytes(store::SET, &request, value.as_ref()).await?;
        Ok(answer.digest)
    }

    /// Deletes a value. Returns false if it did not exist.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn delete(&self, key: &str) -> Result<bool> {
        self.delete_expected(key, ExpectedValue::Anything).await
    }

    /// Deletes a value if it is the expected one.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `conflict` if the current value is not the expected one.
    pub async fn delete_expected(&self, key: &str, expected: ExpectedValue<'_>) -> Result<bool> {
        let (key, expected) = (key.to_owned(), expected.to_wire());
        let request = StoreDelete { key, of: self.of, expected, ..StoreDelete::default() };
        let answer: StoreDeleteAnswer = self.host.service(store::DELETE, &request).await?;
        Ok(answer.deleted)
    }

    /// Lists the keys with a prefix, sorted. An empty prefix lists all keys.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn list(&self, prefix: &str) -> Result<Vec<StoredKey>> {
        let request = StoreList { prefix: prefix.to_owned(), of: self.of, ..StoreList::default() };
        let answer: StoreKeys = self.host.service(store::LIST, &request).await?;
        Ok(answer.keys)
    }

    /// Returns the path of a folder on the host for the plugin's own files.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn folder(&self) -> Result<String> {
        let request = StoreFolder { of: self.of, ..StoreFolder::default() };
        let answer: FolderAnswer = self.host.service(store::FOLDER, &request).await?;
        Ok(answer.path)
    }
}

impl ExpectedValue<'_> {
    /// Returns the word for the expected value in a request.
    fn to_wire(self) -> Option<String> {
        match self {
            Self::Anything => None,
            Self::Absent => Some(ABSENT.to_owned()),
            Self::Digest(digest) => Some(digest.to_owned()),
        }
    }
}

fn read_value<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::failed(format!("the stored value of `{key}` has an unexpected format: {error}"))
    })
}

fn write_value<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| {
        Error::failed(format!("the value of `{key}` cannot be written as JSON: {error}"))
    })
}
