//! Walks a tree, folder by folder, and never follows a link.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jaato_types::Result;
use jaato_types::files::{
    FileKind, FileWalk, SkippedEntryCounts, UNREADABLE_MAX, WALK_BYTES_MAX, WALK_ENTRIES_MAX,
    WalkedEntry, WalkedPage,
};

use super::call_limits::TreeCallLimits;
use super::folder::{
    FolderNames, NameOrder, SearchStartFolder, SearchableFiles, SearchableFolder, SearchedFileFacts,
};
use super::ignored::{ExcludePatterns, IgnoreStack, IgnoreVerdict};
use super::limits::{DEPTH_MAX, PATH_BYTES_MAX};
use super::lines::json_size;
use crate::errors::{self, FileOperationVerb};

/// The bytes of JSON that an entry needs besides its path: `{"path":"","kind":"folder"},`.
const ENTRY_BYTES: usize = 30;

/// A walk through a tree, page by page.
#[derive(Debug)]
struct PagedTreeWalk<F> {
    tree: TreeWalk<F>,
    unreadable_told: usize,
    is_done: bool,
}

/// A walk through a tree, entry by entry.
#[derive(Debug)]
pub(crate) struct TreeWalk<F> {
    levels: Vec<TreeWalkLevel<F>>,
    /// The path of the current entry, from the topmost folder whose rules apply.
    path: Vec<u8>,
    /// The offset in `path` at which the part that callers see starts.
    start: usize,
    ignored: Option<IgnoreStack>,
    includes_hidden: bool,
    leave_out: Option<ExcludePatterns>,
    leave_out_unless_git: Option<ExcludePatterns>,
    sorted: NameOrder,
    depth_max: usize,
    /// The current entry, if it is a folder to enter next.
    enter: Option<OsString>,
    /// Folders that could not be read, and rule files that were skipped, with the reason.
    pub(crate) unreadable: Vec<String>,
    /// The number of entries skipped so far.
    pub(crate) left_out: SkippedEntryCounts,
    shown: PathBuf,
    pub(crate) limits: Option<TreeCallLimits>,
}

/// Which entries of a tree a walk visits.
#[derive(Debug)]
pub(crate) struct TreeWalkFilter {
    /// Whether to include files that ignore rules exclude.
    pub(crate) include_ignored: bool,
    /// Whether to include hidden files.
    pub(crate) include_hidden: bool,
    pub(crate) leave_out: Option<ExcludePatterns>,
    /// Further patterns to leave out, but only outside repositories.
    pub(crate) leave_out_unless_git: Option<ExcludePatterns>,
    pub(crate) sorted: NameOrder,
    pub(crate) depth_max: usize,
}

#[derive(Debug)]
struct TreeWalkLevel<F> {
    folder: F,
    names: FolderNames,
    /// The length of the path of its entries, without their names.
    length: usize,
}

/// Starts to walk a tree. Skips hidden and ignored files unless the request includes them. Always
/// skips `.git`.
pub(crate) fn walk_pages<S: SearchableFiles>(
    files: &S,
    request: &FileWalk,
) -> Result<impl Iterator<Item = Result<WalkedPage>> + Send + use<S>> {
    let looks = TreeWalkFilter {
        include_ignored: request.include_ignored,
        include_hidden: request.include_ignored,
        leave_out: None,
        leave_out_unless_git: None,
        sorted: NameOrder::Yes,
        depth_max: request.depth_max.unwrap_or(DEPTH_MAX),
    };
    let tree = TreeWalk::start_walk(files.open_start_folder(&request.path)?, looks)?;
    Ok(PagedTreeWalk { tree, unreadable_told: 0, is_done: false })
}

impl<F: SearchableFolder> Iterator for PagedTreeWalk<F> {
    type Item = Result<WalkedPage>;

