//! Linux: `openat2` and `preadv2`.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, openat2};
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
