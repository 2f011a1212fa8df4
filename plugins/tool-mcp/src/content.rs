//! Converts a server's response to a tool result: text, and attachments for everything else.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::media_type::{detect_media_type, is_media_type};
use jaato_plugin_sdk::types::service::ATTACHMENTS_MAX;
use jaato_plugin_sdk::types::text::truncate_bytes;
use jaato_plugin_sdk::{Error, Reporter, Result};

use crate::server_description::{plain_text, take_member};

/// The maximum number of blocks read from one response.
const BLOCKS_MAX: usize = 1000;
/// The maximum number of bytes of an error shown to the model.
const ERROR_BYTES_MAX: usize = 8 * 1024;
/// A text that is longer than the structured data by this factor holds more information.
const SAYS_MORE: usize = 2;
/// The media type of unknown data.
const ANYTHING: &str = "application/octet-stream";
/// Decodes base64 as servers write it, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The parts of a response.
#[derive(Debug, Default, PartialEq)]
pub struct McpContent {
    /// The blocks for the model: texts, and objects for everything else.
    pub blocks: Vec<Value>,
    /// The attachments: media type and bytes.
    pub attached: Vec<(String, Vec<u8>)>,
    /// The structured data, if the server sends any.
    pub structured: Option<Value>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl McpContent {
    /// Takes apart a response of `tools/call`. May take long.
    pub fn from_call_response(mut answer: Value) -> Self {
        let mut content = Self {
            is_error: answer["isError"].as_bool().unwrap_or_default(),
            structured: Some(take_member(&mut answer, "structuredContent"))
                .filter(|it| !it.is_null()),
            ..Self::default()
        };
        if let Value::Array(blocks) = take_member(&mut answer, "content") {
            content.add_blocks(blocks);
        }
        content.drop_repeated_data();
        content
    }

    /// Adds content blocks.
    pub fn add_blocks(&mut self, blocks: Vec<Value>) {
        let count = blocks.len();
        for block in blocks.into_iter().take(BLOCKS_MAX) {
            let block = self.convert_block(block);
            self.blocks.push(block);
        }
        if count > BLOCKS_MAX {
            self.blocks.push(format!("({} more blocks left out)", count - BLOCKS_MAX).into());
        }
    }

    /// Adds a resource's content: its text or its bytes.
    pub fn add_resource(&mut self, mut resource: Value) {
        let block = match take_member(&mut resource, "text") {
            Value::String(text) => {
                json!({ "type": "resource", "uri": resource["uri"], "text": plain_text(&text) })
            }
            _ => {
                let (mime, blob) =
                    (take_member(&mut resource, "mimeType"), take_member(&mut resource, "blob"));
                let uri = take_member(&mut resource, "uri");
                self.attach_bytes("resource", &mime, blob, Some(uri))
            }
        };
        self.blocks.push(block);
    }

    fn convert_block(&mut self, mut block: Value) -> Value {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "text" => match take_member(&mut block, "text") {
                Value::String(text) => Value::String(plain_text(&text)),
                _ => Value::String(String::new()),
            },
            "image" | "audio" => {
                let (mime, data) =
                    (take_member(&mut block, "mimeType"), take_member(&mut block, "data"));
                self.attach_bytes(&kind, &mime, data, None)
            }
            "resource" => {
                self.add_resource(take_member(&mut block, "resource"));
                self.blocks.pop().unwrap_or_default()
            }
            "resource_link" => {
                let keys = ["uri", "name", "title", "description", "mimeType", "size"];
                let known = keys.into_iter().filter_map(|key| {
                    let value = Some(take_member(&mut block, key)).filter(|it| !it.is_null())?;
                    Some((key.to_owned(), value))
                });
                let mut link: Map<String, Value> = known.collect();
                link.insert("type".to_owned(), "resource_link".into());
                Value::Object(link)
            }
            other => {
                json!({ "type": truncate_bytes(&plain_text(other), 80), "left_out": "its kind is unknown" })
            }
        }
    }

    /// Attaches bytes to the response. The media type detected from the bytes takes precedence over
    /// the server's.
    fn attach_bytes(&mut self, kind: &str, mime: &Value, data: Value, uri: Option<Value>) -> Value {
        let (told, text) = split_data_url(data.as_str().unwrap_or_default());
        let bytes = decode_base64(text);
        let shown = bytes.as_deref().and_then(detect_media_type);
        let said = mime.as_str().or(told).filter(|mime| is_media_type(mime));
        let mime = shown.or(said).unwrap_or(ANYTHING).to_owned();
        let mut block = json!({ "type": kind, "mimeType": mime });
        if let Some(uri) = uri {
            block["uri"] = uri;
        }
        match bytes {
            Some(bytes) if self.attached.len() < ATTACHMENTS_MAX => {
                block["bytes"] = bytes.len().into();
                block["attachment"] = (self.attached.len() + 1).into();
                self.attached.push((mime, bytes));
            }
            Some(_) => block["left_out"] = "a result has at most 20 attachments".into(),
            None => block["left_out"] = "its data is not base64".into(),
        }
        block
    }

