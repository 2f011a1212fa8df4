//! The limits of a running call's file operations, and the changes that the call has made itself.

use std::path::{Component, Path, PathBuf};

use jaato_types::files::{
    COPY, DELETE, EDIT, FileLimits, MAKE_FOLDER, MOVE, ResolvedPath, WRITE, WRITE_STREAM,
};
use parking_lot::Mutex;
use serde::Deserialize;

/// The limits of a call while it runs. The host sends them with each of its file operations.
#[derive(Debug, Default)]
pub struct CallFiles(Mutex<FileLimits>);

/// The paths of a `files.*` request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct NamedPaths {
    path: String,
    from: String,
    to: String,
}

impl CallFiles {
    /// Stores the limits.
    pub fn new(limits: FileLimits) -> Self {
        Self(Mutex::new(limits))
    }

    /// Returns the limits of an operation: of the expected paths, those that its paths concern.
    pub fn limits_for(&self, named: &NamedPaths) -> FileLimits {
        let limits = self.0.lock();
        let is_named =
            |expected: &&ResolvedPath| named.paths().any(|path| is_expected_path(expected, path));
        let expected = limits.expected.iter().filter(is_named).cloned().collect();
        let (denied, asked) = (limits.denied.clone(), limits.asked.clone());
        FileLimits { denied, asked, protected: limits.protected.clone(), expected }
    }

    /// Records a change that the call itself has made. After that, its paths must still lead to the
    /// same place, but a different file may be there.
    pub fn record_change(&self, operation: &str, named: &NamedPaths) {
        let mut limits = self.0.lock();
        match operation {
            WRITE | WRITE_STREAM | EDIT | MAKE_FOLDER | COPY => {
                let about = limits.expected.iter_mut();
                about
                    .filter(|expected| named.paths().any(|path| is_expected_path(expected, path)))
                    .for_each(|expected| expected.identity = None);
            }
            // Folders, and everything below them, may have gone with it.
            MOVE | DELETE => limits.expected.iter_mut().for_each(|it| it.identity = None),
            _ => {}
        }
    }
}

impl NamedPaths {
    fn paths(&self) -> impl Iterator<Item = &str> {
        [&*self.path, &self.from, &self.to].into_iter().filter(|path| !path.is_empty())
    }
}

/// Returns true if a path, absolute or relative to the environment's folder, may be an expected
/// one.
fn is_expected_path(expected: &ResolvedPath, path: &str) -> bool {
    let parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
    let path: PathBuf = parts.collect();
    [&expected.asked, &expected.path, &expected.entry]
        .iter()
        .any(|it| Path::new(it).ends_with(&path))
}

#[cfg(test)]
mod tests {
    use jaato_types::files::FileIdentity;

    use super::*;

    fn expected_path(path: &str) -> ResolvedPath {
        ResolvedPath {
            asked: path.to_owned(),
            path: path.to_owned(),
            entry: path.to_owned(),
            identity: Some(FileIdentity::new(1, 2)),
            ..ResolvedPath::default()
        }
    }

    fn named_paths(path: &str) -> NamedPaths {
        NamedPaths { path: path.to_owned(), ..NamedPaths::default() }
    }

    #[test]
    fn operation_gets_only_the_file_limits_that_concern_its_paths() {
        let denied = vec!["/w/secret".to_owned()];
        let expected = vec![expected_path("/w/a"), expected_path("/w/b"), expected_path("/w/x/a")];
        let files = CallFiles::new(FileLimits { denied, expected, ..FileLimits::default() });
        let asked = |path: &str| -> Vec<String> {
            let limits = files.limits_for(&named_paths(path));
            assert_eq!(limits.denied, ["/w/secret"]);
            limits.expected.into_iter().map(|it| it.path).collect()
        };
        assert_eq!(asked("/w/a"), ["/w/a"]);
        assert_eq!(asked("./a"), ["/w/a", "/w/x/a"]);
        assert_eq!(asked("/w/./b"), ["/w/b"]);
        assert!(asked("c").is_empty());
    }

    #[test]
    fn identity_is_not_checked_for_files_that_the_call_changed() {
        let all = vec![expected_path("/w/a"), expected_path("/w/b")];
        let files = CallFiles::new(FileLimits { expected: all, ..FileLimits::default() });
        let is_same_file =
            |path: &str| files.limits_for(&named_paths(path)).expected[0].identity.is_some();
        files.record_change(WRITE, &named_paths("a"));
        assert!(!is_same_file("a") && is_same_file("b"));
        files.record_change(DELETE, &named_paths("c"));
        assert!(!is_same_file("b"));
    }
}
