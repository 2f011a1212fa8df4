//! Tests streams in the vendor's format and the completions that result. Each stream is split at
//! every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::{Expect, expect};
use jaato_plugin_sdk::types::{Part, ToolSpec};
use provider_google_genai::reply::GoogleReply;

use crate::made::{CompletionFormat, read_split_anywhere};

const URL: &str = "http://h/v1beta/models/m:streamGenerateContent?alt=sse";

pub fn google_reply() -> GoogleReply {
    let tool = |name: &str| ToolSpec { name: name.into(), ..ToolSpec::default() };
    GoogleReply::new(URL, &[tool("look"), tool("7up")])
}

/// How the results are printed.
pub const WORDS: CompletionFormat = CompletionFormat {
    part: format_part,
    usage: |usage| {
        format!(
            "{}+{} ({} cached, {} thought)",
            usage.prompt_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens
        )
    },
};

pub fn format_stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    WORDS.format_stream(google_reply(), pieces)
}

fn format_part(part: &Part) -> String {
    let mark = part.signature().map(|signature| format!("[{signature}]")).unwrap_or_default();
    match part {
        Part::Text { text, .. } => format!("text{mark}:{text:?}"),
        Part::Thought { text, .. } => format!("thought{mark}:{text:?}"),
        Part::ToolCall(call) => format!("call{mark}:{}", call.id),
        Part::Opaque(opaque) => format!("opaque:{}", opaque.item),
        other => format!("{other:?}"),
    }
}

/// Checks that a stream has the same deltas wherever it is split. Events end at blank lines.
#[track_caller]
pub fn check_stream(stream: &str, expected: Expect) {
    expected.assert_eq(&read_split_anywhere(stream, |pieces| format_stream(pieces)));
}

/// Returns a stream with one chunk per part and this finish reason.
pub fn stream_of_parts(parts: &[&str], reason: &str) -> String {
    let chunk = |part: &&str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}],\"role\":\"model\"}},\"index\":0}}]}}\r\n\r\n"
        )
    };
    let end = format!(
        "data: {{\"candidates\":[{{\"content\":{{}},\"finishReason\":\"{reason}\",\"index\":0}}]}}\r\n\r\n"
    );
    parts.iter().map(chunk).chain([end]).collect()
}

