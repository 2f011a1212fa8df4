//! Starts sessions on a runtime, for embedders.

use std::sync::Arc;

use jaato_catalog::SessionOffer;
use jaato_session::{Cancel, EventSink, History, Session, SystemPrompt, WantedTools};
use jaato_types::tools_set::ToolSource;
use jaato_types::{Error, SessionId, ToolSpec};
use tokio::runtime::Handle;

use crate::host::RuntimeHost;
use crate::runtime::Runtime;
use crate::start_session::SessionOptions;

/// The tools of a session without a model, and why others are missing.
pub struct OfferedTools {
    /// The tools of plugins.
    pub offer: SessionOffer,
    /// The tools of the session, those of the program included.
    pub tools: Vec<ToolSpec>,
    /// Sources of tools that failed.
    pub missing: Vec<ToolSource>,
}

/// Closes a session when it is dropped.
#[must_use = "dropping it closes the session"]
pub struct SessionCloser {
    host: Arc<RuntimeHost>,
    session: SessionId,
    /// Where a dropped session is closed. `None` after [`SessionCloser::close`].
    runtime: Option<Handle>,
}

impl SessionCloser {
    /// Closes the session and waits for it.
    pub async fn close(mut self) {
        self.host.close_session(&self.session).await;
        self.runtime = None;
    }
}

impl Drop for SessionCloser {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (host, session) = (Arc::clone(&self.host), self.session.clone());
        drop(runtime.spawn(async move { host.close_session(&session).await }));
    }
}

impl Runtime {
    /// Lists the tools, including those that plugins set while they run. Waits for tools with these
    /// names or, without names, for all of them.
    ///
    /// # Errors
    /// As [`Runtime::open_session_for_calls`].
    pub async fn offered_tools(
        &self,
        names: Vec<String>,
        events: Arc<dyn EventSink>,
        cancel: &Cancel,
    ) -> Result<OfferedTools, Error> {
        let mut session = self.open_session_for_calls(SessionOptions::unattended(events))?;
        let closer = self.session_closer(session.id());
        session.renew_tools(cancel).await;
        session.await_tools(&WantedTools::only_named(names), cancel).await;
        let offer = self.host().plugins.plugins.session_offer(session.id());
        let toolbox = session.toolbox();
        let tools = toolbox.tools().map(|tool| tool.spec.clone()).collect();
        let missing = toolbox.missing_sources().to_vec();
        closer.close().await;
        Ok(OfferedTools { offer, tools, missing })
    }

    /// Returns a guard that closes a session if its owner's future is dropped before
    /// [`SessionCloser::close`] ends.
    pub fn session_closer(&self, session: &SessionId) -> SessionCloser {
        let runtime = Some(Handle::current());
        SessionCloser { host: Arc::clone(self.host()), session: session.clone(), runtime }
    }

    /// Builds the system prompt of a session whose requests have these tools.
    ///
    /// # Errors
    /// If one of its files cannot be used.
    pub fn system_prompt(
        &self,
        system: Option<String>,
        tools: &[ToolSpec],
    ) -> Result<SystemPrompt, Error> {
        let tools = tools.iter().map(|tool| tool.name.clone()).collect();
        self.host().system_prompt(system, &tools)
    }

    /// Starts a session with the configured model.
    ///
    /// # Errors
    /// If no plugin offers the model's provider, the provider does not honour a requested option,
    /// or the prompt cannot be built.
    pub fn open_session(&self, options: SessionOptions) -> Result<Session, Error> {
        self.open_session_from(History::new(), options)
    }

    /// Starts a session that continues a history, whichever model produced it.
    ///
    /// # Errors
    /// As [`Runtime::open_session`].
    pub fn open_session_from(
        &self,
        history: History,
        options: SessionOptions,
    ) -> Result<Session, Error> {
        self.host().open_session_from(history, options)
    }

    /// Starts a session without a model, in which a user calls tools.
    ///
    /// # Errors
    /// Only by a bug: an empty history is valid.
    pub fn open_session_for_calls(&self, options: SessionOptions) -> Result<Session, Error> {
        self.host().open_session_for_calls(options)
    }
}
