//! Chat completions: checks of requests, and the format of answers.

use serde_json::{Map, Value, json};

use super::answer_format::{build_answer, count_tokens, json_answer as whole, split_in_half};
use super::models::FakeOpenAiModel;
use super::settings::{
    check_answer_format, check_effort, check_parameters, check_temperature, check_tool_choice,
};
use super::{
    OpenAiAnswerPiece, OpenAiCheckResult, OpenAiRequestFault, OpenAiTurn, StreamErrorPlacement,
    VendorAnswer, check_fields, check_name, check_text, invalid_request,
};

const FIELDS: [&str; 24] = [
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
];

/// The maximum number of tools.
const TOOLS_MAX: usize = 128;

/// The longest call id.
const CALL_ID_CHARS_MAX: usize = 40;

/// Checks a request.
pub(super) fn check_chat(body: &Map<String, Value>, model: &FakeOpenAiModel) -> OpenAiCheckResult {
    if !model.chats {
        let message =
            "This model is only supported in v1/responses and not in v1/chat/completions.";
        return Err(OpenAiRequestFault {
            status: 404,
            code: None,
            param: Some("model".to_owned()),
            message: message.to_owned(),
        });
    }
    check_fields("", body, &FIELDS)?;
    let null = Value::Null;
    let field = |name: &str| body.get(name).unwrap_or(&null);
    for name in ["max_tokens", "stop"] {
        if model.reasons && !field(name).is_null() {
            let instead = if name == "stop" { "" } else { " Use 'max_completion_tokens' instead." };
            let message = format!(
                "Unsupported parameter: '{name}' is not supported with this model.{instead}"
            );
            return Err(invalid_request("unsupported_parameter", name, message));
        }
    }
    check_effort("reasoning_effort", field("reasoning_effort"), model)?;
    check_temperature(body, model, field("reasoning_effort"))?;
    check_tool_choice(body)?;
    if field("stream") != true && !field("stream_options").is_null() {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(invalid_request("invalid_value", "stream_options", message));
    }
    if !field("prompt_cache_key").is_null() {
        check_text("prompt_cache_key", field("prompt_cache_key"), 64)?;
    }
    if field("response_format")["type"] == "json_schema" {
        check_answer_format(
            "response_format.json_schema",
            &field("response_format")["json_schema"],
        )?;
    }
    let tools = slice_or_empty(field("tools"));
    if tools.len() > TOOLS_MAX {
        let message = format!("Invalid 'tools': array too long. Expected at most {TOOLS_MAX}.");
        return Err(invalid_request("array_above_max_length", "tools", message));
    }
    for (at, tool) in tools.iter().enumerate() {
        check_tool(&format!("tools[{at}]"), tool)?;
    }
    let messages = slice_or_empty(field("messages"));
    if messages.is_empty() {
        let message = "Invalid 'messages': empty array.";
        return Err(invalid_request("empty_array", "messages", message));
    }
    for (at, message) in messages.iter().enumerate() {
        check_message(&format!("messages[{at}]"), message, model)?;
    }
    check_call_pairs(messages)
}

fn slice_or_empty(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn expect_object<'a>(place: &str, value: &'a Value) -> OpenAiCheckResult<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| {
        invalid_request(
            "invalid_type",
            place,
            format!("Invalid type for '{place}': expected an object."),
        )
    })
}

fn check_tool(place: &str, tool: &Value) -> OpenAiCheckResult {
    check_fields(place, expect_object(place, tool)?, &["type", "function"])?;
    let place = format!("{place}.function");
    let known = ["name", "description", "parameters", "strict"];
    check_fields(&place, expect_object(&place, &tool["function"])?, &known)?;
    let function = &tool["function"];
    check_name(&format!("{place}.name"), &function["name"])?;
    match function.get("parameters") {
        Some(schema) => check_parameters(&place, &function["name"], schema),
        None => Ok(()),
    }
}

