//! The settings of a request, with the names of Responses. Pure.

use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, ToolSpec};
use jaato_plugin_sdk_provider::chat::{
    SCHEMA_NAME, decimal_json, effort_name, is_strict, shorten_cache_key, tool_choice_name,
};

use super::request::ResponsesRequestSettings;

/// The smallest output limit that the vendor accepts, in tokens.
const OUTPUT_TOKENS_MIN: u32 = 16;

/// Lists the options of a request that this protocol does not support.
pub(crate) fn list_unsupported_options(request: &CompletionRequest) -> Vec<&'static str> {
    let options = &request.options;
    let stops = options.stop.iter().any(|text| !text.is_empty());
    let stop = stops.then_some("stop");
    stop.into_iter().chain(options.seed.map(|_| "seed")).collect()
}

/// Reads the settings from a request, in the order in which they are sent.
pub(super) fn request_settings(
    request: &CompletionRequest,
    asking: &ResponsesRequestSettings<'_>,
) -> Map<String, Value> {
    let options = &request.options;
    let mut settings = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(name.to_owned(), value);
        }
    };
    set("temperature", options.temperature.map(decimal_json));
    let most = options.max_output_tokens.map(|most| most.max(OUTPUT_TOKENS_MIN));
    set("max_output_tokens", most.map(Value::from));
    let mut reasoning = Map::new();
    let effort = options.effort.and_then(|effort| effort_name(effort, asking.max_effort));
    if let Some(effort) = effort {
        reasoning.insert("effort".to_owned(), json!(effort));
    }
    if asking.habits.has_summaries {
        reasoning.insert("summary".to_owned(), json!("auto"));
    }
    set("reasoning", (!reasoning.is_empty()).then(|| Value::Object(reasoning)));
    // Servers refuse a tool choice without tools.
    let choice = options.tool_choice.filter(|_| !request.tools.is_empty());
    set("tool_choice", choice.and_then(|one| tool_choice_name(one, "required")).map(Value::from));
    set(
        "text",
        options.output_schema.as_ref().map(|schema| json!({ "format": output_format(schema) })),
    );
    if asking.has_session_key {
        let key = options.session_key.as_deref().filter(|key| !key.is_empty());
        set("prompt_cache_key", key.map(|key| json!(shorten_cache_key(key))));
    }
    set("service_tier", options.service_tier.as_deref().map(Value::from));
    settings
}

fn output_format(schema: &Value) -> Value {
    json!({ "type": "json_schema", "name": SCHEMA_NAME, "schema": schema,
        "strict": is_strict(schema) })
}

/// Writes a tool. The schema can have any source. Without `strict` the server would make it strict,
/// so that every property is required.
pub(super) fn write_tool(spec: &ToolSpec) -> Value {
    json!({ "type": "function", "name": spec.name, "description": spec.description,
        "parameters": spec.parameters, "strict": false })
}
