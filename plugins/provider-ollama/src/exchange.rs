//! Sends requests to the server, and receives answers that come line by line.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use jaato_plugin_sdk::HttpResponse;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_provider::exchange::{WHOLE_BYTES_MAX, is_success, refusal};
use jaato_plugin_sdk_provider::{Lines, failure, yield_now};

use crate::endpoint::{NamedBy, Server};
use crate::pull::{AGAIN, Pull, not_pulled};
use crate::refusal::{refused, unreached};
use crate::reply::Reply;
use crate::state::{KEY, Ollama};

/// Wait for an answer to begin or go on: a model may have to be loaded. A session's own patience
/// decides.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// Wait for the next word of a server that fetches a model. It tells of its progress several times
/// a second; only over the checksum of a file, of up to some hundred GB, it is silent for minutes.
const PULL_WAIT: Duration = Duration::from_secs(15 * 60);

/// Wait for what a server knows without work, for which a person sits and waits.
const LOOK_WAIT: Duration = Duration::from_secs(10);

/// Wait for the end of the body behind the last line: only a connection whose body was read to the
/// end serves the next request.
const DRAIN: Duration = Duration::from_millis(100);

/// Longest line. A line is a token or a few, or a call with its arguments, or an answer that comes
/// at once.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a request is for, which decides how long its answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To look at what the server knows.
    Look,
    /// To let it work.
    Work,
    /// To let it fetch a model.
    Pull,
}

/// Sends a request: a `POST` where there is a body, else a `GET`.
///
/// # Errors
/// What keeps an answer from coming, as the host says it: see [`unreached`].
pub(crate) async fn send(
    cx: &Cx<Ollama>,
    server: &Server,
    path: &str,
    purpose: Purpose,
    body: Option<Vec<u8>>,
) -> Result<HttpResponse> {
    let method = if body.is_some() { "POST" } else { "GET" };
    let wait = match purpose {
        Purpose::Look => LOOK_WAIT,
        Purpose::Work => WAIT,
        Purpose::Pull => PULL_WAIT,
    };
    let mut request = cx.http(method, server.url(path)).timeout(wait);
    request = request.header("accept", "application/x-ndjson, application/json");
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body);
    }
    if server.named_by == NamedBy::BaseUrl {
        request = request.credential(KEY);
    }
    let response = request.send().await?;
    cx.state().set_answered(server);
    Ok(response)
}

/// Makes the error of a request that came to no answer.
pub(crate) fn not_sent(cx: &Cx<Ollama>, server: &Server, error: Error) -> Error {
    unreached(error, server, cx.state().has_answered(server))
}

/// Asks for what the server knows; the body of its answer, or what it says instead.
///
/// # Errors
/// What keeps an answer from coming, as [`send`].
pub(crate) async fn look(
    cx: &Cx<Ollama>,
    server: &Server,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<Looked> {
    let response = send(cx, server, path, Purpose::Look, body).await?;
    if !is_success(&response) {
        return Ok(Looked::Refused(refusal(cx, &server.url(path), response).await));
    }
    Ok(Looked::Body(response.bytes(WHOLE_BYTES_MAX).await?))
}

/// What came of a look.
pub(crate) enum Looked {
    /// The body of the answer.
    Body(Vec<u8>),
    /// An answer that is no success.
    Refused(jaato_plugin_sdk_provider::exchange::Refusal),
}

/// Receives a completion, and emits what comes, as it comes.
///
/// # Errors
/// What the reply makes of it; what broke the exchange before the model had said all.
pub(crate) async fn receive(
    cx: &Cx<Ollama>,
    mut response: HttpResponse,
    mut reply: Reply,
) -> Result<Completion> {
    let mut lines = Lines::new(LINE_BYTES_MAX);
    while let Some(piece) = response.next().await.map_err(failure::of_exchange)? {
        let mut has_said = false;
        for line in lines.push(&piece)? {
            for delta in reply.line(&line)? {
                has_said = true;
                cx.emit(&delta);
            }
        }
        if reply.is_done() {
            drain(cx, &mut response).await;
            return reply.finish();
        }
        if !has_said {
            cx.emit(&Delta::Alive);
        }
        yield_now().await;
    }
    if let Some(line) = lines.finish() {
        for delta in reply.last_line(&line)? {
            cx.emit(&delta);
        }
    }
    reply.finish()
}

/// Lets the server fetch a model, and emits how far it has come.
///
/// # Errors
/// What keeps it from it.
pub(crate) async fn pull(
    cx: &Cx<Ollama>,
    server: &Server,
    model: &str,
    body: Vec<u8>,
) -> Result<()> {
    let url = server.url("pull");
    let sent = send(cx, server, "pull", Purpose::Pull, Some(body)).await;
    let mut response = sent.map_err(|error| not_sent(cx, server, error))?;
    if !is_success(&response) {
        let refusal = refusal(cx, &url, response).await;
        return Err(not_pulled(refused(refusal, model)));
    }
    let (mut lines, mut pull) = (Lines::new(LINE_BYTES_MAX), Pull::new(&url, model));
    let stopped = |error| failure::of_exchange(error).with_hint(AGAIN);
    while let Some(piece) = response.next().await.map_err(stopped)? {
        for line in lines.push(&piece)? {
            for delta in pull.line(&line)? {
                cx.emit(&delta);
            }
        }
        if pull.is_done() {
            return pull.finish();
        }
        yield_now().await;
    }
    if let Some(line) = lines.finish() {
        pull.line(&line)?;
    }
    pull.finish()
}

/// Reads what is left behind the last line, if it comes soon.
async fn drain(cx: &Cx<Ollama>, response: &mut HttpResponse) {
    let mut end = pin!(cx.sleep(DRAIN));
    // An error here costs the connection and nothing else.
    while let Some(Ok(Some(_))) = before(end.as_mut(), response.next()).await {}
}

/// Waits for work, but not beyond a limit; `None` when the limit came first.
async fn before<T, L: Future>(mut limit: Pin<&mut L>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|task| match work.as_mut().poll(task) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => limit.as_mut().poll(task).map(|_| None),
    })
    .await
}
