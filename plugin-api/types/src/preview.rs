//! Previews: the changes that a tool call would make, shown by the tool's own plugin in a
//! permission prompt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file_change::FileChange;
use crate::{Error, ToolName};

/// Asks a tool's own plugin for the changes of a call, before the permission prompt. Takes a
/// [`PreviewRequest`], returns a [`Preview`].
pub const PREVIEW: &str = "preview";

/// The value of [`Preview::typed_into`] for a Bourne-style shell that waits at its empty prompt, so
/// that the typed text is a command line.
pub const SHELL_PROMPT: &str = "shell_prompt";

/// A call of the plugin's own tool that needs a permission prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct PreviewRequest {
    /// The tool.
    pub tool: ToolName,
    /// The arguments, which match the tool's schema.
    pub arguments: Value,
}

impl PreviewRequest {
    /// Creates a request. Only the host and tests need this.
    pub fn new(tool: impl Into<ToolName>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments }
    }
}

/// The changes that a call would make. Only the user sees them, never the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preview {
    /// A description of the effect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The file changes as a unified diff, for a plugin that cannot provide `changes`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// The file changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// The command that would run, as the tool reads it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The reader of the text that the call types: [`SHELL_PROMPT`], or empty if it is unknown. The
    /// host trusts only plugins that come with jaato here.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub typed_into: String,
    /// The program that reads the text that the call types, such as `python3 -q`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reader: String,
    /// The files that the call would access.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Why the call is impossible. The call then fails with this error, without a permission
    /// prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Error>,
}

impl Preview {
    /// Creates a preview with a description.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates a preview with a unified diff.
    pub fn diff(diff: impl Into<String>) -> Self {
        Self { diff: diff.into(), ..Self::default() }
    }

    /// Creates a preview for a call that is impossible.
    pub fn refused(error: Error) -> Self {
        Self { refusal: Some(error), ..Self::default() }
    }

    /// Returns true if the preview is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
