//! Sends a request, and reads what comes at once or as a refusal.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpResponse, serde_json};
use jaato_plugin_sdk_provider::exchange::{self, Wanted, wrong_form};
use jaato_plugin_sdk_provider::{Reader, ServerEvent, failure};

use crate::refusal::{self, CHECK_URL, Wish};
use crate::reply::Reply;
use crate::state::{KEY, OpenAi};

/// Sends a body.
pub(crate) async fn send(
    cx: &Cx<OpenAi>,
    url: &str,
    wanted: Wanted,
    body: Vec<u8>,
) -> Result<HttpResponse> {
    let request = exchange::post(cx, url, wanted).credential(KEY).body(body);
    request.send().await.map_err(failure::of_exchange)
}

impl Reader for Reply {
    const CHECK_URL: &'static str = CHECK_URL;

    fn event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        Reply::event(self, event)
    }

    fn last_event(&mut self, event: &ServerEvent) -> Result<Vec<Delta>> {
        Reply::last_event(self, event)
    }

    fn whole(&mut self, url: &str, body: &[u8]) -> Result<Vec<Delta>> {
        let values = values(url, body)?;
        let deltas = Reply::whole(self, &values)?;
        let has_choice =
            |value: &Value| value["choices"].as_array().is_some_and(|it| !it.is_empty());
        if values.iter().any(has_choice) {
            Ok(deltas)
        } else {
            Err(wrong_form::<Self>(url, Some("application/json")))
        }
    }

    fn is_done(&self) -> bool {
        Reply::is_done(self)
    }

    fn is_complete(&self) -> bool {
        Reply::is_complete(self)
    }

    fn has_begun(&self) -> bool {
        Reply::has_begun(self)
    }

    fn finish(self) -> Result<(Vec<Delta>, Completion)> {
        Reply::finish(self)
    }
}

/// Reads the JSON of a server that does not stream: one value, or a line for each piece.
fn values(url: &str, body: &[u8]) -> Result<Vec<Value>> {
    let values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    // Google's servers report an error in a list of one.
    let unlisted = |value| match value {
        Value::Array(mut list) if list.len() == 1 => list.remove(0),
        value => value,
    };
    let values = values.map(|value| value.map(unlisted)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| failure::of_no_json(url, &error))?;
    if values.iter().any(is_of_ollamas_own) {
        let shown = failure::shown_url(url);
        let text = format!("`{shown}` answered in the form of Ollama's own api");
        return Err(Error::new(ErrorKind::Provider, text)
            .with_hint("the base url of an Ollama ends in `/v1`: `http://localhost:11434/v1`"));
    }
    Ok(values)
}

/// Tells whether a value is of `/api/chat` or `/api/generate`, which answer a line of JSON for each
/// piece.
fn is_of_ollamas_own(value: &Value) -> bool {
    value["done"].is_boolean() && (value["message"].is_object() || value["response"].is_string())
}

/// An answer that is no success.
pub(crate) struct Refused {
    pub(crate) error: Error,
    /// What the server wants differently.
    pub(crate) wish: Option<Wish>,
}

/// Reads what a server says about an answer that is no success, and what to do about it.
pub(crate) async fn refused(cx: &Cx<OpenAi>, url: &str, response: HttpResponse) -> Refused {
    let refusal = exchange::refusal(cx, url, response).await;
    let (status, body, error) = (refusal.status, &refusal.body, refusal.error);
    let error = match refusal::hint(status, body, refusal.had_key, KEY) {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    Refused { error, wish: refusal::wish(status, body) }
}
