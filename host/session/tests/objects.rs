//! Objects that tools find: stored, sent to clients, shown to the model once, viewed again with a
//! tool.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_session::testing::{ScriptedGcAction, ScriptedProviderAction, ScriptedTool, TestStage};
use jaato_session::{Cancel, Session};
use jaato_types::objects::ObjectsAdd;
use jaato_types::{CompletionRequest, DataContent, Event, Output, Part};
use serde_json::{Map, Value, json};

fn object_map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Creates a tool that finds as many objects of the collection `of` as its argument `rows` says.
fn finder_tool() -> ScriptedTool {
    ScriptedTool::new("query", |call, scope| async move {
        let of = call.arguments["of"].clone();
        let rows = call.arguments["rows"].as_u64().unwrap();
        let objects = (0..rows).map(|row| object_map(json!({ "of": of, "row": row }))).collect();
        let metadata = object_map(json!({ "collection": of }));
        let text = Some(format!("{rows} rows"));
        let result = ObjectsAdd { objects, metadata, text, ..ObjectsAdd::default() };
        let changed = scope.objects.add_result("query", "query", result)?;
        Ok(Output::json(json!({ "found": changed.references })))
    })
}

/// Creates a tool that changes objects without an event.
fn remover_tool() -> ScriptedTool {
    ScriptedTool::new("forget", |_, scope| async move {
        scope.objects.with_objects(|objects| objects.remove("query", None))?;
        Ok(Output::json(json!({})))
    })
}

/// Returns the environment in a request's last message.
fn shown_objects(request: &CompletionRequest) -> Option<Value> {
    request.messages.last()?.parts.iter().find_map(|part| match part {
        Part::Data(data) => match &data.content {
            DataContent::Json { json, .. } => Some(json.clone()),
            _ => None,
        },
        _ => None,
    })
}

fn offered_tool_names(request: &CompletionRequest) -> Vec<&str> {
    request.tools.iter().map(|spec| spec.name.as_str()).collect()
}

async fn run_turn(session: &mut Session, prompt: &str) {
    session.run_turn(prompt, &Cancel::new()).await;
}

#[tokio::test(start_paused = true)]
async fn clients_get_mapped_object_fields_and_the_model_gets_all_fields() {
    let mapped = ScriptedTool::new("query", |_, scope| async move {
        let objects = vec![object_map(json!({ "name": "frog", "age": 2 }))];
        let mapping = [("title".to_owned(), "name".to_owned())].into();
        let result = ObjectsAdd { objects, mapping, ..ObjectsAdd::default() };
        scope.objects.add_result("query", "query", result)?;
        Ok(Output::json(json!({})))
    });
    let stage = TestStage::new([mapped]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call("1", "query", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("one")]);
    run_turn(&mut session, "find").await;
    let told = stage.events.events().into_iter().find_map(|event| match event {
        Event::ObjectsAdded { objects, .. } => Some(json!(objects)),
        _ => None,
    });
    assert_eq!(told, Some(json!([{ "title": "frog", "_REF_ID": "query_1" }])));
    let whole = json!({ "name": "frog", "age": 2, "_REF_ID": "query_1" });
    let shown = shown_objects(&stage.provider.requests()[1]).unwrap();
    assert_eq!(shown["environment"]["query"][0]["objects"], json!([whole]));
}

