//! What commands and terminals need to know of the container that they run in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::models::ExecConfig;
use jaato_plugin_sdk::types::process::Signal;
use jaato_plugin_sdk::types::{Error, Result};

use crate::engine::Engine;
use crate::errors::{self, Doing};
use crate::guardian::{self, Guardian};
use crate::link::Streams;
use crate::onlooker::Onlooker;
use crate::watch::Watch;

/// How long the engine may take to tell of the end of a container whose commands were all killed.
const DEATH_DELAY: Duration = Duration::from_millis(500);

/// The code of a command that was killed: 128 and the signal's number.
const KILLED: i64 = 137;

/// Sends signals to whatever a session starts, whoever that runs as.
const GUARDIAN_USER: &str = "0:0";

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
    pub onlooker: Onlooker,
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

    /// Sends a signal to a process group; tells whether there was one.
    ///
    /// # Errors
    /// Kind `unavailable` when the container is gone.
    pub async fn signal(&self, group: u32, signal: Signal) -> Result<bool> {
        match self.guardian.signal(group, signal).await {
            Err(_) => self.another_guardian().await?.signal(group, signal).await,
            done => done,
        }
    }

    /// Ends a command and all that belongs to it.
    ///
    /// # Errors
    /// Kind `unavailable` when the container is gone, and the command with it.
    pub async fn end(&self, session: u32) -> Result<()> {
        match self.guardian.end_now(session).await {
            Err(_) => self.another_guardian().await?.end_now(session).await,
            done => done,
        }
    }

    /// In place of one that a command has killed.
    async fn another_guardian(&self) -> Result<Guardian> {
        match self.watch.how() {
            Some(how) => Err(errors::gone(&self.name, &how)),
            None => guard(&self.engine, &self.id, &self.name).await,
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

/// Starts the guardian's shell in a container that has another first process.
pub async fn guard(engine: &Engine, id: &str, name: &str) -> Result<Guardian> {
    let request = Request {
        words: ["sh", "-c", guardian::SCRIPT, "jaato"].map(str::to_owned).into(),
        variables: &[],
        has_input: true,
        has_terminal: false,
        user: Some(GUARDIAN_USER),
    };
    let told = |error| engine.explain(&error, Doing::Container(name));
    let exec = create(engine, id, request).await.map_err(told)?;
    Ok(Guardian::over(start(engine, &exec).await.map_err(told)?))
}
