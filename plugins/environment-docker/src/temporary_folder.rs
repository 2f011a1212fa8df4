//! The folder of this machine that contains an environment's temporary folder.
//!
//! It holds a file with its owner, so that the next start can find and remove it if a killed host
//! left it behind, whichever user owns the files in it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::errors;
use crate::owner::ContainerOwner;

/// The prefix of folders in the system's temporary folder.
pub const PREFIX: &str = "jaato-";

/// The prefix of folders in a workspace, which hides them.
pub const HIDDEN_PREFIX: &str = ".jaato-tmp-";

/// The file with the owner of a folder.
const OWNER_FILE: &str = ".owner";

/// The file that makes git ignore the folder and its content.
const IGNORE_FILE: (&str, &str) = (".gitignore", "*\n");

/// A temporary folder, owned by the user who runs jaato.
pub struct TemporaryFolder {
    folder: TempDir,
    path: PathBuf,
    owner: (u32, u32),
}

impl TemporaryFolder {
    /// Creates a folder that no other user can enter.
    ///
    /// # Errors
    /// `io` if the folder cannot be created.
    pub fn create_folder(base: &Path, prefix: &str) -> Result<Self> {
        let failed = |error: io::Error| {
            errors::folder_creation_error(
                &format!("a temporary folder in `{}`", base.display()),
                &error,
            )
        };
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(base).map_err(failed)?;
        let path = folder.path().canonicalize().map_err(failed)?;
        let data = path.metadata().map_err(failed)?;
        let tmp = Self { folder, path, owner: (data.uid(), data.gid()) };
        if prefix == HIDDEN_PREFIX {
            fs::write(tmp.path.join(IGNORE_FILE.0), IGNORE_FILE.1).map_err(failed)?;
        }
        if let Some(owner) = ContainerOwner::current_process() {
            fs::write(tmp.path.join(OWNER_FILE), owner.to_label()).map_err(failed)?;
        }
        Ok(tmp)
    }

    /// Returns its path on this machine, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its owner in the engine's format.
    pub fn owner(&self) -> String {
        format!("{}:{}", self.owner.0, self.owner.1)
    }

    /// Removes the folder with its content.
    ///
    /// # Errors
    /// `io` if another user of the container left files that jaato may not remove.
    pub fn close(self) -> Result<()> {
        self.folder.close().map_err(|error| {
            let text = format!("cannot remove `{}`: {error}", self.path.display());
            Error::new(ErrorKind::Io, text)
        })
    }
}

/// Removes the temporary folders in `base` whose host has ended, and returns their paths. Folders
/// that cannot be read or removed belong to other users and are left alone.
pub fn remove_leftover_folders(base: &Path) -> Vec<PathBuf> {
    let Some(me) = ContainerOwner::current_process() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let left = paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.starts_with(PREFIX) || name.starts_with(HIDDEN_PREFIX))
            && path.symlink_metadata().is_ok_and(|data| data.is_dir())
            && folder_owner(path).is_some_and(|owner| owner.has_ended(&me))
    });
    left.filter(|path| fs::remove_dir_all(path).is_ok()).collect()
}

fn folder_owner(folder: &Path) -> Option<ContainerOwner> {
    let file = folder.join(OWNER_FILE);
    // Skips files that could block the reader.
    file.symlink_metadata().ok().filter(|data| data.is_file() && data.len() < 1024)?;
    ContainerOwner::parse(&fs::read_to_string(file).ok()?)
}

#[cfg(test)]
mod tests {
    use jaato_plugin_testkit::skip;

    use super::*;

    fn leave_folder(base: &Path, name: &str, owner: &str) -> PathBuf {
        let path = base.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(OWNER_FILE), owner).unwrap();
        path
    }

    #[test]
    fn temporary_folders_of_ended_hosts_are_removed_and_others_kept() {
        if !cfg!(target_os = "linux") {
            return skip("the system does not report when a process began");
        }
        let base = tempfile::tempdir().unwrap();
        let living = TemporaryFolder::create_folder(base.path(), PREFIX).unwrap();
        let label = ContainerOwner::current_process().unwrap().to_label();
        let (rest, _) = label.rsplit_once(' ').unwrap();
        let ended = format!("{rest} 1");
        let gone = [
            leave_folder(base.path(), "jaato-a", &ended),
            leave_folder(base.path(), ".jaato-tmp-b", &ended),
        ];
        let kept = [
            leave_folder(base.path(), "other", &ended),
            leave_folder(base.path(), "jaato-c", "nonsense"),
        ];
        let target = tempfile::tempdir().unwrap();
        let real = leave_folder(target.path(), "jaato-real", &ended);
        std::os::unix::fs::symlink(&real, base.path().join("jaato-link")).unwrap();
        let mut removed = remove_leftover_folders(base.path());
        removed.sort();
        assert_eq!(removed, [gone[1].clone(), gone[0].clone()]);
        assert!(gone.iter().all(|path| !path.exists()));
        assert!(kept.iter().all(|path| path.exists()) && real.exists());
        assert!(living.path().exists());
    }

    #[test]
    fn temporary_folder_in_a_workspace_is_ignored_by_git() {
        let workspace = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(words).current_dir(workspace.path());
            // Ignores this machine's own settings.
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output()
        };
        let Ok(made) = git(&["init", "--quiet"]) else { return skip("`git` is not installed") };
        assert!(made.status.success());
        let tmp = TemporaryFolder::create_folder(workspace.path(), HIDDEN_PREFIX).unwrap();
        fs::write(tmp.path().join("result.txt"), "x").unwrap();
        fs::write(workspace.path().join("own"), "x").unwrap();
        let seen = git(&["status", "--porcelain", "--untracked-files=all"]).unwrap();
        assert_eq!(String::from_utf8(seen.stdout).unwrap(), "?? own\n");
        tmp.close().unwrap();
    }

    #[test]
    fn temporary_folder_is_removed_on_close_and_on_drop() {
        let base = tempfile::tempdir().unwrap();
        let tmp = TemporaryFolder::create_folder(base.path(), PREFIX).unwrap();
        fs::create_dir(tmp.path().join("home")).unwrap();
        tmp.close().unwrap();
        drop(TemporaryFolder::create_folder(base.path(), PREFIX).unwrap());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
