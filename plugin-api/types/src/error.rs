//! The error that crosses the boundary and reaches people and models.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Result with the boundary's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for code to branch on. Grows: a kind that a side does not know reads as
/// [`ErrorKind::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The arguments do not match the tool's schema, or make no sense.
    InvalidArguments,
    /// No tool of that name.
    UnknownTool,
    /// The tool exists but configuration or the command line switched it off.
    ToolDisabled,
    /// The user's rules refused the call.
    PermissionDenied,
    /// The other side does not know this operation or service.
    UnknownOperation,
    /// The thing asked for does not exist.
    NotFound,
    /// Something else is there: a name that is taken, a file that was changed meanwhile.
    Conflict,
    /// What the call needs is not there at this time (no session, no model, no network).
    Unavailable,
    /// The call was cancelled.
    Cancelled,
    /// A deadline passed.
    Timeout,
    /// A bound was reached (frame, output, steps, memory).
    LimitReached,
    /// The request is larger than the model's context window.
    ContextOverflow,
    /// The configuration is wrong.
    Configuration,
    /// The plugin panicked; the message is its last word.
    PluginPanicked,
    /// The plugin answered with something that is not an answer.
    PluginMisbehaved,
    /// The worker that ran the plugin has ended; the message tells how.
    PluginCrashed,
    /// The plugin was disabled after it misbehaved too often.
    PluginDisabled,
    /// The host failed inside a service that it lends: not the plugin's fault.
    HostBug,
    /// The model's provider failed or refused.
    Provider,
    /// Reading or writing failed.
    Io,
    /// The task itself failed; the message tells how.
    Failed,
    /// A kind that this side does not know.
    #[serde(other)]
    Other,
}

impl ErrorKind {
    /// Returns the name as it stands in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::UnknownTool => "unknown_tool",
            Self::ToolDisabled => "tool_disabled",
            Self::PermissionDenied => "permission_denied",
            Self::UnknownOperation => "unknown_operation",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::LimitReached => "limit_reached",
            Self::ContextOverflow => "context_overflow",
            Self::Configuration => "configuration",
            Self::PluginPanicked => "plugin_panicked",
            Self::PluginMisbehaved => "plugin_misbehaved",
            Self::PluginCrashed => "plugin_crashed",
            Self::PluginDisabled => "plugin_disabled",
            Self::HostBug => "host_bug",
            Self::Provider => "provider",
            Self::Io => "io",
            Self::Failed => "failed",
            Self::Other => "other",
        }
    }
}

/// Whether the same request may work later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// It will fail again.
    #[default]
    Permanent,
    /// It may work later (overload, a lost connection).
    Temporary,
    /// A class that this side does not know; treated as permanent.
    #[serde(other)]
    Other,
}

/// An error with its kind, a text for a person, and what to do about it.
///
/// The message is lower case, without a final period, names both sides of a mismatch and the path
/// it concerns. Messages reach models and logs: they never hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// For code to branch on.
    pub kind: ErrorKind,
    /// For a person.
    pub message: String,
    /// What to do, often a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether to try again.
    #[serde(default, skip_serializing_if = "is_permanent")]
    pub retry: Retry,
    /// How long to wait before that, in milliseconds, where the other side said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

fn is_permanent(retry: &Retry) -> bool {
    *retry == Retry::Permanent
}

impl Error {
    /// Makes a permanent error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            retry: Retry::Permanent,
            retry_after_ms: None,
        }
    }

    /// Makes an error of kind [`ErrorKind::Failed`]: the task itself did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Makes the error of a cancelled call.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the call was cancelled")
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the error as one that may pass.
    #[must_use]
    pub fn temporary(mut self) -> Self {
        self.retry = Retry::Temporary;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_from_the_future_reads_as_other() {
        let error: Error =
            serde_json::from_str(r#"{"kind":"moon","message":"m","retry":"maybe"}"#).unwrap();
        assert_eq!((error.kind, error.retry), (ErrorKind::Other, Retry::Other));
    }

    #[test]
    fn a_kind_is_written_as_it_is_named() {
        for kind in [ErrorKind::InvalidArguments, ErrorKind::HostBug, ErrorKind::Io] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
