//! Tests conversations with a strict fake, which refuses what the vendor refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::ErrorKind;
use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{
    DataPart, Delta, Effort, FinishReason, Message, Part, Retry, Role, ToolResult, ToolSpec,
    ToolsChanged,
};
use jaato_vendors::anthropic::{AnthropicAnswerPiece, AnthropicTurn, FakeAnthropic};
use jaato_vendors::{ModelConversation, tool_spec, unusual_history};

pub const MODELS: [&str; 6] = [
    "claude-haiku-4-5",
    "claude-opus-4-6",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-opus-5-5",
];

/// Starts a conversation with a model that gives these answers.
pub fn talk_to(
    model: &str,
    turns: impl IntoIterator<Item = AnthropicTurn>,
) -> ModelConversation<FakeAnthropic> {
    talk_with(model, FakeAnthropic::new(turns))
}

pub fn talk_with(model: &str, vendor: FakeAnthropic) -> ModelConversation<FakeAnthropic> {
    let talk =
        ModelConversation::new(provider_anthropic::__jaato::MODULE, json!({}), vendor, model);
    talk.with_tool("look", empty_arguments())
}

pub fn tool_without_arguments(name: &str) -> ToolSpec {
    tool_spec(name, empty_arguments())
}

fn empty_arguments() -> Value {
    json!({ "type": "object", "properties": {} })
}

pub fn thought_piece(text: &str) -> AnthropicAnswerPiece {
    AnthropicAnswerPiece::Thought(text.to_owned())
}

pub fn text_piece(text: &str) -> AnthropicAnswerPiece {
    AnthropicAnswerPiece::Text(text.to_owned())
}

pub fn call_piece(input: Value) -> AnthropicAnswerPiece {
    AnthropicAnswerPiece::Call("look".to_owned(), input)
}

/// Returns three turns: thoughts between tool calls, redacted thoughts, and several results at
/// once.
fn example_turns() -> [AnthropicTurn; 5] {
    [
        AnthropicTurn::with_pieces([
            thought_piece("I should look."),
            text_piece("I look."),
            call_piece(json!({ "at": "a" })),
            thought_piece(""),
            call_piece(json!({})),
        ]),
        AnthropicTurn::with_pieces([
            AnthropicAnswerPiece::Hidden("secret".to_owned()),
            call_piece(json!({ "at": "é" })),
        ]),
        AnthropicTurn::with_pieces([thought_piece("so"), text_piece("one"), text_piece("two \n")]),
        AnthropicTurn::with_pieces([thought_piece("again"), text_piece("You are welcome.")]),
        AnthropicTurn::text("Bye."),
    ]
}

#[test]
fn vendor_accepts_thoughts_and_calls_of_earlier_turns() {
    for model in MODELS {
        for effort in [None, Some(Effort::None), Some(Effort::Low), Some(Effort::Max)] {
            let mut talk = talk_to(model, example_turns());
            talk.request.options.effort = effort;
            let first = talk.ask(Message::user("look"));
            assert_eq!(first.finish_reason, FinishReason::ToolUse, "{model} {effort:?}");
            let second = talk.answer(&first);
            let third = talk.answer(&second);
            assert_eq!(third.finish_reason, FinishReason::Stop);
            talk.ask(Message::user("thanks"));
            talk.ask(Message::user("bye"));
            assert_eq!(talk.vendor.accepted_requests().len(), 5, "{model} {effort:?}");
        }
    }
}

#[test]
fn modified_thought_is_refused_with_the_vendors_message() {
    for model in ["claude-haiku-4-5", "claude-opus-5-5"] {
        let mut talk = talk_to(model, example_turns());
        talk.request.options.effort = Some(Effort::High);
        let first = talk.ask(Message::user("look"));
        if let Part::Thought { text, .. } = &mut talk.request.messages[1].parts[0] {
            text.push('!');
        }
        talk.request.messages.push(Message::tool(first.parts.iter().filter_map(|part| {
            part.as_tool_call()
                .map(|it| ToolResult::new(it.id.clone(), it.name.clone(), Default::default()))
        })));
        let error = talk.send().unwrap_err();
        assert!(error.message.contains("Invalid `signature` in `thinking` block"), "{error}");
        assert_eq!((error.kind, error.retry), (ErrorKind::Provider, Retry::Permanent));
    }
}

