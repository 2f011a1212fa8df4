//! What embedders and people reach of environments: lists, facts, sharing.

use std::sync::Arc;

use jaato_loader::Served;
use jaato_registry::Status;
use jaato_session::Cancel;
use jaato_types::execution::{EnvironmentFacts, EnvironmentSpec};
use jaato_types::process::{
    OutputStream, ProcessEvent, ProcessExit, ProcessWrite, SPAWN, Spawn, Stdin, WRITE,
};
use jaato_types::{Delta, Error, ErrorKind, Frame, PluginName, SessionId};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::scope::write;
use super::{Member, Scope, SharedEnvironment, choose};
use crate::runtime::{Runtime, description};
use crate::services::Tell;
use crate::tools::misbehaved;

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

impl Runtime {
    /// Lists the execution environments that can be used, by name.
    pub fn environments(&self) -> Vec<EnvironmentListed> {
        let registry = self.registry();
        let chosen = &self.setup().config.environment;
        let listed = registry.environments().filter_map(|name| {
            let entry = registry.environment(name)?;
            let spec = description(entry)?.environment.clone()?;
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

    /// Makes an environment that several sessions may share. Nothing is set up yet.
    ///
    /// # Errors
    /// When no plugin offers it.
    pub fn environment(
        &self,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<SharedEnvironment, Error> {
        let choice = choose(self.host(), name, options)?;
        Ok(SharedEnvironment(Arc::new(Scope::new(choice))))
    }

    /// Runs a program in a session's environment, with nobody's leave but the caller's; `take` is
    /// given what it prints, `input` gives what it reads (none: nothing; an empty piece: the end).
    ///
    /// # Errors
    /// What keeps it from being run; `cancelled`.
    pub async fn execute(
        &self,
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
            let host = Arc::clone(self.host());
            member.call(host, &nobody, operation, frame, Arc::clone(&quiet))
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
                    ProcessEvent::Output { stream } => take(stream, frame.bytes),
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
        self.host().environments.of(session).ok_or_else(|| {
            let text = "the session has no execution environment";
            Error::new(ErrorKind::NotFound, text)
        })
    }

    /// Tells what a session's environment is; sets it up. `notice` is told what goes on meanwhile.
    ///
    /// # Errors
    /// What keeps it from being ready.
    pub async fn environment_of(
        &self,
        session: &SessionId,
        notice: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<EnvironmentFacts, Error> {
        let member = self.member(session)?;
        let tell: Tell = Arc::new(move |delta| {
            if let Delta::Notice { text } = delta {
                notice(text);
            }
        });
        member.scope().facts(self.host(), &tell).await
    }
}
