//! Starts sessions on a runtime, for who embeds it.

use jaato_session::{History, Session, SystemPrompt};
use jaato_types::{Error, ToolSpec};

use crate::runtime::Runtime;
use crate::start_session::SessionOptions;

impl Runtime {
    /// Builds the system text of a session whose requests have these tools.
    ///
    /// # Errors
    /// When a file that belongs to it cannot be used.
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
    /// When no plugin offers the model's provider, it does not honour what is asked of it, or the
    /// prompt cannot be built.
    pub fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        self.session_from(History::new(), options)
    }

    /// Starts a session that goes on with what was said before, with whatever model that was.
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

    /// Starts a session without a model, in which a person calls tools.
    ///
    /// # Errors
    /// Only by a bug: an empty history is valid.
    pub fn session_for_calls(&self, options: SessionOptions) -> Result<Session, Error> {
        self.host().session_for_calls(options)
    }
}
