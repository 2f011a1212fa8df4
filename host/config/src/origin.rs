//! The origin of a value: the layer, and the place in it that a user can edit.

use std::fmt;
use std::path::PathBuf;

/// A layer of the configuration. Later ones take precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigLayer {
    /// The host's own defaults.
    BuiltIn,
    /// The user's `config.toml`, or the file given with `--config`.
    User,
    /// `.jaato/config.toml` of a trusted workspace.
    Workspace,
    /// `.env` of a trusted workspace, or the file given with `--env-file`.
    EnvFile,
    /// A variable of the process.
    Variable,
    /// An option of the command line.
    CommandLine,
}

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The host's own default.
    BuiltIn,
    /// A configuration file. `layer` is [`ConfigLayer::User`] or [`ConfigLayer::Workspace`].
    File {
        /// Which of the two files.
        layer: ConfigLayer,
        /// The file.
        path: PathBuf,
        /// Line of the key, counted from 1.
        line: usize,
    },
    /// A line of a variables file.
    EnvFile {
        /// The file.
        path: PathBuf,
        /// Line of the variable, counted from 1.
        line: usize,
        /// The variable.
        name: String,
    },
    /// A variable of the process.
    Variable {
        /// The variable.
        name: String,
    },
    /// An option of the command line.
    CommandLine {
        /// The option, with its dashes.
        option: &'static str,
    },
}

impl ValueOrigin {
    /// Returns the layer of this place.
    pub fn layer(&self) -> ConfigLayer {
        match self {
            Self::BuiltIn => ConfigLayer::BuiltIn,
            Self::File { layer, .. } => *layer,
            Self::EnvFile { .. } => ConfigLayer::EnvFile,
            Self::Variable { .. } => ConfigLayer::Variable,
            Self::CommandLine { .. } => ConfigLayer::CommandLine,
        }
    }
}

impl fmt::Display for ConfigLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::EnvFile => "variables file",
            Self::Variable => "variable",
            Self::CommandLine => "command line",
        })
    }
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { layer, path, line } => write!(f, "{layer} {}:{line}", path.display()),
            Self::EnvFile { path, line, name } => {
                write!(f, "variables file {}:{line} {name}", path.display())
            }
            Self::Variable { name } => write!(f, "variable {name}"),
            Self::CommandLine { option } => write!(f, "command line {option}"),
        }
    }
}
