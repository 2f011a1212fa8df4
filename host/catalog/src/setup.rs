//! Reads everything that a host needs before it starts: folders, trust, configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_config::trust::{TrustError, TrustStore, TrustedWorkspace, Workspace, WorkspaceState};
use jaato_config::{
    Config, ConfigError, ConfigSources, EnvironmentVariables, Overrides, UserFolders, load_config,
};
use jaato_loader::OpenedPlugin;
use jaato_process::{GuardianCommand, Supervisor};
use jaato_registry::NO_TOOLS;
use jaato_worker::SERVE_ARGUMENTS;

use crate::grants::GrantTable;

/// The argument by which the executable becomes the guardian.
pub const GUARDIAN_ARGUMENT: &str = "guardian";

/// The settings of the command line or an embedder.
#[derive(Debug, Clone, Default)]
pub struct SetupArguments {
    /// Values that override every other layer.
    pub overrides: Overrides,
    /// `--plugin-dir`.
    pub plugin_dirs: Vec<PathBuf>,
    /// `--tools`: offers only these, and all of them in each request.
    pub tools_only: Option<Vec<String>>,
    /// `--config`: replaces the user's file.
    pub config_file: Option<PathBuf>,
    /// `--env-file`: replaces the workspace's `.env`.
    pub env_file: Option<PathBuf>,
    /// The option that chooses the execution environment, such as `image`. The environment whose
    /// description lists it is chosen.
    pub environment_option: Option<String>,
    /// Where to work instead of in the process's working directory.
    pub folder: Option<PathBuf>,
    /// Plugins that are linked into the program. They come before all files and are trusted as the
    /// program is.
    pub linked: Vec<OpenedPlugin>,
    /// Whether plugin files are used too.
    pub files: PluginFiles,
}

/// Whether a host uses plugin files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PluginFiles {
    /// It searches all places.
    #[default]
    Searched,
    /// It has only the plugins that are linked into the program.
    Ignored,
}

/// The setup of a host.
#[derive(Debug)]
pub struct Setup {
    /// Plugin folders from the command line.
    pub plugin_dirs: Vec<PathBuf>,
    /// `--tools`.
    pub tools_only: Option<Vec<String>>,
    /// The option that chooses the execution environment instead of the configuration.
    pub environment_option: Option<String>,
    /// Plugins that are linked into the program.
    pub linked: Vec<OpenedPlugin>,
    /// Whether plugin files are used too.
    pub files: PluginFiles,
    /// The executable to start as guardian and workers. Shipped plugins are next to it.
    pub executable: PathBuf,
    /// The user's folders.
    pub folders: UserFolders,
    /// The variables of the process.
    pub variables: EnvironmentVariables,
    /// The workspace around the working directory.
    pub workspace: Workspace,
    /// Whether it is trusted.
    pub workspace_state: WorkspaceState,
    /// The merged configuration.
    pub config: Config,
    /// The grants of plugins.
    pub grants: Arc<GrantTable>,
}

/// Why a host cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(ConfigError),
    /// The trust record cannot be used.
    #[error("{0}")]
    Trust(TrustError),
    /// This process was itself started as another host's guardian or worker, but has not become
    /// one.
    #[error("jaato started this process as `{0}`, but it tries to start another host")]
    StartedAsChild(String),
    /// The system does not report the executable or the working directory.
    #[error("cannot find {0}: {1}")]
    System(&'static str, std::io::Error),
}

impl SetupError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint(),
            Self::Trust(error) => error.hint(),
            Self::StartedAsChild(_) => Some(
                "at the start of `main`, call `jaato_process::guardian_main`, `jaato_worker::serve_main` or \
                 `describe_main` according to the first argument, or set `Setup::executable` to an \
                 installed `jaato`"
                    .to_owned(),
            ),
            Self::System(..) => None,
        }
    }
}

impl Setup {
    /// Reads folders, trust and configuration of this process.
    ///
    /// # Errors
    /// The first problem. Reading changes nothing.
    pub fn from_process(arguments: SetupArguments) -> Result<Self, SetupError> {
        let executable =
            std::env::current_exe().map_err(|error| SetupError::System("the executable", error))?;
        let directory = match arguments.folder.clone() {
            Some(folder) => folder,
            None => std::env::current_dir()
                .map_err(|error| SetupError::System("the working directory", error))?,
        };
        Self::from_arguments(
            arguments,
            executable,
            UserFolders::for_user(),
            EnvironmentVariables::from_process(),
            &directory,
        )
    }

