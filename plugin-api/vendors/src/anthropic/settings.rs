//! The fields of a request other than tools and messages.

use serde_json::{Map, Value, json};

use super::models::{self, FakeAnthropicModel, ThinkingSupport};
use super::{AnthropicCheckResult, AnthropicRequestFault, check_fields, invalid_request};

const FIELDS: [&str; 17] = [
    "cache_control",
    "inference_geo",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Finds the model.
pub(super) fn requested_model(
    body: &Map<String, Value>,
) -> AnthropicCheckResult<&'static FakeAnthropicModel> {
    let name = body.get("model").and_then(Value::as_str);
    let name = name.ok_or_else(|| invalid_request("model: Field required"))?;
    models::find_model(name).ok_or_else(|| AnthropicRequestFault {
        status: 404,
        kind: "not_found_error",
        message: format!("model: {name}"),
    })
}

/// Checks the settings.
pub(super) fn check_settings(
    body: &Map<String, Value>,
    model: &FakeAnthropicModel,
) -> AnthropicCheckResult {
    check_fields("", body, &FIELDS)?;
    check_max_tokens(body, model)?;
    check_thinking(body, model)?;
    check_output_config(body)?;
    check_temperature(body, model)?;
    check_tool_choice(body, model)?;
    let stops = body.get("stop_sequences").and_then(Value::as_array);
    let is_blank = |stop: &Value| stop.as_str().is_none_or(|text| text.trim().is_empty());
    if stops.into_iter().flatten().any(is_blank) {
        return Err(invalid_request(
            "stop_sequences: each stop sequence must contain non-whitespace",
        ));
    }
    match body.get("system") {
        None => Ok(()),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(()),
        Some(Value::Array(blocks)) => blocks.iter().try_for_each(check_system),
        Some(_) => Err(invalid_request("system: Input should be a valid string or list")),
    }
}

fn check_system(block: &Value) -> AnthropicCheckResult {
    let fields =
        block.as_object().ok_or_else(|| invalid_request("system: Input should be an object"))?;
    check_fields("system.0", fields, &["type", "text", "cache_control"])?;
    match block["text"].as_str().filter(|_| block["type"] == "text") {
        Some(text) if !text.trim().is_empty() => Ok(()),
        Some(_) => {
            Err(invalid_request("system: text content blocks must contain non-whitespace text"))
        }
        None => Err(invalid_request("system.0: Input should be a text block")),
    }
}

fn check_max_tokens(body: &Map<String, Value>, model: &FakeAnthropicModel) -> AnthropicCheckResult {
    let tokens =
        body.get("max_tokens").ok_or_else(|| invalid_request("max_tokens: Field required"))?;
    match tokens.as_u64() {
        None | Some(0) => {
            Err(invalid_request("max_tokens: Input should be greater than or equal to 1"))
        }
        Some(tokens) if tokens > model.output => Err(invalid_request(format!(
            "max_tokens: {tokens} > {}, which is the maximum allowed number of output tokens for {}",
            model.output, model.name
        ))),
        Some(_) => Ok(()),
    }
}

fn thinking_type(body: &Map<String, Value>) -> Option<&str> {
    body.get("thinking")?["type"].as_str()
}

fn requested_effort(body: &Map<String, Value>) -> Option<&str> {
    body.get("output_config")?["effort"].as_str()
}

/// Returns true if the model may think.
pub(super) fn can_think(body: &Map<String, Value>, model: &FakeAnthropicModel) -> bool {
    match (thinking_type(body), model.thinks) {
        (Some(kind), _) => matches!(kind, "enabled" | "adaptive" | "between_tools"),
        (None, ThinkingSupport::ByBudget | ThinkingSupport::WhenAsked) => false,
        (None, _) => true,
    }
}

/// Returns true if thoughts include their text.
pub(super) fn has_visible_thoughts(body: &Map<String, Value>, model: &FakeAnthropicModel) -> bool {
    let display = body.get("thinking").and_then(|thinking| thinking["display"].as_str());
    let by_default =
        model.thinks == ThinkingSupport::ByBudget || thinking_type(body) == Some("between_tools");
    display.map_or(by_default, |display| display == "summarized")
}

