//! `environment-bubblewrap`: lets commands read this machine and write to the session's folders, in
//! a sandbox.
//!
//! Shows how to write an execution environment, with the sdk's confined files and a shell that uses
//! a program of the machine.
#![forbid(unsafe_code)]

mod config;
mod sandbox;
mod shell;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec,
};
use jaato_plugin_sdk::{schemars, serde_json};
use jaato_plugin_sdk_environment::files::{
    AllowedFolder, ConfinedFiles, ConfinedFilesSettings, TemporarySettings,
};
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles, NoTerminals, settings};

use config::Config;
use shell::SandboxShell;

pub use sandbox::{Network, Sandbox};

/// The plugin's state: the configuration, and the host for programs that outlive a call.
pub struct Bubblewrap {
    home: Home,
    config: Value,
}

impl State for Bubblewrap {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { home: home.clone(), config: home.config().await? })
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
    }
}

/// The environment, after its setup.
pub struct SandboxedEnvironment {
    workspace: PathBuf,
    shell_timeout_ms: u64,
    files: HostFiles,
    shell: SandboxShell,
}

impl ExecutionEnvironment for SandboxedEnvironment {
    type State = Bubblewrap;
    type Files = HostFiles;
    type Shell = SandboxShell;
    type Terminals = NoTerminals;

    fn spec() -> EnvironmentSpec {
        let title = "this machine; commands may write only to the workspace";
        EnvironmentSpec {
            name: "bubblewrap".into(),
            title: title.into(),
            ..EnvironmentSpec::default()
        }
    }

    async fn setup(cx: &Cx<Bubblewrap>, setup: EnvironmentSetup) -> Result<Self> {
        let Bubblewrap { home, config } = cx.state();
        let config: Config = settings(config, &setup.options)?;
        let workspace = PathBuf::from(setup.workspace);
        // Opening folders blocks, and this runs on the host's executor.
        let (workspace, files) = cx.blocking(move |_| open_workspace(&workspace)).await??;
        let folders = files.confined().allowed_folders().map(Path::to_owned).collect();
        let sandbox = Arc::new(config.sandbox(&workspace, folders)?);
        let shell = SandboxShell::new(home.clone(), files.clone(), sandbox);
        // Fail now instead of at the model's first command.
        shell.check_bwrap().await?;
        Ok(Self { workspace, shell_timeout_ms: config.shell_timeout_ms(), files, shell })
    }

    async fn teardown(&self, cx: &Cx<Bubblewrap>) -> Result<()> {
        let files = self.files.clone();
        cx.blocking(move |_| files.confined().close()).await?
    }

    async fn facts(&self, _cx: &Cx<Bubblewrap>) -> Result<EnvironmentFacts> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let allowed = |path: &Path| AllowedPath { path: shown(path), ..AllowedPath::default() };
        let confined = self.files.confined();
        Ok(EnvironmentFacts {
            name: Self::spec().name,
            is_host: true,
            working_directory: shown(&self.workspace),
            allowed_paths: confined.allowed_folders().map(allowed).collect(),
            temporary_directory: confined.temporary_folder().map(|(_, folder)| shown(folder)),
            shell_timeout_ms: self.shell_timeout_ms,
            confines_commands: true,
            details: json_object!({ "elsewhere": "commands may read, but not write" }),
            ..EnvironmentFacts::default()
        })
    }

    fn files(&self) -> Option<&HostFiles> {
        Some(&self.files)
    }

    fn shell(&self) -> Option<&SandboxShell> {
        Some(&self.shell)
    }
}

/// Opens the folders in which operations on files are allowed. The sandbox needs their real paths.
fn open_workspace(workspace: &Path) -> Result<(PathBuf, HostFiles)> {
    let workspace = workspace.canonicalize().map_err(|error| {
        let text = format!("cannot use the workspace `{}`: {error}", workspace.display());
        Error::new(ErrorKind::Configuration, text)
    })?;
    let base = std::env::temp_dir().canonicalize().ok();
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder::local(&workspace)],
        default_folder: workspace.clone(),
        temporary: Some(TemporarySettings { base, shown: None }),
    })?;
    Ok((workspace, HostFiles::new(confined)))
}

export_plugin! { state: Bubblewrap, environment: SandboxedEnvironment }
