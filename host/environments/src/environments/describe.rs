//! Environments for embedders and users: lists, facts, sharing.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_config::DEFAULT_ENVIRONMENT;
use jaato_instances::{CallSite, DeltaCallback, EnvironmentAccess, invalid_answer_error};
use jaato_loader::EngineServiceAnswer;
use jaato_registry::PluginStatus;
use jaato_session::Cancel;
use jaato_types::execution::{EnvironmentFacts, EnvironmentPart, EnvironmentSpec};
use jaato_types::files::{
    FileResolve, FileResolveAnswer, RESOLVE, RESOLVE_PATHS_MAX, ResolvedPath,
};
use jaato_types::process::{
    OutputStream, ProcessEvent, ProcessExit, ProcessWrite, SPAWN, Spawn, Stdin, WRITE,
};
use jaato_types::{Delta, Error, ErrorKind, Frame, PluginName, SessionId};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::scope::serialize_request;
use super::{
    EnvironmentChoice, EnvironmentMember, EnvironmentScope, Environments, SessionEnvironment,
    SessionFileLimits, SharedEnvironment, choose_environment, with_environment_options,
};

/// An environment in the list.
#[derive(Debug, Clone)]
pub struct EnvironmentListing {
    /// The plugin's description of it.
    pub spec: EnvironmentSpec,
    /// The plugin.
    pub plugin: PluginName,
    /// Whether sessions use it by default.
    pub is_default: bool,
}

impl Environments {
    /// Lists the available execution environments by name.
    pub fn list(&self) -> Vec<EnvironmentListing> {
        let registry = self.plugins.registry();
        let chosen = &self.plugins.setup.config.environment;
        let listed = registry.environments().filter_map(|name| {
            let entry = registry.environment(name)?;
            let spec = entry.description()?.environment.clone()?;
            let plugin = entry.candidate.manifest.name.clone();
            let is_default = spec.name == *chosen;
            (entry.status == PluginStatus::Active).then_some(EnvironmentListing {
                spec,
                plugin,
                is_default,
            })
        });
        listed.collect()
    }

    /// Parses environment options from the command line, each a key and a text, according to the
    /// plugin's settings.
    ///
    /// # Errors
    /// `configuration` if no plugin offers the environment, or a setting is unknown or given twice.
    pub fn parse_options(
        &self,
        name: &str,
        given: &[(String, String)],
    ) -> Result<Map<String, Value>, Error> {
        with_environment_options(self, name, |_, known| known.parse_options(given))
    }

    /// Creates an environment that several sessions may share, without setting it up yet. The
    /// options override its plugin's configuration.
    ///
    /// # Errors
    /// If no plugin offers it, or it has no such option.
    pub fn create_shared(
        &self,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<SharedEnvironment, Error> {
        let choice = choose_environment(self, name, options)?;
        Ok(SharedEnvironment(Arc::new(EnvironmentScope::new(choice))))
    }

    /// Runs a program in a session's environment without a permission check. `take` receives its
    /// output and `input` provides its input: `None` means no input, an empty piece ends it.
    ///
    /// # Errors
    /// If the program cannot run or was cancelled.
    pub async fn run_command(
        self: &Arc<Self>,
        session: &SessionId,
        spawn: &Spawn,
        input: Option<mpsc::Receiver<Vec<u8>>>,
        cancel: &Cancel,
        mut take: impl FnMut(OutputStream, &[u8]),
    ) -> Result<ProcessExit, Error> {
        let member = self.require_member(session)?;
        let quiet: DeltaCallback = Arc::new(|_| {});
        let nobody = PluginName::from("host");
        let call = |operation: &str, frame| {
            let host = Arc::clone(self);
            member.call(host, &nobody, operation, (frame, None), Arc::clone(&quiet))
        };
        let stdin = if input.is_some() { Stdin::Piped } else { Stdin::Closed };
        let spawned = call(SPAWN, serialize_request(&Spawn { stdin, ..spawn.clone() })?).await?;
        let EngineServiceAnswer::StreamWith(head, mut stream) = spawned else {
            let text = "the environment returned no stream for a program";
            return Err(Error::new(ErrorKind::PluginMisbehaved, text));
        };
        let process = head.get("process").and_then(Value::as_u64).unwrap_or_default();
        let typing = async {
            let Some(mut input) = input else { return std::future::pending().await };
            loop {
                let piece = input.recv().await.unwrap_or_default();
                let request = ProcessWrite { process, close: piece.is_empty() };
                let is_last = request.close;
                let Ok(frame) = Frame::write_with_bytes(&request, &piece) else { return };
                // A program that no longer reads needs no more input.
                if call(WRITE, frame).await.is_err() || is_last {
                    return;
                }
            }
        };
        let reading = async {
            loop {
                let piece = std::future::poll_fn(|cx| stream.poll_piece(cx)).await;
                let Some(piece) = piece.transpose()? else {
                    let text = "the environment did not report how the program ended";
                    return Err(Error::new(ErrorKind::PluginMisbehaved, text));
                };
                let wrong = invalid_answer_error(member.scope().plugin());
                let frame = Frame::parse(&piece).map_err(&wrong)?;
                match frame.json().map_err(&wrong)? {
                    ProcessEvent::Output { stream, .. } => take(stream, frame.bytes),
                    ProcessEvent::Exited(exit) => return Ok(exit),
                    ProcessEvent::Unknown => {}
                }
            }
        };
        let typing = async {
            typing.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::cancelled()),
            exit = reading => exit,
            () = typing => unreachable!("it never ends"),
        }
    }

