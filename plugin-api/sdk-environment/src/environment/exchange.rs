//! Runs the blocking engine over the six required methods of [`Files`], which are asynchronous.
//!
//! The engine runs on its own thread and sends each question about a file or folder over a
//! [`EngineChannel`]. The call that waits for a page answers the questions, so the environment gets
//! none while no call waits. Dropping the [`EnginePageExchange`] ends the thread.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::task::{Context, Poll, Waker};
use std::thread;

use jaato_plugin_sdk::Reporter;
use jaato_types::files::{
    FileBytes, FileFacts, FileFind, FilePath, FileRead, FileSearch, FileWalk, FolderEntries,
    FolderList, FoundPage, SearchedPage, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use super::files::Files;
use super::remote::RemoteFiles;
use super::streams::{NextPage, PageStream, StreamStep};
use crate::engine::{self, SearchCancel, TreeCallLimits};

/// The maximum number of entries that one operation lists, because each may cost a request to the
/// environment.
pub(super) const ENTRIES_MAX: usize = 100_000;

/// Finds files page by page.
pub(super) async fn find<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    find: FileFind,
    limits: Option<TreeCallLimits>,
) -> Result<PageStream<F, FoundPage>> {
    let work = move |line| {
        engine::find_files(&RemoteFiles::new(line, limits), &find, &SearchCancel::default())
    };
    Ok(PageStream::from_pages(EnginePageExchange::start_engine(files, host, work).await?))
}

/// Searches page by page.
pub(super) async fn search<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    search: FileSearch,
    limits: Option<TreeCallLimits>,
) -> Result<PageStream<F, SearchedPage>> {
    let work = move |line| {
        engine::start_search(&RemoteFiles::new(line, limits), &search, &SearchCancel::default())
    };
    Ok(PageStream::from_pages(EnginePageExchange::start_engine(files, host, work).await?))
}

/// Walks page by page.
pub(super) async fn walk<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    walk: FileWalk,
    limits: Option<TreeCallLimits>,
) -> Result<PageStream<F, WalkedPage>> {
    let work = move |line| engine::walk_pages(&RemoteFiles::new(line, limits), &walk);
    Ok(PageStream::from_pages(EnginePageExchange::start_engine(files, host, work).await?))
}

/// Joins a folder and a name. An empty folder is the default folder.
pub(super) fn join_path(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        _ if folder.ends_with('/') => format!("{folder}{name}"),
        _ => format!("{folder}/{name}"),
    }
}

/// The pages that the engine produces on its thread.
struct EnginePageExchange<P> {
    shared: Arc<SharedExchange>,
    /// The first `None` means that the engine has started, the second that it has ended.
    pages: Receiver<Result<Option<P>>>,
}

/// The engine's end of the exchange.
#[derive(Debug, Clone)]
pub(super) struct EngineChannel(Arc<SharedExchange>);

#[derive(Debug, Default)]
struct SharedExchange(Mutex<EngineExchangeState>);

#[derive(Debug, Default)]
struct EngineExchangeState {
    asked: VecDeque<EngineQuestion>,
    /// Wakes the call that waits for a question or a page.
    waiting: Option<Waker>,
    /// The number of entries listed so far.
    listed: usize,
    /// The error that ended the work.
    failed: Option<Error>,
    is_closed: bool,
}

/// A question of the engine, and the channel for its answer.
#[derive(Debug)]
enum EngineQuestion {
    Read(FileRead, SyncSender<Result<(FileBytes, Vec<u8>)>>),
    Stat(FilePath, SyncSender<Result<FileFacts>>),
    List(FolderList, SyncSender<Result<FolderEntries>>),
}

impl EngineChannel {
    /// Reads a range of a file.
    pub(super) fn read(&self, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        self.ask_and_wait(|answer| EngineQuestion::Read(read, answer))
    }

    /// Returns the facts of a file or folder.
    pub(super) fn stat(&self, path: FilePath) -> Result<FileFacts> {
        self.ask_and_wait(|answer| EngineQuestion::Stat(path, answer))
    }

    /// Lists a part of a folder.
    pub(super) fn list(&self, list: FolderList) -> Result<FolderEntries> {
        let path = list.path.clone();
        let listed = self.ask_and_wait(|answer| EngineQuestion::List(list, answer))?;
        let mut state = self.0.0.lock();
        state.listed += listed.entries.len();
        if state.listed > ENTRIES_MAX {
            let text = format!("`{path}`: the tree has more than {ENTRIES_MAX} files");
            let error = Error::new(ErrorKind::LimitReached, text);
            let error = error.with_hint("search one of its folders instead");
            state.failed = Some(error.clone());
            state.close();
            return Err(error);
        }
        Ok(listed)
    }

    fn ask_and_wait<T>(
        &self,
        ask: impl FnOnce(SyncSender<Result<T>>) -> EngineQuestion,
    ) -> Result<T> {
        let (answer, answered) = sync_channel(1);
        {
            let mut state = self.0.0.lock();
            if state.is_closed {
                return Err(Error::cancelled());
            }
            state.asked.push_back(ask(answer));
            state.wake_waiter();
        }
        answered.recv().unwrap_or_else(|_| Err(Error::cancelled()))
    }
}

