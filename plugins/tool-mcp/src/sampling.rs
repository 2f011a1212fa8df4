//! Handles a server's request to the model. It runs as the tool `mcp__SERVER__sampling`, so that
//! the user's rules apply as to any other tool.
//!
//! The request is separate from the conversation, so the model sees none of its messages.

use jaato_plugin_sdk::model::ModelComplete;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::{Condition, Offer};

use crate::config::entry::ServerEntry;

/// The maximum number of messages in one request.
const MESSAGES_MAX: usize = 100;
/// The maximum number of text bytes in one request.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// The maximum number of tokens in an answer, regardless of the server's limit.
const TOKENS_MAX: u32 = 8192;

/// Describes the tool. Only servers request it, and models do not see it.
pub fn sampling_tool_spec(name: &str, server: &ServerEntry) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!(
            "The MCP server `{}` asks the model, at the user's cost.",
            server.name
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "messages": { "type": "array" },
                "systemPrompt": { "type": "string" },
                "maxTokens": { "type": "integer" },
            },
            "required": ["messages"],
        }),
        category: crate::names::CATEGORY.to_owned(),
        foreign: true,
        origin: server.digest.clone(),
        available_if: Some(Offer::new(Condition::Unknown, "only the server calls it")),
        ..ToolSpec::default()
    }
}

/// Sends the request to the model. Takes the parameters of `sampling/createMessage` and returns a
/// `CreateMessageResult`.
///
/// # Errors
/// If the model is not asked, or returns an error.
pub async fn sample_model(host: &Reporter, params: &Value) -> Result<Value> {
    let request = build_model_request(params)?;
    let answer = host.model(&request).await?;
    let stop = match answer.completion.finish_reason {
        FinishReason::MaxTokens => "maxTokens",
        _ => "endTurn",
    };
    Ok(json!({
        "role": "assistant",
        "content": { "type": "text", "text": answer.text() },
        "model": answer.model,
        "stopReason": stop,
    }))
}

fn build_model_request(params: &Value) -> Result<ModelComplete> {
    let refused = |why: &str| Error::new(ErrorKind::InvalidArguments, why);
    if params["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        return Err(refused("a model that a server asks cannot use tools"));
    }
    let empty = Vec::new();
    let messages = params["messages"].as_array().unwrap_or(&empty);
    if messages.is_empty() || messages.len() > MESSAGES_MAX {
        return Err(refused("a request must have 1 to 100 messages"));
    }
    let mut request = ModelComplete {
        system: params["systemPrompt"].as_str().unwrap_or_default().to_owned(),
        ..ModelComplete::default()
    };
    let mut bytes = request.system.len();
    for message in messages {
        let text = content_text(&message["content"])
            .ok_or_else(|| refused("only text messages are supported"))?;
        bytes += text.len();
        request.messages.push(match message["role"].as_str() {
            Some("assistant") => Message::model(vec![Part::text(text)]),
            _ => Message::user(text),
        });
    }
    if bytes > TEXT_BYTES_MAX {
        return Err(refused("a request can have at most 512 KiB"));
    }
    let tokens = params["maxTokens"].as_u64().and_then(|it| u32::try_from(it).ok());
    request.options.max_output_tokens = Some(tokens.unwrap_or(TOKENS_MAX).clamp(1, TOKENS_MAX));
    Ok(request)
}

/// Returns the text of a message's content, which has one or several blocks.
fn content_text(content: &Value) -> Option<String> {
    let text = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].as_str().map(str::to_owned),
        _ => None,
    };
    match content {
        Value::Array(blocks) => {
            blocks.iter().map(text).collect::<Option<Vec<_>>>().map(|it| it.join("\n"))
        }
        block => text(block),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_messages_become_a_request_with_a_token_limit() {
        let request = build_model_request(&json!({
            "messages": [
                { "role": "user", "content": { "type": "text", "text": "a" } },
                { "role": "assistant", "content": [{ "type": "text", "text": "b" }, { "type": "text", "text": "c" }] },
                { "role": "user", "content": { "type": "text", "text": "d" } },
            ],
            "systemPrompt": "Be brief.", "maxTokens": 1_000_000,
        }))
        .unwrap();
        let texts: Vec<String> = request.messages.iter().map(Message::text).collect();
        assert_eq!(
            (texts.as_slice(), request.system.as_str()),
            (&["a", "b\nc", "d"].map(str::to_owned)[..], "Be brief.")
        );
        assert_eq!(request.options.max_output_tokens, Some(TOKENS_MAX));
    }

    #[test]
    fn sampling_request_with_images_or_tools_is_refused() {
        let image = json!({ "role": "user", "content": { "type": "image", "data": "" } });
        let text = json!({ "role": "user", "content": { "type": "text", "text": "a" } });
        for params in [
            json!({}),
            json!({ "messages": [image] }),
            json!({ "messages": [text], "tools": [{}] }),
            json!({ "messages": vec![text.clone(); MESSAGES_MAX + 1] }),
        ] {
            assert!(build_model_request(&params).is_err(), "{params}");
        }
    }
}
