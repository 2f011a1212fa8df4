//! Why a folder or a file is not used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A folder or a file that is not used, and why.
#[derive(Debug)]
pub struct PlaceError {
    /// The path with the problem: the requested one, or a folder or link on the way to it.
    pub path: PathBuf,
    /// The problem.
    pub why: PathProblem,
}

/// A problem with a folder or a file.
#[derive(Debug)]
pub enum PathProblem {
    /// Another user owns it.
    Owner(u32),
    /// Other users can write to it. Contains its mode.
    Writable(u32),
    /// It is not a folder, although it should be.
    NotAFolder,
    /// It is not a regular file, although it should be.
    NotAFile,
    /// It has more bytes than the limit.
    TooLarge(u64),
    /// It has more consecutive links than are followed.
    TooManyLinks,
    /// The system refused.
    System(io::Error),
}

impl PlaceError {
    pub(crate) fn new(path: &Path, why: PathProblem) -> Self {
        Self { path: path.to_owned(), why }
    }

    pub(crate) fn from_io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(path, PathProblem::System(error))
    }

    /// Returns true if the path does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(&self.why, PathProblem::System(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns true if something above the path is not a folder, so that nothing can exist there.
    pub fn has_non_folder_parent(&self) -> bool {
        match &self.why {
            PathProblem::NotAFolder => true,
            PathProblem::System(error) => error.kind() == io::ErrorKind::NotADirectory,
            PathProblem::Owner(_)
            | PathProblem::Writable(_)
            | PathProblem::NotAFile
            | PathProblem::TooLarge(_)
            | PathProblem::TooManyLinks => false,
        }
    }

    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        let path = self.path.display();
        match &self.why {
            PathProblem::Owner(_) => {
                Some(format!("make it yours (`chown \"$(id -u)\" '{path}'`), or remove it"))
            }
            PathProblem::Writable(_) => Some(format!("chmod go-w '{path}'")),
            PathProblem::NotAFolder | PathProblem::NotAFile | PathProblem::TooLarge(_) => {
                Some(format!("move `{path}` away"))
            }
            PathProblem::TooManyLinks => None,
            PathProblem::System(error) => match error.kind() {
                io::ErrorKind::NotADirectory => Some(format!(
                    "set `HOME` to a folder that you can write, or move `{path}` away"
                )),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("set `HOME` to a folder that you can write".to_owned())
                }
                _ => None,
            },
        }
    }

    /// Returns the text, with the hint on its own line if there is one.
    pub fn with_hint(&self) -> String {
        match self.hint() {
            Some(hint) => format!("{self}\nhint: {hint}"),
            None => self.to_string(),
        }
    }
}

/// Returns the hint of a [`PlaceError`] that was wrapped in an [`io::Error`].
pub fn io_error_hint(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<PlaceError>()?.hint()
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            PathProblem::Owner(user) => write!(f, "`{path}` is not used: user {user} owns it"),
            PathProblem::Writable(mode) => write!(
                f,
                "`{path}` is not used: users other than its owner can write to it (mode {mode:o})"
            ),
            PathProblem::NotAFolder => write!(f, "`{path}` is not used: it is not a folder"),
            PathProblem::NotAFile => write!(f, "`{path}` is not used: it is not a regular file"),
            PathProblem::TooLarge(bytes_max) => {
                write!(f, "`{path}` is not used: it has more than {bytes_max} bytes")
            }
            PathProblem::TooManyLinks => {
                write!(f, "`{path}` is not used: it has too many consecutive links")
            }
            PathProblem::System(error) => write!(f, "`{path}` cannot be used: {error}"),
        }
    }
}

impl std::error::Error for PlaceError {}

impl From<PlaceError> for io::Error {
    fn from(error: PlaceError) -> Self {
        let kind = match &error.why {
            PathProblem::System(error) => error.kind(),
            PathProblem::Owner(_) | PathProblem::Writable(_) => io::ErrorKind::PermissionDenied,
            PathProblem::NotAFolder => io::ErrorKind::NotADirectory,
            PathProblem::NotAFile | PathProblem::TooLarge(_) | PathProblem::TooManyLinks => {
                io::ErrorKind::Other
            }
        };
        Self::new(kind, error)
    }
}
