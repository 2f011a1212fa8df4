//! The content of a message: text, images, files. Pure.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{CompletionRequest, DataPart, Part};

use crate::shown::{BlobContents, IMAGES, PDF, describe_data, visible_data};

/// The name of a file without one, because the protocol requires a name.
pub const FILE_NAME: &str = "file.pdf";

/// The largest image or file, 36 MiB. Encoded as text it is a third longer, and OpenAI accepts
/// requests of up to 50 MB (<https://platform.openai.com/docs/guides/images-vision>).
pub const BLOB_BYTES_MAX: usize = 36 * 1024 * 1024;

/// Returns the blobs whose bytes go into a request, and the most bytes of each.
pub fn wanted_blobs(request: &CompletionRequest) -> BTreeMap<&str, usize> {
    let shown = visible_data(request).filter(|data| shown_kind(data).is_some());
    shown.filter_map(|data| Some((data.blob_id()?, BLOB_BYTES_MAX))).collect()
}

/// The kind of data that can be shown if its bytes are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownDataKind {
    Image,
    Pdf,
}

fn shown_kind(data: &DataPart) -> Option<ShownDataKind> {
    match data.mime_type.as_str() {
        PDF => Some(ShownDataKind::Pdf),
        name => IMAGES.contains(&name).then_some(ShownDataKind::Image),
    }
}

/// The growing content of one message. Adjacent texts are merged.
#[derive(Debug, Default)]
pub(crate) struct ChatContent {
    pieces: Vec<ChatContentPiece>,
}

#[derive(Debug)]
enum ChatContentPiece {
    Text(String),
    Shown(Value),
}

impl ChatContent {
    /// Adds a text on its own line. Ignores an empty text.
    pub(crate) fn push_text(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(ChatContentPiece::Text(text)) => {
                text.push('\n');
                text.push_str(words);
            }
            Some(ChatContentPiece::Shown(_)) | None => {
                self.pieces.push(ChatContentPiece::Text(words.to_owned()))
            }
        }
    }

    /// Adds data: as an image or file if its bytes are available, otherwise as a description.
    pub(crate) fn add_data(&mut self, data: &DataPart, blobs: &BlobContents) {
        match data_part(data, blobs) {
            Some(piece) => self.pieces.push(ChatContentPiece::Shown(piece)),
            None => self.push_text(&describe_data(data)),
        }
    }

    /// Adds the text and data of parts. Leaves out calls, results, reasoning, and unknown parts.
    pub(crate) fn add_parts(&mut self, parts: &[Part], blobs: &BlobContents) {
        for part in parts {
            match part {
                Part::Text { text, .. } => self.push_text(text),
                Part::Data(data) => self.add_data(data, blobs),
                _ => {}
            }
        }
    }

    /// Writes the content. A single text becomes a plain string, which all servers accept.
    pub(crate) fn into_json(self) -> Value {
        let mut pieces = self.pieces.into_iter();
        let written = |piece| match piece {
            ChatContentPiece::Text(text) => json!({ "type": "text", "text": text }),
            ChatContentPiece::Shown(shown) => shown,
        };
        match (pieces.next(), pieces.len()) {
            (None, _) => Value::String(String::new()),
            (Some(ChatContentPiece::Text(text)), 0) => Value::String(text),
            (Some(first), _) => [first].into_iter().chain(pieces).map(written).collect(),
        }
    }
}

/// Joins the text of parts, with each part on its own line. Data is replaced with a text
/// description.
pub(crate) fn join_text(parts: &[Part]) -> String {
    let mut content = ChatContent::default();
    content.add_parts(parts, &BlobContents::new());
    match content.into_json() {
        Value::String(text) => text,
        // Without blobs, the content is only text.
        _ => String::new(),
    }
}

/// Returns a data URL with the bytes of an image or a PDF, or `None` for other data and for missing
/// bytes.
pub fn data_url(data: &DataPart, blobs: &BlobContents) -> Option<String> {
    shown_kind(data)?;
    let bytes = blobs.get(data.blob_id()?)?;
    Some(format!("data:{};base64,{}", data.mime_type, BASE64_STANDARD.encode(bytes)))
}

fn data_part(data: &DataPart, blobs: &BlobContents) -> Option<Value> {
    let kind = shown_kind(data)?;
    let url = data_url(data, blobs)?;
    Some(match kind {
        ShownDataKind::Image => json!({ "type": "image_url", "image_url": { "url": url } }),
        ShownDataKind::Pdf => {
            let name = data.name.as_deref().unwrap_or(FILE_NAME);
            let file = json!({ "filename": name, "file_data": url });
            json!({ "type": "file", "file": file })
        }
    })
}
