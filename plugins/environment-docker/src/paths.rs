//! Maps paths between this machine and the container.
//!
//! Only names are processed, without access to files, so `..` is resolved by name. The code that
//! opens a file confines it.

use std::path::{Component, Path, PathBuf};

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use jaato_plugin_sdk_environment::files::FolderAccess;

/// The shared folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerPaths {
    workspace: SharedFolder,
    working: SharedFolder,
    tmp: SharedFolder,
    volumes: Vec<MountedVolume>,
}

/// A folder with its paths on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFolder {
    /// The path on this machine.
    pub host: PathBuf,
    /// The path in the container.
    pub container: PathBuf,
}

/// The workspace, and its subfolder in which the user works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedWorkspace {
    /// The workspace's paths.
    pub folder: SharedFolder,
    /// The relative path of the folder in which the user works. Empty if it is the workspace
    /// itself.
    pub below: PathBuf,
}

impl SharedWorkspace {
    /// Returns the folder in which the user works.
    fn working_folder(&self) -> SharedFolder {
        let SharedFolder { host, container } = &self.folder;
        if self.below.as_os_str().is_empty() {
            return self.folder.clone();
        }
        SharedFolder { host: host.join(&self.below), container: container.join(&self.below) }
    }
}

impl From<SharedFolder> for SharedWorkspace {
    fn from(folder: SharedFolder) -> Self {
        Self { folder, below: PathBuf::new() }
    }
}

/// A folder of this machine that a container sees in addition to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedVolume {
    /// The folder's paths.
    pub folder: SharedFolder,
    /// Whether the container may write to it.
    pub access: FolderAccess,
}

impl ContainerPaths {
    /// Creates the mapping of the two folders.
    pub fn new(workspace: impl Into<SharedWorkspace>, tmp: SharedFolder) -> Self {
        let workspace = workspace.into();
        let working = workspace.working_folder();
        Self { workspace: workspace.folder, working, tmp, volumes: Vec::new() }
    }

    /// Adds further shared folders.
    #[must_use]
    pub fn with_volumes(self, volumes: Vec<MountedVolume>) -> Self {
        Self { volumes, ..self }
    }

    /// Returns the further shared folders.
    pub fn volumes(&self) -> &[MountedVolume] {
        &self.volumes
    }

    /// Returns the folder in the workspace at which relative paths and commands start.
    pub fn working_folder(&self) -> &SharedFolder {
        &self.working
    }

    /// Returns the workspace.
    pub fn workspace_folder(&self) -> &SharedFolder {
        &self.workspace
    }

    /// Returns the temporary folder.
    pub fn temporary_folder(&self) -> &SharedFolder {
        &self.tmp
    }

    /// Converts a path of this machine to one in the container.
    ///
    /// # Errors
    /// `invalid_arguments` for a path outside of the shared folders, which are listed.
    pub fn to_container(&self, host: &Path) -> Result<PathBuf> {
        let path = normalize_path(&self.working.host.join(host));
        self.translate_path(&path, |shared| (&shared.host, &shared.container))
            .ok_or_else(|| self.outside_error(host, |shared| &shared.host))
    }

    /// Converts a path in the container to one of this machine. A relative path starts at the
    /// folder in which the user works.
    ///
    /// # Errors
    /// `invalid_arguments` for a path outside of the shared folders, which are listed.
    pub fn to_host(&self, container: &Path) -> Result<PathBuf> {
        let path = normalize_path(&self.working.container.join(container));
        self.translate_path(&path, |shared| (&shared.container, &shared.host))
            .ok_or_else(|| self.outside_error(container, |shared| &shared.container))
    }

    /// Makes a path in the container absolute. It may be outside of the shared folders, as for a
    /// command's folder.
    pub fn absolute_in_container(&self, container: &Path) -> PathBuf {
        normalize_path(&self.working.container.join(container))
    }

    /// Translates a path. The deepest folder wins, because folders may be nested.
    fn translate_path<'a>(
        &'a self,
        path: &Path,
        sides: impl Fn(&'a SharedFolder) -> (&'a Path, &'a Path),
    ) -> Option<PathBuf> {
        let others = self.volumes.iter().map(|volume| &volume.folder);
        let pairs = [&self.workspace, &self.tmp].into_iter().chain(others).map(sides);
        let fitting = pairs.filter(|(from, _)| path.starts_with(from));
        let (from, to) = fitting.max_by_key(|(from, _)| from.components().count())?;
        let rest = path.strip_prefix(from).ok()?;
        // Joining an empty path would add a trailing slash.
        Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
    }