fn check_message(place: &str, message: &Value, model: &FakeOpenAiModel) -> OpenAiCheckResult {
    let fields = expect_object(place, message)?;
    let role = message["role"].as_str().unwrap_or_default();
    let content = &message["content"];
    let known: &[&str] = match role {
        "system" | "developer" | "user" => &["role", "content", "name"],
        "tool" => &["role", "content", "tool_call_id"],
        "assistant" => &["role", "content", "refusal", "tool_calls", "name"],
        _ => {
            let place = format!("{place}.role");
            return Err(invalid_request(
                "invalid_value",
                &place,
                format!("Invalid value: '{role}'."),
            ));
        }
    };
    check_fields(place, fields, known)?;
    if role == "developer" && !model.reasons {
        let message = "developer messages are for models that reason";
        return Err(invalid_request("unsupported_value", place, message));
    }
    let may_be_null = role == "assistant" && !slice_or_empty(&message["tool_calls"]).is_empty();
    if content.is_null() && !may_be_null {
        let message =
            format!("Invalid value for 'content': expected a string, got null. ({place})");
        return Err(invalid_request("invalid_type", place, message));
    }
    for (at, piece) in slice_or_empty(content).iter().enumerate() {
        check_content_piece(&format!("{place}.content[{at}]"), role, piece)?;
    }
    for (at, call) in slice_or_empty(&message["tool_calls"]).iter().enumerate() {
        let place = format!("{place}.tool_calls[{at}]");
        check_fields(&place, expect_object(&place, call)?, &["id", "type", "function"])?;
        check_text(&format!("{place}.id"), &call["id"], CALL_ID_CHARS_MAX)?;
        check_name(&format!("{place}.function.name"), &call["function"]["name"])?;
        let arguments = format!("{place}.function.arguments");
        check_text(&arguments, &call["function"]["arguments"], usize::MAX)?;
    }
    Ok(())
}

fn check_content_piece(place: &str, role: &str, piece: &Value) -> OpenAiCheckResult {
    let is_url = |url: &Value, begin: &str| {
        url.as_str().is_some_and(|url| url.starts_with(begin) && url.contains(";base64,"))
    };
    let is_good = match (role, piece["type"].as_str().unwrap_or_default()) {
        (_, "text") => piece["text"].is_string(),
        ("user", "image_url") => is_url(&piece["image_url"]["url"], "data:image/"),
        ("user", "file") => {
            is_url(&piece["file"]["file_data"], "data:application/pdf")
                && piece["file"]["filename"].is_string()
        }
        ("assistant", "refusal") => piece["refusal"].is_string(),
        _ => false,
    };
    if is_good {
        return Ok(());
    }
    Err(invalid_request(
        "invalid_value",
        place,
        format!("Invalid value: '{}'. ({place})", piece["type"]),
    ))
}

/// Checks that the results of calls directly follow the calls.
fn check_call_pairs(messages: &[Value]) -> OpenAiCheckResult {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|one| *one == id) else {
                let message = "messages with role 'tool' must be a response to a preceding message \
                               with 'tool_calls'.";
                return Err(invalid_request("invalid_request", "messages", message));
            };
            open.remove(at);
            continue;
        }
        if !open.is_empty() {
            break;
        }
        open = slice_or_empty(&message["tool_calls"])
            .iter()
            .filter_map(|call| call["id"].as_str())
            .collect();
    }
    if open.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(invalid_request("invalid_request", "messages", message))
}

