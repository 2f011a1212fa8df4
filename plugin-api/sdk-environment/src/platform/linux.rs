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

use super::Wait;

/// Opens a folder to pass through it; asks for no right to list it.
pub(crate) const PASS_THROUGH: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Opens a path beneath a folder, whatever links are in it, in one call. None where that cannot be
/// told so: a link has an absolute target or leads out, the kernel is old, something was renamed
/// meanwhile, or it would wait.
pub(crate) fn open_beneath(
    folder: impl AsFd,
    path: &Path,
    flags: OFlags,
    wait: Wait,
) -> Option<rustix::io::Result<OwnedFd>> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if wait == Wait::MustNot {
        resolve |= ResolveFlags::CACHED;
    }
    match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Err(
            Errno::XDEV | Errno::AGAIN | Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::INVAL,
        ) => None,
        other => Some(other),
    }
}

/// Reads from an offset until the buffer is full or the file ends; none where the disk would be
/// asked.
pub(crate) fn read_at_once(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Option<usize> {
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

/// Bytes of an extended attribute, and of the names of all: what Linux allows.
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// The access list of a file.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Gives a file the access list and the extended attributes of another. Those of the system's
/// security stay what they are: the kernel sets them, and some are void once the content changes.
pub(crate) fn copy_attributes(from: impl AsFd, to: impl AsFd) -> rustix::io::Result<()> {
    let names = attribute_names(&from)?;
    let own = attribute_names(&to)?;
    // A folder may give each new file a list.
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
            // It went away meanwhile.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn attribute_names(file: impl AsFd) -> rustix::io::Result<Vec<String>> {
    // Most files have none, and then nothing is made room for.
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

/// Bytes of names that are read in one go.
const NAMES_BYTES: usize = 32 * 1024;

/// Tells each name in a folder with what it is, as far as the file system tells that.
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
