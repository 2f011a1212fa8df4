//! Tests the tools through the plugin boundary. Tasks of the fake host end as soon as they start.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Error, ErrorKind, Output};
use jaato_plugin_testkit::FakeHost;

fn background_host() -> FakeHost {
    FakeHost::new(tool_background::__jaato::MODULE).with_tool("make", |arguments| {
        if arguments["target"] == "broken" {
            return Err(Error::failed("no rule"));
        }
        Ok(Output::json(json!({ "stdout": "built\n", "returncode": 0, "files": 3 })))
    })
}

#[track_caller]
fn call_tool(host: &FakeHost, name: &str, arguments: Value) -> Value {
    Value::Object(host.call(name, arguments).unwrap().content)
}

#[test]
fn a_task_is_started_and_its_result_is_read() {
    let host = background_host();
    let started = call_tool(
        &host,
        "startBackgroundTask",
        json!({ "tool_name": "make", "arguments": { "target": "all" }, "timeout_seconds": 60 }),
    );
    assert_eq!((&started["success"], &started["task_id"]), (&json!(true), &json!("task_1")));
    assert!(started["message"].as_str().unwrap().contains("'task_1'"), "{started}");
    let read = call_tool(&host, "getBackgroundTask", json!({ "task_id": "task_1" }));
    assert_eq!((&read["status"], &read["returncode"]), (&json!("completed"), &json!(0)));
    assert_eq!(read["result"], json!({ "stdout": "built\n", "files": 3 }));
    assert_eq!((&read["has_more"], &read["tool_name"]), (&json!(false), &json!("make")));
}

#[test]
fn task_output_is_read_from_an_offset_or_as_a_tail() {
    let host = FakeHost::new(tool_background::__jaato::MODULE).with_tool("count", |_| {
        Ok(Output::json(json!({ "stdout": "1\n2\n3\n", "returncode": 0 })))
    });
    let instance = host.instance().unwrap();
    let call = |name: &str, arguments: Value| {
        Value::Object(instance.call(name, arguments).unwrap().content)
    };
    call("startBackgroundTask", json!({ "tool_name": "count", "arguments": {} }));
    let first = call(
        "getBackgroundTask",
        json!({ "task_id": "task_1", "until_end": true, "wait_seconds": "5" }),
    );
    assert_eq!(first["status"], "completed");
    let again = call("getBackgroundTask", json!({ "task_id": "task_1" }));
    assert_eq!((&again["stdout"], &again["stdout_offset"]), (&json!(""), &first["stdout_offset"]));
    let tail =
        call("getBackgroundTask", json!({ "task_id": "task_1", "stdout_offset": 0, "tail": 2 }));
    assert_eq!(tail["status"], "completed");
}

#[test]
fn a_task_that_failed_has_its_error_and_one_that_ended_is_not_cancelled() {
    let host = background_host();
    let arguments = json!({ "tool_name": "make", "arguments": { "target": "broken" } });
    call_tool(&host, "startBackgroundTask", arguments);
    let read = call_tool(&host, "getBackgroundTask", json!({ "task_id": "task_1" }));
    assert_eq!((&read["status"], &read["error"]["message"]), (&json!("failed"), &json!("no rule")));
    assert_eq!(read.get("result"), None);
    let ended = call_tool(&host, "cancelBackgroundTask", json!({ "task_id": "task_1" }));
    assert_eq!(ended, json!({ "task_id": "task_1", "cancelled": false }));
    assert_eq!(
        call_tool(&host, "listBackgroundTasks", json!({})),
        json!({ "count": 0, "tasks": [] })
    );
    let listed = host.instance().unwrap().command("tasks", json!({})).unwrap().content;
    assert!(listed["result"].as_str().unwrap().starts_with("task_1  make  failed"), "{listed:?}");
}

#[test]
fn unknown_tasks_and_tools_are_errors() {
    let host = background_host();
    let error = host.call("getBackgroundTask", json!({ "task_id": "zz" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert_eq!(error.hint.as_deref(), Some("`listBackgroundTasks` lists the running tasks"));
    let arguments = json!({ "tool_name": "fly", "arguments": {} });
    let error = host.call("startBackgroundTask", arguments).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownTool);
    let error =
        host.instance().unwrap().command("tasks", json!({ "action": "cancel" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    let capable = call_tool(&host, "listBackgroundCapableTools", json!({}));
    assert_eq!(
        capable,
        json!({ "count": 1, "tools": [{ "plugin_name": "fake", "tool_name": "make" }] })
    );
}

jaato_plugin_testkit::conformance!(tool_background: tool; |suite| suite.with_host(|host| {
    host.with_tool("cli_based_tool", |_| Ok(Output::json(json!({ "returncode": 0 }))))
}));
