//! Tests conversations with a strict fake, which refuses what the vendor refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{self, Map, Value, json};
use jaato_plugin_sdk::types::{DataPart, Effort, FinishReason, Message, Part, Role, ToolResult};
use jaato_vendors::openai::{FakeOpenAi, OpenAiAnswerPiece, OpenAiTurn};
use jaato_vendors::{ModelConversation, unusual_history};

/// Models that reason, and models that do not.
pub const MODELS: [&str; 5] = ["gpt-5.2", "gpt-5.3-codex", "gpt-5", "o4-mini", "gpt-4o"];

/// Starts a conversation with a model that gives these answers.
pub fn talk_to(
    model: &str,
    turns: impl IntoIterator<Item = OpenAiTurn>,
) -> ModelConversation<FakeOpenAi> {
    talk_with(model, json!({}), FakeOpenAi::new(turns))
}

/// Starts a conversation with a tool whose schema cannot be used in strict mode.
pub fn talk_with(model: &str, config: Value, vendor: FakeOpenAi) -> ModelConversation<FakeOpenAi> {
    let parameters = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
    let talk = ModelConversation::new(provider_openai::__jaato::MODULE, config, vendor, model);
    talk.with_tool("look", parameters)
}

/// Returns the items of the last accepted request.
pub fn last_input_items(talk: &ModelConversation<FakeOpenAi>) -> Vec<Value> {
    let body = talk.vendor.accepted_requests().pop().unwrap();
    body["input"].as_array().unwrap().clone()
}

pub fn thought_piece(text: &str) -> OpenAiAnswerPiece {
    OpenAiAnswerPiece::Reasoning(text.to_owned())
}

pub fn text_piece(text: &str) -> OpenAiAnswerPiece {
    OpenAiAnswerPiece::Text(text.to_owned())
}

pub fn phase_piece(phase: &str, text: &str) -> OpenAiAnswerPiece {
    OpenAiAnswerPiece::Phase(phase.to_owned(), text.to_owned())
}

pub fn call_piece(arguments: &str) -> OpenAiAnswerPiece {
    OpenAiAnswerPiece::Call("look".to_owned(), arguments.to_owned())
}

/// Returns three turns: reasoning between calls, some of it unreadable, and several results at
/// once.
pub fn example_turns() -> [OpenAiTurn; 5] {
    [
        OpenAiTurn::with_pieces([
            thought_piece("I should look."),
            phase_piece("commentary", "I look."),
            call_piece("{ \"at\": \"a\" }"),
            thought_piece(""),
            call_piece("{}"),
        ]),
        OpenAiTurn::with_pieces([thought_piece(""), call_piece("{\"at\":\"é\"}")]),
        OpenAiTurn::with_pieces([
            thought_piece("so"),
            phase_piece("final_answer", "It is full. \n"),
        ]),
        OpenAiTurn::with_pieces([thought_piece("again"), text_piece("You are welcome.")]),
        OpenAiTurn::text("Bye."),
    ]
}

/// Returns an item without its id and without the field that only the stream contains.
fn without_id(item: &Value) -> Value {
    let mut item = item.clone();
    let fields = item.as_object_mut().unwrap();
    fields.remove("id");
    fields.remove("status");
    item
}

