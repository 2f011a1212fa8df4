//! Finds the files of profiles below a folder.
//!
//! The depth and the number of folders are limited. A link counts only if it stays inside the
//! folder, and no folder is read twice, so that a loop of links ends.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The deepest nesting of folders.
const DEPTH_MAX: usize = 4;
/// The maximum number of folders in all places together.
const FOLDERS_MAX: usize = 500;

/// The owner of a folder with profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderOwner {
    /// The user.
    User,
    /// The workspace.
    Workspace,
}

/// A search in several folders.
#[derive(Debug, Default)]
pub struct FileSearch {
    /// Paths that were not read, with the reasons.
    pub problems: Vec<(PathBuf, String)>,
    seen: BTreeSet<PathBuf>,
}

impl FileSearch {
    /// Finds the wanted files below a folder, sorted. A missing folder counts as empty.
    pub fn find_files(
        &mut self,
        folder: &Path,
        owner: FolderOwner,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Vec<PathBuf> {
        let root = match fs::canonicalize(folder) {
            Ok(root) => root,
            Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
            Err(error) => return self.record_problem(folder, error.to_string()),
        };
        // Trust does not cover the target of a link. The user's own folders may be links.
        if owner == FolderOwner::Workspace && root != folder {
            return self.record_problem(folder, "its path contains a link".to_owned());
        }
        let mut found = Vec::new();
        let mut waiting = vec![(folder.to_owned(), root.clone(), 0)];
        while let Some((shown, folder, depth)) = waiting.pop() {
            if self.seen.len() >= FOLDERS_MAX {
                return self
                    .record_problem(&shown, format!("there are more than {FOLDERS_MAX} folders"));
            }
            if !self.seen.insert(folder.clone()) {
                continue;
            }
            for name in self.visible_names(&folder, &shown) {
                let (shown, Ok(path)) = (shown.join(&name), fs::canonicalize(folder.join(&name)))
                else {
                    continue;
                };
                if !path.starts_with(&root) {
                    self.problems.push((shown, "a link leads out of the folder".to_owned()));
                } else if path.is_dir() && depth < DEPTH_MAX {
                    waiting.push((shown, path, depth + 1));
                } else if path.is_file() && is_wanted(&shown) {
                    found.push(shown);
                }
            }
        }
        found.sort();
        found
    }

    /// Lists the visible names in a folder, sorted.
    fn visible_names(&mut self, folder: &Path, shown: &Path) -> Vec<String> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.record_problem(shown, error.to_string()),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    fn record_problem<T>(&mut self, path: &Path, reason: String) -> Vec<T> {
        self.problems.push((path.to_owned(), reason));
        Vec::new()
    }
}
