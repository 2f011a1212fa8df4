//! Tests that users see the shipped plugin's shells, type there, and enter secrets that the model
//! must not see.

use std::time::Instant;

use serde_json::{Value, json};

use super::{BASH, ShellCalls, house_with_shells, output_text};
use crate::secrets::{SECRET, assert_secret_nowhere};
use crate::support::command::{DEADLINE, LOOK_AGAIN, Running};
use crate::support::{Command, House};
use crate::terminal::run_on_terminal;

fn unchanged_command(command: Command) -> Command {
    command
}

#[test]
fn user_can_attach_and_type_and_the_model_is_informed() {
    let Some(house) = house_with_shells() else { return };
    let mut calls = ShellCalls::in_house(&house);
    let (session, _) = calls.spawn(BASH);
    let listed = house.run(&["shell", "list", "--json"]).expect_silent().json();
    assert_eq!((&listed[0]["name"], &listed[0]["is_alive"]), (&json!(session), &json!(true)));
    let words = format!("shell attach {session} --type");
    let Some(mut types) = run_on_terminal(&house, &words, unchanged_command) else { return };
    types.wait_for_text("typing:");
    let line = "echo from-$((40+2))\r";
    types.write(line.as_bytes());
    types.wait_for_text("from-42");
    types.write(b"\x1d");
    types.wait_with_open_input().code(0);
    let read = calls.call("shell_read", &json!({ "session_id": session }));
    assert!(output_text(&read).contains("from-42"), "{read}");
    assert_eq!(read["typed_by_person"], true, "{read}");
    let seen = house.run(&["shell", "attach", &session]).expect_silent();
    assert!(seen.stdout.contains("from-42"), "{seen}");
    calls.close(&session);
    assert_eq!(house.run(&["shell", "list", "--json"]).expect_silent().json(), json!([]));
    calls.end(&house);
}

#[test]
fn password_that_a_program_asks_for_is_typed_by_the_user() {
    let login = "sh -c 'stty -echo; printf \"Password: \"; read -r word; stty echo; echo; echo \"${#word} letters\"'";
    let Some(house) = house_with_shells() else { return };
    let input = json!({ "session_id": "session_0", "ask_user": true });
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "shell_spawn", "arguments": { "command": login } } }] },
        {
            "expect": { "tool_result": "Password: " },
            "steps": [{ "call": { "name": "shell_input", "arguments": input } }],
        },
        { "expect": { "tool_result": "21 letters" }, "steps": [{ "text": "done" }] },
    ] }));
    let trace = house.workspace().join("trace");
    let traced = |command: Command| command.variable("JAATO_TRACE_LOG", &trace);
    let words = "run --yes --output json go";
    let Some(mut running) = run_on_terminal(&house, words, traced) else { return };
    running.wait_for_text("Ctrl-C declines");
    running.write(format!("{SECRET}\r").as_bytes());
    let output = running.wait_with_open_input().code(0);
    assert!(output.stdout.contains("21 letters"), "{output}");
    assert!(output.stdout.contains("\"terminal_answered\""), "{output}");
    assert!(!output.stdout.contains(SECRET), "{output}");
    assert!(trace.exists());
    assert_secret_nowhere(&house);
    house.assert_no_processes();
}

#[test]
fn length_of_a_password_typed_by_an_attached_user_is_not_reported() {
    let Some(house) = house_with_shells() else { return };
    let line = "stty -echo; printf 'Password: '; read -r word; stty echo; printf 'Name: '; read -r name; echo on";
    let spawn = json!({ "command": format!("sh -c \"{line}\"") });
    // A slow machine needs several calls. Calls after the final text return immediately.
    let read = json!({ "session_id": "session_0", "wait_for": "^Name: moon", "timeout": 30 });
    let read = json!([{ "call": { "name": "shell_read", "arguments": read } }]);
    house.set_script(&json!({ "answers": [
        { "steps": [{ "call": { "name": "shell_spawn", "arguments": spawn } }] },
        { "expect": { "tool_result": "Password: " }, "steps": read },
        { "steps": read },
        { "steps": read },
        { "expect": { "tool_result": "exit" }, "steps": [{ "text": "done" }] },
    ] }));
    let running = house.command(&["run", "--yes", "--output", "json", "go"]);
    let running = running.no_input().start();
    let Some(mut types) = join_terminal(&house) else { return };
    types.write(format!("{SECRET}\r").as_bytes());
    types.wait_for_text("Name:");
    types.write(b"moon\r");
    let output = running.finish().code(0);
    types.wait_with_open_input();
    assert!(output.stdout.contains("\"typed_by_person\":true"), "{output}");
    let typed = |event: &Value| event["event"] == "terminal_typed";
    let events = output.stdout.lines().filter_map(|line| serde_json::from_str(line).ok());
    let told: Vec<u64> =
        events.filter(typed).map(|event| event["bytes"].as_u64().unwrap()).collect();
    assert_eq!(told.first(), Some(&0), "{output}");
    // The last input may not be reported, because no one reads it after the end.
    assert!(told.iter().sum::<u64>() <= "moon\r".len() as u64, "{output}");
    assert_secret_nowhere(&house);
    house.assert_no_processes();
}

/// Joins the first terminal, to type there.
fn join_terminal(house: &House) -> Option<Running> {
    let begun = Instant::now();
    while house.run(&["shell", "list", "--json"]).expect_silent().json() == json!([]) {
        assert!(begun.elapsed() < DEADLINE, "no terminal is listed");
        std::thread::sleep(LOOK_AGAIN);
    }
    let types = run_on_terminal(house, "shell attach session_0 --type", unchanged_command)?;
    types.wait_for_text("Password:");
    Some(types)
}