fn check_thinking(body: &Map<String, Value>, model: &FakeAnthropicModel) -> AnthropicCheckResult {
    let Some(thinking) = body.get("thinking") else { return Ok(()) };
    let fields = thinking
        .as_object()
        .ok_or_else(|| invalid_request("thinking: Input should be an object"))?;
    let refused = |kind: &str| {
        invalid_request(format!("thinking.type: \"{kind}\" is not supported for this model"))
    };
    let max_tokens = body.get("max_tokens").and_then(Value::as_u64).unwrap_or(0);
    match thinking_type(body).unwrap_or_default() {
        "enabled" => {
            check_fields("thinking", fields, &["type", "budget_tokens", "display"])?;
            let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
            if model.thinks != ThinkingSupport::ByBudget {
                return Err(refused("enabled"));
            }
            if budget < 1_024 {
                return Err(invalid_request(
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
                ));
            }
            if budget >= max_tokens {
                return Err(invalid_request(
                    "`max_tokens` must be greater than `thinking.budget_tokens`",
                ));
            }
        }
        "adaptive" => {
            check_fields("thinking", fields, &["type", "display", "block_binding"])?;
            if model.thinks == ThinkingSupport::ByBudget {
                return Err(refused("adaptive"));
            }
        }
        word @ ("disabled" | "between_tools") => {
            check_fields("thinking", fields, &["type"])?;
            let takes = match model.thinks {
                ThinkingSupport::ByBudget
                | ThinkingSupport::WhenAsked
                | ThinkingSupport::UnlessDisabled => word == "disabled",
                ThinkingSupport::UnlessBetweenTools => word == "between_tools",
                ThinkingSupport::Always => false,
            };
            if !takes || matches!(requested_effort(body), Some("xhigh" | "max")) {
                return Err(refused(word));
            }
        }
        other => return Err(invalid_request(format!("thinking: Input tag '{other}' found"))),
    }
    Ok(())
}

fn check_output_config(body: &Map<String, Value>) -> AnthropicCheckResult {
    let Some(config) = body.get("output_config") else { return Ok(()) };
    let fields = config
        .as_object()
        .ok_or_else(|| invalid_request("output_config: Input should be an object"))?;
    check_fields("output_config", fields, &["effort", "format"])?;
    let efforts = ["low", "medium", "high", "xhigh", "max"];
    if fields.contains_key("effort")
        && !requested_effort(body).is_some_and(|it| efforts.contains(&it))
    {
        return Err(invalid_request(
            "output_config.effort: Input should be 'low', 'medium' or 'high'",
        ));
    }
    let Some(format) = config.get("format") else { return Ok(()) };
    if format["type"] != "json_schema" {
        return Err(invalid_request("output_config.format.type: Input should be 'json_schema'"));
    }
    check_schema(&format["schema"])
}

/// Checks the rules for output schemas.
fn check_schema(schema: &Value) -> AnthropicCheckResult {
    let place = "output_config.format.schema";
    let Some(words) = schema.as_object() else { return Ok(()) };
    for word in ["minimum", "maximum", "minLength", "maxLength", "multipleOf", "maxItems"] {
        if words.contains_key(word) {
            return Err(invalid_request(format!("{place}: property '{word}' is not supported")));
        }
    }
    if schema["type"] == "object" && schema["additionalProperties"] != false {
        let text = "for 'object' type, 'additionalProperties' must be explicitly set to false";
        return Err(invalid_request(format!("{place}: {text}")));
    }
    let named = schema["properties"].as_object().into_iter().flat_map(|it| it.values());
    named.chain(words.get("items")).try_for_each(check_schema)
}

/// Refuses fields that the newer version of the API removed, regardless of their value.
pub(super) fn check_no_sampling_options(body: &Map<String, Value>) -> AnthropicCheckResult {
    match ["temperature", "top_p", "top_k"].iter().find(|name| body.contains_key(**name)) {
        Some(name) => Err(invalid_request(format!("{name}: Extra inputs are not permitted"))),
        None => Ok(()),
    }
}

fn check_temperature(
    body: &Map<String, Value>,
    model: &FakeAnthropicModel,
) -> AnthropicCheckResult {
    let Some(temperature) = body.get("temperature") else { return Ok(()) };
    let Some(temperature) = temperature.as_f64().filter(|it| (0.0..=1.0).contains(it)) else {
        return Err(invalid_request("temperature: range: 0..1"));
    };
    let is_neutral = (temperature - 1.0).abs() < f64::EPSILON;
    if !model.samples && !is_neutral {
        return Err(invalid_request("`temperature` is deprecated for this model."));
    }
    if can_think(body, model) && !is_neutral {
        return Err(invalid_request(
            "`temperature` may only be set to 1 when thinking is enabled.",
        ));
    }
    Ok(())
}

fn check_tool_choice(
    body: &Map<String, Value>,
    model: &FakeAnthropicModel,
) -> AnthropicCheckResult {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    if body.get("tools").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        return Err(invalid_request("tool_choice may only be specified while providing tools"));
    }
    let is_forced = choice["type"] == "any" || choice["type"] == "tool";
    if is_forced && !model.can_be_forced {
        let text = "tool_choice: type \"tool\" and \"any\" are not supported for this model.";
        return Err(invalid_request(text));
    }
    if is_forced && thinking_type(body) == Some("enabled") {
        return Err(invalid_request(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    let known = ["auto", "any", "tool", "none"].map(|word| json!(word));
    if known.contains(&choice["type"]) {
        Ok(())
    } else {
        Err(invalid_request("tool_choice: Input tag"))
    }
}
