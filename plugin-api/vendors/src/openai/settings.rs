//! Settings of both protocols, and schemas.

use serde_json::{Map, Value};

use super::models::FakeOpenAiModel;
use super::{OpenAiCheckResult, check_name, invalid_request};

/// Refuses a reasoning effort that the model does not support. `place` names the field.
pub(super) fn check_effort(
    place: &str,
    effort: &Value,
    model: &FakeOpenAiModel,
) -> OpenAiCheckResult {
    let Some(effort) = effort.as_str() else { return Ok(()) };
    if !model.reasons {
        let message = format!("Unsupported parameter: '{place}' is not supported with this model.");
        return Err(invalid_request("unsupported_parameter", place, message));
    }
    if !model.efforts.contains(&effort) {
        let message = format!(
            "Unsupported value: '{effort}' is not supported with the '{}' model.",
            model.name
        );
        return Err(invalid_request("unsupported_value", place, message));
    }
    Ok(())
}

/// Refuses a temperature if the model reasons.
pub(super) fn check_temperature(
    body: &Map<String, Value>,
    model: &FakeOpenAiModel,
    effort: &Value,
) -> OpenAiCheckResult {
    let asked = body.get("temperature").and_then(Value::as_f64);
    let thinks = model.reasons && effort != "none";
    if thinks && asked.is_some_and(|asked| asked != 1.0) {
        let message = "Unsupported parameter: 'temperature' is not supported with this model.";
        return Err(invalid_request("unsupported_parameter", "temperature", message));
    }
    Ok(())
}

/// Refuses a tool choice without tools.
pub(super) fn check_tool_choice(body: &Map<String, Value>) -> OpenAiCheckResult {
    let Some(choice) = body.get("tool_choice") else { return Ok(()) };
    let has_tools = body.get("tools").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    if !has_tools {
        let message = "Tool choice is only allowed when 'tools' are specified.";
        return Err(invalid_request("invalid_value", "tool_choice", message));
    }
    match choice.as_str() {
        Some("auto" | "none" | "required") => Ok(()),
        _ => {
            Err(invalid_request("invalid_value", "tool_choice", "Invalid value for 'tool_choice'."))
        }
    }
}

/// Checks an output format: its name, its schema, and whether it is strict.
pub(super) fn check_answer_format(place: &str, format: &Value) -> OpenAiCheckResult {
    check_name(&format!("{place}.name"), &format["name"])?;
    let schema = &format["schema"];
    if !schema.is_object() {
        let message = format!("Missing required parameter: '{place}.schema'.");
        return Err(invalid_request("missing_required_parameter", place, message));
    }
    if format["strict"] == true { check_strict_schema(place, schema) } else { Ok(()) }
}

/// Refuses a parameter schema that is invalid, or whose root is not a single object.
pub(super) fn check_parameters(place: &str, name: &Value, schema: &Value) -> OpenAiCheckResult {
    let wrong = |what: &str| {
        let message = format!("Invalid schema for function {name}: {what}");
        Err(invalid_request("invalid_function_parameters", place, message))
    };
    let not_at_root = ["oneOf", "anyOf", "allOf", "enum", "not"];
    if schema["type"] != "object" || not_at_root.iter().any(|key| schema.get(key).is_some()) {
        return wrong(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at \
             the top level.",
        );
    }
    if !jsonschema::draft202012::meta::is_valid(schema) {
        return wrong("it is not valid under the given schema.");
    }
    match has_missing_items(schema) {
        true => wrong("array schema missing items."),
        false => Ok(()),
    }
}

/// Returns true if a schema has an array without an item schema.
fn has_missing_items(schema: &Value) -> bool {
    match schema {
        Value::Object(words) => {
            let is_array = words.get("type").is_some_and(|it| it == "array");
            (is_array && !words.contains_key("items")) || words.values().any(has_missing_items)
        }
        Value::Array(list) => list.iter().any(has_missing_items),
        _ => false,
    }
}

/// Refuses a schema that does not allow strict mode.
pub(super) fn check_strict_schema(place: &str, schema: &Value) -> OpenAiCheckResult {
    let wrong = |what: &str| {
        let message = format!("Invalid schema: In context=(), {what}");
        Err(invalid_request("invalid_json_schema", place, message))
    };
    if let Some(properties) = schema["properties"].as_object() {
        if schema["additionalProperties"] != false {
            return wrong("'additionalProperties' is required to be supplied and to be false.");
        }
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !properties.keys().all(|name| required.iter().any(|one| one == name)) {
            return wrong("'required' is required to be supplied and to include every property.");
        }
        properties.values().try_for_each(|inner| check_strict_schema(place, inner))?;
    } else if schema["type"] == "object" {
        return wrong("'additionalProperties' is required to be supplied and to be false.");
    }
    match schema.get("items") {
        Some(items) => check_strict_schema(place, items),
        None => Ok(()),
    }
}
