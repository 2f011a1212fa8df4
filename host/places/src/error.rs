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
    pub why: Why,
}

/// A problem with a folder or a file.
#[derive(Debug)]
pub enum Why {
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
    pub(crate) fn new(path: &Path, why: Why) -> Self {
        Self { path: path.to_owned(), why }
    }

    pub(crate) fn system(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(path, Why::System(error))
    }

    /// Returns true if the path does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(&self.why, Why::System(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns true if something above the path is not a folder, so that nothing can exist there.
    pub fn lies_below_no_folder(&self) -> bool {
        match &self.why {
            Why::NotAFolder => true,
            Why::System(error) => error.kind() == io::ErrorKind::NotADirectory,
            Why::Owner(_)
            | Why::Writable(_)
            | Why::NotAFile
            | Why::TooLarge(_)
            | Why::TooManyLinks => false,
        }
    }

    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        let path = self.path.display();
        match &self.why {
            Why::Owner(_) => {
                Some(format!("make it yours (`chown \"$(id -u)\" '{path}'`), or remove it"))
            }
            Why::Writable(_) => Some(format!("chmod go-w '{path}'")),
            Why::NotAFolder | Why::NotAFile | Why::TooLarge(_) => {
                Some(format!("move `{path}` away"))
            }
            Why::TooManyLinks => None,
            Why::System(error) => match error.kind() {
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
pub fn hint_of(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<PlaceError>()?.hint()
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::Owner(user) => write!(f, "`{path}` is not used: user {user} owns it"),
            Why::Writable(mode) => write!(
                f,
                "`{path}` is not used: users other than its owner can write to it (mode {mode:o})"
            ),
            Why::NotAFolder => write!(f, "`{path}` is not used: it is not a folder"),
            Why::NotAFile => write!(f, "`{path}` is not used: it is not a regular file"),
            Why::TooLarge(bytes_max) => {
                write!(f, "`{path}` is not used: it has more than {bytes_max} bytes")
            }
            Why::TooManyLinks => {
                write!(f, "`{path}` is not used: it has too many consecutive links")
            }
            Why::System(error) => write!(f, "`{path}` cannot be used: {error}"),
        }
    }
}

impl std::error::Error for PlaceError {}

impl From<PlaceError> for io::Error {
    fn from(error: PlaceError) -> Self {
        let kind = match &error.why {
            Why::System(error) => error.kind(),
            Why::Owner(_) | Why::Writable(_) => io::ErrorKind::PermissionDenied,
            Why::NotAFolder => io::ErrorKind::NotADirectory,
            Why::NotAFile | Why::TooLarge(_) | Why::TooManyLinks => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
