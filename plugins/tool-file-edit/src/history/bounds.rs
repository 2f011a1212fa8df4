//! How much of the past is kept.

use super::change::FILES_PER_CHANGE_MAX;

/// Changes of one file that can be undone, unless a setting says otherwise. An agent edits one file
/// dozens of times in a task, and each edit is a few kilobytes.
const CHANGES_PER_FILE: usize = 50;

/// Bytes of all contents: enough for a large repository, little beside what a build of it takes.
const BYTES: u64 = 512 * 1024 * 1024;

/// Steps of all changes, so that the journal stays small enough to be read at once.
const STEPS: usize = 2 * FILES_PER_CHANGE_MAX;

/// How much is kept. Beyond it, the oldest is forgotten; what is pending never is, nor the latest
/// change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Changes of one file.
    pub changes_per_file: usize,
    /// Bytes of all contents.
    pub bytes: u64,
    /// Steps of all changes.
    pub steps: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { changes_per_file: CHANGES_PER_FILE, bytes: BYTES, steps: STEPS }
    }
}
