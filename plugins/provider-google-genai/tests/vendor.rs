//! Conversations with a strict fake of the vendor, which refuses what the vendor refuses.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use jaato_plugin_sdk::Error;
use jaato_plugin_sdk::serde_json::{self, Value, json};
use jaato_plugin_sdk::types::service::BLOB_GET;
use jaato_plugin_sdk::types::{
    Completion, Data, Effort, FinishReason, Message, Part, Request, Role, ToolResult, ToolSpec,
};
use jaato_plugin_testkit::vendors::google::{Google, Said, Turn};
use jaato_plugin_testkit::{FakeHost, FakeStream, Reply};

/// Models that think, the newest first.
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

/// A conversation with a model.
pub struct Talk {
    pub request: Request,
    pub vendor: Arc<Google>,
    pub host: FakeHost,
}

impl Talk {
    /// Begins with a model of AI Studio that gives these answers.
    pub fn new(model: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::with(model, json!({}), Google::new(turns))
    }

    pub fn with(model: &str, config: Value, vendor: Google) -> Self {
        let vendor = Arc::new(vendor);
        let answering = Arc::clone(&vendor);
        let host = FakeHost::new(provider_google_genai::__jaato::MODULE)
            .with_config(config)
            .with_http(move |request| answering.answer_plugin(request))
            .with_service(BLOB_GET, |_| {
                let head = json!({ "mime_type": "image/png", "bytes": 3 });
                Ok(Reply::StreamWith(head, FakeStream::of([vec![1, 2, 3]])))
            });
        let mut request = Request::new(model, Vec::new());
        request.system = "Be brief.".to_owned();
        request.tools = vec![tool("look")];
        Self { request, vendor, host }
    }

    /// Says something, and keeps what the model answers.
    #[track_caller]
    pub fn ask(&mut self, message: Message) -> Completion {
        self.request.messages.push(message);
        let completion = self.send().unwrap_or_else(|error| panic!("{error}"));
        self.request.messages.push(Message::model(completion.parts.clone()));
        completion
    }

    pub fn send(&self) -> Result<Completion, Error> {
        self.host.complete(&self.request).result
    }

    /// Answers all calls of an answer.
    #[track_caller]
    pub fn answer(&mut self, completion: &Completion) -> Completion {
        self.ask(Message::tool(results(completion)))
    }
}

pub fn results(completion: &Completion) -> Vec<ToolResult> {
    let calls = completion.parts.iter().filter_map(Part::as_tool_call);
    let result = |call: &jaato_plugin_sdk::types::ToolCall| {
        let content = json!({ "seen": true }).as_object().unwrap().clone();
        ToolResult::new(call.id.clone(), call.name.clone(), content)
    };
    calls.map(result).collect()
}

pub fn tool(name: &str) -> ToolSpec {
    let properties = json!({
        "at": { "type": "string", "minLength": 1, "description": "Where." },
        "how": { "anyOf": [{ "$ref": "#/$defs/How" }, { "type": "null" }] },
        "deep": { "type": ["integer", "null"], "format": "uint8", "exclusiveMinimum": 0 },
    });
    ToolSpec {
        name: name.into(),
        description: "Looks.".to_owned(),
        parameters: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "$defs": { "How": { "oneOf": [{ "const": "near" }, { "const": "far" }] } },
            "additionalProperties": false,
        }),
        ..ToolSpec::default()
    }
}

pub fn thought(text: &str) -> Said {
    Said::Thought(text.to_owned())
}

pub fn text(text: &str) -> Said {
    Said::Text(text.to_owned())
}

pub fn call(input: Value) -> Said {
    Said::Call("look".to_owned(), input)
}

/// Three turns: thoughts before calls, several calls at once, a text that ends with a signature.
pub fn turns() -> [Turn; 5] {
    [
        Turn::says([
            thought("I should look."),
            text("I look."),
            call(json!({ "at": "a" })),
            call(json!({})),
        ]),
        Turn::says([thought("Again."), call(json!({ "at": "é" }))]),
        Turn::says([thought("so"), text("one"), text("two \n")]),
        Turn::says([thought("again"), text("You are welcome.")]),
        Turn::text("Bye."),
    ]
}

#[test]
fn thoughts_and_calls_of_several_turns_are_taken_back() {
    for model in MODELS {
        for effort in [None, Some(Effort::None), Some(Effort::Low), Some(Effort::Max)] {
            for stream in [None, Some(false)] {
                let mut talk = Talk::new(model, turns());
                talk.request.options.effort = effort;
                talk.request.options.stream = stream;
                let first = talk.ask(Message::user("look"));
                assert_eq!(first.finish_reason, FinishReason::ToolUse, "{model} {effort:?}");
                let second = talk.answer(&first);
                let third = talk.answer(&second);
                assert_eq!(third.finish_reason, FinishReason::Stop);
                talk.ask(Message::user("thanks"));
                talk.ask(Message::user("bye"));
                let sent = talk.vendor.accepted();
                assert_eq!(sent.len(), 5, "{model} {effort:?}");
                // Nothing stands for a signature where there was one.
                assert!(!sent[4].to_string().contains("skip_thought"), "{model} {effort:?}");
            }
        }
    }
}

#[test]
fn models_that_do_not_think_are_spoken_with_alike() {
    let mut talk = Talk::new("gemini-2.0-flash", turns());
    let first = talk.ask(Message::user("look"));
    let second = talk.answer(&first);
    talk.answer(&second);
    let mut open = Talk::new("gemma-3-27b-it", [Turn::text("a"), Turn::text("b")]);
    open.request.tools.clear();
    open.ask(Message::user("hi"));
    open.ask(Message::user("and you?"));
}

