//! Writes a request as JSON for generateContent.
//!
//! Pure and stable: constant content comes first, and the history last and in order. Successive
//! requests in a session therefore share a prefix, and the vendor's implicit cache hits.

use jaato_plugin_sdk::Result;
use jaato_plugin_sdk::serde::Serialize;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::CompletionRequest;
use jaato_plugin_sdk::types::http::HTTP_BODY_BYTES_MAX;
use jaato_plugin_sdk_provider::exchange;
use jaato_plugin_sdk_provider::shown::BlobContents;

use crate::content::GooglePartWriter;
use crate::endpoint::GoogleEndpoint;
pub use crate::history::UNSIGNED;
pub use crate::request_style::{DefaultThinkingField, GoogleRequestStyle, GoogleSchemaForm};
use crate::settings::{GenerationConfig, enforces_answer_schema, tool_config};
use crate::{facts, history, tools};

/// Introduces a schema that the vendor does not enforce.
const IN_WORDS: &str =
    "Answer with one JSON value that matches this JSON Schema, and nothing else:";

/// The body. The field order is the order in the JSON.
#[derive(Serialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "camelCase")]
struct GoogleRequestBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    generation_config: GenerationConfig<'a>,
    contents: Vec<Value>,
}

/// Writes the body of a request. `blobs` contains the bytes of the data parts that the model sees.
/// The request describes the other data parts in text.
///
/// # Errors
/// `configuration` for an option that the model does not support, `context_overflow` if the body is
/// larger than the host sends, `unknown_operation` if a message has an unknown role.
pub fn write_request_body(
    request: &CompletionRequest,
    endpoint: &GoogleEndpoint,
    habits: GoogleRequestStyle,
    blobs: &BlobContents,
) -> Result<Vec<u8>> {
    let facts = facts::facts_of_model(&request.model);
    let generation_config = GenerationConfig::new(request, &facts, habits)?;
    let said = system_text(request, !enforces_answer_schema(request, &facts));
    let (system, first) =
        if facts.takes_system { (said.as_str(), "") } else { ("", said.as_str()) };
    let writing = GooglePartWriter::new(request, endpoint, facts, blobs);
    let body = GoogleRequestBody {
        system_instruction: (!system.is_empty()).then(|| json!({ "parts": [{ "text": system }] })),
        tools: tools::write_tools(request, habits.schemas),
        tool_config: tool_config(request),
        generation_config,
        contents: history::group_into_contents(request, first, &writing)?,
    };
    exchange::serialize_body(&body, &request.options, HTTP_BODY_BYTES_MAX)
}

/// Returns the system text, with the answer's schema if the vendor does not enforce it.
fn system_text(request: &CompletionRequest, tells_schema: bool) -> String {
    match request.options.output_schema.as_ref().filter(|_| tells_schema) {
        None => request.system.clone(),
        Some(schema) if request.system.is_empty() => format!("{IN_WORDS}\n{schema}"),
        Some(schema) => format!("{}\n\n{IN_WORDS}\n{schema}", request.system),
    }
}
