//! A file that is written under a temporary name in the target folder, and then renamed atomically.

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

use super::path_target::FolderHandle;
use crate::platform::FileMetadata;

/// A file that is not yet renamed. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct DraftFile {
    dir: FolderHandle,
    name: OsString,
    pub(crate) file: File,
    is_placed: bool,
}

/// What to do if the name is already taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExistingNamePolicy {
    Replaced,
    Refused,
}

/// Permission bits of a new file, before the process's mask.
const NEW_FILE_MODE: u32 = 0o666;
/// Permission bits that a replacement inherits. They exclude set-user-ID and set-group-ID.
const KEPT_MODE: u32 = 0o1777;

impl DraftFile {
    /// Creates a draft in a folder.
    pub(crate) fn create_draft(dir: &FolderHandle) -> rustix::io::Result<Self> {
        let name = unique_name()?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&**dir, &name, flags, Mode::from_raw_mode(NEW_FILE_MODE as _))?;
        // Marks the draft as in use until this process ends. File systems without locks must not
        // prevent the write.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        Ok(Self { dir: dir.clone(), name, file: file.into(), is_placed: false })
    }

    /// Copies the owner and permission bits of the file to replace.
    pub(crate) fn copy_permissions(
        &self,
        old: &FileMetadata,
        fresh: &FileMetadata,
    ) -> rustix::io::Result<()> {
        if (old.user, old.group) != (fresh.user, fresh.group) {
            let (user, group) = (Uid::from_raw(old.user), Gid::from_raw(old.group));
            fchown(&self.file, Some(user), Some(group))?;
        }
        if old.mode & KEPT_MODE != fresh.mode {
            fchmod(&self.file, Mode::from_raw_mode((old.mode & KEPT_MODE) as _))?;
        }
        Ok(())
    }

    /// Sets the requested permission bits of a new file, if there are any.
    pub(crate) fn set_permissions(&self, permissions: Option<u32>) -> rustix::io::Result<()> {
        let Some(permissions) = permissions else { return Ok(()) };
        fchmod(&self.file, Mode::from_raw_mode((permissions & KEPT_MODE) as _))
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> rustix::io::Result<()> {
        self.file.write_all(bytes).map_err(|error| errno_of(&error))
    }

    /// Renames the draft to its final name. An existing link is replaced, not followed.
    pub(crate) fn rename_into_place(
        &mut self,
        name: &OsStr,
        taken: ExistingNamePolicy,
    ) -> rustix::io::Result<()> {
        self.rename_draft_into(self.dir.clone().as_fd(), name, taken)
    }

    fn rename_draft_into(
        &mut self,
        dir: impl AsFd,
        name: &OsStr,
        taken: ExistingNamePolicy,
    ) -> rustix::io::Result<()> {
        match taken {
            ExistingNamePolicy::Replaced => renameat(&*self.dir, &self.name, dir, name)?,
            ExistingNamePolicy::Refused => rename_if_free(&*self.dir, &self.name, dir, name)?,
        }
        self.is_placed = true;
        Ok(())
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        if !self.is_placed {
            // A drop cannot report errors. The draft's name shows that jaato created it.
            let _ = unlinkat(&*self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Renames a file or folder, but only if the new name is free.
pub(crate) fn rename_if_free(
    old_dir: impl AsFd,
    old: &OsStr,
    new_dir: impl AsFd,
    new: &OsStr,
) -> rustix::io::Result<()> {
    let (old_dir, new_dir) = (old_dir.as_fd(), new_dir.as_fd());
    match renameat_with(old_dir, old, new_dir, new, RenameFlags::NOREPLACE) {
        // The file system may not support this flag. A hard link fails too if its name is taken.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            match linkat(old_dir, old, new_dir, new, AtFlags::empty()) {
                Ok(()) => unlinkat(old_dir, old, AtFlags::empty()),
                // Folders cannot be hard-linked. A plain rename replaces at most an empty folder
                // that another process creates at this moment.
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

/// Returns a unique hidden name that shows that jaato created the file.
pub(crate) fn unique_name() -> rustix::io::Result<OsString> {
    /// Counts from a random number, so that processes do not choose the same names.
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

/// Returns the system's error number.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
