//! Keys that a person gave to `jaato provider login`: in the system's secret tool where it keeps
//! them, else in a file of their own that nobody else may read.
//!
//! A file for each provider lies in `keys/` of the data folder: `NAME.key` holds the key itself,
//! `NAME.secret-tool` only says that the tool has it. Looking for one asks no tool.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jaato_config::Folders;
use jaato_types::{Error, ErrorKind};

/// Most bytes of a key.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// What keeps secrets on most Linux desktops, and how it is asked. The name of a provider has no
/// sign that a shell could take for one of its own.
const TOOL: &str = "secret-tool";

/// Where keys lie.
#[derive(Debug, Clone, Default)]
pub struct StoredKeys {
    /// None where the system names no home.
    folder: Option<PathBuf>,
}

/// Where a key lies that was given to `login`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredIn {
    /// In a file, this one.
    File,
    /// In the system's secret tool.
    Tool,
}

/// A key that was found.
pub(crate) enum StoredKey {
    /// The key.
    Here(String),
    /// A line of the shell that prints it.
    Printed(String),
}

impl StoredKeys {
    /// Looks nowhere yet.
    pub fn new(folders: &Folders) -> Self {
        Self { folder: folders.data().ok().map(|data| data.join("keys")) }
    }

    /// Finds the key of a provider.
    ///
    /// # Errors
    /// `configuration` for a file that others could have written, or that cannot be read.
    pub(crate) fn find(&self, provider: &str) -> Result<Option<StoredKey>, Error> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let read = |form: StoredIn| {
            let path = path(folder, provider, form);
            jaato_places::read(&path, KEY_BYTES_MAX).map_err(|error| {
                let text = format!("the key of `{provider}` cannot be read: {error}");
                Error::new(ErrorKind::Configuration, text)
            })
        };
        if let Some(bytes) = read(StoredIn::File)? {
            let key = String::from_utf8(bytes).unwrap_or_default().trim().to_owned();
            return Ok((!key.is_empty()).then_some(StoredKey::Here(key)));
        }
        let line =
            || StoredKey::Printed(format!("{TOOL} lookup service jaato provider {provider}"));
        Ok(read(StoredIn::Tool)?.map(|_| line()))
    }

    /// Keeps a key. Blocks.
    ///
    /// # Errors
    /// `configuration` where it cannot be kept.
    pub fn store(&self, provider: &str, key: &str) -> Result<StoredIn, Error> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::Configuration, "the system names no home to keep a key in")
        })?;
        let form = if kept_by_tool(provider, key) { StoredIn::Tool } else { StoredIn::File };
        let text = if form == StoredIn::File { key } else { "" };
        let write = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            let mut file = jaato_places::open(&path(folder, provider, form), &mut options)
                .map_err(|error| error.to_string())?;
            file.write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .map_err(|it| it.to_string())
        };
        write().map_err(|error| {
            let text = format!("the key of `{provider}` cannot be kept: {error}");
            Error::new(ErrorKind::Configuration, text)
        })?;
        let other = if form == StoredIn::File { StoredIn::Tool } else { StoredIn::File };
        // Usually there is none.
        let _ = fs::remove_file(path(folder, provider, other));
        Ok(form)
    }

    /// Forgets a key; false where there was none. Blocks.
    ///
    /// # Errors
    /// `configuration` where it cannot be taken away.
    pub fn remove(&self, provider: &str) -> Result<bool, Error> {
        let Some(folder) = &self.folder else { return Ok(false) };
        let mut was_there = false;
        for form in [StoredIn::File, StoredIn::Tool] {
            match fs::remove_file(path(folder, provider, form)) {
                Ok(()) => was_there = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let text = format!("the key of `{provider}` cannot be taken away: {error}");
                    return Err(Error::new(ErrorKind::Configuration, text));
                }
            }
            if form == StoredIn::Tool {
                let words = ["clear", "service", "jaato", "provider", provider];
                // What the tool does not have is gone as well.
                let _ = std::process::Command::new(TOOL).args(words).status();
            }
        }
        Ok(was_there)
    }
}

fn path(folder: &Path, provider: &str, form: StoredIn) -> PathBuf {
    let end = if form == StoredIn::File { "key" } else { TOOL };
    folder.join(format!("{provider}.{end}"))
}

/// Lets the system's secret tool keep a key, and looks whether it did: on a machine without a
/// desktop there is often the program and nothing that it could ask.
fn kept_by_tool(provider: &str, key: &str) -> bool {
    use std::process::{Command, Stdio};
    let about = ["service", "jaato", "provider", provider];
    let label = format!("--label=jaato: {provider}");
    let mut store = Command::new(TOOL);
    store.args(["store", &label]).args(about);
    store.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = store.spawn() else { return false };
    let written = child.stdin.take().is_some_and(|mut pipe| pipe.write_all(key.as_bytes()).is_ok());
    let is_stored = child.wait().is_ok_and(|status| status.success()) && written;
    let printed = || Command::new(TOOL).arg("lookup").args(about).stderr(Stdio::null()).output();
    is_stored && printed().is_ok_and(|output| output.stdout == key.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn keys(folder: &Path) -> StoredKeys {
        StoredKeys { folder: Some(folder.join("keys")) }
    }

    fn found(keys: &StoredKeys) -> Option<String> {
        keys.find("work").unwrap().map(|key| match key {
            StoredKey::Here(text) | StoredKey::Printed(text) => text,
        })
    }

    #[test]
    fn a_key_is_kept_for_its_person_alone_until_it_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(folder.path());
        assert_eq!(found(&keys), None);
        fs::create_dir(folder.path().join("keys")).unwrap();
        fs::write(path(&folder.path().join("keys"), "work", StoredIn::File), "old\n").unwrap();
        fs::set_permissions(
            path(&folder.path().join("keys"), "work", StoredIn::File),
            fs::Permissions::from_mode(0o600),
        )
        .unwrap();
        assert_eq!(found(&keys).as_deref(), Some("old"));
        assert!(keys.remove("work").unwrap() && !keys.remove("work").unwrap());
        assert_eq!(found(&keys), None);
    }

    #[test]
    fn what_the_tool_has_is_asked_of_it_when_it_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(folder.path());
        fs::create_dir(folder.path().join("keys")).unwrap();
        fs::write(path(&folder.path().join("keys"), "work", StoredIn::Tool), "").unwrap();
        let line = "secret-tool lookup service jaato provider work";
        assert_eq!(found(&keys).as_deref(), Some(line));
    }

    #[test]
    fn a_file_that_others_may_write_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(folder.path());
        fs::create_dir(folder.path().join("keys")).unwrap();
        let file = path(&folder.path().join("keys"), "work", StoredIn::File);
        fs::write(&file, "planted").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let error = keys.find("work").map(drop).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(!error.message.contains("planted"), "{error}");
    }
}
