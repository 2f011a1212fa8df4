//! Writes a request down as Ollama's `/api/chat` wants it. Pure.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json;
use jaato_plugin_sdk::types::{Data, DataContent};

/// Writes the body of a request. What changes comes last, so that the server's cache of earlier
/// requests hits.
///
/// # Errors
/// `unknown_operation` for a message of a role from the future.
pub fn body(request: &Request, context_tokens: u32) -> Result<Vec<u8>> {
    let mut options = json!({ "num_ctx": context_tokens });
    if let Some(most) = request.options.max_output_tokens {
        options["num_predict"] = json!(most);
    }
    if let Some(temperature) = request.options.temperature {
        options["temperature"] = json!(temperature);
    }
    let body = json!({
        "model": request.model,
        "stream": true,
        "options": options,
        "tools": request.tools.iter().map(tool).collect::<Vec<_>>(),
        "messages": messages(request)?,
    });
    Ok(body.to_string().into_bytes())
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

fn messages(request: &Request) -> Result<Vec<Value>> {
    let mut written = Vec::new();
    if !request.system.is_empty() {
        written.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message.role {
            Role::User => written.push(json!({ "role": "user", "content": text(message) })),
            Role::Model => written.push(answer(message)),
            Role::Tool => written.extend(message.tool_results().map(|result| {
                let content = Value::Object(result.content.clone()).to_string();
                json!({ "role": "tool", "tool_name": result.name, "content": content })
            })),
            Role::Unknown => return Err(Role::unknown_to_provider()),
        }
    }
    Ok(written)
}

fn answer(message: &Message) -> Value {
    let mut answer = json!({ "role": "assistant", "content": text(message) });
    let calls: Vec<Value> = message.tool_calls().map(call).collect();
    if !calls.is_empty() {
        answer["tool_calls"] = calls.into();
    }
    answer
}

/// The server takes an object alone for arguments; what a model gave may be anything.
fn call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        object @ Value::Object(_) => object.clone(),
        other => json!({ "invalid_arguments": other }),
    };
    json!({ "function": { "name": call.name, "arguments": arguments } })
}

/// All that is text, and what the host tells the model, as text. Thoughts stay where they were
/// thought.
fn text(message: &Message) -> String {
    let text = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Data(Data { content: DataContent::Json { json, .. }, .. }) => {
            serde_json::to_string(json).ok()
        }
        _ => None,
    };
    message.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
