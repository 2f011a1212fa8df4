//! Interprets the error responses of servers for users.
//!
//! Pure: reads the status and the text of the body. The recognized texts were seen from Ollama,
//! OpenRouter, Mistral, DeepSeek, Kimi, vLLM and FastAPI.

use super::reply::REASONING;

/// The hint if the URL belongs to another kind of server.
pub const CHECK_URL: &str = "check the base url: most end in `/v1`";

/// Returns a hint about an error, based on its status and body. `key` is the variable of the API
/// key, and `had_key` says whether the request contained the key.
pub fn refusal_hint(status: u16, body: &[u8], had_key: bool, key: &str) -> Option<String> {
    let words = String::from_utf8_lossy(body).to_lowercase();
    let names_model = words.contains("model");
    let option = refused_option(&words).filter(|_| matches!(status, 400 | 422));
    Some(match (status, option) {
        (401, _) if had_key => format!("check the key in `{key}`"),
        (401, _) => format!("the server requires a key: set `{key}`"),
        (400 | 404 | 422 | 500, _) if is_refusing_tools(&words) => {
            "choose a model that can use tools, or run without them: `--tools none`".to_owned()
        }
        (_, Some(option)) => {
            format!("the model or its server does not accept the option `{option}`: leave it out")
        }
        (404, _) if names_model => LIST.to_owned(),
        (400 | 422, _) if names_model && contains_any_phrase(&words, &UNKNOWN_MODEL) => {
            LIST.to_owned()
        }
        (404 | 405, _) => CHECK_URL.to_owned(),
        _ => return None,
    })
}

/// How a server wants a request to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatRequestChange {
    /// No user message after tool results. Required by Mistral and by chat templates derived from
    /// it.
    ResultsLast,
    /// The reasoning field in all of the model's messages. Required by DeepSeek and Kimi.
    Reasoning,
    /// No reasoning field. Required by Groq and Mistral.
    NoReasoning,
    /// A single type for each value in tool schemas. Required by Google.
    SingleTypes,
}

/// Returns the change that a refusal asks for.
pub fn requested_change(status: u16, body: &[u8]) -> Option<ChatRequestChange> {
    let words = String::from_utf8_lossy(body).to_lowercase();
    if !matches!(status, 400 | 422 | 500) {
        return None;
    }
    if contains_any_phrase(&words, &WRONG_ORDER) {
        return Some(ChatRequestChange::ResultsLast);
    }
    if contains_any_phrase(&words, &LIST_OF_TYPES) {
        return Some(ChatRequestChange::SingleTypes);
    }
    if !words.contains(REASONING) {
        return None;
    }
    let is_refused =
        || contains_any_phrase(&words, &UNKNOWN_FIELD).then_some(ChatRequestChange::NoReasoning);
    contains_any_phrase(&words, &MISSING)
        .then_some(ChatRequestChange::Reasoning)
        .or_else(is_refused)
}

const LIST: &str = "`jaato model list` lists the models";

/// Error texts for an unknown model, if the status does not show it.
const UNKNOWN_MODEL: [&str; 10] = [
    "not a valid model",
    "invalid model",
    "unknown model",
    "no such model",
    "model not found",
    "model_not_found",
    "model not exist",
    "model does not exist",
    "does not exist",
    "unsupported model",
];

/// Error texts for messages in an unsupported order.
const WRONG_ORDER: [&str; 4] = [
    "after role 'tool'",
    "after role tool",
    "invalid_request_message_order",
    "roles must alternate",
];

/// Error texts for a list of types in a schema, from Google and its gateways.
const LIST_OF_TYPES: [&str; 2] = ["proto field is not repeating", "'type_unspecified'"];

/// Error texts for an unsupported setting.
const UNSUPPORTED: [&str; 8] = [
    "unsupported_parameter",
    "unsupported_value",
    "unsupported parameter",
    "unsupported value",
    "not support",
    "unrecognized request argument",
    "extra inputs are not permitted",
    "unknown field",
];

/// Settings by the names that servers use, with the options that set them.
const SETTINGS: [(&str, &str); 14] = [
    ("temperature", "temperature"),
    ("reasoning_effort", "effort"),
    ("tool_choice", "tool_choice"),
    ("response_format", "output_schema"),
    ("json_schema", "output_schema"),
    ("'stop'", "stop"),
    ("\"stop\"", "stop"),
    ("'seed'", "seed"),
    ("parameter stop", "stop"),
    ("parameter seed", "seed"),
    ("reasoningeffort", "effort"),
    ("reasoning.effort", "effort"),
    ("text.format", "output_schema"),
    ("max_output_tokens", "max_output_tokens"),
];

/// Error texts for a missing reasoning field.
const MISSING: [&str; 3] = ["must be passed back", "is missing", "field required"];

/// Error texts for an unknown field.
const UNKNOWN_FIELD: [&str; 5] =
    ["unsupported", "not supported", "not permitted", "extra_forbidden", "unknown"];

