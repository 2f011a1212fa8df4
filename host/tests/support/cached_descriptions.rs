//! Descriptions of the shipped plugins and of the scripted provider, created once per test program,
//! so that no installation has to describe its copies of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{House, fixtures, set_mode};

/// The cache's content without entries, and the entry of each file that is copied into
/// installations.
#[derive(Default)]
struct WarmCache {
    cache: Value,
    entries: BTreeMap<PathBuf, Value>,
}

/// Adds the description of a copied plugin to the installation's cache, if it is known.
pub fn add_description(house: &House, original: &Path, copy: &Path) {
    static WARM: OnceLock<WarmCache> = OnceLock::new();
    let warm = WARM.get_or_init(|| describe_warm().unwrap_or_default());
    let Some(mut entry) = warm.entries.get(original).cloned() else { return };
    entry["stamp"] = file_stamp(copy);
    let path = house.descriptions_file();
    let mut cache = read_json(&path).unwrap_or_else(|| warm.cache.clone());
    cache["entries"][copy.display().to_string()] = entry;
    fs::create_dir_all(house.cache_folder()).unwrap();
    set_mode(&house.cache_folder(), 0o700);
    fs::write(&path, cache.to_string()).unwrap();
    set_mode(&path, 0o600);
}

/// Lets one jaato describe all of them.
fn describe_warm() -> Option<WarmCache> {
    let house = House::without_plugins()?;
    let shipped = fs::read_dir(fixtures::test_house()?.join("plugins")).unwrap();
    let mut originals: Vec<PathBuf> = shipped.map(|entry| entry.unwrap().path()).collect();
    originals.push(fixtures::built_library("provider_scripted"));
    let copies: Vec<PathBuf> =
        originals.iter().map(|original| house.copy_to_shipped(original)).collect();
    house.run(&["tool", "list"]).code(0);
    let mut cache = read_json(&house.descriptions_file())?;
    let mut entries = cache["entries"].take();
    let mut entry = |copy: &PathBuf| entries[copy.display().to_string()].take();
    let entries = originals.into_iter().zip(copies.iter().map(&mut entry)).collect();
    cache["entries"] = json!({});
    Some(WarmCache { cache, entries })
}

/// Returns a file's state in the cache's format.
fn file_stamp(file: &Path) -> Value {
    let file = fs::metadata(file).unwrap();
    let nanoseconds = |seconds: i64, rest: i64| seconds * 1_000_000_000 + rest;
    json!({
        "size": file.len(),
        "modified_ns": nanoseconds(file.mtime(), file.mtime_nsec()),
        "changed_ns": nanoseconds(file.ctime(), file.ctime_nsec()),
        "inode": file.ino(),
    })
}

fn read_json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
