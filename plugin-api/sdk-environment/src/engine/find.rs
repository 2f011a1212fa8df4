//! Finds files by a pattern.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use globset::{Candidate, GlobSet};
use jaato_types::files::{
    FIND_FILES_MAX, FileFind, FileKind, FindKind, FoundFile, FoundPage, UNREADABLE_MAX,
    WALK_BYTES_MAX,
};
use jaato_types::{ErrorKind, Result};

use super::call_limits::TreeCallLimits;
use super::first_results::{BestFiles, RankedFile};
use super::folder::{NameOrder, SearchableFiles, SearchableFolder, SearchedFileFacts};
use super::glob::{SplitGlobPattern, compile_glob, invalid_pattern_error};
use super::ignored::ExcludePatterns;
use super::lines::json_size;
use super::search::{PROGRESS, SearchCancel};
use super::tree::{TreeWalk, TreeWalkFilter};
use crate::errors::FileOperationVerb;

/// The number of entries that a search visits between two checks of the clock.
const CLOCK_ENTRIES: usize = 256;

/// The approximate bytes of JSON that a file needs besides its path.
const FACTS_BYTES: usize = 90;

/// The files that a pattern matches, page by page.
#[derive(Debug)]
struct FileFinder<F> {
    /// `None` if the pattern names one file.
    tree: Option<(TreeWalk<F>, GlobSet)>,
    folder: String,
    cancel: SearchCancel,
    kind: FindKind,
    best: BestFiles,
    unreadable_left: usize,
    /// When the search stops and returns the files found so far.
    until: Option<Instant>,
    is_partial: bool,
    /// The answer, once the search is over.
    told: Option<std::vec::IntoIter<RankedFile>>,
    is_over: bool,
}

/// Returns the folder of a request, or the file if the pattern names one.
pub(crate) fn search_folder(request: &FileFind) -> Result<String> {
    let pattern = SplitGlobPattern::new(&request.pattern)?;
    if pattern.folder.starts_with('/') {
        let text = format!("the pattern `{}` is absolute", request.pattern);
        return Err(invalid_pattern_error(&text, "pass the folder separately from the pattern"));
    }
    Ok(match (request.path.as_str(), pattern.folder) {
        ("", folder) => folder.to_owned(),
        (path, "") => path.to_owned(),
        (path, folder) => format!("{path}/{folder}"),
    })
}

/// Starts to find files by a pattern. Files of the same age are sorted by path.
pub(crate) fn find_files<S: SearchableFiles>(
    files: &S,
    request: &FileFind,
    cancel: &SearchCancel,
) -> Result<impl Iterator<Item = Result<FoundPage>> + Send + use<S>> {
    let (pattern, folder) = (SplitGlobPattern::new(&request.pattern)?, search_folder(request)?);
    let mut find: FileFinder<S::Folder> = FileFinder {
        tree: None,
        folder: pattern.folder.to_owned(),
        cancel: cancel.clone(),
        kind: request.kind,
        best: BestFiles::new(request.order, entry_limit(request.limit)),
        unreadable_left: UNREADABLE_MAX,
        until: request
            .within_ms
            .and_then(|it| Instant::now().checked_add(Duration::from_millis(it))),
        is_partial: false,
        told: None,
        is_over: false,
    };
    if pattern.rest.is_empty() {
        let found =
            look_up_file(files, &folder)?.filter(|found| matches_kind(request.kind, found.kind));
        if let Some(found) = found {
            find.best.add_file(b"", || found);
        }
        return Ok(find);
    }
    let set = compile_glob(&request.pattern, pattern.rest)?;
    let looks = TreeWalkFilter {
        include_ignored: request.include_ignored,
        include_hidden: request.include_hidden,
        leave_out: ExcludePatterns::new(&request.leave_out, pattern.folder)?,
        leave_out_unless_git: ExcludePatterns::new(&request.leave_out_unless_git, pattern.folder)?,
        sorted: NameOrder::No,
        depth_max: pattern.depth_max(),
    };
    match files.open_start_folder(&folder).and_then(|top| TreeWalk::start_walk(top, looks)) {
        Ok(tree) => find.tree = Some((tree, set)),
        // The folder that the pattern names does not exist, so the pattern finds nothing.
        Err(error) if !pattern.folder.is_empty() && error.kind == ErrorKind::NotFound => {
            if !request.path.is_empty() {
                files.look_up(&request.path, FileOperationVerb::Search)?;
            }
        }
        Err(error) => return Err(error),
    }
    Ok(find)
}

