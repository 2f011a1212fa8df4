//! The temporary folder that both sides see.
//!
//! It holds a file with its owner, so that one which a killed host left behind is found and removed at the next start.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::owner::Owner;

/// How folders among the system's temporary ones begin.
pub const PREFIX: &str = "jaato-";

/// How those in a workspace begin: out of the way of people.
pub const HIDDEN_PREFIX: &str = ".jaato-tmp-";

/// The file that tells who made a folder.
const OWNER_FILE: &str = ".owner";

/// A temporary folder, and whose it is: the owner of the files that are worked on.
pub struct Tmp {
    folder: TempDir,
    path: PathBuf,
    uid: u32,
    gid: u32,
}

impl Tmp {
    /// Makes one. Whoever may make files as anybody (root) works as the owner of the workspace; all others as themselves.
    ///
    /// # Errors
    /// Kind `io`.
    pub fn make(base: &Path, prefix: &str, workspace: &Path) -> Result<Self> {
        let failed = |error: io::Error| {
            let text = format!("cannot make a temporary folder in `{}`: {error}", base.display());
            Error::new(ErrorKind::Io, text)
        };
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(base).map_err(failed)?;
        let path = folder.path().canonicalize().map_err(failed)?;
        let mine = path.metadata().map_err(failed)?;
        let theirs = workspace.metadata().map_err(failed)?;
        let owner = if mine.uid() == 0 { &theirs } else { &mine };
        let tmp = Self { folder, uid: owner.uid(), gid: owner.gid(), path };
        if let Some(owner) = Owner::current() {
            fs::write(tmp.path.join(OWNER_FILE), owner.to_label()).map_err(failed)?;
        }
        tmp.give(&tmp.path).map_err(failed)?;
        Ok(tmp)
    }

    /// Its path on this machine, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose it is, as engines write it.
    pub fn owner(&self) -> String {
        format!("{}:{}", self.uid, self.gid)
    }

    /// Makes a folder in it.
    ///
    /// # Errors
    /// Kind `io`.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let made = fs::create_dir(&path).and_then(|()| self.give(&path));
        made.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot make `{}`: {error}", path.display()))
        })?;
        Ok(path)
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        if path.metadata()?.uid() == self.uid {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// Kind `io`, when another user of the container left something that is not ours to remove.
    pub fn close(self) -> Result<()> {
        self.folder.close().map_err(|error| {
            let text = format!("cannot remove `{}`: {error}", self.path.display());
            Error::new(ErrorKind::Io, text)
        })
    }
}

/// Removes the temporary folders in `base` whose host has ended; gives their paths. What cannot be read or removed
/// is somebody else's and left alone.
pub fn remove_left_behind(base: &Path) -> Vec<PathBuf> {
    let Some(me) = Owner::current() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let left = paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.starts_with(PREFIX) || name.starts_with(HIDDEN_PREFIX))
            && path.symlink_metadata().is_ok_and(|data| data.is_dir())
            && owner_of(path).is_some_and(|owner| owner.has_ended(&me))
    });
    left.filter(|path| fs::remove_dir_all(path).is_ok()).collect()
}

fn owner_of(folder: &Path) -> Option<Owner> {
    let file = folder.join(OWNER_FILE);
    // Nothing that would hold up who reads it.
    file.symlink_metadata().ok().filter(|data| data.is_file() && data.len() < 1024)?;
    Owner::parse(&fs::read_to_string(file).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(base: &Path, name: &str, owner: &str) -> PathBuf {
        let path = base.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(OWNER_FILE), owner).unwrap();
        path
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn folders_of_ended_hosts_are_removed_and_no_others() {
        let base = tempfile::tempdir().unwrap();
        let living = Tmp::make(base.path(), PREFIX, base.path()).unwrap();
        let label = Owner::current().unwrap().to_label();
        let (rest, _) = label.rsplit_once(' ').unwrap();
        let ended = format!("{rest} 1");
        let gone =
            [left(base.path(), "jaato-a", &ended), left(base.path(), ".jaato-tmp-b", &ended)];
        let kept = [left(base.path(), "other", &ended), left(base.path(), "jaato-c", "nonsense")];
        let target = tempfile::tempdir().unwrap();
        let real = left(target.path(), "jaato-real", &ended);
        std::os::unix::fs::symlink(&real, base.path().join("jaato-link")).unwrap();
        let mut removed = remove_left_behind(base.path());
        removed.sort();
        assert_eq!(removed, [gone[1].clone(), gone[0].clone()]);
        assert!(gone.iter().all(|path| !path.exists()));
        assert!(kept.iter().all(|path| path.exists()) && real.exists());
        assert!(living.path().exists());
    }

    #[test]
    fn it_goes_when_it_is_closed_or_dropped() {
        let base = tempfile::tempdir().unwrap();
        let tmp = Tmp::make(base.path(), PREFIX, base.path()).unwrap();
        fs::write(tmp.folder("home").unwrap().join("x"), "x").unwrap();
        tmp.close().unwrap();
        drop(Tmp::make(base.path(), PREFIX, base.path()).unwrap());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }
}
