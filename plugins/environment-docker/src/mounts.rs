//! Finds the workspace among the mounts of a container that the user brought.

use std::path::{Path, PathBuf};

use bollard::models::MountPoint;
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};

/// The folder in which the virtual machine of Docker Desktop mounts the host's folders.
const DESKTOP_PREFIX: &str = "/host_mnt";

/// A folder of this machine in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedFolder {
    /// Its path in the container.
    pub path: PathBuf,
    /// Whether the container may write to it.
    pub is_writable: bool,
}

/// Finds a folder of this machine in a container, through the deepest mount that contains it.
///
/// # Errors
/// `failed` if no mount contains the folder, or another mount covers it.
pub fn find_mounted_folder(
    mounts: &[MountPoint],
    folder: &Path,
    container: &str,
) -> Result<MountedFolder> {
    let found = mounts.iter().filter_map(|mount| find_through_mount(mount, folder));
    let Some((_, mounted)) = found.max_by_key(|(depth, _)| *depth) else {
        let text = format!(
            "the container `{container}` does not have the workspace `{}` mounted",
            folder.display()
        );
        let hint = format!(
            "start it with `--volume {}:/workspace`, or name an image instead",
            folder.display()
        );
        return Err(Error::new(ErrorKind::Failed, text).with_hint(hint));
    };
    Ok(mounted)
}

/// Returns the depth of the mount's source, and the folder's location in the container.
fn find_through_mount(mount: &MountPoint, folder: &Path) -> Option<(usize, MountedFolder)> {
    if mount.typ.as_ref().is_some_and(|kind| kind != "bind") {
        return None;
    }
    let source = mount.source.as_deref()?;
    let source = source.strip_prefix(DESKTOP_PREFIX).unwrap_or(source);
    let source = std::fs::canonicalize(source).unwrap_or_else(|_| source.into());
    let rest = folder.strip_prefix(&source).ok()?;
    let target = Path::new(mount.destination.as_deref()?);
    let path = if rest.as_os_str().is_empty() { target.to_owned() } else { target.join(rest) };
    let mounted = MountedFolder { path, is_writable: mount.rw != Some(false) };
    Some((source.components().count(), mounted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount_point(source: &str, destination: &str) -> MountPoint {
        MountPoint {
            source: Some(source.to_owned()),
            destination: Some(destination.to_owned()),
            ..MountPoint::default()
        }
    }

    #[track_caller]
    fn check_found_folder(mounts: &[MountPoint], folder: &str, expected: &str) {
        let found = match find_mounted_folder(mounts, Path::new(folder), "web") {
            Ok(mounted) => mounted.path.display().to_string(),
            Err(error) => error.message,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn folder_is_found_through_the_mount_closest_to_it() {
        let mounts = [mount_point("/no/home", "/h"), mount_point("/no/home/me/p", "/src")];
        check_found_folder(&mounts, "/no/home/me/p", "/src");
        check_found_folder(&mounts, "/no/home/me/p/a/b", "/src/a/b");
        check_found_folder(&mounts, "/no/home/you", "/h/you");
    }

    #[test]
    fn folder_is_found_under_the_host_mnt_prefix() {
        check_found_folder(&[mount_point("/host_mnt/no/me", "/w")], "/no/me/p", "/w/p");
    }

    #[test]
    fn volumes_and_similarly_named_folders_are_not_the_workspace() {
        let volume = MountPoint { typ: Some("volume".to_owned()), ..mount_point("/no/a", "/w") };
        let expected = "the container `web` does not have the workspace `/no/ab` mounted";
        check_found_folder(&[volume, mount_point("/no/a", "/w")], "/no/ab", expected);
    }
}
