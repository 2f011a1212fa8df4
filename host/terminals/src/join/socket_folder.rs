//! The place of the sockets: a folder private to the user, however the machine is set up.
//!
//! The folder is `jaato` inside the system's folder for running programs (`XDG_RUNTIME_DIR`) if
//! that is private to the user, otherwise `jaato-UID` among temporary files. A folder is not used
//! if another user could have created it or can look into it, and links to it are not followed.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jaato_config::UserFolders;
use jaato_places::TrustedOwners;

/// Mode bits that give access to others.
const OTHERS: u32 = 0o077;

/// Longest path of a socket, in bytes. The system allows 108 on Linux and 104 on macOS.
const SOCKET_PATH_MAX: usize = 100;

/// Longest name of a socket, in bytes.
const SOCKET_NAME_MAX: usize = 32;

/// The possible folders for sockets.
#[derive(Debug, Clone)]
pub struct SocketFolders {
    folders: Vec<PathBuf>,
}

impl SocketFolders {
    /// Creates the list from the user's folders.
    pub fn from_folders(folders: &UserFolders) -> Self {
        Self::in_places(folders.runtime_folder(), &std::env::temp_dir())
    }

    pub(crate) fn in_places(runtime: Option<&Path>, temporary: &Path) -> Self {
        let own = own_temporary_folder(temporary);
        let folders = runtime.map(Path::to_owned).into_iter().chain([own]);
        Self { folders: folders.collect() }
    }

    /// Returns the folder for this host's socket, creating it if needed.
    ///
    /// # Errors
    /// If none of the folders can be used. The error has the reason for each.
    pub(crate) fn open_or_create(&self) -> io::Result<&Path> {
        let mut why = Vec::new();
        for folder in &self.folders {
            match create_private_folder(folder) {
                Ok(()) => return Ok(folder),
                Err(error) => why.push(format!("`{}`: {error}", folder.display())),
            }
        }
        Err(io::Error::other(format!("no folder for its socket: {}", why.join("; "))))
    }

    /// Lists the existing folders that may be used.
    pub(crate) fn existing_folders(&self) -> Vec<&Path> {
        self.folders
            .iter()
            .map(PathBuf::as_path)
            .filter(|folder| check_private_folder(folder).is_ok())
            .collect()
    }
}

/// Returns the path of this user's private folder among temporary files.
pub fn own_temporary_folder(temporary: &Path) -> PathBuf {
    temporary.join(format!("jaato-{}", own_user()))
}

/// Returns the effective user of this process.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().len() + 1 + SOCKET_NAME_MAX > SOCKET_PATH_MAX {
        return Err(io::Error::other("its name is too long for a socket"));
    }
    jaato_places::make_single_folder(folder)?;
    check_private_folder(folder)
}

/// Checks that a folder is private to the user and that no one can replace it. Follows no link to
/// it, because among temporary files another user may have created the link.
fn check_private_folder(folder: &Path) -> io::Result<()> {
    let found = folder.symlink_metadata()?;
    if !found.is_dir() {
        return Err(io::Error::other("it is not a folder"));
    }
    if found.uid() != own_user() {
        return Err(io::Error::other(format!("it belongs to user {}", found.uid())));
    }
    if found.mode() & OTHERS != 0 {
        let mode = found.mode() & 0o7777;
        return Err(io::Error::other(format!("others can access it (mode {mode:o}, not 700)")));
    }
    jaato_places::check_folder(folder, &TrustedOwners::this_user_and_root())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn runtime_folder_is_created_as_private() {
        let root = tempfile::tempdir().unwrap();
        let runtime = root.path().join("jaato");
        let door = SocketFolders::in_places(Some(&runtime), root.path());
        assert_eq!(door.existing_folders(), Vec::<&Path>::new());
        assert_eq!(door.open_or_create().unwrap(), runtime);
        assert_eq!(runtime.metadata().unwrap().mode() & 0o7777, 0o700);
        assert_eq!(door.existing_folders(), [runtime.as_path()]);
    }

    #[test]
    fn runtime_folder_open_to_others_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let runtime = root.path().join("jaato");
        let own = root.path().join(format!("jaato-{}", own_user()));
        let door = SocketFolders::in_places(Some(&runtime), root.path());
        fs::create_dir(&runtime).unwrap();
        set_mode(&runtime, 0o750);
        assert_eq!(door.open_or_create().unwrap(), own);
        assert_eq!(door.existing_folders(), [own.as_path()]);
        assert_eq!(own.metadata().unwrap().mode() & 0o7777, 0o700);
        set_mode(&own, 0o701);
        let error = door.open_or_create().unwrap_err().to_string();
        assert!(error.contains("mode 750") && error.contains("mode 701"), "{error}");
    }

    #[test]
    fn link_or_file_in_place_of_the_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        set_mode(&elsewhere, 0o700);
        let own = root.path().join(format!("jaato-{}", own_user()));
        symlink(&elsewhere, &own).unwrap();
        let door = SocketFolders::in_places(None, root.path());
        assert!(door.open_or_create().unwrap_err().to_string().contains("it is not a folder"));
        assert_eq!(door.existing_folders(), Vec::<&Path>::new());
        fs::remove_file(&own).unwrap();
        fs::write(&own, "").unwrap();
        assert!(door.open_or_create().unwrap_err().to_string().contains("it is not a folder"));
    }

    #[test]
    fn folder_in_a_directory_writable_by_others_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        set_mode(&open, 0o777);
        let door = SocketFolders::in_places(None, &open);
        assert!(
            door.open_or_create()
                .unwrap_err()
                .to_string()
                .contains("/open` is not used: users other")
        );
        set_mode(&open, 0o1777);
        assert!(door.open_or_create().is_ok());
    }

    #[test]
    fn folder_with_a_path_too_long_for_a_socket_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let long = root.path().join("l".repeat(90)).join("jaato");
        let door = SocketFolders::in_places(Some(&long), Path::new("/tmp"));
        assert!(create_private_folder(&long).unwrap_err().to_string().contains("too long"));
        drop(door);
    }

    #[test]
    fn another_users_folder_is_not_used() {
        if own_user() != 0 {
            return crate::skip::skip("only root can make folders of another user");
        }
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("jaato-0");
        fs::create_dir(&own).unwrap();
        set_mode(&own, 0o700);
        std::os::unix::fs::chown(&own, Some(4711), Some(4711)).unwrap();
        let door = SocketFolders::in_places(None, root.path());
        assert!(door.open_or_create().unwrap_err().to_string().contains("it belongs to user 4711"));
    }
}
