//! Keys that the user gave to `jaato provider login`: in the system's secret tool if possible,
//! otherwise in a file that no other user can read, in `keys/` of the data folder.

use std::path::{Path, PathBuf};

use jaato_config::UserFolders;
use jaato_types::{Error, ErrorKind};

use crate::key_commands::KeyCommands;
use crate::secret_place::{FoundSecret, SecretLocation, SecretStorageKind};

/// Maximum bytes of a key.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// The location of keys.
#[derive(Debug, Clone, Default)]
pub struct KeyStore {
    /// `None` if the system reports no home directory.
    folder: Option<PathBuf>,
}

/// A key that was found.
pub(crate) enum FoundKey {
    /// The key.
    Here(String),
    /// A shell command that prints it.
    Printed(String),
}

impl KeyStore {
    /// Sets the folder. Reads nothing.
    pub fn new(folders: &UserFolders) -> Self {
        Self { folder: folders.data_folder().ok().map(|data| data.join("keys")) }
    }

    /// Finds the key of a provider.
    ///
    /// # Errors
    /// `configuration` if another user could have written the file, or it cannot be read.
    pub(crate) fn find(&self, provider: &str) -> Result<Option<FoundKey>, Error> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let place = key_location(folder, provider);
        let found = place.find(KEY_BYTES_MAX).map_err(|error| {
            let text = format!("the key of `{provider}` cannot be read: {error}");
            Error::new(ErrorKind::Configuration, text)
        })?;
        Ok(match found {
            None => None,
            Some(FoundSecret::Here(bytes)) => {
                let key = String::from_utf8(bytes).unwrap_or_default().trim().to_owned();
                (!key.is_empty()).then_some(FoundKey::Here(key))
            }
            // A provider's name contains no characters that are special in a shell.
            Some(FoundSecret::InTool) => Some(FoundKey::Printed(place.lookup_command().join(" "))),
        })
    }

    /// Stores a key.
    ///
    /// # Errors
    /// `configuration` if it cannot be stored.
    pub async fn store_key(
        &self,
        commands: &KeyCommands,
        provider: &str,
        key: &str,
    ) -> Result<SecretStorageKind, Error> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::Configuration,
                "the user's home folder is unknown, so no key can be saved",
            )
        })?;
        let stored = key_location(folder, provider).store_secret(commands, key.as_bytes()).await;
        stored.map_err(|error| {
            let text = format!("the key of `{provider}` cannot be saved: {error}");
            Error::new(ErrorKind::Configuration, text)
        })
    }

    /// Removes a key. Returns false if there was none.
    ///
    /// # Errors
    /// `configuration` if it cannot be removed.
    pub async fn remove_key(&self, commands: &KeyCommands, provider: &str) -> Result<bool, Error> {
        let Some(folder) = &self.folder else { return Ok(false) };
        key_location(folder, provider).remove_secret(commands).await.map_err(|error| {
            let text = format!("the key of `{provider}` cannot be removed: {error}");
            Error::new(ErrorKind::Configuration, text)
        })
    }
}

fn key_location(folder: &Path, provider: &str) -> SecretLocation {
    SecretLocation {
        folder: folder.to_owned(),
        stem: provider.to_owned(),
        kind: "provider",
        name: provider.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use jaato_process::{GuardianCommand, Supervisor};

    use super::*;

    /// Finds no tool, because none is needed.
    fn no_key_commands() -> KeyCommands {
        let guardian = GuardianCommand { program: PathBuf::new(), args: Vec::new() };
        KeyCommands::new(Supervisor::new(guardian), &Default::default())
    }

    fn key_file_path(folder: &Path, provider: &str, form: SecretStorageKind) -> PathBuf {
        key_location(folder, provider).path(form)
    }

    fn key_store(folder: &Path) -> KeyStore {
        KeyStore { folder: Some(folder.join("keys")) }
    }

    fn find_stored_key(keys: &KeyStore) -> Option<String> {
        keys.find("work").unwrap().map(|key| match key {
            FoundKey::Here(text) | FoundKey::Printed(text) => text,
        })
    }

    #[tokio::test]
    async fn stored_key_is_found_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let keys = key_store(folder.path());
        assert_eq!(find_stored_key(&keys), None);
        fs::create_dir(folder.path().join("keys")).unwrap();
        fs::write(
            key_file_path(&folder.path().join("keys"), "work", SecretStorageKind::File),
            "old\n",
        )
        .unwrap();
        fs::set_permissions(
            key_file_path(&folder.path().join("keys"), "work", SecretStorageKind::File),
            fs::Permissions::from_mode(0o600),
        )
        .unwrap();
        assert_eq!(find_stored_key(&keys).as_deref(), Some("old"));
        let commands = no_key_commands();
        for was_there in [true, false] {
            assert_eq!(keys.remove_key(&commands, "work").await.unwrap(), was_there);
        }
        assert_eq!(find_stored_key(&keys), None);
    }

    #[test]
    fn key_in_the_secret_tool_is_read_by_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let keys = key_store(folder.path());
        fs::create_dir(folder.path().join("keys")).unwrap();
        fs::write(key_file_path(&folder.path().join("keys"), "work", SecretStorageKind::Tool), "")
            .unwrap();
        let line = "secret-tool lookup service jaato provider work";
        assert_eq!(find_stored_key(&keys).as_deref(), Some(line));
    }

    #[test]
    fn no_key_is_found_if_the_home_is_not_a_folder() {
        assert_eq!(find_stored_key(&key_store(Path::new("/dev/null/data"))), None);
    }

    #[test]
    fn key_file_writable_by_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let keys = key_store(folder.path());
        fs::create_dir(folder.path().join("keys")).unwrap();
        let file = key_file_path(&folder.path().join("keys"), "work", SecretStorageKind::File);
        fs::write(&file, "planted").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let error = keys.find("work").map(drop).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(!error.message.contains("planted"), "{error}");
    }
}
