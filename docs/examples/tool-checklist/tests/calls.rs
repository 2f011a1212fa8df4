//! Tests of the tools on a host in memory: they share a list, which outlives its instance and stays
//! within its limit.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::json;
use jaato_plugin_testkit::FakeHost;

fn checklist_host() -> FakeHost {
    FakeHost::new(tool_checklist::__jaato::MODULE).with_config(json!({ "items_max": 2 }))
}

#[test]
fn tools_and_user_command_share_one_list() {
    let host = checklist_host();
    let instance = host.create(None).unwrap();
    instance.call("todo_add", json!({ "text": "build" })).unwrap();
    let added = instance.call("todo_add", json!({ "text": "test" })).unwrap();
    assert_eq!(json!(added.content), json!({ "number": 2, "open": 2 }));
    let done = instance.call("todo_done", json!({ "number": 1 })).unwrap();
    assert_eq!(json!(done.content), json!({ "done": "build", "open": 1 }));
    let shown = instance.command("todo", json!({})).unwrap();
    assert_eq!(shown.content["result"], "✓ 1. build\n· 2. test");
}

#[test]
fn a_list_outlives_its_instance() {
    let host = checklist_host();
    let instance = host.create(None).unwrap();
    instance.call("todo_add", json!({ "text": "build" })).unwrap();
    let saved = instance.close().unwrap();
    let next = host.create(saved.as_ref()).unwrap();
    let listed = next.call("todo_list", json!({})).unwrap();
    assert_eq!(listed.content["items"][0]["text"], "build");
    assert!(
        host.create(Some(&json!({ "items": "none" }))).is_err(),
        "what cannot be read is refused"
    );
}

#[test]
fn configured_item_limit_applies() {
    let host = checklist_host();
    let instance = host.create(None).unwrap();
    for text in ["build", "test"] {
        instance.call("todo_add", json!({ "text": text })).unwrap();
    }
    let full = instance.call("todo_add", json!({ "text": "rest" })).unwrap_err();
    assert_eq!(full.message, "the list is full: 2 items");
}
