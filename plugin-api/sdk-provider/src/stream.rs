//! Follows a stream from its first bytes to its end.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpResponse, Result};

use crate::{
    EVENT_BYTES_MAX, Events, Reader, ServerEvent, WholeCharacters, failure, protocol, yield_now,
};

/// Wait for the usage and the mark of the end behind the last word. Some servers send neither and
/// leave the connection open; what comes later than this only tells what it cost.
const GRACE: Duration = Duration::from_secs(2);

/// Wait for the end of the body behind the mark of the end. It often comes in a packet of its own,
/// and only a connection whose body was read to the end serves the next request.
const DRAIN: Duration = Duration::from_millis(100);

/// What a line of events begins with.
const FIELDS: [&[u8]; 6] = [b":", b"data:", b"error:", b"event:", b"id:", b"retry:"];

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As one, which may be cut.
    AsStream,
    /// It never was one.
    AsSomethingElse,
}

/// Reads events until the answer has ended, and emits what they bring.
pub(crate) async fn follow<R: Reader>(
    host: &Reporter,
    url: &str,
    first: Vec<u8>,
    mut response: HttpResponse,
    reader: &mut R,
    characters: &mut WholeCharacters,
) -> Result<Ended> {
    let mut events = Events::new();
    let has_fields = begins_with_field(&first);
    let mut piece = first;
    let mut grace = None;
    let mut bytes_seen = 0;
    let broken = loop {
        bytes_seen += piece.len();
        let has_said = take(host, url, &mut events, (reader, characters), &piece).await?;
        if reader.is_done() {
            drain(host, &mut response).await;
            break None;
        }
        // What is no event after so many bytes never becomes one.
        if !has_fields && !reader.has_begun() && bytes_seen > EVENT_BYTES_MAX {
            return Ok(Ended::AsSomethingElse);
        }
        if has_said || !reader.is_complete() {
            grace = None;
        }
        if reader.is_complete() {
            grace.get_or_insert_with(|| Box::pin(host.sleep(GRACE)));
        }
        piece = match within(grace.as_mut(), response.next()).await {
            Some(Ok(Some(piece))) => piece,
            Some(Ok(None)) | None => break None,
            Some(Err(error)) => break Some(error),
        };
    };
    if let Some(event) = events.finish() {
        let event = repaired(event, characters);
        emit(host, reader.last_event(&event)?, characters);
    }
    match broken {
        // The model has said all; a connection that ends badly after that takes nothing away.
        Some(error) if !reader.is_complete() => Err(failure::of_exchange(error)),
        Some(_) | None if reader.has_begun() || has_fields => Ok(Ended::AsStream),
        Some(_) | None => Ok(Ended::AsSomethingElse),
    }
}

/// Takes the next bytes; tells whether they said anything. Bytes that do not show that the server
/// lives.
async fn take<R: Reader>(
    host: &Reporter,
    url: &str,
    events: &mut Events,
    (reader, characters): (&mut R, &mut WholeCharacters),
    piece: &[u8],
) -> Result<bool> {
    let mut has_said = false;
    for event in events.push(piece).map_err(failure::of_exchange)? {
        let event = repaired(event, characters);
        if !reader.has_begun() {
            protocol::check::<R>(url, &event.data)?;
        }
        let deltas = reader.event(&event)?;
        has_said |= !deltas.is_empty();
        emit(host, deltas, characters);
    }
    if !has_said {
        host.emit(&Delta::Alive);
    }
    yield_now().await;
    Ok(has_said)
}

fn repaired(mut event: ServerEvent, characters: &mut WholeCharacters) -> ServerEvent {
    if let Cow::Owned(data) = characters.repair(&event.data) {
        event.data = data;
    }
    event
}

/// Emits what a reader made of events.
pub(crate) fn emit(host: &Reporter, deltas: Vec<Delta>, characters: &mut WholeCharacters) {
    for delta in deltas {
        host.emit(&characters.join(delta));
    }
}

/// Reads what is left behind the mark of the end, if it comes soon.
async fn drain(host: &Reporter, response: &mut HttpResponse) {
    let mut end = Some(Box::pin(host.sleep(DRAIN)));
    // An error here costs the connection and nothing else.
    while let Some(Ok(Some(_))) = within(end.as_mut(), response.next()).await {}
}

/// Waits for work, where there is a limit not longer than that; none when the limit came first.
pub(crate) async fn within<T, L: Future>(
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

/// Leaves out a byte order mark, which some servers put in front.
pub fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// Tells whether bytes begin a stream of events, also where they were cut within the first word.
fn begins_with_field(bytes: &[u8]) -> bool {
    let start = unmarked(bytes).trim_ascii_start();
    !start.is_empty()
        && FIELDS.iter().any(|field| start.starts_with(field) || field.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_known_by_its_first_field() {
        for stream in ["data: {", "\u{feff}\n: ping", "event:x", "da", "retry: 1", "error: {"] {
            assert!(begins_with_field(stream.as_bytes()), "{stream}");
        }
        for other in ["", " ", "hello", "<html>", "dance", "identity", "error in line 1"] {
            assert!(!begins_with_field(other.as_bytes()), "{other}");
        }
    }
}
