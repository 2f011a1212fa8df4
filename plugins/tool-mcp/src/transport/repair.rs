//! Parses malformed messages as the message that the server meant.
//!
//! A response that cannot be parsed, or that does not name its request, ends the request that it
//! must belong to immediately. No call waits for its time limit because of it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::BuildHasher;

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::text::truncate_chars;
use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::RxJsonRpcMessage;

use crate::log::sanitize_line;

/// The maximum number of messages in a batch (revision 2025-03-26).
const BATCH_MAX: usize = 1000;
/// The maximum number of characters shown of an invalid text.
const SHOWN_CHARS_MAX: usize = 120;
/// The code for errors without a code.
const NO_CODE: i32 = -32000;

/// A message from a server.
pub type IncomingMessage = RxJsonRpcMessage<RoleClient>;

/// The content of a text from a server.
#[derive(Debug, Default)]
pub struct ParsedServerText {
    /// The messages.
    pub messages: Vec<IncomingMessage>,
    /// The texts that were skipped, one per line.
    pub noise: Vec<String>,
}

/// Parses a text. `open` are the requests that wait for a response.
pub fn parse_server_text<S: BuildHasher>(
    text: &[u8],
    open: &HashSet<RequestId, S>,
) -> ParsedServerText {
    let mut heard = ParsedServerText::default();
    if let Some(message) = parse_well_formed(text, open) {
        heard.messages.push(message);
        return heard;
    }
    let text = decode_text(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let parsed = serde_json::from_str(&text)
        .or_else(|error| serde_json::from_str(&repair_json(&text)).map_err(|_| error));
    match parsed {
        Ok(Value::Array(values)) if values.len() > BATCH_MAX => {
            heard.noise.push(format!("a batch of {} messages was dropped", values.len()));
        }
        Ok(Value::Array(values)) => {
            values.into_iter().for_each(|value| heard.add_value(value, open))
        }
        Ok(value) => heard.add_value(value, open),
        Err(_) => heard.handle_invalid_json(&text, "sent a line that is not a message", open),
    }
    heard
}

/// Parses a well-formed text, which is the common case.
fn parse_well_formed<S: BuildHasher>(
    text: &[u8],
    open: &HashSet<RequestId, S>,
) -> Option<IncomingMessage> {
    let message: IncomingMessage = serde_json::from_slice(text).ok()?;
    let is_awaited = match &message {
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => true,
        JsonRpcMessage::Response(response) => open.contains(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref().is_some_and(|id| open.contains(id)),
    };
    is_awaited.then_some(message)
}

/// Parses the two ends of a text that was too long to keep.
pub fn parse_truncated_ends<S: BuildHasher>(
    ends: &[u8],
    open: &HashSet<RequestId, S>,
) -> ParsedServerText {
    let mut heard = ParsedServerText::default();
    heard.handle_invalid_json(&decode_text(ends), "sent a message of more than 16 MiB", open);
    heard
}

/// Parses the response to a request if the text can only be that response.
pub fn parse_response_to(text: &[u8], id: &RequestId) -> Option<IncomingMessage> {
    let open = HashSet::from([id.clone()]);
    let is_answer = |message: &IncomingMessage| {
        matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
    };
    if let Some(answer) = parse_server_text(text, &open).messages.into_iter().find(is_answer) {
        return Some(answer);
    }
    // The response names another request.
    let mut value: Value = serde_json::from_slice(text).ok()?;
    *value.get_mut("id")? = json!(id);
    let mut heard = ParsedServerText::default();
    heard.add_value(value, &open);
    heard.messages.into_iter().find(is_answer)
}

impl ParsedServerText {
    fn add_value<S: BuildHasher>(&mut self, value: Value, open: &HashSet<RequestId, S>) {
        let text = display_beginning(&value.to_string());
        let Value::Object(mut message) = value else {
            self.noise.push(format!("not an MCP message: {text}"));
            return;
        };
        message.insert("jsonrpc".to_owned(), "2.0".into());
        let has = |key: &str| message.get(key).is_some_and(|value| !value.is_null());
        let (is_asked, is_answer) = (has("method"), has("error") || message.contains_key("result"));
        if is_asked {
            match serde_json::from_value(Value::Object(message)) {
                Ok(message) => self.messages.push(message),
                Err(_) => self.noise.push(format!("not an MCP message: {text}")),
            }
            return;
        }
        if !is_answer {
            self.noise.push(format!("not an MCP message: {text}"));
            return;
        }
        let Some(id) = find_answered_request(message.get("id").unwrap_or(&Value::Null), open)
        else {
            self.noise.push(format!("an answer to an unknown request: {text}"));
            return;
        };
        let error = message.shift_remove("error").filter(|error| !error.is_null());
        let answer = match error {
            Some(error) => JsonRpcMessage::error(parse_error_data(error), Some(id)),
            None => {
                message.insert("id".to_owned(), json!(id));
                match serde_json::from_value(Value::Object(message)) {
                    Ok(answer @ JsonRpcMessage::Response(_)) => answer,
                    _ => {
                        let text = format!("the server's answer is not an MCP message: {text}");
                        JsonRpcMessage::error(ErrorData::internal_error(text, None), Some(id))
                    }
                }
            }
        };
        self.messages.push(answer);
    }

    /// Handles a text that is not JSON: a truncated response, or other output of the server.
    fn handle_invalid_json<S: BuildHasher>(
        &mut self,
        text: &str,
        what: &str,
        open: &HashSet<RequestId, S>,
    ) {
        let shown = display_beginning(text);
        match find_truncated_request(text, open) {
            Some(id) => {
                let error = ErrorData::internal_error(format!("the server {what}: {shown}"), None);
                self.messages.push(JsonRpcMessage::error(error, Some(id)));
            }
            None => self.noise.push(format!("it {what}: {shown}")),
        }
    }
}

/// Finds the request that a response belongs to. Without a usable ID, it is the only open request.
fn find_answered_request<S: BuildHasher>(
    id: &Value,
    open: &HashSet<RequestId, S>,
) -> Option<RequestId> {
    let text = match id {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return single_open_request(open),
    };
    let number = || text.parse::<f64>().ok().filter(|it| it.fract() == 0.0).map(|it| it as i64);
    let same = serde_json::from_value::<RequestId>(id.clone()).ok();
    let same = same.filter(|id| open.contains(id));
    same.or_else(|| number().map(RequestId::Number).filter(|id| open.contains(id)))
}

fn single_open_request<S: BuildHasher>(open: &HashSet<RequestId, S>) -> Option<RequestId> {
    open.iter().next().filter(|_| open.len() == 1).cloned()
}

/// Finds the request that a truncated text was to answer.
fn find_truncated_request<S: BuildHasher>(
    text: &str,
    open: &HashSet<RequestId, S>,
) -> Option<RequestId> {
    let has = |word: &str| text.contains(word);
    if !has("\"jsonrpc\"") || !(has("\"result\"") || has("\"error\"")) {
        return None;
    }
    let mut named = text.split("\"id\"").skip(1).filter_map(|rest| {
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        let end = rest.find([',', '}', ' ', '\n']).unwrap_or(rest.len());
        let id: Value = serde_json::from_str(&rest[..end]).ok()?;
        find_answered_request(&id, open)
    });
    match named.next() {
        Some(id) => named.all(|other| other == id).then_some(id),
        None if has("\"id\"") => None,
        None => single_open_request(open),
    }
}

/// Parses an error of any shape.
fn parse_error_data(error: Value) -> ErrorData {
    if let Ok(error) = serde_json::from_value(error.clone()) {
        return error;
    }
    let code = match &error["code"] {
        Value::String(text) => text.parse().ok(),
        code => code.as_f64().map(|code| code as i64),
    };
    let message = match &error {
        Value::String(text) => text.clone(),
        error => error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned),
    };
    let data = error.get("data").filter(|data| !data.is_null()).cloned();
    let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(NO_CODE);
    ErrorData::new(rmcp::model::ErrorCode(code), message, data)
}

/// Decodes bytes as UTF-8, and invalid bytes as Latin-1. A NUL, which JSON cannot contain, means
/// UTF-16, of which only ASCII is kept.
fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Cow::Borrowed(text),
        _ => {
            let marks: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
            let mark = marks.into_iter().find(|mark| bytes.starts_with(mark)).unwrap_or_default();
            let bytes: Vec<u8> =
                bytes[mark.len()..].iter().copied().filter(|byte| *byte != 0).collect();
            let (mut text, rest) = decode_chunk(&bytes);
            text.extend(rest.iter().map(|&byte| char::from(byte)));
            Cow::Owned(text)
        }
    }
}

