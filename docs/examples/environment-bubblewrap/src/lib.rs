//! `environment-bubblewrap`: this machine to be read, the session's folders to be written, commands
//! in a sandbox.
//!
//! Shows an execution environment of one's own: files by the sdk's confined ones, a shell over a
//! program of the machine.
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
use jaato_plugin_sdk_environment::files::{Confined, Root, Settings, TemporarySettings};
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles, NoTerminals, settings};

use config::Config;
use shell::SandboxShell;

pub use sandbox::{Network, Sandbox};

/// The plugin's state: what the person has set, and the host for what outlives a call.
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

/// The environment, ready.
pub struct Ready {
    workspace: PathBuf,
    shell_timeout_ms: u64,
    files: HostFiles,
    shell: SandboxShell,
}

impl ExecutionEnvironment for Ready {
    type State = Bubblewrap;
    type Files = HostFiles;
    type Shell = SandboxShell;
    type Terminals = NoTerminals;

    fn spec() -> EnvironmentSpec {
        let title = "this machine, of which commands may write the workspace alone";
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
        let (workspace, files) = cx.blocking(move |_| open(&workspace)).await??;
        let folders = files.confined().allowed_folders().map(Path::to_owned).collect();
        let sandbox = Arc::new(config.sandbox(&workspace, folders)?);
        let shell = SandboxShell::new(home.clone(), files.clone(), sandbox);
        // Better now than at the first command of a model.
        shell.try_out().await?;
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
            details: json_object!({ "elsewhere": "commands may read, and write nothing" }),
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

/// Opens the folders in which files may be touched; the sandbox binds them by the names that they
/// really have.
fn open(workspace: &Path) -> Result<(PathBuf, HostFiles)> {
    let workspace = workspace.canonicalize().map_err(|error| {
        let text = format!("cannot use the workspace `{}`: {error}", workspace.display());
        Error::new(ErrorKind::Configuration, text)
    })?;
    let base = std::env::temp_dir().canonicalize().ok();
    let confined = Confined::open(&Settings {
        roots: vec![Root::local(&workspace)],
        default_folder: workspace.clone(),
        temporary: Some(TemporarySettings { base, shown: None }),
    })?;
    Ok((workspace, HostFiles::new(confined)))
}

export_plugin! { state: Bubblewrap, environment: Ready }
