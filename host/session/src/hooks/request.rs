//! Changes by plugins to a request: options that the provider honours, and text after its newest
//! message. Nothing else, because messages that the model has seen must stay the same.

use jaato_types::hooks::{BeforeRequest, Hook, RequestChange};
use jaato_types::{Error, Message, Part, RequestOptions, Result};
use serde_json::{Map, Value, json};

use super::asker::misbehaviour_error;
use super::{HookAsker, HookPlugin, truncate_to_tokens};
use crate::{Cancel, ModelCapabilities, estimate_tokens};

/// The maximum number of estimated tokens that one plugin adds after the newest message of a
/// request. Each request may have that many again.
pub const REQUEST_TEXT_TOKENS_MAX: u64 = 500;

/// The options that a plugin may change, if the provider honours them. Headers, the body and the
/// session's key belong to the user and the host.
const CHANGEABLE: [&str; 9] = [
    "effort",
    "max_output_tokens",
    "output_schema",
    "seed",
    "service_tier",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
];

/// The keys that an answer may have.
const KNOWN_KEYS: [&str; 3] = ["options", "text", "refusal"];

/// The request as the plugins see it.
pub(crate) struct RequestHook<'a> {
    pub(crate) options: &'a RequestOptions,
    pub(crate) takes: &'a ModelCapabilities,
    pub(crate) newest: Message,
}

/// A plugin's changes.
pub(crate) struct RequestHookChange {
    /// The names of the changed options.
    pub(crate) changed: Vec<String>,
    /// All options of the request.
    pub(crate) options: RequestOptions,
    text: String,
    refusal: String,
}

impl HookAsker {
    /// Asks one plugin. Returns `None` if it fails.
    pub(crate) async fn ask_request_hook(
        &self,
        plugin: &HookPlugin,
        asked: RequestHook<'_>,
        cancel: &Cancel,
    ) -> Option<RequestHookChange> {
        let RequestHook { options, takes, newest } = asked;
        let may_change = changeable_options(takes);
        let request = BeforeRequest::new(visible_options(options), may_change.clone(), newest);
        let take = |answer: Value| parse_change(answer, options, &may_change);
        self.ask_hook(plugin, Hook::BeforeRequest, &request, cancel, take).await.ok()
    }
}

impl RequestHookChange {
    /// Returns the error that ends the turn, if the plugin wants that.
    pub(crate) fn refusal_error(&self, plugin: &HookPlugin) -> Option<Error> {
        plugin.refusal_error("ended the turn", &self.refusal)
    }

    /// Returns the part that follows the newest message, and its tokens. Returns `None` if the
    /// plugin adds no text.
    pub(crate) fn appended_part(&self, plugin: &HookPlugin) -> Option<(Part, u64)> {
        if self.text.trim().is_empty() {
            return None;
        }
        let mut text = self.text.clone();
        let is_cut = truncate_to_tokens(&mut text, REQUEST_TEXT_TOKENS_MAX);
        let tokens = estimate_tokens(&text);
        let mut value = json!({ "added_by_plugin": plugin.name, "text": text });
        if is_cut {
            value["cut"] = true.into();
        }
        Some((Part::json(value), tokens))
    }
}

/// Returns the options without those that belong to the user and the host.
fn visible_options(options: &RequestOptions) -> RequestOptions {
    let mut shown = options.clone();
    shown.extra_body.clear();
    shown.extra_headers.clear();
    shown.session_key = None;
    shown
}

fn changeable_options(takes: &ModelCapabilities) -> Vec<String> {
    let honoured = CHANGEABLE.into_iter().filter(|option| takes.honours_option(option));
    honoured.map(str::to_owned).collect()
}

/// Parses an answer. An answer with anything else is refused as a whole.
fn parse_change(
    answer: Value,
    options: &RequestOptions,
    may_change: &[String],
) -> Result<RequestHookChange> {
    let keys = answer.as_object().map(Map::keys).into_iter().flatten();
    if let Some(key) = keys.into_iter().find(|key| !KNOWN_KEYS.contains(&key.as_str())) {
        let text =
            format!("its answer has `{key}`, but may have only `options`, `text` and `refusal`");
        return Err(misbehaviour_error(&text));
    }
    let answer: RequestChange = serde_json::from_value(answer)
        .map_err(|error| misbehaviour_error(&format!("its answer is invalid: {error}")))?;
    let host_bug = |error: serde_json::Error| Error::failed(error.to_string());
    let Value::Object(mut all) = serde_json::to_value(options).map_err(host_bug)? else {
        return Err(Error::failed("options are not an object"));
    };
    let mut changed = Vec::new();
    for (name, value) in &answer.options {
        if !may_change.contains(name) {
            let known = may_change.join(", ");
            let text = format!("a hook cannot change the option `{name}`; it can change: {known}");
            return Err(misbehaviour_error(&text));
        }
        let before = if value.is_null() {
            all.remove(name)
        } else {
            all.insert(name.clone(), value.clone())
        };
        if before.as_ref().unwrap_or(&Value::Null) != value {
            changed.push(name.clone());
        }
    }
    let wrong =
        |error: serde_json::Error| misbehaviour_error(&format!("an option is invalid: {error}"));
    let read: RequestOptions = serde_json::from_value(Value::Object(all)).map_err(wrong)?;
    let written = serde_json::to_value(&read).map_err(host_bug)?;
    for (name, value) in answer.options.iter().filter(|(_, value)| value.is_string()) {
        // An unknown word parses as a word without effect.
        if written.get(name) != Some(value) {
            return Err(misbehaviour_error(&format!("the option `{name}` is not {value}")));
        }
    }
    let RequestChange { text, refusal, .. } = answer;
    Ok(RequestHookChange { changed, options: read, text, refusal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_change(answer: Value, expected: std::result::Result<(&[&str], Value), &str>) {
        let may_change = ["effort", "max_output_tokens", "temperature"].map(str::to_owned);
        let mut options = RequestOptions::default();
        options.temperature = Some(1.0);
        let found = parse_change(answer, &options, &may_change);
        let found =
            found.map(|it| (it.changed, serde_json::to_value(it.options).unwrap_or_default()));
        let expected = expected
            .map(|(names, options)| (names.iter().map(|it| (*it).to_owned()).collect(), options));
        assert_eq!(found.map_err(|error| error.message), expected.map_err(str::to_owned));
    }

    #[test]
    fn options_are_set_taken_away_and_left_as_they_are() {
        check_change(json!({}), Ok((&[], json!({ "temperature": 1.0 }))));
        check_change(
            json!({ "options": { "temperature": 1.0 } }),
            Ok((&[], json!({ "temperature": 1.0 }))),
        );
        check_change(
            json!({ "options": { "temperature": null, "effort": "low" } }),
            Ok((&["temperature", "effort"], json!({ "effort": "low" }))),
        );
    }

    #[test]
    fn forbidden_change_rejects_the_whole_hook_answer() {
        check_change(
            json!({ "messages": [] }),
            Err("its answer has `messages`, but may have only `options`, `text` and `refusal`"),
        );
        let known = "it can change: effort, max_output_tokens, temperature";
        for name in ["extra_headers", "session_key", "stop", "moonlight"] {
            let text = format!("a hook cannot change the option `{name}`; {known}");
            check_change(json!({ "options": { name: {} } }), Err(&text));
        }
        check_change(
            json!({ "options": { "effort": "huge" } }),
            Err("the option `effort` is not \"huge\""),
        );
        let wrong = "an option is invalid: invalid type: string \"many\", expected u32";
        check_change(json!({ "options": { "max_output_tokens": "many" } }), Err(wrong));
    }
}
