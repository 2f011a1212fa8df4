//! The owner of a note, and where it is stored.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::store::Store;

/// The prefix of each note's key.
const PREFIX: &str = "note/";

/// The owner of a note.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum NoteOwner {
    /// This workspace.
    #[default]
    Workspace,
    /// The user, in all workspaces.
    Person,
}

impl NoteOwner {
    /// Both owners, in the order in which they are shown.
    pub const BOTH: [Self; 2] = [Self::Workspace, Self::Person];

    /// Returns the owner's store.
    pub fn store(self, host: &Reporter) -> Store {
        match self {
            Self::Workspace => host.store().of_workspace(),
            Self::Person => host.store(),
        }
    }

    /// Lists the titles of the owner's notes, sorted.
    ///
    /// # Errors
    /// As [`Store::list`].
    pub async fn titles(self, host: &Reporter) -> Result<Vec<String>> {
        let kept = self.store(host).list(PREFIX).await?;
        let titles = kept.iter().filter_map(|kept| kept.key.strip_prefix(PREFIX));
        Ok(titles.map(str::to_owned).collect())
    }
}

/// Returns the key of a note in the store.
pub fn note_key(title: &str) -> String {
    format!("{PREFIX}{title}")
}
