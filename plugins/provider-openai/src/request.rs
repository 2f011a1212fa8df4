//! Writes a request down as the JSON of chat completions.
//!
//! Pure, and stable: what does not change from request to request comes first, the messages last
//! and in order, so that successive requests of a session share their beginning byte by byte and
//! the caches of servers hit.

use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    Data, DataContent, FRAME_BYTES_MAX, Message, Part, Request, Role, ToolCall, ToolResult,
    ToolSpec,
};
use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::reply::REASONING;

/// Stands for arguments that were no JSON object. Servers read the arguments of earlier calls again
/// and refuse the whole conversation, for ever after, if they cannot.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Largest body: a frame's bytes, less what stands beside it.
const BODY_BYTES_MAX: usize = FRAME_BYTES_MAX - 64 * 1024;

/// What a server calls the most tokens that it may produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's own: `max_completion_tokens`; its reasoning models refuse the older name.
    Vendor,
    /// Everybody else's: `max_tokens`.
    Common,
}

/// Where what is said behind tool results goes: outcomes of tasks, and what the person says
/// meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcomes {
    /// Into a message of the user's, which models read as such.
    AsUser,
    /// Behind the last result, for servers that refuse a user's message there.
    InLastResult,
}

/// Writes the body of a request.
///
/// # Errors
/// `context_overflow` when it is larger than what may cross to the host, which is more than any
/// model reads; `unknown_operation` for a message of a role from the future.
pub fn body(request: &Request, dialect: Dialect, outcomes: Outcomes) -> Result<Vec<u8>> {
    let most = request.options.max_output_tokens;
    let (vendors, common) = match dialect {
        Dialect::Vendor => (most, None),
        Dialect::Common => (None, most),
    };
    let body = Body {
        model: &request.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        temperature: request.options.temperature,
        max_tokens: common,
        max_completion_tokens: vendors,
        tools: request.tools.iter().map(tool).collect(),
        messages: messages(request, outcomes)?,
    };
    let bytes = serde_json::to_vec(&body).map_err(|error| {
        Error::new(ErrorKind::HostBug, format!("the request cannot be written: {error}"))
    })?;
    if bytes.len() > BODY_BYTES_MAX {
        let text =
            format!("the request has {} bytes: at most {BODY_BYTES_MAX} can be sent", bytes.len());
        return Err(Error::new(ErrorKind::ContextOverflow, text));
    }
    Ok(bytes)
}

/// The body; the order of the fields is what is sent.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    messages: Vec<Value>,
}

#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct StreamOptions {
    include_usage: bool,
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        },
    })
}

/// Tells whether a request says anything behind tool results.
pub fn tells_outcomes(request: &Request) -> bool {
    request.messages.iter().any(|message| message.role == Role::Tool && is_said(&message.parts))
}

fn messages(request: &Request, outcomes: Outcomes) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    if !request.system.is_empty() {
        written.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message.role {
            Role::User => written.push(user(&message.parts)),
            Role::Model => written.push(assistant(message)),
            Role::Tool => results(message, outcomes, &mut written),
            Role::Unknown => return Err(Role::unknown_to_provider()),
        }
    }
    Ok(written)
}

fn user(parts: &[Part]) -> Value {
    json!({ "role": "user", "content": texts(parts) })
}

/// A model's message. The protocol cannot say in which order text and calls came.
fn assistant(message: &Message) -> Value {
    let calls: Vec<Value> = message.tool_calls().map(call).collect();
    let text = texts(&message.parts);
    // Null rather than an empty text, which some servers refuse beside calls.
    let has_none = text.is_empty() && !calls.is_empty();
    let content = if has_none { Value::Null } else { Value::String(text) };
    let mut written = json!({ "role": "assistant", "content": content });
    let reasoning = reasoning(&message.parts);
    if !reasoning.is_empty() {
        written[REASONING] = reasoning.into();
    }
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    written
}

/// Joins the thoughts that came under the name by which their server wants them back.
fn reasoning(parts: &[Part]) -> String {
    let thoughts = parts.iter().filter_map(|part| match part {
        Part::Thought { text, signature, .. } if signature.as_deref() == Some(REASONING) => {
            Some(text.as_str())
        }
        Part::Thought { .. }
        | Part::Text { .. }
        | Part::Data(_)
        | Part::ToolCall(_)
        | Part::ToolResult(_)
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => None,
    });
    thoughts.collect()
}

fn call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.to_string(),
        other => json!({ INVALID_ARGUMENTS: other }).to_string(),
    };
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    })
}

/// A message of results: one for each, then what else it says.
fn results(message: &Message, outcomes: Outcomes, written: &mut Vec<Value>) {
    let count = message.tool_results().count();
    for (number, ToolResult { call_id, content, .. }) in message.tool_results().enumerate() {
        let mut content = Value::Object(content.clone()).to_string();
        if outcomes == Outcomes::InLastResult && number + 1 == count {
            let said = texts(&message.parts);
            if !said.is_empty() {
                content = format!("{content}\n\n{said}");
            }
        }
        written.push(json!({ "role": "tool", "tool_call_id": call_id, "content": content }));
    }
    if is_said(&message.parts) && (outcomes == Outcomes::AsUser || count == 0) {
        written.push(user(&message.parts));
    }
}

fn is_said(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Text { .. } | Part::Data(_)))
}

/// Joins what parts say in words; a part of its own begins a line of its own.
fn texts(parts: &[Part]) -> String {
    let said = parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Data(data) => Some(data_text(data)),
        // Reasoning is no answer: it goes back in a field of its own, or not at all.
        // So does a part that only a newer provider understands.
        Part::Thought { .. }
        | Part::ToolCall(_)
        | Part::ToolResult(_)
        | Part::Opaque(_)
        | Part::ToolsChanged(_)
        | Part::Unknown(_) => None,
    });
    said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What is said of a data part. The one place that knows what can be sent of it.
fn data_text(data: &Data) -> String {
    match &data.content {
        DataContent::Json { json, .. } => json.to_string(),
        DataContent::Blob { .. } | DataContent::Unknown(_) => {
            format!("[{}: cannot be sent to this model]", data.mime_type)
        }
    }
}
