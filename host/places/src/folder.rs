//! Creates folders, and checks whether they are safe to use.

use std::fs::{self, DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::{PathProblem, PlaceError};
use crate::owners::{TrustedOwners, this_user};
use crate::walk::{check_mode, walk_path};

/// The mode of every folder of jaato.
const PRIVATE: u32 = 0o700;

/// Mode bits that give others any access.
pub(crate) const OTHERS: u32 = 0o077;

/// Creates a folder of jaato and the missing ones above it, private to this user, and checks that
/// it is safe. An existing folder that others could access becomes private.
///
/// # Errors
/// The problem that prevents using it.
pub fn make_own_folder(folder: &Path) -> Result<(), PlaceError> {
    make_missing_folders(folder)?;
    let owners = TrustedOwners::this_user_and_root();
    let end = walk_path(folder, &owners)?;
    if !end.metadata.is_dir() {
        return Err(PlaceError::new(folder, PathProblem::NotAFolder));
    }
    if end.metadata.mode() & OTHERS != 0 && end.metadata.uid() == this_user() {
        let closed = fs::set_permissions(&end.path, Permissions::from_mode(PRIVATE));
        // If it cannot be made private, for example on a read-only disk, it is enough that others
        // cannot write.
        if closed.is_ok() {
            return Ok(());
        }
    }
    check_mode(&end.path, &end.metadata, &owners)
}

/// Creates a folder and the missing ones above it, each private to this user regardless of the
/// umask, without any check. For a path that the user named, or one below a folder that
/// [`make_own_folder`] made.
///
/// # Errors
/// When the system refuses.
pub fn make_missing_folders(folder: &Path) -> Result<(), PlaceError> {
    match make_single_folder(folder) {
        Err(error) if error.is_missing() => match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => {
                make_missing_folders(parent)?;
                make_single_folder(folder)
            }
            _ => Err(error),
        },
        made => made,
    }
}

/// Creates one folder, private to this user regardless of the umask, if it is missing, without any
/// check.
///
/// # Errors
/// When the system refuses, or the folder above it is missing.
pub fn make_single_folder(folder: &Path) -> Result<(), PlaceError> {
    match DirBuilder::new().mode(PRIVATE).create(folder) {
        // A umask can only remove bits, but these may include ours.
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(PRIVATE))
            .map_err(PlaceError::from_io(folder)),
        // Also if it exists and the folder above it is not writable.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(PlaceError::new(folder, PathProblem::NotAFolder))
        }
        Err(error) => Err(PlaceError::new(folder, PathProblem::System(error))),
    }
}

/// Checks that a folder is safe. Changes nothing.
///
/// # Errors
/// The problem with the folder, or with a folder above it.
pub fn check_folder(folder: &Path, owners: &TrustedOwners) -> Result<(), PlaceError> {
    let end = walk_path(folder, owners)?;
    if !end.metadata.is_dir() {
        return Err(PlaceError::new(folder, PathProblem::NotAFolder));
    }
    check_mode(&end.path, &end.metadata, owners)
}
