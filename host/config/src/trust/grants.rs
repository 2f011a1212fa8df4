//! What the person grants to plugins, beside what they trust: `grants.json`.
//!
//! A grant is bound to the plugin's name and the content of its file: a replaced file has none. A
//! running host sees what another process granted or took back, by the record's stamp.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::TrustError;
use super::record::{RECORD_VERSION, RecordFile, RecordKind, checked_digest, seconds};

/// The record of what plugins were granted, in a folder of the person's.
#[derive(Debug, Clone)]
pub struct GrantStore {
    file: RecordFile,
}

/// What the record says, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    version: u64,
    /// Plugins by the SHA-256 of their file.
    pub plugins: BTreeMap<String, PluginGrants>,
}

/// What one plugin file was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginGrants {
    /// The plugin's name. The same file under another name has nothing.
    pub name: String,
    /// The names of the grants.
    pub services: BTreeSet<String>,
    /// When the last of them was given, in seconds since 1970.
    pub granted_at_s: u64,
}

/// The record as a running host asks it: read again only when its stamp changes.
#[derive(Debug)]
pub struct LiveGrants {
    store: GrantStore,
    seen: Mutex<Option<Seen>>,
}

/// What was read, and the stamp of the file then.
#[derive(Debug, Clone)]
struct Seen {
    stamp: Option<Stamp>,
    grants: Result<Arc<Grants>, Arc<TrustError>>,
}

/// What the system changes whenever the file changes or is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    device: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Default for Grants {
    fn default() -> Self {
        Self { version: RECORD_VERSION, plugins: BTreeMap::new() }
    }
}

impl Grants {
    /// Tells whether the plugin with this name and content was granted something.
    pub fn has(&self, plugin: &str, sha256: &str, grant: &str) -> bool {
        let granted = self.plugins.get(&sha256.to_ascii_lowercase());
        granted.is_some_and(|granted| granted.name == plugin && granted.services.contains(grant))
    }

    /// Returns what was granted last to another content under this name.
    fn latest(&self, plugin: &str) -> Option<&PluginGrants> {
        let named = self.plugins.values().filter(|granted| granted.name == plugin);
        named.max_by_key(|granted| granted.granted_at_s)
    }
}

impl GrantStore {
    /// The record in a folder, which is made with the first write.
    pub fn in_folder(folder: &Path) -> Self {
        Self { file: RecordFile::new(folder, RecordKind::Grants) }
    }

    /// The file of the record.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// What the record says. No record means that nothing is granted.
    pub fn read(&self) -> Result<Grants, TrustError> {
        self.file.read()
    }

    /// Grants services to a plugin's content, beside what it has.
    pub fn grant<'a>(
        &self,
        plugin: &str,
        sha256: &str,
        services: impl IntoIterator<Item = &'a str>,
        now: SystemTime,
    ) -> Result<(), TrustError> {
        let sha256 = checked_digest(sha256)?;
        let services = services.into_iter().map(str::to_owned);
        self.file.change(|grants: &mut Grants| {
            let entry = grants.plugins.entry(sha256).or_insert_with(|| PluginGrants::of(plugin));
            if entry.name != plugin {
                *entry = PluginGrants::of(plugin);
            }
            entry.services.extend(services);
            entry.granted_at_s = seconds(now);
        })
    }

    /// Takes services back from every content under a plugin's name, all of them where none is
    /// named: what stayed with an older file would come back with it. Returns what was taken.
    pub fn revoke(&self, plugin: &str, services: &[&str]) -> Result<BTreeSet<String>, TrustError> {
        self.file.change(|grants: &mut Grants| {
            let mut taken = BTreeSet::new();
            let is_meant = |name: &String| services.is_empty() || services.contains(&name.as_str());
            for granted in grants.plugins.values_mut().filter(|granted| granted.name == plugin) {
                taken.extend(granted.services.extract_if(.., is_meant));
            }
            grants.plugins.retain(|_, granted| !granted.services.is_empty());
            taken
        })
    }

    /// Gives a content that the person trusts what an earlier one of that name was granted last.
    /// Returns that; nothing where this content has something already.
    pub fn carry_over(
        &self,
        plugin: &str,
        sha256: &str,
        now: SystemTime,
    ) -> Result<BTreeSet<String>, TrustError> {
        let sha256 = checked_digest(sha256)?;
        // Most have been granted nothing: then no file is made.
        let known = self.read()?;
        let is_new = known.plugins.get(&sha256).is_none_or(|granted| granted.name != plugin);
        if !is_new || known.latest(plugin).is_none() {
            return Ok(BTreeSet::new());
        }
        self.file.change(|grants: &mut Grants| {
            let latest = grants.latest(plugin).map(|granted| granted.services.clone());
            let services = latest.unwrap_or_default();
            let entry = PluginGrants {
                services: services.clone(),
                granted_at_s: seconds(now),
                ..PluginGrants::of(plugin)
            };
            grants.plugins.insert(sha256, entry);
            services
        })
    }
}

impl PluginGrants {
    fn of(plugin: &str) -> Self {
        Self { name: plugin.to_owned(), services: BTreeSet::new(), granted_at_s: 0 }
    }
}

impl LiveGrants {
    /// Asks the record of a store; reads nothing yet.
    pub fn new(store: GrantStore) -> Self {
        Self { store, seen: Mutex::new(None) }
    }

    /// Returns what the record says at this moment. Looks at the file's metadata each time, and
    /// reads the file when it changed.
    ///
    /// # Errors
    /// What is wrong with the record: nothing is granted then.
    pub fn now(&self) -> Result<Arc<Grants>, Arc<TrustError>> {
        let mut seen = self.seen.lock();
        // Before the file is read: a change in between shows at the next look.
        let stamp = Stamp::of(&self.store.path());
        if let Some(seen) = seen.as_ref().filter(|seen| seen.stamp == stamp) {
            return seen.grants.clone();
        }
        let grants = self.store.read().map(Arc::new).map_err(Arc::new);
        *seen = Some(Seen { stamp, grants: grants.clone() });
        grants
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
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
