//! The programs whose sessions can be imported.

use std::fmt;
use std::str::FromStr;

use super::error::ImportError;

/// A program whose sessions can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ImportSource {
    /// JSON lines that [`to_json_lines`](crate::to_json_lines) wrote.
    Jaato,
    /// Claude Code.
    ClaudeCode,
    /// Codex, the command line tool of OpenAI.
    Codex,
    /// goose.
    Goose,
    /// pi, the coding agent.
    Pi,
}

impl ImportSource {
    /// All sources.
    pub const ALL: [Self; 5] = [Self::Jaato, Self::ClaudeCode, Self::Codex, Self::Goose, Self::Pi];

    /// Returns the name for command lines: `claude-code`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jaato => "jaato",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Goose => "goose",
            Self::Pi => "pi",
        }
    }

    /// Lists the names for an error.
    pub(super) fn source_names() -> String {
        Self::ALL.map(|source| format!("`{}`", source.name())).join(", ")
    }
}

impl fmt::Display for ImportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ImportSource {
    type Err = ImportError;

    fn from_str(name: &str) -> Result<Self, ImportError> {
        let found = Self::ALL.into_iter().find(|source| source.name() == name);
        found.ok_or_else(|| ImportError::UnknownSource(name.to_owned()))
    }
}
