//! Why a plugin's crate cannot be written.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::name::NAME_BYTES_MAX;

/// Why a plugin's crate cannot be written.
#[derive(Debug)]
pub enum TemplateError {
    /// Not a valid plugin name.
    Name(String),
    /// A name that already has another meaning.
    NameTaken(String),
    /// The folder exists.
    Exists(PathBuf),
    /// The executable has no sdk next to it.
    NoSdk(PathBuf),
    /// The path given as an sdk is not one.
    NotAnSdk(PathBuf),
    /// The sdk's path is not UTF-8, as paths in a manifest must be.
    SdkPath(PathBuf),
    /// A file cannot be written.
    Write(PathBuf, io::Error),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}` cannot be a plugin's name"),
            Self::NameTaken(name) => {
                write!(
                    f,
                    "`{name}` cannot be a plugin's name: it has another meaning in Rust or the sdk"
                )
            }
            Self::Exists(path) => write!(f, "`{}` already exists", path.display()),
            Self::NoSdk(path) => {
                write!(f, "`{}` has no sdk: its folder has no `../share/jaato/sdk`", path.display())
            }
            Self::NotAnSdk(path) => {
                write!(
                    f,
                    "`{}` does not contain jaato's sdk, as `share/jaato/sdk` does",
                    path.display()
                )
            }
            Self::SdkPath(path) => {
                write!(f, "a manifest cannot name `{}`: the path is not UTF-8", path.display())
            }
            Self::Write(path, error) => write!(f, "cannot write `{}`: {error}", path.display()),
        }
    }
}

impl std::error::Error for TemplateError {}

impl TemplateError {
    /// Returns what to do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Name(_) => Some(format!(
                "lower-case letters, digits and single `-`, a letter first, at most {NAME_BYTES_MAX}"
            )),
            Self::NameTaken(_) => Some("name its subject, as in `tool-moon-phase`".to_owned()),
            Self::Exists(_) => Some("remove it, or name another folder with `--path`".to_owned()),
            Self::NoSdk(_) => Some(
                "unpack the whole archive of jaato, or name an sdk or a checkout with `--sdk`"
                    .to_owned(),
            ),
            Self::NotAnSdk(_) => Some(
                "name the folder that holds `plugin-api/sdk`, or a checkout of jaato".to_owned(),
            ),
            Self::SdkPath(_) => Some("move it, and name its place with `--sdk`".to_owned()),
            Self::Write(..) => None,
        }
    }
}
