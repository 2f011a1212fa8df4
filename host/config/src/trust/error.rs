//! What can be wrong with trust. None of it ever counts as trusted.

use std::fmt;
use std::path::PathBuf;

use jaato_places::PlaceError;

use super::{DEPTH_MAX, FILES_MAX, SESSION_MARKER, WORKSPACE_BYTES_MAX};

/// Trust that cannot be read, written or established.
#[derive(Debug)]
pub enum TrustError {
    /// A file or folder cannot be read or written.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: "read", "write".
        doing: &'static str,
        /// What the system said.
        cause: String,
    },
    /// The record of trust is damaged.
    Corrupt {
        /// The record.
        path: PathBuf,
        /// What the parser said.
        cause: String,
    },
    /// The record was written by a newer host.
    Newer {
        /// The record.
        path: PathBuf,
        /// Its version.
        has: u64,
        /// The version that this host knows.
        knows: u64,
    },
    /// Somebody else may have written the record, so that it proves nothing.
    NotBelieved(PlaceError),
    /// Another process holds the lock on the record.
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A workspace holds more than is checked.
    TooMuch {
        /// The workspace.
        root: PathBuf,
        /// Which limit was passed.
        what: &'static str,
    },
    /// A path cannot be recorded because it is not UTF-8.
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// A file of a trusted workspace is not what the person trusted.
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A digest is not 64 hexadecimal digits.
    BadDigest {
        /// What is there.
        has: String,
    },
    /// A trust command was run by something that a session started.
    InsideSession,
}

impl TrustError {
    /// Tells whether the record itself is what is wrong: it counts as empty then, and is left as it
    /// is.
    pub fn is_of_record(&self) -> bool {
        match self {
            Self::Corrupt { .. } | Self::Newer { .. } | Self::NotBelieved(_) => true,
            Self::Io { .. }
            | Self::Locked { .. }
            | Self::TooMuch { .. }
            | Self::NotUtf8 { .. }
            | Self::Changed { .. }
            | Self::BadDigest { .. }
            | Self::InsideSession => false,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } => None,
            Self::Corrupt { path, .. } => Some(format!(
                "nothing is trusted meanwhile: `mv {0} {0}.broken`, and trust again what you need",
                path.display()
            )),
            Self::Newer { .. } => Some("nothing is trusted meanwhile: update jaato".to_owned()),
            Self::NotBelieved(error) => Some(match error.hint() {
                Some(hint) => {
                    format!("nothing is trusted meanwhile: look whether anybody changed it; {hint}")
                }
                None => "nothing is trusted meanwhile".to_owned(),
            }),
            Self::Locked { .. } => Some("try again when the other command has ended".to_owned()),
            Self::TooMuch { .. } => {
                Some("move what does not belong there out of `.jaato`".to_owned())
            }
            Self::NotUtf8 { .. } => Some("rename it".to_owned()),
            Self::Changed { .. } => Some("look at it, then run `jaato trust`".to_owned()),
            Self::BadDigest { .. } => {
                Some("`jaato plugin list` prints the command with the digest".to_owned())
            }
            Self::InsideSession => Some("run it in a terminal of your own".to_owned()),
        }
    }
}

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, doing, cause } => {
                write!(f, "cannot {doing} `{}`: {cause}", path.display())
            }
            Self::Corrupt { path, cause } => {
                write!(f, "the record of trust `{}` is damaged: {cause}", path.display())
            }
            Self::Newer { path, has, knows } => write!(
                f,
                "the record of trust `{}` has version {has}, this host knows {knows}",
                path.display()
            ),
            Self::NotBelieved(error) => write!(f, "the record of trust proves nothing: {error}"),
            Self::Locked { path } => {
                write!(f, "another process is writing the record of trust (`{}`)", path.display())
            }
            Self::TooMuch { root, what } => write!(
                f,
                "cannot check the workspace `{}`: {what} (at most {FILES_MAX} files, \
                 {DEPTH_MAX} folders deep, {WORKSPACE_BYTES_MAX} bytes)",
                root.display()
            ),
            Self::NotUtf8 { path } => {
                write!(f, "cannot record `{}`: its name is not utf-8", path.display())
            }
            Self::Changed { path } => {
                write!(f, "`{}` is not what was trusted", path.display())
            }
            Self::BadDigest { has } => {
                write!(f, "a sha-256 digest is 64 hexadecimal digits, this is `{has}`")
            }
            Self::InsideSession => write!(
                f,
                "only a person can trust, and this command was started by a session \
                 (`{SESSION_MARKER}` is set, a parent process is jaato, or it bears the mark of a session's children)"
            ),
        }
    }
}

impl std::error::Error for TrustError {}
