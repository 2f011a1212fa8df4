//! Tests a day with every tool for work: a skill is used, a plan is agreed to, a question is
//! answered, a fact is stored, and a server runs in the background. Another session finds the fact.

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::{Command, House, fixtures, library_name};
use crate::terminal::run_on_terminal;

const TOOLS: [&str; 5] =
    ["tool_todo", "tool_clarification", "tool_background", "tool_memory", "tool_prompts"];

const SKILL: &str = "---\nname: publish\ndescription: Use when a page goes out.\n---\n\
    Ask for the colour. Serve the page. Note what was chosen.\n";

/// A server that reports that it listens, and its requests.
const SERVER: &str = "echo listening; while [ ! -e asked ]; do sleep 0.1; done; echo GET /; \
    touch answered; sleep 300";

fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    let plugins = fixtures::test_house()?.join("plugins");
    for name in TOOLS {
        house.ship(&plugins.join(library_name(name)));
    }
    house.write("workspace/.agents/skills/publish/SKILL.md", SKILL);
    house.run(&["trust"]).code(0);
    Some(house)
}

fn tool_call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn expect_result(result: &str, step: Value) -> Value {
    json!({ "expect": { "tool_result": result }, "steps": [step] })
}

fn read_on_call(offset: u64) -> Value {
    tool_call(
        "getBackgroundTask",
        json!({
            "task_id": "task_1", "stdout_offset": offset, "wait_seconds": 30,
        }),
    )
}

/// Returns the first session, with two messages of the user.
fn first_day() -> Value {
    let questions = json!([{ "text": "Which colour?", "choices": ["red", "blue"] }]);
    let step = |id: &str, result: &str| {
        let done = json!({ "step_id": id, "status": "completed", "result": result });
        tool_call("setStepStatus", done)
    };
    let fact = json!({
        "content": "The page is blue, by choice.", "description": "the colour of the page",
        "tags": ["page", "colour"],
    });
    let serve = json!({ "tool_name": "cli_based_tool", "arguments": { "command": SERVER } });
    let ends = |text: &str| json!({ "text": text });
    json!({ "answers": [
        {
            "expect": { "data": "- publish: Use when a page goes out." },
            "steps": [tool_call("use_prompt", json!({ "name": "publish" }))],
        },
        expect_result("Ask for the colour.", tool_call("createPlan", json!({
            "title": "The page", "steps": ["choose a colour", "serve it"],
        }))),
        expect_result("\"plan_id\":\"plan_1\"", tool_call("startPlan", json!({}))),
        expect_result("\"confirmed\":true", tool_call("request_clarification", json!({
            "context": "The page", "questions": questions,
        }))),
        expect_result("\"text\":\"blue\"", tool_call("store_memory", fact)),
        expect_result("Stored memory: the colour of the page", step("step_1", "blue")),
        expect_result("Proceed immediately to next step: serve it", tool_call("startBackgroundTask", serve)),
        expect_result("\"task_id\":\"task_1\"", read_on_call(0)),
        expect_result("\"stdout\":\"listening\\n\",\"stdout_offset\":10", ends("It listens.")),
        {
            "expect": { "prompt": "was it asked for?" },
            "steps": [tool_call("cli_based_tool", json!({
                "command": "touch asked; while [ ! -e answered ]; do sleep 0.1; done",
            }))],
        },
        expect_result("\"returncode\":0", read_on_call(10)),
        expect_result("\"stdout\":\"GET /\\n\",\"stdout_offset\":16", step("step_2", "served")),
        expect_result(
            "step",
            tool_call("completePlan", json!({ "status": "completed", "summary": "out" })),
        ),
        expect_result(
            "completed",
            tool_call("cancelBackgroundTask", json!({ "task_id": "task_1" })),
        ),
        expect_result("\"cancelled\":true", ends("It was.")),
    ] })
}

/// Returns the second session, which knows only what the first one stored.
fn second_day() -> Value {
    json!({ "answers": [
        {
            "expect": { "data": "- [page, colour]: the colour of the page" },
            "steps": [tool_call("retrieve_memories", json!({ "tags": ["colour"] }))],
        },
        expect_result("The page is blue, by choice.", json!({ "text": "Blue." })),
    ] })
}

fn with_xterm(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

#[test]
fn all_work_tools_complete_one_task_over_two_sessions() {
    let Some(house) = set_up_house() else { return };
    house.set_script(&first_day());
    let Some(mut running) = run_on_terminal(&house, "chat 'publish the page'", with_xterm) else {
        return;
    };
    running.wait_for_text("1. choose a colour");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("Which colour?");
    running.wait_for_question();
    running.write(b"2\n");
    running.wait_for_text("[x] choose a colour: blue");
    running.wait_for_text("echo listening");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("It listens.");
    running.write(b"was it asked for?\r");
    running.wait_for_text("touch asked");
    running.wait_for_question();
    running.write(b"y\n");
    running.wait_for_text("The page: completed (2 of 2 steps done)");
    running.wait_for_text("It was.");
    running.write(b"/quit\r");
    running.wait_with_open_input().code(0);
    house.assert_no_processes();

    house.set_script(&second_day());
    let output = house.run(&["run", "which colour has the page?"]).code(0);
    assert_eq!(output.stdout, "Blue.\n", "{output}");
    house.assert_no_processes();
}
