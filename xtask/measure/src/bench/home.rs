//! A home folder of its own for the `jaato` that is measured: nothing of the person's own plugins,
//! configuration and caches is seen or changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask::workspace::Workspace;

/// An empty home and a working directory in it. Taken away when it is dropped.
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// Makes one below the target folder; what an interrupted run left there goes first.
    pub fn new(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target.join("bench").join(name);
        if folder.exists() {
            let removed = fs::remove_dir_all(&folder);
            removed.with_context(|| format!("removing `{}`", folder.display()))?;
        }
        let home = Self { folder };
        // The mark of a workspace keeps the search for one from going further up.
        let mark = home.work().join(".git");
        fs::create_dir_all(&mark).with_context(|| format!("making `{}`", mark.display()))?;
        fs::create_dir_all(home.user())
            .with_context(|| format!("making `{}`", home.user().display()))?;
        Ok(home)
    }

    /// A folder beside the home, for what the bench needs.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where `jaato` keeps what can be made again.
    pub fn cache(&self) -> PathBuf {
        let caches = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
        self.user().join(caches).join("jaato")
    }

    /// A command that sees this home and hardly any variable.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.work()).env("HOME", self.user());
        // Else only root may look at what memory it holds.
        command.env("JAATO_DUMPABLE", "1");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    /// The person's home folder.
    pub fn user(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.folder.join("work")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The next run tries again, and says so when it cannot.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_an_earlier_run_are_gone_and_nothing_is_left_behind() {
        let target = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: PathBuf::new(),
            target: target.path().to_owned(),
            packages: Vec::new(),
        };
        let stale = target.path().join("bench/x/home/stale");
        fs::create_dir_all(&stale).unwrap();
        let home = Home::new(&workspace, "x").unwrap();
        assert!(!stale.exists() && home.user().is_dir() && home.work().join(".git").is_dir());
        drop(home);
        assert!(!target.path().join("bench/x").exists());
    }
}
