//! A ground with a secret next to the allowed folders, and links that lead there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jaato_plugin_sdk_environment::files::ConfinedFiles;

use crate::support::Ground;

/// The content that must never be read.
pub const SECRET: &str = "CANARY";
/// The name of a file outside, which must never be listed.
pub const SECRET_NAME: &str = "canary-name";

/// The ground, its open allowed folders, and the original state of the files outside.
pub struct Trap {
    pub ground: Ground,
    pub confined: ConfinedFiles,
    before: BTreeMap<String, String>,
}

impl Trap {
    pub fn new() -> Self {
        let ground = Ground::new();
        ground.put("outside/secret.txt", SECRET);
        ground.put("outside/canary-name", SECRET);
        ground.put("outside/deep/secret.txt", SECRET);
        ground.put("work-beside/secret.txt", SECRET);
        ground.put("secret.txt", SECRET);
        ground.put("work/file.txt", "inside");
        ground.put("work/folder/in/file.txt", "inside");
        ground.put("second/file.txt", "second");
        ground.put("fixed/file.txt", "fixed");
        let outside = ground.path("outside");
        ground.link(outside.join("secret.txt"), "work/absolute_file");
        ground.link(&outside, "work/absolute_folder");
        ground.link("../outside/secret.txt", "work/relative_file");
        ground.link("../outside", "work/relative_folder");
        ground.link("chain_2", "work/chain_1");
        ground.link("folder/chain_3", "work/chain_2");
        ground.link(&outside, "work/folder/chain_3");
        ground.link("../../../outside", "work/folder/in/up");
        ground.link("loop_2", "work/loop_1");
        ground.link("loop_1", "work/loop_2");
        ground.link("../outside/new.txt", "work/dangling");
        ground.link(outside.join("new"), "work/dangling_folder");
        ground.link("/proc/self/root", "work/proc_root");
        ground.link("/proc/self/cwd", "work/proc_cwd");
        ground.link("/dev/fd", "work/descriptors");
        ground.link("/proc/self/fd/0", "work/descriptor");
        ground.link("/", "work/top");
        ground.link("..", "work/above");
        ground.link("folder/../../outside", "work/through");
        ground.link(&outside, "second/absolute_folder");
        ground.link(&outside, "fixed/absolute_folder");
        let confined = ground.open();
        let (temporary, _) = confined.temporary_folder().unwrap();
        std::os::unix::fs::symlink(&outside, temporary.join("absolute_folder")).unwrap();
        std::os::unix::fs::symlink("../../outside", temporary.join("relative_folder")).unwrap();
        let before = outside_of(&ground);
        Self { ground, confined, before }
    }

    pub fn temporary(&self) -> String {
        self.confined.temporary_folder().unwrap().0.display().to_string()
    }

    /// Fails if a file outside has changed, or if the text contains the secret.
    #[track_caller]
    pub fn check(&self, what: &str, told: &str) {
        assert!(!told.contains(SECRET) && !told.contains(SECRET_NAME), "{what} told {told}");
        assert_eq!(outside_of(&self.ground), self.before, "{what} changed what is outside");
    }
}

/// Returns everything next to the allowed folders.
fn outside_of(ground: &Ground) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect_entries(ground.folder.path(), &mut found, |name| {
        matches!(name, "work" | "second" | "fixed" | "base")
    });
    found
}

fn collect_entries(
    folder: &Path,
    found: &mut BTreeMap<String, String>,
    is_left_out: fn(&str) -> bool,
) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if is_left_out(path.file_name().unwrap().to_str().unwrap()) {
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content =
            if metadata.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
        let facts = format!(
            "{content} {:o} {} {}.{}",
            metadata.mode(),
            metadata.ino(),
            metadata.mtime(),
            metadata.mtime_nsec()
        );
        found.insert(path.display().to_string(), facts);
        if metadata.is_dir() {
            collect_entries(&path, found, |_| false);
        }
    }
}
