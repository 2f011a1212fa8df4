//! The messages: their blocks, and the allowed positions of these.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::models::{FakeAnthropicModel, ThinkingSupport};
use super::{AnthropicCheckResult, check_fields, invalid_request, is_plain_name, tools};

/// The maximum number of cache marks.
const MARKS_MAX: usize = 4;

/// The largest image, in base64 characters.
const IMAGE_CHARS_MAX: usize = 5 * 1024 * 1024;

/// Adjacent messages of one role, which the vendor joins.
#[derive(Debug)]
pub(super) struct JoinedMessage {
    pub(super) role: String,
    /// The blocks, each with the path that errors name.
    pub(super) blocks: Vec<(String, Value)>,
}

/// Checks the messages and returns them joined.
pub(super) fn check_messages(
    body: &Map<String, Value>,
    model: &FakeAnthropicModel,
    betas: &[String],
    tools: &BTreeSet<String>,
) -> AnthropicCheckResult<Vec<JoinedMessage>> {
    let joined = join_messages(body)?;
    if joined.first().is_none_or(|first| first.role != "user") {
        return Err(invalid_request("messages: first message must use the \"user\" role"));
    }
    let mut known = tools.clone();
    for (number, message) in joined.iter().enumerate() {
        for (place, block) in &message.blocks {
            check_block(place, &message.role, block)?;
        }
        match message.role.as_str() {
            "assistant" => check_model_message(message)?,
            "system" => check_system_message(&joined, number, model, betas, &mut known)?,
            _ => {}
        }
    }
    check_pairs(&joined)?;
    check_last_message(&joined, model)?;
    if model.thinks == ThinkingSupport::ByBudget {
        check_thinking_step(&joined, body)?;
    }
    Ok(joined)
}

fn join_messages(body: &Map<String, Value>) -> AnthropicCheckResult<Vec<JoinedMessage>> {
    let list = body.get("messages").and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| invalid_request("messages: at least one message is required"))?;
    let mut joined: Vec<JoinedMessage> = Vec::new();
    for (index, message) in list.iter().enumerate() {
        let place = format!("messages.{index}");
        let fields =
            message.as_object().ok_or_else(|| invalid_request(format!("{place}: no object")))?;
        check_fields(&place, fields, &["role", "content"])?;
        let role = message["role"].as_str().unwrap_or_default();
        if !["user", "assistant", "system"].contains(&role) {
            return Err(invalid_request(format!(
                "{place}.role: Input should be 'user' or 'assistant'"
            )));
        }
        let blocks = match &message["content"] {
            Value::String(text) => vec![json!({ "type": "text", "text": text })],
            Value::Array(blocks) => blocks.clone(),
            _ => {
                return Err(invalid_request(format!(
                    "{place}.content: Input should be a valid list"
                )));
            }
        };
        if blocks.is_empty() {
            let text = "all messages must have non-empty content";
            return Err(invalid_request(format!("{place}: {text}")));
        }
        let placed = |(at, block): (usize, Value)| (format!("{place}.content.{at}"), block);
        let blocks = blocks.into_iter().enumerate().map(placed);
        match joined.last_mut().filter(|last| last.role == role) {
            Some(last) => last.blocks.extend(blocks),
            None => joined.push(JoinedMessage { role: role.to_owned(), blocks: blocks.collect() }),
        }
    }
    Ok(joined)
}

fn check_block(place: &str, role: &str, block: &Value) -> AnthropicCheckResult {
    let fields = block.as_object().ok_or_else(|| invalid_request(format!("{place}: no object")))?;
    let kind = block["type"].as_str().unwrap_or_default();
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    let known: &[&str] = match (role, kind) {
        (_, "text") => {
            if text("text").trim().is_empty() {
                return Err(invalid_request("messages: text content blocks must be non-empty"));
            }
            &["type", "text", "cache_control", "citations"]
        }
        ("user", "image" | "document") => {
            check_source(place, kind, &block["source"])?;
            &["type", "source", "title", "context", "citations", "cache_control"]
        }
        ("user", "tool_result") => {
            check_tool_result(place, block)?;
            &["type", "tool_use_id", "content", "is_error", "cache_control"]
        }
        ("assistant", "thinking") => &["type", "thinking", "signature"],
        ("assistant", "redacted_thinking") => &["type", "data"],
        ("assistant", "tool_use") => {
            if !is_plain_name(text("id")) {
                let text = "String should match pattern '^[a-zA-Z0-9_-]+$'";
                return Err(invalid_request(format!("{place}.tool_use.id: {text}")));
            }
            if !is_plain_name(text("name")) || !block["input"].is_object() {
                return Err(invalid_request(format!(
                    "{place}.tool_use: name or input is not valid"
                )));
            }
            &["type", "id", "name", "input", "cache_control"]
        }
        // Blocks of server tools go back unchanged.
        ("assistant", kind) if kind.starts_with("server_") || kind.ends_with("_tool_result") => {
            return Ok(());
        }
        ("system", "tool_addition" | "tool_removal") => &["type", "tool", "cache_control"],
        (_, kind) => return Err(invalid_request(format!("{place}: Input tag '{kind}' found"))),
    };
    check_fields(&format!("{place}.{kind}"), fields, known)
}

