//! Searches texts. One thread walks the tree, others search the files, and the pages come in the
//! order of the paths.

mod board;
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

use self::board::{FileSearchBatch, FileSearchJob, FileSearchSource, SearchBoard, SearchEvent};
use self::file::FileSearcher;
use super::folder::{NameOrder, SearchableFiles, SearchableFolder};
use super::glob::compiled_set;
use super::ignored::ExcludePatterns;
use super::limits::{DEPTH_MAX, PATH_BYTES_MAX};
use super::lines::{PageFiller, wrong_regex};
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
    pub fn set(&self) {
        self.0.is_set.store(true, Relaxed);
        if let Some(wake) = self.0.wake.get() {
            wake();
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Relaxed)
    }

    fn wakes(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A cancel belongs to one search, so this is set once.
        let _ = self.0.wake.set(Box::new(wake));
    }
}

impl fmt::Debug for SearchCancel {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Cancel({})", self.is_set())
    }
}

/// A search, page by page. It blocks. Dropping it ends its threads.
#[derive(Debug)]
pub(crate) struct FileContentSearch<F: SearchableFolder> {
    board: Arc<SearchBoard<F>>,
    pub(crate) threads: Vec<thread::JoinHandle<()>>,
    filler: PageFiller,
    /// Lines of a file that did not fit into the page.
    rest: Option<(String, std::vec::IntoIter<SearchedLine>)>,
    is_over: bool,
}

/// Starts to search texts. If the path names a file, it is searched regardless of its name and
/// size. In folders, only regular files are searched, and links are not followed.
pub(crate) fn search<S: SearchableFiles>(
    files: &S,
    request: &FileSearch,
    cancel: &SearchCancel,
) -> Result<FileContentSearch<S::Folder>> {
    check_counts(request)?;
    let matcher = compile_matcher(request)?;
    let context_lines = request.context_lines.min(SEARCH_CONTEXT_LINES_MAX);
    let patterns: Vec<String> = request.files.iter().map(|it| at_any_depth(it)).collect();
    let pairs: Vec<(&str, &str)> =
        request.files.iter().zip(&patterns).map(|(told, it)| (told.as_str(), &**it)).collect();
    let patterns = (!pairs.is_empty()).then(|| compiled_set(&pairs)).transpose()?;
    let board: Arc<SearchBoard<S::Folder>> = Arc::default();
    let cancelled = Arc::clone(&board);
    cancel.wakes(move || cancelled.cancel());
    let filler = PageFiller::new(request.limit);
    let mut search =
        FileContentSearch { board, threads: Vec::new(), filler, rest: None, is_over: false };
    let searcher = FileSearcher::new(matcher, context_lines, request);
    if let Some(job) = named_file(files, &request.path)? {
        let mut batch = FileSearchBatch::default();
        batch.add(job);
        search.board.push(batch);
        search.board.walk_is_over(Vec::new());
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
    let tree = TreeWalk::begin(files.top(&request.path)?, looks)?;
    let threads = thread::available_parallelism().map_or(1, |it| it.get().min(SEARCHERS_MAX));
    search.search_on_threads(&searcher, threads)?;
    let board = Arc::clone(&search.board);
    search.start_thread("jaato-walk", move || walk_tree(tree, patterns.as_ref(), &board))?;
    Ok(search)
}

/// Opens the file that a path names. Returns `None` if it is a folder.
fn named_file<S: SearchableFiles>(
    files: &S,
    path: &str,
) -> Result<Option<FileSearchJob<S::Folder>>> {
    if path.is_empty() {
        return Ok(None);
    }
    match files.look(path, FileOperationVerb::Search)?.kind {
        FileKind::Folder => return Ok(None),
        FileKind::File => {}
        kind @ (FileKind::Link | FileKind::Other) => {
            return Err(errors::no_file(FileOperationVerb::Search, &files.shown(path), kind));
        }
    }
    let (file, size) = files.open(path)?;
    let shown = files.shown(path).display().to_string();
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
            self.tell_rest();
            if self.filler.is_full() {
                return Some(Ok(self.take_page()));
            }
            match self.board.next(until) {
                SearchEvent::Piece(piece) if self.filler.is_enough() => drop(piece),
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
                    self.board.cancel();
                    let broken = Error::new(ErrorKind::PluginPanicked, "the search panicked");
                    return Some(Err(broken));
                }
            }
        }
    }
}

impl<F: SearchableFolder> FileContentSearch<F> {
    fn tell_rest(&mut self) {
        let Some((path, lines)) = &mut self.rest else { return };
        for line in lines.by_ref() {
            self.filler.push(path, line);
            if self.filler.is_full() {
                return;
            }
        }
        self.rest = None;
        if self.filler.is_enough() {
            self.board.tell_no_more();
        }
    }

    fn take_page(&mut self) -> SearchedPage {
        let (totals, unreadable) = self.board.counts_so_far();
        self.filler.totals = totals;
        unreadable.into_iter().for_each(|it| self.filler.push_unreadable(it));
        self.filler.take_page()
    }

    fn search_on_threads(&mut self, searcher: &FileSearcher, count: usize) -> Result<()> {
        for _ in 0..count {
            let (board, mut searcher) = (Arc::clone(&self.board), searcher.clone());
            self.start_thread("jaato-search", move || {
                while let Some((number, batch)) = board.take_batch() {
                    searcher.search(&board, number, batch);
                }
            })?;
        }
        Ok(())
    }

    fn start_thread(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let board = Arc::clone(&self.board);
        let guarded = move || {
            // The guard wakes the caller that waits for pages, even if the thread panics.
            let _guard = board.guard();
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
        self.board.cancel();
    }
}

/// Walks the tree and passes its files to the search threads.
fn walk_tree<F: SearchableFolder>(
    mut tree: TreeWalk<F>,
    patterns: Option<&GlobSet>,
    board: &SearchBoard<F>,
) {
    let mut batch = FileSearchBatch::default();
    while let Some(kind) = tree.next() {
        if board.is_cancelled() {
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
        batch.add(FileSearchJob { path: path.into(), source });
        if batch.is_full() {
            board.left_out(tree.left_out);
            if !board.push(std::mem::take(&mut batch)) {
                return;
            }
        }
    }
    if !batch.jobs.is_empty() {
        board.push(batch);
    }
    board.left_out(tree.left_out);
    board.walk_is_over(std::mem::take(&mut tree.unreadable));
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
        .map_err(|error| wrong_regex(&request.pattern, error))
}

/// Extends a pattern without `/` so that it matches names at any depth.
fn at_any_depth(pattern: &str) -> String {
    match pattern.contains('/') {
        true => pattern.to_owned(),
        false => format!("**/{pattern}"),
    }
}

fn check_counts(request: &FileSearch) -> Result<()> {
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
