//! Searches texts. One thread walks the tree, others search the files, and the pages come in the
//! order of the paths.

mod coordinator;
mod file;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use globset::{Candidate, GlobSet};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use jaato_types::files::{
    FileKind, FileSearch, SEARCH_CONTEXT_LINES_MAX, SearchedLine, SearchedPage,
};
use jaato_types::{Error, ErrorKind, Result};

use self::coordinator::{
    FileSearchBatch, FileSearchJob, FileSearchSource, SearchCoordinator, SearchEvent,
};
use self::file::FileSearcher;
use super::folder::{NameOrder, SearchableFiles, SearchableFolder};
use super::glob::compile_glob_set;
use super::ignored::ExcludePatterns;
use super::limits::{DEPTH_MAX, PATH_BYTES_MAX};
use super::lines::{PageFiller, invalid_regex_error};
use super::tree::{TreeWalk, TreeWalkFilter};
use crate::errors::{self, FileOperationVerb};

/// How often a page reports the progress if nothing is found.
pub(crate) const PROGRESS: Duration = Duration::from_millis(200);

/// The maximum number of search threads.
const SEARCHERS_MAX: usize = 8;

/// The largest compiled regular expression, in bytes.
const PROGRAM_BYTES_MAX: usize = 10 * 1024 * 1024;

/// The maximum number of include and exclude patterns.
const PATTERNS_MAX: usize = 1000;

/// Cancels a search. The caller that waits for the next page gets none.
#[derive(Clone, Default)]
pub struct SearchCancel(Arc<SearchCancelState>);

#[derive(Default)]
struct SearchCancelState {
    is_set: AtomicBool,
    /// Wakes the threads of a search.
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl SearchCancel {
    /// Cancels the search.
    pub fn cancel_search(&self) {
        self.0.is_set.store(true, Relaxed);
        if let Some(wake) = self.0.wake.get() {
            wake();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.is_set.load(Relaxed)
    }

    fn on_cancel(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A cancel belongs to one search, so this is set once.
        let _ = self.0.wake.set(Box::new(wake));
    }
}

impl fmt::Debug for SearchCancel {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Cancel({})", self.is_cancelled())
    }
}

/// A search, page by page. It blocks. Dropping it ends its threads.
#[derive(Debug)]
pub(crate) struct FileContentSearch<F: SearchableFolder> {
    coordinator: Arc<SearchCoordinator<F>>,
    pub(crate) threads: Vec<thread::JoinHandle<()>>,
    filler: PageFiller,
    /// Lines of a file that did not fit into the page.
    rest: Option<(String, std::vec::IntoIter<SearchedLine>)>,
    is_over: bool,
}

/// Starts to search texts. If the path names a file, it is searched regardless of its name and
/// size. In folders, only regular files are searched, and links are not followed.
pub(crate) fn start_search<S: SearchableFiles>(
    files: &S,
    request: &FileSearch,
    cancel: &SearchCancel,
) -> Result<FileContentSearch<S::Folder>> {
    check_pattern_counts(request)?;
    let matcher = compile_matcher(request)?;
    let context_lines = request.context_lines.min(SEARCH_CONTEXT_LINES_MAX);
    let patterns: Vec<String> = request.files.iter().map(|it| match_any_depth(it)).collect();
    let pairs: Vec<(&str, &str)> =
        request.files.iter().zip(&patterns).map(|(told, it)| (told.as_str(), &**it)).collect();
    let patterns = (!pairs.is_empty()).then(|| compile_glob_set(&pairs)).transpose()?;
    let coordinator: Arc<SearchCoordinator<S::Folder>> = Arc::default();
    let cancelled = Arc::clone(&coordinator);
    cancel.on_cancel(move || cancelled.cancel());
    let filler = PageFiller::new(request.limit);
    let mut search =
        FileContentSearch { coordinator, threads: Vec::new(), filler, rest: None, is_over: false };
    let searcher = FileSearcher::new(matcher, context_lines, request);
    if let Some(job) = open_named_file(files, &request.path)? {
        let mut batch = FileSearchBatch::default();
        batch.add_job(job);
        search.coordinator.push_batch(batch);
        search.coordinator.finish_walk(Vec::new());
        search.search_on_threads(&searcher, 1)?;
        return Ok(search);
    }
    let looks = TreeWalkFilter {
        include_ignored: request.include_ignored,
        include_hidden: request.include_hidden,
        leave_out: ExcludePatterns::new(&request.leave_out, "")?,
        leave_out_unless_git: ExcludePatterns::new(&request.leave_out_unless_git, "")?,
        sorted: NameOrder::Yes,
        depth_max: DEPTH_MAX,
    };
    let tree = TreeWalk::start_walk(files.open_start_folder(&request.path)?, looks)?;
    let threads = thread::available_parallelism().map_or(1, |it| it.get().min(SEARCHERS_MAX));
    search.search_on_threads(&searcher, threads)?;
    let coordinator = Arc::clone(&search.coordinator);
    search.spawn_search_thread("jaato-walk", move || {
        walk_tree(tree, patterns.as_ref(), &coordinator)
    })?;
    Ok(search)
}

/// Opens the file that a path names. Returns `None` if it is a folder.
fn open_named_file<S: SearchableFiles>(
    files: &S,
    path: &str,
) -> Result<Option<FileSearchJob<S::Folder>>> {
    if path.is_empty() {
        return Ok(None);
    }
    match files.look_up(path, FileOperationVerb::Search)?.kind {
        FileKind::Folder => return Ok(None),
        FileKind::File => {}
        kind @ (FileKind::Link | FileKind::Other) => {
            return Err(errors::not_a_file_error(
                FileOperationVerb::Search,
                &files.display_path(path),
                kind,
            ));
        }
    }
    let (file, size) = files.open_file(path)?;
    let shown = files.display_path(path).display().to_string();
    Ok(Some(FileSearchJob {
        path: Box::default(),
        source: FileSearchSource::Open { file, size, shown },
    }))
}

impl<F: SearchableFolder> Iterator for FileContentSearch<F> {
    type Item = Result<SearchedPage>;