fn refused_option(words: &str) -> Option<&'static str> {
    let is_named = |(name, _): &&(&str, &str)| words.contains(name);
    let setting =
        SETTINGS.iter().filter(|_| contains_any_phrase(words, &UNSUPPORTED)).find(is_named);
    setting.map(|(_, option)| *option)
}

fn is_refusing_tools(words: &str) -> bool {
    const REFUSALS: [&str; 6] = [
        "does not support tool",
        "do not support tool",
        "doesn't support tool",
        "not support function",
        "support tool use",
        "--enable-auto-tool-choice",
    ];
    contains_any_phrase(words, &REFUSALS)
}

fn contains_any_phrase(words: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| words.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_text(status: u16, body: &str) -> String {
        refusal_hint(status, body.as_bytes(), false, "KEY").unwrap_or_default()
    }

    #[test]
    fn unknown_model_is_distinguished_from_unknown_path() {
        for (status, body) in [
            (404, r#"{"error":{"message":"model `m` not found, try pulling it first"}}"#),
            (400, r#"{"error":{"message":"moon/x is not a valid model ID","code":400}}"#),
            (400, r#"{"object":"error","message":"Invalid model: moon","code":"1500"}"#),
            (422, r#"{"detail":"The model moon does not exist"}"#),
        ] {
            assert_eq!(refusal_text(status, body), LIST, "{body}");
        }
        for body in [r#"{"detail":"Not Found"}"#, "404 page not found", ""] {
            assert_eq!(refusal_text(404, body), "check the base url: most end in `/v1`", "{body}");
        }
        for body in [r#"{"error":"the model is loading"}"#, r#"{"error":"bad temperature"}"#] {
            assert_eq!(refusal_text(400, body), "", "{body}");
        }
    }

    #[test]
    fn unsupported_option_is_named_in_the_hint() {
        for (body, option) in [
            ("Unsupported value: 'temperature' does not support 0 with this model.", "temperature"),
            (r#"{"code":"unsupported_value","param":"reasoning_effort"}"#, "effort"),
            ("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
            ("Model grok-4 does not support parameter stop.", "stop"),
            ("`response_format` of type json_schema is not supported", "output_schema"),
        ] {
            assert!(refusal_text(400, body).contains(&format!("the option `{option}`")), "{body}");
            assert_eq!(refusal_text(500, body), "");
        }
        assert_eq!(refusal_text(400, "images are not supported; do not stop"), "");
    }

    #[test]
    fn missing_tool_support_is_recognized() {
        for (status, body) in [
            (400, r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#),
            (404, r#"{"error":{"message":"No endpoints found that support tool use."}}"#),
            (400, "\"auto\" tool choice requires --enable-auto-tool-choice to be set"),
        ] {
            assert!(refusal_text(status, body).contains("--tools none"), "{body}");
        }
    }

    #[test]
    fn message_order_error_is_recognized_in_every_wording() {
        for body in [
            r#"{"message":"Unexpected role 'user' after role 'tool'","code":"3230"}"#,
            r#"{"type":"invalid_request_message_order"}"#,
            "Conversation roles must alternate user/assistant/user/assistant/...",
        ] {
            assert_eq!(
                requested_change(400, body.as_bytes()),
                Some(ChatRequestChange::ResultsLast),
                "{body}"
            );
            assert_eq!(requested_change(401, body.as_bytes()), None, "{body}");
        }
        assert_eq!(requested_change(400, b"bad request"), None);
    }

    #[test]
    fn refused_type_list_is_recognized_by_its_wording() {
        for body in [
            r#"[{"error":{"message":"Unknown name \"type\" at 'tools[0].function_declarations[0].\
               parameters.properties[1].value': Proto field is not repeating, cannot start list."}}]"#,
            "parameters.properties.a.type Input should be 'TYPE_UNSPECIFIED', 'STRING' or 'NULL'",
        ] {
            assert_eq!(
                requested_change(400, body.as_bytes()),
                Some(ChatRequestChange::SingleTypes),
                "{body}"
            );
        }
        assert_eq!(requested_change(400, b"unknown type"), None);
    }

    #[test]
    fn missing_and_unwanted_reasoning_are_distinguished() {
        for body in [
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "thinking is enabled but reasoning_content is missing in assistant tool call message",
        ] {
            assert_eq!(
                requested_change(400, body.as_bytes()),
                Some(ChatRequestChange::Reasoning),
                "{body}"
            );
        }
        for body in [
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : \
             property 'reasoning_content' is unsupported)]",
            r#"{"loc":["body","messages",1,"reasoning_content"],"msg":"Extra inputs are not permitted"}"#,
        ] {
            assert_eq!(
                requested_change(400, body.as_bytes()),
                Some(ChatRequestChange::NoReasoning),
                "{body}"
            );
        }
        for body in ["the model is missing", "reasoning_content is long", "unknown field"] {
            assert_eq!(requested_change(400, body.as_bytes()), None, "{body}");
        }
    }
}
