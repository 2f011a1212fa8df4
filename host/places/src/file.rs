//! Opens and reads jaato's own files, if they are safe to use.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::{PathProblem, PlaceError};
use crate::folder::{OTHERS, make_own_folder};
use crate::owners::{TrustedOwners, this_user};
use crate::walk::{WalkEnd, check_mode, check_owner, walk_path};

/// The mode of every file of jaato.
const PRIVATE: u32 = 0o600;

/// Checks that a file is safe: a regular file, reached through safe links.
///
/// # Errors
/// The problem with the file, or with a folder above it.
pub fn check_file(path: &Path, owners: &TrustedOwners) -> Result<(), PlaceError> {
    let WalkEnd { path, metadata } = walk_path(path, owners)?;
    check_found_file(&path, &metadata, owners)
}

/// Checks a file of a folder that [`check_folder`](crate::check_folder) has checked, without
/// checking that folder again.
///
/// # Errors
/// The problem with the file, or, for a link, with its target.
pub fn check_file_in(path: &Path, owners: &TrustedOwners) -> Result<(), PlaceError> {
    let metadata = fs::symlink_metadata(path).map_err(PlaceError::from_io(path))?;
    match metadata.is_symlink() {
        true => check_file(path, owners),
        false => check_found_file(path, &metadata, owners),
    }
}

/// Reads a file of jaato, if it is safe. Returns `None` if it does not exist.
///
/// # Errors
/// The problem with the file. [`PathProblem::TooLarge`] if it has more than `bytes_max` bytes.
pub fn read_own_file(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, PlaceError> {
    match check_file(path, &TrustedOwners::this_user_and_root()) {
        Ok(()) => {}
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error),
    }
    let failed = PlaceError::from_io(path);
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes));
    match read {
        Ok(read) if read as u64 > bytes_max => {
            Err(PlaceError::new(path, PathProblem::TooLarge(bytes_max)))
        }
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Opens a file of jaato with these options, and [makes](make) its folder if that is missing. A new
/// file is private to this user. An existing file that others could access becomes private.
///
/// # Errors
/// The problem with the file, or with a folder above it.
pub fn open_own_file(path: &Path, options: &mut OpenOptions) -> Result<File, PlaceError> {
    make_own_folder(path.parent().unwrap_or(Path::new("/")))?;
    let is_new = match check_file(path, &TrustedOwners::this_user_and_root()) {
        Ok(()) => false,
        Err(error) if error.is_missing() => true,
        Err(error) => return Err(error),
    };
    let failed = PlaceError::from_io(path);
    let opened = options.mode(PRIVATE).open(path).and_then(|file| {
        let found = file.metadata()?;
        // A umask can only remove bits, but these may include ours.
        let is_odd = is_new && found.mode() & 0o777 != PRIVATE;
        if found.uid() == this_user() && (is_odd || found.mode() & OTHERS != 0) {
            file.set_permissions(Permissions::from_mode(PRIVATE))?;
        }
        Ok(file)
    });
    opened.map_err(failed)
}

fn check_found_file(
    path: &Path,
    metadata: &Metadata,
    owners: &TrustedOwners,
) -> Result<(), PlaceError> {
    if !metadata.is_file() {
        return Err(PlaceError::new(path, PathProblem::NotAFile));
    }
    check_owner(path, metadata, owners)?;
    check_mode(path, metadata, owners)
}
