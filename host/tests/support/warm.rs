//! Descriptions of plugins that an earlier house of this test program has made: each shipped plugin
//! is described once, and not by every test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// The entry of each plugin file of which houses have copies, and the cache without its entries.
static KNOWN: Mutex<(BTreeMap<PathBuf, Value>, Value)> = Mutex::new((BTreeMap::new(), Value::Null));

/// A plugin file that a house has copied.
pub struct PluginCopy {
    path: PathBuf,
    original: PathBuf,
    /// The state of the copy when it was made, as the cache has it.
    stamp: Value,
}

impl PluginCopy {
    /// Adds the copy's entry to its house's cache, if an earlier house has described the original.
    pub fn new(path: &Path, original: &Path, cache: &Path) -> Self {
        let copy =
            Self { path: path.to_owned(), original: original.to_owned(), stamp: stamp(path) };
        copy.add_entry(cache);
        copy
    }

    fn add_entry(&self, cache: &Path) {
        let known = KNOWN.lock();
        let Some(mut entry) = known.0.get(&self.original).cloned() else { return };
        entry["stamp"] = self.stamp.clone();
        let mut content = read_cache(cache).unwrap_or_else(|| known.1.clone());
        content["entries"][self.path.display().to_string()] = entry;
        let folder = cache.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        super::set_mode(folder, 0o700);
        fs::write(cache, content.to_string()).unwrap();
        super::set_mode(cache, 0o600);
    }

    /// Remembers how the house's jaato described the copy, unless a test has changed the copy.
    pub fn remember(&self, cache: &Path) {
        let Some(mut content) = read_cache(cache) else { return };
        let entry = content["entries"][self.path.display().to_string()].take();
        if entry["stamp"] == self.stamp && entry["described"].get("ok").is_some() {
            let mut known = KNOWN.lock();
            known.0.entry(self.original.clone()).or_insert(entry);
            content["entries"] = json!({});
            known.1 = content;
        }
    }
}

fn stamp(file: &Path) -> Value {
    let file = fs::metadata(file).unwrap();
    let nanoseconds = |seconds: i64, rest: i64| seconds * 1_000_000_000 + rest;
    json!({
        "size": file.len(),
        "modified_ns": nanoseconds(file.mtime(), file.mtime_nsec()),
        "changed_ns": nanoseconds(file.ctime(), file.ctime_nsec()),
        "inode": file.ino(),
    })
}

fn read_cache(cache: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(cache).ok()?).ok()
}
