//! A file that is written beside its place under a name of its own, and then put there at once.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_types::files::draft_name;
use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, flock, linkat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::place::Handle;
use crate::platform::Facts;

/// A file that is not yet in its place. Dropped before that, it is removed.
#[derive(Debug)]
pub(crate) struct Draft {
    dir: Handle,
    name: OsString,
    pub(crate) file: File,
    is_placed: bool,
}

/// What becomes of what has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Replaced,
    Refused,
}

/// Permission bits of a new file, before the process's mask.
const NEW_FILE_MODE: u32 = 0o666;
/// Permission bits that a file which replaces another takes over: none that lend somebody's rights.
const KEPT_MODE: u32 = 0o1777;

impl Draft {
    /// Begins a file in that folder.
    pub(crate) fn begin(dir: &Handle) -> rustix::io::Result<Self> {
        let name = unique_name()?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&**dir, &name, flags, Mode::from_raw_mode(NEW_FILE_MODE as _))?;
        // Says that somebody works on it, however that ends. A file system without locks is no
        // reason not to write.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { dir: dir.clone(), name, file: file.into(), is_placed: false })
    }

    /// Takes over owner and permission bits of the file that it replaces.
    pub(crate) fn like(&self, old: &Facts, fresh: &Facts) -> rustix::io::Result<()> {
        if (old.user, old.group) != (fresh.user, fresh.group) {
            let (user, group) = (Uid::from_raw(old.user), Gid::from_raw(old.group));
            fchown(&self.file, Some(user), Some(group))?;
        }
        if old.mode & KEPT_MODE != fresh.mode {
            fchmod(&self.file, Mode::from_raw_mode((old.mode & KEPT_MODE) as _))?;
        }
        Ok(())
    }

    /// Gets the permission bits that a new file was asked with, if it was.
    pub(crate) fn permit(&self, permissions: Option<u32>) -> rustix::io::Result<()> {
        let Some(permissions) = permissions else { return Ok(()) };
        fchmod(&self.file, Mode::from_raw_mode((permissions & KEPT_MODE) as _))
    }

    /// Writes behind what is written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.file.write_all(bytes).map_err(|error| errno_of(&error))
    }

    /// Puts it in its place. A link there is replaced, never followed.
    pub(crate) fn place(&mut self, name: &OsStr, taken: Taken) -> rustix::io::Result<()> {
        self.place_in(self.dir.clone().as_fd(), name, taken)
    }

    fn place_in(&mut self, dir: impl AsFd, name: &OsStr, taken: Taken) -> rustix::io::Result<()> {
        match taken {
            Taken::Replaced => renameat(&*self.dir, &self.name, dir, name)?,
            Taken::Refused => rename_new(&*self.dir, &self.name, dir, name)?,
        }
        self.is_placed = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_placed {
            // Nobody is there to be told; the name says whose it was.
            let _ = unlinkat(&*self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Renames to a name that nothing has.
pub(crate) fn rename_new(
    old_dir: impl AsFd,
    old: &OsStr,
    new_dir: impl AsFd,
    new: &OsStr,
) -> rustix::io::Result<()> {
    let (old_dir, new_dir) = (old_dir.as_fd(), new_dir.as_fd());
    match renameat_with(old_dir, old, new_dir, new, RenameFlags::NOREPLACE) {
        // Perhaps the file system cannot do that. A second name can be given to no name that is
        // taken.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            match linkat(old_dir, old, new_dir, new, AtFlags::empty()) {
                Ok(()) => unlinkat(old_dir, old, AtFlags::empty()),
                // A folder has one name. It replaces an empty folder at most, that somebody makes
                // in this moment.
                Err(Errno::PERM) => match statat(new_dir, new, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(_) => renameat(old_dir, old, new_dir, new),
                },
                failed => failed,
            }
        }
        done => done,
    }
}

/// Makes a name that nothing has, hidden, and that tells whose it is.
pub(crate) fn unique_name() -> rustix::io::Result<OsString> {
    /// Numbers from a random one on: processes do not meet.
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let next = match NEXT.get() {
        Some(next) => next,
        None => {
            let first = getrandom::u64().map_err(|_| Errno::IO)?;
            NEXT.get_or_init(|| AtomicU64::new(first))
        }
    };
    let number = next.fetch_add(1, Relaxed);
    Ok(draft_name(number).into())
}

/// What the system said.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
