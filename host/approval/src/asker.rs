//! Answers permission prompts: a front end, a channel, an embedding program.

use futures_util::future::BoxFuture;
use jaato_types::SessionId;
use jaato_types::permission_prompt::{PermissionAnswer, PermissionPrompt};

/// Shows permission prompts to a user, or reports that no user can be asked.
pub trait PermissionAsker: Send + Sync {
    /// Returns the reason why no user can be asked (`standard input is not a terminal`). Returns
    /// `None` if a user can be asked.
    fn unavailable_reason(&self) -> Option<String>;

    /// Returns the channel's name for events and records: `terminal`.
    fn channel(&self) -> &str {
        "host"
    }

    /// Returns how long to wait for an answer if the session's setup does not say. `None` waits
    /// without a limit. A prompt without an answer in time denies the call.
    fn answer_timeout_ms(&self) -> Option<u64> {
        None
    }

    /// Shows a prompt, one at a time. Dropping the future withdraws it. An answer that the prompt
    /// does not [allow](PermissionPrompt::is_allowed) denies the call.
    fn ask_permission<'a>(
        &'a self,
        session: &'a SessionId,
        prompt: &'a PermissionPrompt,
    ) -> BoxFuture<'a, Result<PermissionAnswer, NoAnswer>>;
}

/// Why a prompt gets no answer although it was shown, for example because the terminal is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswer {
    /// The reason.
    pub reason: String,
}

impl NoAnswer {
    /// Creates it with this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
