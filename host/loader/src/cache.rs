//! The cache of manifests and descriptions, so that a start opens no plugin files.
//!
//! The cache is one JSON file. An entry is valid for exactly one state of a file (path, size,
//! times, inode) and one host version. It is used only for listing: a file is read again before the
//! host opens it for calls. An unreadable cache is rebuilt, because everything in it comes from the
//! plugin files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_places::PlaceError;
use jaato_types::{Description, Error, Manifest};
use serde::{Deserialize, Serialize};

/// Version of the cache format. A file of another version is rebuilt.
const VERSION: u32 = 1;

/// Largest cache file that is read, in bytes. 1,000 plugins with 100 tools each need less.
const CACHE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The state of a file for which an entry is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginFileStamp {
    size: u64,
    modified_ns: u64,
    changed_ns: i64,
    inode: u64,
}

/// The known facts about one plugin file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DescriptionEntry {
    stamp: PluginFileStamp,
    /// The embedded manifest.
    pub manifest: Manifest,
    /// SHA-256 of the content in hex, if it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The result of the describing child, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub described: Option<DescribeOutcome>,
}

/// The result of describing a plugin. Failures are kept as well, so that a describe that hangs
/// waits for its deadline only once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DescribeOutcome {
    /// The description.
    Ok(Box<Description>),
    /// The reason why describing failed.
    Failed(Error),
}

/// The cache. Read once, and written if something changed.
#[derive(Debug)]
pub struct DescriptionCache {
    path: PathBuf,
    host_version: String,
    /// Keyed by path as text: paths are slow to compare, and JSON keys must be text.
    entries: BTreeMap<String, DescriptionEntry>,
    is_changed: bool,
    /// Why the file is not used.
    problem: Option<PlaceError>,
}

#[derive(Serialize, Deserialize)]
struct DescriptionCacheFile {
    v: u32,
    host_version: String,
    entries: BTreeMap<String, DescriptionEntry>,
}

impl PluginFileStamp {
    /// Returns the current state of a file.
    ///
    /// # Errors
    /// If the file's metadata cannot be read.
    pub fn read_stamp(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let modified = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH);
        let (changed_ns, inode) = unix_stamp(&metadata);
        Ok(Self {
            size: metadata.len(),
            // Nanoseconds since 1970 overflow 64 bits in 2554.
            modified_ns: modified.map_or(0, |time| time.as_nanos() as u64),
            changed_ns,
            inode,
        })
    }
}

/// Returns the inode and its change time, which no one can set, unlike the modification time.
fn unix_stamp(metadata: &fs::Metadata) -> (i64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    let nanoseconds = metadata.ctime().saturating_mul(1_000_000_000);
    (nanoseconds.saturating_add(metadata.ctime_nsec()), metadata.ino())
}

impl DescriptionEntry {
    /// Creates an entry with only the manifest.
    pub fn new(stamp: PluginFileStamp, manifest: Manifest) -> Self {
        Self { stamp, manifest, sha256: None, described: None }
    }

    /// Returns the file state for which the entry is valid.
    pub fn stamp(&self) -> &PluginFileStamp {
        &self.stamp
    }
}

impl DescriptionCache {
    /// Reads the cache. A missing, damaged or outdated cache counts as empty. So does a cache that
    /// another user could have written, because its content decides which tools a model gets and
    /// which calls need a prompt.
    pub fn read_cache(path: PathBuf, host_version: &str) -> Self {
        let (entries, problem) = match jaato_places::read_own_file(&path, CACHE_BYTES_MAX) {
            Ok(Some(text)) => (parse_entries(&text, host_version).unwrap_or_default(), None),
            Ok(None) => (BTreeMap::new(), None),
            Err(problem) => (BTreeMap::new(), Some(problem)),
        };
        Self { path, host_version: host_version.to_owned(), entries, is_changed: false, problem }
    }

    /// Returns why the file is neither read nor written.
    pub fn read_problem(&self) -> Option<&PlaceError> {
        self.problem.as_ref()
    }

    /// Returns the latest entry of a file, whatever the file's current state is.
    pub fn latest_entry(&self, path: &Path) -> Option<&DescriptionEntry> {
        self.entries.get(path.to_str()?)
    }

    /// Removes and returns the entry for a file in its current state. A caller that writes the
    /// cache later must put the entry back. Copying all entries would cost a start with many
    /// plugins more than reading them.
    pub fn take_entry(&mut self, path: &Path, stamp: &PluginFileStamp) -> Option<DescriptionEntry> {
        let path = path.to_str()?;
        if self.entries.get(path)?.stamp != *stamp {
            return None;
        }
        self.entries.remove(path)
    }

