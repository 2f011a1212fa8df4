//! Other Unix systems: paths are resolved name by name, and every read may wait.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, FileType, OFlags};

use super::DiskWait;

/// Flags that open a folder only to pass through it.
pub(crate) const PASS_THROUGH: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Always returns `None`, because the system has no such call.
pub(crate) fn open_beneath(
    _folder: impl AsFd,
    _path: &Path,
    _flags: OFlags,
    _wait: DiskWait,
) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// Does nothing on these systems.
pub(crate) fn copy_attributes(_from: impl AsFd, _to: impl AsFd) -> rustix::io::Result<()> {
    Ok(())
}

/// Always returns `None`, because the system has no such call.
pub(crate) fn read_without_waiting(
    _file: impl AsFd,
    _buffer: &mut [u8],
    _offset: u64,
) -> Option<usize> {
    None
}

/// Calls `each` with every name in a folder and its type, as far as the file system reports it.
pub(crate) fn read_folder(
    folder: impl AsFd,
    mut each: impl FnMut(&[u8], FileType) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            each(name, entry.file_type())?;
        }
    }
    Ok(())
}
