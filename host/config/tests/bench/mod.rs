//! A user's folders and a workspace in a temporary folder, and a configuration made from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use expect_test::Expect;
use jaato_config::trust::{TrustStore, TrustedWorkspace, Workspace};
use jaato_config::{
    Config, ConfigError, ConfigSources, EnvironmentVariables, Overrides, UserFolders, load_config,
};

pub struct ConfigFixture {
    root: tempfile::TempDir,
    pub folders: UserFolders,
    pub config_file: Option<PathBuf>,
    pub env_file: Option<PathBuf>,
    pub overrides: Overrides,
    variables: BTreeMap<String, String>,
    trusted: Option<TrustedWorkspace>,
}

impl ConfigFixture {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folders = UserFolders::under_root(&root.path().canonicalize().unwrap().join("user"));
        fs::create_dir_all(folders.config_folder().unwrap()).unwrap();
        fs::create_dir_all(root.path().join("work/.git")).unwrap();
        Self {
            root,
            folders,
            config_file: None,
            env_file: None,
            overrides: Overrides::default(),
            variables: BTreeMap::new(),
            trusted: None,
        }
    }

    pub fn workspace_folder(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub fn write_user_config(&self, text: &str) {
        fs::write(self.folders.config_file().unwrap(), text).unwrap();
    }

    pub fn write_workspace_file(&self, name: &str, text: &str) {
        let path = self.workspace_folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub fn trust_workspace(&mut self) {
        let workspace = Workspace::find_workspace(&self.workspace_folder(), None).unwrap();
        let store = TrustStore::in_folder(self.folders.data_folder().unwrap());
        self.trusted = Some(store.trust_workspace(&workspace, SystemTime::UNIX_EPOCH).unwrap());
    }

    pub fn load_config(&self) -> Result<Config, ConfigError> {
        let variables: EnvironmentVariables =
            self.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        load_config(ConfigSources {
            folders: &self.folders,
            config_file: self.config_file.as_deref(),
            env_file: self.env_file.as_deref(),
            workspace: self.trusted.as_ref(),
            variables: &variables,
            working_directory: &self.workspace_folder(),
            overrides: self.overrides.clone(),
        })
    }

    /// Checks error and hint, as a user sees them.
    #[track_caller]
    pub fn check_refusal(&self, expected: Expect) {
        expected.assert_eq(&self.refusal());
    }

    /// Returns the error and hint of a configuration that is refused.
    pub fn refusal(&self) -> String {
        let error = self.load_config().unwrap_err();
        let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        self.relative_text(&format!("{error}{hint}"))
    }

    /// Replaces the temporary folder in a text with `ROOT`.
    pub fn relative_text(&self, text: &str) -> String {
        let root = self.root.path().canonicalize().unwrap();
        text.replace(&root.display().to_string(), "ROOT")
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }
}
