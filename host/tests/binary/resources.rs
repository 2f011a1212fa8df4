//! Tests resources of a session's environment: who closes them, in which order, who creates and who
//! shares them.

use std::fs;
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, EventSink, Session};
use jaato_runtime::types::{EventEnvelope, ToolName};
use jaato_runtime::{Runtime, SessionOptions};
use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::embedded::read_setup;
use crate::support::{House, Output, fixture};

/// Returns an installation with an environment, a plugin that keeps resources, and one that calls
/// services.
fn set_up_house(making_ms: u64, failures: u64) -> Option<House> {
    let house = house_with_cli()?;
    house.ship(&fixture("asks"));
    house.ship(&fixture("keeps"));
    let file = house.path().join("notes").display().to_string();
    house.configure_more(&format!(
        "[plugins.fixture-keeps]\nfile = {file:?}\nmaking_ms = {making_ms}\nfailures = {failures}\n"
    ));
    Some(house)
}

/// Returns the plugin's notes.
fn read_notes(house: &House) -> Vec<String> {
    let text = fs::read_to_string(house.path().join("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn call_line(tool: &str, arguments: Value) -> String {
    json!({ "tool": tool, "args": arguments }).to_string()
}

fn service_call_line(operation: &str, request: Value) -> String {
    call_line("ask_service", json!({ "operation": operation, "request": request }))
}

fn call_with_name(name: &str) -> Value {
    json!({ "name": name })
}

/// Runs calls in one session.
#[track_caller]
fn run_batch(house: &House, lines: &[String]) -> Output {
    house.command(&["call", "--batch"]).input(lines.join("\n")).run()
}

#[track_caller]
fn line_answer(line: &Value) -> &Value {
    assert!(line.get("error").is_none(), "{line}");
    &line["result"]["answer"]
}

#[test]
fn resources_are_closed_in_reverse_order_before_their_plugins() {
    let Some(house) = set_up_house(0, 0) else { return };
    let keep =
        |(name, manner)| call_line("keep_counter", json!({ "name": name, "manner": manner }));
    let all = [("a", ""), ("b", "fails"), ("c", "panics"), ("d", "hangs"), ("e", "")];
    let told = run_batch(&house, &all.map(keep));
    assert!(told.json_lines().iter().all(|line| line["result"]["count"] == 1), "{told}");
    let expected = ["closed e", "closed d", "closed c", "closed b", "closed a"];
    assert_eq!(read_notes(&house)[..5], expected);
    assert_eq!(read_notes(&house)[5], "instance closed", "the plugin is closed last");
    let of = |name: &str| format!("the resource `{name}` of plugin `fixture-keeps` was not closed");
    for (name, why) in [("b", "it is stuck"), ("c", "it is broken"), ("d", "more than 2000 ms")] {
        let is_it = |line: &str| line.contains(&of(name)) && line.contains(why);
        assert!(told.stderr.lines().any(is_it), "{name}: {told}");
    }
    assert!(!told.stderr.contains(&of("a")) && !told.stderr.contains(&of("e")), "{told}");
    house.assert_no_processes();
}

#[test]
fn another_plugin_can_find_call_and_close_resources_by_name() {
    let Some(house) = set_up_house(0, 0) else { return };
    let told = run_batch(
        &house,
        &[
            service_call_line("resources.get", call_with_name("a")),
            call_line("keep_counter", call_with_name("a")),
            call_line("keep_counter", call_with_name("b")),
            service_call_line("resources.get", call_with_name("a")),
            service_call_line(
                "resources.call",
                json!({ "name": "a", "operation": "count", "arguments": { "by": 5 } }),
            ),
            call_line("read_counter", call_with_name("a")),
            service_call_line("resources.call", json!({ "name": "a", "operation": "fly" })),
            service_call_line("resources.list", Value::Null),
            service_call_line("resources.remove", call_with_name("a")),
            service_call_line("resources.remove", call_with_name("a")),
            call_line("read_counter", call_with_name("a")),
            service_call_line("resources.call", json!({ "name": "a", "operation": "count" })),
        ],
    );
    let told = told.json_lines();
    let facts = |name: &str| {
        let about = format!("counts for `{name}`");
        json!({ "name": name, "plugin": "fixture-keeps", "kind": "counter", "about": about })
    };
    assert_eq!(line_answer(&told[0]), &Value::Null);
    assert_eq!(line_answer(&told[3]), &facts("a"));
    assert_eq!(line_answer(&told[4]), 6);
    assert_eq!(told[5]["result"]["count"], 6);
    assert_eq!(told[6]["error"]["kind"], "unknown_operation");
    assert_eq!(line_answer(&told[7]), &json!([facts("a"), facts("b")]));
    assert_eq!(line_answer(&told[8]), &json!({ "found": true }));
    assert_eq!(line_answer(&told[9]), &json!({ "found": false }));
    assert_eq!(told[10]["result"]["count"], Value::Null);
    assert_eq!(told[11]["error"]["kind"], "not_found");
    assert_eq!(read_notes(&house), ["closed a", "closed b", "instance closed"]);
}

#[test]
fn setting_a_resource_name_again_closes_the_previous_resource() {
    let Some(house) = set_up_house(0, 0) else { return };
    let told = run_batch(
        &house,
        &[
            call_line("keep_counter", json!({ "name": "a", "manner": "fails" })),
            call_line("keep_counter", json!({ "name": "a", "manner": "fails" })),
            call_line("drop_counter", call_with_name("a")),
            call_line("drop_counter", call_with_name("a")),
        ],
    );
    let told = told.json_lines();
    assert_eq!((&told[0]["result"]["count"], &told[1]["result"]["count"]), (&json!(1), &json!(1)));
    assert!(told[2]["error"]["message"].as_str().unwrap().ends_with("it is stuck"), "{}", told[2]);
    assert_eq!(told[3]["result"]["found"], false);
    assert_eq!(read_notes(&house), ["closed a", "closed a", "instance closed"]);
}

#[test]
fn resource_factory_is_found_by_name_and_retried_after_a_failure() {
    let Some(house) = set_up_house(0, 1) else { return };
    let create = || service_call_line("resources.get_or_create", call_with_name("made"));
    let told = run_batch(
        &house,
        &[
            create(),
            service_call_line("resources.get", call_with_name("made")),
            create(),
            create(),
            service_call_line("resources.get_or_create", call_with_name("moon")),
        ],
    );
    let told = told.json_lines();
    assert_eq!(told[0]["error"]["message"], "not yet");
    assert_eq!(line_answer(&told[1]), &Value::Null);
    assert_eq!(line_answer(&told[2])["plugin"], "fixture-keeps");
    assert_eq!(line_answer(&told[2]), line_answer(&told[3]));
    assert_eq!(told[4]["error"]["kind"], "not_found");
    let expected = ["making made", "making made", "closed made", "instance closed"];
    assert_eq!(read_notes(&house), expected);
}

#[test]
fn resource_name_has_one_type_and_another_type_conflicts() {
    let Some(house) = set_up_house(0, 0) else { return };
    let told = run_batch(
        &house,
        &[
            call_line("keep_counter", call_with_name("c")),
            call_line("nest_counter", call_with_name("c")),
        ],
    );
    let error = &told.json_lines()[1]["error"];
    let types = "the resource `c` is a `fixture_keeps::CounterResource`, \
                 not a `fixture_keeps::NestedResource`";
    assert_eq!((&error["kind"], &error["message"]), (&json!("conflict"), &json!(types)));
}

#[test]
fn resource_lost_with_its_worker_is_reported_and_created_again() {
    let Some(house) = set_up_house(0, 0) else { return };
    house.isolate_plugin("*");
    let create = || service_call_line("resources.get_or_create", call_with_name("made"));
    let call = |operation| {
        service_call_line("resources.call", json!({ "name": "made", "operation": operation }))
    };
    let told = run_batch(
        &house,
        &[
            create(),
            call("abort"),
            call("count"),
            service_call_line("resources.get", call_with_name("made")),
            create(),
            call("count"),
        ],
    );
    let lines = told.json_lines();
    assert_eq!(lines[1]["error"]["kind"], "plugin_crashed");
    assert_eq!(lines[2]["error"]["kind"], "plugin_crashed");
    let text = lines[2]["error"]["message"].as_str().unwrap();
    assert!(text.contains("the resource `made` of plugin `fixture-keeps` was lost"), "{text}");
    assert_eq!(line_answer(&lines[3]), &Value::Null);
    assert_eq!(line_answer(&lines[5]), 1, "a new counter starts at one");
    house.assert_no_processes();
}

/// Ignores all events.
struct QuietEventSink;

impl EventSink for QuietEventSink {
    fn receive_event(&self, _envelope: EventEnvelope) {}
}

/// Calls a tool in an embedder's session.
async fn call_tool(session: &Session, tool: &str, arguments: Value) -> Value {
    let output = session.run_user_call(&ToolName::from(tool), arguments, &Cancel::new()).await;
    Value::Object(output.unwrap_or_else(|error| panic!("{tool}: {error}")).content)
}

fn begin_session(runtime: &Runtime) -> Session {
    let mut options = SessionOptions::unattended(Arc::new(QuietEventSink));
    options.allow_all = true;
    runtime.open_session_for_calls(options).unwrap()
}

fn create_call() -> Value {
    json!({ "operation": "resources.get_or_create", "request": { "name": "made" } })
}

#[test]
fn concurrent_requests_create_a_resource_only_once() {
    let Some(house) = set_up_house(100, 0) else { return };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = Runtime::start(read_setup(&house)).await;
        let session = begin_session(&runtime);
        let (first, second) = tokio::join!(
            call_tool(&session, "ask_service", create_call()),
            call_tool(&session, "ask_service", create_call()),
        );
        assert_eq!(first, second);
        let once = || call_tool(&session, "keep_counter", json!({ "name": "own", "once": true }));
        let (first, second) = tokio::join!(once(), once());
        let counts = [first, second].map(|it| it["count"].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), 3, "both calls use one counter");
        assert_eq!(read_notes(&house), ["making made", "making own"]);
        runtime.close_session(session.id()).await;
        assert_eq!(read_notes(&house)[2..], ["closed own", "closed made", "instance closed"]);
        assert_eq!(runtime.close().await.resources, Vec::<String>::new());
    });
    house.assert_no_processes();
}
