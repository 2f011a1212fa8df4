//! The last seen state of files. A few `stat` calls detect changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_config::trust::TrustStore;
use jaato_loader::{PluginFileStamp, find_plugin_files};

use super::list_search_folders;
use crate::setup::Setup;

/// The states that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginStamps {
    /// The plugin files of all places.
    pub files: BTreeMap<PathBuf, PluginFileStamp>,
    /// The trust record.
    pub trust: Option<PluginFileStamp>,
}

impl PluginStamps {
    /// Reads the state of all places.
    pub fn read_all(setup: &Setup) -> Self {
        let found = find_plugin_files(&list_search_folders(setup)).files.into_iter();
        // A file that cannot be examined counts as missing.
        let files = found.filter_map(|file| {
            Some((file.path.clone(), PluginFileStamp::read_stamp(&file.path).ok()?))
        });
        Self { files: files.collect(), trust: Self::read_trust_stamp(setup) }
    }

    /// Reads the state of the trust record.
    pub fn read_trust_stamp(setup: &Setup) -> Option<PluginFileStamp> {
        let data = setup.folders.data_folder().ok()?;
        PluginFileStamp::read_stamp(&TrustStore::in_folder(data).path()).ok()
    }

    /// Returns true if one file and the trust record are unchanged.
    pub fn is_unchanged(&self, setup: &Setup, path: &Path) -> bool {
        PluginFileStamp::read_stamp(path).ok().as_ref() == self.files.get(path)
            && Self::read_trust_stamp(setup) == self.trust
    }
}