/// Decodes a chunk as UTF-8, and invalid bytes as Latin-1. Returns an incomplete final character
/// separately.
pub fn decode_chunk(bytes: &[u8]) -> (String, Vec<u8>) {
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let odd = chunk.invalid();
        let has_begun = std::str::from_utf8(odd).is_err_and(|error| error.error_len().is_none());
        if has_begun && chunks.peek().is_none() {
            return (text, odd.to_vec());
        }
        text.extend(odd.iter().map(|&byte| char::from(byte)));
    }
    (text, Vec::new())
}

/// Repairs JSON from lenient writers: `NaN` and `Infinity` become null, and half of a surrogate
/// pair becomes U+FFFD.
fn repair_json(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    let mut in_text = false;
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let is_word = |word: &&&str| !in_text && rest.starts_with(**word);
        let taken = match rest.as_bytes()[0] {
            b'"' => {
                in_text = !in_text;
                1
            }
            b'\\' if in_text => {
                match (surrogate_half(rest), surrogate_half(rest.get(6..).unwrap_or_default())) {
                    (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
                    (Some(0xD800..0xE000), _) => {
                        repaired.push_str("\\ufffd");
                        rest = &rest[6..];
                        continue;
                    }
                    _ => rest.chars().take(2).map(char::len_utf8).sum(),
                }
            }
            _ => match ["NaN", "Infinity", "-Infinity"].iter().find(is_word) {
                Some(word) => {
                    repaired.push_str("null");
                    rest = &rest[word.len()..];
                    continue;
                }
                None => 1,
            },
        };
        repaired.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    repaired + rest
}

/// Reads an escape at the start of a text.
fn surrogate_half(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// Returns the start of a text for display.
pub fn display_beginning(text: &str) -> String {
    sanitize_line(&truncate_chars(text, SHOWN_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a text while requests with these IDs wait. Returns IDs with results or errors.
    fn parse_messages(text: &[u8], open: &[i64]) -> (Vec<String>, usize) {
        let open: HashSet<RequestId> = open.iter().map(|id| RequestId::Number(*id)).collect();
        let ParsedServerText { messages, noise } = parse_server_text(text, &open);
        let told = messages.into_iter().map(|message| match message {
            JsonRpcMessage::Error(error) => {
                format!("{:?} {} {}", error.id.unwrap(), error.error.code.0, error.error.message)
            }
            other => serde_json::to_string(&other).unwrap(),
        });
        (told.collect(), noise.len())
    }

    #[track_caller]
    fn check_parsed(text: &str, open: &[i64], expected: &str) {
        assert_eq!(parse_messages(text.as_bytes(), open), (vec![expected.to_owned()], 0), "{text}");
    }

    #[test]
    fn response_without_a_usable_id_is_matched_to_the_only_open_request() {
        let error = "\"error\":{\"code\":-32600,\"message\":\"no\"}";
        for id in ["\"id\":null,", "", "\"id\":{},", "\"id\":\"7\",", "\"id\":7.0,", "\"id\":7,"] {
            let text = format!("{{\"jsonrpc\":\"2.0\",{id}{error}}}");
            check_parsed(&text, &[7], "Number(7) -32600 no");
        }
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":null,{error}}}");
        assert_eq!(parse_messages(text.as_bytes(), &[7, 8]), (Vec::new(), 1));
        assert_eq!(
            parse_messages(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}", &[7]),
            (Vec::new(), 1)
        );
    }

    #[test]
    fn malformed_responses_are_parsed() {
        let plain = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":null}}";
        for text in [
            "{\"id\":7,\"result\":{\"a\":null}}",
            "{\"jsonrpc\":\"1.0\",\"id\":7,\"error\":null,\"result\":{\"a\":NaN}}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":-Infinity}}",
        ] {
            check_parsed(text, &[7], plain);
        }
        check_parsed("{\"id\":7,\"error\":\"no\"}", &[7], "Number(7) -32000 no");
        check_parsed(
            "{\"id\":7,\"error\":{\"code\":\"-5\",\"message\":\"no\"}}",
            &[7],
            "Number(7) -5 no",
        );
        let text = "{\"id\":7,\"result\":{\"a\":\"x\\ud83d NaN \\ud83d\\ude00\\\\ud83d\"}}";
        let read =
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"x\u{fffd} NaN 😀\\\\ud83d\"}}";
        check_parsed(text, &[7], read);
        let latin = b"{\"id\":7,\"result\":{\"a\":\"gr\xfc\xdfe \xc3\xbc\"}}";
        let read = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"grüße ü\"}}";
        assert_eq!(parse_messages(latin, &[7]).0, [read]);
        let wide: Vec<u8> = "\u{feff}{\"id\":7,\"result\":{}}\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let read = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
        assert_eq!(parse_messages(&wide, &[7]).0, [read]);
    }

    #[test]
    fn chunks_are_decoded_wherever_they_are_split() {
        let text = b"gr\xfc\xc3\x9f\xf0\x9f\x98\x80\xe4";
        for at in 0..=text.len() {
            let (mut read, mut rest) = decode_chunk(&text[..at]);
            rest.extend(&text[at..]);
            let (more, rest) = decode_chunk(&rest);
            read.push_str(&more);
            assert_eq!((read.as_str(), rest.as_slice()), ("grüß😀", &b"\xe4"[..]), "{at}");
        }
    }

    #[test]
    fn truncated_response_fails_its_request() {
        let text = "{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"content\":[";
        let told = format!("Number(8) -32603 the server sent a line that is not a message: {text}");
        check_parsed(text, &[7, 8], &told);
        for noise in ["Server v1.2", "{\"jsonrpc\": \"2.0\", \"id\": 8", "{}", "[]", "null", "12"] {
            assert!(parse_messages(noise.as_bytes(), &[8]).0.is_empty(), "{noise}");
        }
    }
}
