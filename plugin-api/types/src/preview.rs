//! What a call of a tool would change, as its own plugin shows it to the person who is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file_change::FileChange;
use crate::{Error, ToolName};

/// Asks a tool's own plugin what a call would change, before a person is asked whether it may run:
/// [`PreviewRequest`], [`Preview`].
pub const PREVIEW: &str = "preview";

/// [`Preview::typed_into`]: a shell of Bourne's kind that waits at its empty prompt, so that what
/// is typed is a command line.
pub const SHELL_PROMPT: &str = "shell_prompt";

/// A call of the plugin's own tool that a person will be asked about.
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
    /// Makes the question; the host does, and tests.
    pub fn new(tool: impl Into<ToolName>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments }
    }
}

/// What a call would change. All of it is for a person; the model never sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preview {
    /// What it would do, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How files would change, as a unified diff, for a plugin that has nothing better than text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// How files would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// The command that would run, as the tool reads it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Who would read what the call types: [`SHELL_PROMPT`], or empty where that is not known. It
    /// is believed of shipped plugins alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub typed_into: String,
    /// The program that would read what the call types, such as `python3 -q`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reader: String,
    /// The files that it would touch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Why the call cannot do it. Nobody is asked then: the call does not run, and this is its
    /// error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Error>,
}

impl Preview {
    /// Says in words what a call would do.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Shows how files would change.
    pub fn diff(diff: impl Into<String>) -> Self {
        Self { diff: diff.into(), ..Self::default() }
    }

    /// Says why a call cannot do what it is asked for.
    pub fn refused(error: Error) -> Self {
        Self { refusal: Some(error), ..Self::default() }
    }

    /// Returns true if it shows nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
