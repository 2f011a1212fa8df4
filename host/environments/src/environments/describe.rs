//! What embedders and people reach of environments: lists, facts, sharing.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_config::DEFAULT_ENVIRONMENT;
use jaato_instances::{CallSite, EnvironmentAccess, Tell, misbehaved};
use jaato_loader::Served;
use jaato_registry::Status;
use jaato_session::Cancel;
use jaato_types::execution::{EnvironmentFacts, EnvironmentPart, EnvironmentSpec};
use jaato_types::files::{FileResolve, FilesResolved, RESOLVE, RESOLVE_PATHS_MAX, ResolvedPath};
use jaato_types::process::{
    OutputStream, ProcessEvent, ProcessExit, ProcessWrite, SPAWN, Spawn, Stdin, WRITE,
};
use jaato_types::{Delta, Error, ErrorKind, Frame, PluginName, SessionId};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::scope::{read, write};
use super::{
    Environments, LimitsOfAll, Member, Scope, SessionEnvironment, SharedEnvironment, choose,
    with_options_of,
};

/// An environment in the list.
#[derive(Debug, Clone)]
pub struct EnvironmentListed {
    /// What its plugin says of it.
    pub spec: EnvironmentSpec,
    /// The plugin.
    pub plugin: PluginName,
    /// Whether sessions use it where nothing else is said.
    pub is_default: bool,
}

impl Environments {
    /// Lists the execution environments that can be used, by name.
    pub fn list(&self) -> Vec<EnvironmentListed> {
        let registry = self.plugins.registry();
        let chosen = &self.plugins.setup.config.environment;
        let listed = registry.environments().filter_map(|name| {
            let entry = registry.environment(name)?;
            let spec = entry.description()?.environment.clone()?;
            let plugin = entry.candidate.manifest.name.clone();
            let is_default = spec.name == *chosen;
            (entry.status == Status::Active).then_some(EnvironmentListed {
                spec,
                plugin,
                is_default,
            })
        });
        listed.collect()
    }

    /// Reads options of an environment as a command line gives them, each a key and a text: by what
    /// the plugin says of its settings.
    ///
    /// # Errors
    /// `configuration` when no plugin offers the environment, for a setting that it has not, and
    /// for one that is given twice.
    pub fn options(
        &self,
        name: &str,
        given: &[(String, String)],
    ) -> Result<Map<String, Value>, Error> {
        with_options_of(self, name, |_, known| known.read(given))
    }

