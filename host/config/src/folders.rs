//! The folders of one user: where configuration, data and caches live.
//!
//! Nothing is created here; whoever writes first makes the folder.

use std::path::{Path, PathBuf};

/// Where the user's files lie. Each is absent when the system names no home, and asking for an
/// absent one is the error, so that a command that needs none still works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    places: Option<Places>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
    /// Only where the system has one, which ends with the login.
    runtime: Option<PathBuf>,
}

/// A folder was needed, and the system does not say where the user's home is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot tell where the user\'s files lie: the system names no home folder")]
pub struct NoHome;

impl Folders {
    /// The folders of this user: XDG on Linux (its variables are honoured), the system's places
    /// elsewhere.
    pub fn of_user() -> Self {
        let places = directories::ProjectDirs::from("", "", "jaato").map(|dirs| Places {
            config: dirs.config_dir().to_owned(),
            data: dirs.data_dir().to_owned(),
            cache: dirs.cache_dir().to_owned(),
            runtime: dirs.runtime_dir().map(Path::to_owned),
        });
        Self { places }
    }

    /// Folders below one root, for tests and for embedders that keep everything together.
    pub fn below(root: &Path) -> Self {
        let places = Places {
            config: root.join("config"),
            data: root.join("data"),
            cache: root.join("cache"),
            runtime: Some(root.join("runtime")),
        };
        Self { places: Some(places) }
    }

    /// No folders at all, as on a system that names no home.
    pub fn none() -> Self {
        Self { places: None }
    }

    /// Holds `config.toml`.
    pub fn config(&self) -> Result<&Path, NoHome> {
        self.places().map(|places| places.config.as_path())
    }

    /// Holds `plugins/`, `plugin-data/`, `plugin-secrets/`, `trusted/`, `trust.json`,
    /// `grants.json`, `ledger.jsonl` and `chat-history`.
    pub fn data(&self) -> Result<&Path, NoHome> {
        self.places().map(|places| places.data.as_path())
    }

    /// Holds what can be made again: `models/`, `descriptions.json`.
    pub fn cache(&self) -> Result<&Path, NoHome> {
        self.places().map(|places| places.cache.as_path())
    }

    /// Holds sockets of running processes; none where the system has no such folder.
    pub fn runtime(&self) -> Option<&Path> {
        self.places.as_ref()?.runtime.as_deref()
    }

    /// The user's configuration file.
    pub fn config_file(&self) -> Result<PathBuf, NoHome> {
        Ok(self.config()?.join("config.toml"))
    }

    /// The user's own plugins.
    pub fn plugins(&self) -> Result<PathBuf, NoHome> {
        Ok(self.data()?.join("plugins"))
    }

    /// What plugins keep of their own.
    pub fn plugin_data(&self) -> Result<PathBuf, NoHome> {
        Ok(self.data()?.join("plugin-data"))
    }

    /// Secrets of plugins, where the system has no tool that keeps them.
    pub fn plugin_secrets(&self) -> Result<PathBuf, NoHome> {
        Ok(self.data()?.join("plugin-secrets"))
    }

    /// Private copies of the plugin files that the user trusts.
    pub fn trusted(&self) -> Result<PathBuf, NoHome> {
        Ok(self.data()?.join("trusted"))
    }

    /// Private copies of the plugin files of trusted workspaces.
    pub fn workspace_plugins(&self) -> Result<PathBuf, NoHome> {
        Ok(self.cache()?.join("workspace-plugins"))
    }

    /// The ledger, where nobody names another file.
    pub fn ledger(&self) -> Result<PathBuf, NoHome> {
        Ok(self.data()?.join("ledger.jsonl"))
    }

    /// The lines that were typed in conversations.
    pub fn chat_history(&self) -> Result<PathBuf, NoHome> {
        Ok(self.data()?.join("chat-history"))
    }

    /// Weights of local models.
    pub fn models(&self) -> Result<PathBuf, NoHome> {
        Ok(self.cache()?.join("models"))
    }

    /// Cached descriptions of plugins.
    pub fn descriptions_file(&self) -> Result<PathBuf, NoHome> {
        Ok(self.cache()?.join("descriptions.json"))
    }

    /// Every folder that only jaato writes.
    pub fn all(&self) -> Vec<&Path> {
        let Some(places) = &self.places else { return Vec::new() };
        let own = [&places.config, &places.data, &places.cache].into_iter();
        own.chain(&places.runtime).map(PathBuf::as_path).collect()
    }

    fn places(&self) -> Result<&Places, NoHome> {
        self.places.as_ref().ok_or(NoHome)
    }
}

impl NoHome {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "set `HOME` to a folder that you can write"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_below_a_root_are_apart() {
        let folders = Folders::below(Path::new("/r"));
        assert_eq!(folders.config_file(), Ok(PathBuf::from("/r/config/config.toml")));
        assert_eq!(folders.plugins(), Ok(PathBuf::from("/r/data/plugins")));
        assert_eq!(folders.trusted(), Ok(PathBuf::from("/r/data/trusted")));
        assert_eq!(folders.models(), Ok(PathBuf::from("/r/cache/models")));
        assert_eq!(folders.runtime(), Some(Path::new("/r/runtime")));
    }

    #[test]
    fn without_a_home_only_asking_is_an_error() {
        let folders = Folders::none();
        assert_eq!(folders.data(), Err(NoHome));
        assert_eq!(folders.runtime(), None);
        assert_eq!(folders.descriptions_file(), Err(NoHome));
    }
}
