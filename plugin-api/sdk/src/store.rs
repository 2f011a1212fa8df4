//! What a plugin keeps of its own over sessions and updates: values under keys, and a folder.

use jaato_types::service::FolderAnswer;
use jaato_types::store::{
    self, ABSENT, StoreDelete, StoreDeleted, StoreFolder, StoreGet, StoreKeys, StoreList, StoreOf,
    StoreSet, StoreStored, StoreValue,
};
use jaato_types::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Reporter;

pub use jaato_types::store::StoredKey;

/// How often [`Store::update`] begins anew because another session was faster.
const UPDATES_MAX: usize = 32;

/// Values of the plugin's own, made by [`Reporter::store`]. They are the person's, unless
/// [`Store::of_workspace`] says otherwise, and survive sessions and updates of the plugin.
///
/// Any number of sessions and processes may use it at once: a value is there whole or not at all.
/// Keys have at most 200 bytes, values 4 MiB, and all of them 4096 keys and 64 MiB.
#[derive(Clone)]
pub struct Store {
    host: Reporter,
    of: StoreOf,
}

/// What must be in a store before it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected<'a> {
    /// Whatever there is.
    Anything,
    /// Nothing.
    Absent,
    /// The value with this digest.
    Digest(&'a str),
}

/// A value as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The value.
    pub bytes: Vec<u8>,
    /// Its SHA-256 in lower-case hex: [`Expected::Digest`] of what replaces it.
    pub digest: String,
}

impl Reporter {
    /// Reaches what the plugin keeps of its own, for the person.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn count(cx: &Cx) -> Result<Output> {
    /// let count = cx.store().update("count", |count: Option<u64>| count.unwrap_or(0) + 1).await?;
    /// Ok(Output::text(format!("called {count} times")))
    /// # }
    /// ```
    pub fn store(&self) -> Store {
        Store { host: self.clone(), of: StoreOf::Person }
    }
}

impl Store {
    /// Reaches what the plugin keeps for the workspace that the host was started in.
    #[must_use]
    pub fn of_workspace(self) -> Self {
        Self { of: StoreOf::Workspace, ..self }
    }

    /// Reads a value that was written as JSON; nothing where there is none.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `failed` when what is there is of another shape.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(stored) = self.get_bytes(key).await? else { return Ok(None) };
        read(key, &stored.bytes).map(Some)
    }

    /// Keeps a value as JSON, in place of what was there.
    ///
    /// # Errors
    /// As [`Store::set_bytes`].
    pub async fn set<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<()> {
        self.set_bytes(key, write(key, value)?, Expected::Anything).await?;
        Ok(())
    }

    /// Changes a value so that nothing is lost where others change it too: what another session
    /// wrote in between is read and changed again. Returns what was written. The change may
    /// run several times.
    ///
    /// # Errors
    /// As [`Store::get`] and [`Store::set`]; `conflict` when others are faster again and again.
    pub async fn update<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<T>) -> T + Send,
    ) -> Result<T> {
        for _ in 0..UPDATES_MAX {
            let stored = self.get_bytes(key).await?;
            let digest = stored.as_ref().map(|stored| stored.digest.clone());
            let before = stored.map(|stored| read(key, &stored.bytes)).transpose()?;
            let (after, bytes) = {
                let after = change(before);
                let bytes = write(key, &after)?;
                (after, bytes)
            };
            let expected = digest.as_deref().map_or(Expected::Absent, Expected::Digest);
            match self.set_bytes(key, bytes, expected).await {
                Ok(_) => return Ok(after),
                Err(error) if error.kind == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let text = format!("others changed `{key}` {UPDATES_MAX} times in between");
        Err(Error::new(ErrorKind::Conflict, text))
    }

    /// Reads a value and its digest; nothing where there is none.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `io` when the value is damaged.
    pub async fn get_bytes(&self, key: &str) -> Result<Option<Stored>> {
        let request = StoreGet { key: key.to_owned(), of: self.of, ..StoreGet::default() };
        let (answer, bytes): (StoreValue, _) =
            self.host.service_for_bytes(store::GET, &request, &[]).await?;
        let digest = answer.digest.unwrap_or_default();
        Ok(answer.found.then_some(Stored { bytes, digest }))
    }

    /// Keeps bytes where what is expected is there, and returns their digest.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `conflict` when something else is there; `limit_reached` when the
    /// value or the store would be too large; `io` when the disk is full. What was there stays.
    pub async fn set_bytes(
        &self,
        key: &str,
        value: impl AsRef<[u8]> + Send,
        expected: Expected<'_>,
    ) -> Result<String> {
        let (key, expected) = (key.to_owned(), expected.word());
        let request = StoreSet { key, of: self.of, expected, ..StoreSet::default() };
        let answer: StoreStored =
            self.host.service_with_bytes(store::SET, &request, value.as_ref()).await?;
        Ok(answer.digest)
    }

    /// Takes a value away; false where there was none.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn delete(&self, key: &str) -> Result<bool> {
        self.delete_expected(key, Expected::Anything).await
    }

    /// Takes a value away where it is the expected one.
    ///
    /// # Errors
    /// As [`Reporter::service`]; `conflict` when something else is there.
    pub async fn delete_expected(&self, key: &str, expected: Expected<'_>) -> Result<bool> {
        let (key, expected) = (key.to_owned(), expected.word());
        let request = StoreDelete { key, of: self.of, expected, ..StoreDelete::default() };
        let answer: StoreDeleted = self.host.service(store::DELETE, &request).await?;
        Ok(answer.deleted)
    }

    /// Lists the keys with a prefix, sorted; all of them for an empty one.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn list(&self, prefix: &str) -> Result<Vec<StoredKey>> {
        let request = StoreList { prefix: prefix.to_owned(), of: self.of, ..StoreList::default() };
        let answer: StoreKeys = self.host.service(store::LIST, &request).await?;
        Ok(answer.keys)
    }

    /// Asks for the path of a folder for files of the plugin's own, on the host's side.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn folder(&self) -> Result<String> {
        let request = StoreFolder { of: self.of, ..StoreFolder::default() };
        let answer: FolderAnswer = self.host.service(store::FOLDER, &request).await?;
        Ok(answer.path)
    }
}

impl Expected<'_> {
    /// The word that stands for it in a request.
    fn word(self) -> Option<String> {
        match self {
            Self::Anything => None,
            Self::Absent => Some(ABSENT.to_owned()),
            Self::Digest(digest) => Some(digest.to_owned()),
        }
    }
}

fn read<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::failed(format!("the stored value of `{key}` is of another shape: {error}"))
    })
}

fn write<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| {
        Error::failed(format!("the value of `{key}` cannot be written as JSON: {error}"))
    })
}
