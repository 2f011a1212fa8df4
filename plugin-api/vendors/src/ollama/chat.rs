//! The rules of a chat.

use serde_json::{Map, Value};

use super::models::FakeOllamaModel;
use super::{OllamaCheckResult, check_fields, invalid_request};

const FIELDS: [&str; 10] = [
    "format",
    "keep_alive",
    "messages",
    "model",
    "options",
    "shift",
    "stream",
    "think",
    "tools",
    "truncate",
];

const LEVELS: [&str; 3] = ["low", "medium", "high"];

/// The number of bytes that count as one token.
const TOKEN_BYTES: usize = 4;

/// Checks a chat.
pub(super) fn check_chat(body: &Map<String, Value>, model: &FakeOllamaModel) -> OllamaCheckResult {
    check_fields("chat", body, &FIELDS)?;
    if !model.has_capability("completion") {
        return Err(invalid_request(format!("\"{}\" does not support chat", model.name)));
    }
    for flag in ["stream", "truncate", "shift"] {
        if body.get(flag).is_some_and(|flag| !flag.is_boolean()) {
            return Err(invalid_type_fault(flag, "bool"));
        }
    }
    check_think_option(body, model)?;
    check_options(body)?;
    check_tools(body, model)?;
    check_other_fields(body)?;
    check_messages(body, model)
}

/// Returns true if the model thinks about this request.
pub(super) fn can_think(body: &Map<String, Value>, model: &FakeOllamaModel) -> bool {
    model.has_capability("thinking") && body.get("think") != Some(&Value::Bool(false))
}

/// Counts the tokens of the prompt. Images count as zero.
pub(super) fn count_prompt_tokens(body: &Map<String, Value>) -> u64 {
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    let words = messages.map(|message| {
        let text = |key: &str| message[key].as_str().map_or(0, str::len);
        text("content") + text("thinking") + message["tool_calls"].to_string().len()
    });
    let tools = body.get("tools").map_or(0, |tools| tools.to_string().len());
    ((words.sum::<usize>() + tools) / TOKEN_BYTES) as u64
}

fn invalid_type_fault(what: &str, wanted: &str) -> super::OllamaRequestFault {
    invalid_request(format!(
        "json: cannot unmarshal into Go struct field ChatRequest.{what} of type {wanted}"
    ))
}

fn check_think_option(body: &Map<String, Value>, model: &FakeOllamaModel) -> OllamaCheckResult {
    let Some(think) = body.get("think") else { return Ok(()) };
    let refused = || {
        let text = format!("think value {think} is not supported for this model");
        Err(invalid_request(text))
    };
    match think {
        Value::Bool(false) if !model.has_capability("thinking") => Ok(()),
        Value::Bool(_) | Value::String(_) if !model.has_capability("thinking") => {
            Err(invalid_request(format!("\"{}\" does not support thinking", model.name)))
        }
        Value::Bool(_) if model.has_thinking_levels() => refused(),
        Value::Bool(_) => Ok(()),
        Value::String(level) if !LEVELS.contains(&level.as_str()) => {
            Err(invalid_request(format!("invalid think value: {think}")))
        }
        Value::String(_) if !model.has_thinking_levels() => refused(),
        Value::String(_) => Ok(()),
        _ => Err(invalid_request(
            "think must be a boolean or string (\"high\", \"medium\", \"low\")",
        )),
    }
}

fn check_options(body: &Map<String, Value>) -> OllamaCheckResult {
    let Some(options) = body.get("options") else { return Ok(()) };
    let options = options.as_object().ok_or_else(|| invalid_type_fault("options", "map"))?;
    let known = ["num_ctx", "num_predict", "seed", "stop", "temperature"];
    check_fields("options", options, &known)?;
    let whole = |key: &str, least: i64| {
        options.get(key).is_none_or(|value| value.as_i64().is_some_and(|it| it >= least))
    };
    for (key, least) in [("num_ctx", 1), ("num_predict", -2), ("seed", i64::from(i32::MIN))] {
        if !whole(key, least) {
            return Err(invalid_request(format!("option \"{key}\" must be of type integer")));
        }
    }
    if options.get("seed").and_then(Value::as_i64).is_some_and(|seed| seed > i64::from(i32::MAX)) {
        return Err(invalid_request("option \"seed\" must be of type integer"));
    }
    let is_warm = |it: &Value| it.as_f64().is_some_and(|it| (0.0..=2.0).contains(&it));
    if options.get("temperature").is_some_and(|it| !is_warm(it)) {
        return Err(invalid_request("option \"temperature\" must be of type float32"));
    }
    let is_text = |it: &Value| it.as_str().is_some_and(|text| !text.is_empty());
    let is_list = |it: &Value| it.as_array().is_some_and(|list| list.iter().all(is_text));
    if options.get("stop").is_some_and(|it| !is_list(it)) {
        return Err(invalid_request("option \"stop\" must be of an array of strings"));
    }
    Ok(())
}

