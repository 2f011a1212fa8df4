//! A conversation in a browser: shows the events of a turn as they come, and permission prompts as
//! buttons.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Html;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{Stream, StreamExt as _};
use jaato_library::{Session, Tool, allow, deny};
use serde::Deserialize;
use serde_json::json;

/// A prompt from the page.
#[derive(Deserialize)]
struct Prompt {
    prompt: String,
}

/// The user's answer to a permission prompt.
#[derive(Deserialize)]
struct Answer {
    call_id: String,
    is_allowed: bool,
}

/// Serves a session to one browser.
pub fn router(session: Session) -> Router {
    Router::new()
        .route("/", get(async || Html(include_str!("page.html"))))
        .route("/send", post(send_prompt))
        .route("/answer", post(answer_prompt))
        .with_state(Arc::new(session))
}

/// A tool that asks for permission.
pub fn ring_tool() -> Tool {
    let schema = json!({ "type": "object", "properties": {} });
    Tool::new("ring_bell", "Rings a bell.", schema, |_input, cx| async move {
        cx.print("ding\n");
        Ok::<_, String>("it rang")
    })
}

/// Runs a turn while the browser reads. If the browser leaves, the stream is dropped, which cancels
/// the turn.
async fn send_prompt(
    State(session): State<Arc<Session>>,
    Json(Prompt { prompt }): Json<Prompt>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = session
        .send(prompt)
        .map(|event| Ok(Event::default().json_data(event).unwrap_or_else(|_| Event::default())));
    Sse::new(events)
}

async fn answer_prompt(
    State(session): State<Arc<Session>>,
    Json(answer): Json<Answer>,
) -> StatusCode {
    let given = if answer.is_allowed { allow() } else { deny("the user declined") };
    match session.handle().answer(&answer.call_id.as_str().into(), given) {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::NOT_FOUND,
    }
}