    /// Stores an entry. A path that is not UTF-8 cannot be a JSON key and is not stored.
    pub fn store_entry(&mut self, path: &Path, entry: DescriptionEntry) {
        let Some(path) = path.to_str() else { return };
        self.is_changed = true;
        self.entries.insert(path.to_owned(), entry);
    }

    /// Writes the cache if something changed, to a temporary file that is then renamed. Omits
    /// entries of missing files.
    ///
    /// # Errors
    /// If the cache cannot be written. The host works without it.
    pub fn write(&mut self) -> io::Result<()> {
        if !self.is_changed || self.problem.is_some() {
            return Ok(());
        }
        self.entries.retain(|path, _| Path::new(path).exists());
        let on_disk = DescriptionCacheFile {
            v: VERSION,
            host_version: self.host_version.clone(),
            entries: std::mem::take(&mut self.entries),
        };
        let text = serde_json::to_vec(&on_disk);
        self.entries = on_disk.entries;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        jaato_places::make_own_folder(folder)?;
        let beside = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let text = text?;
        let mut options = fs::OpenOptions::new();
        let written =
            jaato_places::open_own_file(&beside, options.write(true).create(true).truncate(true))
                .map_err(io::Error::from)
                .and_then(|mut file| io::Write::write_all(&mut file, &text))
                .and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            // Best effort: the folder may be gone or full.
            let _ = fs::remove_file(&beside);
        }
        written?;
        self.is_changed = false;
        Ok(())
    }
}

fn parse_entries(text: &[u8], host_version: &str) -> Option<BTreeMap<String, DescriptionEntry>> {
    let on_disk: DescriptionCacheFile = serde_json::from_slice(text).ok()?;
    (on_disk.v == VERSION && on_disk.host_version == host_version).then_some(on_disk.entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest::parse(br#"{"v":1,"name":"moon","version":"1","api":"1.0.0","kinds":["tool"]}"#)
            .unwrap()
    }

    #[test]
    fn an_entry_holds_for_one_state_of_the_file_and_one_host() {
        let folder = tempfile::tempdir().unwrap();
        let (plugin, path) =
            (folder.path().join("moon.so"), folder.path().join("c/descriptions.json"));
        fs::write(&plugin, "one").unwrap();
        let stamp = PluginFileStamp::read_stamp(&plugin).unwrap();
        let mut cache = DescriptionCache::read_cache(path.clone(), "1");
        let mut entry = DescriptionEntry::new(stamp.clone(), manifest());
        entry.described = Some(DescribeOutcome::Failed(Error::failed("it hangs")));
        cache.store_entry(&plugin, entry.clone());
        cache.write().unwrap();

        assert_eq!(
            DescriptionCache::read_cache(path.clone(), "1").take_entry(&plugin, &stamp),
            Some(entry)
        );
        assert_eq!(
            DescriptionCache::read_cache(path.clone(), "2").take_entry(&plugin, &stamp),
            None
        );
        fs::write(&plugin, "three").unwrap();
        let changed = PluginFileStamp::read_stamp(&plugin).unwrap();
        assert_eq!(DescriptionCache::read_cache(path, "1").take_entry(&plugin, &changed), None);
    }

    #[test]
    fn a_cache_that_others_could_write_is_neither_read_nor_written() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (plugin, path) =
            (folder.path().join("moon.so"), folder.path().join("c/descriptions.json"));
        fs::write(&plugin, "one").unwrap();
        let stamp = PluginFileStamp::read_stamp(&plugin).unwrap();
        let entry = DescriptionEntry::new(stamp.clone(), manifest());
        let mut cache = DescriptionCache::read_cache(path.clone(), "1");
        cache.store_entry(&plugin, entry.clone());
        cache.write().unwrap();
        assert!(cache.read_problem().is_none());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        let mut cache = DescriptionCache::read_cache(path.clone(), "1");
        assert_eq!(cache.take_entry(&plugin, &stamp), None);
        assert!(cache.read_problem().unwrap().to_string().contains("(mode 620)"));
        let before = fs::read(&path).unwrap();
        cache.store_entry(&plugin, DescriptionEntry { sha256: Some("0".into()), ..entry });
        cache.write().unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_damaged_cache_counts_as_empty_and_files_that_are_gone_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (plugin, path) =
            (folder.path().join("moon.so"), folder.path().join("descriptions.json"));
        fs::write(&path, "{\"v\":1,").unwrap();
        fs::write(&plugin, "one").unwrap();
        let stamp = PluginFileStamp::read_stamp(&plugin).unwrap();
        let mut cache = DescriptionCache::read_cache(path.clone(), "1");
        cache.store_entry(&plugin, DescriptionEntry::new(stamp.clone(), manifest()));
        fs::remove_file(&plugin).unwrap();
        cache.write().unwrap();
        assert_eq!(DescriptionCache::read_cache(path, "1").take_entry(&plugin, &stamp), None);
    }
}
