//! A change of files, as it is kept.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ContentId, FilePath};

/// Most files of one change: a journal line stays small enough to be read whole.
pub(super) const FILES_PER_CHANGE_MAX: usize = 10_000;

/// How many characters of a digest a backup's name has: two files of one change never share them
/// by chance.
const DIGEST_START_CHARS: usize = 12;

/// The number of a change, which grows with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChangeId(pub(super) u64);

/// A change that is to be applied.
#[derive(Debug, Clone, Default)]
pub struct NewChange {
    /// The session that makes it.
    pub session: String,
    /// The tool that makes it.
    pub tool: String,
    /// The call that makes it.
    pub call: String,
    /// The name of the environment in which the files lie.
    pub environment: String,
    /// The change that it takes back: the one of a [`Step`](super::Step).
    pub undoes: Option<ChangeId>,
    /// The files, each path once.
    pub files: Vec<FileStep>,
}

/// A change that is applied, or may be half applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its number.
    pub id: ChangeId,
    /// When it began, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The session that made it.
    pub session: String,
    /// The tool that made it.
    pub tool: String,
    /// The call that made it.
    pub call: String,
    /// The name of the environment in which it was made.
    #[serde(default)]
    pub environment: String,
    /// The change that it took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<ChangeId>,
    /// Paths at which it took back the last change that was not taken back before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) undone: Vec<FilePath>,
    /// Paths at which it took back the last such undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) redone: Vec<FilePath>,
    /// How it ended; `None` while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How many of its files are no longer kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) forgotten: usize,
    /// The files, each path once.
    pub files: Vec<FileStep>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is applied.
    Done,
    /// What was applied of it was taken back.
    RolledBack,
}

/// What a change does to one path. A move is two steps: the old path ends absent, the new one names
/// the old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStep {
    /// Which file.
    pub path: FilePath,
    /// What is there before; `None` for nothing. Its bytes are in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Kept>,
    /// What is there after it; `None` for nothing. Only its digest is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Kept>,
    /// Where the file comes from, if it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<FilePath>,
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The digest of its bytes.
    pub content: ContentId,
    /// How many bytes it has.
    pub size: u64,
    /// Its permission bits.
    pub mode: u32,
}

/// A change in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChange {
    /// Its number.
    pub id: ChangeId,
    /// When it began, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The tool that made it.
    pub tool: String,
    /// The change that it took back.
    pub undoes: Option<ChangeId>,
    /// The files.
    pub files: Vec<FilePath>,
    /// Whether nothing of it is left to be undone.
    pub is_taken_back: bool,
}

/// A file as it was before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// What [`History::backup`](super::History::backup) takes.
    pub id: BackupId,
    /// Which file.
    pub path: FilePath,
    /// When the change began that replaced it, in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// The tool that replaced it.
    pub tool: String,
    /// The session that replaced it.
    pub session: String,
    /// The file.
    pub file: Kept,
}

/// Names a backup, as `17.5e884898da28`: the change that replaced it, and how its digest begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BackupId {
    change: ChangeId,
    digest_start: String,
}

impl Change {
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

    /// Finds what it does to a path.
    pub fn step_of(&self, path: &FilePath) -> Option<&FileStep> {
        self.files.iter().find(|step| step.path == *path)
    }

    /// Names what a path was before it; nothing where there was no file.
    pub fn backup_of(&self, path: &FilePath) -> Option<BackupId> {
        let before = self.step_of(path)?.before.as_ref()?;
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

    /// Reads `27`, or `#27`.
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

    pub(super) fn change(&self) -> ChangeId {
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
    fn a_backup_is_named_by_its_change_and_its_content() {
        let id = BackupId::new(ChangeId(17), &ContentId::of(b"password"));
        assert_eq!(id.to_string(), "17.5e884898da28");
        assert_eq!("17.5e884898da28".parse(), Ok(id));
        for bad in ["", "17", "17.", "+7.5e884898da28", "17.5e884898da2", "17.5e884898da2/"] {
            assert_eq!(bad.parse::<BackupId>(), Err(()), "{bad}");
        }
    }
}
