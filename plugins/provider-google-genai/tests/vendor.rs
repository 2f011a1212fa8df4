//! Tests conversations with a strict fake, which refuses what the vendor refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{DataPart, Effort, FinishReason, Message, Part, Role};
use jaato_vendors::google::{FakeGoogle, GoogleAnswerPiece, GoogleTurn};
use jaato_vendors::{ModelConversation, sample_tool_results, unusual_history};

/// Models that think, newest first.
pub const MODELS: [&str; 8] = [
    "gemini-4-argon",
    "gemini-3.8-flash",
    "gemini-3.5-flash",
    "gemini-3.1-pro-preview",
    "gemini-3-pro-preview",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gemini-2.5-flash-lite",
];

/// Starts a conversation with a model of AI Studio that gives these answers.
pub fn talk_to(
    model: &str,
    turns: impl IntoIterator<Item = GoogleTurn>,
) -> ModelConversation<FakeGoogle> {
    talk_with(model, json!({}), FakeGoogle::new(turns))
}

pub fn talk_with(model: &str, config: Value, vendor: FakeGoogle) -> ModelConversation<FakeGoogle> {
    let talk =
        ModelConversation::new(provider_google_genai::__jaato::MODULE, config, vendor, model);
    talk.with_tool("look", tool_parameters())
}

fn tool_parameters() -> Value {
    let properties = json!({
        "at": { "type": "string", "minLength": 1, "description": "Where." },
        "how": { "anyOf": [{ "$ref": "#/$defs/How" }, { "type": "null" }] },
        "deep": { "type": ["integer", "null"], "format": "uint8", "exclusiveMinimum": 0 },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "$defs": { "How": { "oneOf": [{ "const": "near" }, { "const": "far" }] } },
        "additionalProperties": false,
    })
}

pub fn thought_piece(text: &str) -> GoogleAnswerPiece {
    GoogleAnswerPiece::Thought(text.to_owned())
}

pub fn text_piece(text: &str) -> GoogleAnswerPiece {
    GoogleAnswerPiece::Text(text.to_owned())
}

pub fn call_piece(input: Value) -> GoogleAnswerPiece {
    GoogleAnswerPiece::Call("look".to_owned(), input)
}

/// Returns three turns: thoughts before calls, several calls at the same time, and a text that ends
/// with a signature.
pub fn example_turns() -> [GoogleTurn; 5] {
    [
        GoogleTurn::with_pieces([
            thought_piece("I should look."),
            text_piece("I look."),
            call_piece(json!({ "at": "a" })),
            call_piece(json!({})),
        ]),
        GoogleTurn::with_pieces([thought_piece("Again."), call_piece(json!({ "at": "é" }))]),
        GoogleTurn::with_pieces([thought_piece("so"), text_piece("one"), text_piece("two \n")]),
        GoogleTurn::with_pieces([thought_piece("again"), text_piece("You are welcome.")]),
        GoogleTurn::text("Bye."),
    ]
}

#[test]
fn vendor_accepts_thoughts_and_calls_of_earlier_turns() {
    for model in MODELS {
        for effort in [None, Some(Effort::None), Some(Effort::Low), Some(Effort::Max)] {
            for stream in [None, Some(false)] {
                let mut talk = talk_to(model, example_turns());
                talk.request.options.effort = effort;
                talk.request.options.stream = stream;
                let first = talk.ask(Message::user("look"));
                assert_eq!(first.finish_reason, FinishReason::ToolUse, "{model} {effort:?}");
                let second = talk.answer(&first);
                let third = talk.answer(&second);
                assert_eq!(third.finish_reason, FinishReason::Stop);
                talk.ask(Message::user("thanks"));
                talk.ask(Message::user("bye"));
                let sent = talk.vendor.accepted_requests();
                assert_eq!(sent.len(), 5, "{model} {effort:?}");
                // Real signatures are never replaced.
                assert!(!sent[4].to_string().contains("skip_thought"), "{model} {effort:?}");
            }
        }
    }
}

#[test]
fn models_without_thinking_hold_a_conversation() {
    let mut talk = talk_to("gemini-2.0-flash", example_turns());
    let first = talk.ask(Message::user("look"));
    let second = talk.answer(&first);
    talk.answer(&second);
    let mut open = talk_to("gemma-3-27b-it", [GoogleTurn::text("a"), GoogleTurn::text("b")]);
    open.request.tools.clear();
    open.ask(Message::user("hi"));
    open.ask(Message::user("and you?"));
}

#[test]
fn the_signature_at_the_end_of_a_text_is_kept_and_sent() {
    let mut talk = talk_to("gemini-4-argon", [GoogleTurn::text("hello"), GoogleTurn::text("bye")]);
    let first = talk.ask(Message::user("hi"));
    let [said, end] = first.parts.as_slice() else { panic!("{:?}", first.parts) };
    assert_eq!((said, end.signature().is_some()), (&Part::text("hello"), true));
    talk.ask(Message::user("bye"));
    let sent = talk.vendor.accepted_requests()[1]["contents"][1]["parts"].clone();
    assert_eq!(sent[1]["thoughtSignature"], json!(end.signature()));
}

