//! Server-sent events: turns bytes, split anywhere, into events.
//!
//! `sse-core` parses the format. This module adds a limit, and an interface without its types.

use std::num::NonZeroUsize;

use bytes::Buf as _;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use sse_core::{SseDecoder, SseEvent};

/// The maximum number of bytes of one event: the largest frame, because more could not be passed
/// on.
pub const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

const EVENT_BYTES: NonZeroUsize = match NonZeroUsize::new(EVENT_BYTES_MAX) {
    Some(bytes) => bytes,
    None => unreachable!(),
};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// The name, or `message` if the server sent none.
    pub name: String,
    /// The data, with its lines joined.
    pub data: String,
}

/// The field in which older llama.cpp servers report an error. The format does not have this field.
const ERROR_FIELD: &[u8] = b"error:";

/// The same error in standard fields.
const ERROR_EVENT: &[u8] = b"event: error\ndata:";

/// The prefix to add to each line of JSON without a field.
const DATA: &[u8] = b"data:";

/// Reads a stream of events. Skips comments, blank lines, `id` and `retry`. Lines end with LF, CRLF
/// or CR. The field `error`, which some servers send, becomes an event with that name. JSON without
/// a field, with which Google's servers report errors during a stream, becomes the data of an
/// event.
pub struct ServerEventReader {
    decoder: SseDecoder,
    /// The number of bytes of [`ERROR_FIELD`] held back at the start of a line, or `None` within a
    /// line.
    held: Option<usize>,
    /// Whether JSON without a field has started, which continues to the next blank line.
    is_bare: bool,
    /// Whether the last byte was a CR, which a LF may follow.
    is_after_cr: bool,
}

impl ServerEventReader {
    /// Starts a stream.
    pub fn new() -> Self {
        let decoder = SseDecoder::with_limit(EVENT_BYTES);
        Self { decoder, held: Some(0), is_bare: false, is_after_cr: false }
    }

    /// Takes the next bytes and returns the events that they complete.
    ///
    /// # Errors
    /// `limit_reached` if an event is larger than [`EVENT_BYTES_MAX`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<ServerEvent>> {
        let bytes = self.add_field_names(bytes);
        self.decode_events(&bytes)
    }

    /// Ends the stream and returns the event that no blank line has ended, if there is one. It may
    /// be truncated, so the caller must check that its data is complete.
    pub fn finish(mut self) -> Option<ServerEvent> {
        let held = &ERROR_FIELD[..self.held.unwrap_or(0)];
        let rest = [held, b"\n\n"].concat();
        // An event that is too large cannot be complete.
        self.decode_events(&rest).ok()?.pop()
    }

    /// Rewrites lines that start with [`ERROR_FIELD`], and lines of JSON without a field.
    fn add_field_names(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut rewritten = Vec::with_capacity(bytes.len() + ERROR_FIELD.len());
        for &byte in bytes {
            let ends_crlf = self.is_after_cr && byte == b'\n';
            let is_line_end = matches!(byte, b'\n' | b'\r');
            self.is_after_cr = byte == b'\r';
            if self.held == Some(0) && !ends_crlf {
                self.is_bare = !is_line_end && (self.is_bare || matches!(byte, b'{' | b'['));
                if self.is_bare {
                    rewritten.extend_from_slice(DATA);
                    self.held = None;
                }
            }
            match self.held {
                Some(held) if byte == ERROR_FIELD[held] && held + 1 == ERROR_FIELD.len() => {
                    rewritten.extend_from_slice(ERROR_EVENT);
                    self.held = None;
                }
                Some(held) if byte == ERROR_FIELD[held] => self.held = Some(held + 1),
                Some(_) | None => {
                    rewritten.extend_from_slice(&ERROR_FIELD[..self.held.unwrap_or(0)]);
                    rewritten.push(byte);
                    self.held = is_line_end.then_some(0);
                }
            }
        }
        rewritten
    }

    fn decode_events(&mut self, mut bytes: &[u8]) -> Result<Vec<ServerEvent>> {
        let mut events = Vec::new();
        while bytes.has_remaining() {
            match self.decoder.next(&mut bytes) {
                None => break,
                Some(Ok(SseEvent::Message(message))) => {
                    let name = message.event.into_owned();
                    events.push(ServerEvent { name, data: message.data });
                }
                // The session decides when to connect again.
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

impl Default for ServerEventReader {
    fn default() -> Self {
        Self::new()
    }
}
