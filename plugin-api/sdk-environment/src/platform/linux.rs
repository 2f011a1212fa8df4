//! Linux: `openat2` and `preadv2`.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{
    FileType, Mode, OFlags, RawDir, ResolveFlags, XattrFlags, fgetxattr, flistxattr,
    flistxattr_query, fremovexattr, fsetxattr, openat2,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::DiskWait;

/// Flags that open a folder only to pass through it, without permission to list it.
pub(crate) const PASS_THROUGH: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Opens a path beneath a folder in one call and follows links inside the folder. Returns `None` if
/// one call cannot do it: a link has an absolute target or leads outside, the kernel is too old,
/// something was renamed at the same time, or the call would wait.
pub(crate) fn open_beneath(
    folder: impl AsFd,
    path: &Path,
    flags: OFlags,
    wait: DiskWait,
) -> Option<rustix::io::Result<OwnedFd>> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if wait == DiskWait::MustNot {
        resolve |= ResolveFlags::CACHED;
    }
    match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Err(
            Errno::XDEV | Errno::AGAIN | Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::INVAL,
        ) => None,
        other => Some(other),
    }
}

/// Reads from an offset until the buffer is full or the file ends. Returns `None` if the read would
/// wait for the disk.
pub(crate) fn read_without_waiting(
    file: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
) -> Option<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        let mut slices = [IoSliceMut::new(&mut buffer[filled..])];
        let from = offset + filled as u64;
        match preadv2(file.as_fd(), &mut slices, from, ReadWriteFlags::NOWAIT) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(filled)
}

/// The maximum number of bytes of an extended attribute, and of all attribute names, that Linux
/// allows.
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// The attribute that holds a file's access control list.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Copies the access control list and the extended attributes of a file. Skips the security
/// attributes, because the kernel sets them and some become invalid when the content changes.
pub(crate) fn copy_attributes(from: impl AsFd, to: impl AsFd) -> rustix::io::Result<()> {
    let names = attribute_names(&from)?;
    let own = attribute_names(&to)?;
    // The folder may have a default list for new files.
    if own.iter().any(|name| name == ACCESS_LIST) && !names.iter().any(|name| name == ACCESS_LIST) {
        fremovexattr(&to, ACCESS_LIST)?;
    }
    for name in names {
        if name.starts_with("security.") || name.starts_with("trusted.") {
            continue;
        }
        let mut value = Vec::with_capacity(ATTRIBUTE_BYTES_MAX);
        match fgetxattr(&from, &*name, spare_capacity(&mut value)) {
            Ok(_) => fsetxattr(&to, &*name, &value, XattrFlags::empty())?,
            // Another process removed the attribute.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn attribute_names(file: impl AsFd) -> rustix::io::Result<Vec<String>> {
    // Most files have no attributes, so this avoids allocating a buffer.
    match flistxattr_query(&file) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(errno) => return Err(errno),
    }
    let mut names = vec![0; ATTRIBUTE_BYTES_MAX];
    let length = flistxattr(&file, &mut names[..])?;
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect())
}

/// The size of the buffer for names.
const NAMES_BYTES: usize = 32 * 1024;

/// Calls `each` with every name in a folder and its type, as far as the file system reports it.
pub(crate) fn read_folder(
    folder: impl AsFd,
    mut each: impl FnMut(&[u8], FileType) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let mut buffer = Vec::with_capacity(NAMES_BYTES);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            each(name, entry.file_type())?;
        }
    }
    Ok(())
}
