//! How much of a store is used, remembered so that not every write goes through all values.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jaato_types::store::{BYTES_MAX, KEYS_MAX};
use parking_lot::Mutex;

/// Stores whose use is remembered; with one more, all are forgotten.
const STORES_MAX: usize = 256;

/// What the values of a store come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub keys: usize,
    pub bytes: u64,
}

/// What was counted last, by the folder of the values.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<HashMap<PathBuf, (Stamp, Used)>>);

/// When the folder last changed: each write of any process changes it.
type Stamp = (i64, i64);

impl Used {
    /// Returns true where so much is used that it must be counted: what is remembered may be off
    /// by what others wrote within one tick of the file system's clock.
    fn is_much(self) -> bool {
        self.keys > KEYS_MAX / 8 * 7 || self.bytes > BYTES_MAX / 8 * 7
    }
}

impl Remembered {
    /// Returns what is used, where nothing was written since and there is much room.
    pub(super) fn recall(&self, folder: &Path) -> Option<Used> {
        let stamp = stamp(folder)?;
        let known = self.0.lock().get(folder).copied();
        let used = known.filter(|(seen, _)| *seen == stamp).map(|(_, used)| used);
        used.filter(|used| !used.is_much())
    }

    /// Remembers what is used after a write.
    pub(super) fn note(&self, folder: &Path, used: Used) {
        let Some(stamp) = stamp(folder) else { return };
        let mut known = self.0.lock();
        if known.len() >= STORES_MAX {
            known.clear();
        }
        known.insert(folder.to_owned(), (stamp, used));
    }
}

fn stamp(folder: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(folder).ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec()))
}
