//! A conversation with everything that an export must show or hide.

use jaato_sessions::{Transcript, TranscriptMessage, transcript_note};
use jaato_types::{DataPart, Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

/// A PNG image of one pixel.
pub const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\
\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// When the sample begins.
const BEGUN_MS: i64 = 1_795_876_665_000;

fn message_at(seconds: i64, message: Message) -> TranscriptMessage {
    let at_ms = BEGUN_MS + seconds * 1000;
    TranscriptMessage { at_ms, message, ..TranscriptMessage::default() }
}

fn answer_at(seconds: i64, parts: Vec<Part>) -> TranscriptMessage {
    let model = Some("anthropic/claude-sonnet-4-5".to_owned());
    TranscriptMessage { model, ..message_at(seconds, Message::model(parts)) }
}

fn with_note(message: TranscriptMessage, note: &str) -> TranscriptMessage {
    TranscriptMessage { note: Some(note.to_owned()), ..message }
}

/// Creates the content of a result.
pub fn json_object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap()
}

/// Creates a transcript of messages.
pub fn transcript_of(messages: Vec<TranscriptMessage>) -> Transcript {
    Transcript {
        id: "20261128-143745-abcd".into(),
        name: "Fix the moon phase".to_owned(),
        workspace: "/home/user/project".to_owned(),
        begun_ms: BEGUN_MS,
        messages,
        ..Transcript::default()
    }
}

/// Creates the conversation.
pub fn sample_transcript() -> Transcript {
    let call = |id: &str, name: &str, arguments| Part::ToolCall(ToolCall::new(id, name, arguments));
    let failed = ToolResult {
        is_error: true,
        ..ToolResult::new("2", "edit", json_object(json!({ "error": { "kind": "not_found" } })))
    };
    let seen = ToolResult {
        attachments: vec![DataPart::blob("image/png", "blob-1").with_name("moon.png")],
        ..ToolResult::new("1", "read", json_object(json!({ "output": "fn phase() {}\n// ```\n" })))
    };
    let prompt = Message {
        role: Role::User,
        parts: vec![
            Part::text("The moon is wrong. See `src/moon.rs`."),
            Part::Data(DataPart::blob("image/png", "blob-1").with_name("moon.png")),
            Part::json(json!({ "task": 1 })),
        ],
    };
    let unknown = json!({ "type": "smell", "of": "roses" });
    let results = Message {
        role: Role::Tool,
        parts: vec![
            Part::ToolResult(seen),
            Part::ToolResult(failed),
            Part::text("The user added a file."),
        ],
    };
    transcript_of(vec![
        with_note(message_at(-20, Message::user("Hello")), transcript_note::COLLECTED),
        with_note(answer_at(-10, vec![Part::text("Hi!")]), transcript_note::COLLECTED),
        message_at(0, prompt),
        answer_at(
            2,
            vec![
                Part::thought("First I read the file.").with_signature("secret-signature"),
                Part::opaque(json!({ "encrypted": "secret-item" })),
                Part::text("I look at the code and fix it:\n\n- read\n- edit"),
                call("1", "read", json!({ "path": "src/moon.rs" })),
                call(
                    "2",
                    "edit",
                    json!({ "path": "src/sun.rs", "text": "fn a() {\n}\n", "line": 3 }),
                ),
            ],
        ),
        message_at(3, results),
        with_note(
            answer_at(
                5,
                vec![
                    Part::text(
                        "| phase | light |\n|---|---|\n| new | 0 |\n\n```rust\nfn phase() -> f64 { 0.5 }\n",
                    ),
                    Part::Unknown(json_object(unknown)),
                ],
            ),
            transcript_note::BROKE_OFF,
        ),
        with_note(message_at(9, Message::user("And Mars?")), transcript_note::NOT_SENT),
    ])
}

/// Creates a conversation in which each text tries to leave its place.
pub fn hostile_transcript() -> Transcript {
    let evil =
        "</script></pre></details><script>alert(1)</script>\" onload='x' \u{1b}[31m\u{202e}\0";
    let call = ToolCall::new("c\"><b>", evil, json!({ evil: evil, "text": "a\n```\n</pre>" }));
    let result =
        ToolResult::new("c\"><b>", evil, json_object(json!({ evil: evil, "more": "x\n<!--" })));
    let mut transcript = transcript_of(vec![
        with_note(message_at(0, Message::user(evil)), evil),
        TranscriptMessage {
            model: Some(evil.to_owned()),
            ..message_at(
                1,
                Message::model(vec![
                    Part::thought(evil),
                    Part::text(format!(
                        "[a](javascript:x) ![b](https://evil.example/pixel) {evil}\n\n<!--"
                    )),
                    Part::text("```\nopen"),
                    Part::ToolCall(call),
                ]),
            )
        },
        message_at(2, Message::tool([result])),
        message_at(3, Message::model(vec![Part::text("# last heading")])),
    ]);
    transcript.name = format!("a\n# b {evil}");
    transcript.workspace = format!("/`` {evil}");
    transcript.id = evil.into();
    transcript
}