/// Formats an answer.
pub(super) fn format_answer(
    turn: &OpenAiTurn,
    body: &Map<String, Value>,
    cached: u64,
    next_call: impl Fn() -> usize,
) -> VendorAnswer {
    let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
    let mut calls = Vec::new();
    for said in &turn.said {
        match said {
            OpenAiAnswerPiece::Text(text) | OpenAiAnswerPiece::Phase(_, text) => {
                let before = message["content"].as_str().unwrap_or_default();
                message["content"] = json!(format!("{before}{text}"));
            }
            OpenAiAnswerPiece::Refusal(text) => message["refusal"] = json!(text),
            OpenAiAnswerPiece::Call(name, arguments) => calls.push(json!({
                "id": format!("call_{:04}", next_call()),
                "type": "function",
                "function": { "name": name, "arguments": arguments },
            })),
            // Chat completions discard the reasoning.
            OpenAiAnswerPiece::Reasoning(_) | OpenAiAnswerPiece::Item(_) => {}
        }
    }
    let finish = match turn.stop.as_deref() {
        Some("max_output_tokens") => "length",
        Some(word) => word,
        None if calls.is_empty() => "stop",
        None => "tool_calls",
    };
    let input = count_tokens(&body["messages"]) + body.get("tools").map_or(0, count_tokens);
    let output = count_tokens(&message) + calls.iter().map(count_tokens).sum::<u64>();
    let usage = json!({ "prompt_tokens": input, "completion_tokens": output,
        "total_tokens": input + output, "prompt_tokens_details": { "cached_tokens": cached },
        "completion_tokens_details": { "reasoning_tokens": 0 } });
    let facts = json!({ "id": "chatcmpl-1", "created": 1_767_225_600, "model": body["model"] });
    if body.get("stream") != Some(&json!(true)) {
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let mut answer = facts;
        answer["object"] = json!("chat.completion");
        answer["choices"] =
            json!([{ "index": 0, "message": message, "finish_reason": finish, "logprobs": null }]);
        answer["usage"] = usage;
        return whole(&answer);
    }
    let has_usage = body.get("stream_options").is_some_and(|it| it["include_usage"] == true);
    let usage = has_usage.then_some(usage);
    let events = stream_events(turn, &facts, &message, &calls, finish, usage);
    build_answer("text/event-stream; charset=utf-8", events)
}

fn stream_events(
    turn: &OpenAiTurn,
    facts: &Value,
    message: &Value,
    calls: &[Value],
    finish: &str,
    usage: Option<Value>,
) -> String {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = facts.clone();
        chunk["object"] = json!("chat.completion.chunk");
        chunk["choices"] = choices;
        chunk["usage"] = usage;
        chunk
    };
    let delta = |delta: Value| {
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }]), Value::Null)
    };
    let mut chunks = vec![delta(json!({ "role": "assistant", "content": "", "refusal": null }))];
    for key in ["content", "refusal"] {
        chunks.extend(
            split_in_half(&message[key]).into_iter().map(|half| delta(json!({ (key): half }))),
        );
    }
    for (index, call) in calls.iter().enumerate() {
        let mut begun = call.clone();
        begun["index"] = json!(index);
        begun["function"]["arguments"] = json!("");
        chunks.push(delta(json!({ "tool_calls": [begun] })));
        for half in split_in_half(&call["function"]["arguments"]) {
            let piece = json!({ "index": index, "function": { "arguments": half } });
            chunks.push(delta(json!({ "tool_calls": [piece] })));
        }
    }
    let end = json!([{ "index": 0, "delta": {}, "finish_reason": finish }]);
    chunks.push(chunk(end, Value::Null));
    chunks.extend(usage.map(|usage| chunk(json!([]), usage)));
    let mut is_cut = false;
    if let Some(most) = turn.events_max {
        is_cut = most < chunks.len();
        chunks.truncate(most);
    }
    if let Some((code, message, nesting)) = &turn.error {
        is_cut = true;
        let error = json!({ "code": code, "message": message, "param": null });
        chunks.push(match nesting {
            StreamErrorPlacement::Flat => error,
            StreamErrorPlacement::Nested | StreamErrorPlacement::Failed => {
                json!({ "error": error })
            }
        });
    }
    let mut written: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    if !is_cut {
        written.push_str("data: [DONE]\n\n");
    }
    written
}
