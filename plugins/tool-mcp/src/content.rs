//! What a server answers, as a tool's result: texts, and attachments for what is none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::service::ATTACHMENTS_MAX;
use jaato_plugin_sdk::{Error, Reporter, Result};

use crate::described::{cut, plain, take};

/// Blocks of one answer that are read.
const BLOCKS_MAX: usize = 1000;
/// Bytes of an error that a model reads.
const ERROR_BYTES_MAX: usize = 8 * 1024;

/// An answer, taken apart.
#[derive(Debug, Default, PartialEq)]
pub struct Content {
    /// What the model reads, block by block: texts, and objects for what is none.
    pub blocks: Vec<Value>,
    /// What is attached: media type and bytes.
    pub attached: Vec<(String, Vec<u8>)>,
    /// The answer as data, where the server gives it.
    pub structured: Option<Value>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl Content {
    /// Takes an answer of `tools/call` apart. May take long.
    pub fn of_call(mut answer: Value) -> Self {
        let mut content = Self {
            is_error: answer["isError"].as_bool().unwrap_or_default(),
            structured: answer.get_mut("structuredContent").map(Value::take),
            ..Self::default()
        };
        if let Value::Array(blocks) = take(&mut answer, "content") {
            content.take_all(blocks);
        }
        content.drop_doubles();
        content
    }

    /// Takes blocks of content.
    pub fn take_all(&mut self, blocks: Vec<Value>) {
        let count = blocks.len();
        for block in blocks.into_iter().take(BLOCKS_MAX) {
            let block = self.block(block);
            self.blocks.push(block);
        }
        if count > BLOCKS_MAX {
            self.blocks.push(format!("({} more blocks are left out)", count - BLOCKS_MAX).into());
        }
    }

    /// Takes what stands in a resource: its text, or its bytes.
    pub fn take_resource(&mut self, mut resource: Value) {
        let block = match take(&mut resource, "text") {
            Value::String(text) => {
                json!({ "type": "resource", "uri": resource["uri"], "text": plain(&text) })
            }
            _ => {
                let (mime, blob) = (take(&mut resource, "mimeType"), take(&mut resource, "blob"));
                let uri = take(&mut resource, "uri");
                self.attachment("resource", &mime, blob, Some(uri))
            }
        };
        self.blocks.push(block);
    }

    fn block(&mut self, mut block: Value) -> Value {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "text" => match take(&mut block, "text") {
                Value::String(text) => Value::String(plain(&text)),
                _ => Value::String(String::new()),
            },
            "image" | "audio" => {
                let (mime, data) = (take(&mut block, "mimeType"), take(&mut block, "data"));
                self.attachment(&kind, &mime, data, None)
            }
            "resource" => {
                self.take_resource(take(&mut block, "resource"));
                self.blocks.pop().unwrap_or_default()
            }
            "resource_link" => {
                let keys = ["uri", "name", "title", "description", "mimeType", "size"];
                let known = keys.into_iter().filter_map(|key| {
                    let value = Some(take(&mut block, key)).filter(|it| !it.is_null())?;
                    Some((key.to_owned(), value))
                });
                let mut link: Map<String, Value> = known.collect();
                link.insert("type".to_owned(), "resource_link".into());
                Value::Object(link)
            }
            other => {
                json!({ "type": cut(&plain(other), 80), "left_out": "it is of no known kind" })
            }
        }
    }

    /// Puts bytes beside the answer.
    fn attachment(&mut self, kind: &str, mime: &Value, data: Value, uri: Option<Value>) -> Value {
        let mime = mime.as_str().unwrap_or("application/octet-stream").to_owned();
        let mut block = json!({ "type": kind, "mimeType": mime });
        if let Some(uri) = uri {
            block["uri"] = uri;
        }
        let text = data.as_str().unwrap_or_default();
        match STANDARD.decode(text.trim()) {
            Ok(bytes) if self.attached.len() < ATTACHMENTS_MAX => {
                block["bytes"] = bytes.len().into();
                block["attachment"] = (self.attached.len() + 1).into();
                self.attached.push((mime, bytes));
            }
            Ok(_) => block["left_out"] = "a result has at most 20 attachments".into(),
            Err(_) => block["left_out"] = "its data is no base64".into(),
        }
        block
    }