#[test]
fn vendor_accepts_reasoning_and_calls_of_earlier_turns() {
    for model in MODELS {
        let efforts = match model {
            "gpt-4o" => vec![None],
            "gpt-5.2" => vec![None, Some(Effort::None), Some(Effort::Low), Some(Effort::Max)],
            _ => vec![None, Some(Effort::Low)],
        };
        for effort in efforts {
            for stream in [None, Some(false)] {
                let mut talk = talk_to(model, example_turns());
                talk.request.options.effort = effort;
                talk.request.options.stream = stream;
                talk.request.options.session_key = Some("s".repeat(99));
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
}

#[test]
fn items_are_sent_back_unchanged_in_order_without_their_ids() {
    let mut talk = talk_to("gpt-5.3-codex", example_turns().map(OpenAiTurn::with_other_ids));
    let first = talk.ask(Message::user("look"));
    talk.answer(&first);
    let items: Vec<Value> = last_input_items(&talk).iter().map(without_id).collect();
    let message = |phase: &str, text: &str| {
        json!({ "type": "message", "role": "assistant", "phase": phase,
            "content": [{ "type": "output_text", "annotations": [], "text": text }] })
    };
    let called = |id: &str, arguments: &str| json!({ "type": "function_call", "call_id": id, "name": "look", "arguments": arguments });
    let answered = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "{\"seen\":true}" });
    let reasoned = |number: u32, summary: Value| {
        let encrypted = format!("gAAAA-{number:04}-gpt-5.3-codex");
        json!({ "type": "reasoning", "summary": summary, "encrypted_content": encrypted })
    };
    let summary = json!([{ "type": "summary_text", "text": "I should look." }]);
    assert_eq!(
        items,
        [
            json!({ "type": "message", "role": "developer", "content": "Be brief." }),
            json!({ "type": "message", "role": "user", "content": "look" }),
            reasoned(1, summary),
            message("commentary", "I look."),
            called("call_0002", "{ \"at\": \"a\" }"),
            reasoned(3, json!([])),
            called("call_0004", "{}"),
            answered("call_0002"),
            answered("call_0004"),
        ]
    );
}

#[test]
fn chat_completions_is_used_if_settings_or_options_require_it() {
    for (config, options) in [
        (json!({ "api": "chat" }), json!({})),
        (json!({ "api": "chat" }), json!({ "stream": false, "session_key": "s" })),
        (json!({}), json!({ "seed": u64::MAX })),
    ] {
        for model in ["gpt-5.2", "o4-mini", "gpt-4o"] {
            let mut talk = talk_with(model, config.clone(), FakeOpenAi::new(example_turns()));
            talk.request.options = serde_json::from_value(options.clone()).unwrap();
            talk.request.options.max_output_tokens = Some(99);
            let first = talk.ask(Message::user("look"));
            let second = talk.answer(&first);
            let third = talk.answer(&second);
            assert_eq!(third.finish_reason, FinishReason::Stop);
            assert!(third.usage.prompt_tokens > 0);
            talk.ask(Message::user("bye"));
            let accepted = talk.vendor.accepted_requests();
            assert!(accepted.iter().all(|body| body["messages"].is_array()), "{model}");
            let role = if model == "gpt-4o" { "system" } else { "developer" };
            assert_eq!(accepted[0]["messages"][0]["role"], role);
        }
    }
}

#[test]
fn conversation_continues_in_the_other_protocol() {
    let mut talk = talk_to("gpt-5.2", example_turns());
    let first = talk.ask(Message::user("look"));
    talk.request.options.seed = Some(7);
    let second = talk.answer(&first);
    talk.request.options.seed = None;
    let third = talk.answer(&second);
    assert_eq!(third.finish_reason, FinishReason::Stop);
    let shapes: Vec<bool> =
        talk.vendor.accepted_requests().iter().map(|body| body["input"].is_array()).collect();
    assert_eq!(shapes, [true, false, true]);
}

#[test]
fn history_of_another_provider_is_accepted_by_openai() {
    for config in [json!({}), json!({ "api": "chat" })] {
        let turns = [
            OpenAiTurn::with_pieces([thought_piece("hm"), text_piece("a")]),
            OpenAiTurn::text("b"),
        ];
        let mut talk = talk_with("gpt-5.2", config, FakeOpenAi::new(turns));
        talk.request.messages = unusual_history();
        let image = Part::Data(DataPart::blob("image/png", "b"));
        talk.request.messages.last_mut().unwrap().parts.push(image);
        talk.ask(Message::user("and you?"));
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn images_and_files_are_sent_also_inside_tool_results() {
    for config in [json!({}), json!({ "api": "chat" })] {
        let turns = [
            OpenAiTurn::with_pieces([call_piece("{}")]),
            OpenAiTurn::text("A cat."),
            OpenAiTurn::text("Yes."),
        ];
        let mut talk = talk_with("gpt-5.2", config.clone(), FakeOpenAi::new(turns));
        let image = || DataPart::blob("image/png", "b-1");
        let file = || DataPart::blob("application/pdf", "b-2").with_name("cat.pdf");
        let parts = vec![Part::text("What is it?"), Part::Data(image()), Part::Data(file())];
        let first = talk.ask(Message { role: Role::User, parts, ..Message::default() });
        let id = first.parts.iter().find_map(Part::as_tool_call).unwrap().id.clone();
        let attachments = vec![image(), file(), DataPart::blob("audio/wav", "w")];
        let result = ToolResult { attachments, ..ToolResult::new(id, "look", Map::new()) };
        assert_eq!(talk.ask(Message::tool([result])).parts, [Part::text("A cat.")]);
        talk.ask(Message::user("sure?"));
        if config == json!({}) {
            let output = &last_input_items(&talk)[3]["output"];
            let kinds: Vec<&Value> =
                output.as_array().unwrap().iter().map(|piece| &piece["type"]).collect();
            assert_eq!(kinds, ["input_text", "input_image", "input_file", "input_text"]);
        }
    }
}

#[test]
fn every_listed_option_is_accepted_by_its_openai_models() {
    let strict = json!({ "type": "object", "properties": { "n": { "type": "integer" } },
        "required": ["n"], "additionalProperties": false });
    let open = json!({ "type": "object", "properties": { "n": {} } });
    for (model, options) in [
        ("gpt-5.2", json!({ "max_output_tokens": 1 })),
        ("gpt-5.2", json!({ "temperature": 0.5, "effort": "none" })),
        ("gpt-5.2", json!({ "effort": "max", "tool_choice": "required" })),
        ("gpt-5", json!({ "effort": "minimal", "tool_choice": "none" })),
        ("gpt-5.2", json!({ "output_schema": strict, "tool_choice": "auto" })),
        ("gpt-5.2", json!({ "output_schema": open })),
        ("gpt-4o", json!({ "temperature": 0.5, "seed": 7, "stop": ["END"] })),
        ("gpt-4o", json!({ "output_schema": open, "session_key": "s", "stream": false })),
    ] {
        for config in [json!({}), json!({ "api": "chat" })] {
            let talk = talk_with(model, config.clone(), FakeOpenAi::new([OpenAiTurn::text("a")]));
            let mut request = talk.request.clone();
            request.messages.push(Message::user("hi"));
            request.options = serde_json::from_value(options.clone()).unwrap();
            let result = talk.host.complete(&request).result;
            assert!(result.is_ok(), "{model} {options} {config}: {result:?}");
        }
    }
}

#[test]
fn openai_model_list_reports_context_windows_and_accepted_media() {
    let talk = talk_to("gpt-5.2", []);
    let models = talk.host.instance().unwrap().models().unwrap();
    let facts = |name: &str| {
        let info = models.iter().find(|info| info.name == name).unwrap();
        (info.context_limit, info.accepts.as_ref().map(Vec::len))
    };
    assert_eq!(facts("gpt-5.2"), (Some(272_000), Some(5)));
    assert_eq!(facts("gpt-4o"), (Some(128_000), Some(5)));
}
