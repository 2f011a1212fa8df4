//! The state in which files were looked at last: a few `stat`s tell whether anything changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_config::trust::TrustStore;
use jaato_loader::{Stamp, find};

use super::places;
use crate::setup::Setup;

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The plugin files of all places.
    pub files: BTreeMap<PathBuf, Stamp>,
    /// The record of what is trusted.
    pub trust: Option<Stamp>,
}

impl Seen {
    /// Looks at all places.
    pub fn of(setup: &Setup) -> Self {
        let found = find(&places(setup)).files.into_iter();
        // What cannot be looked at counts as not there.
        let files = found.filter_map(|file| Some((file.path.clone(), Stamp::of(&file.path).ok()?)));
        Self { files: files.collect(), trust: Self::trust_of(setup) }
    }

    /// Looks at the record of what is trusted.
    pub fn trust_of(setup: &Setup) -> Option<Stamp> {
        let data = setup.folders.data().ok()?;
        Stamp::of(&TrustStore::in_folder(data).path()).ok()
    }

    /// Tells whether one file and the record are as they were seen.
    pub fn holds(&self, setup: &Setup, path: &Path) -> bool {
        Stamp::of(path).ok().as_ref() == self.files.get(path) && Self::trust_of(setup) == self.trust
    }
}
