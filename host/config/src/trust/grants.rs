//! The user's grants to plugins, separate from trust: `grants.json`.
//!
//! A grant is bound to the plugin's name and the content of its file, so a replaced file has no
//! grants. A running host notices grants and revocations of other processes by the record's stamp.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::TrustError;
use super::record::{RECORD_VERSION, RecordFile, RecordKind, checked_digest, unix_seconds};

/// The record of plugins' grants, in one of the user's folders.
#[derive(Debug, Clone)]
pub struct GrantStore {
    file: RecordFile,
}

/// The content of the record at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedGrants {
    version: u64,
    /// Plugins by the SHA-256 of their file.
    pub plugins: BTreeMap<String, PluginGrants>,
}

/// The grants of one plugin file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginGrants {
    /// The plugin's name. The same file under another name has no grants.
    pub name: String,
    /// The names of the grants.
    pub services: BTreeSet<String>,
    /// When the latest of them was granted, in seconds since 1970.
    pub granted_at_s: u64,
}

/// The record for a running host, which reads it again only when its stamp changes.
#[derive(Debug)]
pub struct LiveGrants {
    store: GrantStore,
    seen: Mutex<Option<GrantsSnapshot>>,
}

/// The content of the record, and the stamp of its file at that time.
#[derive(Debug, Clone)]
struct GrantsSnapshot {
    stamp: Option<GrantFileStamp>,
    grants: Result<Arc<RecordedGrants>, Arc<TrustError>>,
}

/// The metadata that the system changes whenever the file changes or is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GrantFileStamp {
    bytes: u64,
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Default for RecordedGrants {
    fn default() -> Self {
        Self { version: RECORD_VERSION, plugins: BTreeMap::new() }
    }
}

impl RecordedGrants {
    /// Returns true if the plugin with this name and content has this grant.
    pub fn has_grant(&self, plugin: &str, sha256: &str, grant: &str) -> bool {
        let granted = self.plugins.get(&sha256.to_ascii_lowercase());
        granted.is_some_and(|granted| granted.name == plugin && granted.services.contains(grant))
    }

    /// Returns the latest grants of any content under this name.
    fn latest_grants(&self, plugin: &str) -> Option<&PluginGrants> {
        let named = self.plugins.values().filter(|granted| granted.name == plugin);
        named.max_by_key(|granted| granted.granted_at_s)
    }
}

impl GrantStore {
    /// Returns the record in a folder, which the first write creates.
    pub fn in_folder(folder: &Path) -> Self {
        Self { file: RecordFile::new(folder, RecordKind::Grants) }
    }

    /// Returns the file of the record.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// Reads the record. A missing record contains no grants.
    pub fn read_grants(&self) -> Result<RecordedGrants, TrustError> {
        self.file.read_content()
    }

    /// Grants services to a plugin's content, in addition to its existing grants.
    pub fn grant_services<'a>(
        &self,
        plugin: &str,
        sha256: &str,
        services: impl IntoIterator<Item = &'a str>,
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let sha256 = checked_digest(sha256)?;
        let added = services.into_iter().map(str::to_owned).collect();
        self.move_grants(plugin, Some(&sha256), &sha256, added, now)
    }

    /// Moves a plugin's grants from its previous content to this one, and adds services.
    pub fn move_grants(
        &self,
        plugin: &str,
        before: Option<&str>,
        sha256: &str,
        added: BTreeSet<String>,
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let sha256 = checked_digest(sha256)?;
        self.file.edit_content(|grants: &mut RecordedGrants| {
            let before = before.and_then(|before| grants.plugins.remove(before));
            let kept = before.filter(|granted| granted.name == plugin);
            let services = kept.map(|kept| kept.services).unwrap_or_default();
            let services: BTreeSet<String> = services.into_iter().chain(added).collect();
            if !services.is_empty() {
                grants.plugins.insert(sha256, PluginGrants::new(plugin, services, now));
            }
        })
    }

    /// Revokes services from every content under a plugin's name, or all services if none are
    /// named. Otherwise a grant of an older file would return with that file. Returns the revoked
    /// services.
    pub fn revoke_services(
        &self,
        plugin: &str,
        services: &[&str],
    ) -> Result<BTreeSet<String>, TrustError> {
        self.file.edit_content(|grants: &mut RecordedGrants| {
            let mut taken = BTreeSet::new();
            let is_meant = |name: &String| services.is_empty() || services.contains(&name.as_str());
            for granted in grants.plugins.values_mut().filter(|granted| granted.name == plugin) {
                taken.extend(granted.services.extract_if(.., is_meant));
            }
            grants.plugins.retain(|_, granted| !granted.services.is_empty());
            taken
        })
    }

    /// Gives a trusted content the latest grants of an earlier one with the same name. Returns
    /// those. Returns nothing if this content already has grants.
    pub fn carry_over_grants(
        &self,
        plugin: &str,
        sha256: &str,
        now: SystemTime,
    ) -> Result<BTreeSet<String>, TrustError> {
        let sha256 = checked_digest(sha256)?;
        // Most plugins have no grants. Then no file is made.
        let known = self.read_grants()?;
        let is_new = known.plugins.get(&sha256).is_none_or(|granted| granted.name != plugin);
        if !is_new || known.latest_grants(plugin).is_none() {
            return Ok(BTreeSet::new());
        }
        self.file.edit_content(|grants: &mut RecordedGrants| {
            let latest = grants.latest_grants(plugin).map(|granted| granted.services.clone());
            let services = latest.unwrap_or_default();
            grants.plugins.insert(sha256, PluginGrants::new(plugin, services.clone(), now));
            services
        })
    }
}

impl PluginGrants {
    fn new(plugin: &str, services: BTreeSet<String>, now: SystemTime) -> Self {
        Self { name: plugin.to_owned(), services, granted_at_s: unix_seconds(now) }
    }
}

impl LiveGrants {
    /// Uses the record of a store, without reading it yet.
    pub fn new(store: GrantStore) -> Self {
        Self { store, seen: Mutex::new(None) }
    }

    /// Returns the current content of the record. Checks the file's metadata each time, and reads
    /// the file if it changed.
    ///
    /// # Errors
    /// The problem with the record. No grant holds then.
    pub fn current_grants(&self) -> Result<Arc<RecordedGrants>, Arc<TrustError>> {
        let mut seen = self.seen.lock();
        // Taken before the file is read, so that the next call notices a change during the read.
        let stamp = GrantFileStamp::read_stamp(&self.store.path());
        if let Some(seen) = seen.as_ref().filter(|seen| seen.stamp == stamp) {
            return seen.grants.clone();
        }
        let grants = self.store.read_grants().map(Arc::new).map_err(Arc::new);
        *seen = Some(GrantsSnapshot { stamp, grants: grants.clone() });
        grants
    }
}

impl GrantFileStamp {
    fn read_stamp(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            bytes: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
