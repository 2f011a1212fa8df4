//! The error type that crosses the boundary and that users and models read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A result with the boundary's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, for code to branch on. New kinds may be added; an unknown one is read as
/// [`ErrorKind::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The arguments do not match the tool's schema, or make no sense.
    InvalidArguments,
    /// No tool has this name.
    UnknownTool,
    /// The tool exists, but the configuration or the command line disabled it.
    ToolDisabled,
    /// The user's rules refused the call.
    PermissionDenied,
    /// The other side does not know this operation or service.
    UnknownOperation,
    /// The requested item does not exist.
    NotFound,
    /// Something conflicts with the request: a name that is taken, a file that has changed since it
    /// was read.
    Conflict,
    /// A resource that the call needs is unavailable right now (no session, no model, no network).
    Unavailable,
    /// The call was cancelled.
    Cancelled,
    /// A deadline expired.
    Timeout,
    /// A limit was reached (frame, output, steps, memory).
    LimitReached,
    /// The request is larger than the model's context window.
    ContextOverflow,
    /// The configuration is invalid.
    Configuration,
    /// The plugin panicked. The message is the panic message.
    PluginPanicked,
    /// The plugin returned an invalid answer.
    PluginMisbehaved,
    /// The plugin's worker ended. The message says how.
    PluginCrashed,
    /// The plugin was disabled after it misbehaved too often.
    PluginDisabled,
    /// The host failed inside one of its services. The plugin is not at fault.
    HostBug,
    /// The model's provider failed or refused.
    Provider,
    /// Reading or writing failed.
    Io,
    /// The task itself failed. The message says how.
    Failed,
    /// A kind from a newer version.
    #[serde(other)]
    Other,
}

impl ErrorKind {
    /// Returns the name in JSON.
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

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// The request will fail again.
    #[default]
    Permanent,
    /// The request may succeed later (overload, a lost connection).
    Temporary,
    /// A class from a newer version. Treat it as permanent.
    #[serde(other)]
    Other,
}

/// An error with its kind, a message for users, and a hint about what to do.
///
/// The message is lower case and has no final period. It names both sides of a mismatch and the
/// path it concerns. It must never contain secrets, because it reaches models and logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    /// The kind, for code to branch on.
    pub kind: ErrorKind,
    /// The message, for users.
    pub message: String,
    /// What to do next, often a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether to try again.
    #[serde(default, skip_serializing_if = "is_permanent")]
    pub retry: Retry,
    /// How long to wait before trying again, in milliseconds, if the other side specified it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

fn is_permanent(retry: &Retry) -> bool {
    *retry == Retry::Permanent
}

impl Error {
    /// Creates a permanent error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            retry: Retry::Permanent,
            retry_after_ms: None,
        }
    }

    /// Creates an error of kind [`ErrorKind::Failed`]: the task itself did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Creates the error of a cancelled call.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the call was cancelled")
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the error as temporary.
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
    fn unknown_error_kind_and_retry_class_are_read_as_other() {
        let error: Error =
            serde_json::from_str(r#"{"kind":"moon","message":"m","retry":"maybe"}"#).unwrap();
        assert_eq!((error.kind, error.retry), (ErrorKind::Other, Retry::Other));
    }

    #[test]
    fn error_kind_is_serialized_as_its_name() {
        for kind in [ErrorKind::InvalidArguments, ErrorKind::HostBug, ErrorKind::Io] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
