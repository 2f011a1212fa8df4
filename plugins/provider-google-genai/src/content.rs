//! Writes message parts in the vendor's format: text, images, files, tool calls and their results.
//! Pure.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, OpaqueData, Part, ToolCall, ToolResult,
};
use jaato_plugin_sdk_provider::shown::{BlobContents, PDF, describe_data, visible_data};

use crate::endpoint::GoogleEndpoint;
use crate::facts::{GoogleMediaSupport, GoogleModelFacts};
use crate::names;

/// The provider name in `google/MODEL`.
pub const PROVIDER: &str = "google";

/// Image media types that Gemini models accept. GIF is not supported.
pub const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];

/// Media types that a tool result may contain.
const IN_RESULTS: [&str; 4] = ["image/png", "image/jpeg", "image/webp", PDF];

/// The largest image or file. Base64 makes it a third longer, and all servers accept requests of 20
/// MB.
pub const BLOB_BYTES_MAX: usize = 14 * 1024 * 1024;

/// Replaces arguments that are not a JSON object, because the vendor refuses them.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// The settings for writing parts.
pub(crate) struct GooglePartWriter<'a> {
    pub(crate) model: &'a str,
    pub(crate) facts: GoogleModelFacts,
    pub(crate) has_ids: bool,
    pub(crate) blobs: &'a BlobContents,
}

impl<'a> GooglePartWriter<'a> {
    /// Vertex AI refuses call ids, and older models do not use them. Both match results to calls by
    /// order.
    pub(crate) fn new(
        request: &'a CompletionRequest,
        endpoint: &GoogleEndpoint,
        facts: GoogleModelFacts,
        blobs: &'a BlobContents,
    ) -> Self {
        Self {
            model: &request.model,
            facts,
            has_ids: facts.gives_ids && !endpoint.is_vertex(),
            blobs,
        }
    }

    /// Writes data as an image or file if its bytes are available, otherwise as text.
    pub(crate) fn write_data(&self, data: &DataPart) -> Option<Value> {
        self.write_shown_data(data).or_else(|| write_text(&describe_data(data)))
    }

    fn write_shown_data(&self, data: &DataPart) -> Option<Value> {
        let bytes = BASE64_STANDARD.encode(self.accepted_bytes(data)?);
        Some(json!({ "inlineData": { "mimeType": data.mime_type, "data": bytes } }))
    }

    /// Returns the bytes of data if the model accepts its media type.
    fn accepted_bytes(&self, data: &DataPart) -> Option<&[u8]> {
        let bytes = self.blobs.get(data.blob_id()?)?;
        self.accepts_media_type(data.mime_type.as_str()).then_some(bytes)
    }

    fn accepts_media_type(&self, mime_type: &str) -> bool {
        match self.facts.sees {
            GoogleMediaSupport::Nothing => false,
            GoogleMediaSupport::Images => IMAGES.contains(&mime_type),
            GoogleMediaSupport::ImagesAndFiles => IMAGES.contains(&mime_type) || mime_type == PDF,
        }
    }

    /// Writes a tool result. It contains the tool's attachments that the model accepts there.
    pub(crate) fn write_result(&self, result: &ToolResult) -> Value {
        // The vendor gives these two keys a meaning. A result that already has exactly this key
        // stays as it is.
        let key = if result.is_error { "error" } else { "output" };
        let is_so = result.content.len() == 1 && result.content.contains_key(key);
        let content = if is_so { json!(result.content) } else { json!({ (key): result.content }) };
        let name = names::format_name(result.name.as_str());
        let mut response = json!({ "name": name, "response": content });
        if self.has_ids {
            response["id"] = json!(result.call_id);
        }
        let inside = result.attachments.iter().filter(|data| self.is_part_of_result(data));
        let parts: Vec<Value> = inside.filter_map(|data| self.write_shown_data(data)).collect();
        if !parts.is_empty() {
            response["parts"] = json!(parts);
        }
        json!({ "functionResponse": response })
    }

    /// Writes the attachments that cannot be part of the tool result.
    pub(crate) fn attachments_after(&self, result: &ToolResult) -> Vec<Value> {
        let outside = result.attachments.iter().filter(|data| !self.is_part_of_result(data));
        let mut parts: Vec<Value> = outside.filter_map(|data| self.write_data(data)).collect();
        if !parts.is_empty() {
            let whose = format!("[attached to the result of {}, {}]", result.name, result.call_id);
            parts.insert(0, json!({ "text": whose }));
        }
        parts
    }

    fn is_part_of_result(&self, data: &DataPart) -> bool {
        let is_taken = IN_RESULTS.contains(&data.mime_type.as_str());
        self.facts.sees_in_results && is_taken && self.accepted_bytes(data).is_some()
    }

    /// Writes a part of a model's message. Returns `None` for a part that the vendor cannot read.
    pub(crate) fn write_model_part(&self, part: &Part) -> Option<Value> {
        let written = match part {
            Part::Text { text, signature, .. } if !text.is_empty() || signature.is_some() => {
                json!({ "text": text })
            }
            // The vendor wants signed thoughts back. The others are summaries for the user.
            Part::Thought { text, signature: Some(_), .. } => {
                json!({ "text": text, "thought": true })
            }
            Part::ToolCall(call) => self.write_call(call),
            Part::Opaque(opaque) => return self.vendor_part(opaque).cloned(),
            Part::Data(data) => return write_text(&describe_data(data)),
            _ => return None,
        };
        Some(with_signature(written, part.signature()))
    }

    fn write_call(&self, call: &ToolCall) -> Value {
        let mut arguments = call.arguments.clone();
        if !arguments.is_object() {
            arguments = Value::Object(Map::from_iter([(INVALID_ARGUMENTS.to_owned(), arguments)]));
        }
        let name = names::format_name(call.name.as_str());
        let mut written = json!({ "name": name, "args": arguments });
        if self.has_ids {
            written["id"] = json!(call.id);
        }
        json!({ "functionCall": written })
    }

    /// Returns the vendor's part if it belongs to this model. The host sends a part to no other
    /// model, but a caller without the host may.
    fn vendor_part<'b>(&self, opaque: &'b OpaqueData) -> Option<&'b Value> {
        let is_own = |has: &str, own: &str| has.is_empty() || has == own;
        let is_part = opaque.item.as_object().is_some_and(|item| !item.is_empty());
        (is_own(&opaque.provider, PROVIDER) && is_own(&opaque.model, self.model) && is_part)
            .then_some(&opaque.item)
    }
}

/// Returns the blobs whose bytes a request contains, with the size limit of each.
pub fn wanted_blobs(request: &CompletionRequest) -> BTreeMap<&str, usize> {
    let is_seen = |data: &&DataPart| {
        let name = data.mime_type.as_str();
        IMAGES.contains(&name) || name == PDF
    };
    let shown = visible_data(request).filter(is_seen);
    shown.filter_map(|data| Some((data.blob_id()?, BLOB_BYTES_MAX))).collect()
}

/// Writes a text part. Returns `None` for an empty text, which the vendor refuses.
pub(crate) fn write_text(words: &str) -> Option<Value> {
    (!words.is_empty()).then(|| json!({ "text": words }))
}

/// Puts a signature on a part.
fn with_signature(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}
