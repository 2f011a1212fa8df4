//! Why a plugin cannot be installed, in words for people.

use std::fmt;
use std::io;
use std::path::PathBuf;

use jaato_loader::FileError;

use crate::limits::{ARCHIVE_FILES_MAX, UNPACKED_BYTES_MAX};
use crate::system::target_triple;

/// Why a plugin cannot be installed.
#[derive(Debug)]
pub enum InstallError {
    /// An address was given.
    Address(String),
    /// What was given cannot be read.
    Read(PathBuf, io::Error),
    /// The file cannot be used as a plugin.
    File(FileError),
    /// No library lies where one should.
    NoLibrary(PathBuf),
    /// A crate that is to be built first.
    Crate(PathBuf),
    /// More libraries than one.
    Several(PathBuf, Vec<String>),
    /// Libraries for other systems only.
    OtherSystems {
        /// The folder or archive.
        path: PathBuf,
        /// The systems that it holds a library for.
        has: Vec<String>,
    },
    /// An archive that cannot be unpacked.
    Archive(PathBuf, String),
    /// The place is held by something else.
    Taken {
        /// The place.
        path: PathBuf,
        /// The plugin that was to lie there.
        name: String,
    },
    /// The user's folder cannot be written.
    Write(PathBuf, io::Error),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(text) => {
                write!(f, "`{text}` is an address; what is installed must lie on this machine")
            }
            Self::Read(path, error) => write!(f, "cannot read `{}`: {error}", path.display()),
            Self::File(error) => error.fmt(f),
            Self::NoLibrary(path) => {
                write!(f, "`{}` holds no dynamic library of this system", path.display())
            }
            Self::Crate(path) => {
                write!(f, "`{}` is a crate's sources, not a plugin", path.display())
            }
            Self::Several(path, names) => write!(
                f,
                "`{}` holds more than one dynamic library: {}",
                path.display(),
                quoted(names)
            ),
            Self::OtherSystems { path, has } => write!(
                f,
                "`{}` holds plugins for {}, this system is `{}`",
                path.display(),
                quoted(has),
                target_triple()
            ),
            Self::Archive(path, text) => {
                write!(f, "cannot unpack `{}`: {text}", path.display())
            }
            Self::Taken { path, name } => write!(
                f,
                "plugin `{name}` belongs at `{}`, where something else lies",
                path.display()
            ),
            Self::Write(path, error) => write!(f, "cannot install `{}`: {error}", path.display()),
        }
    }
}

impl std::error::Error for InstallError {}

impl InstallError {
    /// Returns what to do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Address(_) => Some(
                "download it, look at where it comes from, then `jaato plugin install FILE`".into(),
            ),
            Self::File(error) => error.problem.hint(),
            Self::Crate(path) => Some(format!(
                "`cargo build --release` in `{}`, then install the library below `target/release`",
                path.display()
            )),
            Self::NoLibrary(_) => Some(format!(
                "one library, at the top or in `lib/{}`, is what is looked for",
                target_triple()
            )),
            Self::Several(..) => Some("install them one by one, by their files".into()),
            Self::OtherSystems { .. } => Some("ask the author for a build for this system".into()),
            Self::Archive(..) => Some(format!(
                "a .tar or .tar.gz with at most {ARCHIVE_FILES_MAX} entries and {UNPACKED_BYTES_MAX} bytes is taken; \
                 or unpack it yourself and install the folder"
            )),
            Self::Taken { path, .. } => {
                Some(format!("look at `{}`, and move it away", path.display()))
            }
            Self::Write(_, error) => jaato_places::hint_of(error),
            Self::Read(..) => None,
        }
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
