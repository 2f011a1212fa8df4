//! A plugin of all kinds, built from the frozen sources of the boundary, on the present host.
//!
//! The copy is written by `cargo xtask freeze` until the tag `abi-1`; after it, it stays as it is.
//! The other way round, a plugin of today on a host of then, is what the older side of `boundaries`
//! stands for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use jaato_loader::{Instance, Library, describe};
use jaato_types::large::{LARGE, Large, LargeOf};
use jaato_types::{
    Completion, Data, Delta, Effort, ErrorKind, Frame, GcPlan, GcReason, GcRequest, Kind, Message,
    Opaque, Part, Request, Role, ToolCall, ToolChoice, ToolName, ToolResult, ToolSpec,
    ToolsChanged,
};
use serde_json::{Value, json};

use crate::support::*;

/// The built plugin.
fn frozen() -> PathBuf {
    static FROZEN: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin-api/testkit/fixtures/abi-1");
        let target = fixtures_target();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--offline", "--package", "frozen-1"]);
        cargo.arg("--manifest-path").arg(folder.join("Cargo.toml"));
        let status = cargo.arg("--target-dir").arg(&target).status();
        assert!(status.unwrap().success(), "the frozen sources do not build");
        target.join("debug").join(library_name("frozen_1"))
    };
    FROZEN.get_or_init(build).clone()
}

async fn instance(house: &House) -> Instance {
    let opened = Library::open(&frozen()).unwrap_or_else(|error| panic!("{error}"));
    house.instance(&opened, Some(json!(41))).await
}

#[test]
fn it_says_what_it_is() {
    let opened = Library::open(&frozen()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(opened.manifest().api, "1.0.0");
    assert_eq!(opened.manifest().kinds, [Kind::Tool, Kind::Provider, Kind::Gc]);
    let description = describe(&opened).unwrap();
    let tools: Vec<&str> = description.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["ask_frozen", "panic_frozen", "read_frozen", "wait_frozen"]);
    assert_eq!(description.provider.unwrap().name, "frozen");
    assert_eq!(description.commands[0].name, "frozen");
    assert_eq!(description.instructions.as_deref(), Some("Use what is frozen."));
}

