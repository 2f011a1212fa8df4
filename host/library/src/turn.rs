//! A turn that runs while it is polled: a stream of events, and a future of the report.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::future::BoxFuture;
use jaato_runtime::session_loop::{Cancel, TurnReport};
use jaato_runtime::types::{Error, ErrorKind, Event, Result};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::session::RunningTurn;

/// A turn of a session. It runs while it is polled, as a stream of the session's own events or as a
/// future of the report. Dropping it cancels the turn.
///
/// The report is an error if the turn failed. A cancelled turn, or one that reached a limit, has a
/// report whose `outcome` says so.
#[must_use = "a turn runs only while it is polled"]
pub struct Turn {
    // Dropped first, so that everything that the turn started sees the cancellation.
    guard: RunningTurn,
    running: Option<BoxFuture<'static, TurnReport>>,
    // Deltas wait here only while no one polls. Limits on an answer's length bound it.
    events: UnboundedReceiver<Event>,
    report: Option<TurnReport>,
}

impl Turn {
    pub(crate) fn new(
        guard: RunningTurn,
        running: BoxFuture<'static, TurnReport>,
        events: UnboundedReceiver<Event>,
    ) -> Self {
        Self { guard, running: Some(running), events, report: None }
    }

    /// Returns the next event, or `None` after the last one. Same as the stream, for programs
    /// without a crate for streams.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Returns the token that cancels this turn.
    pub fn cancel(&self) -> Cancel {
        self.guard.cancel()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Poll::Ready(Some(event)) = self.events.poll_recv(cx) {
            return Poll::Ready(Some(event));
        }
        if let Some(running) = &mut self.running
            && let Poll::Ready(report) = running.as_mut().poll(cx)
        {
            self.running = None;
            self.report = Some(report);
            self.guard.end();
        }
        // The turn's end closes the channel, behind the last event.
        self.events.poll_recv(cx)
    }
}

impl Stream for Turn {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.get_mut().poll_event(cx)
    }
}

impl Future for Turn {
    type Output = Result<TurnReport>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let own = self.get_mut();
        loop {
            match own.poll_event(cx) {
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(match own.report.take() {
            Some(TurnReport { error: Some(error), .. }) => Err(error),
            Some(report) => Ok(report),
            None => Err(Error::new(ErrorKind::HostBug, "a turn was polled after its report")),
        })
    }
}
