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
    working: Shared,
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

/// The workspace, and the folder in it in which the person works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The whole, by both of its names.
    pub folder: Shared,
    /// The way from there to the folder in which the person works; empty where it is the same.
    pub below: PathBuf,
}

impl Workspace {
    /// Returns the folder in which the person works.
    fn working(&self) -> Shared {
        let Shared { host, container } = &self.folder;
        if self.below.as_os_str().is_empty() {
            return self.folder.clone();
        }
        Shared { host: host.join(&self.below), container: container.join(&self.below) }
    }
}

impl From<Shared> for Workspace {
    fn from(folder: Shared) -> Self {
        Self { folder, below: PathBuf::new() }
    }
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
    pub fn new(workspace: impl Into<Workspace>, tmp: Shared) -> Self {
        let workspace = workspace.into();
        let working = workspace.working();
        Self { workspace: workspace.folder, working, tmp, volumes: Vec::new() }
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

    /// The folder in the workspace where relative paths and commands begin.
    pub fn working(&self) -> &Shared {
        &self.working
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
        let path = plain(&self.working.host.join(host));
        self.translate(&path, |shared| (&shared.host, &shared.container))
            .ok_or_else(|| self.outside(host, |shared| &shared.host))
    }

    /// This machine's name for a path in the container; a relative one begins at the folder
    /// in which the person works.
    ///
    /// # Errors
    /// Kind `invalid_arguments` for one outside of the shared folders, naming them.
    pub fn to_host(&self, container: &Path) -> Result<PathBuf> {
        let path = plain(&self.working.container.join(container));
        self.translate(&path, |shared| (&shared.container, &shared.host))
            .ok_or_else(|| self.outside(container, |shared| &shared.container))
    }

    /// The path as an absolute one of the container, wherever in it that lies: a command's folder.
    pub fn in_container(&self, container: &Path) -> PathBuf {
        plain(&self.working.container.join(container))
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
    fn relative_paths_begin_where_the_person_works_and_reach_the_whole_workspace() {
        let shared =
            |host: &str, container: &str| Shared { host: host.into(), container: container.into() };
        let workspace =
            Workspace { folder: shared("/home/me/p", "/workspace"), below: "a/b".into() };
        let paths = Paths::new(workspace, shared("/tmp/j", "/tmp/jaato"));
        assert_eq!(*paths.working(), shared("/home/me/p/a/b", "/workspace/a/b"));
        let to_host = |path: &str| paths.to_host(Path::new(path)).unwrap();
        assert_eq!(to_host("c"), Path::new("/home/me/p/a/b/c"));
        assert_eq!(to_host("../../.git"), Path::new("/home/me/p/.git"));
        assert_eq!(to_host("/workspace"), Path::new("/home/me/p"));
        assert!(paths.to_host(Path::new("../../../x")).is_err());
        assert_eq!(paths.to_container(Path::new("../c")).unwrap(), Path::new("/workspace/a/c"));
        assert_eq!(paths.in_container(Path::new("..")), Path::new("/workspace/a"));
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
