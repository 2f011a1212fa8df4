//! Opens files for reading that another user may have put there: only regular files, without
//! blocking.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::error::{PathProblem, PlaceError};

/// Opens a regular file for reading. Refuses a pipe, a device or a folder, and never blocks on it.
///
/// # Errors
/// The actual kind of file, or the system's reason for refusing.
pub fn open_plain_file(path: &Path) -> Result<File, PlaceError> {
    let opened = openat(CWD, path, file_flags(), Mode::empty());
    require_regular_file(path, opened.map_err(io::Error::from).map(File::from))
}

/// Opens a regular file below a folder for reading. Follows no links, neither at the end of the
/// path nor in the folders on the way.
///
/// # Errors
/// If it is not below the folder or there is a link. Also as [`open_plain_file`].
pub fn open_file_inside(folder: &Path, path: &Path) -> Result<File, PlaceError> {
    let below = folder.join(path);
    let refused = |kind| PlaceError::new(&below, PathProblem::System(io::Error::from(kind)));
    let names: Option<Vec<&OsStr>> = below
        .strip_prefix(folder)
        .map_err(|_| refused(io::ErrorKind::PermissionDenied))?
        .components()
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let names = names.ok_or_else(|| refused(io::ErrorKind::PermissionDenied))?;
    let (last, folders) = names.split_last().ok_or_else(|| refused(io::ErrorKind::IsADirectory))?;
    let open = || -> io::Result<File> {
        let folder_flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut at = openat(CWD, folder, folder_flags, Mode::empty())?;
        for name in folders {
            at = openat(&at, *name, folder_flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(openat(&at, *last, file_flags() | OFlags::NOFOLLOW, Mode::empty())?.into())
    };
    require_regular_file(&below, open())
}

fn file_flags() -> OFlags {
    // Otherwise opening a pipe without a writer would block.
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

fn require_regular_file(path: &Path, opened: io::Result<File>) -> Result<File, PlaceError> {
    let file = opened.map_err(PlaceError::from_io(path))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err(PlaceError::new(path, PathProblem::NotAFile)),
        Err(error) => Err(PlaceError::new(path, PathProblem::System(error))),
    }
}