#[test]
fn the_signature_at_the_end_of_a_text_is_kept_and_sent() {
    let mut talk = Talk::new("gemini-4-argon", [Turn::text("hello"), Turn::text("bye")]);
    let first = talk.ask(Message::user("hi"));
    let [said, end] = first.parts.as_slice() else { panic!("{:?}", first.parts) };
    assert_eq!((said, end.signature().is_some()), (&Part::text("hello"), true));
    talk.ask(Message::user("bye"));
    let sent = talk.vendor.accepted()[1]["contents"][1]["parts"].clone();
    assert_eq!(sent[1]["thoughtSignature"], json!(end.signature()));
}

#[test]
fn a_signature_that_was_touched_is_refused_and_says_so() {
    for model in ["gemini-4-argon", "gemini-2.5-flash"] {
        let mut talk = Talk::new(model, turns());
        let first = talk.ask(Message::user("look"));
        let place = talk.request.messages[1].parts.iter_mut().find_map(|part| match part {
            Part::ToolCall(call) => call.signature.as_mut(),
            _ => None,
        });
        place.unwrap().push('x');
        talk.request.messages.push(Message::tool(results(&first)));
        let error = talk.send().unwrap_err();
        assert!(error.message.contains("Corrupted thought signature"), "{error}");
    }
}

#[test]
fn a_history_whose_signatures_the_host_took_out_is_taken() {
    for model in MODELS {
        let mut talk = Talk::new(model, turns());
        let first = talk.ask(Message::user("look"));
        // As at a cut in the middle of a turn.
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
fn a_history_that_another_provider_made_is_taken() {
    for model in MODELS {
        let mut talk = Talk::new(model, [Turn::says([thought("hm"), text("a")]), Turn::text("b")]);
        let call = |id: &str, arguments: Value| {
            Part::ToolCall(jaato_plugin_sdk::types::ToolCall::new(id, "run.it", arguments))
        };
        let long = "fc_".repeat(150);
        talk.request.messages = vec![
            Message::user("go"),
            Message::model(vec![
                Part::thought("unsigned"),
                Part::text(""),
                call("call_1|fc_1", json!("{\"x\": tru")),
                call("call_1|fc_2", json!(null)),
                call(&long, json!({})),
            ]),
            Message::tool(
                ["call_1|fc_2", "call_1|fc_1", &long]
                    .map(|id| ToolResult::new(id, "run.it", Default::default())),
            ),
            Message::model(vec![Part::thought("only this")]),
            Message::user(" \n"),
            Message::model(vec![Part::text("done ")]),
        ];
        talk.ask(Message::user("and you?"));
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn an_image_is_seen_also_inside_a_result() {
    for model in MODELS {
        let looked = Turn::says([thought("hm"), call(json!({})), call(json!({ "at": "b" }))]);
        let mut talk = Talk::new(model, [looked, Turn::text("A cat."), Turn::text("Yes.")]);
        let image = || Data::blob("image/png", "b-1");
        let parts = vec![
            Part::text("What is it?"),
            Part::Data(image()),
            Part::Data(Data::blob("application/pdf", "b-2").named("cat.pdf")),
        ];
        let first = talk.ask(Message { role: Role::User, parts, ..Message::default() });
        let mut results = results(&first);
        results[0].attachments = vec![image(), Data::blob("image/heic", "b-3")];
        results[1].is_error = true;
        talk.ask(Message::tool(results));
        talk.ask(Message::user("sure?"));
    }
}

#[test]
fn every_listed_option_is_taken_by_the_models_that_say_so() {
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
                let mut talk = Talk::new(model, [Turn::text("a")]);
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
fn a_gateway_of_older_words_is_spoken_with_too() {
    for model in MODELS {
        let mut talk = Talk::with(model, json!({}), Google::new(turns()).without_json_schema());
        let first = talk.ask(Message::user("look"));
        let second = talk.answer(&first);
        talk.answer(&second);
        talk.request.tools.clear();
        talk.request.options.output_schema = Some(tool("x").parameters);
        talk.ask(Message::user("as JSON"));
    }
}

#[test]
fn what_was_sent_is_read_from_the_cache() {
    let mut talk = Talk::new("gemini-4-argon", turns());
    talk.request.system = "word ".repeat(2_000);
    let first = talk.ask(Message::user("look"));
    assert_eq!(first.usage.cached_tokens, 0);
    let before = first.usage.prompt_tokens;
    let second = talk.answer(&first);
    // All but the brackets at the end of the first body.
    assert!(second.usage.cached_tokens + 1 >= before, "{:?} {before}", second.usage);
    assert!(second.usage.prompt_tokens > second.usage.cached_tokens);
    assert!(first.usage.reasoning_tokens > 0);
}

#[test]
fn the_list_of_models_tells_windows_and_what_they_look_at() {
    let talk = Talk::new("gemini-4-argon", []);
    let models = talk.host.instance().unwrap().models().unwrap();
    let facts = |name: &str| {
        let info = models.iter().find(|info| info.name == name)?;
        Some((info.context_limit, info.accepts.as_ref().map(Vec::len)))
    };
    assert_eq!(facts("gemini-4-argon"), Some((Some(1_048_576), Some(6))));
    assert_eq!(facts("gemma-3-27b-it"), Some((Some(131_072), Some(5))));
    assert_eq!(facts("gemini-embedding-001"), None);
}