    /// Reads trust and configuration with everything else given, for embedders and tests.
    ///
    /// # Errors
    /// As [`Setup::from_process`].
    pub fn from_arguments(
        arguments: SetupArguments,
        executable: PathBuf,
        folders: UserFolders,
        variables: EnvironmentVariables,
        working_directory: &Path,
    ) -> Result<Self, SetupError> {
        if let Some(argument) = started_as_child() {
            return Err(SetupError::StartedAsChild(argument));
        }
        if working_directory.to_str().is_none() {
            let shown = working_directory.display();
            let error = std::io::Error::other(format!(
                "the name of the folder `{shown}` is not UTF-8: rename it, or work elsewhere"
            ));
            return Err(SetupError::System("the working directory", error));
        }
        let home = variables.get("HOME").map(Path::new);
        let workspace =
            Workspace::find_workspace(working_directory, home).map_err(SetupError::Trust)?;
        let workspace_state = state_of(&workspace, &folders).map_err(SetupError::Trust)?;
        let config = load_config(ConfigSources {
            folders: &folders,
            config_file: arguments.config_file.as_deref(),
            env_file: arguments.env_file.as_deref(),
            workspace: trusted_workspace_of(&workspace_state),
            variables: &variables,
            working_directory,
            overrides: arguments.overrides,
        })
        .map_err(SetupError::Config)?;
        Ok(Self {
            // Children would resolve a relative path in another folder, which another user may
            // control.
            plugin_dirs: arguments
                .plugin_dirs
                .into_iter()
                .map(|folder| working_directory.join(folder))
                .collect(),
            tools_only: arguments
                .tools_only
                .or_else(|| (!config.tools_offered).then(|| vec![NO_TOOLS.to_owned()])),
            environment_option: arguments.environment_option,
            linked: arguments.linked,
            files: arguments.files,
            executable,
            grants: Arc::new(GrantTable::in_folders(&folders)),
            folders,
            variables,
            workspace,
            workspace_state,
            config,
        })
    }

    /// Returns the workspace if it is currently trusted. [`Setup::workspace_state`] is its state
    /// when it was read.
    pub fn trusted_workspace_now(&self) -> Option<TrustedWorkspace> {
        let data = self.folders.data_folder().ok()?;
        match TrustStore::in_folder(data).workspace_state(&self.workspace) {
            Ok(WorkspaceState::Trusted(workspace)) => Some(workspace),
            Ok(
                WorkspaceState::Nothing
                | WorkspaceState::Untrusted { .. }
                | WorkspaceState::Changed { .. },
            )
            | Err(_) => None,
        }
    }

    /// Returns the workspace if it is trusted.
    pub fn trusted_workspace(&self) -> Option<&TrustedWorkspace> {
        trusted_workspace_of(&self.workspace_state)
    }
}

/// Creates the supervisor of a setup. Starts nothing yet.
pub fn supervisor(setup: &Setup) -> Supervisor {
    let (program, args) = (setup.executable.clone(), vec![GUARDIAN_ARGUMENT.into()]);
    Supervisor::new(GuardianCommand { program, args })
}

/// Returns the argument by which a host started this process as its guardian or worker. Those never
/// get here.
pub fn started_as_child() -> Option<String> {
    use std::os::unix::fs::FileTypeExt as _;
    let argument = std::env::args_os().nth(1)?.into_string().ok()?;
    // Also check for the descriptor that a host gives such a child, because an embedder may have
    // commands with these names.
    let place = match argument.as_str() {
        GUARDIAN_ARGUMENT => "/dev/fd/0",
        argument if SERVE_ARGUMENTS == [argument] => "/dev/fd/3",
        _ => return None,
    };
    let given = std::fs::metadata(place).ok()?.file_type();
    (given.is_socket() || given.is_fifo() && argument != GUARDIAN_ARGUMENT).then_some(argument)
}

/// Returns the state of a workspace. Without a home directory nothing can have been trusted. An
/// invalid record counts as empty, and discovery reports it.
fn state_of(workspace: &Workspace, folders: &UserFolders) -> Result<WorkspaceState, TrustError> {
    let Ok(data) = folders.data_folder() else { return Ok(workspace.untrusted_state()) };
    match TrustStore::in_folder(data).workspace_state(workspace) {
        Err(error) if error.is_record_error() => Ok(workspace.untrusted_state()),
        state => state,
    }
}

fn trusted_workspace_of(state: &WorkspaceState) -> Option<&TrustedWorkspace> {
    match state {
        WorkspaceState::Trusted(workspace) => Some(workspace),
        WorkspaceState::Nothing
        | WorkspaceState::Untrusted { .. }
        | WorkspaceState::Changed { .. } => None,
    }
}