#[test]
fn streamed_text_is_joined_and_the_last_usage_counts() {
    check_stream(
        "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"Grü\"}],\"role\": \"model\"},\"index\": 0}],\
         \"usageMetadata\": {\"promptTokenCount\": 9,\"totalTokenCount\": 9,\"promptTokensDetails\": [{\"modality\": \"TEXT\",\"tokenCount\": 9}]},\
         \"modelVersion\": \"gemini-3.8-flash\",\"responseId\": \"r\"}\r\n\r\n\
         data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"ße\"}],\"role\": \"model\"},\"finishReason\": \"STOP\",\"index\": 0}],\
         \"usageMetadata\": {\"promptTokenCount\": 9,\"candidatesTokenCount\": 2,\"totalTokenCount\": 41,\
         \"cachedContentTokenCount\": 8,\"thoughtsTokenCount\": 30}}\r\n\r\n",
        expect![[r#"
            text "Grü"
            text "ße"
            = text:"Grüße" Stop 9+32 (8 cached, 30 thought)"#]],
    );
}

#[test]
fn thoughts_are_separated_and_signatures_keep_their_place() {
    check_stream(
        &stream_of_parts(
            &[
                r#"{"text":"**Looking**","thought":true}"#,
                r#"{"text":" at it.","thought":true}"#,
                r#"{"text":"It is "}"#,
                r#"{"text":"blue."}"#,
                r#"{"text":"","thoughtSignature":"c2lnMQ=="}"#,
            ],
            "STOP",
        ),
        expect![[r#"
            thought "**Looking**"
            thought " at it."
            text "It is "
            text "blue."
            = thought:"**Looking** at it." text:"It is blue." text[c2lnMQ==]:"" Stop 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn signed_parts_are_not_joined_with_unsigned_ones() {
    check_stream(
        &stream_of_parts(
            &[
                r#"{"text":"a"}"#,
                r#"{"text":"b","thoughtSignature":"s1"}"#,
                r#"{"text":"c"}"#,
                r#"{"text":"hm","thought":true,"thoughtSignature":"s2"}"#,
                r#"{"text":"so","thought":true}"#,
                r#"{"thoughtSignature":"s3"}"#,
                r#"{"text":""}"#,
                r#"{}"#,
            ],
            "STOP",
        ),
        expect![[r#"
            text "a"
            text "b"
            text "c"
            thought "hm"
            thought "so"
            = text:"a" text[s1]:"b" text:"c" thought[s2]:"hm" thought:"so" text[s3]:"" Stop 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn parallel_calls_in_one_chunk_keep_the_first_calls_signature() {
    check_stream(
        &stream_of_parts(
            &[
                r#"{"text":"I look."}"#,
                r#"{"functionCall":{"name":"look","args":{"at":"é"},"id":"fc-1"},"thoughtSignature":"s"},{"functionCall":{"name":"look","args":{},"id":"fc-2"}}"#,
            ],
            "STOP",
        ),
        expect![[r#"
            text "I look."
            text ""
            text ""
            call fc-1 look {"at":"é"}
            call fc-2 look {}
            = text:"I look." call[s]:fc-1 call:fc-2 ToolUse 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn missing_call_ids_and_arguments_are_filled_and_names_restored() {
    check_stream(
        &stream_of_parts(
            &[
                r#"{"functionCall":{"name":"look"}}"#,
                r#"{"functionCall":{"name":"_7up","args":null,"id":"call-0"}}"#,
                r#"{"functionCall":{"name":"look","args":"odd","id":"x"}},{"functionCall":{"name":"look","id":"x"}}"#,
            ],
            "STOP",
        ),
        expect![[r#"
            text ""
            text ""
            text ""
            text ""
            call call-0 look {}
            call call-1 7up {}
            call x look "odd"
            call call-3 look {}
            = call:call-0 call:call-1 call:x call:call-3 ToolUse 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn a_call_keeps_its_place_among_texts() {
    check_stream(
        &stream_of_parts(
            &[
                r#"{"text":"a"}"#,
                r#"{"functionCall":{"name":"look","args":{}}}"#,
                r#"{"text":"b"}"#,
                r#"{"text":"","thoughtSignature":"s"}"#,
            ],
            "STOP",
        ),
        expect![[r#"
            text "a"
            text ""
            text "b"
            call call-0 look {}
            = text:"a" call:call-0 text:"b" text[s]:"" ToolUse 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn vendor_specific_parts_are_kept_unchanged_as_opaque() {
    check_stream(
        &stream_of_parts(
            &[
                r#"{"executableCode":{"language":"PYTHON","code":"1+1"},"thoughtSignature":"s"}"#,
                r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}}"#,
                r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#,
                r#"{"text":"2","futureField":{"a":1}}"#,
                r#"{"futureData":{"a":1}}"#,
            ],
            "STOP",
        ),
        expect![[r#"
            notice the model produced `image/png`, which is kept but not shown
            text "2"
            = opaque:{"executableCode":{"language":"PYTHON","code":"1+1"},"thoughtSignature":"s"} opaque:{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}} opaque:{"inlineData":{"mimeType":"image/png","data":"AAAA"}} text:"2" opaque:{"futureData":{"a":1}} Stop 0+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn other_candidates_and_empty_chunks_are_ignored() {
    check_stream(
        "data: {\"usageMetadata\":{\"promptTokenCount\":1}}\n\n: ping\n\n\
         data: {\"candidates\":[{\"index\":1,\"content\":{\"parts\":[{\"text\":\"no\"}]}},{\"content\":{\"parts\":[{\"text\":\"yes\"}]}}]}\n\n\
         data: {\"candidates\":[{\"finishReason\":\"FINISH_REASON_UNSPECIFIED\"}]}\n\n\
         data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\ndata: [DONE]\n\n",
        expect![[r#"
            text "yes"
            = text:"yes" Stop 1+0 (0 cached, 0 thought)"#]],
    );
}

#[test]
fn split_surrogates_are_joined_and_a_lone_one_is_replaced() {
    let stream =
        stream_of_parts(&[r#"{"text":"a\ud83e"}"#, r#"{"text":"\udd80b\ud83dc"}"#], "STOP");
    let read = read_split_anywhere(&stream, |pieces| format_stream(pieces));
    assert!(read.contains("text:\"a🦀b\u{fffd}c\""), "{read}");
}
