//! A change of files as the history stores it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ContentId, FilePath};

/// The maximum number of files in a change, so that a journal line can be read at once.
pub(super) const FILES_PER_CHANGE_MAX: usize = 10_000;

/// The number of digest characters in a backup's name. Two files of one change do not share them by
/// chance.
const DIGEST_START_CHARS: usize = 12;

/// The number of a change. Numbers increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(pub(super) u64);

/// A change before it is applied.
#[derive(Debug, Clone, Default)]
pub struct NewChange {
    /// The session that makes the change.
    pub session: String,
    /// The tool that makes the change.
    pub tool: String,
    /// The tool call that makes the change.
    pub call: String,
    /// The name of the files' environment.
    pub environment: String,
    /// The change that this one undoes, from a [`Step`](super::Step).
    pub undoes: Option<ChangeId>,
    /// The files. Each path occurs once.
    pub files: Vec<FileTransition>,
}

/// A session, up to a time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SessionPeriod {
    /// The session's id.
    pub session: String,
    /// The last time that counts, in milliseconds since 1970 UTC.
    pub until_ms: i64,
}

impl SessionPeriod {
    /// Returns true if the session made the change in this time.
    pub fn contains(&self, change: &RecordedChange) -> bool {
        change.session == self.session && change.at_ms <= self.until_ms
    }
}

/// A change that is applied, or may be partly applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedChange {
    /// The number of the change.
    pub id: ChangeId,
    /// The start time, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The session that made the change.
    pub session: String,
    /// The tool that made the change.
    pub tool: String,
    /// The tool call that made the change.
    pub call: String,
    /// The name of the environment in which the change was made.
    #[serde(default)]
    pub environment: String,
    /// The change that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<ChangeId>,
    /// The paths at which this change undid the latest open change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undone: Vec<FilePath>,
    /// The paths at which this change undid the latest undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) redone: Vec<FilePath>,
    /// The outcome of the change. `None` while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ChangeOutcome>,
    /// The number of its files that were removed from the history.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) forgotten: usize,
    /// The files. Each path occurs once.
    pub files: Vec<FileTransition>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOutcome {
    /// The change is applied.
    Done,
    /// The change was rolled back.
    RolledBack,
}

/// The effect of a change on one path. A move consists of two steps: the old path becomes absent,
/// and the new path names the old one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTransition {
    /// The file.
    pub path: FilePath,
    /// The state before. `None` means that no file existed. The history stores the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<StoredFileState>,
    /// The state after. `None` means that no file exists. Only its digest is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<StoredFileState>,
    /// The old path, if the file moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<FilePath>,
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFileState {
    /// The digest of its bytes.
    pub content: ContentId,
    /// Its size in bytes.
    pub size: u64,
    /// Its permission bits.
    pub mode: u32,
}

/// A change in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChange {
    /// The number of the change.
    pub id: ChangeId,
    /// The start time, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The tool that made the change.
    pub tool: String,
    /// The change that this one undid.
    pub undoes: Option<ChangeId>,
    /// The files.
    pub files: Vec<FilePath>,
    /// Whether nothing of the change can still be undone.
    pub is_taken_back: bool,
}

/// A file before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The ID for [`History::find_backup`](super::History::find_backup).
    pub id: BackupId,
    /// The file's path.
    pub path: FilePath,
    /// The start time of the change that replaced the file, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The tool that replaced the file.
    pub tool: String,
    /// The session that replaced the file.
    pub session: String,
    /// The state of the file.
    pub file: StoredFileState,
}

/// The ID of a backup, such as `17.5e884898da28`: the change that replaced the file, and the start
/// of its digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BackupId {
    change: ChangeId,
    digest_start: String,
}

impl RecordedChange {
    pub(super) fn new(id: ChangeId, at_ms: i64, new: NewChange) -> Self {
        let NewChange { session, tool, call, environment, undoes, files } = new;
        let (undone, redone, outcome, forgotten) = (Vec::new(), Vec::new(), None, 0);
        Self {
            id,
            at_ms,
            session,
            tool,
            call,
            environment,
            undoes,
            undone,
            redone,
            outcome,
            forgotten,
            files,
        }
    }

    /// Returns the effect on a path.
    pub fn transition_of(&self, path: &FilePath) -> Option<&FileTransition> {
        self.files.iter().find(|step| step.path == *path)
    }

    /// Returns the backup ID of a path, or `None` if no file existed before.
    pub fn backup_id_of(&self, path: &FilePath) -> Option<BackupId> {
        let before = self.transition_of(path)?.before.as_ref()?;
        Some(BackupId::new(self.id, &before.content))
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ChangeId {
    type Err = ();

    /// Parses `27` or `#27`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number).map(Self).ok_or(())
    }
}

impl BackupId {
    pub(super) fn new(change: ChangeId, content: &ContentId) -> Self {
        let digest_start = content.as_str().chars().take(DIGEST_START_CHARS).collect();
        Self { change, digest_start }
    }

    pub(super) fn change_id(&self) -> ChangeId {
        self.change
    }
}

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.change, self.digest_start)
    }
}

impl FromStr for BackupId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (change, digest_start) = text.split_once('.').ok_or(())?;
        let is_number = change.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = digest_start.bytes().all(|byte| byte.is_ascii_hexdigit());
        match change.parse() {
            Ok(number) if is_number && is_hex && digest_start.len() == DIGEST_START_CHARS => {
                Ok(Self { change: ChangeId(number), digest_start: digest_start.to_owned() })
            }
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_id_contains_change_number_and_content_digest() {
        let id = BackupId::new(ChangeId(17), &ContentId::from_bytes(b"password"));
        assert_eq!(id.to_string(), "17.5e884898da28");
        assert_eq!("17.5e884898da28".parse(), Ok(id));
        for bad in ["", "17", "17.", "+7.5e884898da28", "17.5e884898da2", "17.5e884898da2/"] {
            assert_eq!(bad.parse::<BackupId>(), Err(()), "{bad}");
        }
    }
}