fn check_source(place: &str, kind: &str, source: &Value) -> AnthropicCheckResult {
    let media_types: &[&str] = match kind {
        "image" => &["image/jpeg", "image/png", "image/gif", "image/webp"],
        _ => &["application/pdf"],
    };
    let data = source["data"].as_str().unwrap_or_default();
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if source["type"] != "base64" || !media_types.iter().any(|it| source["media_type"] == *it) {
        return Err(invalid_request(format!(
            "{place}.{kind}.source.base64.media_type: Input should be one"
        )));
    }
    if data.is_empty() || data.len() % 4 != 0 || !data.bytes().all(is_base64) {
        return Err(invalid_request(format!(
            "{place}.{kind}.source.base64.data: not valid base64"
        )));
    }
    if kind == "image" && data.len() > IMAGE_CHARS_MAX {
        let text = format!("image exceeds 5 MB maximum: {} bytes", data.len());
        return Err(invalid_request(format!("{place}.{kind}.source.base64: {text}")));
    }
    Ok(())
}

fn check_tool_result(place: &str, block: &Value) -> AnthropicCheckResult {
    let Some(blocks) = block["content"].as_array() else { return Ok(()) };
    for (at, inner) in blocks.iter().enumerate() {
        let place = format!("{place}.tool_result.content.{at}");
        if inner["type"] == "tool_result" {
            return Err(invalid_request(format!("{place}: Input tag 'tool_result' found")));
        }
        check_block(&place, "user", inner)?;
    }
    Ok(())
}

/// Checks that a thought is followed by another block.
fn check_model_message(message: &JoinedMessage) -> AnthropicCheckResult {
    let last = message.blocks.last().map(|(_, block)| &block["type"]);
    match last.and_then(Value::as_str) {
        Some(kind @ ("thinking" | "redacted_thinking")) => Err(invalid_request(format!(
            "messages: The final block in an assistant message cannot be `{kind}`."
        ))),
        _ => Ok(()),
    }
}

fn check_system_message(
    joined: &[JoinedMessage],
    number: usize,
    model: &FakeAnthropicModel,
    betas: &[String],
    known: &mut BTreeSet<String>,
) -> AnthropicCheckResult {
    if !model.takes_system_messages {
        return Err(invalid_request("role 'system' is not supported on this model"));
    }
    let role = |at: usize| joined.get(at).map(|message| message.role.as_str());
    if role(number - 1) != Some("user") || !matches!(role(number + 1), None | Some("assistant")) {
        return Err(invalid_request("messages: a system message must follow a user message"));
    }
    for (place, block) in &joined[number].blocks {
        let tool = &block["tool"];
        match (block["type"].as_str(), tool["type"].as_str()) {
            (Some("text"), _) => continue,
            (Some("tool_addition"), Some("tool_definition")) => {
                known.insert(tools::check_tool_definition(place, &tool["definition"])?);
            }
            (Some(_), Some("tool_reference")) => {
                let name = tool["name"].as_str().unwrap_or_default();
                if !known.contains(name) {
                    return Err(invalid_request(format!("{place}: tool `{name}` is not declared")));
                }
            }
            _ => return Err(invalid_request(format!("{place}.tool: Input tag"))),
        }
        if !betas.iter().any(|beta| beta == "inline-tools-2026-09-15") {
            return Err(invalid_request(format!("{place}: Extra inputs are not permitted")));
        }
    }
    Ok(())
}

