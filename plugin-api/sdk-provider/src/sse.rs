//! Server-sent events: bytes in, cut anywhere, events out.
//!
//! The format is `sse-core`'s job; here are a bound, and an interface without its types.

use std::num::NonZeroUsize;

use bytes::Buf as _;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use sse_core::{SseDecoder, SseEvent};

/// Most bytes of one event: the largest frame, which is the most that could ever be passed on of it.
pub const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

const EVENT_BYTES: NonZeroUsize = match NonZeroUsize::new(EVENT_BYTES_MAX) {
    Some(bytes) => bytes,
    None => unreachable!(),
};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its name; `message` where the server gave none.
    pub name: String,
    /// Its data, lines joined.
    pub data: String,
}

/// Reads a stream of events. Comments, blank lines, `id` and `retry` are passed over; line ends are LF,
/// CRLF or CR; an event that the stream's end cuts short is none.
pub struct Events(SseDecoder);

impl Events {
    /// Begins a stream.
    pub fn new() -> Self {
        Self(SseDecoder::with_limit(EVENT_BYTES))
    }

    /// Takes the next bytes and gives the events that they complete.
    ///
    /// # Errors
    /// `limit_reached` when an event is larger than [`EVENT_BYTES_MAX`].
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<ServerEvent>> {
        let mut events = Vec::new();
        while bytes.has_remaining() {
            match self.0.next(&mut bytes) {
                None => break,
                Some(Ok(SseEvent::Message(message))) => {
                    let name = message.event.into_owned();
                    events.push(ServerEvent { name, data: message.data });
                }
                // When to connect again is the session's to decide.
                Some(Ok(SseEvent::Retry(_))) => {}
                Some(Err(_)) => {
                    let text =
                        format!("the server sent an event of more than {EVENT_BYTES_MAX} bytes");
                    return Err(Error::new(ErrorKind::LimitReached, text));
                }
            }
        }
        Ok(events)
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}