    /// Makes an environment that several sessions may share. Nothing is set up yet. The options win
    /// over its plugin's configuration.
    ///
    /// # Errors
    /// When no plugin offers it, or it has no such option.
    pub fn shared(
        &self,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<SharedEnvironment, Error> {
        let choice = choose(self, name, options)?;
        Ok(SharedEnvironment(Arc::new(Scope::new(choice))))
    }

    /// Runs a program in a session's environment, with nobody's leave but the caller's; `take` is
    /// given what it prints, `input` gives what it reads (none: nothing; an empty piece: the end).
    ///
    /// # Errors
    /// What keeps it from being run; `cancelled`.
    pub async fn execute(
        self: &Arc<Self>,
        session: &SessionId,
        spawn: &Spawn,
        input: Option<mpsc::Receiver<Vec<u8>>>,
        cancel: &Cancel,
        mut take: impl FnMut(OutputStream, &[u8]),
    ) -> Result<ProcessExit, Error> {
        let member = self.member(session)?;
        let quiet: Tell = Arc::new(|_| {});
        let nobody = PluginName::from("host");
        let call = |operation: &str, frame| {
            let host = Arc::clone(self);
            member.call(host, &nobody, operation, (frame, None), Arc::clone(&quiet))
        };
        let stdin = if input.is_some() { Stdin::Piped } else { Stdin::Closed };
        let spawned = call(SPAWN, write(&Spawn { stdin, ..spawn.clone() })?).await?;
        let Served::StreamWith(head, mut stream) = spawned else {
            let text = "the environment gave no stream for a program";
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
                // A program that reads no more need not be written to.
                if call(WRITE, frame).await.is_err() || is_last {
                    return;
                }
            }
        };
        let reading = async {
            loop {
                let piece = std::future::poll_fn(|cx| stream.poll_piece(cx)).await;
                let Some(piece) = piece.transpose()? else {
                    let text = "the environment did not tell how the program ended";
                    return Err(Error::new(ErrorKind::PluginMisbehaved, text));
                };
                let frame = Frame::parse(&piece).map_err(misbehaved)?;
                match frame.json().map_err(misbehaved)? {
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

    fn member(&self, session: &SessionId) -> Result<Arc<Member>, Error> {
        self.of(session).ok_or_else(|| {
            let text = "the session has no execution environment";
            Error::new(ErrorKind::NotFound, text)
        })
    }

    /// Tells what a session's environment is; sets it up. `notice` is told what goes on meanwhile.
    ///
    /// # Errors
    /// What keeps it from being ready.
    pub async fn facts(
        self: &Arc<Self>,
        session: &SessionId,
        notice: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<EnvironmentFacts, Error> {
        let member = self.member(session)?;
        let tell: Tell = Arc::new(move |delta| {
            if let Delta::Notice { text, .. } = delta {
                notice(text);
            }
        });
        member.scope().facts(self, &tell).await
    }

    /// Says what file operations of a session keep off that belong to no call.
    pub fn hold_to(&self, session: &SessionId, limits: LimitsOfAll) {
        if let Some(member) = self.of(session) {
            member.hold_to(limits);
        }
    }

    /// Asks a session's environment where paths lead, one answer for each; none if it has no files
    /// or cannot say. An environment that cannot be reached knows nothing of any path.
    pub async fn resolve(
        self: &Arc<Self>,
        session: &SessionId,
        paths: &[PathBuf],
    ) -> Option<Vec<Option<ResolvedPath>>> {
        let member = self.of(session)?;
        if !member.scope().has(self, EnvironmentPart::Files) {
            return None;
        }
        let quiet: Tell = Arc::new(|_| {});
        let asked = paths.iter().take(RESOLVE_PATHS_MAX);
        let paths = asked.map(|path| path.to_string_lossy().into_owned()).collect();
        let request = write(&FileResolve { paths, ..FileResolve::default() }).ok()?;
        match member.ask(self, RESOLVE, request, &quiet).await {
            Ok(answer) => read::<FilesResolved>(&answer).ok().map(|it| it.paths),
            Err(error) if error.kind == ErrorKind::UnknownOperation => None,
            Err(_) => Some(Vec::new()),
        }
    }

    /// Tells whether the plugin of a session's environment says that it has something; it need not
    /// be set up for that.
    pub fn has(&self, session: &SessionId, part: EnvironmentPart) -> bool {
        self.of(session).is_some_and(|member| member.scope().has(self, part))
    }

    /// Gives a session the environment that it shares, or one of its own as it is configured. That
    /// the default one is not there is told when a tool needs it.
    ///
    /// # Errors
    /// When no plugin offers what is configured, or it has no such option.
    pub fn enter(
        &self,
        session: &SessionId,
        shared: Option<&SharedEnvironment>,
        options: Map<String, Value>,
    ) -> Result<(), Error> {
        let scope = match shared {
            Some(shared) => Arc::clone(&shared.0),
            None => {
                let name = &self.plugins.setup.config.environment;
                let is_there = self.plugins.registry().environment(name).is_some();
                if !is_there && options.is_empty() && name == DEFAULT_ENVIRONMENT {
                    return Ok(());
                }
                Arc::new(Scope::new(choose(self, name, options)?))
            }
        };
        self.join(session, scope);
        Ok(())
    }

    /// Returns the environment of a session, for another one to share; none where it has none.
    pub fn shared_of(&self, session: &SessionId) -> Option<SharedEnvironment> {
        self.of(session).map(|member| SharedEnvironment(Arc::clone(member.scope())))
    }

    /// Says where a call for a session stands that is no tool's: a provider's, a gc's.
    pub fn site(self: &Arc<Self>, session: &SessionId) -> CallSite {
        let environment = SessionEnvironment::of(self, session);
        let environment = environment.map(|it| Arc::new(it) as Arc<dyn EnvironmentAccess>);
        CallSite { environment, ..CallSite::of(session.clone()) }
    }
}
