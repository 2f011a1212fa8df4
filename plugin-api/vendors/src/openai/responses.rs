//! The fields of a Responses request other than its items.

use serde_json::{Map, Value};

use super::models::FakeOpenAiModel;
use super::settings::{
    check_answer_format, check_effort, check_parameters, check_strict_schema, check_temperature,
    check_tool_choice,
};
use super::{OpenAiCheckResult, check_fields, check_name, check_text, invalid_request};

const FIELDS: [&str; 20] = [
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
];

/// Checks the fields.
pub(super) fn check_responses_body(
    body: &Map<String, Value>,
    model: &FakeOpenAiModel,
    is_verified: bool,
) -> OpenAiCheckResult {
    check_fields("", body, &FIELDS)?;
    let null = Value::Null;
    let field = |name: &str| body.get(name).unwrap_or(&null);
    if field("store") != false {
        // The vendor's default stores the conversation for a month.
        return Err(invalid_request(
            "zdr_required",
            "store",
            "This account does not allow 'store'.",
        ));
    }
    for value in field("include").as_array().into_iter().flatten() {
        if value != "reasoning.encrypted_content" {
            let message = format!("Invalid value: '{value}'.");
            return Err(invalid_request("invalid_value", "include", message));
        }
        if !model.reasons {
            let message = "Encrypted content is not supported with this model.";
            return Err(invalid_request("invalid_value", "include", message));
        }
    }
    check_reasoning(field("reasoning"), model, is_verified)?;
    check_temperature(body, model, &field("reasoning")["effort"])?;
    check_tool_choice(body)?;
    if field("max_output_tokens").as_u64().is_some_and(|most| most < 16) {
        let message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value \
                       >= 16.";
        return Err(invalid_request("integer_below_min_value", "max_output_tokens", message));
    }
    if !field("prompt_cache_key").is_null() {
        check_text("prompt_cache_key", field("prompt_cache_key"), 64)?;
    }
    let format = &field("text")["format"];
    if format["type"] == "json_schema" {
        check_answer_format("text.format", format)?;
    }
    let tools = field("tools").as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().enumerate().try_for_each(|(at, tool)| check_tool(&format!("tools[{at}]"), tool))
}

fn check_reasoning(
    reasoning: &Value,
    model: &FakeOpenAiModel,
    is_verified: bool,
) -> OpenAiCheckResult {
    let Some(fields) = reasoning.as_object() else { return Ok(()) };
    check_fields("reasoning", fields, &["effort", "summary"])?;
    check_effort("reasoning.effort", &reasoning["effort"], model)?;
    if reasoning["summary"].is_null() {
        return Ok(());
    }
    if !model.reasons {
        let message =
            "Unsupported parameter: 'reasoning.summary' is not supported with this model.";
        return Err(invalid_request("unsupported_parameter", "reasoning.summary", message));
    }
    if !is_verified {
        let message = "Your organization must be verified to generate reasoning summaries.";
        return Err(invalid_request("unsupported_value", "reasoning.summary", message));
    }
    Ok(())
}

fn check_tool(place: &str, tool: &Value) -> OpenAiCheckResult {
    let fields = tool.as_object().ok_or_else(|| {
        invalid_request(
            "invalid_type",
            place,
            format!("Invalid type for '{place}': expected an object."),
        )
    })?;
    check_fields(place, fields, &["type", "name", "description", "parameters", "strict"])?;
    if tool["type"] != "function" {
        let message = format!("Invalid value for '{place}.type'.");
        return Err(invalid_request("invalid_value", place, message));
    }
    check_name(&format!("{place}.name"), &tool["name"])?;
    check_parameters(place, &tool["name"], &tool["parameters"])?;
    // The default is strict.
    if tool["strict"] == false { Ok(()) } else { check_strict_schema(place, &tool["parameters"]) }
}
