//! Writes a request as JSON for the Messages API.
//!
//! Pure and stable: the tools, system text and messages of successive requests in a session share a
//! prefix, so that the vendor's cache hits and its thoughts stay valid. Only the cache marks move,
//! and the vendor does not compare them.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::Value;
use jaato_plugin_sdk::types::CompletionRequest;
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::shown::BlobContents;

use crate::facts::AnthropicThinking;
use crate::settings::AnthropicBodySettings;
use crate::tools::{AnnouncedTools, CHANGES_BETA};
use crate::{cache, content, facts, history, tools};

/// The largest body that the vendor accepts.
pub const BODY_BYTES_MAX: usize = 32 * 1000 * 1000;

/// A request ready to send.
#[derive(Debug)]
pub struct AnthropicRequest {
    /// The body.
    pub body: Vec<u8>,
    /// The values of the header `anthropic-beta`.
    pub betas: Vec<&'static str>,
}

/// The body. The field order is the order in the JSON.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct AnthropicRequestBody<'a> {
    model: &'a str,
    #[serde(flatten)]
    settings: &'a AnthropicBodySettings<'a>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: Vec<Value>,
}

/// Writes a request. `blobs` contains the bytes of the data parts that the model sees. The request
/// describes the other data parts in text.
///
/// # Errors
/// `configuration` for an option that the model does not support, `context_overflow` if the body is
/// larger than the vendor accepts, `unknown_operation` if a message has an unknown role.
pub fn write_request(
    request: &CompletionRequest,
    blobs: &BlobContents,
) -> Result<AnthropicRequest> {
    let facts = facts::facts_of_model(&request.model);
    let mut told = AnnouncedTools::new(request, &facts);
    let mut turns = history::group_into_turns(request, &mut told, blobs)?;
    let must_not_think =
        facts.thinking == AnthropicThinking::Budget && history::has_begun_without_thought(&turns);
    let effort = request.options.effort.filter(|_| !must_not_think);
    let settings = AnthropicBodySettings::new(request, &facts, effort)?;
    let mut tools = tools::write_tools(request, &facts);
    cache::mark_last_block(&mut tools);
    let mut system: Vec<Value> = content::text_block(&request.system).into_iter().collect();
    cache::mark_last_block(&mut system);
    cache::mark_user_messages(&mut turns);
    let messages = history::write_messages(turns);
    let mut betas = settings.betas.clone();
    if messages.iter().any(|message| message["role"] == "system") {
        betas.push(CHANGES_BETA);
    }
    let stream = request.options.stream != Some(false);
    let body = AnthropicRequestBody {
        model: &request.model,
        settings: &settings,
        stream,
        tools,
        system,
        messages,
    };
    let body = exchange::serialize_body(&body, &request.options, BODY_BYTES_MAX as u64)?;
    Ok(AnthropicRequest { body, betas })
}
