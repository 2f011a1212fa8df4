//! Calls of the tools through the boundary.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::serde_json::{Value, json};
use jaato_plugin_sdk::types::{Delta, Error, ErrorKind};
use jaato_plugin_testkit::FakeHost;

fn todo_host() -> FakeHost {
    FakeHost::new(tool_todo::__jaato::MODULE)
}

#[track_caller]
fn call_tool(host: &FakeHost, name: &str, arguments: Value) -> Value {
    Value::Object(host.call(name, arguments).unwrap().content)
}

#[track_caller]
fn call_error(host: &FakeHost, name: &str, arguments: Value) -> Error {
    host.call(name, arguments).unwrap_err()
}

/// Creates a host with a plan to which the user has agreed.
#[track_caller]
fn host_with_plan(steps: &[&str]) -> FakeHost {
    let host = todo_host();
    call_tool(&host, "createPlan", json!({ "title": "Mend it", "steps": steps }));
    call_tool(&host, "startPlan", json!({}));
    host
}

fn set_step_status(host: &FakeHost, step: &str, status: &str) -> Value {
    call_tool(host, "setStepStatus", json!({ "step_id": step, "status": status }))
}

#[test]
fn a_preview_shows_the_proposed_plan_and_refuses_if_there_is_none() {
    let host = todo_host();
    let preview = || host.instance().unwrap().preview("startPlan", json!({})).unwrap();
    assert!(preview().refusal.is_some());
    call_tool(&host, "createPlan", json!({ "title": "Mend it", "steps": ["look"] }));
    assert!(preview().text.contains("1. pending: look"), "{:?}", preview());
    call_tool(&host, "startPlan", json!({}));
    let error = preview().refusal.unwrap();
    assert_eq!(error.message, "Plan already started. Proceed with setStepStatus.");
}

#[test]
fn plan_is_created_started_worked_through_and_completed() {
    let host = todo_host();
    let made =
        call_tool(&host, "createPlan", json!({ "title": "Mend it", "steps": ["look", "edit"] }));
    assert_eq!((&made["plan_id"], &made["status"]), (&json!("plan_1"), &json!("proposed")));
    assert_eq!(made["steps"][1]["step_id"], "step_2");
    let error =
        call_error(&host, "setStepStatus", json!({ "step_id": "step_1", "status": "failed" }));
    assert_eq!(error.message, "Plan not started. Call startPlan first to confirm the plan.");

    let begun = call_tool(&host, "startPlan", json!({}));
    assert_eq!(begun["message"], "Plan confirmed. You may proceed with execution.");
    let error = call_error(&host, "startPlan", json!({}));
    assert_eq!(error.message, "Plan already started. Proceed with setStepStatus.");

    let first = set_step_status(&host, "step_1", "in_progress");
    assert_eq!(first["instruction"], "Step is now in progress. Proceed immediately with: look");
    let first = set_step_status(&host, "1", "completed");
    let next = "Step completed. Proceed immediately to next step: edit";
    assert_eq!(first["instruction"], next);
    assert_eq!(
        first["progress"],
        json!({ "total": 2, "completed": 1, "failed": 0, "skipped": 0, "in_progress": 0,
                "pending": 1, "blocked": 0, "percent": 50.0 })
    );
    let error = call_error(&host, "createPlan", json!({ "title": "Again", "steps": ["x"] }));
    let text =
        "An active plan already exists: 'Mend it' (1 pending, 0 in progress). Do NOT recreate it.";
    assert_eq!(error.message, text);

    let last = set_step_status(&host, "step_2", "completed");
    assert_eq!(last["instruction"], "All steps are done. Call completePlan.");
    let over =
        call_tool(&host, "completePlan", json!({ "status": "completed", "summary": "mended" }));
    assert_eq!((&over["status"], &over["summary"]), (&json!("completed"), &json!("mended")));
    assert_eq!(over["progress"]["percent"], 100.0);
    let error = call_error(&host, "completePlan", json!({ "status": "failed" }));
    assert_eq!(error.message, "No active plan. Create a plan first with createPlan.");
    let again = call_tool(&host, "createPlan", json!({ "title": "Next", "steps": ["x"] }));
    assert_eq!(again["plan_id"], "plan_2");
}

#[test]
fn plan_that_was_never_started_can_only_be_cancelled() {
    let host = todo_host();
    call_tool(&host, "createPlan", json!({ "title": "Mend it", "steps": ["look"] }));
    let error = call_error(&host, "completePlan", json!({ "status": "completed" }));
    assert_eq!(error.message, "Cannot mark plan as 'completed' - plan was never started.");
    let over = call_tool(&host, "completePlan", json!({ "status": "cancelled" }));
    assert_eq!(over["status"], "cancelled");
}

