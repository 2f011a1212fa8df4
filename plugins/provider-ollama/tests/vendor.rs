//! Tests conversations with a strict fake, which refuses what the server refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::{
    Completion, DataPart, Delta, Effort, FinishReason, Message, Part, Role, ToolResult,
};
use jaato_plugin_testkit::FinishedCall;
use jaato_vendors::ollama::{FakeOllama, OllamaAnswerPiece, OllamaTurn};
use jaato_vendors::{ModelConversation, unusual_history};

const MODELS: [&str; 3] = ["qwen3:8b", "gpt-oss:20b", "big:cloud"];

/// Starts a conversation with a model that gives these answers.
pub fn talk_to(
    model: &str,
    turns: impl IntoIterator<Item = OllamaTurn>,
) -> ModelConversation<FakeOllama> {
    talk_with(model, FakeOllama::new(turns), json!({}))
}

pub fn talk_with(model: &str, server: FakeOllama, config: Value) -> ModelConversation<FakeOllama> {
    ModelConversation::new(provider_ollama::__jaato::MODULE, config, server, model)
}

fn add_tool(talk: ModelConversation<FakeOllama>) -> ModelConversation<FakeOllama> {
    talk.with_tool("look", json!({ "type": "object", "properties": { "at": true } }))
}

fn thought_piece(text: &str) -> OllamaAnswerPiece {
    OllamaAnswerPiece::Thought(text.to_owned())
}

fn text_piece(text: &str) -> OllamaAnswerPiece {
    OllamaAnswerPiece::Text(text.to_owned())
}

fn call_piece(arguments: Value) -> OllamaAnswerPiece {
    OllamaAnswerPiece::Call("look".to_owned(), arguments)
}

fn example_turns() -> [OllamaTurn; 4] {
    [
        OllamaTurn::with_pieces([
            thought_piece("I should look."),
            text_piece("I look."),
            call_piece(json!({ "at": "a" })),
            call_piece(json!({})),
        ]),
        OllamaTurn::with_pieces([thought_piece("again"), call_piece(json!({ "at": "é" }))]),
        OllamaTurn::with_pieces([thought_piece("so"), text_piece("one, 漢字")]),
        OllamaTurn::text("Bye."),
    ]
}

#[test]
fn vendor_accepts_thoughts_and_calls_of_earlier_turns() {
    for model in MODELS {
        for effort in [None, Some(Effort::None), Some(Effort::Low), Some(Effort::Max)] {
            let mut talk = add_tool(talk_to(model, example_turns()));
            talk.request.options.effort = effort;
            let first = talk.ask(Message::user("look"));
            assert_eq!(first.finish_reason, FinishReason::ToolUse, "{model} {effort:?}");
            let second = talk.answer(&first);
            let third = talk.answer(&second);
            assert_eq!(third.finish_reason, FinishReason::Stop);
            talk.ask(Message::user("thanks"));
            let accepted = talk.vendor.accepted_requests();
            assert_eq!(accepted.len(), 4, "{model} {effort:?}");
            assert_eq!(talk.vendor.reload_count(), 0);
            let thinks = effort != Some(Effort::None) || model == "gpt-oss:20b";
            let thoughts = accepted[3].to_string().matches("\"thinking\"").count();
            assert_eq!(thoughts, if thinks { 3 } else { 0 }, "{model} {effort:?}");
        }
    }
}

#[test]
fn successive_requests_share_a_common_prefix() {
    let mut talk = add_tool(talk_to("qwen3:8b", example_turns()));
    let first = talk.ask(Message::user("look"));
    let second = talk.answer(&first);
    talk.answer(&second);
    let accepted = talk.vendor.accepted_requests();
    for pair in accepted.windows(2) {
        let (before, after) = (pair[0].to_string(), pair[1].to_string());
        let shared = before.trim_end_matches("]}");
        assert!(after.starts_with(shared), "{after}\ndoes not begin with\n{shared}");
    }
}