#[test]
fn modified_signature_is_refused_with_the_vendors_message() {
    for model in ["gemini-4-argon", "gemini-2.5-flash"] {
        let mut talk = talk_to(model, example_turns());
        let first = talk.ask(Message::user("look"));
        let place = talk.request.messages[1].parts.iter_mut().find_map(|part| match part {
            Part::ToolCall(call) => call.signature.as_mut(),
            _ => None,
        });
        place.unwrap().push('x');
        talk.request.messages.push(Message::tool(sample_tool_results(&first)));
        let error = talk.send().unwrap_err();
        assert!(error.message.contains("Corrupted thought signature"), "{error}");
    }
}

#[test]
fn history_without_its_signatures_is_accepted() {
    for model in MODELS {
        let mut talk = talk_to(model, example_turns());
        let first = talk.ask(Message::user("look"));
        // This is the form of a history after a cut in the middle of a turn.
        for part in &mut talk.request.messages[1].parts {
            if let Some(place) = part.signature_mut() {
                *place = None;
            }
        }
        let second = talk.answer(&first);
        talk.answer(&second);
    }
}

#[test]
fn history_of_another_provider_is_accepted() {
    for model in MODELS {
        let mut talk = talk_to(
            model,
            [
                GoogleTurn::with_pieces([thought_piece("hm"), text_piece("a")]),
                GoogleTurn::text("b"),
            ],
        );
        talk.request.messages = unusual_history();
        talk.ask(Message::user("and you?"));
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn vendor_accepts_images_in_messages_and_results() {
    for model in MODELS {
        let looked = GoogleTurn::with_pieces([
            thought_piece("hm"),
            call_piece(json!({})),
            call_piece(json!({ "at": "b" })),
        ]);
        let mut talk =
            talk_to(model, [looked, GoogleTurn::text("A cat."), GoogleTurn::text("Yes.")]);
        let image = || DataPart::blob("image/png", "b-1");
        let parts = vec![
            Part::text("What is it?"),
            Part::Data(image()),
            Part::Data(DataPart::blob("application/pdf", "b-2").with_name("cat.pdf")),
        ];
        let first = talk.ask(Message { role: Role::User, parts, ..Message::default() });
        let mut results = sample_tool_results(&first);
        results[0].attachments = vec![image(), DataPart::blob("image/heic", "b-3")];
        results[1].is_error = true;
        talk.ask(Message::tool(results));
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn every_listed_option_is_accepted_by_its_models() {
    let schema = json!({ "type": "object", "required": ["n"], "properties": {
        "n": { "type": "integer", "multipleOf": 2 }, "of": { "const": true } } });
    for model in MODELS {
        for options in [
            json!({ "max_output_tokens": 16 }),
            json!({ "max_output_tokens": 2_000, "effort": "max" }),
            json!({ "temperature": 1.0, "effort": "medium" }),
            json!({ "effort": "minimal" }),
            json!({ "effort": "high" }),
            json!({ "stop": ["END"], "tool_choice": "auto" }),
            json!({ "tool_choice": "none", "stream": false }),
            json!({ "tool_choice": "required", "seed": u64::MAX }),
            json!({ "output_schema": schema }),
        ] {
            for has_tools in [true, false] {
                let mut talk = talk_to(model, [GoogleTurn::text("a")]);
                if !has_tools {
                    talk.request.tools.clear();
                }
                talk.request.options = serde_json::from_value(options.clone()).unwrap();
                talk.request.messages.push(Message::user("hi"));
                let result = talk.send();
                assert!(result.is_ok(), "{model} {options}: {result:?}");
            }
        }
    }
}

#[test]
fn gateway_without_json_schema_support_holds_a_conversation() {
    for model in MODELS {
        let mut talk =
            talk_with(model, json!({}), FakeGoogle::new(example_turns()).without_json_schema());
        let first = talk.ask(Message::user("look"));
        let second = talk.answer(&first);
        talk.answer(&second);
        talk.request.tools.clear();
        talk.request.options.output_schema = Some(tool_parameters());
        talk.ask(Message::user("as JSON"));
    }
}

#[test]
fn model_list_reports_context_windows_and_accepted_media() {
    let talk = talk_to("gemini-4-argon", []);
    let models = talk.host.instance().unwrap().models().unwrap();
    let facts = |name: &str| {
        let info = models.iter().find(|info| info.name == name)?;
        Some((info.context_limit, info.accepts.as_ref().map(Vec::len)))
    };
    assert_eq!(facts("gemini-4-argon"), Some((Some(1_048_576), Some(6))));
    assert_eq!(facts("gemma-3-27b-it"), Some((Some(131_072), Some(5))));
    assert_eq!(facts("gemini-embedding-001"), None);
}
