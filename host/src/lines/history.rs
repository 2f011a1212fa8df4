//! The typed lines of all conversations: a file among jaato's data.
//!
//! A line that begins with a space is not stored, as in shells. A problem with the file does not
//! affect the conversation. It is reported once.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_runtime::config::UserFolders;
use jaato_runtime::open_private_file;

use super::edited::Editor;
use crate::report;

/// Limit on the stored lines. Older lines are hardly ever used.
pub const HISTORY_LINES_MAX: usize = 1000;

/// Longest stored line, in bytes. A longer one was pasted, so its text is available elsewhere.
const HISTORY_LINE_BYTES_MAX: usize = 64 * 1024;

/// The file with the typed lines.
#[derive(Debug)]
pub struct HistoryFile {
    /// `None` if the user's data folder is unknown, or the file cannot be used.
    path: Option<PathBuf>,
    is_told: AtomicBool,
}

impl HistoryFile {
    /// Finds the file, and creates it if it is missing.
    pub fn of(folders: &UserFolders) -> Self {
        let file = Self { path: folders.chat_history_file().ok(), is_told: AtomicBool::new(false) };
        let Some(path) = &file.path else { return file };
        match open_private_file(path, OpenOptions::new().append(true).create(true)) {
            Ok(_) => file,
            Err(error) => {
                file.tell(&error.with_hint());
                Self { path: None, ..file }
            }
        }
    }

    /// Loads the lines of earlier conversations into the editor.
    pub fn load(&self, editor: &mut Editor) {
        if let Some(path) = &self.path
            && let Err(error) = editor.load_history(path)
        {
            self.tell(&format!("{}: {error}", path.display()));
        }
    }

    /// Stores a line.
    pub fn keep(&self, editor: &mut Editor, line: &str) {
        if line.len() > HISTORY_LINE_BYTES_MAX {
            return;
        }
        // The editor does not add a line that begins with a space or repeats the last one.
        if !editor.add_history_entry(line).unwrap_or(false) {
            return;
        }
        if let Some(path) = &self.path
            && let Err(error) = editor.append_history(path)
        {
            self.tell(&format!("{}: {error}", path.display()));
        }
    }

    fn tell(&self, error: &str) {
        if !self.is_told.swap(true, Relaxed) {
            report::print_problems(&[format!("cannot save the lines that you type: {error}")]);
        }
    }
}
