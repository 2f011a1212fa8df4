//! The secrets of plugins: a folder per plugin in the user's data folder, and the secrets passed to
//! each plugin, so that no error repeats them.
//!
//! A plugin can access only the secrets under its own name. Nothing here logs a value.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jaato_config::UserFolders;
use jaato_types::secret::{NAME_BYTES_MAX, SECRETS_MAX, VALUE_BYTES_MAX};
use jaato_types::{Error, ErrorKind, PluginName};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::blobs::run_blocking;
use crate::key_commands::KeyCommands;
use crate::scrub::SecretScrubber;
use crate::secret_place::{FoundSecret, SecretLocation, SecretStorageKind, count_stored_secrets};

/// Longest wait for another process that changes the same plugin's secrets, because it may be
/// asking the user.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The secrets of all plugins.
pub struct PluginSecrets {
    /// `None` if the system reports no home directory.
    folder: Option<PathBuf>,
    commands: Arc<KeyCommands>,
    /// The last value of each secret passed to each plugin, by name.
    passed: Mutex<HashMap<PluginName, HashMap<String, SecretScrubber>>>,
    /// Allows one change at a time, because a tool may ask the user, and one question is enough.
    turn: tokio::sync::Mutex<()>,
}

impl PluginSecrets {
    /// Uses the user's data folder. Creates no folder.
    pub fn new(folders: &UserFolders, commands: Arc<KeyCommands>) -> Self {
        let folder = folders.plugin_secrets_folder().ok();
        Self { folder, commands, passed: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// Reads a secret.
    ///
    /// # Errors
    /// `invalid_arguments` if the name is invalid, `unavailable` if the system's tool does not
    /// return it, or `io`.
    pub async fn get(&self, plugin: &PluginName, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let place = self.secret_location(plugin, name)?;
        let look = place.clone();
        let found = run_blocking(move || {
            look.find(VALUE_BYTES_MAX as u64)
                .map_err(|error| secret_error("read", &error.to_string()))
        });
        let value = match found.await? {
            None => return Ok(None),
            Some(FoundSecret::Here(value)) => value,
            Some(FoundSecret::InTool) => {
                place.run_lookup(&self.commands).await.ok_or_else(|| {
                    let text = format!("the system's tool for secrets does not return `{name}`");
                    Error::new(ErrorKind::Unavailable, text).with_hint(
                        "it may be locked; otherwise remove the secret and store it again",
                    )
                })?
            }
        };
        self.note_secret(plugin, name, &value);
        Ok(Some(value))
    }

    /// Stores a secret and replaces an existing one.
    ///
    /// # Errors
    /// As [`PluginSecrets::get`]. `limit_reached` if it is too large or there are too many.
    pub async fn set(
        &self,
        plugin: &PluginName,
        name: &str,
        value: Vec<u8>,
    ) -> Result<SecretStorageKind, Error> {
        let place = self.secret_location(plugin, name)?;
        if value.len() > VALUE_BYTES_MAX {
            let text = format!(
                "a secret has at most {VALUE_BYTES_MAX} bytes, this one has {}",
                value.len()
            );
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.note_secret(plugin, name, &value);
        let _turn = self.turn.lock().await;
        let look = place.clone();
        let _lock = run_blocking(move || {
            let lock = lock_secret(&look)?;
            if count_stored_secrets(&look.folder, &look.stem) >= SECRETS_MAX {
                let text = format!("a plugin has at most {SECRETS_MAX} secrets");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            Ok(lock)
        })
        .await?;
        let stored = place.store_secret(&self.commands, &value).await;
        stored.map_err(|error| secret_error("kept", &error.to_string()))
    }

    /// Removes a secret. Returns false if there was none.
    ///
    /// # Errors
    /// As [`PluginSecrets::get`].
    pub async fn delete(&self, plugin: &PluginName, name: &str) -> Result<bool, Error> {
        let place = self.secret_location(plugin, name)?;
        let _turn = self.turn.lock().await;
        let look = place.clone();
        let _lock = run_blocking(move || lock_secret(&look)).await?;
        let removed = place.remove_secret(&self.commands).await;
        removed.map_err(|error| secret_error("taken away", &error.to_string()))
    }

    /// Removes the secrets passed to a plugin from a text of that plugin.
    pub fn without_secrets(&self, plugin: &str, text: String) -> String {
        let passed = self.passed.lock();
        let Some(scrubbers) = passed.get(plugin) else { return text };
        scrubbers.values().fold(text, |text, scrubber| scrubber.mask_secrets(&text))
    }

    /// Removes the secrets passed to all plugins from a text.
    pub fn without_any_secret(&self, text: String) -> String {
        self.scrubbers().iter().fold(text, |text, scrubber| scrubber.mask_secrets(&text))
    }

    /// Returns scrubbers for the secrets passed to all plugins.
    pub fn scrubbers(&self) -> Vec<SecretScrubber> {
        let passed = self.passed.lock();
        passed.values().flat_map(|of_plugin| of_plugin.values()).cloned().collect()
    }

    /// Records a secret passed to a plugin, so that it can be removed from texts.
    fn note_secret(&self, plugin: &PluginName, name: &str, value: &[u8]) {
        // A secret that is not text cannot appear in an error's text.
        let scrubber = std::str::from_utf8(value).ok().and_then(SecretScrubber::for_secret);
        let Some(scrubber) = scrubber else { return };
        let mut passed = self.passed.lock();
        let its = passed.entry(plugin.clone()).or_default();
        if its.len() < SECRETS_MAX || its.contains_key(name) {
            its.insert(name.to_owned(), scrubber);
        }
    }

    fn secret_location(&self, plugin: &PluginName, name: &str) -> Result<SecretLocation, Error> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            let text = format!(
                "the name of a secret has 1 to {NAME_BYTES_MAX} bytes and no control characters"
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let Some(folder) = &self.folder else {
            let text = "the user's home folder is unknown, so no secret can be saved";
            return Err(Error::new(ErrorKind::Unavailable, text).with_hint("set HOME"));
        };
        Ok(SecretLocation {
            folder: folder.join(plugin.as_str()),
            // Hashed, so that any text is a valid name, even on file systems that ignore case.
            stem: Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect(),
            kind: "plugin",
            name: format!("{plugin}/{name}"),
        })
    }
}

/// Prevents other processes from changing the same plugin's secrets. Blocks.
fn lock_secret(place: &SecretLocation) -> Result<std::fs::File, Error> {
    let held = jaato_places::lock_own_file(&place.folder.join("lock"), LOCK_WAIT);
    let held = held.map_err(|error| secret_error("used", &error.to_string()))?;
    held.ok_or_else(|| {
        let text = "another process is changing the plugin's secrets";
        Error::new(ErrorKind::Unavailable, text)
    })
}

fn secret_error(doing: &str, why: &str) -> Error {
    Error::new(ErrorKind::Io, format!("the secret cannot be {doing}: {why}"))
}