#[test]
fn thoughts_after_a_changed_prefix_are_dropped_with_a_notice() {
    let mut talk = talk_to("claude-opus-5-5", example_turns());
    let first = talk.ask(Message::user("look"));
    talk.answer(&first);
    // The host never does this. It makes a cut instead, and then sends no thought from before the
    // cut.
    talk.request.system = "Be long.".to_owned();
    talk.request.messages.truncate(3);
    let finished = talk.host.complete(&talk.request);
    assert!(finished.result.is_ok(), "{:?}", finished.result);
    let is_told =
        |delta: &&Delta| matches!(delta, Delta::Notice { text, .. } if text.contains("dropped"));
    assert_eq!(finished.deltas.iter().filter(is_told).count(), 1, "{:?}", finished.deltas);
}

#[test]
fn turn_continues_after_a_cut_removed_its_thoughts() {
    for model in MODELS {
        let mut talk = talk_to(model, example_turns());
        talk.request.options.effort = Some(Effort::High);
        let first = talk.ask(Message::user("look"));
        // The host omits the thoughts of the first step and of everything before it.
        for message in &mut talk.request.messages {
            let is_kept =
                |part: &Part| part.signature().is_none() && !matches!(part, Part::Opaque(_));
            message.parts.retain(is_kept);
        }
        let second = talk.answer(&first);
        let third = talk.answer(&second);
        assert_eq!(third.finish_reason, FinishReason::Stop, "{model}");
        let fourth = talk.ask(Message::user("thanks"));
        let is_thought = |part: &Part| matches!(part, Part::Thought { .. });
        assert!(fourth.parts.iter().any(is_thought), "it thinks again after the next prompt");
        talk.ask(Message::user("bye"));
    }
}

#[test]
fn tool_changes_keep_earlier_thoughts_valid() {
    for model in MODELS {
        let called = AnthropicTurn::with_pieces([
            thought_piece("new"),
            AnthropicAnswerPiece::Call("listen".to_owned(), json!({})),
        ]);
        let [first, second, third, ..] = example_turns();
        let mut talk = talk_to(model, [first, second, called, third]);
        talk.request.options.effort = Some(Effort::High);
        let first = talk.ask(Message::user("look"));
        let second = talk.answer(&first);
        let added = vec![tool_without_arguments("listen")];
        let removed = vec!["look".into(), "unknown".into()];
        let changed = ToolsChanged { added, removed, ..ToolsChanged::default() };
        let result = second.parts.iter().find_map(Part::as_tool_call).unwrap();
        let mut message =
            Message::tool([ToolResult::new(result.id.clone(), "look", Default::default())]);
        message.parts.push(Part::ToolsChanged(changed));
        let third = talk.ask(message);
        let finished = talk.answer(&third);
        assert_eq!(finished.finish_reason, FinishReason::Stop, "{model}");
    }
}