#[test]
fn each_step_change_shows_the_whole_plan_to_the_user() {
    let host = host_with_plan(&["look", "edit"]);
    let step = json!({ "step_id": "step_1", "status": "completed" });
    let deltas = host.start("setStepStatus", step).unwrap().wait().deltas;
    let plan = deltas.into_iter().find_map(|delta| match delta {
        Delta::PlanChanged(plan) => Some(plan),
        _ => None,
    });
    let plan = json!(plan.unwrap());
    assert_eq!((&plan["title"], &plan["status"]), (&json!("Mend it"), &json!("active")));
    assert_eq!(plan["steps"][0]["status"], "completed");
    assert_eq!(plan["steps"][1]["status"], "pending");
    let shown = host.instance().unwrap().command("plan", json!({})).unwrap().content;
    let text = "Mend it (active)\n  1. completed: look\n  2. pending: edit";
    assert_eq!(shown["result"], text);
}

#[test]
fn step_waits_for_other_steps_and_receives_their_output() {
    let host = host_with_plan(&["build", "test"]);
    let waits = json!({
        "description": "publish",
        "depends_on": [{ "step_id": "step_1" }, { "agent_id": "main", "step_id": "step_2" }],
    });
    let added = call_tool(&host, "addDependentStep", waits);
    assert_eq!(added["message"], "Added 2 dependencies to new step (BLOCKED)");
    assert_eq!(added["blocked_by"], json!(["step_1", "step_2"]));
    let refusing = |arguments: Value| call_error(&host, "setStepStatus", arguments).message;
    let step = json!({ "step_id": "step_3", "status": "completed" });
    assert_eq!(refusing(step), "Step is blocked: step_3 waits for step_1, step_2");

    let output = json!({ "step_id": "step_1", "output": { "file": "a.tar" }, "result": "built" });
    let completed = call_tool(&host, "completeStepWithOutput", output);
    assert_eq!(
        (&completed["output"], &completed["result"]),
        (&json!({ "file": "a.tar" }), &json!("built"))
    );
    let blocked = call_tool(&host, "getBlockedSteps", json!({}));
    assert_eq!(blocked["blocked_steps"][0]["blocked_by"], json!(["step_2"]));
    let received = json!({ "step_1": { "file": "a.tar" } });
    assert_eq!(blocked["blocked_steps"][0]["received_outputs"], received);
    set_step_status(&host, "step_2", "completed");
    let begun = set_step_status(&host, "step_3", "in_progress");
    assert_eq!((&begun["status"], &begun["received_outputs"]), (&json!("in_progress"), &received));

    let circle = json!({ "description": "publish", "depends_on": [{ "step_id": "step_3" }] });
    let error = call_error(&host, "addDependentStep", circle);
    assert_eq!(error.message, "step_3 would wait for itself through step_3");
    let far =
        json!({ "description": "x", "depends_on": [{ "step_id": "s", "agent_id": "other" }] });
    assert_eq!(call_error(&host, "addDependentStep", far).kind, ErrorKind::NotFound);
    let status = call_tool(&host, "getPlanStatus", json!({}));
    assert_eq!(status["steps"].as_array().unwrap().len(), 3);
}

#[test]
fn existing_step_waits_and_continues_after_a_failed_or_skipped_one() {
    for how in ["failed", "skipped"] {
        let host = host_with_plan(&["build", "test", "publish"]);
        let waits = json!({ "step_id": "3", "provides": "url", "depends_on": [
            { "agent_id": "main", "step_id": "step_1", "plan_id": "plan_1" }, { "step_id": "2" },
        ] });
        let added = call_tool(&host, "addDependentStep", waits);
        assert_eq!(added["message"], "Added 2 dependencies to existing step (BLOCKED)");
        assert_eq!((&added["status"], &added["total_steps"]), (&json!("blocked"), &json!(3)));
        set_step_status(&host, "1", "completed");
        set_step_status(&host, "2", how);
        let status = call_tool(&host, "getPlanStatus", json!({}));
        assert_eq!(status["steps"][2]["not_completed"], json!(["step_2"]), "{how}");
        assert_eq!(set_step_status(&host, "3", "in_progress")["status"], "in_progress");
    }
    let host = host_with_plan(&["build"]);
    let wrong = |arguments| call_error(&host, "addDependentStep", arguments).message;
    let on = json!([{ "step_id": "1" }]);
    assert_eq!(wrong(json!({ "step_id": "zz", "depends_on": on })), "Step not found: zz");
    assert_eq!(wrong(json!({ "depends_on": on })), "step_id or description is required");
    let plan =
        json!({ "description": "x", "depends_on": [{ "step_id": "1", "plan_id": "plan_9" }] });
    assert_eq!(wrong(plan), "Plan not found: plan_9");
}

