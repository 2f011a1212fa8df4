//! Writes the content of items: text, images and files. Pure.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{DataPart, Part};
use jaato_plugin_sdk_provider::chat::{FILE_NAME, data_url};
use jaato_plugin_sdk_provider::shown::{BlobContents, PDF, describe_data};

/// The content of a user's or a tool's item, in progress. Adjacent texts are merged.
#[derive(Debug, Default)]
pub(super) struct ResponsesContent {
    pieces: Vec<Value>,
}

impl ResponsesContent {
    /// Adds text on its own line. Empty text is ignored.
    pub(super) fn push_text(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        if let Some(Value::String(text)) = self.pieces.last_mut().and_then(|it| it.get_mut("text"))
        {
            text.push('\n');
            text.push_str(words);
            return;
        }
        self.pieces.push(json!({ "type": "input_text", "text": words }));
    }

    /// Adds data as an image or file if its bytes are available, otherwise as text.
    pub(super) fn add_data(&mut self, data: &DataPart, blobs: &BlobContents) {
        match data_url(data, blobs) {
            Some(url) if data.mime_type == PDF => {
                let name = data.name.as_deref().unwrap_or(FILE_NAME);
                self.pieces
                    .push(json!({ "type": "input_file", "filename": name, "file_data": url }));
            }
            Some(url) => self.pieces.push(json!({ "type": "input_image", "image_url": url })),
            None => self.push_text(&describe_data(data)),
        }
    }

    /// Adds the text and media of parts, and ignores everything else.
    pub(super) fn add_parts(&mut self, parts: &[Part], blobs: &BlobContents) {
        for part in parts {
            match part {
                Part::Text { text, .. } => self.push_text(text),
                Part::Data(data) => self.add_data(data, blobs),
                _ => {}
            }
        }
    }

    /// Returns the content as JSON. A single text is written as a string.
    pub(super) fn into_json(mut self) -> Value {
        let only_text = |pieces: &[Value]| pieces.len() == 1 && pieces[0]["text"].is_string();
        if only_text(&self.pieces) {
            return self.pieces[0]["text"].take();
        }
        if self.pieces.is_empty() {
            return Value::String(String::new());
        }
        Value::Array(self.pieces)
    }
}
