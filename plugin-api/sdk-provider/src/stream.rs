//! Reads a stream from its first bytes to its end.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpResponse, Result};

use crate::{
    AnswerReader, EVENT_BYTES_MAX, ServerEvent, ServerEventReader, SurrogateRepair, failure,
    protocol, yield_now,
};

/// The longest wait for the usage and the end mark after the last word. Some servers send neither
/// and leave the connection open. Only the usage could arrive later than this.
const GRACE: Duration = Duration::from_secs(2);

/// The longest wait for the end of the body after the end mark. It often arrives in a separate
/// packet, and a connection is reused only if its body was read to the end.
const DRAIN: Duration = Duration::from_millis(100);

/// The possible starts of a line in an event stream.
const FIELDS: [&[u8]; 6] = [b":", b"data:", b"error:", b"event:", b"id:", b"retry:"];

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderStreamEnd {
    /// As a stream, which may be truncated.
    AsStream,
    /// It never was a stream.
    AsSomethingElse,
}

/// Reads events until the answer has ended, and emits their deltas.
pub(crate) async fn read_answer_events<R: AnswerReader>(
    host: &Reporter,
    url: &str,
    first: Vec<u8>,
    mut response: HttpResponse,
    reader: &mut R,
    characters: &mut SurrogateRepair,
) -> Result<ProviderStreamEnd> {
    let mut events = ServerEventReader::new();
    let has_fields = begins_with_field(&first);
    let mut piece = first;
    let mut grace = None;
    let mut bytes_seen = 0;
    let broken = loop {
        bytes_seen += piece.len();
        let has_said = read_events(host, url, &mut events, (reader, characters), &piece).await?;
        if reader.is_done() {
            drain_response(host, &mut response).await;
            break None;
        }
        // After this many bytes without an event, none will follow.
        if !has_fields && !reader.has_begun() && bytes_seen > EVENT_BYTES_MAX {
            return Ok(ProviderStreamEnd::AsSomethingElse);
        }
        if has_said || !reader.is_complete() {
            grace = None;
        }
        if reader.is_complete() {
            grace.get_or_insert_with(|| Box::pin(host.sleep(GRACE)));
        }
        piece = match with_time_limit(grace.as_mut(), response.next()).await {
            Some(Ok(Some(piece))) => piece,
            Some(Ok(None)) | None => break None,
            Some(Err(error)) => break Some(error),
        };
    };
    if let Some(event) = events.finish() {
        let event = repair_event(event, characters);
        emit_deltas(host, reader.handle_last_event(&event)?, characters);
    }
    match broken {
        // The model has finished, so a broken connection afterwards loses nothing.
        Some(error) if !reader.is_complete() => Err(failure::exchange_error(error)),
        Some(_) | None if reader.has_begun() || has_fields => Ok(ProviderStreamEnd::AsStream),
        Some(_) | None => Ok(ProviderStreamEnd::AsSomethingElse),
    }
}

/// Takes the next bytes and returns true if they contained content. Bytes without content show that
/// the server is alive.
async fn read_events<R: AnswerReader>(
    host: &Reporter,
    url: &str,
    events: &mut ServerEventReader,
    (reader, characters): (&mut R, &mut SurrogateRepair),
    piece: &[u8],
) -> Result<bool> {
    let mut has_said = false;
    for event in events.push(piece).map_err(failure::exchange_error)? {
        let event = repair_event(event, characters);
        if !reader.has_begun() {
            protocol::check_protocol::<R>(url, &event.data)?;
        }
        let deltas = reader.handle_event(&event)?;
        has_said |= !deltas.is_empty();
        emit_deltas(host, deltas, characters);
    }
    if !has_said {
        host.emit(&Delta::Alive);
    }
    yield_now().await;
    Ok(has_said)
}

fn repair_event(mut event: ServerEvent, characters: &mut SurrogateRepair) -> ServerEvent {
    if let Cow::Owned(data) = characters.repair_json(&event.data) {
        event.data = data;
    }
    event
}

/// Emits the deltas that a reader returned.
pub(crate) fn emit_deltas(host: &Reporter, deltas: Vec<Delta>, characters: &mut SurrogateRepair) {
    for delta in deltas {
        host.emit(&characters.join_delta(delta));
    }
}

/// Reads the rest after the end mark, if it arrives soon.
async fn drain_response(host: &Reporter, response: &mut HttpResponse) {
    let mut end = Some(Box::pin(host.sleep(DRAIN)));
    // An error here only prevents the reuse of the connection.
    while let Some(Ok(Some(_))) = with_time_limit(end.as_mut(), response.next()).await {}
}

/// Waits for work, up to the limit if there is one. Returns `None` if the limit was reached first.
pub(crate) async fn with_time_limit<T, L: Future>(
    mut limit: Option<&mut Pin<Box<L>>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|task| {
        if let Poll::Ready(done) = work.as_mut().poll(task) {
            return Poll::Ready(Some(done));
        }
        match &mut limit {
            Some(limit) => limit.as_mut().poll(task).map(|_| None),
            None => Poll::Pending,
        }
    })
    .await
}

/// Strips a byte order mark, which some servers send first.
pub fn strip_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// Returns true if bytes start an event stream, even if they end within the first word.
fn begins_with_field(bytes: &[u8]) -> bool {
    let start = strip_byte_order_mark(bytes).trim_ascii_start();
    !start.is_empty()
        && FIELDS.iter().any(|field| start.starts_with(field) || field.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_stream_is_recognized_by_its_first_field() {
        for stream in ["data: {", "\u{feff}\n: ping", "event:x", "da", "retry: 1", "error: {"] {
            assert!(begins_with_field(stream.as_bytes()), "{stream}");
        }
        for other in ["", " ", "hello", "<html>", "dance", "identity", "error in line 1"] {
            assert!(!begins_with_field(other.as_bytes()), "{other}");
        }
    }
}
