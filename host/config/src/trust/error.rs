//! Errors about trust. None of them ever counts as trusted.

use std::path::PathBuf;

use jaato_places::PlaceError;

use super::{DEPTH_MAX, FILES_MAX, RecordKind, SESSION_MARKER, WORKSPACE_BYTES_MAX};

/// Trust that cannot be read, written or established.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file or folder cannot be read or written.
    #[error("cannot {doing} `{path}`: {cause}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failed action: "read", "write".
        doing: &'static str,
        /// The system's message.
        cause: String,
    },
    /// A record is damaged.
    #[error("the {record} `{path}` is damaged: {cause}")]
    Corrupt {
        /// Which record.
        record: RecordKind,
        /// The record.
        path: PathBuf,
        /// The parser's message.
        cause: String,
    },
    /// A record was written by a newer host.
    #[error("the {record} `{path}` has version {has}, this host knows {knows}")]
    Newer {
        /// Which record.
        record: RecordKind,
        /// The record.
        path: PathBuf,
        /// Its version.
        has: u64,
        /// The version that this host knows.
        knows: u64,
    },
    /// Another user may have written the record, so it proves nothing.
    #[error("the {record} cannot be used: {why}")]
    NotBelieved {
        /// Which record.
        record: RecordKind,
        /// The problem with the file.
        why: PlaceError,
    },
    /// Another process holds the lock on a record.
    #[error("another process is writing the {record} (`{path}`)")]
    Locked {
        /// Which record.
        record: RecordKind,
        /// The lock file.
        path: PathBuf,
    },
    /// A workspace contains more than jaato checks.
    #[error(
        "cannot check the workspace `{root}`: {what} (at most {} files, {} \
         folders deep, {} bytes)",
        FILES_MAX,
        DEPTH_MAX,
        WORKSPACE_BYTES_MAX
    )]
    TooMuch {
        /// The workspace.
        root: PathBuf,
        /// Which limit was exceeded.
        what: &'static str,
    },
    /// A path cannot be recorded because it is not UTF-8.
    #[error("cannot record `{path}`: its name is not utf-8")]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// A file of a trusted workspace differs from the one that the user trusted.
    #[error("`{path}` has changed since it was trusted")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A digest is not 64 hexadecimal digits.
    #[error("a sha-256 digest is 64 hexadecimal digits, this is `{has}`")]
    BadDigest {
        /// The text.
        has: String,
    },
    /// A trust command was run by a process that a session started.
    #[error(
        "only a user can trust, but a session started this command (`{}` \
         is set, a parent process is jaato, or it bears the mark of a session's children)",
        SESSION_MARKER
    )]
    InsideSession,
}

impl TrustError {
    /// Returns true if the record itself is the problem. It then counts as empty, and is left as it
    /// is.
    pub fn is_record_error(&self) -> bool {
        match self {
            Self::Corrupt { .. } | Self::Newer { .. } | Self::NotBelieved { .. } => true,
            Self::Io { .. }
            | Self::Locked { .. }
            | Self::TooMuch { .. }
            | Self::NotUtf8 { .. }
            | Self::Changed { .. }
            | Self::BadDigest { .. }
            | Self::InsideSession => false,
        }
    }

    /// Returns a hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } => None,
            Self::Corrupt { record, path, .. } => Some(format!(
                "{1}: run `mv {0} {0}.broken`, then {2} what you need again",
                path.display(),
                record.effect_while_unreadable(),
                record.repeat_hint(),
            )),
            Self::Newer { record, .. } => {
                Some(format!("{}: update jaato", record.effect_while_unreadable()))
            }
            Self::NotBelieved { record, why } => {
                let meanwhile = record.effect_while_unreadable();
                Some(match why.hint() {
                    Some(hint) => {
                        format!("{meanwhile}: check whether another user changed it; {hint}")
                    }
                    None => meanwhile.to_owned(),
                })
            }
            Self::Locked { .. } => Some("try again when the other command has ended".to_owned()),
            Self::TooMuch { .. } => {
                Some("move files that do not belong there out of `.jaato`".to_owned())
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
