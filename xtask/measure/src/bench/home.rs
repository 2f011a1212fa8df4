//! A separate home folder for the measured `jaato`, so that it neither sees nor changes the user's
//! plugins, configuration and caches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask::workspace::CargoWorkspace;

/// An empty home with a working directory. Dropping it removes the folder.
pub struct BenchmarkHome {
    folder: PathBuf,
}

impl BenchmarkHome {
    /// Creates a home below the target folder, and removes the rest of an interrupted run.
    pub fn new(workspace: &CargoWorkspace, name: &str) -> Result<Self> {
        let folder = workspace.target.join("bench").join(name);
        if folder.exists() {
            let removed = fs::remove_dir_all(&folder);
            removed.with_context(|| format!("removing `{}`", folder.display()))?;
        }
        let home = Self { folder };
        // The mark of a workspace, so that the search for a workspace ends here.
        let mark = home.work_folder().join(".git");
        fs::create_dir_all(&mark).with_context(|| format!("making `{}`", mark.display()))?;
        fs::create_dir_all(home.user_folder())
            .with_context(|| format!("making `{}`", home.user_folder().display()))?;
        Ok(home)
    }

    /// Returns a file or folder next to the home, for the benchmark.
    pub fn sibling_path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the folder for `jaato`'s caches.
    pub fn cache_folder(&self) -> PathBuf {
        let caches = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
        self.user_folder().join(caches).join("jaato")
    }

    /// Returns a command that uses this home and has few variables.
    pub fn isolated_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.work_folder()).env("HOME", self.user_folder());
        // Otherwise only root can read its memory statistics.
        command.env("JAATO_DUMPABLE", "1");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    /// Returns the user's home folder.
    pub fn user_folder(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Returns the working directory.
    pub fn work_folder(&self) -> PathBuf {
        self.folder.join("work")
    }
}

impl Drop for BenchmarkHome {
    fn drop(&mut self) {
        // The next run tries again, and reports a failure.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_home_removes_old_files_and_leaves_nothing_behind() {
        let target = tempfile::tempdir().unwrap();
        let workspace = CargoWorkspace {
            root: PathBuf::new(),
            target: target.path().to_owned(),
            packages: Vec::new(),
        };
        let stale = target.path().join("bench/x/home/stale");
        fs::create_dir_all(&stale).unwrap();
        let home = BenchmarkHome::new(&workspace, "x").unwrap();
        assert!(
            !stale.exists()
                && home.user_folder().is_dir()
                && home.work_folder().join(".git").is_dir()
        );
        drop(home);
        assert!(!target.path().join("bench/x").exists());
    }
}
