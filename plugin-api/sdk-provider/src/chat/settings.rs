//! Converts the options of a request to settings of chat completions. Pure.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, Effort, ToolChoice};

use super::quirks::ChatServerQuirks;
use super::schema::is_strict;

/// The request options that chat completions support, by their names in the request.
pub const OPTIONS: [&str; 12] = [
    "max_output_tokens",
    "temperature",
    "stream",
    "effort",
    "tool_choice",
    "output_schema",
    "stop",
    "seed",
    "session_key",
    "service_tier",
    "extra_body",
    "extra_headers",
];

/// The name of an output schema, because the protocol requires one.
pub const SCHEMA_NAME: &str = "answer";

/// The longest cache key that OpenAI accepts, in characters.
const CACHE_KEY_CHARS_MAX: usize = 64;

/// Returns the settings of a request, in the order in which they are sent.
pub(super) fn request_settings(
    request: &CompletionRequest,
    quirks: &ChatServerQuirks,
) -> Map<String, Value> {
    let options = &request.options;
    let mut settings = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(name.to_owned(), value);
        }
    };
    set("temperature", options.temperature.map(decimal_json));
    set(quirks.max_tokens_field, options.max_output_tokens.map(Value::from));
    let effort = options.effort.and_then(|effort| effort_name(effort, quirks.max_effort));
    set("reasoning_effort", effort.map(Value::from));
    // Servers reject a tool choice without tools.
    let choice = options.tool_choice.filter(|_| !request.tools.is_empty());
    let choice = choice.and_then(|choice| tool_choice_name(choice, quirks.any_tool));
    set("tool_choice", choice.map(Value::from));
    set("response_format", options.output_schema.as_ref().map(response_format_json));
    let stop = options.stop.iter().filter(|text| !text.is_empty());
    let stop: Vec<Value> = stop.map(|text| json!(text)).collect();
    set("stop", (!stop.is_empty()).then(|| stop.into()));
    if let Some(field) = quirks.seed_field {
        // Servers store it as a signed number.
        set(field, options.seed.map(|seed| json!(seed & (u64::MAX >> 1))));
    }
    if let Some(field) = quirks.session_key_field {
        let key = options.session_key.as_deref().filter(|key| !key.is_empty());
        set(field, key.map(|key| json!(shorten_cache_key(key))));
    }
    set("service_tier", options.service_tier.as_deref().map(Value::from));
    if !request.tools.is_empty() || options.output_schema.is_some() {
        for (name, text) in quirks.fields_beside_tools {
            set(name, jaato_plugin_sdk::serde_json::from_str(text).ok());
        }
    }
    settings
}

/// Writes a number with its own digits: the 32-bit number 0.7 is 0.699999988 in 64 bits.
pub fn decimal_json(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Returns the word for a reasoning effort. `most` is the word for the highest effort.
pub fn effort_name(effort: Effort, most: &'static str) -> Option<&'static str> {
    Some(match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => most,
        Effort::Unknown => return None,
    })
}

/// Returns the word for a tool choice. `any` is the word for a required call.
pub fn tool_choice_name(choice: ToolChoice, any: &'static str) -> Option<&'static str> {
    match choice {
        ToolChoice::Auto => Some("auto"),
        ToolChoice::Required => Some(any),
        ToolChoice::None => Some("none"),
        ToolChoice::Unknown => None,
    }
}

/// Shortens a cache key to the length that servers accept.
pub fn shorten_cache_key(key: &str) -> &str {
    let end = key.char_indices().nth(CACHE_KEY_CHARS_MAX).map_or(key.len(), |(end, _)| end);
    &key[..end]
}

fn response_format_json(schema: &Value) -> Value {
    let format = json!({ "name": SCHEMA_NAME, "schema": schema, "strict": is_strict(schema) });
    json!({ "type": "json_schema", "json_schema": format })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_long_cache_key_is_truncated() {
        assert_eq!(shorten_cache_key("é"), "é");
        assert_eq!(shorten_cache_key(&"é".repeat(65)).chars().count(), CACHE_KEY_CHARS_MAX);
    }
}