    fn outside_error<'a>(
        &'a self,
        path: &Path,
        side: impl Fn(&'a SharedFolder) -> &'a PathBuf,
    ) -> Error {
        let text = format!(
            "`{}` is outside of the allowed paths `{}` and `{}`",
            path.display(),
            side(&self.workspace).display(),
            side(&self.tmp).display()
        );
        Error::new(ErrorKind::InvalidArguments, text)
    }
}

/// Removes `.` and `..`. The root is its own parent.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_folder(host: &str, container: &str) -> SharedFolder {
        SharedFolder { host: host.into(), container: container.into() }
    }

    fn container_paths() -> ContainerPaths {
        ContainerPaths::new(
            shared_folder("/home/me/project", "/workspace"),
            shared_folder("/tmp/j1", "/tmp/jaato"),
        )
    }

    #[track_caller]
    fn check_both_ways(host: &str, container: &str) {
        assert_eq!(container_paths().to_container(Path::new(host)).unwrap(), Path::new(container));
        assert_eq!(container_paths().to_host(Path::new(container)).unwrap(), Path::new(host));
    }

    #[test]
    fn shared_paths_are_translated_both_ways() {
        check_both_ways("/home/me/project", "/workspace");
        check_both_ways("/home/me/project/src/a.rs", "/workspace/src/a.rs");
        check_both_ways("/tmp/j1/out.txt", "/tmp/jaato/out.txt");
    }

    #[test]
    fn relative_paths_from_the_working_folder_reach_the_whole_workspace() {
        let shared = |host: &str, container: &str| SharedFolder {
            host: host.into(),
            container: container.into(),
        };
        let workspace =
            SharedWorkspace { folder: shared("/home/me/p", "/workspace"), below: "a/b".into() };
        let paths = ContainerPaths::new(workspace, shared("/tmp/j", "/tmp/jaato"));
        assert_eq!(*paths.working_folder(), shared("/home/me/p/a/b", "/workspace/a/b"));
        let to_host = |path: &str| paths.to_host(Path::new(path)).unwrap();
        assert_eq!(to_host("c"), Path::new("/home/me/p/a/b/c"));
        assert_eq!(to_host("../../.git"), Path::new("/home/me/p/.git"));
        assert_eq!(to_host("/workspace"), Path::new("/home/me/p"));
        assert!(paths.to_host(Path::new("../../../x")).is_err());
        assert_eq!(paths.to_container(Path::new("../c")).unwrap(), Path::new("/workspace/a/c"));
        assert_eq!(paths.absolute_in_container(Path::new("..")), Path::new("/workspace/a"));
    }

    #[test]
    fn relative_paths_begin_at_the_workspace() {
        let host = container_paths().to_host(Path::new("src/../a")).unwrap();
        assert_eq!(host, Path::new("/home/me/project/a"));
        assert_eq!(
            container_paths().to_container(Path::new("a")).unwrap(),
            Path::new("/workspace/a")
        );
    }

    #[test]
    fn path_outside_the_shared_folders_is_refused_with_their_names() {
        for path in ["/etc/passwd", "../x", "/workspace/../etc", "/workspaces/a", "/tmp/jaato/../x"]
        {
            let error = container_paths().to_host(Path::new(path)).unwrap_err();
            let expected =
                format!("`{path}` is outside of the allowed paths `/workspace` and `/tmp/jaato`");
            assert_eq!(error.message, expected);
        }
    }

    #[test]
    fn deeper_of_two_shared_folders_wins() {
        let paths = ContainerPaths::new(
            shared_folder("/w", "/srv"),
            shared_folder("/w/.tmp/j1", "/srv/.tmp/j1"),
        );
        let found = paths.to_host(Path::new("/srv/.tmp/j1/a")).unwrap();
        assert_eq!(found, Path::new("/w/.tmp/j1/a"));
    }

    #[test]
    fn command_folder_may_be_anywhere_in_the_container() {
        assert_eq!(container_paths().absolute_in_container(Path::new("/etc")), Path::new("/etc"));
        assert_eq!(
            container_paths().absolute_in_container(Path::new("src")),
            Path::new("/workspace/src")
        );
        assert_eq!(normalize_path(Path::new("/../a/./b/..")), Path::new("/a"));
    }
}
