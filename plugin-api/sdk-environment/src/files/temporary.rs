//! The temporary folder of an environment.
//!
//! Its owner holds a lock on the folder itself (`flock`), which the system gives back however the
//! owner ends. A folder with our name and nobody's lock was left behind, and is removed. Numbers of
//! processes would not do: they come again, and another container has its own. A lock file in the
//! folder would not do either: the folder's users could delete it.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jaato_types::files::FileKind;
use jaato_types::{Error, ErrorKind, Result};
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, statat,
};
use rustix::io::Errno;

use super::RACES_MAX;
use super::delete::delete_folder;
use super::errors::Verb;
use super::folder::{Folder, Sorted, open_in};
use super::roots::Handle;
use super::settings::{Access, Root, TemporarySettings};
use crate::platform::Facts;

/// What the names begin with; the user's number and a random one follow.
const PREFIX: &str = "jaato-environment-";

/// Folders that one start removes which others left behind: a start must not take long.
const SWEEP_MAX: usize = 64;

/// A folder that exists as long as this.
#[derive(Debug)]
pub(crate) struct Temporary {
    base: OwnedFd,
    name: OsString,
    host: PathBuf,
    shown: PathBuf,
    /// Holds the lock.
    _handle: Handle,
    is_removed: AtomicBool,
}

impl Temporary {
    /// Removes what was left behind, and makes a folder that none but its owner may enter.
    pub(crate) fn make(settings: &TemporarySettings) -> Result<Self> {
        let base_path = settings.base.clone().unwrap_or_else(std::env::temp_dir);
        let failed = |errno: Errno| {
            let reason = match errno {
                Errno::NOENT => "folder not found".to_owned(),
                other => std::io::Error::from(other).kind().to_string(),
            };
            let text =
                format!("cannot make a temporary folder in `{}`: {reason}", base_path.display());
            Error::new(ErrorKind::Configuration, text)
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = openat(CWD, &base_path, flags, Mode::empty()).map_err(failed)?;
        let prefix = format!("{PREFIX}{}-", rustix::process::geteuid().as_raw());
        // What cannot be removed this time is tried the next time.
        let _ = sweep(&base, prefix.as_bytes());
        let real = base_path.canonicalize().map_err(|_| failed(Errno::NOENT))?;
        for _ in 0..RACES_MAX {
            let number = getrandom::u64().map_err(|_| failed(Errno::IO))?;
            let name = OsString::from(format!("{prefix}{number:016x}"));
            match mkdirat(&base, &name, Mode::from_raw_mode(0o700)) {
                Err(Errno::EXIST) => continue,
                made => made.map_err(failed)?,
            }
            let Some(handle) = locked(&base, &name).map_err(failed)? else { continue };
            let host = real.join(&name);
            let shown = settings.shown.clone().unwrap_or_else(|| base_path.join(&name));
            let is_removed = AtomicBool::new(false);
            return Ok(Self { base, name, host, shown, _handle: Arc::new(handle), is_removed });
        }
        Err(failed(Errno::EXIST))
    }

    pub(crate) fn host(&self) -> &Path {
        &self.host
    }

    pub(crate) fn shown(&self) -> &Path {
        &self.shown
    }

    /// It is an allowed folder too.
    pub(crate) fn root(&self) -> Root {
        Root { host: self.host.clone(), shown: self.shown.clone(), access: Access::Write }
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(&self) -> Result<()> {
        if self.is_removed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match delete_folder(&self.base, &self.name, &self.host, Verb::Delete) {
            Err(Error { kind: ErrorKind::NotFound, .. }) => Ok(()),
            other => other,
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What is left is removed by the next start.
        let _ = self.remove();
    }
}

/// Locks a folder. None where somebody else has it, or has removed it.
fn locked(base: impl AsFd, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    let folder = match open_in(base.as_fd(), name) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Ok(None),
        Err(errno) => return Err(errno),
    }
    // Who swept it before we had the lock has removed it.
    let there = match statat(base, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Facts::from(&there),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let ours = Facts::from(&fstat(&folder)?);
    Ok((there.identity == ours.identity).then_some(folder))
}

/// Removes the folders of that user that nobody holds.
fn sweep(base: &OwnedFd, prefix: &[u8]) -> rustix::io::Result<()> {
    let mut folder = Folder::read(open_in(base, OsStr::new("."))?, Sorted::No)?;
    let user = rustix::process::geteuid().as_raw();
    let mut swept = 0;
    while let Some((name, kind)) = folder.next() {
        if kind != FileKind::Folder || !name.as_encoded_bytes().starts_with(prefix) {
            continue;
        }
        let name = name.to_owned();
        let Ok(Some(left)) = locked(base, &name) else { continue };
        if fstat(&left).is_ok_and(|stat| stat.st_uid == user) {
            // One that cannot be removed must not keep the others.
            let _ = delete_folder(base, &name, Path::new(&name), Verb::Delete);
        }
        swept += 1;
        if swept == SWEEP_MAX {
            break;
        }
    }
    Ok(())
}
