//! The folders of one user: the locations of configuration, data and caches.
//!
//! Nothing is created here. The code that writes first creates the folder.

use std::path::{Path, PathBuf};

/// The locations of the user's files. They are missing if the system has no home folder for the
/// user. Only access to a missing one is an error, so that commands that need none still work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFolders {
    places: Option<UserFolderPaths>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct UserFolderPaths {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
    /// Only on systems that have such a folder. It is removed when the user logs out.
    runtime: Option<PathBuf>,
}

/// A folder is needed, but the system has no home folder for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot find the user\'s folders: the system has no home folder for this user")]
pub struct NoHomeFolder;

impl UserFolders {
    /// Returns the folders of this user: XDG on Linux (its variables are honoured), the system's
    /// locations elsewhere.
    pub fn for_user() -> Self {
        let places = directories::ProjectDirs::from("", "", "jaato").map(|dirs| UserFolderPaths {
            config: dirs.config_dir().to_owned(),
            data: dirs.data_dir().to_owned(),
            cache: dirs.cache_dir().to_owned(),
            runtime: dirs.runtime_dir().map(Path::to_owned),
        });
        Self { places }
    }

    /// Returns folders below one root, for tests and for embedders that keep everything together.
    pub fn under_root(root: &Path) -> Self {
        let places = UserFolderPaths {
            config: root.join("config"),
            data: root.join("data"),
            cache: root.join("cache"),
            runtime: Some(root.join("runtime")),
        };
        Self { places: Some(places) }
    }

    /// Returns no folders, as on a system without a home folder.
    pub fn without_home() -> Self {
        Self { places: None }
    }

    /// Contains `config.toml`.
    pub fn config_folder(&self) -> Result<&Path, NoHomeFolder> {
        self.folder_paths().map(|places| places.config.as_path())
    }

    /// Contains `plugins/`, `plugin-data/`, `plugin-secrets/`, `trusted/`, `trust.json`,
    /// `grants.json`, `ledger.jsonl`, `sessions/` and `chat-history`.
    pub fn data_folder(&self) -> Result<&Path, NoHomeFolder> {
        self.folder_paths().map(|places| places.data.as_path())
    }

    /// Contains files that can be recreated: `models/`, `descriptions.json`.
    pub fn cache_folder(&self) -> Result<&Path, NoHomeFolder> {
        self.folder_paths().map(|places| places.cache.as_path())
    }

    /// Contains sockets of running processes. `None` if the system has no such folder.
    pub fn runtime_folder(&self) -> Option<&Path> {
        self.places.as_ref()?.runtime.as_deref()
    }

    /// The user's configuration file.
    pub fn config_file(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.config_folder()?.join("config.toml"))
    }

    /// The user's own plugins.
    pub fn plugins_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("plugins"))
    }

    /// Plugins' own data.
    pub fn plugin_data_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("plugin-data"))
    }

    /// Plugins' secrets, if the system has no tool for secrets.
    pub fn plugin_secrets_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("plugin-secrets"))
    }

    /// Private copies of the plugin files that the user trusts.
    pub fn trusted_plugins_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("trusted"))
    }

    /// Private copies of the plugin files of trusted workspaces.
    pub fn workspace_plugins_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.cache_folder()?.join("workspace-plugins"))
    }

    /// The ledger, unless the user configures another file.
    pub fn ledger_file(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("ledger.jsonl"))
    }

    /// Saved sessions.
    pub fn sessions_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("sessions"))
    }

    /// The lines that the user typed in conversations.
    pub fn chat_history_file(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.data_folder()?.join("chat-history"))
    }

    /// Weights of local models.
    pub fn models_folder(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.cache_folder()?.join("models"))
    }

    /// Cached descriptions of plugins.
    pub fn description_cache_file(&self) -> Result<PathBuf, NoHomeFolder> {
        Ok(self.cache_folder()?.join("descriptions.json"))
    }

    /// Lists every folder that only jaato writes to.
    pub fn all_folders(&self) -> Vec<&Path> {
        let Some(places) = &self.places else { return Vec::new() };
        let own = [&places.config, &places.data, &places.cache].into_iter();
        own.chain(&places.runtime).map(PathBuf::as_path).collect()
    }

    fn folder_paths(&self) -> Result<&UserFolderPaths, NoHomeFolder> {
        self.places.as_ref().ok_or(NoHomeFolder)
    }
}

impl NoHomeFolder {
    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> &'static str {
        "set `HOME` to a folder that you can write"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_folders_below_one_root_do_not_overlap() {
        let folders = UserFolders::under_root(Path::new("/r"));
        assert_eq!(folders.config_file(), Ok(PathBuf::from("/r/config/config.toml")));
        assert_eq!(folders.plugins_folder(), Ok(PathBuf::from("/r/data/plugins")));
        assert_eq!(folders.trusted_plugins_folder(), Ok(PathBuf::from("/r/data/trusted")));
        assert_eq!(folders.models_folder(), Ok(PathBuf::from("/r/cache/models")));
        assert_eq!(folders.runtime_folder(), Some(Path::new("/r/runtime")));
    }

    #[test]
    fn missing_home_is_an_error_only_when_a_folder_is_requested() {
        let folders = UserFolders::without_home();
        assert_eq!(folders.data_folder(), Err(NoHomeFolder));
        assert_eq!(folders.runtime_folder(), None);
        assert_eq!(folders.description_cache_file(), Err(NoHomeFolder));
    }
}