    /// Returns the next page, or `None` at the end and after a cancel. A page without files reports
    /// the progress.
    fn next(&mut self) -> Option<Result<SearchedPage>> {
        if self.is_over {
            return None;
        }
        let until = Instant::now() + PROGRESS;
        loop {
            self.add_remaining_lines();
            if self.filler.is_full() {
                return Some(Ok(self.take_page()));
            }
            match self.coordinator.next_event(until) {
                SearchEvent::Piece(piece) if self.filler.has_reached_limit() => drop(piece),
                SearchEvent::Piece(piece) => {
                    let path = String::from_utf8_lossy(&piece.path).into_owned();
                    match piece.matches {
                        Some(matches) => self.filler.push_count(path, matches),
                        None => self.rest = Some((path, piece.lines.into_iter())),
                    }
                }
                SearchEvent::Nothing => return Some(Ok(self.take_page())),
                SearchEvent::Over => {
                    self.is_over = true;
                    return Some(Ok(self.take_page()));
                }
                SearchEvent::Cancelled => {
                    self.is_over = true;
                    return None;
                }
                SearchEvent::Failed => {
                    self.is_over = true;
                    self.coordinator.cancel();
                    let broken = Error::new(ErrorKind::PluginPanicked, "the search panicked");
                    return Some(Err(broken));
                }
            }
        }
    }
}

impl<F: SearchableFolder> FileContentSearch<F> {
    fn add_remaining_lines(&mut self) {
        let Some((path, lines)) = &mut self.rest else { return };
        for line in lines.by_ref() {
            self.filler.push_line(path, line);
            if self.filler.is_full() {
                return;
            }
        }
        self.rest = None;
        if self.filler.has_reached_limit() {
            self.coordinator.set_limit_reached();
        }
    }

