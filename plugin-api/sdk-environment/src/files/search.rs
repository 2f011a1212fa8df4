//! Walks, patterns and searches over the files of this machine, through handles.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::files::{FileFind, FileSearch, FileWalk, FoundPage, SearchedPage, WalkedPage};
use rustix::fs::{CWD, Mode, openat};

use super::confined::ConfinedFiles;
use super::folder::open_folder_in;
use super::path_target::{FolderHandle, PathTarget};
use super::steps::FinalLinkPolicy;
use crate::engine::{
    self, PathOperation, SearchCancel, SearchStartFolder, SearchableFiles, SearchableFolder,
    SearchedFileFacts, TreeCallLimits,
};
use crate::errors::{self, FileOperationVerb};
use crate::platform::PASS_THROUGH;

/// The results of a walk or a search, page by page. It blocks. Dropping it ends the search.
pub struct ConfinedSearchPages<P> {
    pages: Box<dyn Iterator<Item = Result<P>> + Send>,
    cancel: SearchCancel,
}

impl<P> ConfinedSearchPages<P> {
    fn new(
        begin: impl FnOnce(&SearchCancel) -> Result<Box<dyn Iterator<Item = Result<P>> + Send>>,
    ) -> Result<Self> {
        let cancel = SearchCancel::default();
        Ok(Self { pages: begin(&cancel)?, cancel })
    }

    /// Returns a handle that cancels the search.
    pub fn cancel_handle(&self) -> SearchCancel {
        self.cancel.clone()
    }
}

impl<P> Iterator for ConfinedSearchPages<P> {
    type Item = Result<P>;

    /// Returns the next page, or `None` at the end and after a cancel. An empty page reports the
    /// progress of a search.
    fn next(&mut self) -> Option<Result<P>> {
        self.pages.next()
    }
}

impl<P> fmt::Debug for ConfinedSearchPages<P> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ConfinedSearchPages").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl ConfinedFiles {
    /// Starts to walk a tree. Skips hidden and ignored files unless the request includes them.
    /// Always skips `.git`.
    pub fn walk(&self, request: &FileWalk) -> Result<ConfinedSearchPages<WalkedPage>> {
        ConfinedSearchPages::new(|_| Ok(Box::new(engine::walk_pages(self, request)?)))
    }

    /// Starts to find files by a pattern. Files with the same modification time are sorted by path.
    pub fn find(&self, request: &FileFind) -> Result<ConfinedSearchPages<FoundPage>> {
        ConfinedSearchPages::new(|cancel| Ok(Box::new(engine::find_files(self, request, cancel)?)))
    }

    /// Starts to search texts. If the path names a file, it is searched regardless of its name and
    /// size. In folders, only regular files are searched, and links are not followed.
    pub fn search(&self, request: &FileSearch) -> Result<ConfinedSearchPages<SearchedPage>> {
        ConfinedSearchPages::new(|cancel| {
            Ok(Box::new(engine::start_search(self, request, cancel)?))
        })
    }

    /// Returns the folders above a place whose ignore rules apply. They start at the root of the
    /// repository, which may be above the allowed folders, or without a repository at the allowed
    /// folder.
    fn folders_with_ignore_rules(&self, place: &PathTarget) -> Vec<(FolderHandle, OsString)> {
        let root = self.roots.root_at(place.root);
        let handles = std::iter::once(&root.handle).chain(place.above.iter().map(|it| &it.folder));
        let is_repository = |folder: &FolderHandle| folder.entry_facts(".git".as_ref()).is_ok();
        let mut above = match handles.clone().any(is_repository) {
            true => Vec::new(),
            false => folders_above_root(root.host_path()),
        };
        let names = place.above.iter().map(|it| it.name.clone());
        above.extend(handles.cloned().zip(names));
        above
    }
}

/// Returns the folders above an allowed folder, from the root of its repository on. Only ignore
/// rules are read there.
fn folders_above_root(root: &Path) -> Vec<(FolderHandle, OsString)> {
    let is_repository = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let Some(top) = root.ancestors().skip(1).find(is_repository) else { return Vec::new() };
    let mut above = Vec::new();
    for (folder, below) in root.ancestors().skip(1).zip(root.ancestors()) {
        let handle = openat(CWD, folder, PASS_THROUGH, Mode::empty());
        let (Ok(handle), Some(name)) = (handle, below.file_name()) else { return Vec::new() };
        above.push((Arc::new(handle), name.to_owned()));
        if folder == top {
            break;
        }
    }
    above.reverse();
    above
}

impl SearchableFiles for ConfinedFiles {
    type Folder = FolderHandle;

    fn look_up(&self, path: &str, verb: FileOperationVerb) -> Result<SearchedFileFacts> {
        let asked = self.requested_path(path)?;
        let found = SearchedFileFacts::from(self.roots.metadata_of(&asked, verb)?);
        let Some(limits) = asked.limits.as_ref().filter(|it| it.has_patterns(PathOperation::Write))
        else {
            return Ok(found);
        };
        let place = self.roots.resolve_existing(&asked, FinalLinkPolicy::Follow, verb)?;
        let protected = limits
            .exclusion_reason(&self.roots.resolved_pair(&place), PathOperation::Write)
            .is_some();
        Ok(SearchedFileFacts { protected, ..found })
    }

    fn open_start_folder(&self, path: &str) -> Result<SearchStartFolder<FolderHandle>> {
        let asked = self.parse_folder_path(path)?;
        let shown = asked.display_path();
        let place = self.roots.resolve_folder(&asked, FileOperationVerb::Search)?;
        let folder = open_folder_in(&*place.dir, OsStr::new("."))
            .map_err(|errno| errors::operation_error(FileOperationVerb::Search, &shown, errno))?;
        let limits = asked.limits.as_ref();
        let limits =
            limits.map(|limits| TreeCallLimits::new(limits, self.roots.resolved_pair(&place)));
        Ok(SearchStartFolder {
            above: self.folders_with_ignore_rules(&place),
            folder: Arc::new(folder),
            shown,
            limits,
        })
    }

    fn open_file(&self, path: &str) -> Result<(File, u64)> {
        let (file, facts) =
            self.roots.open_file(&self.requested_path(path)?, FileOperationVerb::Search)?;
        Ok((file.into(), facts.size))
    }

    fn display_path(&self, path: &str) -> PathBuf {
        self.requested_path(path).map_or_else(|_| path.into(), |asked| asked.display_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{AllowedFolder, ConfinedFilesSettings};

    #[test]
    fn a_search_that_is_dropped_ends_its_threads() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..2000 {
            std::fs::write(folder.path().join(number.to_string()), "moon\n".repeat(200)).unwrap();
        }
        let settings = ConfinedFilesSettings {
            roots: vec![AllowedFolder::local(folder.path())],
            default_folder: folder.path().to_owned(),
            temporary: None,
        };
        let confined = ConfinedFiles::open(&settings).unwrap();
        let request = FileSearch { pattern: "moon".into(), ..FileSearch::default() };
        let cancel = SearchCancel::default();
        let mut search = engine::start_search(&confined, &request, &cancel).unwrap();
        search.next().unwrap().unwrap();
        cancel.cancel_search();
        assert!(search.next().is_none());
        let mut threads = std::mem::take(&mut search.threads);
        // Threads that wait for room end too.
        let mut other =
            engine::start_search(&confined, &request, &SearchCancel::default()).unwrap();
        threads.append(&mut other.threads);
        drop(other);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