    /// Returns the next page. It has no entries only if the last folders could not be read.
    fn next(&mut self) -> Option<Result<WalkedPage>> {
        let (mut entries, mut unreadable, mut bytes) = (Vec::new(), Vec::new(), 0);
        while !self.is_done && entries.len() < WALK_ENTRIES_MAX && bytes < WALK_BYTES_MAX {
            match self.tree.next() {
                Some(kind) => {
                    let path = String::from_utf8_lossy(self.tree.path()).into_owned();
                    bytes += ENTRY_BYTES + json_size(&path);
                    entries.push(WalkedEntry { path, kind, ..WalkedEntry::default() });
                }
                None => self.is_done = true,
            }
            for told in self.tree.unreadable.drain(..) {
                if self.unreadable_told < UNREADABLE_MAX {
                    self.unreadable_told += 1;
                    bytes += ENTRY_BYTES + json_size(&told);
                    unreadable.push(told);
                }
            }
        }
        let is_empty = entries.is_empty() && unreadable.is_empty();
        (!is_empty).then(|| Ok(WalkedPage { entries, unreadable, ..WalkedPage::default() }))
    }
}

impl<F: SearchableFolder> TreeWalk<F> {
    /// Starts the walk at the top.
    pub(crate) fn start_walk(top: SearchStartFolder<F>, looks: TreeWalkFilter) -> Result<Self> {
        let SearchStartFolder { above, folder, shown, limits } = top;
        let names = folder.read_names(looks.sorted);
        let names =
            names.map_err(|error| errors::file_error(FileOperationVerb::Search, &shown, &error))?;
        let mut ignored = (!looks.include_ignored).then(IgnoreStack::default);
        let (mut path, mut unreadable) = (Vec::new(), Vec::new());
        if let Some(ignored) = &mut ignored {
            // Rules of a folder above match paths that start in that folder.
            for (at, (folder, next)) in above.iter().enumerate() {
                let too_large = ignored.enter_folder(folder, None, path.len());
                let shown = shown.ancestors().nth(above.len() - at).unwrap_or(Path::new(""));
                unreadable.extend(too_large.iter().map(|name| lost_rules_message(shown, name)));
                path.extend_from_slice(next.as_bytes());
                path.push(b'/');
            }
            let too_large = ignored.enter_folder(&folder, Some(&names), path.len());
            unreadable.extend(too_large.iter().map(|name| lost_rules_message(&shown, name)));
        }
        let start = path.len();
        Ok(Self {
            levels: vec![TreeWalkLevel { folder, names, length: start }],
            path,
            start,
            ignored,
            includes_hidden: looks.include_hidden,
            leave_out: looks.leave_out,
            leave_out_unless_git: looks.leave_out_unless_git,
            sorted: looks.sorted,
            depth_max: looks.depth_max.clamp(1, DEPTH_MAX),
            enter: None,
            unreadable,
            left_out: SkippedEntryCounts::default(),
            shown,
            limits,
        })
    }

    /// Moves to the next entry and returns its kind. A folder comes before its entries.
    pub(crate) fn next(&mut self) -> Option<FileKind> {
        if let Some(name) = self.enter.take() {
            self.enter_folder(&name);
        }
        while let Some(level) = self.levels.last_mut() {
            let Some((name, kind)) = level.names.next() else {
                self.levels.pop();
                if let Some(ignored) = &mut self.ignored {
                    ignored.leave_folder();
                }
                continue;
            };
            let is_folder = kind == FileKind::Folder;
            if name == ".git" {
                continue;
            }
            self.path.truncate(level.length);
            self.path.extend_from_slice(name.as_bytes());
            let is_hidden = !self.includes_hidden && name.as_bytes().starts_with(b".");
            if self.skips_entry(is_folder, is_hidden) {
                continue;
            }
            if is_folder && self.is_path_too_long() {
                self.report_unreadable("its path is too long");
            } else if is_folder && self.levels.len() < self.depth_max {
                self.enter = Some(OsStr::from_bytes(&self.path[self.path_length()..]).to_owned());
            } else if is_folder && self.depth_max == DEPTH_MAX {
                self.report_unreadable(&format!("more than {DEPTH_MAX} folders deep"));
            }
            return Some(kind);
        }
        None
    }

