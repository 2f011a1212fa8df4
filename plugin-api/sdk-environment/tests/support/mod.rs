//! Test folders, and another user to run tests as.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use jaato_plugin_sdk_environment::files::{
    AllowedFolder, ConfinedFiles, ConfinedFilesSettings, FolderAccess, TemporarySettings,
};
use tempfile::TempDir;

/// The id of a user without an account that owns nothing.
pub const NOBODY: u32 = 65_123;

/// A part of the name of the test that runs the others as that user.
pub const AS_NOBODY: &str = "for_an_ordinary_user";

/// A folder that contains allowed folders and others.
pub struct TestFolders {
    pub folder: TempDir,
}

impl TestFolders {
    /// Creates `work` and `second` to write, `fixed` to read, and `base` for temporary folders.
    pub fn new() -> Self {
        let ground = Self { folder: TempDir::new().unwrap() };
        for name in ["work", "second", "fixed", "base"] {
            fs::create_dir(ground.path(name)).unwrap();
        }
        ground
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub fn shown_path(&self, below: &str) -> String {
        self.path(below).display().to_string()
    }

    /// Writes a file, and creates its parent folders.
    pub fn put_file(&self, below: &str, content: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read_text(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }

    pub fn make_link(&self, target: impl AsRef<Path>, below: &str) {
        std::os::unix::fs::symlink(target, self.path(below)).unwrap();
    }

    pub fn settings(&self) -> ConfinedFilesSettings {
        let fixed = AllowedFolder {
            access: FolderAccess::Read,
            ..AllowedFolder::local(self.path("fixed"))
        };
        ConfinedFilesSettings {
            roots: vec![
                AllowedFolder::local(self.path("work")),
                AllowedFolder::local(self.path("second")),
                fixed,
            ],
            default_folder: self.path("work"),
            temporary: Some(TemporarySettings { base: Some(self.path("base")), shown: None }),
        }
    }

    pub fn open_confined(&self) -> ConfinedFiles {
        ConfinedFiles::open(&self.settings()).unwrap()
    }
}

/// Returns true if the tests run as root, which can read every file.
pub fn is_root() -> bool {
    let folder = TempDir::new().unwrap();
    fs::metadata(folder.path()).unwrap().uid() == 0
}

/// Runs all other tests of this binary as a user without an account, with a copy of the binary in
/// its own folder. Under root, the tests have also run as root.
pub fn run_again_as_nobody(tests_min: usize) {
    if !is_root() {
        // The tests already run as an ordinary user.
        return;
    }
    let folder = TempDir::new().unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let binary = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    for path in [folder.path(), &temporary] {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = Command::new(&binary);
    command.args(["--skip", AS_NOBODY]).current_dir(&temporary);
    command.env_clear().env("TMPDIR", &temporary).uid(NOBODY).gid(NOBODY);
    let output = command.output().expect("an ordinary user must get as far as to the folder");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let passed = stdout.rsplit("test result: ok. ").next().unwrap();
    let passed: usize = passed.split(' ').next().unwrap().parse().unwrap();
    assert!(passed >= tests_min, "{stdout}");
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
