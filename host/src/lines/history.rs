//! The lines that were typed, over conversations: a file among jaato's data.
//!
//! A line that begins with a blank is not kept, as in shells. What goes wrong with the file costs
//! the conversation nothing: it is told once.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jaato_runtime::config::UserFolders;
use jaato_runtime::open_private_file;

use super::edited::Editor;
use crate::report;

/// Lines that are kept: more nobody looks for.
pub const HISTORY_LINES_MAX: usize = 1000;

/// Longest line that is kept, in bytes: what is longer was pasted, and stands elsewhere.
const HISTORY_LINE_BYTES_MAX: usize = 64 * 1024;

/// Where lines are kept.
#[derive(Debug)]
pub struct HistoryFile {
    /// Nothing where there is no folder for it, or it cannot be used.
    path: Option<PathBuf>,
    is_told: AtomicBool,
}

impl HistoryFile {
    /// Finds it, and makes it where it is missing.
    pub fn of(folders: &UserFolders) -> Self {
        let file = Self { path: folders.chat_history().ok(), is_told: AtomicBool::new(false) };
        let Some(path) = &file.path else { return file };
        match open_private_file(path, OpenOptions::new().append(true).create(true)) {
            Ok(_) => file,
            Err(error) => {
                file.tell(&error.with_hint());
                Self { path: None, ..file }
            }
        }
    }

    /// Gives the editor the lines of earlier conversations.
    pub fn load(&self, editor: &mut Editor) {
        if let Some(path) = &self.path
            && let Err(error) = editor.load_history(path)
        {
            self.tell(&format!("{}: {error}", path.display()));
        }
    }

    /// Keeps a line.
    pub fn keep(&self, editor: &mut Editor, line: &str) {
        if line.len() > HISTORY_LINE_BYTES_MAX {
            return;
        }
        // What begins with a blank is not added, nor what is the last one again.
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
            report::problems(&[format!("the lines that you type are not kept: {error}")]);
        }
    }
}
