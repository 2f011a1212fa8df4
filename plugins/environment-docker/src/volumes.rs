//! Further folders of this machine in a container that jaato makes: `mount_dir` replaces the
//! workspace, and `mounts` are additional.

use std::path::{Component, Path, PathBuf};

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use jaato_plugin_sdk_environment::files::FolderAccess;

use crate::paths::{MountedVolume, SharedFolder};

/// Returns the folder that a container has as its workspace: `mount_dir`, or the session's own.
/// Blocks.
///
/// # Errors
/// `configuration` if the folder does not exist.
pub fn workspace_folder(mount_dir: Option<&Path>, workspace: &Path) -> Result<PathBuf> {
    match mount_dir {
        Some(folder) => {
            existing_folder(&workspace.join(folder), &format!("`mount_dir` `{}`", folder.display()))
        }
        None => Ok(workspace.to_owned()),
    }
}

/// Parses `mounts`. A relative folder of this machine starts at the workspace. Targets must differ
/// from each other and from `taken`, which are other folders of the container. Blocks.
///
/// # Errors
/// `configuration`, with the mount.
pub fn parse_volumes(
    mounts: &[String],
    workspace: &Path,
    taken: &[&Path],
) -> Result<Vec<MountedVolume>> {
    let mut volumes: Vec<MountedVolume> = Vec::new();
    for text in mounts {
        let volume = parse_volume(text, workspace)?;
        let own = volumes.iter().map(|other| other.folder.container.as_path());
        let target = &volume.folder.container;
        let overlaps = |other: &&Path| target.starts_with(other) || other.starts_with(target);
        if let Some(other) = taken.iter().copied().chain(own).find(overlaps) {
            let why = format!("overlaps `{}`, which the container already has", other.display());
            return Err(invalid_mount_error(
                text,
                &format!("its folder `{}` {why}", target.display()),
            ));
        }
        volumes.push(volume);
    }
    Ok(volumes)
}

fn parse_volume(text: &str, workspace: &Path) -> Result<MountedVolume> {
    let (rest, access) = match text.rsplit_once(':') {
        Some((rest, "ro")) => (rest, FolderAccess::Read),
        Some((rest, "rw")) => (rest, FolderAccess::Write),
        _ => (text, FolderAccess::Write),
    };
    let Some((host, container)) = rest.rsplit_once(':').filter(|(host, _)| !host.is_empty()) else {
        return Err(invalid_mount_error(text, "it is not `FOLDER:FOLDER_IN_CONTAINER`"));
    };
    let container = PathBuf::from(container);
    if !container.is_absolute() {
        return Err(invalid_mount_error(text, "its folder in the container is not absolute"));
    }
    let is_plain = |it: Component<'_>| matches!(it, Component::RootDir | Component::Normal(_));
    if !container.components().all(is_plain) {
        return Err(invalid_mount_error(text, "its folder in the container contains `..`"));
    }
    if container.parent().is_none() {
        return Err(invalid_mount_error(text, "nothing can be mounted at the container's root"));
    }
    let host = existing_folder(&workspace.join(host), &format!("the mount `{text}`"))?;
    // Removes a trailing slash.
    let container = container.components().collect();
    Ok(MountedVolume { folder: SharedFolder { host, container }, access })
}

fn existing_folder(folder: &Path, what: &str) -> Result<PathBuf> {
    let bad = |why: &str| {
        let text = format!("{what} cannot be used: `{}` {why}", folder.display());
        Error::new(ErrorKind::Configuration, text)
    };
    let real = folder.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => bad("does not exist"),
        _ => bad(&format!("cannot be read: {error}")),
    })?;
    if !real.is_dir() {
        return Err(bad("is not a folder"));
    }
    if real.parent().is_none() {
        return Err(bad("is this machine's root folder"));
    }
    Ok(real)
}

fn invalid_mount_error(mount: &str, why: &str) -> Error {
    let text = format!("the mount `{mount}` cannot be used: {why}");
    let hint = "`/data:/data:ro` mounts the folder `/data` read-only";
    Error::new(ErrorKind::Configuration, text).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses mounts for a workspace with the folder `data` and the file `file`.
    #[track_caller]
    fn check_volumes(mounts: &[&str], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("data")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let shown = root.display().to_string();
        let mounts: Vec<_> = mounts.iter().map(|it| it.replace('$', &shown)).collect();
        let taken = [Path::new("/workspace"), Path::new("/tmp/jaato")];
        let told = match parse_volumes(&mounts, &root, &taken) {
            Ok(volumes) => {
                let one = |it: &MountedVolume| {
                    let SharedFolder { host, container } = &it.folder;
                    format!("{} {} {:?}", host.display(), container.display(), it.access)
                };
                volumes.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Configuration);
                error.message
            }
        };
        assert_eq!(told.replace(&shown, "$"), expected);
    }

    #[test]
    fn mount_is_parsed_with_its_folders_and_access() {
        check_volumes(&["$/data:/data"], "$/data /data Write");
        check_volumes(
            &["$/data:/srv/data/:ro", "$:/all:rw"],
            "$/data /srv/data Read, $ /all Write",
        );
        check_volumes(&["data:/data"], "$/data /data Write");
        check_volumes(&[], "");
    }

    #[test]
    fn invalid_mount_is_refused_with_the_reason() {
        let no = |text: &str, why: &str| {
            check_volumes(&[text], &format!("the mount `{text}` cannot be used: {why}"));
        };
        for text in ["", "$/data", ":/data", "ro", "$/data:ro"] {
            no(text, "it is not `FOLDER:FOLDER_IN_CONTAINER`");
        }
        no("$/data:data", "its folder in the container is not absolute");
        no("$/data:", "its folder in the container is not absolute");
        no("$/data:/srv/../etc", "its folder in the container contains `..`");
        no("$/data:/", "nothing can be mounted at the container's root");
        no("$/none:/data", "`$/none` does not exist");
        no("$/file:/data", "`$/file` is not a folder");
        no("/:/data", "`/` is this machine's root folder");
    }

    #[test]
    fn overlapping_mount_targets_are_refused() {
        let no = |mounts: &[&str], target: &str, other: &str| {
            let [.., last] = mounts else { panic!("none") };
            let why = format!(
                "its folder `{target}` overlaps `{other}`, which the container already has"
            );
            check_volumes(mounts, &format!("the mount `{last}` cannot be used: {why}"));
        };
        no(&["data:/a", "$:/a"], "/a", "/a");
        no(&["data:/a", "$:/a/b"], "/a/b", "/a");
        no(&["data:/workspace"], "/workspace", "/workspace");
        no(&["data:/workspace/data"], "/workspace/data", "/workspace");
        no(&["data:/tmp"], "/tmp", "/tmp/jaato");
        check_volumes(&["data:/a", "$:/ab"], "$/data /a Write, $ /ab Write");
    }

    #[test]
    fn workspace_folder_can_be_overridden_by_an_existing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let found = |path: &str| workspace_folder(Some(Path::new(path)), &root);
        assert_eq!(workspace_folder(None, &root).unwrap(), root);
        assert_eq!(found("sub").unwrap(), root.join("sub"));
        assert_eq!(found(root.join("sub").to_str().unwrap()).unwrap(), root.join("sub"));
        for (path, why) in
            [("none", "does not exist"), ("file", "is not a folder"), ("/", "machine")]
        {
            let error = found(path).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration);
            assert!(error.message.contains(why), "{}", error.message);
        }
    }
}
