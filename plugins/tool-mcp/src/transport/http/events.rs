//! Reads a body as events. Limits their size and drops those that are not messages.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use jaato_plugin_sdk::serde::Deserialize;
use jaato_plugin_sdk::serde::de::IgnoredAny;
use jaato_plugin_sdk::serde_json;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use tokio::sync::OwnedSemaphorePermit;

use super::backend::HttpBodyStream;
use super::sessions::{self, HttpSessions};
use crate::transport::repair;

/// The reason why a body is broken.
#[derive(Debug)]
enum EventBodyError {
    /// The body breaks off.
    Off(String),
    /// An event is too large.
    Large,
}

impl fmt::Display for EventBodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Off(why) => why,
            Self::Large => "the server sent an event that exceeds the message limit",
        })
    }
}

impl std::error::Error for EventBodyError {}

/// Counts the bytes of the current event. Comments are not stored, so they count only until their
/// line ends.
#[derive(Debug)]
pub struct EventSize {
    /// Bytes of the event's completed lines.
    kept: usize,
    line: usize,
    is_comment: bool,
    /// Whether the last byte was a carriage return. A line feed after it belongs to the same line
    /// end.
    after_return: bool,
    bytes_max: usize,
}

/// The event is too large.
#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLarge;

impl EventSize {
    /// Creates an empty counter.
    pub fn new(bytes_max: usize) -> Self {
        Self { kept: 0, line: 0, is_comment: false, after_return: false, bytes_max }
    }

    /// Counts a chunk of the body.
    ///
    /// # Errors
    /// [`EventTooLarge`].
    pub fn count_chunk(&mut self, piece: &[u8]) -> Result<(), EventTooLarge> {
        for &byte in piece {
            let ends_pair = std::mem::take(&mut self.after_return) && byte == b'\n';
            match byte {
                b'\n' if ends_pair => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line();
                }
                _ => {
                    if self.line == 0 {
                        self.is_comment = byte == b':';
                    }
                    self.line += 1;
                }
            }
            if self.kept + self.line > self.bytes_max {
                return Err(EventTooLarge);
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        match self.line {
            // An empty line ends the event.
            0 => self.kept = 0,
            line if !self.is_comment => self.kept += line + 1,
            _ => {}
        }
        self.line = 0;
    }
}

/// The request that a stream answers.
pub struct StreamedRequest {
    /// The request's ID.
    pub id: RequestId,
    /// The session that the request named.
    pub session: Option<String>,
    /// The sessions of the server.
    pub sessions: Arc<HttpSessions>,
}

/// Reads a body as events. The permit is released with the stream.
pub fn decode_events(
    body: HttpBodyStream,
    bytes_max: usize,
    place: Option<OwnedSemaphorePermit>,
    answering: Option<StreamedRequest>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let begin = (body, EventSize::new(bytes_max), place, Vec::new());
    let bounded = stream::try_unfold(begin, |(mut body, mut size, place, mut begun)| async move {
        // A server that never stops sending must not block the thread for the others.
        tokio::task::consume_budget().await;
        let Some(piece) = body.next().await else { return Ok(None) };
        let piece = piece.map_err(|error| EventBodyError::Off(error.message))?;
        size.count_chunk(&piece).map_err(|_| EventBodyError::Large)?;
        begun.extend(piece);
        let (text, begun) = repair::decode_chunk(&begun);
        let text = std::io::Cursor::new(text.into_bytes());
        Ok::<_, EventBodyError>(Some((text, (body, size, place, begun))))
    });
    let events = SseStream::from_bytes_stream(bounded);
    let messages = move |event: Result<Sse, SseError>| {
        stream::iter(match event {
            Ok(event) => {
                split_into_messages(event, answering.as_ref()).into_iter().map(Ok).collect()
            }
            Err(error) => vec![oversized_event_error(&error, answering.as_ref()).ok_or(error)],
        })
    };
    events.flat_map(messages).boxed()
}

/// Converts an event that is too large to an error response, because another stream would fail the
/// same way.
fn oversized_event_error(error: &SseError, answering: Option<&StreamedRequest>) -> Option<Sse> {
    let SseError::Body(broken) = error else { return None };
    let broken =
        broken.downcast_ref::<EventBodyError>().filter(|it| matches!(it, EventBodyError::Large))?;
    let error = ErrorData::internal_error(broken.to_string(), None);
    let answer = ServerJsonRpcMessage::error(error, Some(answering?.id.clone()));
    Some(Sse { data: serde_json::to_string(&answer).ok(), ..Sse::default() })
}

/// The head of a message, parsed without its content.
#[derive(Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct MessageHead {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: IgnoredAny,
    id: Option<RequestId>,
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
}

/// Splits an event into events with one message each. An event of another kind or without a message
/// keeps only its ID.
fn split_into_messages(mut event: Sse, answering: Option<&StreamedRequest>) -> Vec<Sse> {
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    event.event = None;
    let Some(data) = event.data.take().filter(|_| is_message) else { return vec![event] };
    // Halves of surrogate pairs are handled when the whole message is parsed.
    let is_readable = !data.contains("\\ud") && !data.contains("\\uD");
    let head = serde_json::from_str::<MessageHead>(&data).ok().filter(|_| is_readable);
    let is_answer = |head: &MessageHead| head.id.is_some() && head.result.is_some();
    let is_ours = |head: &MessageHead| answering.is_none_or(|it| head.id.as_ref() == Some(&it.id));
    if head.as_ref().is_some_and(|it| it.method.is_some() || (is_answer(it) && is_ours(it))) {
        event.data = Some(data);
        return vec![event];
    }
    let open: HashSet<RequestId> = answering.iter().map(|it| it.id.clone()).collect();
    let mut events = vec![event];
    let heard = repair::parse_server_text(data.as_bytes(), &open);
    if heard.messages.is_empty() && head.as_ref().is_some_and(is_answer) {
        // The response to another request ends the stream.
        events[0].data = Some(data);
    }
    for mut message in heard.messages {
        if let (
            JsonRpcMessage::Error(error),
            Some(StreamedRequest { session: Some(session), sessions, .. }),
        ) = (&mut message, answering)
            && sessions::is_expired_error(&error.error)
        {
            sessions.record_lost_session(session);
            sessions::mark_session_lost(&mut error.error);
        }
        // A parsed message can always be serialized.
        let data = serde_json::to_string(&message).ok();
        events.push(Sse { data, ..Sse::default() });
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_event_size(pieces: &[&str], bytes_max: usize, fits: bool) {
        let mut size = EventSize::new(bytes_max);
        let taken = pieces.iter().try_for_each(|piece| size.count_chunk(piece.as_bytes()));
        assert_eq!(taken.is_ok(), fits, "{pieces:?}");
    }

    #[test]
    fn event_size_is_counted_across_chunks_and_reset_at_an_empty_line() {
        let many = "data: abc\n\n".repeat(100);
        check_event_size(&[&many], 10, true);
        check_event_size(&["data: abc\n", "data: d\n\n"], 10, false);
        check_event_size(&["data: a", "bcdef"], 10, false);
        check_event_size(&["data: abc\r", "\n\r", "\ndata: abc\r\n\r\n"], 10, true);
        check_event_size(&["data: abc\r\rdata: abc\r\r"], 10, true);
    }

    #[test]
    fn comments_do_not_add_up_to_the_event_limit() {
        let many = ": still here\n".repeat(100);
        check_event_size(&[&many], 20, true);
        check_event_size(&[&format!(":{}", "x".repeat(20))], 20, false);
    }
}
