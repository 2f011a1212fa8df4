//! Gathers a flood of output into large pieces. The screen can skip most lines of such a piece,
//! because they scroll away at once.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::TerminalUpdate;

use crate::backend::BackendEvents;

/// The minimum size of a piece that counts as part of a flood. A terminal buffers half as much, so
/// only a program that prints continuously sends more at once.
const FLOOD_BYTES: usize = 8 * 1024;

/// The maximum number of gathered bytes, which hold many times more lines than screen and history.
const GATHER_BYTES: usize = 1024 * 1024;

/// The maximum time of gathering. A user does not notice a delay of a twentieth of a second.
const GATHER_MAX: Duration = Duration::from_millis(50);

/// A pause that ends a flood, so that its end is visible at once.
const PAUSE: Duration = Duration::from_millis(2);

/// The events of a terminal, with floods gathered for the screen.
pub struct GatheredEvents {
    events: Box<dyn BackendEvents>,
    /// The event after the last gathered piece.
    next: Option<Result<Option<TerminalUpdate>>>,
}

impl GatheredEvents {
    /// Wraps the events of a terminal.
    pub fn new(events: Box<dyn BackendEvents>) -> Self {
        Self { events, next: None }
    }

    /// Returns the events.
    pub fn into_events(self) -> Box<dyn BackendEvents> {
        self.events
    }

    /// Waits for the next event. A flood is gathered if `is_wanted` returns true because a call
    /// waits.
    ///
    /// # Errors
    /// If the terminal was lost.
    pub async fn next(
        &mut self,
        host: &Reporter,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<TerminalUpdate>> {
        let happened = match self.next.take() {
            Some(next) => next,
            None => self.events.next().await,
        };
        match happened {
            Ok(Some(TerminalUpdate::Output(bytes)))
                if bytes.len() >= FLOOD_BYTES && is_wanted() =>
            {
                Ok(Some(TerminalUpdate::Output(self.gather_bytes(bytes, host).await)))
            }
            other => other,
        }
    }

    async fn gather_bytes(&mut self, mut bytes: Vec<u8>, host: &Reporter) -> Vec<u8> {
        let begun = Instant::now();
        while bytes.len() < GATHER_BYTES && begun.elapsed() < GATHER_MAX {
            let (next, pause) = (self.events.next(), pin!(host.sleep(PAUSE)));
            match select(pin!(next), pause).await {
                Either::Left((Ok(Some(TerminalUpdate::Output(more))), _)) => {
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
