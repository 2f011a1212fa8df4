//! Writes message parts as blocks: text, images, files, tool calls and their results. Pure.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::{
    CompletionRequest, DataPart, MediaLimit, OpaqueData, Part, ToolCall, ToolResult,
};
use jaato_plugin_sdk_provider::shown::{BlobContents, IMAGES, PDF, describe_data, visible_data};

use crate::ids;

/// The provider name in `anthropic/MODEL`.
pub const PROVIDER: &str = "anthropic";

/// The largest image. The vendor accepts 5 MiB of base64, which is a third longer than the bytes.
pub const IMAGE_BYTES_MAX: usize = 5 * 1024 * 1024 / 4 * 3;

/// The largest file that fits into a request.
pub const FILE_BYTES_MAX: usize = 22 * 1024 * 1024;

/// The maximum number of pixels that a side of an image may have. [`SIDE_MAX_OF_MANY`] applies if a
/// request has more than [`IMAGES_MANY`] images
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>).
const SIDE_MAX: u32 = 8_000;
const IMAGES_MANY: u32 = 20;
const SIDE_MAX_OF_MANY: u32 = 2_000;

/// Replaces arguments that are not a JSON object, because the vendor would refuse them in every
/// later request.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// Returns the blobs whose bytes a request contains, with the size limit of each.
pub fn wanted_blobs(request: &CompletionRequest) -> BTreeMap<&str, usize> {
    let sized = |data| Some((DataPart::blob_id(data)?, media_bytes_max(data)?));
    visible_data(request).filter_map(sized).collect()
}

/// Returns the size limits of images and files.
pub(crate) fn media_limits() -> Vec<MediaLimit> {
    let images = MediaLimit {
        mime_type: "image/*".to_owned(),
        bytes_max: IMAGE_BYTES_MAX as u64,
        side_max: SIDE_MAX,
        many: IMAGES_MANY,
        side_max_of_many: SIDE_MAX_OF_MANY,
    };
    let files = MediaLimit {
        mime_type: PDF.to_owned(),
        bytes_max: FILE_BYTES_MAX as u64,
        ..MediaLimit::default()
    };
    vec![images, files]
}

fn media_bytes_max(data: &DataPart) -> Option<usize> {
    match data.mime_type.as_str() {
        PDF => Some(FILE_BYTES_MAX),
        name => IMAGES.contains(&name).then_some(IMAGE_BYTES_MAX),
    }
}

/// Writes a text block. Returns `None` for whitespace, which the vendor refuses.
pub(crate) fn text_block(words: &str) -> Option<Value> {
    (!words.trim().is_empty()).then(|| json!({ "type": "text", "text": words }))
}

/// Writes data as an image or file if its bytes are available, otherwise as a text.
pub(crate) fn data_block(data: &DataPart, blobs: &BlobContents) -> Option<Value> {
    media_block(data, blobs).or_else(|| text_block(&describe_data(data)))
}

fn media_block(data: &DataPart, blobs: &BlobContents) -> Option<Value> {
    media_bytes_max(data)?;
    let bytes = BASE64_STANDARD.encode(blobs.get(data.blob_id()?)?);
    let source = json!({ "type": "base64", "media_type": data.mime_type, "data": bytes });
    if data.mime_type != PDF {
        return Some(json!({ "type": "image", "source": source }));
    }
    let mut block = json!({ "type": "document", "source": source });
    if let Some(name) = data.name.as_deref().filter(|name| !name.trim().is_empty()) {
        block["title"] = json!(name);
    }
    Some(block)
}

/// Writes a tool result, including the tool's attachments.
pub(crate) fn tool_result_block(result: &ToolResult, blobs: &BlobContents) -> Value {
    let words = Value::Object(result.content.clone()).to_string();
    let content = if result.attachments.is_empty() {
        Value::String(words)
    } else {
        let attached = result.attachments.iter().filter_map(|one| data_block(one, blobs));
        text_block(&words).into_iter().chain(attached).collect()
    };
    let id = ids::format_id(result.call_id.as_str());
    let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// Writes a part of a model's message. Returns `None` for a part that the vendor cannot read.
pub(crate) fn model_part_block(part: &Part, model: &str) -> Option<Value> {
    match part {
        Part::Text { text: words, .. } => text_block(words),
        // A thought without a signature comes from another provider, or from before a cut.
        Part::Thought { text, signature, .. } => {
            let signature = signature.as_deref()?;
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        Part::ToolCall(one) => Some(tool_call_block(one)),
        Part::Opaque(opaque) => vendor_block(opaque, model).cloned(),
        Part::Data(data) => text_block(&describe_data(data)),
        _ => None,
    }
}

fn tool_call_block(call: &ToolCall) -> Value {
    let mut input = call.arguments.clone();
    if !input.is_object() {
        input = Value::Object(Map::from_iter([(INVALID_ARGUMENTS.to_owned(), input)]));
    }
    let (id, name) = (ids::format_id(call.id.as_str()), ids::format_id(call.name.as_str()));
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

/// Returns the vendor's block if it belongs to this model. The host sends a block to no other
/// model, but a caller without the host may.
fn vendor_block<'a>(opaque: &'a OpaqueData, model: &str) -> Option<&'a Value> {
    let is_own = |has: &str, own: &str| has.is_empty() || has == own;
    let is_block = opaque.item["type"].is_string();
    (is_own(&opaque.provider, PROVIDER) && is_own(&opaque.model, model) && is_block)
        .then_some(&opaque.item)
}
