//! What commands and terminals need to know of the container that they run in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::models::ExecConfig;
use jaato_plugin_sdk::types::{Error, Result};

use crate::engine::Engine;
use crate::errors::{self, Doing};
use crate::guardian::Guardian;
use crate::link::Streams;
use crate::watch::Watch;

/// How long the engine may take to tell of the end of a container whose commands were all killed.
const DEATH_DELAY: Duration = Duration::from_millis(500);

/// The code of a command that was killed: 128 and the signal's number.
const KILLED: i64 = 137;

/// A container, as those who run something in it see it.
#[derive(Clone)]
pub struct Place {
    pub engine: Engine,
    /// The engine's id.
    pub id: Arc<str>,
    /// What the person calls it.
    pub name: Arc<str>,
    /// Who commands run as; nothing for the container's own user.
    pub user: Option<Arc<str>>,
    /// Variables of each command, before its own.
    pub variables: Arc<[(String, String)]>,
    /// Where a command runs that names no folder.
    pub folder: PathBuf,
    pub guardian: Guardian,
    pub watch: Watch,
}

/// What the engine is asked to run.
pub struct Request<'a> {
    pub words: Vec<String>,
    pub variables: &'a [(String, String)],
    pub has_input: bool,
    pub has_terminal: bool,
    pub user: Option<&'a str>,
}

impl Place {
    /// Makes a command of the engine without starting it; gives its id.
    pub async fn create(&self, request: Request<'_>) -> Result<String> {
        create(&self.engine, &self.id, request).await.map_err(|error| self.explain(&error))
    }

    /// Says what an error of the client means for a command here.
    pub fn explain(&self, error: &EngineError) -> Error {
        match (self.watch.how(), error) {
            (Some(how), _) => errors::gone(&self.name, &how),
            (None, error) => self.engine.explain(error, Doing::Command(&self.name)),
        }
    }

    /// The variables of a command: those of each one, then its own.
    pub fn variables_with(&self, own: &[(String, String)]) -> Vec<(String, String)> {
        self.variables.iter().chain(own).cloned().collect()
    }

    /// A command's folder in the container.
    pub fn folder_of(&self, folder: Option<&Path>) -> PathBuf {
        let folder = folder.map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder));
        crate::paths::plain(&folder)
    }

    /// The code of a command; nothing while it runs.
    ///
    /// # Errors
    /// Kind `unavailable` when the container or the engine went away under it.
    pub async fn code(&self, exec: &str) -> Result<Option<i64>> {
        match self.engine.docker().inspect_exec(exec).await {
            Ok(seen) if seen.running == Some(true) => Ok(None),
            Ok(seen) => match seen.exit_code {
                Some(code) if code != KILLED => Ok(Some(code)),
                // All is killed with a container.
                code => match self.watch.within(DEATH_DELAY).await {
                    Some(how) => Err(errors::gone(&self.name, &how)),
                    None => Ok(code),
                },
            },
            Err(error) => match self.watch.within(DEATH_DELAY).await {
                Some(how) => Err(errors::gone(&self.name, &how)),
                None => Err(self.lost(&error)),
            },
        }
    }

    /// The error of a command whose end cannot be learned.
    pub fn lost(&self, error: &EngineError) -> Error {
        match error {
            EngineError::RequestTimeoutError => errors::slow(self.engine.address()),
            _ => errors::restarted(self.engine.address(), &self.name),
        }
    }
}

/// Makes a command of the engine in a container.
pub async fn create(
    engine: &Engine,
    container: &str,
    request: Request<'_>,
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
    Ok(engine.docker().create_exec(container, config).await?.id)
}

/// Starts a command of the engine that has no terminal.
pub async fn start(engine: &Engine, exec: &str) -> Result<Streams, EngineError> {
    use bollard::exec::{StartExecOptions, StartExecResults};

    let options = StartExecOptions { detach: false, tty: false, output_capacity: Some(64 * 1024) };
    match engine.docker().start_exec(exec, Some(options)).await? {
        StartExecResults::Attached { output, input } => Ok(Streams { input, output }),
        StartExecResults::Detached => unreachable!("asked for without `detach`"),
    }
}