#[test]
fn context_size_is_always_set_and_stays_the_same() {
    let sizes = |talk: &ModelConversation<FakeOllama>| -> Vec<u64> {
        let all = talk.vendor.accepted_requests();
        all.iter().map(|body| body["options"]["num_ctx"].as_u64().unwrap()).collect()
    };
    for (model, config, expected) in [
        ("qwen3:8b", json!({}), 32_768),
        ("tiny", json!({}), 2_048),
        ("tuned:1b", json!({}), 8_192),
        ("big:cloud", json!({}), 202_752),
        ("qwen3:8b", json!({ "context_tokens": 4_096 }), 4_096),
        ("tiny", json!({ "context_tokens": 65_536 }), 2_048),
    ] {
        let server = FakeOllama::new([OllamaTurn::text("a"), OllamaTurn::text("b")]);
        let mut talk = talk_with(model, server, config);
        talk.ask(Message::user("hi"));
        // Another client now loads the model with another size.
        talk.ask(Message::user("ho"));
        assert_eq!(sizes(&talk), [expected, expected], "{model}");
        assert_eq!(talk.vendor.reload_count(), 0);
    }
    let server = FakeOllama::new([OllamaTurn::text("a")]).with_loaded_model("qwen3:8b", 40_960);
    let mut talk = talk_with("qwen3:8b", server, json!({}));
    talk.ask(Message::user("hi"));
    assert_eq!((sizes(&talk), talk.vendor.reload_count()), (vec![40_960], 0));
}

#[test]
fn overlong_conversation_is_a_context_overflow_and_never_truncated() {
    let mut talk = talk_to("tiny", [OllamaTurn::text("a")]);
    talk.request.messages = vec![Message::user("word ".repeat(10_000))];
    assert_eq!(talk.send().unwrap_err().kind, ErrorKind::ContextOverflow);
    let body: Value =
        serde_json::from_slice(&talk.host.http_requests().pop().unwrap().body).unwrap();
    assert_eq!((&body["truncate"], &body["shift"]), (&json!(false), &json!(false)));
}

fn shown_notices(finished: &FinishedCall<Completion>) -> Vec<String> {
    let text = |delta: &Delta| match delta {
        Delta::Notice { text, .. } => Some(text.clone()),
        _ => None,
    };
    finished.deltas.iter().filter_map(text).collect()
}

#[test]
fn silent_truncation_by_the_server_is_reported_once() {
    let server = FakeOllama::new(["a", "b"].map(OllamaTurn::text))
        .with_silent_truncation()
        .with_context_max(4_096);
    let mut talk = talk_with("qwen3:8b", server, json!({}));
    talk.request.messages = vec![Message::user("word ".repeat(20_000))];
    let finished = talk.host.complete(&talk.request);
    assert_eq!(finished.result.as_ref().unwrap().usage.prompt_tokens, 4_096);
    let notices_told = shown_notices(&finished);
    let [notice] = &notices_told[..] else { panic!("{:?}", finished.deltas) };
    assert_eq!(
        notice,
        "`http://127.0.0.1:11434` read only 4096 tokens of a longer request, and may have dropped \
         the oldest messages: it gave the model 4096 tokens of context, not 32768; update Ollama \
         to get an error instead"
    );
    assert!(shown_notices(&talk.host.complete(&talk.request)).is_empty());
}

#[test]
fn fully_read_request_gives_no_truncation_notice() {
    let mut talk = talk_to("qwen3:8b", [OllamaTurn::text("a")]);
    talk.request.messages = vec![Message::user("word ".repeat(20_000))];
    let finished = talk.host.complete(&talk.request);
    assert!(
        finished.result.is_ok() && shown_notices(&finished).is_empty(),
        "{:?}",
        finished.deltas
    );
}

#[test]
fn image_is_sent_to_vision_models_and_described_to_others() {
    let image = || DataPart::blob("image/png", "b-1");
    for (model, sees) in [("qwen3-vl:8b", true), ("qwen3:8b", false)] {
        let turns = [OllamaTurn::with_pieces([call_piece(json!({}))]), OllamaTurn::text("A cat.")];
        let mut talk = add_tool(talk_to(model, turns));
        let parts = vec![
            Part::text("What is it?"),
            Part::Data(image()),
            Part::Data(DataPart::blob("application/pdf", "b-2")),
        ];
        let first = talk.ask(Message { role: Role::User, parts, ..Message::default() });
        let id = first.parts[0].as_tool_call().unwrap().id.clone();
        let attachments = vec![image()];
        let result = ToolResult {
            attachments,
            is_error: true,
            ..ToolResult::new(id, "look", Default::default())
        };
        talk.ask(Message::tool([result]));
        let messages = talk.vendor.accepted_requests()[1]["messages"].clone();
        let seen = if sees { json!(["AQID"]) } else { json!(null) };
        assert_eq!((&messages[1]["images"], &messages[4]["images"]), (&seen, &seen), "{model}");
        let words = messages[1]["content"].as_str().unwrap();
        assert!(words.contains("[application/pdf: cannot be sent to this model]"), "{words}");
        assert_eq!(words.contains("[image/png: "), !sees, "{words}");
        assert_eq!(messages[3]["content"], "error: {}");
    }
}