    /// Drops structured data that the text repeats, because servers often send both.
    fn drop_repeated_data(&mut self) {
        let Some(structured) = self.structured.take() else { return };
        let texts: Vec<&str> = self.blocks.iter().filter_map(Value::as_str).collect();
        if is_empty_value(&structured) && !texts.is_empty() {
            return;
        }
        // Libraries wrap a value that is not an object: `{"result": "…"}`, `{"content": "…"}`.
        let inner = match structured.as_object().map(|map| (map.len(), map.values().next())) {
            Some((1, Some(inner))) => inner,
            _ => &structured,
        };
        if is_repeated_in(inner, &texts) {
            return;
        }
        let length = structured.to_string().len();
        self.blocks.retain(|block| {
            block.as_str().is_some_and(|text| {
                text.len() > SAYS_MORE * length && !has_text(&structured, text.trim())
            }) || !block.is_string()
        });
        self.structured = Some(structured);
    }

    /// Converts the parts to a tool result and adds the attachments to the call.
    ///
    /// # Errors
    /// The tool's response, if the tool failed.
    pub async fn into_tool_result(self, cx: &Reporter, tool: &str) -> Result<Value> {
        if self.is_error {
            return Err(self.to_error());
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

    /// Converts a response with an error to an error.
    fn to_error(&self) -> Error {
        let texts = self.blocks.iter().map(|block| match block {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let text = texts.chain(self.structured.iter().map(Value::to_string)).collect::<Vec<_>>();
        let text = text.join("\n");
        Error::failed(match text.trim().is_empty() {
            true => "the tool failed without giving a reason".to_owned(),
            false => truncate_bytes(text.trim(), ERROR_BYTES_MAX),
        })
    }
}

/// Splits a data URL into its media type and data.
fn split_data_url(text: &str) -> (Option<&str>, &str) {
    match text.trim_start().strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((head, data)) => (head.split(';').next(), data),
        None => (None, text),
    }
}

/// Decodes base64 with line breaks, with the URL alphabet, or without padding.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let plain = |byte: u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let text: Vec<u8> =
        text.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(plain).collect();
    BASE64.decode(text).ok()
}

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        other => other.is_null(),
    }
}

/// Returns true if the texts repeat a string, a plain value or a list of plain values.
fn is_repeated_in(value: &Value, texts: &[&str]) -> bool {
    let is_one = |value: &Value, text: &str| match value {
        Value::String(said) => plain_text(said).trim() == text.trim(),
        Value::Array(_) | Value::Object(_) => false,
        other => serde_json::from_str::<Value>(text).is_ok_and(|said| said == *other),
    };
    match value {
        Value::Array(list) => {
            !list.is_empty()
                && list.len() == texts.len()
                && list.iter().zip(texts).all(|(value, text)| is_one(value, text))
        }
        value => !texts.is_empty() && is_one(value, &texts.join("\n")),
    }
}

