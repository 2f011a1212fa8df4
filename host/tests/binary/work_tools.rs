//! Tests tools for work at a user's terminal: a plan is agreed to and executed, a question, a
//! program in the background, an exact sum.

use serde_json::{Value, json};

use crate::support::cli::{disable_shipped_rules, house_with_cli};
use crate::support::{Command, House, fixtures, library_name};
use crate::terminal::run_on_terminal;

fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for name in ["tool_todo", "tool_clarification", "tool_background", "tool_calculator"] {
        house.ship(&plugins.join(library_name(name)));
    }
    Some(house)
}

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn work_script() -> Value {
    let questions = json!([
        { "text": "Which colour?", "choices": ["red", "blue"] },
        { "text": "What is it called?" },
    ]);
    json!({ "answers": [
        { "steps": [
            tool_call("createPlan", json!({ "title": "A page", "steps": ["ask", "serve"] })),
        ] },
        {
            "expect": { "tool_result": "\"plan_id\":\"plan_1\"" },
            "steps": [tool_call("startPlan", json!({}))],
        },
        {
            "expect": { "tool_result": "\"confirmed\":true" },
            "steps": [tool_call("request_clarification", json!({
                "context": "The page", "questions": questions,
            }))],
        },
        {
            "expect": {
                "tool_result": "\"1\":{\"selected\":2,\"text\":\"blue\",\"type\":\"single_choice\"}",
            },
            "steps": [tool_call("setStepStatus", json!({
                "step_id": "step_1", "status": "completed", "result": "blue",
            }))],
        },
        {
            "expect": { "tool_result": "Proceed immediately to next step: serve" },
            "steps": [tool_call("startBackgroundTask", json!({
                "tool_name": "cli_based_tool",
                "arguments": { "command": "echo ready; sleep 300" },
            }))],
        },
        {
            "expect": { "tool_result": "\"task_id\":\"task_1\"" },
            "steps": [tool_call("getBackgroundTask", json!({ "task_id": "task_1", "wait_seconds": 30 }))],
        },
        {
            "expect": { "tool_result": "\"stdout\":\"ready\\n\",\"stdout_offset\":6" },
            "steps": [tool_call("cancelBackgroundTask", json!({ "task_id": "task_1" }))],
        },
        {
            "expect": { "tool_result": "\"cancelled\":true" },
            "steps": [tool_call("calculate", json!({ "expression": "0.1 + 0.2" }))],
        },
        {
            "expect": { "tool_result": "\"result\":\"0.3\"" },
            "steps": [tool_call(
                "completePlan",
                json!({ "status": "completed", "summary": "served" }),
            )],
        },
        { "steps": [{ "text": "The page is there." }] },
    ] })
}

fn with_xterm(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

#[test]
fn plan_with_a_question_and_a_background_task_is_approved_and_executed() {
    let Some(house) = set_up_house() else { return };
    disable_shipped_rules(&house);
    house.set_script(&work_script());
    let Some(mut running) = run_on_terminal(&house, "run 'make a page'", with_xterm) else {
        return;
    };
    // The prompt shows the plan.
    running.wait_for_text("1. ask");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("Which colour?");
    running.wait_for_question();
    running.write(b"2\n");
    running.wait_for_text("What is it called?");
    running.wait_for_question();
    running.write(b"Moons\n");
    running.wait_for_text("[x] ask: blue");
    // The prompt shows the program's name.
    running.wait_for_text("echo ready; sleep 300");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("A page: completed (1 of 2 steps done)");
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("The page is there."), "{output}");
    // The drawn plan and the answered form have shown these results.
    for repeated in ["plan_id", "completed_at", "instruction", "responses"] {
        assert!(!output.stdout.contains(repeated), "{repeated}: {output}");
    }
    house.assert_no_processes();
}

#[test]
fn plan_starts_and_questions_return_at_once_without_a_user() {
    let Some(house) = set_up_house() else { return };
    let questions = json!([{ "text": "Which colour?" }]);
    house.set_script(&json!({ "answers": [
        { "steps": [tool_call("createPlan", json!({ "title": "A page", "steps": ["ask"] }))] },
        { "steps": [tool_call("startPlan", json!({}))] },
        {
            "expect": { "tool_result": "no user was available to approve" },
            "steps": [tool_call("request_clarification", json!({
                "context": "The page", "questions": questions,
            }))],
        },
        {
            "expect": { "tool_result": "No one can answer" },
            "steps": [{ "text": "I will do it in blue." }],
        },
    ] }));
    let output = house.command(&["run", "make a page"]).no_input().run();
    assert_eq!(output.stdout, "I will do it in blue.\n", "{output}");
}

#[test]
fn plan_events_contain_the_complete_plan() {
    let Some(house) = set_up_house() else { return };
    let steps: Vec<String> = (0..500).map(|number| format!("step {number}")).collect();
    let many: Vec<String> = (0..10_000).map(|number| format!("step {number}")).collect();
    house.set_script(&json!({ "answers": [
        { "steps": [tool_call("createPlan", json!({ "title": "A book", "steps": many }))] },
        {
            "expect": { "tool_result": "a plan has at most 500 steps" },
            "steps": [tool_call("createPlan", json!({ "title": "A book", "steps": steps }))],
        },
        { "steps": [{ "text": "Planned." }] },
    ] }));
    let output = house.run(&["run", "--yes", "--output", "json", "write a book"]).code(0);
    let events = output.json_lines();
    let plans: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "plan_changed").collect();
    assert_eq!(plans.len(), 1, "{output}");
    assert_eq!(plans[0]["plan"]["steps"].as_array().unwrap().len(), 500);
    assert_eq!(plans[0]["plan"]["steps"][499]["description"], "step 499");
    assert_eq!(plans[0]["source"], "todo");
}
