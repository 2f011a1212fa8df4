//! Whose a note is, and where it is kept.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::store::Store;

/// What each note's key begins with.
const PREFIX: &str = "note/";

/// Who has a note.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// This workspace.
    #[default]
    Workspace,
    /// The person, in all workspaces.
    Person,
}

impl Of {
    /// Both of them, in the order in which they are shown.
    pub const BOTH: [Self; 2] = [Self::Workspace, Self::Person];

    /// Reaches what is kept for it.
    pub fn store(self, host: &Reporter) -> Store {
        match self {
            Self::Workspace => host.store().of_workspace(),
            Self::Person => host.store(),
        }
    }

    /// Lists the titles of its notes, sorted.
    ///
    /// # Errors
    /// As [`Store::list`].
    pub async fn titles(self, host: &Reporter) -> Result<Vec<String>> {
        let kept = self.store(host).list(PREFIX).await?;
        let titles = kept.iter().filter_map(|kept| kept.key.strip_prefix(PREFIX));
        Ok(titles.map(str::to_owned).collect())
    }
}

/// The key of a note in the store.
pub fn key(title: &str) -> String {
    format!("{PREFIX}{title}")
}
