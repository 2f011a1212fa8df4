//! A ground with a secret next to the allowed folders, and links that lead there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jaato_plugin_sdk_environment::files::ConfinedFiles;

use crate::support::TestFolders;

/// The content that must never be read.
pub const SECRET: &str = "CANARY";
/// The name of a file outside, which must never be listed.
pub const SECRET_NAME: &str = "canary-name";

/// The ground, its open allowed folders, and the original state of the files outside.
pub struct EscapeTrap {
    pub ground: TestFolders,
    pub confined: ConfinedFiles,
    before: BTreeMap<String, String>,
}

impl EscapeTrap {
    pub fn new() -> Self {
        let ground = TestFolders::new();
        ground.put_file("outside/secret.txt", SECRET);
        ground.put_file("outside/canary-name", SECRET);
        ground.put_file("outside/deep/secret.txt", SECRET);
        ground.put_file("work-beside/secret.txt", SECRET);
        ground.put_file("secret.txt", SECRET);
        ground.put_file("work/file.txt", "inside");
        ground.put_file("work/folder/in/file.txt", "inside");
        ground.put_file("second/file.txt", "second");
        ground.put_file("fixed/file.txt", "fixed");
        let outside = ground.path("outside");
        ground.make_link(outside.join("secret.txt"), "work/absolute_file");
        ground.make_link(&outside, "work/absolute_folder");
        ground.make_link("../outside/secret.txt", "work/relative_file");
        ground.make_link("../outside", "work/relative_folder");
        ground.make_link("chain_2", "work/chain_1");
        ground.make_link("folder/chain_3", "work/chain_2");
        ground.make_link(&outside, "work/folder/chain_3");
        ground.make_link("../../../outside", "work/folder/in/up");
        ground.make_link("loop_2", "work/loop_1");
        ground.make_link("loop_1", "work/loop_2");
        ground.make_link("../outside/new.txt", "work/dangling");
        ground.make_link(outside.join("new"), "work/dangling_folder");
        ground.make_link("/proc/self/root", "work/proc_root");
        ground.make_link("/proc/self/cwd", "work/proc_cwd");
        ground.make_link("/dev/fd", "work/descriptors");
        ground.make_link("/proc/self/fd/0", "work/descriptor");
        ground.make_link("/", "work/top");
        ground.make_link("..", "work/above");
        ground.make_link("folder/../../outside", "work/through");
        ground.make_link(&outside, "second/absolute_folder");
        ground.make_link(&outside, "fixed/absolute_folder");
        let confined = ground.open_confined();
        let (temporary, _) = confined.temporary_folder().unwrap();
        std::os::unix::fs::symlink(&outside, temporary.join("absolute_folder")).unwrap();
        std::os::unix::fs::symlink("../../outside", temporary.join("relative_folder")).unwrap();
        let before = outside_of(&ground);
        Self { ground, confined, before }
    }

    pub fn temporary_path(&self) -> String {
        self.confined.temporary_folder().unwrap().0.display().to_string()
    }

    /// Fails if a file outside has changed, or if the text contains the secret.
    #[track_caller]
    pub fn check_untouched(&self, what: &str, told: &str) {
        assert!(!told.contains(SECRET) && !told.contains(SECRET_NAME), "{what} told {told}");
        assert_eq!(outside_of(&self.ground), self.before, "{what} changed what is outside");
    }
}

/// Returns everything next to the allowed folders.
fn outside_of(ground: &TestFolders) -> BTreeMap<String, String> {
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
