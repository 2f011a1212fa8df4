//! Tests a day with every tool for work: a skill is used, a plan is agreed to, a question is
//! answered, a fact is stored, and a server runs in the background. Another session finds the fact.

use serde_json::{Value, json};

use crate::support::cli::with_cli;
use crate::support::{Command, House, fixtures, library_name};
use crate::terminal::on_terminal;

const TOOLS: [&str; 5] =
    ["tool_todo", "tool_clarification", "tool_background", "tool_memory", "tool_prompts"];

const SKILL: &str = "---\nname: publish\ndescription: Use when a page goes out.\n---\n\
    Ask for the colour. Serve the page. Note what was chosen.\n";

/// A server that reports that it listens, and its requests.
const SERVER: &str = "echo listening; while [ ! -e asked ]; do sleep 0.1; done; echo GET /; \
    touch answered; sleep 300";

fn set_up_house() -> Option<House> {
    let house = with_cli()?;
    let plugins = fixtures::house()?.join("plugins");
    for name in TOOLS {
        house.ship(&plugins.join(library_name(name)));
    }
    house.write("workspace/.agents/skills/publish/SKILL.md", SKILL);
    house.run(&["trust"]).code(0);
    Some(house)
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

fn answer_after(result: &str, step: Value) -> Value {
    json!({ "expect": { "tool_result": result }, "steps": [step] })
}

fn read_on(offset: u64) -> Value {
    call(
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
        call("setStepStatus", done)
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
            "steps": [call("use_prompt", json!({ "name": "publish" }))],
        },
        answer_after("Ask for the colour.", call("createPlan", json!({
            "title": "The page", "steps": ["choose a colour", "serve it"],
        }))),
        answer_after("\"plan_id\":\"plan_1\"", call("startPlan", json!({}))),
        answer_after("\"confirmed\":true", call("request_clarification", json!({
            "context": "The page", "questions": questions,
        }))),
        answer_after("\"text\":\"blue\"", call("store_memory", fact)),
        answer_after("Stored memory: the colour of the page", step("step_1", "blue")),
        answer_after("Proceed immediately to next step: serve it", call("startBackgroundTask", serve)),
        answer_after("\"task_id\":\"task_1\"", read_on(0)),
        answer_after("\"stdout\":\"listening\\n\",\"stdout_offset\":10", ends("It listens.")),
        {
            "expect": { "prompt": "was it asked for?" },
            "steps": [call("cli_based_tool", json!({
                "command": "touch asked; while [ ! -e answered ]; do sleep 0.1; done",
            }))],
        },
        answer_after("\"returncode\":0", read_on(10)),
        answer_after("\"stdout\":\"GET /\\n\",\"stdout_offset\":16", step("step_2", "served")),
        answer_after("step", call("completePlan", json!({ "status": "completed", "summary": "out" }))),
        answer_after("completed", call("cancelBackgroundTask", json!({ "task_id": "task_1" }))),
        answer_after("\"cancelled\":true", ends("It was.")),
    ] })
}

/// Returns the second session, which knows only what the first one stored.
fn second_day() -> Value {
    json!({ "answers": [
        {
            "expect": { "data": "- [page, colour]: the colour of the page" },
            "steps": [call("retrieve_memories", json!({ "tags": ["colour"] }))],
        },
        answer_after("The page is blue, by choice.", json!({ "text": "Blue." })),
    ] })
}

fn plain(command: Command) -> Command {
    command.variable("TERM", "xterm")
}

#[test]
fn all_work_tools_complete_one_task_over_two_sessions() {
    let Some(house) = set_up_house() else { return };
    house.script(&first_day());
    let Some(mut running) = on_terminal(&house, "chat 'publish the page'", plain) else { return };
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
    house.nothing_lives();

    house.script(&second_day());
    let output = house.run(&["run", "which colour has the page?"]).code(0);
    assert_eq!(output.stdout, "Blue.\n", "{output}");
    house.nothing_lives();
}
