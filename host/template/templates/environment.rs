//! `template-name`: an execution environment over a folder of this machine.
#![forbid(unsafe_code)]
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessControl, ProcessEvents, Spawn};
use jaato_plugin_sdk::types::execution::{
    AllowedPath, EnvironmentFacts, EnvironmentSetup, EnvironmentSpec,
};
use jaato_plugin_sdk_environment::files::{
    AllowedFolder, ConfinedFiles, ConfinedFilesSettings, TemporarySettings,
};
use jaato_plugin_sdk_environment::{ExecutionEnvironment, HostFiles, NoTerminals, Shell};

/// How long a command may take that says nothing itself.
const SHELL_TIMEOUT_MS: u64 = 120_000;

/// The plugin's state: the host, for what outlives a call.
pub struct Plugin {
    home: Home,
}

impl State for Plugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        Ok(Self { home: home.clone() })
    }
}

/// The environment, ready: the sdk keeps its files to the folder, the host runs its commands.
pub struct Ready {
    folder: PathBuf,
    files: HostFiles,
    shell: FolderShell,
}

impl ExecutionEnvironment for Ready {
    type State = Plugin;
    type Files = HostFiles;
    type Shell = FolderShell;
    type Terminals = NoTerminals;

    fn spec() -> EnvironmentSpec {
        EnvironmentSpec {
            name: "template-short".to_owned(),
            title: "a folder of this machine".to_owned(),
            ..EnvironmentSpec::default()
        }
    }

    // Refuse settings that cannot work here, and not at a model's first command.
    async fn setup(cx: &Cx<Plugin>, setup: EnvironmentSetup) -> Result<Self> {
        let folder = PathBuf::from(setup.workspace);
        // Opening folders blocks, and this runs on a thread that all plugins share.
        let (folder, files) = cx.blocking(move |_| open(&folder)).await??;
        let (home, shown) = (cx.state().home.clone(), files.clone());
        let shell = FolderShell { home, files: shown };
        Ok(Self {
            folder,
            files,
            shell,
        })
    }

    async fn teardown(&self, cx: &Cx<Plugin>) -> Result<()> {
        let files = self.files.clone();
        cx.blocking(move |_| files.confined().close()).await?
    }

    async fn facts(&self, _cx: &Cx<Plugin>) -> Result<EnvironmentFacts> {
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let allowed = |path: &Path| AllowedPath {
            path: shown(path),
            ..AllowedPath::default()
        };
        let confined = self.files.confined();
        Ok(EnvironmentFacts {
            name: Self::spec().name,
            is_host: true,
            working_directory: shown(&self.folder),
            allowed_paths: confined.allowed_folders().map(allowed).collect(),
            temporary_directory: confined.temporary_folder().map(|(_, folder)| shown(folder)),
            shell_timeout_ms: SHELL_TIMEOUT_MS,
            ..EnvironmentFacts::default()
        })
    }

    fn files(&self) -> Option<&HostFiles> {
        Some(&self.files)
    }

    fn shell(&self) -> Option<&FolderShell> {
        Some(&self.shell)
    }
}

export_plugin! { state: Plugin, environment: Ready }

/// Opens the folder in which files may be touched, and a temporary one next to it.
fn open(folder: &Path) -> Result<(PathBuf, HostFiles)> {
    let folder = folder.canonicalize().map_err(|error| {
        let text = format!("cannot use the folder `{}`: {error}", folder.display());
        Error::new(ErrorKind::Configuration, text)
    })?;
    let confined = ConfinedFiles::open(&ConfinedFilesSettings {
        roots: vec![AllowedFolder::local(&folder)],
        default_folder: folder.clone(),
        temporary: Some(TemporarySettings::default()),
    })?;
    Ok((folder, HostFiles::new(confined)))
}

/// Commands of this machine, started in the folder.
pub struct FolderShell {
    home: Home,
    files: HostFiles,
}

impl FolderShell {
    async fn prepared(&self, host: &Reporter, spawn: Spawn) -> Result<Spawn> {
        let files = self.files.clone();
        host.blocking(move |_| {
            let asked = spawn.directory.clone().unwrap_or_default();
            let (folder, _) = files.confined().folder_paths(&asked)?;
            Ok(prepared(spawn, &folder))
        })
        .await?
    }
}

impl Shell for FolderShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    // The host runs the command itself, and its output goes straight to the tool.
    async fn prepare(&self, host: &Reporter, spawn: Spawn) -> Result<Option<Spawn>> {
        self.prepared(host, spawn).await.map(Some)
    }

    // The state that outlives its call.
    async fn start(
        &self,
        host: &Reporter,
        spawn: Spawn,
    ) -> Result<(ProcessControl, ProcessEvents)> {
        let spawn = self.prepared(host, spawn).await?;
        Ok(self.home.process(&spawn).await?.split())
    }
}

/// What the host is to run. Words before the command (`ssh HOST`, `bwrap …`) go here; then
/// look for the program first, so that a missing one is reported as `not_found`.
fn prepared(spawn: Spawn, folder: &Path) -> Spawn {
    let directory = Some(folder.to_string_lossy().into_owned());
    Spawn { directory, ..spawn }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_runs_unchanged_in_the_given_folder() {
        let asked = Spawn::program("ls").arg("-l");
        let run = prepared(asked.clone(), Path::new("/work"));
        assert_eq!(run.directory.as_deref(), Some("/work"));
        assert_eq!((run.program, run.args), (asked.program, asked.args));
    }
}