    /// Returns true if the entry must be skipped, and counts it.
    fn skips_entry(&mut self, is_folder: bool, is_hidden: bool) -> bool {
        let path = &self.path[self.start..];
        if self.limits.as_ref().is_some_and(|limits| limits.skips_entry(path)) {
            self.left_out.denied += 1;
            return true;
        }
        let (said, is_in_repository) = match &self.ignored {
            Some(ignored) => {
                (ignored.verdict_for(&self.path, is_folder), ignored.is_in_repository())
            }
            None => (IgnoreVerdict::Nothing, true),
        };
        let path = &self.path[self.start..];
        let has = |patterns: &mut Option<ExcludePatterns>| {
            patterns.as_mut().is_some_and(|patterns| patterns.matches_path(path, is_folder))
        };
        let counted = if said == IgnoreVerdict::LeaveOut {
            &mut self.left_out.ignored
        } else if is_hidden && said != IgnoreVerdict::Keep {
            &mut self.left_out.hidden
        } else if has(&mut self.leave_out)
            || (!is_in_repository && has(&mut self.leave_out_unless_git))
        {
            &mut self.left_out.excluded
        } else {
            return false;
        };
        *counted += 1;
        true
    }

    /// Returns the path of the entry, relative to the top.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// Returns the facts of the entry.
    pub(crate) fn entry_facts(&self) -> io::Result<SearchedFileFacts> {
        let (folder, name) = self.entry_location().ok_or(io::ErrorKind::NotFound)?;
        folder.entry_facts(name)
    }

    /// Returns the folder that contains the entry, and the entry's name in it.
    pub(crate) fn entry_location(&self) -> Option<(&F, &OsStr)> {
        let level = self.levels.last()?;
        Some((&level.folder, OsStr::from_bytes(&self.path[level.length..])))
    }

    fn path_length(&self) -> usize {
        self.levels.last().map_or(0, |level| level.length)
    }

    fn enter_folder(&mut self, name: &OsStr) {
        let Some(level) = self.levels.last() else { return };
        let entered = level.folder.open_subfolder(name).and_then(|folder| {
            let Some(folder) = folder else { return Ok(None) };
            let names = folder.read_names(self.sorted)?;
            Ok(Some((folder, names)))
        });
        match entered {
            Ok(Some((folder, names))) => {
                self.path.push(b'/');
                let length = self.path.len();
                if let Some(ignored) = &mut self.ignored {
                    for name in ignored.enter_folder(&folder, Some(&names), length) {
                        if self.unreadable.len() < UNREADABLE_MAX {
                            let path = OsStr::from_bytes(&self.path[self.start..]);
                            self.unreadable.push(lost_rules_message(&self.shown.join(path), name));
                        }
                    }
                }
                self.levels.push(TreeWalkLevel { folder, names, length });
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.report_unreadable(&errors::search_failure_reason(&error)),
        }
    }

    /// Returns true if the path is longer than requests allow.
    fn is_path_too_long(&self) -> bool {
        self.shown.as_os_str().len() + 1 + self.path().len() > PATH_BYTES_MAX
    }

    fn report_unreadable(&mut self, reason: &str) {
        if self.unreadable.len() < UNREADABLE_MAX {
            let path = self.shown.join(OsStr::from_bytes(self.path()));
            self.unreadable.push(format!("`{}`: {reason}", path.display()));
        }
    }
}

/// Returns the message that a file's ignore rules do not apply.
fn lost_rules_message(folder: &Path, name: &str) -> String {
    format!("`{}`: its rules are too large and were ignored", folder.join(name).display())
}
