//! Remembers how much of a store is used, so that not every write counts all values.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jaato_types::store::{BYTES_MAX, KEYS_MAX};
use parking_lot::Mutex;

/// Maximum number of remembered stores. One more clears them all.
const STORES_MAX: usize = 256;

/// The size of a store's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StoreUsage {
    pub keys: usize,
    pub bytes: u64,
}

/// The last counts, by the folder of the values.
#[derive(Debug, Default)]
pub(super) struct StoreUsageCache(Mutex<HashMap<PathBuf, (FolderChangeStamp, StoreUsage)>>);

/// When the folder last changed. Each write of any process changes it.
type FolderChangeStamp = (i64, i64);

impl StoreUsage {
    /// Returns true if the store is so full that its values must be counted. The remembered size
    /// may miss writes of other processes within one tick of the file system's clock.
    fn is_above_cache_limit(self) -> bool {
        self.keys > KEYS_MAX / 8 * 7 || self.bytes > BYTES_MAX / 8 * 7
    }
}

impl StoreUsageCache {
    /// Returns the use, if nothing was written since and plenty of space is left.
    pub(super) fn recall_usage(&self, folder: &Path) -> Option<StoreUsage> {
        let stamp = folder_stamp(folder)?;
        let known = self.0.lock().get(folder).copied();
        let used = known.filter(|(seen, _)| *seen == stamp).map(|(_, used)| used);
        used.filter(|used| !used.is_above_cache_limit())
    }

    /// Records the use after a write.
    pub(super) fn record_usage(&self, folder: &Path, used: StoreUsage) {
        let Some(stamp) = folder_stamp(folder) else { return };
        let mut known = self.0.lock();
        if known.len() >= STORES_MAX {
            known.clear();
        }
        known.insert(folder.to_owned(), (stamp, used));
    }
}

fn folder_stamp(folder: &Path) -> Option<FolderChangeStamp> {
    let metadata = fs::metadata(folder).ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec()))
}