#[test]
fn plan_status_reports_times_and_the_current_step() {
    let host = host_with_plan(&["look", "edit"]);
    set_step_status(&host, "1", "in_progress");
    let status = || call_tool(&host, "getPlanStatus", json!({}));
    let now = status();
    let current = json!({ "step_id": "step_1", "sequence": 1, "description": "look" });
    assert_eq!((&now["current_step"], &now["completed_at"]), (&current, &Value::Null));
    assert!(now["created_at"].is_string() && now["started_at"].is_string(), "{now}");
    assert!(now["steps"][0]["started_at"].is_string(), "{now}");
    call_tool(&host, "completePlan", json!({ "status": "failed", "summary": "no time" }));
    let over = status();
    assert_eq!((&over["status"], &over["summary"]), (&json!("failed"), &json!("no time")));
    assert!(over["completed_at"].is_string(), "{over}");
    let events = call_tool(&host, "getTaskEvents", json!({}));
    assert_eq!(events["events"][0]["source_agent"], "main");
}

#[test]
fn plan_events_are_returned_on_request_and_to_subscribers() {
    let host = host_with_plan(&["look", "edit"]);
    let wanted = json!({ "event_types": ["step_completed"] });
    let subscribed = call_tool(&host, "subscribeToTasks", wanted);
    assert_eq!(subscribed["subscription_id"], "subscription_1");
    assert_eq!(set_step_status(&host, "step_1", "in_progress").get("task_events"), None);
    let told = set_step_status(&host, "step_1", "completed");
    assert_eq!(told["task_events"][0]["event_type"], "step_completed");
    assert_eq!(told["task_events"][0]["source_step_sequence"], 1);
    assert_eq!(set_step_status(&host, "step_2", "in_progress").get("task_events"), None);
    assert_eq!(call_tool(&host, "listSubscriptions", json!({}))["count"], 1);
    let ended = call_tool(&host, "unsubscribe", json!({ "subscription_id": "subscription_1" }));
    assert_eq!(ended["unsubscribed"], true);

    let all = call_tool(&host, "getTaskEvents", json!({ "limit": 0 }));
    let kinds: Vec<&str> = all["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    let expected =
        ["plan_created", "plan_started", "step_started", "step_completed", "step_started"];
    assert_eq!(kinds, expected);
    let newest = call_tool(&host, "getTaskEvents", json!({ "limit": 1 }));
    assert_eq!(newest["last_event_id"], all["last_event_id"]);
    let after = json!({ "after_event": all["events"][2]["event_id"], "limit": 20 });
    assert_eq!(call_tool(&host, "getTaskEvents", after)["count"], 2);
    let error = call_error(&host, "getTaskEvents", json!({ "timeout": 5 }));
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
    let none = json!({ "timeout": 0.01, "after_event": all["last_event_id"] });
    assert_eq!(call_tool(&host, "getTaskEvents", none)["count"], 0);
}

#[test]
fn saved_plan_is_restored_in_the_next_instance() {
    let host = host_with_plan(&["look", "edit"]);
    set_step_status(&host, "step_1", "completed");
    let saved = host.instance().unwrap().save().unwrap().unwrap();
    let next = host.create(Some(&saved)).unwrap();
    let status = next.call("getPlanStatus", json!({})).unwrap().content;
    assert_eq!(status["progress"]["completed"], 1);
}

#[test]
fn empty_or_oversized_plan_input_is_refused() {
    let host = todo_host();
    let create = |title: &str, steps: Vec<String>| {
        call_error(&host, "createPlan", json!({ "title": title, "steps": steps })).message
    };
    assert_eq!(create(" ", vec!["a".to_owned()]), "title is required");
    assert_eq!(create("x", Vec::new()), "steps must be a non-empty array");
    assert_eq!(create("x", vec![String::new()]), "description is required");
    let many = (0..10_000).map(|number| number.to_string()).collect();
    assert_eq!(create("x", many), "a plan has at most 500 steps");
    let long = create("x", vec!["a".repeat(5000)]);
    assert_eq!(long, "description has 5000 bytes, but the maximum is 4096");
    assert_eq!(call_error(&host, "getPlanStatus", json!({})).kind, ErrorKind::Unavailable);

    let host = host_with_plan(&["look"]);
    let error = call_error(&host, "setStepStatus", json!({ "step_id": "zz", "status": "failed" }));
    assert_eq!(error.message, "Step not found: zz");
    let output = json!({ "text": "a".repeat(70_000) });
    let error =
        call_error(&host, "completeStepWithOutput", json!({ "step_id": "1", "output": output }));
    assert!(error.message.contains("the maximum is 65536"), "{}", error.message);
    let error = call_error(&host, "getPlanStatus", json!({ "plan_id": "plan_9" }));
    assert_eq!(error.hint.as_deref(), Some("the plan of this session is plan_1"));
}

jaato_plugin_testkit::conformance!(tool_todo: tool);
