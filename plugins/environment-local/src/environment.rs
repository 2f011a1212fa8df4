//! The environment plugin: its state, setup and description.

use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec,
};
use jaato_plugin_sdk::{schemars, serde_json};
use jaato_plugin_sdk_environment::files::{
    AllowedFolder, ConfinedFiles, ConfinedFilesSettings, TemporarySettings,
};
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles, settings};

use crate::config::LocalEnvironmentConfig;
use crate::shell::LocalShell;
use crate::terminal::LocalTerminals;

/// The plugin's state.
pub struct LocalPlugin {
    home: Home,
    config: Value,
}

impl State for LocalPlugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { home: home.clone(), config: home.config().await? })
    }

    fn describe(description: &mut Description) {
        description.config_schema =
            serde_json::to_value(schemars::schema_for!(LocalEnvironmentConfig)).ok();
    }
}

/// The environment after setup.
pub struct LocalEnvironment {
    default_path: PathBuf,
    shell_timeout_ms: u64,
    files: HostFiles,
    shell: LocalShell,
    terminals: LocalTerminals,
}

impl ExecutionEnvironment for LocalEnvironment {
    type State = LocalPlugin;
    type Files = HostFiles;
    type Shell = LocalShell;
    type Terminals = LocalTerminals;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec {
            name: "local".into(),
            title: "this machine".into(),
            ..EnvironmentSpec::default()
        }
    }

    async fn setup(cx: &Cx<LocalPlugin>, setup: EnvironmentSetup) -> Result<Self> {
        let LocalPlugin { home, config } = cx.state();
        let config: LocalEnvironmentConfig = settings(config, &setup.options)?;
        let workspace = Path::new(&setup.workspace);
        // A host that sends no root knows only the working directory.
        let root = if setup.root.is_empty() { workspace } else { Path::new(&setup.root) };
        let default_path = config.default_folder(workspace);
        let base = config.tmp_base_dir.as_ref().map(|base| workspace.join(base));
        let settings = ConfinedFilesSettings {
            roots: config
                .allowed_folders(workspace, root)
                .into_iter()
                .map(AllowedFolder::local)
                .collect(),
            default_folder: default_path.clone(),
            temporary: config.enable_tmp_dir.then_some(TemporarySettings { base, shown: None }),
        };
        let confined = cx.blocking(move |_| ConfinedFiles::open(&settings)).await??;
        Ok(Self {
            shell: LocalShell::new(home.clone(), default_path.clone()),
            terminals: LocalTerminals::new(home.clone(), default_path.clone()),
            files: HostFiles::new(confined),
            shell_timeout_ms: config.shell_timeout_ms(),
            default_path,
        })
    }

    async fn teardown(&self, cx: &Cx<LocalPlugin>) -> Result<()> {
        let files = self.files.clone();
        cx.blocking(move |_| files.confined().close()).await?
    }

    async fn facts(&self, _cx: &Cx<LocalPlugin>) -> Result<EnvironmentFacts> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let allowed = |path: &Path| AllowedPath { path: shown(path), read_only: false };
        let files = self.files.confined();
        Ok(EnvironmentFacts {
            name: Self::spec().name,
            is_host: true,
            working_directory: shown(&self.default_path),
            allowed_paths: files.allowed_folders().map(allowed).collect(),
            temporary_directory: files.temporary_folder().map(|(_, folder)| shown(folder)),
            shell_timeout_ms: self.shell_timeout_ms,
            ..EnvironmentFacts::default()
        })
    }

    fn files(&self) -> Option<&HostFiles> {
        Some(&self.files)
    }

    fn shell(&self) -> Option<&LocalShell> {
        Some(&self.shell)
    }

    fn terminals(&self) -> Option<&LocalTerminals> {
        Some(&self.terminals)
    }
}
