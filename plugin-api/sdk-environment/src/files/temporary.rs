//! The temporary folder of an environment.
//!
//! Its owner holds a lock (`flock`) on the folder itself, which the system releases however the
//! owner ends. A folder with jaato's name and without a lock was left behind, and is removed.
//! Process ids would not work, because they are reused and each container has its own. A lock file
//! would not work either, because the folder's users could delete it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jaato_types::files::FileKind;
use jaato_types::{Error, ErrorKind, Result};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;

use super::folder::{ListedFolder, open_folder_in};
use super::limits::RACES_MAX;
use super::removal::delete_folder;
use super::settings::{AllowedFolder, FolderAccess, TemporarySettings};
use crate::engine::NameOrder;
use crate::errors::FileOperationVerb;
use crate::platform::FileMetadata;

/// The prefix of the names. The user id and a random number follow.
const PREFIX: &str = "jaato-environment-";

/// The maximum number of abandoned folders that one start removes, so that the start stays fast.
const SWEEP_MAX: usize = 64;

/// A temporary folder, which is removed with this value.
#[derive(Debug)]
pub(crate) struct SelfRemovingFolder {
    base: OwnedFd,
    name: OsString,
    host: PathBuf,
    shown: PathBuf,
    /// Holds the lock.
    _handle: OwnedFd,
    is_removed: AtomicBool,
}

impl SelfRemovingFolder {
    /// Removes abandoned folders, and creates a folder that only its owner can access.
    pub(crate) fn create_folder(settings: &TemporarySettings) -> Result<Self> {
        let base_path = settings.base.clone().unwrap_or_else(std::env::temp_dir);
        let failed = |errno: Errno| {
            let reason = match errno {
                Errno::NOENT => "folder not found".to_owned(),
                other => std::io::Error::from(other).kind().to_string(),
            };
            let text =
                format!("cannot create a temporary folder in `{}`: {reason}", base_path.display());
            Error::new(ErrorKind::Configuration, text)
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = openat(CWD, &base_path, flags, Mode::empty()).map_err(failed)?;
        let prefix = format!("{PREFIX}{}-", rustix::process::geteuid().as_raw());
        // The next start tries again to remove what is left.
        let _ = remove_abandoned_folders(&base, prefix.as_bytes());
        let real = base_path.canonicalize().map_err(|_| failed(Errno::NOENT))?;
        for _ in 0..RACES_MAX {
            let number = getrandom::u64().map_err(|_| failed(Errno::IO))?;
            let name = OsString::from(format!("{prefix}{number:016x}"));
            match mkdirat(&base, &name, Mode::from_raw_mode(0o700)) {
                Err(Errno::EXIST) => continue,
                made => made.map_err(failed)?,
            }
            let Some(handle) = open_locked_folder(&base, &name).map_err(failed)? else { continue };
            let host = real.join(&name);
            let shown = settings.shown.clone().unwrap_or_else(|| base_path.join(&name));
            let is_removed = AtomicBool::new(false);
            return Ok(Self { base, name, host, shown, _handle: handle, is_removed });
        }
        Err(failed(Errno::EXIST))
    }

    pub(crate) fn host_path(&self) -> &Path {
        &self.host
    }

    pub(crate) fn display_path(&self) -> &Path {
        &self.shown
    }

    /// Returns the folder as an allowed folder.
    pub(crate) fn as_allowed_folder(&self) -> AllowedFolder {
        AllowedFolder {
            host: self.host.clone(),
            shown: self.shown.clone(),
            access: FolderAccess::Write,
        }
    }

    /// Removes the folder with its content.
    pub(crate) fn remove_folder(&self) -> Result<()> {
        if self.is_removed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match delete_folder(&self.base, &self.name, &self.host, FileOperationVerb::Delete) {
            Err(Error { kind: ErrorKind::NotFound, .. }) => Ok(()),
            other => other,
        }
    }
}

impl Drop for SelfRemovingFolder {
    fn drop(&mut self) {
        // The next start removes what is left.
        let _ = self.remove_folder();
    }
}

/// Locks a folder. Returns `None` if another process holds the lock or has removed the folder.
fn open_locked_folder(base: impl AsFd, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    let folder = match open_folder_in(base.as_fd(), name) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(errno),
    }
    // Another process may have removed the folder before this lock was acquired.
    let there = match statat(base, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => FileMetadata::from(&there),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let ours = FileMetadata::from(&fstat(&folder)?);
    Ok((there.identity == ours.identity).then_some(folder))
}

/// Removes the user's folders that are not locked.
fn remove_abandoned_folders(base: &OwnedFd, prefix: &[u8]) -> rustix::io::Result<()> {
    let mut folder =
        ListedFolder::read_listed(open_folder_in(base, OsStr::new("."))?, NameOrder::No)?;
    let user = rustix::process::geteuid().as_raw();
    let mut swept = 0;
    while let Some((name, kind)) = folder.names.next() {
        if kind != FileKind::Folder || !name.as_encoded_bytes().starts_with(prefix) {
            continue;
        }
        let name = name.to_owned();
        let Ok(Some(left)) = open_locked_folder(base, &name) else { continue };
        if fstat(&left).is_ok_and(|stat| stat.st_uid == user) {
            // A folder that cannot be removed must not prevent the removal of others.
            let _ = delete_folder(base, &name, Path::new(&name), FileOperationVerb::Delete);
        }
        swept += 1;
        if swept == SWEEP_MAX {
            break;
        }
    }
    Ok(())
}
