//! Sends requests to the server and receives answers line by line.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use jaato_plugin_sdk::HttpResponse;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk_provider::exchange::{WHOLE_BYTES_MAX, is_success, read_refusal};
use jaato_plugin_sdk_provider::{StreamLineSplitter, failure, yield_now};

use crate::endpoint::{OllamaServer, ServerNameSource};
use crate::pull::{AGAIN, ModelPull, add_missing_model_hint};
use crate::refusal::{refusal_error, unreachable_error};
use crate::reply::OllamaReply;
use crate::state::{KEY, OllamaState};

/// The time limit for an answer to begin or continue. It is long because the server may have to
/// load a model. The session has its own limit.
const WAIT: Duration = Duration::from_secs(60 * 60);

/// The time limit between two progress lines of a pull. The server reports progress several times a
/// second, except while it computes a file's checksum, which can take minutes.
const PULL_WAIT: Duration = Duration::from_secs(15 * 60);

/// The time limit for a simple query, because a user waits for it.
const LOOK_WAIT: Duration = Duration::from_secs(10);

/// How long to wait for the end of the body after the last line. Only a connection whose body was
/// read to the end can serve the next request.
const DRAIN: Duration = Duration::from_millis(100);

/// The longest line. A line contains a few tokens, a call with its arguments, or a complete answer.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The purpose of a request, which determines its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    /// A query about the server's models.
    Look,
    /// A completion.
    Work,
    /// A pull of a model.
    Pull,
}

/// Sends a request: a `POST` if there is a body, otherwise a `GET`.
///
/// # Errors
/// The host's error if no answer arrives. See [`unreachable_error`].
pub(crate) async fn send_request(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    path: &str,
    purpose: RequestPurpose,
    body: Option<Vec<u8>>,
) -> Result<HttpResponse> {
    let method = if body.is_some() { "POST" } else { "GET" };
    let wait = match purpose {
        RequestPurpose::Look => LOOK_WAIT,
        RequestPurpose::Work => WAIT,
        RequestPurpose::Pull => PULL_WAIT,
    };
    let mut request = cx.http(method, server.api_url(path)).timeout(wait);
    request = request.header("accept", "application/x-ndjson, application/json");
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body);
    }
    if server.named_by == ServerNameSource::BaseUrl {
        request = request.credential(KEY);
    }
    let response = request.send().await?;
    cx.state().set_server_answered(server);
    Ok(response)
}

/// Converts the error of a request without an answer.
pub(crate) fn unanswered_request_error(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    error: Error,
) -> Error {
    unreachable_error(error, server, cx.state().has_server_answered(server))
}

/// Sends a query. Returns the answer's body or the server's refusal.
///
/// # Errors
/// The errors of [`send_request`].
pub(crate) async fn query_server(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<OllamaQueryResult> {
    let response = send_request(cx, server, path, RequestPurpose::Look, body).await?;
    if !is_success(&response) {
        return Ok(OllamaQueryResult::Refused(
            read_refusal(cx, &server.api_url(path), response).await,
        ));
    }
    Ok(OllamaQueryResult::Body(response.bytes(WHOLE_BYTES_MAX).await?))
}

/// The result of a query.
pub(crate) enum OllamaQueryResult {
    /// The answer's body.
    Body(Vec<u8>),
    /// An error answer.
    Refused(jaato_plugin_sdk_provider::exchange::ErrorResponse),
}

/// Receives a completion and emits its deltas as they arrive.
///
/// # Errors
/// The errors of the reply, or the error that interrupted the exchange before the answer was
/// complete.
pub(crate) async fn receive_completion(
    cx: &Cx<OllamaState>,
    mut response: HttpResponse,
    mut reply: OllamaReply,
) -> Result<Completion> {
    let mut lines = StreamLineSplitter::new(LINE_BYTES_MAX);
    while let Some(piece) = response.next().await.map_err(failure::exchange_error)? {
        let mut has_said = false;
        for line in lines.push(&piece)? {
            for delta in reply.read_line(&line)? {
                has_said = true;
                cx.emit(&delta);
            }
        }
        if reply.is_done() {
            drain_response(cx, &mut response).await;
            return reply.finish();
        }
        if !has_said {
            cx.emit(&Delta::Alive);
        }
        yield_now().await;
    }
    if let Some(line) = lines.finish() {
        for delta in reply.read_last_line(&line)? {
            cx.emit(&delta);
        }
    }
    reply.finish()
}

/// Lets the server pull a model, and emits the progress.
///
/// # Errors
/// The error that prevented the pull.
pub(crate) async fn pull_model(
    cx: &Cx<OllamaState>,
    server: &OllamaServer,
    model: &str,
    body: Vec<u8>,
) -> Result<()> {
    let url = server.api_url("pull");
    let sent = send_request(cx, server, "pull", RequestPurpose::Pull, Some(body)).await;
    let mut response = sent.map_err(|error| unanswered_request_error(cx, server, error))?;
    if !is_success(&response) {
        let refusal = read_refusal(cx, &url, response).await;
        return Err(add_missing_model_hint(refusal_error(refusal, model)));
    }
    let (mut lines, mut pull) =
        (StreamLineSplitter::new(LINE_BYTES_MAX), ModelPull::new(&url, model));
    let stopped = |error| failure::exchange_error(error).with_hint(AGAIN);
    while let Some(piece) = response.next().await.map_err(stopped)? {
        for line in lines.push(&piece)? {
            for delta in pull.read_line(&line)? {
                cx.emit(&delta);
            }
        }
        if pull.is_done() {
            return pull.finish();
        }
        yield_now().await;
    }
    if let Some(line) = lines.finish() {
        pull.read_line(&line)?;
    }
    pull.finish()
}

/// Reads the rest of the body after the last line, if it arrives soon.
async fn drain_response(cx: &Cx<OllamaState>, response: &mut HttpResponse) {
    let mut end = pin!(cx.sleep(DRAIN));
    // An error here only means that the connection is not reused.
    while let Some(Ok(Some(_))) = run_until_limit(end.as_mut(), response.next()).await {}
}

/// Waits for `work`. Returns `None` if `limit` is ready first.
async fn run_until_limit<T, L: Future>(
    mut limit: Pin<&mut L>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|task| match work.as_mut().poll(task) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => limit.as_mut().poll(task).map(|_| None),
    })
    .await
}