#[tokio::test(start_paused = true)]
async fn model_sees_new_objects_only_once() {
    let stage = TestStage::new([finder_tool(), remover_tool()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "query",
        json!({ "of": "pets", "rows": 2 }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::text("two, see query_2")]);
    run_turn(&mut session, "find pets").await;
    stage.provider.add_answer([ScriptedProviderAction::call(
        "2",
        "query",
        json!({ "of": "plants", "rows": 1 }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::text("one")]);
    run_turn(&mut session, "and plants").await;
    stage.provider.add_answer([ScriptedProviderAction::call("3", "forget", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("gone")]);
    run_turn(&mut session, "forget them").await;

    let requests = stage.provider.requests();
    let row = |of: &str, row: u64, n: u64| json!({ "of": of, "row": row, "_REF_ID": format!("query_{n}") });
    let item =
        |of: &str, objects: Value| json!({ "metadata": { "collection": of }, "objects": objects });
    assert_eq!(shown_objects(&requests[0]), None);
    let pets = json!([row("pets", 0, 1), row("pets", 1, 2)]);
    assert_eq!(
        shown_objects(&requests[1]),
        Some(json!({ "environment": { "query": [item("pets", pets)] } }))
    );
    assert_eq!(shown_objects(&requests[2]), None, "it was shown before");
    let plants = json!([row("plants", 0, 3)]);
    assert_eq!(
        shown_objects(&requests[3]),
        Some(json!({ "environment": { "query": [item("plants", plants)] } }))
    );
    let empty = json!({ "query": [item("pets", json!([])), item("plants", json!([]))] });
    assert_eq!(shown_objects(&requests[5]), Some(json!({ "environment": empty })));
    // Each request begins with the previous one.
    for pair in requests.windows(2) {
        let [before, after] = pair else { unreachable!() };
        assert!(after.messages.starts_with(&before.messages));
    }
}

#[tokio::test(start_paused = true)]
async fn clients_get_events_for_added_objects_only() {
    let stage = TestStage::new([finder_tool(), remover_tool()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "query",
        json!({ "of": "pets", "rows": 1 }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::call("2", "forget", json!({}))]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "find and forget").await;
    let events = stage.events.events();
    let told: Vec<&Event> =
        events.iter().filter(|event| matches!(event, Event::ObjectsAdded { .. })).collect();
    let expected = Event::ObjectsAdded {
        source: "query".into(),
        tool: "query".into(),
        name: None,
        metadata: object_map(json!({ "collection": "pets" })),
        objects: vec![object_map(json!({ "of": "pets", "row": 0, "_REF_ID": "query_1" }))],
        payload_type: None,
        text: Some("1 rows".into()),
    };
    assert_eq!(told, [&expected]);
    let at = |wanted: fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let result = at(|event| matches!(event, Event::ToolCallFinished { .. }));
    assert!(at(|event| matches!(event, Event::ObjectsAdded { .. })) < result, "at once");
}

#[tokio::test(start_paused = true)]
async fn empty_object_result_has_no_event_but_a_repeated_result_has() {
    let stage = TestStage::new([finder_tool()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    for (id, rows) in [("1", 0), ("2", 1), ("3", 1)] {
        let query = json!({ "of": "pets", "rows": rows });
        stage.provider.add_answer([ScriptedProviderAction::call(id, "query", query)]);
    }
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "find").await;
    let events = stage.events.events();
    let told = events.iter().filter_map(|event| match event {
        Event::ObjectsAdded { objects, .. } => Some(objects.clone()),
        _ => None,
    });
    let row = vec![object_map(json!({ "of": "pets", "row": 0, "_REF_ID": "query_1" }))];
    assert_eq!(told.collect::<Vec<_>>(), [row.clone(), row]);
}

#[tokio::test(start_paused = true)]
async fn view_environment_is_offered_once_objects_exist_and_filters_them() {
    let stage = TestStage::new([finder_tool()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "query",
        json!({ "of": "pets", "rows": 60 }),
    )]);
    let view = json!({ "tool_names": ["query"], "metadata_key": "collection", "metadata_value": "pets", "skip": 58 });
    stage.provider.add_answer([ScriptedProviderAction::call("2", "view_environment", view)]);
    let none = json!({ "tool_names": ["other"] });
    stage.provider.add_answer([ScriptedProviderAction::call("3", "view_environment", none)]);
    stage.provider.add_answer([ScriptedProviderAction::call(
        "4",
        "view_environment",
        json!({ "metadata_key": "x" }),
    )]);
    let null = json!({ "metadata_key": "collection", "metadata_value": null });
    stage.provider.add_answer([ScriptedProviderAction::call("5", "view_environment", null)]);
    stage.provider.add_answer([ScriptedProviderAction::call(
        "6",
        "view_environment",
        json!({ "skip": 1e25 }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::text("done")]);
    run_turn(&mut session, "find pets").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[0]), ["query"]);
    assert_eq!(offered_tool_names(&requests[1]), ["query", "view_environment"]);
    let result = |request: &CompletionRequest| {
        let message = request.messages.last().unwrap();
        Value::Object(message.tool_results().next().unwrap().content.clone())
    };
    let viewed = result(&requests[2]);
    let objects = viewed["environment"]["query"][0]["objects"].as_array().unwrap();
    assert_eq!((objects.len(), &objects[1]["_REF_ID"]), (2, &json!("query_60")));
    assert_eq!(viewed["total_objects"], 60);
    let expected = json!({
        "environment": {}, "total_objects": 0,
        "contents": { "query": [{ "metadata": { "collection": "pets" }, "objects": 60 }] },
    });
    assert_eq!(result(&requests[3]), expected);
    assert!(result(&requests[4]).to_string().contains("`metadata_key` without `metadata_value`"));
    assert_eq!(result(&requests[5])["total_objects"], 0, "null is a value");
    assert!(result(&requests[6]).to_string().contains("invalid_arguments"));
}

#[tokio::test(start_paused = true)]
async fn objects_removed_by_a_gc_are_shown_to_the_model_again() {
    let stage = TestStage::new([finder_tool()]);
    stage.gc.add_gc([ScriptedGcAction::drop_messages(0..4)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "query",
        json!({ "of": "pets", "rows": 1 }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::text("found")]);
    run_turn(&mut session, "find pets").await;
    stage.provider.add_answer([ScriptedProviderAction::text("yes")]);
    run_turn(&mut session, "good?").await;
    drop(session.collect_for_user(&Cancel::new()).await.unwrap());
    stage.provider.add_answer([ScriptedProviderAction::text("still there")]);
    run_turn(&mut session, "and now?").await;
    let requests = stage.provider.requests();
    assert_eq!(shown_objects(&requests[2]), None);
    assert!(shown_objects(&requests[3]).is_some(), "{:#?}", requests[3].messages);
}

#[tokio::test(start_paused = true)]
async fn objects_in_kept_messages_are_marked_outdated_after_a_gc() {
    let stage = TestStage::new([finder_tool()]);
    stage.gc.add_gc([ScriptedGcAction::drop_messages(0..2)]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("yes")]);
    run_turn(&mut session, "ready?").await;
    let arguments = json!({ "of": "pets", "rows": 1 });
    stage.provider.add_answer([ScriptedProviderAction::call("1", "query", arguments)]);
    stage.provider.add_answer([ScriptedProviderAction::text("found")]);
    run_turn(&mut session, "find pets").await;
    stage.provider.add_answer([ScriptedProviderAction::text("yes")]);
    run_turn(&mut session, "good?").await;
    drop(session.collect_for_user(&Cancel::new()).await.unwrap());
    stage.provider.add_answer([ScriptedProviderAction::text("still there")]);
    run_turn(&mut session, "and now?").await;
    let last = stage.provider.requests().pop().unwrap();
    let json = serde_json::to_string(&last.messages).unwrap();
    assert_eq!(json.matches("\"outdated\"").count(), 1, "{json}");
    assert_eq!(json.matches("\"environment\"").count(), 1, "{json}");
}

#[tokio::test(start_paused = true)]
async fn restored_session_keeps_its_objects() {
    let stage = TestStage::new([finder_tool()]);
    let mut session = stage.start(TestStage::setup()).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::call(
        "1",
        "query",
        json!({ "of": "pets", "rows": 1 }),
    )]);
    stage.provider.add_answer([ScriptedProviderAction::text("found")]);
    run_turn(&mut session, "find pets").await;
    let (saved, bytes) = session.objects().with_objects(|objects| objects.save());
    let stage = TestStage::new([finder_tool()]);
    let mut setup = TestStage::setup();
    let restored = jaato_objects::ObjectEnvironment::restore(&saved, &bytes).unwrap();
    setup.objects = jaato_session::InitialObjects::Own(restored);
    let mut session = stage.start(setup).unwrap();
    stage.provider.add_answer([ScriptedProviderAction::text("there they are")]);
    run_turn(&mut session, "which pets?").await;
    let requests = stage.provider.requests();
    assert_eq!(offered_tool_names(&requests[0]), ["query", "view_environment"]);
    assert_eq!(
        shown_objects(&requests[0]).unwrap()["environment"]["query"][0]["objects"][0]["_REF_ID"],
        "query_1"
    );
}