    fn take_page(&mut self) -> SearchedPage {
        let (totals, unreadable) = self.coordinator.counts_so_far();
        self.filler.totals = totals;
        unreadable.into_iter().for_each(|it| self.filler.push_unreadable(it));
        self.filler.take_page()
    }

    fn search_on_threads(&mut self, searcher: &FileSearcher, count: usize) -> Result<()> {
        for _ in 0..count {
            let (coordinator, mut searcher) = (Arc::clone(&self.coordinator), searcher.clone());
            self.spawn_search_thread("jaato-search", move || {
                while let Some((number, batch)) = coordinator.take_batch() {
                    searcher.search_batch(&coordinator, number, batch);
                }
            })?;
        }
        Ok(())
    }

    fn spawn_search_thread(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        let coordinator = Arc::clone(&self.coordinator);
        let guarded = move || {
            // The guard wakes the caller that waits for pages, even if the thread panics.
            let _guard = coordinator.panic_guard();
            work();
        };
        let started = thread::Builder::new().name(name.to_owned()).spawn(guarded);
        let thread = started.map_err(|error| {
            let text = format!("cannot start a thread to search: {}", error.kind());
            Error::new(ErrorKind::LimitReached, text).temporary()
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl<F: SearchableFolder> Drop for FileContentSearch<F> {
    fn drop(&mut self) {
        // Do not wait for the threads: they check the flag often.
        self.coordinator.cancel();
    }
}

/// Walks the tree and passes its files to the search threads.
fn walk_tree<F: SearchableFolder>(
    mut tree: TreeWalk<F>,
    patterns: Option<&GlobSet>,
    coordinator: &SearchCoordinator<F>,
) {
    let mut batch = FileSearchBatch::default();
    while let Some(kind) = tree.next() {
        if coordinator.is_cancelled() {
            return;
        }
        if kind != FileKind::File {
            continue;
        }
        let path = tree.path();
        let is_wanted = patterns.is_none_or(|set| {
            use std::os::unix::ffi::OsStrExt as _;
            let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
            set.is_match_candidate(&Candidate::new(path))
        });
        let Some((folder, name)) = tree.entry_location().filter(|_| is_wanted) else { continue };
        let source = FileSearchSource::In { folder: folder.clone(), name_bytes: name.len() };
        batch.add_job(FileSearchJob { path: path.into(), source });
        if batch.is_full() {
            coordinator.record_skipped(tree.left_out);
            if !coordinator.push_batch(std::mem::take(&mut batch)) {
                return;
            }
        }
    }
    if !batch.jobs.is_empty() {
        coordinator.push_batch(batch);
    }
    coordinator.record_skipped(tree.left_out);
    coordinator.finish_walk(std::mem::take(&mut tree.unreadable));
}

fn compile_matcher(request: &FileSearch) -> Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(request.ignore_case).multi_line(true).unicode(true).crlf(true);
    if request.multi_line {
        builder.dot_matches_new_line(true).line_terminator(None);
    }
    builder
        .size_limit(PROGRAM_BYTES_MAX)
        .dfa_size_limit(PROGRAM_BYTES_MAX)
        .build(&request.pattern)
        .map_err(|error| invalid_regex_error(&request.pattern, error))
}

/// Extends a pattern without `/` so that it matches names at any depth.
fn match_any_depth(pattern: &str) -> String {
    match pattern.contains('/') {
        true => pattern.to_owned(),
        false => format!("**/{pattern}"),
    }
}

fn check_pattern_counts(request: &FileSearch) -> Result<()> {
    let count = request.files.len().max(request.leave_out.len());
    if count > PATTERNS_MAX {
        let text = format!("{count} file patterns exceed the limit of {PATTERNS_MAX}");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    if request.files.iter().any(|it| it.is_empty() || it.len() > PATH_BYTES_MAX) {
        let text = "a file pattern is empty or too long";
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(())
}
