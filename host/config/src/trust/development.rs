//! Folders of plugin crates whose builds the user trusts while they develop the plugin.
//!
//! The trust is bound to the folder's path and owner, and holds only for a folder that no one else
//! can write to. It never trusts a file on its own: each build is trusted by its content, and the
//! trust in the previous build ends.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_places::{PathProblem, PlaceError, TrustedOwners, check_folder};
use serde::{Deserialize, Serialize};

use super::record::{checked_digest, unix_seconds};
use super::{PluginTrust, RecordedTrust, TrustError, TrustStore};

/// The folder of a crate's sources.
const SOURCES: &str = "src";

/// A folder that is safe to build a trusted plugin from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevelopmentFolder {
    path: PathBuf,
    owner: u32,
}

/// The user's trust in the builds of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevelopmentTrust {
    /// The plugin's name.
    pub plugin: String,
    /// The user id of the folder's owner.
    pub owner: u32,
    /// The grants about which the user was asked.
    pub asked: BTreeSet<String>,
    /// The content of the newest build.
    pub sha256: String,
    /// When, in seconds since 1970.
    pub trusted_at_s: u64,
}

impl DevelopmentFolder {
    /// Checks a folder.
    ///
    /// # Errors
    /// If others can write to it, to its sources or to a folder above it.
    pub fn check_folder(folder: &Path) -> Result<Self, PlaceError> {
        let system =
            |error| PlaceError { path: folder.to_owned(), why: PathProblem::System(error) };
        let path = folder.canonicalize().map_err(system)?;
        let owners = TrustedOwners::this_user_and_root();
        check_folder(&path, &owners)?;
        let sources = path.join(SOURCES);
        if sources.exists() {
            check_folder(&sources, &owners)?;
        }
        let owner = path.metadata().map_err(system)?.uid();
        Ok(Self { path, owner })
    }

    /// Returns its canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn record_key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

impl TrustStore {
    /// Returns the trust in a folder's builds. There is none if the folder has another owner now,
    /// or if the user no longer trusts the newest build.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn development_trust(
        &self,
        folder: &DevelopmentFolder,
    ) -> Result<Option<DevelopmentTrust>, TrustError> {
        let trust = self.read_trust()?;
        let known = trust.development.get(&folder.record_key());
        let holds = |known: &&DevelopmentTrust| {
            known.owner == folder.owner && trust.is_plugin_trusted(&known.sha256)
        };
        Ok(known.filter(holds).cloned())
    }

    /// Trusts a build of a folder by its content, and withdraws trust in the folder's previous
    /// build. `asked` are the grants about which the user was asked.
    ///
    /// # Errors
    /// If the digest is malformed, or the record cannot be changed.
    pub fn trust_build(
        &self,
        folder: &DevelopmentFolder,
        (plugin, sha256, file): (&str, &str, &Path),
        asked: BTreeSet<String>,
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let (sha256, trusted_at_s) = (checked_digest(sha256)?, unix_seconds(now));
        let path = file.to_string_lossy().into_owned();
        let trusted = PluginTrust { name: plugin.to_owned(), path, trusted_at_s };
        let build = DevelopmentTrust {
            plugin: plugin.to_owned(),
            owner: folder.owner,
            asked,
            sha256: sha256.clone(),
            trusted_at_s,
        };
        self.file.edit_content(|trust: &mut RecordedTrust| {
            if let Some(before) = trust.development.insert(folder.record_key(), build) {
                trust.plugins.remove(&before.sha256);
            }
            trust.plugins.insert(sha256, trusted);
        })
    }
}
