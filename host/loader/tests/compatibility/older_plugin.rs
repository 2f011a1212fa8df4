//! Runs an old plugin, which writes the JSON of the first release manually, on the current host.

use jaato_loader::{Instance, describe_plugin};
use jaato_types::large::{LARGE, LargeRequest, LargeRequestKind};
use jaato_types::{
    Completion, CompletionRequest, DataPart, Effort, ErrorKind, Frame, GcPlan, GcReason, GcRequest,
    Message, OpaqueData, Part, PluginKind, Role, ToolCall, ToolChoice, ToolName, ToolResult,
    ToolSpec, ToolsChanged,
};
use serde_json::{Value, json};

use crate::support::*;

async fn create_instance(fixture: &LoaderFixture) -> Instance {
    fixture.create_instance(&open_fixture("older"), Some(json!(41))).await
}

#[test]
fn old_plugin_description_is_read() {
    let opened = open_fixture("older");
    assert_eq!(opened.manifest().api, "1.0.0");
    assert_eq!(opened.manifest().kinds, [PluginKind::Tool, PluginKind::Provider, PluginKind::Gc]);
    let description = describe_plugin(&opened).unwrap();
    assert_eq!(description.tools[0].name.as_str(), "count_bytes_echo");
    assert_eq!(description.provider.unwrap().name, "older");
}

#[tokio::test]
async fn old_plugin_tool_answers_and_unknown_operations_are_refused() {
    let fixture = LoaderFixture::new();
    let instance = create_instance(&fixture).await;
    let answer = run_call(&instance, "count_bytes_echo", json!({ "text": "moon" })).await;
    assert_eq!(answer, Ok(json!({ "bytes": 4 })));
    // It accepts no more than one frame.
    let large = json_frame(&json!(LargeRequest::new(LargeRequestKind::Complete, 9_000_000)));
    for (operation, asked) in [(LARGE, large), ("of the future", Frame::empty())] {
        let call = instance.begin_operation(operation, asked, test_services()).unwrap();
        assert_eq!(
            with_timeout(call.answer()).await.unwrap_err().kind,
            ErrorKind::UnknownOperation
        );
    }
    assert_eq!(with_timeout(instance.close()).await, Ok(None));
    drop(instance);
    fixture.assert_no_live_objects();
}

/// Returns a history with every kind of part, in each position that it may have.
fn message_with_every_part() -> Vec<Message> {
    let opaque = |provider: &str| {
        let item = json!({ "id": "rs_1" });
        let (provider, model) = (provider.to_owned(), "one".to_owned());
        Part::Opaque(OpaqueData { provider, model, item })
    };
    let mut call = ToolCall::new("1", "look", json!({ "at": "moon" }));
    call.signature = Some("s".repeat(1024 * 1024));
    let image =
        || DataPart { name: Some("moon.png".to_owned()), ..DataPart::blob("image/png", "00") };
    let attachments = vec![image()];
    let result = ToolResult { attachments, ..ToolResult::new("1", "look", Default::default()) };
    let later = ToolSpec { name: ToolName::from("later"), ..ToolSpec::default() };
    let removed = vec![ToolName::from("look")];
    let changed = ToolsChanged { added: vec![later], removed, ..ToolsChanged::default() };
    let parts = vec![Part::text("what is it?"), Part::Data(image()), Part::ToolsChanged(changed)];
    vec![
        Message { role: Role::User, parts, ..Message::default() },
        Message::model(vec![
            Part::thought("hm").with_signature("t"),
            opaque("older"),
            opaque("another"),
            Part::text("a").with_signature("t"),
            Part::ToolCall(call),
        ]),
        Message::tool([result]),
        Message::model(vec![Part::text("the moon")]),
        Message::user("and now?"),
    ]
}

#[tokio::test]
async fn old_provider_and_gc_ignore_unknown_fields() {
    let fixture = LoaderFixture::new();
    let instance = create_instance(&fixture).await;
    let mut request = CompletionRequest::new("one", message_with_every_part());
    request.tools = vec![ToolSpec { name: ToolName::from("look"), ..ToolSpec::default() }];
    request.options.effort = Some(Effort::High);
    request.options.tool_choice = Some(ToolChoice::Required);
    request.options.session_key = Some("s1".to_owned());
    let mut asked = json!(request);
    // A later host knows more fields.
    asked["v"] = json!(2);
    asked["colour"] = json!("blue");
    asked["messages"][0]["parts"][0]["mood"] = json!("good");
    asked["messages"][4]["parts"][0] = json!({ "type": "smell", "of": "roses" });
    let mut call = instance.begin_completion(json_frame(&asked), test_services()).unwrap();
    wait_for_output(&mut call, "5 messages").await;
    let completion: Completion = Frame::read(&with_timeout(call.answer()).await.unwrap()).unwrap();
    assert_eq!(completion.parts, [Part::text("5 messages")]);
    assert_eq!((completion.usage.total_tokens(), completion.usage.cost_micro_usd), (0, None));

    let plan = GcRequest::new(GcReason::Manual, request.messages);
    let call = instance.begin_plan(json_frame(&json!(plan)), test_services()).unwrap();
    let plan: GcPlan = Frame::read(&with_timeout(call.answer()).await.unwrap()).unwrap();
    assert_eq!((plan.drop, plan.summary), (vec![0, 1, 2, 3], None));

    let call = instance.begin_model_list(test_services()).unwrap();
    let models: Value = Frame::read(&with_timeout(call.answer()).await.unwrap()).unwrap();
    assert_eq!(models[0]["name"], "one");
}
