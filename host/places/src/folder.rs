//! Makes folders, and says which are believed.

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::{PlaceError, Why};
use crate::owners::{Owners, this_user};
use crate::walk::{check_mode, walk};

/// The mode of every folder that is ours.
const PRIVATE: u32 = 0o700;

/// Bits of a mode that let others do anything.
pub(crate) const OTHERS: u32 = 0o077;

/// Makes a folder of ours and those above it that are missing, for this user alone, and checks that
/// it is believed. One that is there already and is open to others is closed.
///
/// # Errors
/// What keeps it from being used.
pub fn make(folder: &Path) -> Result<(), PlaceError> {
    make_missing(folder)?;
    let owners = Owners::own();
    let end = walk(folder, &owners)?;
    if !end.metadata.is_dir() {
        return Err(PlaceError::new(folder, Why::NotAFolder));
    }
    if end.metadata.mode() & OTHERS != 0 && end.metadata.uid() == this_user() {
        let closed = fs::set_permissions(&end.path, Permissions::from_mode(PRIVATE));
        // Where it cannot be closed, on a disk that is only read say, it is enough that others
        // cannot write.
        if closed.is_ok() {
            return Ok(());
        }
    }
    check_mode(&end.path, &end.metadata, &owners)
}

/// Makes a folder and those above it that are missing, each for this user alone whatever the umask,
/// and checks nothing: for a place that the person named, or one below a folder that [`make`] made.
///
/// # Errors
/// When the system refuses.
pub fn make_missing(folder: &Path) -> Result<(), PlaceError> {
    match make_one(folder) {
        Err(error) if error.is_missing() => match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                make_missing(parent)?;
                make_one(folder)
            }
            _ => Err(error),
        },
        made => made,
    }
}

/// Makes one folder for this user alone whatever the umask, if it is missing, and checks nothing.
///
/// # Errors
/// When the system refuses, also where the folder above it is missing.
pub fn make_one(folder: &Path) -> Result<(), PlaceError> {
    match DirBuilder::new().mode(PRIVATE).create(folder) {
        // A umask can only take bits away, but it could take ours.
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(PRIVATE))
            .map_err(PlaceError::system(folder)),
        // Also where it is there and the folder above it cannot be written.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(PlaceError::new(folder, Why::NotAFolder))
        }
        Err(error) => Err(PlaceError::new(folder, Why::System(error))),
    }
}

/// Checks that a folder is believed; changes nothing.
///
/// # Errors
/// What is wrong with it, or with a folder above it.
pub fn check_folder(folder: &Path, owners: &Owners) -> Result<(), PlaceError> {
    let end = walk(folder, owners)?;
    if !end.metadata.is_dir() {
        return Err(PlaceError::new(folder, Why::NotAFolder));
    }
    check_mode(&end.path, &end.metadata, owners)
}