#[test]
fn vendor_accepts_images_in_messages_and_results() {
    for model in MODELS {
        let looked = AnthropicTurn::with_pieces([thought_piece("hm"), call_piece(json!({}))]);
        let mut talk =
            talk_to(model, [looked, AnthropicTurn::text("A cat."), AnthropicTurn::text("Yes.")]);
        let image = || DataPart::blob("image/png", "b-1");
        let parts = vec![
            Part::text("What is it?"),
            Part::Data(image()),
            Part::Data(DataPart::blob("application/pdf", "b-2").with_name("cat.pdf")),
        ];
        let first = talk.ask(Message { role: Role::User, parts, ..Message::default() });
        let id = first.parts.iter().find_map(Part::as_tool_call).unwrap().id.clone();
        let attachments = vec![image()];
        let result = ToolResult {
            attachments,
            is_error: true,
            ..ToolResult::new(id, "look", Default::default())
        };
        assert_eq!(talk.ask(Message::tool([result])).parts, [Part::text("A cat.")], "{model}");
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn truncated_or_refused_answer_is_accepted_back() {
    for (model, stop, expected) in [
        ("claude-haiku-4-5", "max_tokens", FinishReason::MaxTokens),
        ("claude-opus-5-5", "max_tokens", FinishReason::MaxTokens),
        ("claude-opus-5-5", "refusal", FinishReason::Refused),
        ("claude-opus-5-5", "model_context_window_exceeded", FinishReason::ContextExceeded),
    ] {
        for said in
            [vec![thought_piece("hm")], vec![thought_piece("hm"), text_piece("so ")], vec![]]
        {
            let cut = AnthropicTurn::with_pieces(said).with_stop_reason(stop);
            let mut talk = talk_to(
                model,
                [
                    cut,
                    AnthropicTurn::with_pieces([thought_piece("hm"), text_piece("done")]),
                    AnthropicTurn::text("b"),
                ],
            );
            talk.request.options.effort = Some(Effort::High);
            assert_eq!(talk.ask(Message::user("hi")).finish_reason, expected);
            talk.ask(Message::user("continue"));
            talk.ask(Message::user("again"));
        }
    }
}

#[test]
fn paused_answer_can_be_continued() {
    let search = json!({ "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "q": "é" } });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "s1", "content": [] });
    let paused = AnthropicTurn::with_pieces([
        thought_piece("hm"),
        AnthropicAnswerPiece::Block(search),
        AnthropicAnswerPiece::Block(found),
    ]);
    let turns = [
        paused.with_stop_reason("pause_turn"),
        AnthropicTurn::with_pieces([thought_piece("so"), text_piece("It is full.")]),
        AnthropicTurn::text("b"),
    ];
    let mut talk = talk_to("claude-opus-5-5", turns);
    let first = talk.ask(Message::user("hi"));
    assert_eq!(first.finish_reason, FinishReason::Paused);
    let rest = talk.send().unwrap();
    talk.request.messages[1].parts.extend(rest.parts);
    talk.ask(Message::user("thanks"));
}

#[test]
fn history_of_another_provider_is_accepted() {
    for model in MODELS {
        let mut talk = talk_to(
            model,
            [
                AnthropicTurn::with_pieces([thought_piece("hm"), text_piece("a")]),
                AnthropicTurn::text("b"),
            ],
        );
        talk.request.messages = unusual_history();
        talk.ask(Message::user("and you?"));
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn unknown_model_error_hints_at_the_model_list() {
    let talk = talk_to("claude-saga-9", []);
    let error = talk.send().unwrap_err();
    assert!(error.message.ends_with("answered 404 (not found): model: claude-saga-9"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("`jaato model list` lists the models"));
}

#[test]
fn every_listed_option_is_accepted_by_its_models() {
    for model in MODELS {
        for options in [
            json!({ "max_output_tokens": 16 }),
            json!({ "max_output_tokens": 2_000, "effort": "max" }),
            json!({ "temperature": 1.0, "effort": "medium" }),
            json!({ "stop": ["END"], "tool_choice": "auto" }),
            json!({ "tool_choice": "none", "stream": false }),
            json!({ "output_schema": { "type": "object", "properties": {
                "n": { "type": "integer", "minimum": 1 } }, "required": ["n"] } }),
        ] {
            let talk = talk_to(model, [AnthropicTurn::text("a")]);
            let mut request = talk.request.clone();
            request.messages.push(Message::user("hi"));
            request.options = jaato_plugin_sdk::serde_json::from_value(options.clone()).unwrap();
            let result = talk.host.complete(&request).result;
            assert!(result.is_ok(), "{model} {options}: {result:?}");
        }
    }
}

#[test]
fn model_list_reports_context_windows_and_accepted_media() {
    let talk = talk_to("claude-opus-5-5", []);
    let models = talk.host.instance().unwrap().models().unwrap();
    let facts = |name: &str| {
        let info = models.iter().find(|info| info.name == name).unwrap();
        (info.context_limit, info.accepts.as_ref().map(Vec::len))
    };
    assert_eq!(facts("claude-opus-5-5"), (Some(1_000_000), Some(5)));
    assert_eq!(facts("claude-haiku-4-5"), (Some(200_000), Some(5)));
}
