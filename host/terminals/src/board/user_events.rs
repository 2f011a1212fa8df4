//! Users' actions in a plugin's terminals, as a stream for the plugin.
//!
//! The stream has no queue. It keeps only the number of watchers per terminal, and the amount of
//! input since the last report.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use jaato_types::terminal::TerminalUserAction;
use jaato_types::{Error, ErrorKind, Frame};
use parking_lot::{Mutex, MutexGuard};

/// The unreported news.
#[derive(Default)]
pub(crate) struct UnreportedTerminalNews(Mutex<TerminalNewsItems>);

#[derive(Default)]
struct TerminalNewsItems {
    watched: BTreeMap<u64, u32>,
    typed: BTreeMap<u64, u64>,
    waker: Option<Waker>,
}

/// The stream of news for one reader.
pub(crate) struct TerminalNewsStream(pub(crate) Arc<UnreportedTerminalNews>);

impl UnreportedTerminalNews {
    /// Sets the number of users who look at a terminal.
    pub(crate) fn set_watchers(&self, terminal: u64, watchers: u32) {
        self.change_items(|untold| untold.watched.insert(terminal, watchers));
    }

    /// Adds to the amount of input.
    pub(crate) fn add_input(&self, terminal: u64, bytes: u64) {
        self.change_items(|untold| *untold.typed.entry(terminal).or_default() += bytes);
    }

    fn change_items<T>(&self, change: impl FnOnce(&mut TerminalNewsItems) -> T) {
        let mut untold = self.lock_items();
        change(&mut untold);
        if let Some(waker) = untold.waker.take() {
            waker.wake();
        }
    }

    fn lock_items(&self) -> MutexGuard<'_, TerminalNewsItems> {
        self.0.lock()
    }
}

impl TerminalNewsItems {
    fn next(&mut self) -> Option<TerminalUserAction> {
        if let Some((terminal, watchers)) = self.watched.pop_first() {
            return Some(TerminalUserAction::Watched { terminal, watchers });
        }
        let (terminal, bytes) = self.typed.pop_first()?;
        Some(TerminalUserAction::Typed { terminal, bytes })
    }
}

impl Stream for TerminalNewsStream {
    type Item = Result<Vec<u8>, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut untold = self.0.lock_items();
        let Some(news) = untold.next() else {
            untold.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let frame = Frame::write(&news);
        Poll::Ready(Some(frame.map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))))
    }
}