    /// Sends a request of the host's own about files to a session's environment, and returns the
    /// answer's frame.
    ///
    /// # Errors
    /// The environment's error, or `unknown_operation` if it answers with a stream.
    pub async fn send_request(
        self: &Arc<Self>,
        session: &SessionId,
        operation: &str,
        frame: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let (member, quiet) = (self.require_member(session)?, Arc::new(|_| {}) as DeltaCallback);
        let (host, asker) = (Arc::clone(self), PluginName::from("host"));
        match member.call(host, &asker, operation, (frame, None), quiet).await? {
            EngineServiceAnswer::Frame(answer) => Ok(answer),
            EngineServiceAnswer::Stream(_) | EngineServiceAnswer::StreamWith(..) => {
                let text = format!("`{operation}` returns a stream");
                Err(Error::new(ErrorKind::UnknownOperation, text))
            }
        }
    }

    fn require_member(&self, session: &SessionId) -> Result<Arc<EnvironmentMember>, Error> {
        self.member_of(session).ok_or_else(|| {
            let text = "the session has no execution environment";
            Error::new(ErrorKind::NotFound, text)
        })
    }

    /// Sets up a session's environment and returns its facts. `notice` receives progress messages.
    ///
    /// # Errors
    /// If the environment is not ready.
    pub async fn environment_facts(
        self: &Arc<Self>,
        session: &SessionId,
        notice: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<EnvironmentFacts, Error> {
        let member = self.require_member(session)?;
        let tell: DeltaCallback = Arc::new(move |delta| {
            if let Delta::Notice { text, .. } = delta {
                notice(text);
            }
        });
        member.scope().environment_facts(self, &tell).await
    }

    /// Sets the limits for file operations of a session that belong to no call.
    pub fn set_file_limits(&self, session: &SessionId, limits: SessionFileLimits) {
        if let Some(member) = self.member_of(session) {
            member.set_file_limits(limits);
        }
    }

    /// Asks a session's environment where paths lead. Returns one answer per path, or `None` if the
    /// environment has no files or cannot tell. If the environment cannot be reached, every path is
    /// unknown.
    pub async fn resolve_paths(
        self: &Arc<Self>,
        session: &SessionId,
        paths: &[PathBuf],
    ) -> Option<Vec<Option<ResolvedPath>>> {
        let member = self.member_of(session)?;
        if !member.scope().has_part(self, EnvironmentPart::Files) {
            return None;
        }
        let quiet: DeltaCallback = Arc::new(|_| {});
        let asked = paths.iter().take(RESOLVE_PATHS_MAX);
        let paths = asked.map(|path| path.to_string_lossy().into_owned()).collect();
        let request = serialize_request(&FileResolve { paths, ..FileResolve::default() }).ok()?;
        match member.ask_environment(self, RESOLVE, request, &quiet).await {
            Ok(answer) => Frame::read::<FileResolveAnswer>(&answer).ok().map(|it| it.paths),
            Err(error) if error.kind == ErrorKind::UnknownOperation => None,
            Err(_) => Some(Vec::new()),
        }
    }

    /// Returns true if the plugin of a session's environment declares this part, even if the
    /// environment is not set up.
    pub fn has_part(&self, session: &SessionId, part: EnvironmentPart) -> bool {
        self.member_of(session).is_some_and(|member| member.scope().has_part(self, part))
    }

    /// Gives a session a shared environment, or one of its own as configured, in this working
    /// directory or the runtime's. If the default environment is missing, the first tool that needs
    /// it reports that.
    ///
    /// # Errors
    /// If no plugin offers the configured environment, or it has no such option.
    pub fn enter_environment(
        &self,
        session: &SessionId,
        shared: Option<&SharedEnvironment>,
        options: Map<String, Value>,
        directory: Option<PathBuf>,
    ) -> Result<(), Error> {
        let scope = match shared {
            Some(shared) => Arc::clone(&shared.0),
            None => {
                let name = &self.plugins.setup.config.environment;
                let is_there = self.plugins.registry().environment(name).is_some();
                if !is_there && options.is_empty() && name == DEFAULT_ENVIRONMENT {
                    return Ok(());
                }
                let choice = choose_environment(self, name, options)?;
                Arc::new(EnvironmentScope::new(EnvironmentChoice { directory, ..choice }))
            }
        };
        self.add_member(session, scope);
        Ok(())
    }

    /// Returns a session's environment, if it has one, to share it with another session.
    pub fn shared_environment(&self, session: &SessionId) -> Option<SharedEnvironment> {
        self.member_of(session).map(|member| SharedEnvironment(Arc::clone(member.scope())))
    }

    /// Returns the site of a session's call that is not a tool call, for example of a provider or a
    /// gc.
    pub fn call_site(self: &Arc<Self>, session: &SessionId) -> CallSite {
        let environment = SessionEnvironment::for_session(self, session);
        let environment = environment.map(|it| Arc::new(it) as Arc<dyn EnvironmentAccess>);
        CallSite { environment, ..CallSite::for_session(session.clone()) }
    }
}
