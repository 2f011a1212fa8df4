//! Tests commands that an execution environment prepares and the host runs.

use serde_json::{Value, json};

use crate::support::cli::house_with_cli;
use crate::support::shells::{self, ShellCalls};
use crate::support::{House, fixture};

fn set_up_house() -> Option<House> {
    let house = house_with_cli()?;
    house.ship(&fixture("asks"));
    house.ship(&fixture("prepares"));
    Some(house)
}

#[track_caller]
fn run_batch(house: &House, lines: &[Value]) -> Vec<Value> {
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    let words = ["call", "--environment", "prepares", "--batch"];
    house.command(&words).input(lines.join("\n")).run().json_lines()
}

fn ask_service(operation: &str, request: &Value) -> Value {
    json!({ "tool": "ask_service", "args": { "operation": operation, "request": request } })
}

fn command_line(line: &str) -> Value {
    json!({ "tool": "cli_based_tool", "args": { "command": line } })
}

#[test]
fn host_runs_programs_prepared_by_the_environment() {
    let Some(house) = set_up_house() else { return };
    let lines = [
        command_line("echo $PREPARED_BY; echo told >&2; exit 3"),
        command_line("echo ${JAATO_SESSION_ID%%-*}"),
        command_line("yes 0123456789 | head -c 3000000 | wc -c"),
    ];
    let told = run_batch(&house, &lines);
    let first = &told[0]["result"];
    assert_eq!(first["stdout"], "the environment\n", "{told:?}");
    assert_eq!((&first["stderr"], &first["returncode"]), (&json!("told\n"), &json!(3)));
    // The environment removed the session's marker, but the environment is not a session.
    let marker = told[1]["result"]["stdout"].as_str().unwrap().trim();
    assert!(!["", "none", "environment"].contains(&marker), "{told:?}");
    assert_eq!(told[2]["result"]["stdout"], "3000000\n", "{told:?}");
    house.assert_no_processes();
}

#[test]
fn program_refused_by_the_environment_is_not_run() {
    let Some(house) = set_up_house() else { return };
    let told = run_batch(&house, &[ask_service("process.spawn", &json!({ "program": "refused" }))]);
    let expected = json!({ "kind": "permission_denied", "message": "the environment refuses it" });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&told[0]["error"][key], value, "{told:?}");
    }
}

#[test]
fn plugins_cannot_call_the_prepare_operation() {
    let Some(house) = set_up_house() else { return };
    let told = run_batch(&house, &[ask_service("process.prepare", &json!({ "program": "true" }))]);
    assert_eq!(told[0]["error"]["kind"], "unknown_operation", "{told:?}");
}

#[test]
fn environment_itself_runs_programs_that_outlive_their_call() {
    let Some(house) = set_up_house() else { return };
    let told = run_batch(&house, &[ask_service("process.start", &json!({ "program": "true" }))]);
    let message = told[0]["error"]["message"].as_str().unwrap();
    assert!(message.contains("asked to run a program itself"), "{told:?}");
}

#[test]
fn process_ids_of_host_and_environment_do_not_collide() {
    let Some(house) = set_up_house() else { return };
    let lines = [
        ask_service("process.start", &json!({ "program": "sleep", "args": ["300"] })),
        ask_service("process.spawn", &json!({ "program": "true" })),
        ask_service("process.signal", &json!({ "process": 1, "signal": "kill" })),
        ask_service("process.wait", &json!({ "process": 1 })),
    ];
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    let told = house.command(&["call", "--batch"]).input(lines.join("\n")).run().json_lines();
    let number = |line: &Value| line["result"]["answer"]["process"].as_u64().unwrap();
    assert_eq!(number(&told[0]), 1, "{told:?}");
    assert!(number(&told[1]) > 1 << 50, "{told:?}");
    assert_eq!(told[3]["result"]["answer"]["exit"]["signal"], 9, "{told:?}");
    house.assert_no_processes();
}

#[test]
fn programs_end_when_the_environment_that_prepared_them_is_lost() {
    let Some(house) = shells::house_with_shells() else { return };
    house.configure("environment = \"prepares\"\n");
    house.isolate_plugin("fixture-prepares");
    house.ship(&fixture("prepares"));
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn("cat");
    shells::kill_worker(&house, "fixture_prepares");
    // The program continues as long as nothing uses the environment.
    assert_eq!(shells::output_text(&calls.type_text(&session, "moon\n")), "moon\n");
    calls.spawn("cat");
    let read = calls.call("shell_read", &json!({ "session_id": session }));
    assert_eq!(shells::return_reason(&read), "exit", "{read}");
    calls.end(&house);
}
