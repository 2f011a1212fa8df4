//! Explains the server's errors and suggests a fix. Pure.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::Retry;
use jaato_plugin_sdk_provider::exchange::ErrorResponse;
use jaato_plugin_sdk_provider::failure;

use crate::endpoint::{OllamaServer, ServerNameSource};

/// Phrases of the vendor's machines for a conversation that is too long.
const OVERFLOW: [&str; 2] = ["exceeded max context length", "exceeded context length"];

/// Phrases of a server that has too little memory for a model.
const NO_MEMORY: [&str; 3] = ["more system memory", "out of memory", "unable to allocate"];

/// Converts a refused request to a model into the error that the user sees.
pub(crate) fn refusal_error(refusal: ErrorResponse, model: &str) -> Error {
    let ErrorResponse { status, body, had_key, error, .. } = refusal;
    if is_foreign_answer(status, &body) {
        return error.with_hint(CHECK_URL);
    }
    let error = classify_error(error);
    let text = String::from_utf8_lossy(&body).to_lowercase();
    match refusal_hint(status, &text, had_key, model).filter(|_| error.hint.is_none()) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Converts an error that the server reports inside an answer.
pub(crate) fn reported_error(url: &str, line: &Value) -> Error {
    classify_error(failure::reported_error(url, line))
}

/// Reads more than the status from the server's message: a conversation that is too long, or a
/// model that is too large.
fn classify_error(mut error: Error) -> Error {
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

fn refusal_hint(status: u16, text: &str, had_key: bool, model: &str) -> Option<String> {
    let fixed = match status {
        404 if text.contains("not found") => {
            return Some(format!("download it with `jaato model pull ollama/{model}`"));
        }
        400 if text.contains("does not support tools") => {
            "use a model that supports tools, or run with `--tools none`"
        }
        400 if text.contains("does not support thinking") => {
            "leave the option `effort` out, or use a model that can think"
        }
        400 if text.contains("does not support chat") => "use a chat model",
        401 if had_key => "check the key: `OLLAMA_API_KEY`, or `api_key`",
        401 => {
            "run `ollama signin` on the server's machine; for the cloud, set `base_url = \
             \"https://ollama.com\"` under `[plugins.provider-ollama]`, and `OLLAMA_API_KEY`"
        }
        _ => return None,
    };
    Some(fixed.to_owned())
}

/// The hint if the server is not an Ollama server.
const CHECK_URL: &str = "check `OLLAMA_HOST`, or `base_url` of `[plugins.provider-ollama]`: it \
                         names an Ollama server, without `/v1`";

/// Returns true if a server does not know Ollama's paths. An Ollama server that does not know a
/// model says so in JSON.
pub(crate) fn is_foreign_answer(status: u16, body: &[u8]) -> bool {
    let says_why = || {
        let said = serde_json::from_slice::<Value>(body);
        said.is_ok_and(|said| said["error"].is_string())
    };
    matches!(status, 404 | 405) && !says_why()
}

/// Returns the error for an answer that does not come from Ollama.
pub(crate) fn foreign_server_error(url: &str) -> Error {
    let text = format!("`{}` does not answer like an Ollama server", failure::url_for_errors(url));
    Error::new(ErrorKind::Provider, text).with_hint(CHECK_URL)
}

/// Converts an exchange without an answer into the error that the user sees. If a server on this
/// machine has never answered, a retry does not help.
pub(crate) fn unreachable_error(error: Error, server: &OllamaServer, has_answered: bool) -> Error {
    let never_began = error.message.starts_with("cannot connect");
    let mut error = failure::exchange_error(error);
    if !never_began {
        return error;
    }
    if server.is_on_this_machine() && !has_answered {
        error.retry = Retry::Permanent;
    }
    error.with_hint(match server.named_by {
        ServerNameSource::Nothing => {
            "start Ollama with `ollama serve`; if it runs elsewhere, set `OLLAMA_HOST`"
        }
        ServerNameSource::Host | ServerNameSource::BaseUrl if server.is_on_this_machine() => {
            "start Ollama with `ollama serve`; if it runs elsewhere, check `OLLAMA_HOST`, or \
             `base_url` of `[plugins.provider-ollama]`"
        }
        ServerNameSource::Host | ServerNameSource::BaseUrl => {
            "check that Ollama runs there and accepts remote connections: start it with \
             `OLLAMA_HOST=0.0.0.0`"
        }
    })
}
