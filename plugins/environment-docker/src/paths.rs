//! One file, two names: paths on this machine and in the container.
//!
//! Names alone: nothing is looked up, so `..` is taken away by name. Who opens a file confines it.

use std::path::{Component, Path, PathBuf};

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use jaato_plugin_sdk_environment::files::Access;

/// The folders that both sides share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    workspace: Shared,
    tmp: Shared,
    volumes: Vec<Volume>,
}

/// A folder by both of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// On this machine.
    pub host: PathBuf,
    /// In the container.
    pub container: PathBuf,
}

/// A folder of this machine that a container sees beside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// By both of its names.
    pub folder: Shared,
    /// Whether the container may change what is there.
    pub access: Access,
}

impl Paths {
    /// Takes the two folders.
    pub fn new(workspace: Shared, tmp: Shared) -> Self {
        Self { workspace, tmp, volumes: Vec::new() }
    }

    /// Adds folders that are shared beside them.
    #[must_use]
    pub fn with_volumes(self, volumes: Vec<Volume>) -> Self {
        Self { volumes, ..self }
    }

    /// The folders that are shared beside the two.
    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    /// The workspace.
    pub fn workspace(&self) -> &Shared {
        &self.workspace
    }

    /// The temporary folder.
    pub fn tmp(&self) -> &Shared {
        &self.tmp
    }

    /// The container's name for a path of this machine.
    ///
    /// # Errors
    /// Kind `invalid_arguments` for one outside of the shared folders, naming them.
    pub fn to_container(&self, host: &Path) -> Result<PathBuf> {
        let path = plain(&self.workspace.host.join(host));
        self.translate(&path, |shared| (&shared.host, &shared.container))
            .ok_or_else(|| self.outside(host, |shared| &shared.host))
    }

    /// This machine's name for a path in the container; a relative one begins at the workspace.
    ///
    /// # Errors
    /// Kind `invalid_arguments` for one outside of the shared folders, naming them.
    pub fn to_host(&self, container: &Path) -> Result<PathBuf> {
        let path = plain(&self.workspace.container.join(container));
        self.translate(&path, |shared| (&shared.container, &shared.host))
            .ok_or_else(|| self.outside(container, |shared| &shared.container))
    }

    /// The path as an absolute one of the container, wherever in it that lies: a command's folder.
    pub fn in_container(&self, container: &Path) -> PathBuf {
        plain(&self.workspace.container.join(container))
    }

    /// The deepest folder wins, as one may lie in the other.
    fn translate<'a>(
        &'a self,
        path: &Path,
        sides: impl Fn(&'a Shared) -> (&'a Path, &'a Path),
    ) -> Option<PathBuf> {
        let others = self.volumes.iter().map(|volume| &volume.folder);
        let pairs = [&self.workspace, &self.tmp].into_iter().chain(others).map(sides);
        let fitting = pairs.filter(|(from, _)| path.starts_with(from));
        let (from, to) = fitting.max_by_key(|(from, _)| from.components().count())?;
        let rest = path.strip_prefix(from).ok()?;
        // Joining an empty path would leave a slash at the end.
        Some(if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) })
    }

    fn outside<'a>(&'a self, path: &Path, side: impl Fn(&'a Shared) -> &'a PathBuf) -> Error {
        let text = format!(
            "`{}` is outside of the allowed paths `{}` and `{}`",
            path.display(),
            side(&self.workspace).display(),
            side(&self.tmp).display()
        );
        Error::new(ErrorKind::InvalidArguments, text)
    }
}

/// Without `.` and `..`; the root is its own parent.
pub fn plain(path: &Path) -> PathBuf {
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

    fn shared(host: &str, container: &str) -> Shared {
        Shared { host: host.into(), container: container.into() }
    }

    fn paths() -> Paths {
        Paths::new(shared("/home/me/project", "/workspace"), shared("/tmp/j1", "/tmp/jaato"))
    }

    #[track_caller]
    fn both_ways(host: &str, container: &str) {
        assert_eq!(paths().to_container(Path::new(host)).unwrap(), Path::new(container));
        assert_eq!(paths().to_host(Path::new(container)).unwrap(), Path::new(host));
    }

    #[test]
    fn shared_folders_are_named_both_ways() {
        both_ways("/home/me/project", "/workspace");
        both_ways("/home/me/project/src/a.rs", "/workspace/src/a.rs");
        both_ways("/tmp/j1/out.txt", "/tmp/jaato/out.txt");
    }

    #[test]
    fn relative_paths_begin_at_the_workspace() {
        let host = paths().to_host(Path::new("src/../a")).unwrap();
        assert_eq!(host, Path::new("/home/me/project/a"));
        assert_eq!(paths().to_container(Path::new("a")).unwrap(), Path::new("/workspace/a"));
    }

    #[test]
    fn what_leaves_the_shared_folders_is_refused_with_their_names() {
        for path in ["/etc/passwd", "../x", "/workspace/../etc", "/workspaces/a", "/tmp/jaato/../x"]
        {
            let error = paths().to_host(Path::new(path)).unwrap_err();
            let expected =
                format!("`{path}` is outside of the allowed paths `/workspace` and `/tmp/jaato`");
            assert_eq!(error.message, expected);
        }
    }

    #[test]
    fn the_deeper_of_two_folders_wins() {
        let paths = Paths::new(shared("/w", "/srv"), shared("/w/.tmp/j1", "/srv/.tmp/j1"));
        let found = paths.to_host(Path::new("/srv/.tmp/j1/a")).unwrap();
        assert_eq!(found, Path::new("/w/.tmp/j1/a"));
    }

    #[test]
    fn a_commands_folder_may_lie_anywhere_in_the_container() {
        assert_eq!(paths().in_container(Path::new("/etc")), Path::new("/etc"));
        assert_eq!(paths().in_container(Path::new("src")), Path::new("/workspace/src"));
        assert_eq!(plain(Path::new("/../a/./b/..")), Path::new("/a"));
    }
}
