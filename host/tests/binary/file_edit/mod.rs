//! The file tools of the real binary, over the files of this machine.

mod agents;
mod bad_input;
mod history;
mod kills;
mod people;
mod tools;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::shells::Calls;
use crate::support::{House, fixtures, library_name};

/// A house with the file tools.
pub struct Desk {
    pub house: House,
}

impl Desk {
    /// Makes it, or leaves the test with a line that says why it is left out.
    pub fn new() -> Option<Self> {
        let house = House::new()?;
        let plugins = fixtures::house()?.join("plugins");
        for plugin in ["environment_local", "tool_file_edit"] {
            house.ship(&plugins.join(library_name(plugin)));
        }
        Some(Self { house })
    }

    /// Begins a session of calls.
    pub fn calls(&self) -> Calls {
        Calls::start(self.house.command(&["call", "--batch"]).patient())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.house.workspace().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The text of a file; `-` where there is none.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|_| "-".to_owned())
    }
}

/// The arguments of an edit.
pub fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "old": old, "new": new })
}