/// Checks that each call has its result in the next message, and that results come first there.
fn check_pairs(joined: &[JoinedMessage]) -> AnthropicCheckResult {
    let mut seen = BTreeSet::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    for message in joined.iter().filter(|message| message.role != "system") {
        let ids = |kind: &str, key: &str| -> Vec<String> {
            let of_kind = message.blocks.iter().filter(|(_, block)| block["type"] == kind);
            of_kind.filter_map(|(_, block)| block[key].as_str().map(str::to_owned)).collect()
        };
        let mut is_first = true;
        for (place, block) in &message.blocks {
            let Some(id) = block["tool_use_id"].as_str().filter(|_| block["type"] == "tool_result")
            else {
                is_first = false;
                continue;
            };
            if !is_first {
                open.insert(id.to_owned());
                break;
            }
            if !open.remove(id) {
                return Err(invalid_request(format!(
                    "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the \
                     previous message."
                )));
            }
        }
        if !open.is_empty() {
            let open: Vec<String> = open.into_iter().collect();
            return Err(invalid_request(format!(
                "messages: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: {}. Each `tool_use` block must have a corresponding `tool_result` block \
                 in the next message.",
                open.join(", ")
            )));
        }
        for id in ids("tool_use", "id") {
            if !seen.insert(id.clone()) {
                return Err(invalid_request("messages: `tool_use` ids must be unique"));
            }
            open.insert(id);
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(invalid_request("messages: `tool_use` ids were found without `tool_result` blocks"))
}

/// Checks the end. Only some models continue an answer at the end, unless a server tool paused it.
fn check_last_message(
    joined: &[JoinedMessage],
    model: &FakeAnthropicModel,
) -> AnthropicCheckResult {
    let Some(last) = joined.last().filter(|last| last.role == "assistant") else { return Ok(()) };
    let Some((_, block)) = last.blocks.last() else { return Ok(()) };
    let is_paused = block["type"].as_str().is_some_and(|it| it.ends_with("_tool_result"));
    if !model.takes_prefill && !is_paused {
        return Err(invalid_request("This model does not support assistant message prefill."));
    }
    if block["text"].as_str().is_some_and(|text| text.ends_with(char::is_whitespace)) {
        return Err(invalid_request(
            "messages: final assistant content cannot end with trailing whitespace",
        ));
    }
    Ok(())
}

/// Checks a step that continues with results. It must start with a thought if thinking is on, and
/// must not have one if thinking is off.
fn check_thinking_step(
    joined: &[JoinedMessage],
    body: &Map<String, Value>,
) -> AnthropicCheckResult {
    let thinks = body.get("thinking").is_some_and(|thinking| thinking["type"] == "enabled");
    let has_result = |message: &JoinedMessage| {
        message.blocks.iter().any(|(_, block)| block["type"] == "tool_result")
    };
    let in_step = joined.iter().rev().take_while(|it| it.role == "assistant" || has_result(it));
    let answers: Vec<&JoinedMessage> =
        in_step.filter(|message| message.role == "assistant").collect();
    if joined.last().is_some_and(|last| last.role == "assistant") {
        return Ok(());
    }
    let is_thought =
        |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    if let Some((place, block)) = answers.last().and_then(|first| first.blocks.first()) {
        if thinks && !is_thought(block) {
            let found = block["type"].as_str().unwrap_or_default();
            return Err(invalid_request(format!(
                "{place}.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. \
                 When `thinking` is enabled, a final `assistant` message must start with a \
                 thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks)."
            )));
        }
    }
    let mut blocks = answers.iter().flat_map(|message| &message.blocks);
    match blocks.find(|(_, block)| is_thought(block)) {
        Some((place, _)) if !thinks => Err(invalid_request(format!(
            "{place}: When thinking is disabled, an `assistant` message in the final position \
             cannot contain `thinking`."
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Checks the cache marks in the whole body.
pub(super) fn check_cache_marks(body: &Map<String, Value>) -> AnthropicCheckResult {
    let mut found = 0;
    for part in ["tools", "system", "messages"] {
        count_cache_marks(body.get(part).unwrap_or(&Value::Null), &mut found)?;
    }
    found += usize::from(body.contains_key("cache_control"));
    if found > MARKS_MAX {
        return Err(invalid_request(format!(
            "A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {found}."
        )));
    }
    Ok(())
}

fn count_cache_marks(value: &Value, found: &mut usize) -> AnthropicCheckResult {
    match value {
        Value::Array(list) => list.iter().try_for_each(|one| count_cache_marks(one, found)),
        Value::Object(fields) => {
            if let Some(mark) = fields.get("cache_control") {
                if mark["type"] != "ephemeral" {
                    return Err(invalid_request("cache_control.type: Input should be 'ephemeral'"));
                }
                *found += 1;
            }
            // Inputs of calls and schemas are not searched.
            let inner =
                fields.iter().filter(|(key, _)| !["input", "input_schema"].contains(&key.as_str()));
            inner.map(|(_, one)| one).try_for_each(|one| count_cache_marks(one, found))
        }
        _ => Ok(()),
    }
}
