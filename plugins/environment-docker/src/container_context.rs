//! The information that commands and terminals need about their container.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::models::ExecConfig;
use jaato_plugin_sdk::types::process::Signal;
use jaato_plugin_sdk::types::{Error, Result};

use crate::engine::DockerEngine;
use crate::errors::{self, EngineRequestKind};
use crate::guardian::{self, ContainerGuardian};
use crate::link::ExecStreams;
use crate::wait_observer::TerminalObserver;
use crate::watch::ContainerWatch;

/// The maximum time for the engine to report the end of a container after its commands were killed.
const DEATH_DELAY: Duration = Duration::from_millis(500);

/// The exit code of a killed command: 128 plus the signal's number.
const KILLED: i64 = 137;

/// The guardian's user. Root can send signals to the processes of any user.
const GUARDIAN_USER: &str = "0:0";

/// A container, from the view of its commands.
#[derive(Clone)]
pub struct ContainerContext {
    pub engine: DockerEngine,
    /// The engine's ID.
    pub id: Arc<str>,
    /// The name for the user.
    pub name: Arc<str>,
    /// The user that commands run as. `None` means the container's own user.
    pub user: Option<Arc<str>>,
    /// Variables of each command, before the command's own.
    pub variables: Arc<[(String, String)]>,
    /// The folder of commands that set none.
    pub folder: PathBuf,
    pub guardian: ContainerGuardian,
    pub onlooker: TerminalObserver,
    pub watch: ContainerWatch,
}

/// A program for the engine to run.
pub struct ExecRequest<'a> {
    pub words: Vec<String>,
    pub variables: &'a [(String, String)],
    pub has_input: bool,
    pub has_terminal: bool,
    pub user: Option<&'a str>,
}

impl ContainerContext {
    /// Creates a command of the engine without starting it. Returns its ID.
    pub async fn create_exec(&self, request: ExecRequest<'_>) -> Result<String> {
        create_exec(&self.engine, &self.id, request)
            .await
            .map_err(|error| self.explain_error(&error))
    }

    /// Converts an error of the client to an error for a command.
    pub fn explain_error(&self, error: &EngineError) -> Error {
        match (self.watch.end_reason(), error) {
            (Some(how), _) => errors::container_ended_error(&self.name, &how),
            (None, error) => {
                self.engine.explain_error(error, EngineRequestKind::Command(&self.name))
            }
        }
    }

    /// Returns the variables of a command: the common ones, then its own.
    pub fn variables_of_command(&self, own: &[(String, String)]) -> Vec<(String, String)> {
        self.variables.iter().chain(own).cloned().collect()
    }

    /// Returns a command's folder in the container.
    pub fn folder_of_command(&self, folder: Option<&Path>) -> PathBuf {
        let folder = folder.map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder));
        crate::paths::normalize_path(&folder)
    }

    /// Returns the exit code of a command, or `None` while it runs.
    ///
    /// # Errors
    /// `unavailable` if the container or the engine is gone.
    pub async fn command_exit_code(&self, exec: &str) -> Result<Option<i64>> {
        match self.engine.docker_client().inspect_exec(exec).await {
            Ok(seen) if seen.running == Some(true) => Ok(None),
            Ok(seen) => match seen.exit_code {
                Some(code) if code != KILLED => Ok(Some(code)),
                // A container's end kills all its commands, so check whether it has ended.
                code => match self.watch.end_reason_within(DEATH_DELAY).await {
                    Some(how) => Err(errors::container_ended_error(&self.name, &how)),
                    None => Ok(code),
                },
            },
            Err(error) => match self.watch.end_reason_within(DEATH_DELAY).await {
                Some(how) => Err(errors::container_ended_error(&self.name, &how)),
                None => Err(self.lost_command_error(&error)),
            },
        }
    }

    /// Sends a signal to a process group. Returns true if the group exists.
    ///
    /// # Errors
    /// `unavailable` if the container is gone.
    pub async fn signal_group(&self, group: u32, signal: Signal) -> Result<bool> {
        match self.guardian.signal_group(group, signal).await {
            Err(_) => self.replace_guardian().await?.signal_group(group, signal).await,
            done => done,
        }
    }

    /// Ends a command and all its processes.
    ///
    /// # Errors
    /// `unavailable` if the container is gone, and the command with it.
    pub async fn end_command(&self, session: u32) -> Result<()> {
        match self.guardian.end_command(session).await {
            Err(_) => self.replace_guardian().await?.end_command(session).await,
            done => done,
        }
    }

    /// Starts a guardian to replace one that a command has killed.
    async fn replace_guardian(&self) -> Result<ContainerGuardian> {
        match self.watch.end_reason() {
            Some(how) => Err(errors::container_ended_error(&self.name, &how)),
            None => start_guardian(&self.engine, &self.id, &self.name).await,
        }
    }

    /// Returns the error for a command whose end is unknown.
    pub fn lost_command_error(&self, error: &EngineError) -> Error {
        match error {
            EngineError::RequestTimeoutError => errors::engine_timeout_error(self.engine.address()),
            _ => errors::connection_lost_error(self.engine.address(), &self.name),
        }
    }
}

/// Creates a command of the engine in a container.
pub async fn create_exec(
    engine: &DockerEngine,
    container: &str,
    request: ExecRequest<'_>,
) -> Result<String, EngineError> {
    let config = ExecConfig {
        attach_stdin: Some(request.has_input),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(request.has_terminal),
        env: Some(
            request.variables.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        ),
        cmd: Some(request.words),
        user: request.user.map(str::to_owned),
        ..ExecConfig::default()
    };
    Ok(engine.docker_client().create_exec(container, config).await?.id)
}

/// Starts a command of the engine without a terminal.
pub async fn start_exec(engine: &DockerEngine, exec: &str) -> Result<ExecStreams, EngineError> {
    use bollard::exec::{StartExecOptions, StartExecResults};

    let options = StartExecOptions { detach: false, tty: false, output_capacity: Some(64 * 1024) };
    match engine.docker_client().start_exec(exec, Some(options)).await? {
        StartExecResults::Attached { output, input } => Ok(ExecStreams { input, output }),
        StartExecResults::Detached => unreachable!("requested without `detach`"),
    }
}

/// Starts the guardian's shell in a container that has another first process.
pub async fn start_guardian(
    engine: &DockerEngine,
    id: &str,
    name: &str,
) -> Result<ContainerGuardian> {
    let request = ExecRequest {
        words: ["sh", "-c", guardian::SCRIPT, "jaato"].map(str::to_owned).into(),
        variables: &[],
        has_input: true,
        has_terminal: false,
        user: Some(GUARDIAN_USER),
    };
    let told = |error| engine.explain_error(&error, EngineRequestKind::Container(name));
    let exec = create_exec(engine, id, request).await.map_err(told)?;
    Ok(ContainerGuardian::from_streams(start_exec(engine, &exec).await.map_err(told)?))
}
