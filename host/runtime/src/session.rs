//! Starts sessions on a runtime, for embedders.

use std::sync::Arc;

use jaato_catalog::SessionOffer;
use jaato_session::{Cancel, EventSink, History, Session, SystemPrompt, WantedTools};
use jaato_types::tools_set::ToolSource;
use jaato_types::{Error, ToolSpec};

use crate::runtime::Runtime;
use crate::start_session::SessionOptions;

/// The tools of a session without a model, and why others are missing.
pub struct OfferedTools {
    /// The tools.
    pub offer: SessionOffer,
    /// Sources of tools that failed.
    pub missing: Vec<ToolSource>,
}

impl Runtime {
    /// Lists the tools, including those that plugins set while they run. Waits for tools with these
    /// names or, without names, for all of them.
    ///
    /// # Errors
    /// As [`Runtime::session_for_calls`].
    pub async fn offered_tools(
        &self,
        names: Vec<String>,
        events: Arc<dyn EventSink>,
        cancel: &Cancel,
    ) -> Result<OfferedTools, Error> {
        let mut session = self.session_for_calls(SessionOptions::unattended(events))?;
        session.renew_tools(cancel).await;
        session.await_tools(&WantedTools::named(names), cancel).await;
        let offer = self.host().plugins.plugins.offer(session.id());
        let missing = session.toolbox().missing_sources().to_vec();
        self.close_session(session.id()).await;
        Ok(OfferedTools { offer, missing })
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
    pub fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        self.session_from(History::new(), options)
    }

    /// Starts a session that continues a history, whichever model produced it.
    ///
    /// # Errors
    /// As [`Runtime::session`].
    pub fn session_from(
        &self,
        history: History,
        options: SessionOptions,
    ) -> Result<Session, Error> {
        self.host().session_from(history, options)
    }

    /// Starts a session without a model, in which a user calls tools.
    ///
    /// # Errors
    /// Only by a bug: an empty history is valid.
    pub fn session_for_calls(&self, options: SessionOptions) -> Result<Session, Error> {
        self.host().session_for_calls(options)
    }
}
