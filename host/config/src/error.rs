//! What can be wrong with a configuration, told so that a person can mend it.

use std::fmt;
use std::path::PathBuf;

use crate::mask::shorten;
use crate::origin::Origin;
use crate::trust::TrustError;

/// A configuration that cannot be used. Always permanent: only an edit helps.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that was asked for, or that is there, cannot be read.
    #[error("cannot read `{path}`: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system, or the check of the file, said.
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
        /// What the parser said.
        message: String,
    },
    /// A key that nobody knows.
    #[error("unknown key `{key}` ({origin})")]
    UnknownKey {
        /// The place of the key.
        origin: Box<Origin>,
        /// The key with its section, dotted.
        key: String,
        /// The known key that is meant most probably.
        nearest: Option<String>,
        /// All keys of that section, for when nothing is near.
        known: Vec<String>,
    },
    /// A value of the wrong type, or out of its range.
    #[error("`{key}` takes {wants}, but is {} ({origin})", shorten(.has))]
    WrongValue {
        /// The place of the value.
        origin: Box<Origin>,
        /// The key, dotted.
        key: String,
        /// What the key takes.
        wants: String,
        /// What is there.
        has: String,
    },
    /// `version` is no version.
    #[error("`version` takes a whole number from 1, but is {has} ({origin})")]
    Version {
        /// The place of the value.
        origin: Box<Origin>,
        /// What is there.
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
        /// What the system, or the file's content, has against it.
        cause: String,
    },
}

/// Something a person should know that does not stop the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// One line, lower case.
    pub text: String,
}

impl ConfigError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } | Self::Syntax { .. } | Self::Edit { .. } => None,
            Self::UnknownKey { nearest: Some(name), .. } => Some(format!("did you mean `{name}`?")),
            Self::UnknownKey { known, .. } if known.is_empty() => None,
            Self::UnknownKey { known, .. } => Some(format!("known here: `{}`", known.join("`, `"))),
            Self::WrongValue { key, .. } => {
                Some(format!("docs/configuration.md tells what `{key}` takes"))
            }
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