fn matches_kind(wanted: FindKind, kind: FileKind) -> bool {
    match wanted {
        FindKind::Files => kind == FileKind::File,
        FindKind::Folders => kind == FileKind::Folder,
        FindKind::All => matches!(kind, FileKind::File | FileKind::Folder),
    }
}

fn entry_limit(limit: Option<usize>) -> usize {
    limit.unwrap_or(FIND_FILES_MAX).min(FIND_FILES_MAX)
}

fn look_up_file<S: SearchableFiles>(files: &S, path: &str) -> Result<Option<SearchedFileFacts>> {
    match files.look_up(path, FileOperationVerb::Find) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn matches_set(set: &GlobSet, path: &[u8]) -> bool {
    set.is_match_candidate(&Candidate::new(Path::new(OsStr::from_bytes(path))))
}

impl<F: SearchableFolder> Iterator for FileFinder<F> {
    type Item = Result<FoundPage>;

    /// Returns the next page, or `None` at the end and after a cancel. A page without files reports
    /// the progress.
    fn next(&mut self) -> Option<Result<FoundPage>> {
        if self.is_over || self.cancel.is_cancelled() {
            return None;
        }
        let mut page = FoundPage::default();
        if self.told.is_none() {
            let is_all = self.continue_walk();
            self.is_partial = !is_all && self.until.is_some_and(|until| Instant::now() >= until);
            if is_all || self.is_partial {
                self.told = Some(self.best.take_ranked());
            }
        }
        (page.count, page.is_partial) = (self.best.count, self.is_partial);
        if let Some((tree, _)) = &mut self.tree {
            page.left_out = tree.left_out;
            page.unreadable = tree.unreadable.drain(..).take(self.unreadable_left).collect();
            self.unreadable_left -= page.unreadable.len();
        }
        let mut bytes = 0;
        while bytes < WALK_BYTES_MAX {
            let Some(told) = &mut self.told else { break };
            let Some(one) = told.next() else {
                self.is_over = true;
                break;
            };
            let limits = self.tree.as_ref().and_then(|(tree, _)| tree.limits.as_ref());
            let is_protected = |limits: &TreeCallLimits| limits.is_protected(&one.path);
            let protected = one.protected || limits.is_some_and(is_protected);
            let path = format!("{}{}", self.folder, String::from_utf8_lossy(&one.path));
            bytes += FACTS_BYTES + json_size(&path);
            let (seconds, nanoseconds) = one.modified;
            let modified_ms = seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000);
            let size = one.size;
            page.files.push(FoundFile {
                path,
                size,
                modified_ms,
                protected,
                is_folder: one.is_folder,
                ..FoundFile::default()
            });
        }
        Some(Ok(page))
    }
}

impl<F: SearchableFolder> FileFinder<F> {
    /// Continues the walk for a while. Returns true at the end of the tree.
    fn continue_walk(&mut self) -> bool {
        let pause = Instant::now() + PROGRESS;
        let until = self.until.map_or(pause, |until| until.min(pause));
        while Instant::now() < until && !self.cancel.is_cancelled() {
            for _ in 0..CLOCK_ENTRIES {
                let Some((tree, set)) = &mut self.tree else { return true };
                let Some(kind) = tree.next() else { return true };
                if matches_kind(self.kind, kind) && matches_set(set, tree.path()) {
                    // A deleted file existed when it was found. It is sorted last.
                    let facts =
                        || SearchedFileFacts { kind, ..tree.entry_facts().unwrap_or_default() };
                    self.best.add_file(tree.path(), facts);
                }
            }
        }
        false
    }
}
