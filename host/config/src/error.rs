//! Configuration errors, described so that a user can fix them.

use std::fmt;
use std::path::PathBuf;

use crate::mask::shorten_value;
use crate::origin::ValueOrigin;
use crate::trust::TrustError;

/// A configuration that cannot be used. Always permanent, because only an edit helps.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was requested, or that exists, cannot be read.
    #[error("cannot read `{path}`: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The message of the system, or of the file check.
        cause: String,
    },
    /// A file is not TOML.
    #[error("`{path}:{line}:{column}` is not valid toml: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// An unknown key.
    #[error("unknown key `{key}` ({origin})")]
    UnknownKey {
        /// The place of the key.
        origin: Box<ValueOrigin>,
        /// The key with its section, dotted.
        key: String,
        /// The known key that was most likely meant.
        nearest: Option<String>,
        /// All keys of that section, if no known key is similar.
        known: Vec<String>,
    },
    /// A value of the wrong type, or out of its range.
    #[error("`{key}` takes {wants}, but is {} ({origin})", shorten_value(.has))]
    WrongValue {
        /// The place of the value.
        origin: Box<ValueOrigin>,
        /// The key, dotted.
        key: String,
        /// The type of the key's value.
        wants: String,
        /// The value.
        has: String,
    },
    /// `version` is not a valid version.
    #[error("`version` takes a whole number from 1, but is {has} ({origin})")]
    Version {
        /// The place of the value.
        origin: Box<ValueOrigin>,
        /// The value.
        has: String,
    },
    /// A file of the workspace cannot be used.
    #[error("{0}")]
    Workspace(TrustError),
    /// A file cannot be changed.
    #[error("cannot change `{path}`: {cause}")]
    Edit {
        /// The file.
        path: PathBuf,
        /// The message of the system, or the problem with the file's content.
        cause: String,
    },
}

/// A problem that the user should know about, but that does not stop the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWarning {
    /// One line, lower case.
    pub text: String,
}

impl ConfigError {
    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } | Self::Syntax { .. } | Self::Edit { .. } => None,
            Self::UnknownKey { nearest: Some(name), .. } => Some(format!("did you mean `{name}`?")),
            Self::UnknownKey { known, .. } if known.is_empty() => None,
            Self::UnknownKey { known, .. } => Some(format!("known here: `{}`", known.join("`, `"))),
            Self::WrongValue { key, .. } => Some(format!("see `{key}` in docs/configuration.md")),
            Self::Version { .. } => {
                Some(format!("write `version = {}`, or leave it out", crate::CONFIG_VERSION))
            }
            Self::Workspace(error) => error.hint(),
        }
    }
}

impl From<TrustError> for ConfigError {
    fn from(error: TrustError) -> Self {
        Self::Workspace(error)
    }
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