    /// Servers give structured content as a text too: once is enough.
    fn drop_doubles(&mut self) {
        let Some(structured) = &self.structured else { return };
        let is_double = |block: &Value| {
            let text = block.as_str();
            text.and_then(|it| serde_json::from_str::<Value>(it).ok()).as_ref() == Some(structured)
        };
        self.blocks.retain(|block| !is_double(block));
    }

    /// Makes a tool's result of it, and attaches what there is to the call.
    ///
    /// # Errors
    /// What the tool answered, where it failed.
    pub async fn result(self, cx: &Reporter, tool: &str) -> Result<Value> {
        if self.is_error {
            return Err(self.error());
        }
        let Self { mut blocks, attached, structured, is_error } = self;
        for (number, (mime, bytes)) in attached.into_iter().enumerate() {
            if let Err(error) = cx.attach(&mime, bytes).await {
                let number = number + 1;
                let block = blocks.iter_mut().find(|it| it["attachment"] == number);
                if let Some(block) = block {
                    block["left_out"] = error.message.into();
                }
            }
        }
        let mut result = json!({ "tool": tool, "isError": is_error });
        if !blocks.is_empty() || structured.is_none() {
            result["content"] = Value::Array(blocks);
        }
        if let Some(structured) = structured {
            result["structured"] = structured;
        }
        Ok(json!({ "result": result }))
    }

    /// Makes an error of an answer that is one.
    fn error(&self) -> Error {
        let texts = self.blocks.iter().map(|block| match block {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let text = texts.chain(self.structured.iter().map(Value::to_string)).collect::<Vec<_>>();
        let text = text.join("\n");
        Error::failed(match text.trim().is_empty() {
            true => "the tool failed and does not say why".to_owned(),
            false => cut(text.trim(), ERROR_BYTES_MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_and_bytes_are_attached() {
        let content = Content::of_call(json!({ "content": [
            { "type": "text", "text": "moon\u{1b}[2J" },
            { "type": "image", "mimeType": "image/png", "data": "AAEC" },
            { "type": "audio", "mimeType": "audio/wav", "data": "!" },
            { "type": "resource", "resource": { "uri": "m://a", "text": "far" } },
            { "type": "resource", "resource": { "uri": "m://b", "blob": "AA==" } },
            { "type": "resource_link", "uri": "m://c", "name": "c", "icons": [] },
            { "type": "hologram" },
        ] }));
        assert_eq!(
            content.blocks,
            [
                json!("moon[2J"),
                json!({ "type": "image", "mimeType": "image/png", "bytes": 3, "attachment": 1 }),
                json!({ "type": "audio", "mimeType": "audio/wav", "left_out": "its data is no base64" }),
                json!({ "type": "resource", "uri": "m://a", "text": "far" }),
                json!({ "type": "resource", "mimeType": "application/octet-stream", "uri": "m://b", "bytes": 1, "attachment": 2 }),
                json!({ "uri": "m://c", "name": "c", "type": "resource_link" }),
                json!({ "type": "hologram", "left_out": "it is of no known kind" }),
            ]
        );
        assert_eq!(content.attached.len(), 2);
    }

    #[test]
    fn structured_content_is_told_once() {
        let content = Content::of_call(json!({
            "content": [{ "type": "text", "text": "{\"b\": 1}" }, { "type": "text", "text": "so" }],
            "structuredContent": { "b": 1 },
        }));
        assert_eq!(
            (content.blocks, content.structured),
            (vec![json!("so")], Some(json!({ "b": 1 })))
        );
    }

    #[test]
    fn a_failure_says_why() {
        let failed = |content: Value| {
            Content::of_call(json!({ "isError": true, "content": content })).error().message
        };
        assert_eq!(failed(json!([{ "type": "text", "text": "no such issue" }])), "no such issue");
        assert_eq!(failed(json!([])), "the tool failed and does not say why");
    }

    #[test]
    fn an_answer_of_any_shape_is_read() {
        for answer in [
            json!({}),
            json!({ "content": 1 }),
            json!({ "content": [1, null, []] }),
            json!(1),
            json!({ "content": [{ "type": "resource", "resource": 1 }] }),
        ] {
            Content::of_call(answer);
        }
        let many = vec![json!({ "type": "text", "text": "x" }); BLOCKS_MAX + 5];
        let content = Content::of_call(json!({ "content": many }));
        assert_eq!(content.blocks[BLOCKS_MAX], "(5 more blocks are left out)");
    }
}
