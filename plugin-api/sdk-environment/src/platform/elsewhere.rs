//! Other Unix systems: every path is gone through by hand, and no read is known not to wait.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, FileType, OFlags};

use super::Wait;

/// Opens a folder to pass through it.
pub(crate) const PASS_THROUGH: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// There is no such call.
pub(crate) fn open_beneath(
    _folder: impl AsFd,
    _path: &Path,
    _flags: OFlags,
    _wait: Wait,
) -> Option<rustix::io::Result<OwnedFd>> {
    None
}

/// No attributes are copied here.
pub(crate) fn copy_attributes(_from: impl AsFd, _to: impl AsFd) -> rustix::io::Result<()> {
    Ok(())
}

/// There is no such call.
pub(crate) fn read_at_once(_file: impl AsFd, _buffer: &mut [u8], _offset: u64) -> Option<usize> {
    None
}

/// Tells each name in a folder with what it is, as far as the file system tells that.
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
