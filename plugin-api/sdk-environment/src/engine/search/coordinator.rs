//! The shared state of a search's threads: batches of files to search, and their results in the
//! order of the batches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use jaato_types::files::{SearchTotals, SearchedLine, SkippedEntryCounts, UNREADABLE_MAX};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::super::folder::SearchableFolder;

/// Files in one batch: enough that the handover is cheap compared with the search.
const BATCH_FILES: usize = 64;
/// Folders in one batch. Each stays open while it waits.
const BATCH_FOLDERS: usize = 8;
/// Batches that wait, are being searched, or hold results that are not on a page yet.
const BATCHES_MAX: usize = 16;
/// The approximate bytes of lines that one batch holds. Beyond that, the search thread waits until
/// the caller takes some.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// A file to search.
#[derive(Debug)]
pub(super) struct FileSearchJob<F: SearchableFolder> {
    /// The path from the top of the search; empty if the search names the file.
    pub(super) path: Box<[u8]>,
    pub(super) source: FileSearchSource<F>,
}

/// Where a file is.
#[derive(Debug)]
pub(super) enum FileSearchSource<F: SearchableFolder> {
    /// In a folder. Its name is the last bytes of the path.
    In { folder: F, name_bytes: usize },
    /// Already open. `shown` is its path as errors show it.
    Open { file: F::File, size: u64, shown: String },
}

/// Files that one thread searches in sequence.
#[derive(Debug)]
pub(super) struct FileSearchBatch<F: SearchableFolder> {
    pub(super) jobs: Vec<FileSearchJob<F>>,
    folders: usize,
}

/// Lines found in a file. The lines of one file may arrive in several pieces.
#[derive(Debug)]
pub(super) struct FileMatches {
    pub(super) path: Box<[u8]>,
    pub(super) lines: Vec<SearchedLine>,
    pub(super) bytes: usize,
    /// The number of matches in the file, instead of lines.
    pub(super) matches: Option<u64>,
}

impl FileMatches {
    pub(super) fn from_count(path: &[u8], matches: u64) -> Self {
        Self { path: path.into(), lines: Vec::new(), bytes: path.len(), matches: Some(matches) }
    }
}

/// The next event of a search.
#[derive(Debug)]
pub(super) enum SearchEvent {
    Piece(FileMatches),
    /// Nothing arrived in time.
    Nothing,
    Over,
    Cancelled,
    /// A thread panicked.
    Failed,
}

/// The shared state. See the module docs.
#[derive(Debug)]
pub(super) struct SearchCoordinator<F: SearchableFolder> {
    state: Mutex<SearchCoordinatorState<F>>,
    /// Signalled when there is work, or room for more.
    work: Condvar,
    /// Signalled when there are results, and at the end.
    news: Condvar,
    is_cancelled: AtomicBool,
    /// Further matches are only counted.
    is_enough: AtomicBool,
    /// The caller is waiting for results.
    is_awaited: AtomicBool,
}

#[derive(Debug)]
struct SearchCoordinatorState<F: SearchableFolder> {
    waiting: VecDeque<(u64, FileSearchBatch<F>)>,
    /// The batches whose results are not on a page yet, in order.
    slots: VecDeque<SearchBatchSlot>,
    /// The number of the first slot.
    first: u64,
    is_walked: bool,
    has_failed: bool,
    totals: SearchTotals,
    unreadable: Vec<String>,
}

#[derive(Debug, Default)]
struct SearchBatchSlot {
    pieces: VecDeque<FileMatches>,
    bytes: usize,
    is_done: bool,
}

impl<F: SearchableFolder> Default for FileSearchBatch<F> {
    fn default() -> Self {
        Self { jobs: Vec::new(), folders: 0 }
    }
}

impl<F: SearchableFolder> Default for SearchCoordinator<F> {
    fn default() -> Self {
        let state = SearchCoordinatorState {
            waiting: VecDeque::new(),
            slots: VecDeque::new(),
            first: 0,
            is_walked: false,
            has_failed: false,
            totals: SearchTotals::default(),
            unreadable: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            news: Condvar::new(),
            is_cancelled: AtomicBool::new(false),
            is_enough: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
        }
    }
}

impl<F: SearchableFolder> FileSearchBatch<F> {
    pub(super) fn add_job(&mut self, job: FileSearchJob<F>) {
        let is_same = match (self.jobs.last().map(|it| &it.source), &job.source) {
            (
                Some(FileSearchSource::In { folder: last, .. }),
                FileSearchSource::In { folder, .. },
            ) => last.is_same_folder(folder),
            _ => false,
        };
        self.folders += usize::from(!is_same);
        self.jobs.push(job);
    }

    pub(super) fn is_full(&self) -> bool {
        self.jobs.len() >= BATCH_FILES || self.folders >= BATCH_FOLDERS
    }
}

impl<F: SearchableFolder> SearchCoordinator<F> {
    /// Passes a batch to the search threads, and waits for room. Returns false if the search was
    /// cancelled.
    pub(super) fn push_batch(&self, batch: FileSearchBatch<F>) -> bool {
        let mut state = self.state.lock();
        while state.slots.len() >= BATCHES_MAX && !self.is_cancelled() {
            self.work.wait(&mut state);
        }
        if self.is_cancelled() {
            return false;
        }
        let number = state.first + state.slots.len() as u64;
        state.slots.push_back(SearchBatchSlot::default());
        state.waiting.push_back((number, batch));
        self.work.notify_all();
        true
    }

