//! Content in the form that several programs share: a text, or blocks with a `type`.

use serde_json::Value;

use super::json_line::{JsonObject, object_field, text_field};
use super::notes::{ImportNotes, ImportRepair};

/// Returns the text of a result's content: a text, or blocks.
pub fn content_text(content: Option<&Value>, notes: &mut ImportNotes) -> String {
    if let Some(Value::String(text)) = content {
        return text.clone();
    }
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.filter_map(Value::as_object).map(|block| match text_field(block, "type") {
        "image" | "document" => attachment_text(block, notes),
        "text" => text_field(block, "text").to_owned(),
        _ => Value::Object(block.clone()).to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Describes an image or a document that is not imported.
pub fn attachment_text(block: &JsonObject, notes: &mut ImportNotes) -> String {
    notes.count_repair(ImportRepair::Attachment);
    let source = object_field(block, "source").unwrap_or(block);
    let names = ["media_type", "mimeType", "mime_type", "type"];
    let media_type = names.iter().map(|name| text_field(source, name)).find(|it| !it.is_empty());
    format!("[an attachment of type {} was not imported]", media_type.unwrap_or("unknown"))
}