/// Returns true if a value contains what a text says.
fn has_text(value: &Value, text: &str) -> bool {
    let same = serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *value);
    same || match value {
        Value::String(said) => plain_text(said).trim() == text,
        Value::Array(list) => list.iter().any(|value| has_text(value, text)),
        Value::Object(map) => map.values().any(|value| has_text(value, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_blocks_stay_text_and_binary_blocks_are_attached() {
        let content = McpContent::from_call_response(json!({ "content": [
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
                json!({ "type": "audio", "mimeType": "audio/wav", "left_out": "its data is not base64" }),
                json!({ "type": "resource", "uri": "m://a", "text": "far" }),
                json!({ "type": "resource", "mimeType": "application/octet-stream", "uri": "m://b", "bytes": 1, "attachment": 2 }),
                json!({ "uri": "m://c", "name": "c", "type": "resource_link" }),
                json!({ "type": "hologram", "left_out": "its kind is unknown" }),
            ]
        );
        assert_eq!(content.attached.len(), 2);
    }

    #[track_caller]
    fn check_structured_data(texts: &[&str], structured: Value, blocks: &[&str], is_kept: bool) {
        let texts: Vec<Value> =
            texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let answer = json!({ "content": texts, "structuredContent": structured });
        let content = McpContent::from_call_response(answer);
        let expected = (blocks.iter().map(|it| json!(it)).collect::<Vec<_>>(), is_kept);
        assert_eq!((content.blocks, content.structured.is_some()), expected, "{structured}");
    }

    #[test]
    fn structured_content_equal_to_the_text_is_returned_once() {
        check_structured_data(&["{\"b\": 1}"], json!({ "b": 1 }), &[], true);
        check_structured_data(&["{\n \"b\": [1]\n}"], json!({ "result": { "b": [1] } }), &[], true);
        check_structured_data(
            &["far\u{1b}\n"],
            json!({ "result": "far\u{1b}\n" }),
            &["far\n"],
            false,
        );
        check_structured_data(&["far"], json!({ "content": "far" }), &["far"], false);
        check_structured_data(&["a", "b"], json!({ "result": ["a", "b"] }), &["a", "b"], false);
        check_structured_data(&["a", "b"], json!({ "result": "a\nb" }), &["a", "b"], false);
        check_structured_data(&["5"], json!({ "result": 5 }), &["5"], false);
        check_structured_data(
            &["{\"a\":1}", "{\"a\":2}"],
            json!({ "result": [{ "a": 1 }, { "a": 2 }] }),
            &[],
            true,
        );
        check_structured_data(&["far"], json!({ "message": "far", "ok": true }), &[], true);
        check_structured_data(&["22 degrees"], json!({ "temperature": 22 }), &[], true);
        check_structured_data(&[], json!({ "a": 1 }), &[], true);
        for nothing in [json!({}), json!([]), json!(null)] {
            check_structured_data(&["far"], nothing, &["far"], false);
        }
        // The text holds more information.
        let long = "far ".repeat(20);
        check_structured_data(&[&long], json!({ "ok": true }), &[&long], true);
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "AAEC" });
        let answer = json!({ "content": [image], "structuredContent": { "a": 1 } });
        let content = McpContent::from_call_response(answer);
        assert_eq!((content.blocks.len(), content.structured.is_some()), (1, true));
    }

    #[test]
    fn image_in_any_base64_variant_is_decoded_and_typed_by_its_bytes() {
        // Bytes that become `+`, `/` and padding in base64.
        let png = b"\x89PNG\r\n\x1a\n\xfb\xef\xbe\xff";
        let text = "iVBORw0KGgr7777/";
        let unpadded = "iVBORw0KGgr777__AA";
        let cases = [
            (text.to_owned(), json!("image/png"), "image/png"),
            (text.replace('/', "_"), json!("image/jpeg"), "image/png"),
            (format!("{}\r\n{}\n", &text[..8], &text[8..]), Value::Null, "image/png"),
            (format!("data:image/png;base64,{text}"), json!("png"), "image/png"),
            (unpadded.to_owned(), json!("image/jpg"), "image/png"),
            (format!("{unpadded}=="), json!("image/jpg"), "image/png"),
            ("data:audio/wav;base64,AAEC".to_owned(), Value::Null, "audio/wav"),
            ("AAEC".to_owned(), json!("no type"), "application/octet-stream"),
        ];
        for (data, said, mime) in cases {
            let image = json!({ "type": "image", "mimeType": said, "data": data });
            let content = McpContent::from_call_response(json!({ "content": [image] }));
            assert_eq!(content.blocks[0]["mimeType"], mime, "{data}");
            let (attached, bytes) = &content.attached[0];
            assert_eq!(attached, mime);
            assert!(bytes.starts_with(&png[..8]) || bytes == &[0, 1, 2], "{data}");
        }
    }

    #[test]
    fn failed_call_reports_the_reason_from_the_server() {
        let failed = |content: Value| {
            McpContent::from_call_response(json!({ "isError": true, "content": content }))
                .to_error()
                .message
        };
        assert_eq!(failed(json!([{ "type": "text", "text": "no such issue" }])), "no such issue");
        assert_eq!(failed(json!([])), "the tool failed without giving a reason");
    }

    #[test]
    fn malformed_answers_are_read_without_panic() {
        for answer in [
            json!({}),
            json!({ "content": 1 }),
            json!({ "content": [1, null, []] }),
            json!(1),
            json!({ "content": [{ "type": "resource", "resource": 1 }] }),
        ] {
            McpContent::from_call_response(answer);
        }
        let many = vec![json!({ "type": "text", "text": "x" }); BLOCKS_MAX + 5];
        let content = McpContent::from_call_response(json!({ "content": many }));
        assert_eq!(content.blocks[BLOCKS_MAX], "(5 more blocks left out)");
    }
}
