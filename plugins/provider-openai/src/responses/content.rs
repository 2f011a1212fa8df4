//! What items say and show: words, images, files. Pure.

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Data, Part};
use jaato_plugin_sdk_provider::chat::{FILE_NAME, data_url};
use jaato_plugin_sdk_provider::shown::{Blobs, PDF, in_words};

/// The content of an item of the user's or a tool's, as it grows: neighbouring words are one text.
#[derive(Debug, Default)]
pub(super) struct Content {
    pieces: Vec<Value>,
}

impl Content {
    /// Adds words, on a line of their own. Empty ones are none.
    pub(super) fn say(&mut self, words: &str) {
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

    /// Adds data: as what it is where its bytes are there, else in words.
    pub(super) fn add(&mut self, data: &Data, blobs: &Blobs) {
        match data_url(data, blobs) {
            Some(url) if data.mime_type == PDF => {
                let name = data.name.as_deref().unwrap_or(FILE_NAME);
                self.pieces
                    .push(json!({ "type": "input_file", "filename": name, "file_data": url }));
            }
            Some(url) => self.pieces.push(json!({ "type": "input_image", "image_url": url })),
            None => self.say(&in_words(data)),
        }
    }

    /// Adds what parts say and show, leaving out everything else.
    pub(super) fn add_parts(&mut self, parts: &[Part], blobs: &Blobs) {
        for part in parts {
            match part {
                Part::Text { text, .. } => self.say(text),
                Part::Data(data) => self.add(data, blobs),
                _ => {}
            }
        }
    }

    /// Writes it down; one text as a text.
    pub(super) fn written(mut self) -> Value {
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
