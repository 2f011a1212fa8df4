//! The secrets of plugins: a folder for each plugin in the person's data folder, and what was
//! passed to each, so that no error repeats it.
//!
//! A plugin reaches those under its own name alone. Nothing here logs a value.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jaato_config::Folders;
use jaato_types::secret::{NAME_BYTES_MAX, SECRETS_MAX, VALUE_BYTES_MAX};
use jaato_types::{Error, ErrorKind, PluginName};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::blobs::blocking;
use crate::key_commands::KeyCommands;
use crate::scrub::Scrubber;
use crate::secret_place::{Found, SecretPlace, StoredIn, count_beside};

/// Longest wait for another process that changes the same plugin's secrets: it may ask a person.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The secrets of all plugins.
pub struct PluginSecrets {
    /// Absent where the system names no home.
    folder: Option<PathBuf>,
    commands: Arc<KeyCommands>,
    /// What was passed to each plugin, by the name of the secret: the last value of each.
    passed: Mutex<HashMap<PluginName, HashMap<String, Scrubber>>>,
    /// One change at a time: a tool may ask the person, and one question is enough.
    turn: tokio::sync::Mutex<()>,
}

impl PluginSecrets {
    /// Keeps them in the person's data folder. Makes no folder.
    pub fn new(folders: &Folders, commands: Arc<KeyCommands>) -> Self {
        let folder = folders.plugin_secrets().ok();
        Self { folder, commands, passed: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Reads a secret.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no name; `unavailable` when the system's tool does not give
    /// it; `io`.
    pub async fn get(&self, plugin: &PluginName, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let place = self.place(plugin, name)?;
        let look = place.clone();
        let found = blocking(move || {
            look.find(VALUE_BYTES_MAX as u64).map_err(|error| broken("read", &error.to_string()))
        });
        let value = match found.await? {
            None => return Ok(None),
            Some(Found::Here(value)) => value,
            Some(Found::InTool) => place.printed(&self.commands).await.ok_or_else(|| {
                let text = format!("the system's tool for secrets does not give `{name}`");
                Error::new(ErrorKind::Unavailable, text)
                    .with_hint("it may be locked; or take the secret away and keep it again")
            })?,
        };
        self.note(plugin, name, &value);
        Ok(Some(value))
    }

    /// Keeps a secret, in place of what was there.
    ///
    /// # Errors
    /// As [`PluginSecrets::get`]; `limit_reached` when it is too large or there are too many.
    pub async fn set(
        &self,
        plugin: &PluginName,
        name: &str,
        value: Vec<u8>,
    ) -> Result<StoredIn, Error> {
        let place = self.place(plugin, name)?;
        if value.len() > VALUE_BYTES_MAX {
            let text = format!(
                "a secret has at most {VALUE_BYTES_MAX} bytes, this one has {}",
                value.len()
            );
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.note(plugin, name, &value);
        let _turn = self.turn.lock().await;
        let look = place.clone();
        let _lock = blocking(move || {
            let lock = lock(&look)?;
            if count_beside(&look.folder, &look.stem) >= SECRETS_MAX {
                let text = format!("a plugin has at most {SECRETS_MAX} secrets");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            Ok(lock)
        })
        .await?;
        let stored = place.store(&self.commands, &value).await;
        stored.map_err(|error| broken("kept", &error.to_string()))
    }

    /// Forgets a secret; false where there was none.
    ///
    /// # Errors
    /// As [`PluginSecrets::get`].
    pub async fn delete(&self, plugin: &PluginName, name: &str) -> Result<bool, Error> {
        let place = self.place(plugin, name)?;
        let _turn = self.turn.lock().await;
        let look = place.clone();
        let _lock = blocking(move || lock(&look)).await?;
        let removed = place.remove(&self.commands).await;
        removed.map_err(|error| broken("taken away", &error.to_string()))
    }

    /// Takes the secrets that a plugin was given out of a text that it gives.
    pub fn without(&self, plugin: &str, text: String) -> String {
        let passed = self.passed.lock();
        let Some(scrubbers) = passed.get(plugin) else { return text };
        scrubbers.values().fold(text, |text, scrubber| scrubber.clean(&text))
    }

    /// Remembers a secret that a plugin was given, so that it can be taken out of texts.
    fn note(&self, plugin: &PluginName, name: &str, value: &[u8]) {
        // What is no text is in no error's text.
        let scrubber = std::str::from_utf8(value).ok().and_then(Scrubber::of);
        let Some(scrubber) = scrubber else { return };
        let mut passed = self.passed.lock();
        let its = passed.entry(plugin.clone()).or_default();
        if its.len() < SECRETS_MAX || its.contains_key(name) {
            its.insert(name.to_owned(), scrubber);
        }
    }

    fn place(&self, plugin: &PluginName, name: &str) -> Result<SecretPlace, Error> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            let text = format!(
                "the name of a secret has 1 to {NAME_BYTES_MAX} bytes and no control characters"
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let Some(folder) = &self.folder else {
            let text = "the system does not say where the user's home is, so no secret can be kept";
            return Err(Error::new(ErrorKind::Unavailable, text).with_hint("set HOME"));
        };
        Ok(SecretPlace {
            folder: folder.join(plugin.as_str()),
            // Any text is a name, also where the system takes two cases for one.
            stem: Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect(),
            kind: "plugin",
            name: format!("{plugin}/{name}"),
        })
    }
}

/// Keeps other processes from changing the secrets of the same plugin. Blocks.
fn lock(place: &SecretPlace) -> Result<std::fs::File, Error> {
    let held = jaato_places::lock(&place.folder.join("lock"), LOCK_WAIT);
    let held = held.map_err(|error| broken("used", &error.to_string()))?;
    held.ok_or_else(|| {
        let text = "another process changes the plugin's secrets";
        Error::new(ErrorKind::Unavailable, text)
    })
}

fn broken(doing: &str, why: &str) -> Error {
    Error::new(ErrorKind::Io, format!("the secret cannot be {doing}: {why}"))
}
