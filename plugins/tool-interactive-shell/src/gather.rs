//! Reads a flood in large pieces: of such a piece the screen passes over all that nobody will see.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::TerminalHappened;

use crate::backend::Events;

/// A piece of so many bytes is one of a flood: a terminal holds half of that at a time, and more is
/// told at once only of a program that prints on and on.
const FLOOD_BYTES: usize = 8 * 1024;

/// Bytes that are gathered: of many times more lines than screen and history have.
const GATHER_BYTES: usize = 1024 * 1024;

/// How long it is gathered at most. Nobody sees that a flood is shown a twentieth of a second late;
const GATHER_MAX: Duration = Duration::from_millis(50);

/// but its end is to be seen at once: one that pauses for so long is over.
const PAUSE: Duration = Duration::from_millis(2);

/// What happens on a terminal, read for its screen.
pub struct Gathered {
    events: Box<dyn Events>,
    /// What came behind the last piece that was gathered.
    next: Option<Result<Option<TerminalHappened>>>,
}

impl Gathered {
    /// Takes the events.
    pub fn new(events: Box<dyn Events>) -> Self {
        Self { events, next: None }
    }

    /// Gives the events back.
    pub fn into_events(self) -> Box<dyn Events> {
        self.events
    }

    /// Waits for what happens next. A flood is gathered where `is_wanted` says that somebody waits
    /// for it.
    ///
    /// # Errors
    /// What the terminal is lost by.
    pub async fn next(
        &mut self,
        host: &Reporter,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<TerminalHappened>> {
        let happened = match self.next.take() {
            Some(next) => next,
            None => self.events.next().await,
        };
        match happened {
            Ok(Some(TerminalHappened::Output(bytes)))
                if bytes.len() >= FLOOD_BYTES && is_wanted() =>
            {
                Ok(Some(TerminalHappened::Output(self.gather(bytes, host).await)))
            }
            other => other,
        }
    }

    async fn gather(&mut self, mut bytes: Vec<u8>, host: &Reporter) -> Vec<u8> {
        let begun = Instant::now();
        while bytes.len() < GATHER_BYTES && begun.elapsed() < GATHER_MAX {
            let (next, pause) = (self.events.next(), pin!(host.sleep(PAUSE)));
            match select(pin!(next), pause).await {
                Either::Left((Ok(Some(TerminalHappened::Output(more))), _)) => {
                    bytes.extend_from_slice(&more);
                    if more.len() < FLOOD_BYTES {
                        break;
                    }
                }
                Either::Left((other, _)) => {
                    self.next = Some(other);
                    break;
                }
                // Dropping the wait loses nothing.
                Either::Right(_) => break,
            }
        }
        bytes
    }
}