fn check_tools(body: &Map<String, Value>, model: &FakeOllamaModel) -> OllamaCheckResult {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let tools = tools.as_array().ok_or_else(|| invalid_type_fault("tools", "api.Tools"))?;
    if !tools.is_empty() && !model.has_capability("tools") {
        let name = &model.name;
        return Err(invalid_request(format!(
            "registry.ollama.ai/library/{name} does not support tools"
        )));
    }
    for tool in tools {
        let function = &tool["function"];
        let has_name = function["name"].as_str().is_some_and(|name| !name.is_empty());
        if tool["type"] != "function" || !has_name || !function["description"].is_string() {
            return Err(invalid_type_fault("tools.function", "api.ToolFunction"));
        }
        let parameters = &function["parameters"];
        let required = parameters.get("required").is_none_or(is_text_list);
        if parameters["type"] != "object" || !parameters["properties"].is_object() || !required {
            return Err(invalid_type_fault(
                "tools.function.parameters",
                "api.ToolFunctionParameters",
            ));
        }
        check_properties(parameters)?;
    }
    Ok(())
}

/// Checks that every property is an object whose type is a text or a list of texts.
fn check_properties(schema: &Value) -> OllamaCheckResult {
    let wrong = || invalid_type_fault("tools.function.parameters.properties", "api.ToolProperty");
    for property in schema["properties"].as_object().into_iter().flat_map(|all| all.values()) {
        let kind = property.get("type");
        let is_kind = kind.is_none_or(|kind| kind.is_string() || is_text_list(kind));
        let is_listed = property.get("enum").is_none_or(Value::is_array);
        if !property.is_object() || !is_kind || !is_listed {
            return Err(wrong());
        }
        let any = property.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        if any.clone().any(|one| !one.is_object()) {
            return Err(wrong());
        }
        check_properties(property)?;
    }
    Ok(())
}

fn is_text_list(list: &Value) -> bool {
    list.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

fn check_other_fields(body: &Map<String, Value>) -> OllamaCheckResult {
    if let Some(format) = body.get("format")
        && !(format.is_object() || format == "json")
    {
        return Err(invalid_request("invalid format: expected \"json\" or a JSON schema"));
    }
    let is_duration = |text: &str| {
        let is_part = |c: char| c.is_ascii_digit() || ".hmsu".contains(c);
        text.ends_with(['h', 'm', 's']) && text.trim_start_matches('-').chars().all(is_part)
    };
    match body.get("keep_alive") {
        None | Some(Value::Number(_)) => Ok(()),
        Some(Value::String(text)) if is_duration(text) => Ok(()),
        Some(other) => Err(invalid_request(format!("time: invalid duration {other}"))),
    }
}

fn check_messages(body: &Map<String, Value>, model: &FakeOllamaModel) -> OllamaCheckResult {
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or_else(|| invalid_type_fault("messages", "[]api.Message"))?;
    // Calls without a result so far.
    let mut open: Vec<(String, String)> = Vec::new();
    for message in messages {
        let fields =
            message.as_object().ok_or_else(|| invalid_type_fault("messages", "api.Message"))?;
        let role = message["role"].as_str().unwrap_or_default();
        let known: &[&str] = match role {
            "system" => &[],
            "user" => &["images"],
            "assistant" => &["thinking", "tool_calls"],
            "tool" => &["tool_call_id", "tool_name"],
            _ => return Err(invalid_request(format!("invalid role: {role}"))),
        };
        check_fields("message", fields, &[&["role", "content"], known].concat())?;
        let content = &message["content"];
        // The vendor's own library leaves out an empty content.
        let is_left_out = content.is_null() && message["tool_calls"].is_array();
        if !content.is_string() && !is_left_out {
            return Err(invalid_type_fault("messages.content", "string"));
        }
        if role != "tool" && !open.is_empty() {
            return Err(invalid_request(format!("calls without results: {open:?}")));
        }
        check_images(message, model)?;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let Some(name) = function["name"].as_str().map(str::to_owned) else {
                return Err(invalid_type_fault("messages.tool_calls", "api.ToolCall"));
            };
            // The vendor's own library drops ids.
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if !function["arguments"].is_object() {
                return Err(invalid_type_fault("messages.tool_calls.function.arguments", "map"));
            }
            if !id.is_empty() && open.iter().any(|(other, _)| *other == id) {
                return Err(invalid_request("two calls have one id"));
            }
            open.push((id, name));
        }
        if role == "tool" {
            let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
            let answered = (text("tool_call_id"), text("tool_name"));
            let at = open.iter().position(|call| *call == answered);
            open.remove(at.ok_or_else(|| invalid_request("a tool's result answers no call"))?);
        }
    }
    let last = messages.last().map(|message| &message["role"]);
    if !last.is_some_and(|role| role == "user" || role == "tool") || !open.is_empty() {
        return Err(invalid_request("the last message asks for nothing"));
    }
    Ok(())
}

fn check_images(message: &Value, model: &FakeOllamaModel) -> OllamaCheckResult {
    let Some(images) = message.get("images") else { return Ok(()) };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let is_image = |image: &Value| {
        let text = image.as_str().unwrap_or_default();
        !text.is_empty() && text.len() % 4 == 0 && text.chars().all(is_letter)
    };
    if !images.as_array().is_some_and(|images| images.iter().all(is_image)) {
        return Err(invalid_type_fault("messages.images", "[]api.ImageData"));
    }
    if !model.has_capability("vision") {
        return Err(invalid_request("this model is missing data required for image input"));
    }
    Ok(())
}
