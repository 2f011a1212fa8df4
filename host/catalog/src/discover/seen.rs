//! The last seen state of files. A few `stat` calls detect changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_config::trust::TrustStore;
use jaato_loader::{Stamp, find};

use super::places;
use crate::setup::Setup;

/// The states that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The plugin files of all places.
    pub files: BTreeMap<PathBuf, Stamp>,
    /// The trust record.
    pub trust: Option<Stamp>,
}

impl Seen {
    /// Reads the state of all places.
    pub fn of(setup: &Setup) -> Self {
        let found = find(&places(setup)).files.into_iter();
        // A file that cannot be examined counts as missing.
        let files = found.filter_map(|file| Some((file.path.clone(), Stamp::of(&file.path).ok()?)));
        Self { files: files.collect(), trust: Self::trust_of(setup) }
    }

    /// Reads the state of the trust record.
    pub fn trust_of(setup: &Setup) -> Option<Stamp> {
        let data = setup.folders.data().ok()?;
        Stamp::of(&TrustStore::in_folder(data).path()).ok()
    }

    /// Returns true if one file and the trust record are unchanged.
    pub fn holds(&self, setup: &Setup, path: &Path) -> bool {
        Stamp::of(path).ok().as_ref() == self.files.get(path) && Self::trust_of(setup) == self.trust
    }
}