#[tokio::test]
async fn its_tools_ask_services_read_streams_panic_and_are_cancelled() {
    let house = House::new();
    let instance = instance(&house).await;
    let echoed = json!({ "count": 42, "cancelled": false, "answer": { "moon": 1 } });
    assert_eq!(ask(&instance, "ask_frozen", json!({ "service": "echo" })).await, Ok(echoed));
    let unknown = ask(&instance, "ask_frozen", json!({ "service": "of the future" })).await;
    assert_eq!(unknown.unwrap()["answer"], "unknown_operation");
    let read = ask(&instance, "read_frozen", json!({ "service": "pieces" })).await;
    assert_eq!(read, Ok(json!({ "bytes": PIECES.iter().sum::<usize>() })));
    let error = ask(&instance, "panic_frozen", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PluginPanicked);
    assert!(error.message.contains("in the frozen fence"), "{error}");
    let mut waiting = call(&instance, "wait_frozen", json!({}));
    wait_for(&mut waiting, "waits").await;
    waiting.cancel();
    assert_eq!(guarded(waiting.answer()).await.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(guarded(instance.close()).await, Ok(Some(frame(&json!(43)))));
    drop(instance);
    house.nothing_lives();
}

#[tokio::test]
async fn its_provider_its_gc_and_its_command_answer() {
    let house = House::new();
    let instance = instance(&house).await;
    // What a newer host may say to it beside what it knows.
    let messages = json!([
        { "role": "user", "parts": [{ "type": "text", "text": "a" }, { "type": "smell", "of": 1 }] },
        { "role": "model", "parts": [{ "type": "text", "text": "b" }], "mood": "good" },
        { "role": "user", "parts": [{ "type": "text", "text": "c" }] },
    ]);
    let request = json!({ "v": 2, "model": "one", "messages": messages, "colour": "blue" });
    let mut call = instance.complete(frame(&json!(request)), services()).unwrap();
    let thought = guarded(call.next_emission()).await.unwrap();
    assert_eq!(Frame::read::<Delta>(&thought).unwrap(), Delta::thought("hm"));
    wait_for(&mut call, "3 messages, 42").await;
    let completion: Completion = Frame::read(&guarded(call.answer()).await.unwrap()).unwrap();
    assert_eq!(completion.parts[1], Part::text("3 messages, 42"));
    assert_eq!(completion.usage.total_tokens(), 3);
    let request = json!({
        "v": 2, "reason": "boredom", "messages": messages, "context_limit": 9, "total_tokens": 9,
    });
    let call = instance.plan(frame(&json!(request)), services()).unwrap();
    let plan: GcPlan = Frame::read(&guarded(call.answer()).await.unwrap()).unwrap();
    assert_eq!((plan.drop, plan.summary), (vec![0, 1], Some(Message::user("before"))));
    let command = frame(&json!({ "name": "frozen", "arguments": { "a": 1 } }));
    let call = instance.operation("command", command, services()).unwrap();
    let answer: Value = Frame::read(&guarded(call.answer()).await.unwrap()).unwrap();
    assert_eq!(answer, json!({ "command": "frozen", "arguments": { "a": 1 }, "count": 44 }));
    let call = instance.models(services()).unwrap();
    let models: Value = Frame::read(&guarded(call.answer()).await.unwrap()).unwrap();
    assert_eq!(models[0]["name"], "one");
    let unknown = instance.operation("of the future", Frame::empty(), services()).unwrap();
    let error = guarded(unknown.answer()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownOperation);
}

/// A history with everything that came after the first boundary, in each place where it may stand.
fn all_that_came_later() -> Vec<Message> {
    let signature = "s".repeat(1024 * 1024);
    let opaque = |provider: &str| {
        let item = json!({ "id": "rs_1" });
        let (provider, model) = (provider.to_owned(), "one".to_owned());
        Part::Opaque(Opaque { provider, model, item })
    };
    let mut call = ToolCall::new("1", "look", json!({ "at": "moon" }));
    call.signature = Some(signature.clone());
    let image = || Data { name: Some("moon.png".to_owned()), ..Data::blob("image/png", "00") };
    let attachments = vec![image()];
    let result = ToolResult { attachments, ..ToolResult::new("1", "look", Default::default()) };
    let later = ToolSpec { name: ToolName::from("later"), ..ToolSpec::default() };
    let removed = vec![ToolName::from("look")];
    let changed = ToolsChanged { added: vec![later], removed, ..ToolsChanged::default() };
    let parts = vec![Part::text("what is it?"), Part::Data(image()), Part::ToolsChanged(changed)];
    vec![
        Message { role: Role::User, parts, ..Message::default() },
        Message::model(vec![
            Part::thought("").signed(signature.as_str()),
            opaque("frozen"),
            opaque("another"),
            Part::text("").signed("t"),
            Part::text("a").signed("t"),
            Part::text("b"),
            Part::ToolCall(call),
        ]),
        Message::tool([result]),
        Message::model(vec![Part::text("the moon")]),
        Message::user("and now?"),
    ]
}

#[tokio::test]
async fn it_meets_all_that_came_later_at_once() {
    let house = House::new();
    let instance = instance(&house).await;
    let mut request = Request::new("one", all_that_came_later());
    request.tools = vec![ToolSpec { name: ToolName::from("look"), ..ToolSpec::default() }];
    let options = &mut request.options;
    options.max_output_tokens = Some(9);
    options.temperature = Some(0.5);
    options.stream = Some(false);
    options.effort = Some(Effort::High);
    options.tool_choice = Some(ToolChoice::Required);
    options.output_schema = Some(json!({ "type": "object" }));
    options.stop = vec!["END".to_owned()];
    options.seed = Some(7);
    options.session_key = Some("s1".to_owned());
    let mut call = instance.complete(frame(&json!(request)), services()).unwrap();
    let thought = guarded(call.next_emission()).await.unwrap();
    assert_eq!(Frame::read::<Delta>(&thought).unwrap(), Delta::thought("hm"));
    wait_for(&mut call, "5 messages, 42").await;
    let completion: Completion = Frame::read(&guarded(call.answer()).await.unwrap()).unwrap();
    // What it says is read as what it was then.
    assert_eq!(completion.parts[0], Part::thought("hm").signed("s"));
    assert_eq!(completion.parts[1], Part::text("5 messages, 42"));
    assert_eq!((completion.usage.cache_write_tokens, completion.usage.reasoning_tokens), (0, 0));
    assert_eq!(completion.usage.cost_micro_usd, None);

    let plan = GcRequest::new(GcReason::Manual, request.messages.clone());
    let call = instance.plan(frame(&json!(plan)), services()).unwrap();
    let plan: GcPlan = Frame::read(&guarded(call.answer()).await.unwrap()).unwrap();
    assert_eq!(plan.drop, [0, 1, 2, 3]);

    // It takes no more than a frame, and says so before it would read anything.
    for of in [LargeOf::Complete, LargeOf::Plan] {
        let asked = frame(&json!(Large::new(of, 9_000_000)));
        let call = instance.operation(LARGE, asked, services()).unwrap();
        let error = guarded(call.answer()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownOperation);
    }
}