#[test]
fn history_of_another_provider_is_accepted() {
    for model in MODELS {
        let mut talk = talk_to(model, [OllamaTurn::text("a"), OllamaTurn::text("b")]);
        talk.request.messages = unusual_history();
        talk.ask(Message::user("and you?"));
        talk.ask(Message::user("sure?"));
        let sent = talk.vendor.accepted_requests()[1].to_string();
        assert!(!sent.contains("unsigned") && !sent.contains("only this"), "{sent}");
    }
}

#[test]
fn call_ids_are_unique_across_the_conversation() {
    let turns = [
        OllamaTurn::with_pieces([call_piece(json!({})), call_piece(json!({}))]),
        OllamaTurn::with_pieces([call_piece(json!({}))]),
    ];
    let mut talk = add_tool(talk_to("qwen3:8b", turns));
    let first = talk.ask(Message::user("look"));
    let second = talk.answer(&first);
    let ids: Vec<_> = [first, second]
        .iter()
        .flat_map(|it| it.parts.iter().filter_map(Part::as_tool_call).map(|it| it.id.to_string()))
        .collect::<Vec<_>>();
    assert_eq!(ids, ["call-1", "call-2", "call-3"]);
}

#[test]
fn finish_reason_distinguishes_token_limit_and_full_context() {
    let ended = |model: &str, turn: OllamaTurn, most: Option<u32>| {
        let mut talk = talk_to(model, [turn]);
        talk.request.options.max_output_tokens = most;
        let completion = talk.ask(Message::user("hi"));
        (completion.finish_reason, completion.finish_word)
    };
    let long = || OllamaTurn::text("many words, many words").with_stop_reason("length");
    assert_eq!(ended("qwen3:8b", long(), Some(3)), (FinishReason::MaxTokens, None));
    assert_eq!(ended("qwen3:8b", long(), Some(999)), (FinishReason::ContextExceeded, None));
    assert_eq!(ended("qwen3:8b", long(), None), (FinishReason::ContextExceeded, None));
    assert_eq!(ended("big:cloud", long(), None), (FinishReason::MaxTokens, None));
    let limit_of_model = OllamaTurn::text(&"word ".repeat(100)).with_stop_reason("length");
    assert_eq!(ended("tuned:1b", limit_of_model, None), (FinishReason::MaxTokens, None));
    let unloaded = ended("qwen3:8b", OllamaTurn::text("a").with_stop_reason("unload"), None);
    assert_eq!(unloaded, (FinishReason::Unknown, Some("unload".to_owned())));
}

#[test]
fn every_listed_option_is_accepted_or_refused_by_name() {
    for model in MODELS {
        for options in [
            json!({ "max_output_tokens": 16, "temperature": 0.5, "seed": u64::MAX }),
            json!({ "effort": "medium", "stop": ["END", ""] }),
            json!({ "effort": "none", "stream": false }),
            json!({ "output_schema": { "type": "object" } }),
        ] {
            let mut talk = add_tool(talk_to(model, [OllamaTurn::text("a")]));
            talk.request.options = serde_json::from_value(options.clone()).unwrap();
            talk.request.messages = vec![Message::user("hi")];
            let result = talk.send();
            assert!(result.is_ok(), "{model} {options}: {result:?}");
        }
    }
    let mut talk = talk_to("gemma3:4b", []);
    talk.request.options.effort = Some(Effort::High);
    talk.request.messages = vec![Message::user("hi")];
    let error = talk.send().unwrap_err();
    assert_eq!(error.message, "the model `gemma3:4b` does not accept the option `effort`");
    assert!(talk.vendor.accepted_requests().is_empty());
}

#[test]
fn unstreamed_answer_equals_the_streamed_one() {
    for turn in example_turns() {
        let mut ends = Vec::new();
        for stream in [None, Some(false)] {
            let mut talk = add_tool(talk_to("qwen3:8b", [turn.clone()]));
            talk.request.options.stream = stream;
            ends.push(talk.ask(Message::user("hi")));
        }
        assert_eq!(ends[0], ends[1]);
    }
}

#[test]
fn keep_alive_setting_is_sent() {
    for (setting, expected) in [("", json!(null)), ("10m", json!("10m")), ("-1", json!(-1))] {
        let server = FakeOllama::new([OllamaTurn::text("a")]);
        let mut talk = talk_with("qwen3:8b", server, json!({ "keep_alive": setting }));
        talk.ask(Message::user("hi"));
        assert_eq!(talk.vendor.accepted_requests()[0]["keep_alive"], expected);
    }
}