impl EngineExchangeState {
    fn wake_waiter(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }

    /// Stops answering questions.
    fn close(&mut self) {
        self.is_closed = true;
        self.asked.clear();
        self.wake_waiter();
    }
}

impl<P> Drop for EnginePageExchange<P> {
    fn drop(&mut self) {
        self.shared.0.lock().close();
    }
}

/// A question that a call answers. If the call is dropped first, the next call answers it.
struct EngineQuestionInProgress<'a> {
    shared: &'a SharedExchange,
    ask: Option<EngineQuestion>,
}

impl Drop for EngineQuestionInProgress<'_> {
    fn drop(&mut self) {
        if let Some(ask) = self.ask.take() {
            self.shared.0.lock().asked.push_front(ask);
        }
    }
}

impl EngineQuestionInProgress<'_> {
    async fn answer_question<F: Files + ?Sized>(mut self, files: &F, host: &Reporter) {
        // The engine may have stopped waiting.
        match &self.ask {
            Some(EngineQuestion::Read(read, to)) => {
                _ = to.send(files.read(host, read.clone()).await)
            }
            Some(EngineQuestion::Stat(path, to)) => {
                _ = to.send(files.stat(host, path.clone()).await)
            }
            Some(EngineQuestion::List(list, to)) => {
                _ = to.send(files.list(host, list.clone()).await)
            }
            None => {}
        }
        self.ask = None;
    }
}

impl<P: Send + 'static> EnginePageExchange<P> {
    /// Starts the work on a thread and waits until the engine has opened its first folder.
    async fn start_engine<F: Files + ?Sized, I: Iterator<Item = Result<P>>>(
        files: &F,
        host: &Reporter,
        work: impl FnOnce(EngineChannel) -> Result<I> + Send + 'static,
    ) -> Result<Self> {
        let (to, pages) = sync_channel(1);
        let shared = Arc::new(SharedExchange::default());
        let line = EngineChannel(Arc::clone(&shared));
        let started = thread::Builder::new().name("jaato-files".to_owned()).spawn(move || {
            let told = EnginePageSender { line: line.clone(), to: Some(to) };
            match work(line) {
                Ok(pages) => {
                    let pages = pages.map(|page| page.map(Some));
                    let mut all = std::iter::once(Ok(None)).chain(pages);
                    if all.all(|page| told.send_page(page)) {
                        told.send_page(Ok(None));
                    }
                }
                Err(error) => _ = told.send_page(Err(error)),
            }
        });
        started.map_err(|error| {
            let text = format!("cannot start a thread to search: {}", error.kind());
            Error::new(ErrorKind::LimitReached, text).temporary()
        })?;
        let mut exchange = Self { shared, pages };
        exchange.next_page(files, host).await?;
        Ok(exchange)
    }

    /// Answers the engine until the next page arrives. Returns `None` at the end.
    async fn next_page<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
    ) -> Result<Option<P>> {
        loop {
            match poll_fn(|cx| self.poll_next(cx)).await {
                EngineEvent::Ask(ask) => {
                    EngineQuestionInProgress { shared: &self.shared, ask: Some(ask) }
                        .answer_question(files, host)
                        .await;
                }
                EngineEvent::Page(page) => return page,
            }
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<EngineEvent<P>> {
        let mut state = self.shared.0.lock();
        if let Some(error) = state.failed.take() {
            return Poll::Ready(EngineEvent::Page(Err(error)));
        }
        match self.pages.try_recv() {
            Ok(page) => return Poll::Ready(EngineEvent::Page(page)),
            Err(TryRecvError::Disconnected) => {
                return Poll::Ready(EngineEvent::Page(Err(broken_exchange_error())));
            }
            Err(TryRecvError::Empty) => {}
        }
        match state.asked.pop_front() {
            Some(ask) => Poll::Ready(EngineEvent::Ask(ask)),
            None => {
                state.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A question or a page.
enum EngineEvent<P> {
    Ask(EngineQuestion),
    Page(Result<Option<P>>),
}

/// Sends pages from the engine's thread. Wakes the waiting call, however the thread ends.
struct EnginePageSender<P> {
    line: EngineChannel,
    to: Option<SyncSender<Result<Option<P>>>>,
}

impl<P> EnginePageSender<P> {
    /// Sends a page. Returns false if no call wants more.
    fn send_page(&self, page: Result<Option<P>>) -> bool {
        let is_told = self.to.as_ref().is_some_and(|to| to.send(page).is_ok());
        self.line.0.0.lock().wake_waiter();
        is_told
    }
}

impl<P> Drop for EnginePageSender<P> {
    fn drop(&mut self) {
        self.to = None;
        self.line.0.0.lock().wake_waiter();
    }
}

impl<F: Files + ?Sized, P: Send + 'static> NextPage<F, P> for EnginePageExchange<P> {
    fn next<'a>(&'a mut self, files: &'a F, host: &'a Reporter) -> StreamStep<'a, Option<P>> {
        Box::pin(self.next_page(files, host))
    }
}

fn broken_exchange_error() -> Error {
    Error::new(ErrorKind::PluginPanicked, "the search panicked")
}

#[cfg(test)]
mod tests;
