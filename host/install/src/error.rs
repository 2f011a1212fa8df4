//! Why a plugin cannot be installed, as text for users.

use std::io;
use std::path::PathBuf;

use jaato_loader::FileError;

use crate::limits::{ARCHIVE_FILES_MAX, UNPACKED_BYTES_MAX};
use crate::system::target_triple;

/// Why a plugin cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The source is an address.
    #[error("`{0}` is a URL; jaato installs only local files")]
    Address(String),
    /// The source cannot be read.
    #[error("cannot read `{}`: {error}", .0.display(), error = .1)]
    Read(PathBuf, io::Error),
    /// The file cannot be used as a plugin.
    #[error("{0}")]
    File(FileError),
    /// The expected library is missing.
    #[error("`{}` contains no dynamic library for this system", .0.display())]
    NoLibrary(PathBuf),
    /// A crate that must be built first.
    #[error("`{}` is a crate's sources, not a plugin", .0.display())]
    Crate(PathBuf),
    /// There is more than one library.
    #[error("`{}` contains more than one dynamic library: {}", .0.display(), quote_names(.1))]
    Several(PathBuf, Vec<String>),
    /// There are only libraries for other systems.
    #[error(
        "`{}` holds plugins for {}, this system is `{}`",
        path.display(),
        quote_names(has),
        target_triple()
    )]
    OtherSystems {
        /// The folder or archive.
        path: PathBuf,
        /// The systems for which it has a library.
        has: Vec<String>,
    },
    /// An archive that cannot be unpacked.
    #[error("cannot unpack `{}`: {error}", .0.display(), error = .1)]
    Archive(PathBuf, String),
    /// There is something else at the plugin's path.
    #[error("cannot install plugin `{name}` at `{}`, because another file or folder is in the way", path.display())]
    Taken {
        /// The path.
        path: PathBuf,
        /// The plugin to install.
        name: String,
    },
    /// The user's folder cannot be written.
    #[error("cannot install `{}`: {error}", .0.display(), error = .1)]
    Write(PathBuf, io::Error),
}

impl InstallError {
    /// Returns a hint on how to fix it, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Address(_) => {
                Some("download it, check its source, then run `jaato plugin install FILE`".into())
            }
            Self::File(error) => error.problem.hint(),
            Self::Crate(path) => Some(format!(
                "`cargo build --release` in `{}`, then install the library below `target/release`",
                path.display()
            )),
            Self::NoLibrary(_) => Some(format!(
                "jaato looks for one library, at the top level or in `lib/{}`",
                target_triple()
            )),
            Self::Several(..) => Some("install each of these files separately".into()),
            Self::OtherSystems { .. } => Some("ask the author for a build for this system".into()),
            Self::Archive(..) => Some(format!(
                "use a .tar or .tar.gz with at most {ARCHIVE_FILES_MAX} entries and {UNPACKED_BYTES_MAX} bytes, \
                 or unpack it yourself and install the folder"
            )),
            Self::Taken { path, .. } => {
                Some(format!("check `{}` and move it away", path.display()))
            }
            Self::Write(_, error) => jaato_places::io_error_hint(error),
            Self::Read(..) => None,
        }
    }
}

fn quote_names(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
