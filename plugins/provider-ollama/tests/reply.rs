//! Tests that an answer reads the same wherever its bytes are split.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::types::{Completion, CompletionRequest, Delta, Message, Part};
use jaato_plugin_sdk::{ErrorKind, Result};
use jaato_plugin_sdk_provider::{CALLS_MAX, EVENTS_MAX, StreamLineSplitter};
use jaato_vendors::VendorRequest;
use jaato_vendors::ollama::{FakeOllama, OllamaAnswerPiece, OllamaTurn};
use provider_ollama::reply::OllamaReply;

const URL: &str = "http://h:1/api/chat";

fn completion_request() -> CompletionRequest {
    CompletionRequest::new("qwen3:8b", vec![Message::user("hi")])
}

fn ollama_reply() -> OllamaReply {
    OllamaReply::new(URL, &completion_request(), None, false)
}

/// Returns the bytes of an answer with all kinds of content.
fn answer_body() -> Vec<u8> {
    let said = [
        OllamaAnswerPiece::Thought("I should — look".to_owned()),
        OllamaAnswerPiece::Text("I look: Grüße, 漢字\n".to_owned()),
        OllamaAnswerPiece::Call("look".to_owned(), json!({ "x": { "y": [1, "ü"] } })),
        OllamaAnswerPiece::Call("look".to_owned(), json!({})),
    ];
    let server = FakeOllama::new([OllamaTurn::with_pieces(said)]);
    let tool = json!({ "type": "function", "function": { "name": "look", "description": "",
        "parameters": { "type": "object", "properties": {} } } });
    let body = json!({ "model": "qwen3:8b", "messages": [{ "role": "user", "content": "hi" }],
        "tools": [tool] });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let (method, path) = ("POST".to_owned(), "/api/chat".to_owned());
    server
        .answer(&VendorRequest { method, path, headers, body: body.to_string().into_bytes() })
        .body
}

/// Reads pieces as the plugin does.
fn read_pieces(pieces: &[&[u8]]) -> Result<(Vec<Delta>, Completion)> {
    let (mut lines, mut reply, mut deltas) =
        (StreamLineSplitter::new(8 * 1024 * 1024), ollama_reply(), Vec::new());
    for piece in pieces {
        for line in lines.push(piece)? {
            deltas.extend(reply.read_line(&line)?);
        }
    }
    if let Some(line) = lines.finish() {
        deltas.extend(reply.read_last_line(&line)?);
    }
    Ok((deltas, reply.finish()?))
}

#[test]
fn answer_is_the_same_however_it_is_split() {
    let body = answer_body();
    let whole = read_pieces(&[&body]).unwrap();
    assert_eq!(whole.1.parts.len(), 4);
    for at in 0..=body.len() {
        assert_eq!(read_pieces(&[&body[..at], &body[at..]]).unwrap(), whole, "{at}");
    }
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read_pieces(&bytes).unwrap(), whole);
}

#[test]
fn answer_that_ends_before_its_last_line_is_truncated() {
    let body = answer_body();
    let last = body[..body.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    for at in 0..body.len() - 1 {
        let error = read_pieces(&[&body[..at]]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Provider, "{at}");
        let text = if at > last { "ended early" } else { "" };
        assert!(error.message.contains(text), "{at}: {error}");
        assert_eq!(error.retry, jaato_plugin_sdk::types::Retry::Temporary, "{at}: {error}");
    }
    // The last line is valid without its line end.
    assert!(read_pieces(&[&body[..body.len() - 1]]).is_ok());
}

#[test]
fn line_ends_and_blank_lines_do_not_change_the_answer() {
    let body = String::from_utf8(answer_body()).unwrap();
    let whole = read_pieces(&[body.as_bytes()]).unwrap();
    for other in [body.replace('\n', "\r\n"), body.replace('\n', "\n\n"), format!("\n \n{body}\n")]
    {
        assert_eq!(read_pieces(&[other.as_bytes()]).unwrap(), whole);
    }
}

#[test]
fn number_of_events_and_calls_in_an_answer_is_limited() {
    let mut reply = ollama_reply();
    let nothing = br#"{"message":{"content":""}}"#;
    for _ in 0..EVENTS_MAX {
        reply.read_line(nothing).unwrap();
    }
    assert_eq!(reply.read_line(nothing).unwrap_err().kind, ErrorKind::LimitReached);
    let call = |count: usize| {
        let calls = vec![json!({ "function": { "name": "a", "arguments": {} } }); count];
        let line = json!({ "message": { "tool_calls": calls } }).to_string();
        ollama_reply().read_line(line.as_bytes()).map(|deltas| deltas.len())
    };
    assert_eq!(call(CALLS_MAX), Ok(CALLS_MAX));
    assert_eq!(call(CALLS_MAX + 1).unwrap_err().kind, ErrorKind::LimitReached);
}

#[test]
fn answer_not_from_ollama_is_an_error_with_a_hint() {
    for body in [
        "<html>hello</html>",
        "hello",
        "data: {\"choices\":[]}\n\n",
        "{\"choices\":[]}",
        "[]",
        "\u{1f}\u{8b}\u{8}",
    ] {
        let error = read_pieces(&[body.as_bytes()]).unwrap_err();
        assert_eq!(
            error.message, "`http://h:1/api/chat` does not answer like an Ollama server",
            "{body}"
        );
        assert!(error.hint.unwrap().contains("without `/v1`"));
    }
}

fn content_line(content: &str) -> String {
    format!("{{\"message\":{{\"content\":\"{content}\"}},\"done\":false}}\n")
}

const END: &str = "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n";

#[test]
fn think_tags_and_split_surrogates_of_other_servers_are_read() {
    let parts = |body: String| read_pieces(&[body.as_bytes()]).unwrap().1.parts;
    let thoughts =
        [content_line("<thi"), content_line("nk>hm</think>"), content_line("yes"), END.to_owned()]
            .concat();
    assert_eq!(parts(thoughts), [Part::thought("hm"), Part::text("yes")]);
    let halves =
        [content_line(r"a\ud83e"), content_line(r"\udd80b\ud83dc"), END.to_owned()].concat();
    assert_eq!(parts(halves), [Part::text("a🦀b\u{fffd}c")]);
    let marked = format!("\u{feff}{}{END}", content_line("yes"));
    assert_eq!(parts(marked), [Part::text("yes")]);
    let two = format!("{}{END}", content_line("yes").trim_end());
    assert_eq!(parts(two), [Part::text("yes")]);
    let error = read_pieces(&[b"\x1f\x8b\x08\0\0\0"]).unwrap_err();
    assert!(error.message.contains("compressed answer (gzip)") && error.hint.is_some(), "{error}");
}
