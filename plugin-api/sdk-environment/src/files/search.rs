//! Walks, patterns and searches over the files of this machine, through handles.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::files::{FileFind, FileSearch, FileWalk, FoundPage, SearchedPage, WalkedPage};
use rustix::fs::{CWD, Mode, openat};

use super::confined::Confined;
use super::folder::open_in;
use super::place::{Handle, Place};
use super::steps::Last;
use crate::engine::{self, Cancel, Does, Files, Folder, Found, Top, TreeLimits};
use crate::errors::{self, Verb};
use crate::platform::PASS_THROUGH;

/// The results of a walk or a search, page by page. It blocks. Dropping it ends the search.
pub struct Pages<P> {
    pages: Box<dyn Iterator<Item = Result<P>> + Send>,
    cancel: Cancel,
}

impl<P> Pages<P> {
    fn new(
        begin: impl FnOnce(&Cancel) -> Result<Box<dyn Iterator<Item = Result<P>> + Send>>,
    ) -> Result<Self> {
        let cancel = Cancel::default();
        Ok(Self { pages: begin(&cancel)?, cancel })
    }

    /// Returns a handle that cancels the search.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl<P> Iterator for Pages<P> {
    type Item = Result<P>;

    /// Returns the next page, or `None` at the end and after a cancel. An empty page reports the
    /// progress of a search.
    fn next(&mut self) -> Option<Result<P>> {
        self.pages.next()
    }
}

impl<P> fmt::Debug for Pages<P> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Pages").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl Confined {
    /// Starts to walk a tree. Skips hidden and ignored files unless the request includes them.
    /// Always skips `.git`.
    pub fn walk(&self, request: &FileWalk) -> Result<Pages<WalkedPage>> {
        Pages::new(|_| Ok(Box::new(engine::walk(self, request)?)))
    }

    /// Starts to find files by a pattern. Files with the same modification time are sorted by path.
    pub fn find(&self, request: &FileFind) -> Result<Pages<FoundPage>> {
        Pages::new(|cancel| Ok(Box::new(engine::find(self, request, cancel)?)))
    }

    /// Starts to search texts. If the path names a file, it is searched whatever its name and size.
    /// In folders, only regular files are searched, and links are not followed.
    pub fn search(&self, request: &FileSearch) -> Result<Pages<SearchedPage>> {
        Pages::new(|cancel| Ok(Box::new(engine::search(self, request, cancel)?)))
    }

    /// Returns the folders above a place whose ignore rules apply. They start at the root of the
    /// repository, which may be above the allowed folders, or without a repository at the allowed
    /// folder.
    fn above(&self, place: &Place) -> Vec<(Handle, OsString)> {
        let root = self.roots.get(place.root);
        let handles = std::iter::once(&root.handle).chain(place.above.iter().map(|it| &it.folder));
        let is_repository = |folder: &Handle| folder.facts(".git".as_ref()).is_ok();
        let mut above = match handles.clone().any(is_repository) {
            true => Vec::new(),
            false => above_root(root.host()),
        };
        let names = place.above.iter().map(|it| it.name.clone());
        above.extend(handles.cloned().zip(names));
        above
    }
}

/// Returns the folders above an allowed folder, from the root of its repository on. Only ignore
/// rules are read there.
fn above_root(root: &Path) -> Vec<(Handle, OsString)> {
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

impl Files for Confined {
    type Folder = Handle;

    fn look(&self, path: &str, verb: Verb) -> Result<Found> {
        let asked = self.asked(path)?;
        let found = Found::from(self.roots.look(&asked, verb)?);
        let Some(limits) = asked.limits.as_ref().filter(|it| it.has_patterns(Does::Write)) else {
            return Ok(found);
        };
        let place = self.roots.find(&asked, Last::Follow, verb)?;
        let protected = limits.keeps_off(&self.roots.names_of(&place), Does::Write).is_some();
        Ok(Found { protected, ..found })
    }

    fn top(&self, path: &str) -> Result<Top<Handle>> {
        let asked = self.asked_folder(path)?;
        let shown = asked.shown();
        let place = self.roots.open_folder_place(&asked, Verb::Search)?;
        let folder = open_in(&*place.dir, OsStr::new("."))
            .map_err(|errno| errors::failed(Verb::Search, &shown, errno))?;
        let limits = asked.limits.as_ref();
        let limits = limits.map(|limits| TreeLimits::new(limits, self.roots.names_of(&place)));
        Ok(Top { above: self.above(&place), folder: Arc::new(folder), shown, limits })
    }

    fn open(&self, path: &str) -> Result<(File, u64)> {
        let (file, facts) = self.roots.open_file(&self.asked(path)?, Verb::Search)?;
        Ok((file.into(), facts.size))
    }

    fn shown(&self, path: &str) -> PathBuf {
        self.asked(path).map_or_else(|_| path.into(), |asked| asked.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Root, Settings};

    #[test]
    fn a_search_that_is_dropped_ends_its_threads() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..2000 {
            std::fs::write(folder.path().join(number.to_string()), "moon\n".repeat(200)).unwrap();
        }
        let settings = Settings {
            roots: vec![Root::local(folder.path())],
            default_folder: folder.path().to_owned(),
            temporary: None,
        };
        let confined = Confined::open(&settings).unwrap();
        let request = FileSearch { pattern: "moon".into(), ..FileSearch::default() };
        let cancel = Cancel::default();
        let mut search = engine::search(&confined, &request, &cancel).unwrap();
        search.next().unwrap().unwrap();
        cancel.set();
        assert!(search.next().is_none());
        let mut threads = std::mem::take(&mut search.threads);
        // Threads that wait for room end too.
        let mut other = engine::search(&confined, &request, &Cancel::default()).unwrap();
        threads.append(&mut other.threads);
        drop(other);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
