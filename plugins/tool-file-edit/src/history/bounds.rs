//! The limits of the history.

use super::change::FILES_PER_CHANGE_MAX;

/// The default number of changes per file that can be undone. An agent edits one file dozens of
/// times in a task, and each edit takes a few kilobytes.
const CHANGES_PER_FILE: usize = 50;

/// The maximum number of bytes of all contents. This is enough for a large repository, and little
/// compared with its build output.
const BYTES: u64 = 512 * 1024 * 1024;

/// The maximum number of steps of all changes, so that the journal can be read at once.
const STEPS: usize = 2 * FILES_PER_CHANGE_MAX;

/// The limits of the history. Beyond them, the oldest changes are forgotten, but never pending
/// changes or the latest change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The maximum number of changes per file.
    pub changes_per_file: usize,
    /// The maximum number of bytes of all contents.
    pub bytes: u64,
    /// The maximum number of steps of all changes.
    pub steps: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { changes_per_file: CHANGES_PER_FILE, bytes: BYTES, steps: STEPS }
    }
}
