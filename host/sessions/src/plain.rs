//! Opens the files of a session for reading. Refuses a link, a pipe or a device that another
//! program has put there, and never blocks on it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use jaato_places::{PathProblem, PlaceError, open_file_inside};

use crate::error::SessionStoreError;

/// Opens a regular file below a folder. Follows no links below the folder.
///
/// # Errors
/// [`SessionStoreError::Place`] if it is not a regular file, [`SessionStoreError::Io`] if the
/// system refuses.
pub fn open_regular_file(folder: &Path, name: &Path) -> Result<File, SessionStoreError> {
    open_file_inside(folder, name).map_err(|error| {
        let parts = name.ancestors().filter(|part| !part.as_os_str().is_empty());
        let link = parts.map(|part| folder.join(part)).find(|path| is_link(path));
        match (link, error) {
            (Some(path), _) if path == folder.join(name) => {
                SessionStoreError::Place(PlaceError { path, why: PathProblem::NotAFile })
            }
            (Some(path), _) => {
                SessionStoreError::Place(PlaceError { path, why: PathProblem::NotAFolder })
            }
            (_, PlaceError { path, why: PathProblem::System(error) }) => {
                SessionStoreError::from_io("open", path)(error)
            }
            (_, error) => SessionStoreError::Place(error),
        }
    })
}

/// Checks that a file that this process is about to open or create is a regular file or missing.
///
/// # Errors
/// As [`open_regular_file`].
pub fn check_regular_file(path: &Path) -> Result<(), SessionStoreError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => {
            let path = path.to_owned();
            Err(SessionStoreError::Place(PlaceError { path, why: PathProblem::NotAFile }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SessionStoreError::from_io("open", path)(error)),
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}
