//! What errors of the server mean, and what to do about them. Pure.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::Retry;
use jaato_plugin_sdk_provider::exchange::Refusal;
use jaato_plugin_sdk_provider::failure;

use crate::endpoint::{NamedBy, Server};

/// What the vendor's machines say of a conversation that is too long.
const OVERFLOW: [&str; 2] = ["exceeded max context length", "exceeded context length"];

/// What a server says where a model needs more memory than there is.
const NO_MEMORY: [&str; 3] = ["more system memory", "out of memory", "unable to allocate"];

/// Turns a refusal of a request to a model into the error that a person is told.
pub(crate) fn refused(refusal: Refusal, model: &str) -> Error {
    let Refusal { status, body, had_key, error, .. } = refusal;
    if is_foreign(status, &body) {
        return error.with_hint(CHECK_URL);
    }
    let error = judged(error);
    let text = String::from_utf8_lossy(&body).to_lowercase();
    match hint(status, &text, had_key, model).filter(|_| error.hint.is_none()) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Turns an error that the server reports inside an answer into one.
pub(crate) fn reported(url: &str, line: &Value) -> Error {
    judged(failure::of_report(url, line))
}

/// Reads what the server's words say beyond the status: a conversation that is too long, a model
/// that is too large.
fn judged(mut error: Error) -> Error {
    let said = error.message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
    if says(&OVERFLOW) {
        error.kind = ErrorKind::ContextOverflow;
        error.retry = Retry::Permanent;
        return error;
    }
    if says(&NO_MEMORY) {
        error.retry = Retry::Permanent;
        return error.with_hint(
            "use a smaller model, or a smaller `context_tokens` under `[plugins.provider-ollama]`",
        );
    }
    error
}

fn hint(status: u16, text: &str, had_key: bool, model: &str) -> Option<String> {
    let fixed = match status {
        404 if text.contains("not found") => {
            return Some(format!("`jaato model pull ollama/{model}` fetches it"));
        }
        400 if text.contains("does not support tools") => {
            "use a model that calls tools, or `--tools none`"
        }
        400 if text.contains("does not support thinking") => {
            "leave the option `effort` out, or use a model that can think"
        }
        400 if text.contains("does not support chat") => "use a model that answers",
        401 if had_key => "check the key: `OLLAMA_API_KEY`, or `api_key`",
        401 => {
            "run `ollama signin` where the server runs; for the cloud set `base_url = \
             \"https://ollama.com\"` under `[plugins.provider-ollama]`, and `OLLAMA_API_KEY`"
        }
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// Where the server that was asked is no Ollama.
const CHECK_URL: &str = "check `OLLAMA_HOST`, or `base_url` of `[plugins.provider-ollama]`: it \
                         names an Ollama server, without `/v1`";

/// Tells whether a server does not know the paths of an Ollama. An Ollama that does not know a
/// model says so as JSON.
pub(crate) fn is_foreign(status: u16, body: &[u8]) -> bool {
    let says_why = || {
        let said = serde_json::from_slice::<Value>(body);
        said.is_ok_and(|said| said["error"].is_string())
    };
    matches!(status, 404 | 405) && !says_why()
}

/// Makes the error of an answer that is none of an Ollama's.
pub(crate) fn foreign(url: &str) -> Error {
    let text = format!("`{}` answers as no Ollama does", failure::shown_url(url));
    Error::new(ErrorKind::Provider, text).with_hint(CHECK_URL)
}

/// Turns an exchange that came to no answer into the error that a person is told. One that never
/// began on this machine will not begin by itself.
pub(crate) fn unreached(error: Error, server: &Server, has_answered: bool) -> Error {
    let never_began = error.message.starts_with("cannot connect");
    let mut error = failure::of_exchange(error);
    if !never_began {
        return error;
    }
    if server.is_here() && !has_answered {
        error.retry = Retry::Permanent;
    }
    error.with_hint(match server.named_by {
        NamedBy::Nothing => {
            "start Ollama with `ollama serve`; if it runs elsewhere, set `OLLAMA_HOST`"
        }
        NamedBy::Host | NamedBy::BaseUrl if server.is_here() => {
            "start Ollama with `ollama serve`; if it runs elsewhere, check `OLLAMA_HOST`, or \
             `base_url` of `[plugins.provider-ollama]`"
        }
        NamedBy::Host | NamedBy::BaseUrl => {
            "check that Ollama runs there and listens for others: it does with `OLLAMA_HOST=0.0.0.0`"
        }
    })
}
