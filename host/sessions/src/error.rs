//! Why a session cannot be stored or read.

use std::io;
use std::path::PathBuf;

use jaato_places::PlaceError;

use crate::line::UnwritableRecord;

/// Why a session cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum SessionStoreError {
    /// There is no session with this id.
    #[error("there is no session `{0}`")]
    NotFound(String),
    /// A text is not the id of a session.
    #[error("`{0}` is not the id of a session")]
    InvalidId(String),
    /// Another process has the session open.
    #[error("session `{id}` is open in {}", describe_process(*.pid))]
    InUse {
        /// The session's id.
        id: String,
        /// The process id, if it is known.
        pid: Option<u32>,
    },
    /// The id of a new session is taken.
    #[error("there is already a session `{0}`")]
    AlreadyExists(String),
    /// Several ids begin or end with a text.
    #[error("`{part}` matches {count} sessions: {}", list_candidates(candidates, *count))]
    Ambiguous {
        /// The text.
        part: String,
        /// Some of the ids, the newest first.
        candidates: Vec<String>,
        /// The number of all.
        count: usize,
    },
    /// A text is not an id, and too short for a part of one.
    #[error("there is no session `{part}`, and a part of an id has at least {least} characters")]
    PartTooShort {
        /// The text.
        part: String,
        /// Fewest characters of a part.
        least: usize,
    },
    /// The conversation of a session has no record with this number.
    #[error("the conversation of session `{id}` has no record {seq}")]
    NoRecord {
        /// The session's id.
        id: String,
        /// The number.
        seq: u64,
    },
    /// The conversation of a session has no message of the user with this number.
    #[error("session `{id}` has no message {number}: its messages have the numbers 1 to {count}")]
    NoPrompt {
        /// The session's id.
        id: String,
        /// The message number that was requested.
        number: u64,
        /// How many messages there are.
        count: u64,
    },
    /// Another process has taken the session over, so this one must not append.
    #[error("another process has taken over session `{id}`, so this process no longer saves it")]
    TakenOver {
        /// The session's id.
        id: String,
    },
    /// A record cannot be added to a session.
    #[error("cannot save to session `{id}`: {why}")]
    Unwritable {
        /// The session's id.
        id: String,
        /// The reason.
        why: UnwritableRecord,
    },
    /// A newer jaato wrote the file.
    #[error("`{path}` has format {version}, and this jaato reads formats up to {known}")]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The file's version.
        version: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// The file does not begin with the header of a session.
    #[error("`{0}` is not a session file")]
    NotASession(PathBuf),
    /// A folder or file of jaato cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The system refused.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// A verb, for example `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The index cannot be used. `SessionIndex::rebuild` makes a new one.
    #[error("the index of the sessions cannot be used: {0}")]
    Index(#[from] rusqlite::Error),
}

impl SessionStoreError {
    /// Returns a function that converts a system error.
    pub(crate) fn from_io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { action, path, error }
    }
}

fn describe_process(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("another process ({pid})"),
        None => "another process".to_owned(),
    }
}

fn list_candidates(candidates: &[String], count: usize) -> String {
    let more = count.saturating_sub(candidates.len());
    let shown: Vec<String> = candidates.iter().map(|id| format!("`{id}`")).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
