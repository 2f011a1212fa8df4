//! Tests the file tools in the real binary, on this machine's files.

mod agents;
mod bad_input;
mod edit_prompts;
mod history;
mod kills;
mod tools;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::shells::ShellCalls;
use crate::support::{House, fixtures, library_name};

/// An installation with the file tools.
pub struct FileToolsHouse {
    pub house: House,
}

impl FileToolsHouse {
    /// Creates the installation, or prints why the test is skipped.
    pub fn new() -> Option<Self> {
        let house = House::new()?;
        let plugins = fixtures::test_house()?.join("plugins");
        for plugin in ["environment_local", "tool_file_edit"] {
            house.ship(&plugins.join(library_name(plugin)));
        }
        Some(Self { house })
    }

    /// Begins a session of calls.
    pub fn start_calls(&self) -> ShellCalls {
        ShellCalls::start(self.house.command(&["call", "--batch"]).with_long_deadline())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.house.workspace().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Returns the text of a file, or `-` if it does not exist.
    pub fn file_text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|_| "-".to_owned())
    }
}

/// Returns the arguments of an edit.
pub fn edit_arguments(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "old": old, "new": new })
}