    /// Records how many entries the walk has skipped so far.
    pub(super) fn record_skipped(&self, left_out: SkippedEntryCounts) {
        self.state.lock().totals.left_out = left_out;
    }

    /// Records that the walk is over.
    pub(super) fn finish_walk(&self, unreadable: Vec<String>) {
        let mut state = self.state.lock();
        state.is_walked = true;
        unreadable.into_iter().for_each(|line| state.add_unreadable(line));
        self.work.notify_all();
        self.news.notify_all();
    }

    /// Takes a batch to search, or `None` at the end.
    pub(super) fn take_batch(&self) -> Option<(u64, FileSearchBatch<F>)> {
        let mut state = self.state.lock();
        loop {
            if self.is_cancelled() {
                return None;
            }
            if let Some(batch) = state.waiting.pop_front() {
                return Some(batch);
            }
            if state.is_walked {
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    /// Adds lines, and waits for room. Returns false if the search was cancelled.
    pub(super) fn add_matches(&self, number: u64, piece: FileMatches) -> bool {
        let mut state = self.state.lock();
        loop {
            if self.is_cancelled() {
                return false;
            }
            let Some(slot) = state.batch_slot(number) else { return false };
            if slot.bytes < BATCH_BYTES_MAX {
                slot.bytes += piece.bytes;
                slot.pieces.push_back(piece);
                if number == state.first {
                    self.news.notify_all();
                }
                return true;
            }
            self.work.wait(&mut state);
        }
    }

    /// Records that a batch was searched, with its counts.
    pub(super) fn finish_batch(&self, number: u64, totals: &SearchTotals, unreadable: Vec<String>) {
        let mut state = self.state.lock();
        let all = &mut state.totals;
        all.matches += totals.matches;
        all.files_with_matches += totals.files_with_matches;
        all.files_searched += totals.files_searched;
        all.files_too_large += totals.files_too_large;
        all.files_binary += totals.files_binary;
        unreadable.into_iter().for_each(|line| state.add_unreadable(line));
        if let Some(slot) = state.batch_slot(number) {
            slot.is_done = true;
        }
        if number == state.first {
            self.news.notify_all();
        }
    }

    /// Waits until the deadline for the next event, in order.
    pub(super) fn next_event(&self, until: Instant) -> SearchEvent {
        let mut state = self.state.lock();
        loop {
            if self.is_cancelled() {
                return SearchEvent::Cancelled;
            }
            if state.has_failed {
                return SearchEvent::Failed;
            }
            if let Some(news) = self.take_event(&mut state) {
                return news;
            }
            self.is_awaited.store(true, Relaxed);
            let is_late = self.news.wait_until(&mut state, until).timed_out();
            self.is_awaited.store(false, Relaxed);
            if is_late {
                return self.take_event(&mut state).unwrap_or(SearchEvent::Nothing);
            }
        }
    }

    fn take_event(
        &self,
        state: &mut MutexGuard<'_, SearchCoordinatorState<F>>,
    ) -> Option<SearchEvent> {
        while let Some(slot) = state.slots.front_mut() {
            if let Some(piece) = slot.pieces.pop_front() {
                slot.bytes -= piece.bytes;
                self.work.notify_all();
                return Some(SearchEvent::Piece(piece));
            }
            if !slot.is_done {
                return None;
            }
            state.slots.pop_front();
            state.first += 1;
            self.work.notify_all();
        }
        state.is_walked.then_some(SearchEvent::Over)
    }

    /// Returns the counts so far, and the unreadable files since the last call.
    pub(super) fn counts_so_far(&self) -> (SearchTotals, Vec<String>) {
        let mut state = self.state.lock();
        (state.totals, std::mem::take(&mut state.unreadable))
    }

    pub(super) fn set_limit_reached(&self) {
        self.is_enough.store(true, Relaxed);
    }

    pub(super) fn is_limit_reached(&self) -> bool {
        self.is_enough.load(Relaxed)
    }

    pub(super) fn is_caller_waiting(&self) -> bool {
        self.is_awaited.load(Relaxed)
    }

    pub(super) fn cancel(&self) {
        // The lock prevents a thread from checking the flag before it is set and waiting
        // afterwards.
        let state = self.state.lock();
        self.is_cancelled.store(true, Relaxed);
        self.work.notify_all();
        self.news.notify_all();
        drop(state);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    /// Returns a guard that records a panic of its thread.
    pub(super) fn panic_guard(self: &Arc<Self>) -> SearchPanicGuard<F> {
        SearchPanicGuard(Arc::clone(self))
    }
}

/// See [`SearchCoordinator::panic_guard`].
pub(super) struct SearchPanicGuard<F: SearchableFolder>(Arc<SearchCoordinator<F>>);

impl<F: SearchableFolder> Drop for SearchPanicGuard<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.lock().has_failed = true;
            self.0.news.notify_all();
        }
    }
}

impl<F: SearchableFolder> SearchCoordinatorState<F> {
    fn batch_slot(&mut self, number: u64) -> Option<&mut SearchBatchSlot> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(at)
    }

    fn add_unreadable(&mut self, line: String) {
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.push(line);
        }
    }
}
