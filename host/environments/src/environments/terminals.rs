//! The environments' terminals, for the board that users look at.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jaato_session::Cancel;
use jaato_terminals::SessionTerminals;
use jaato_types::terminal::{
    STATE, TerminalRef, TerminalState, TerminalWrite, TerminalWriteAnswer, WRITE,
};
use jaato_types::{Error, ErrorKind, Frame, FrameError, PluginName, SessionId};
use serde::de::DeserializeOwned;

use super::Environments;
use super::scope::parse_answer;

/// The terminals of all sessions.
pub struct EnvironmentTerminals(Weak<Environments>);

impl EnvironmentTerminals {
    /// Creates a weak handle, because the environments own the board that owns this object.
    pub fn for_environments(environments: &Arc<Environments>) -> Self {
        Self(Arc::downgrade(environments))
    }

    /// Asks the environment of a session.
    fn ask_environment<T: DeserializeOwned>(
        &self,
        session: &SessionId,
        operation: &'static str,
        request: Result<Vec<u8>, FrameError>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (environments, session) = (self.0.upgrade(), session.clone());
        Box::pin(async move {
            let gone = || Error::new(ErrorKind::Unavailable, "the session has ended");
            let environments = environments.ok_or_else(gone)?;
            let member = environments.member_of(&session).ok_or_else(gone)?;
            let request =
                request.map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
            let scope = Arc::clone(member.scope());
            let answer = member.answer_operation(environments, operation, request).await?;
            parse_answer(scope.plugin(), &answer)
        })
    }
}

impl SessionTerminals for EnvironmentTerminals {
    fn write(
        &self,
        session: &SessionId,
        terminal: u64,
        bytes: Vec<u8>,
        longest: Duration,
    ) -> BoxFuture<'static, Result<usize, Error>> {
        let wait_ms = u64::try_from(longest.as_millis()).ok();
        let request = Frame::write_with_bytes(&TerminalWrite { terminal, wait_ms }, &bytes);
        let answer = self.ask_environment(session, WRITE, request);
        Box::pin(async move {
            let written: TerminalWriteAnswer = answer.await?;
            Ok(usize::try_from(written.bytes).unwrap_or(bytes.len()))
        })
    }

    fn state(
        &self,
        session: &SessionId,
        terminal: u64,
    ) -> BoxFuture<'static, Result<TerminalState, Error>> {
        self.ask_environment(session, STATE, Frame::write(&TerminalRef { terminal }))
    }

    fn terminal_end(
        &self,
        session: &SessionId,
        plugin: &PluginName,
        terminal: u64,
    ) -> Option<Cancel> {
        self.0.upgrade()?.member_of(session)?.terminal_end(plugin, terminal)
    }
}
